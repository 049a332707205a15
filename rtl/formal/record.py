# SPDX-License-Identifier: Apache-2.0
"""The proofs that were made, by a hash of all that they are made from: `make formal` makes the others.

The same texts and the same tools give the same proof and reach the same covers. `proved.json` is part of the tree, so
that this holds for a fresh clone, too; `make soak` makes all proofs again, whatever the record has.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from faults import sources
from proof import Proof

FORMAL = Path(__file__).resolve().parent
RECORD = FORMAL / "proved.json"
# What makes proofs of texts; `proofs/` is in the settings of each proof, `faults.py` and this file change no verdict.
CHECKER = [FORMAL / f"{name}.py" for name in ("btor", "check", "engine", "model", "proof")]
CHECKER += [FORMAL.parent / "syn" / "yosys.py", FORMAL.parents[1] / "tb" / "lib" / "rtl.py"]


@cache
def checker() -> str:
    """The versions of the tools, and the texts of what drives them."""
    return "\n".join([*(f"{name} {version(name)}" for name in ("pyosys", "bitwuzla")), *map(Path.read_text, CHECKER)])


def fingerprint(proof: Proof) -> str:
    """Of a proof and its covers, without its planted faults; 16 hexadecimal digits."""
    settings = repr(replace(proof, mutants=()))
    # In an order of their own: a module and its stand-in have one name, and folders are elsewhere in another clone.
    texts = sorted(f"{path.name}\n{path.read_text()}" for path in sources(proof))
    return hashlib.sha256("\0".join([checker(), settings, *texts]).encode()).hexdigest()[:16]


def recorded() -> dict[str, str]:
    """The fingerprints of the proofs that were made."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def is_recorded(proof: Proof) -> bool:
    """Whether it was made before, of what it is made from now."""
    return recorded().get(proof.name) == fingerprint(proof)


def record(proved: Iterable[Proof], proofs: Iterable[Proof]) -> None:
    """Adds what was proved now; what is in no list any more is dropped."""
    kept = {proof.name for proof in proofs}
    before = recorded()
    after = before | {proof.name: fingerprint(proof) for proof in proved}
    after = {name: after[name] for name in sorted(after) if name in kept}
    if after != before:
        RECORD.write_text(json.dumps(after, indent=1) + "\n")
