# SPDX-License-Identifier: Apache-2.0
"""From SystemVerilog to transition systems, by Yosys.

A module is read together with `<module>_props.sv`, which binds its properties. Memories become registers, `assert`s and
`cover`s become bad values of two systems, `assume`s constraints. An instance of `anything` is a free input; a register
without an initial value starts anywhere.
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
    "write_btor {folder}/asserts.btor",
    "write_btor -c {folder}/covers.btor",
]


@dataclass
class Model:
    """One module's system twice: where its assertions break, and where its covers are reached."""

    asserts: btor.System
    covers: btor.System


def build(top: str, params: dict[str, int], source: Path | None = None) -> Model:
    """Reads a module, from its own file or from `source`, and its properties."""
    with tempfile.TemporaryDirectory() as folder:
        props = f"-y {FORMAL} {FORMAL / f'{top}_props.sv'}"
        read = yosys.read(top, params, source or rtl.module(top)[0], props)
        yosys.run([read, *(command.format(top=top, folder=folder) for command in PASSES)])
        asserts, covers = (Path(folder, f"{name}.btor").read_text() for name in ("asserts", "covers"))
    return Model(btor.parse(asserts), btor.parse(covers))
