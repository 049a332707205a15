# SPDX-License-Identifier: Apache-2.0
"""The programs of `crates/*/examples` that benches compare the gateware with."""

import os
import subprocess
from pathlib import Path

from lib.toolchain import REPO


def model(example: str) -> Path:
    """The program, built if it is not up to date.

    With the features of the whole workspace, as `make test` has built everything: with those of its crate alone cargo
    would compile what it depends on once more.
    """
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--workspace", "--example", example]
    subprocess.run(build, cwd=REPO, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target")) / "release" / "examples" / example
