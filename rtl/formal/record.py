# SPDX-License-Identifier: Apache-2.0
"""The proofs that were made, with their planted faults, by what they are made from; `make formal` makes the others."""

import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

FORMAL = Path(__file__).resolve().parent
REPO = FORMAL.parents[1]
sys.path.insert(0, str(REPO / "tb" / "lib"))

from models import digest  # noqa: E402
from passed import Record  # noqa: E402
from proof import Proof  # noqa: E402

import rtl  # noqa: E402

RECORD = Record(FORMAL / "proved.json")
# What makes proofs of texts; `proofs/` is in the settings of each proof, this file changes no verdict.
CHECKER = [FORMAL / f"{name}.py" for name in ("btor", "check", "engine", "model", "proof")]
CHECKER += [REPO / "rtl" / "syn" / "yosys.py", REPO / "tb" / "lib" / "rtl.py"]


@cache
def checker() -> list[str]:
    """The versions of the tools, and the texts of what drives them."""
    return [*(f"{name} {version(name)}" for name in ("pyosys", "bitwuzla")), *map(Path.read_text, CHECKER)]


def sources(proof: Proof) -> set[Path]:
    """The files that a proof and its planted faults read."""
    rules = [FORMAL / f"{proof.props or proof.top}_props.sv", *FORMAL.glob("*_pkg.sv")]
    helpers = [path for path in FORMAL.glob("*.sv") if not path.stem.endswith("_props")]
    return {*rtl.sources(proof.top, rules), *(FORMAL / "free" / f"{name}.sv" for name in proof.free), *helpers}


def fingerprint(proof: Proof) -> str:
    """Of a proof, its covers and its planted faults."""
    # In an order of their own: a module and its stand-in have one name, and folders are elsewhere in another clone.
    texts = sorted(f"{path.name}\n{path.read_text()}" for path in sources(proof))
    return digest([*checker(), repr(proof), *texts])
