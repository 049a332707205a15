# SPDX-License-Identifier: Apache-2.0
"""Which proofs a change can break: `make formal` plants the faults of these, `make soak` those of all.

A proof itself is cheap, its faults are some ten further searches. They show that the properties notice what they name;
that changes only with the module, the properties, the list of faults, or the tools.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

FORMAL = Path(__file__).resolve().parent
sys.path[:0] = [str(FORMAL.parents[1] / "tb" / "lib"), str(FORMAL.parents[1] / "tools")]

from changes import ROOT  # noqa: E402
from proof import Proof  # noqa: E402
from proofs import ROOMS  # noqa: E402

import rtl  # noqa: E402

# Of these each can change every verdict.
TOOLS = re.compile(r"rtl/formal/\w+\.py|rtl/syn/yosys\.py|tb/lib/rtl\.py|requirements(-test)?\.txt")


def planted(proofs: list[Proof], paths: list[str] | None) -> list[Proof]:
    """The proofs, without the faults of those that a change of these files cannot break; None: of any file."""
    if paths is None or any(TOOLS.fullmatch(path) for path in paths):
        return proofs
    return [proof if touched(proof, set(paths)) else replace(proof, mutants=()) for proof in proofs]


def sources(proof: Proof) -> set[Path]:
    """The files that a proof reads."""
    rules = [FORMAL / f"{proof.props or proof.top}_props.sv", *FORMAL.glob("*_pkg.sv")]
    helpers = [path for path in FORMAL.glob("*.sv") if not path.stem.endswith("_props")]
    return {*rtl.sources(proof.top, rules), *(FORMAL / "free" / f"{name}.sv" for name in proof.free), *helpers}


def touched(proof: Proof, paths: set[str]) -> bool:
    """Whether one of the files that a proof reads, or its list of faults, has changed."""
    read = sources(proof)
    if any(path.parent == rtl.GENERATED for path in read) and any(path.startswith("regs/") for path in paths):
        return True
    lists = [f"rtl/formal/proofs/{name}.py" for name, room in ROOMS.items() if proof in room]
    return not paths.isdisjoint([*(str(path.relative_to(ROOT)) for path in read), *lists])
