# SPDX-License-Identifier: Apache-2.0
"""From SystemVerilog to transition systems, by Yosys.

A module is read together with its `*_props.sv`, which binds its properties to it or instantiates it. Memories become
registers, `assert`s and `cover`s become bad values of two systems, `assume`s constraints. An instance of `anything` is
a free input; a register without an initial value starts anywhere.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import btor
import yosys

import rtl

FORMAL = Path(__file__).resolve().parent
PASSES = [
    "hierarchy -smtcheck -top {top}",
    "proc",
    "setundef -undriven -anyseq",
    "prep -flatten -top {top}",
    "chformal -assume -early",
    "memory_map -formal",
    "formalff -clk2ff -ff2anyinit",
    "setundef -undriven -anyseq",
    "opt_clean -purge",
    "dffunmap",
    "async2sync",
    "chformal -lower",
    "opt_clean",
    "write_btor -x {folder}/asserts.btor",
    "write_btor -x -c {folder}/covers.btor",
]


@dataclass
class Model:
    """One module's system twice: where its assertions break, and where its covers are reached."""

    asserts: btor.System
    covers: btor.System
    whole: btor.System  # the covers', with all registers


def build(
    top: str, params: dict[str, int], props: str, free: tuple[str, ...] = (), changed: Path | None = None
) -> Model:
    """Reads a module and the properties that are bound to it or instantiate it.

    For the modules named in `free` their stand-ins in the folder of that name are read; `changed` is read instead of
    the module of its name.
    """
    file = FORMAL / f"{props}_props.sv"
    root = top if "\nbind " in file.read_text() else f"{props}_props"
    rules = sorted(FORMAL.glob("*_pkg.sv"))
    stands = [FORMAL / "free" / f"{name}.sv" for name in free]
    read_first = (*rtl.module(top), *rules, file, *stands, *([changed] if changed else []))
    sources = {path.stem: str(path) for path in read_first}
    with tempfile.TemporaryDirectory() as folder:
        read = yosys.read(root, params, sources.pop(root), f"-y {FORMAL}", *sources.values())
        yosys.run([command.format(top=root, folder=folder) for command in (read, *PASSES)])
        asserts, covers = (Path(folder, f"{name}.btor").read_text() for name in ("asserts", "covers"))
    whole = btor.parse(covers)
    return Model(btor.parse(asserts).cone(), whole.cone(), whole)
