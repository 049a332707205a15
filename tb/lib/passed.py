# SPDX-License-Identifier: Apache-2.0
"""Checks that passed, by a hash of all that each is made from: proofs, lints and benches that need not be made again.

The same texts, settings and tools give the same verdict. A record is a file of the tree, so that this holds for a fresh
clone, too: it is committed with the change. A check whose texts have changed is in no record. `make soak` makes all.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """The fingerprints (`models.digest`) of checks that passed, by their names."""

    path: Path

    def passed(self) -> dict[str, str]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def add(self, passed: dict[str, str], names: Iterable[str]) -> None:
        """Adds what has passed now; what is none of these names is dropped: there is no such check any more."""
        before = self.passed()
        after = before | passed
        after = {name: after[name] for name in sorted(after.keys() & set(names))}
        if after != before:
            self.path.write_text(json.dumps(after, indent=1) + "\n")
