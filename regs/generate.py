#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates all code that contains register addresses from `penstock.rdl` and the files it includes, and from
`qcn_switch.rdl`, the map of the switch.

    python regs/generate.py [--out build/gen] [--force] [--html]

Written to the output folder by the writers in this folder: the register block (`penstock_regblock.sv` and its
package), `penstock_regs_pkg.sv`, `penstock_regs.rs`, `penstock_map.rs`, `penstock_regs.py`, and the uHAL address
table `penstock.xml` with `penstock_qp.xml`; for the switch a package, a Python map, Rust constants and
data (`qcn_switch_map.rs`), and `qcn_switch.xml`. PeakRDL makes the browsable page. Nothing is done when the outputs are
younger than their sources. Why not PeakRDL's writers: its register block reads every field back through
a multiplexer, that of `write_block.py` from a RAM that holds the written words.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RDL = HERE / "penstock.rdl"
SWITCH = "qcn_switch"
DEFAULT_OUT = HERE.parent / "build" / "gen"
NAMES = [
    "penstock_regblock_pkg.sv",
    "penstock_regblock.sv",
    "penstock_regs_pkg.sv",
    "penstock_regs.rs",
    "penstock_map.rs",
    "penstock_parameters.rs",
    "penstock_regs.py",
    "penstock.xml",
    "penstock_qp.xml",
    "penstock_access_entry.xml",
    "penstock_cc.xml",
    "penstock_qcn.xml",
    "penstock_ring.xml",
    "penstock_stream.xml",
    "penstock_server.xml",
    "penstock_replay_block.xml",
    "penstock_event_input.xml",
    "penstock_hook_block.xml",
    "penstock_latency_bins.xml",
    "penstock_latency.xml",
    "penstock_meter.xml",
    "qcn_switch_regs_pkg.sv",
    "qcn_switch_regs.rs",
    "qcn_switch_map.rs",
    "qcn_switch_regs.py",
    "qcn_switch.xml",
    "qcn_switch_queue.xml",
    "qcn_switch_port.xml",
    "qcn_switch_access_entry.xml",
]


def stale(out: Path) -> bool:
    """Whether an output is missing or older than the map or its generators."""
    if not all((out / name).exists() for name in NAMES):
        return True
    newest = max(p.stat().st_mtime for p in [*HERE.glob("*.rdl"), *HERE.glob("*.py")])
    return min((out / name).stat().st_mtime for name in NAMES) < newest


def compile_map(rdl: Path = RDL):
    """The elaborated address map of a file, of its name; exits with the compiler's message when the RDL is wrong."""
    from systemrdl import RDLCompileError, RDLCompiler

    compiler = RDLCompiler()
    try:
        compiler.compile_file(str(rdl), incl_search_paths=[str(HERE)])
        return compiler.elaborate(rdl.stem)
    except RDLCompileError:
        sys.exit(f"{rdl}: not a valid register map; see the messages above")


def generate(out: Path = DEFAULT_OUT, force: bool = False) -> bool:
    """Updates `out`; returns whether anything was written. Safe with parallel runs."""
    if not force and not stale(out):
        return False
    sys.path.insert(0, str(HERE))
    from register_model import read_blocks, read_map, read_signals
    from write_block import module, package
    from write_map import rust_map
    from write_parameters import rust_parameters
    from write_python import python_map, uhal_tables
    from write_rust import rust_constants
    from write_structs import parameter_lines
    from write_sv import sv_package
    from write_words import words_package

    root = compile_map()
    model, blocks = read_map(root.top), read_blocks(root.top)
    switch = read_map(compile_map(HERE / f"{SWITCH}.rdl").top)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        folder = Path(scratch)
        (folder / "penstock_regblock_pkg.sv").write_text(package(model, blocks))
        (folder / "penstock_regblock.sv").write_text(module(model, blocks, read_signals(root.top)))
        (folder / "penstock_regs_pkg.sv").write_text(sv_package(model, parameter_lines(model)))
        (folder / "penstock_regs.rs").write_text(rust_constants(model))
        (folder / "penstock_map.rs").write_text(rust_map(model))
        (folder / "penstock_parameters.rs").write_text(rust_parameters(model))
        (folder / "penstock_regs.py").write_text(python_map(model))
        (folder / f"{SWITCH}_regs_pkg.sv").write_text(words_package(SWITCH, switch))
        (folder / f"{SWITCH}_regs.rs").write_text(rust_constants(switch, SWITCH))
        (folder / f"{SWITCH}_map.rs").write_text(rust_map(switch, SWITCH))
        (folder / f"{SWITCH}_regs.py").write_text(python_map(switch, SWITCH))
        for name, text in {**uhal_tables(model), **uhal_tables(switch, SWITCH)}.items():
            (folder / name).write_text(text)
        for name in NAMES:  # each file appears whole or not at all
            os.replace(folder / name, out / name)
    return True


def write_html(out: Path) -> None:
    from peakrdl_html import HTMLExporter

    page = out / "html"
    shutil.rmtree(page, ignore_errors=True)
    HTMLExporter().export(compile_map(), str(page))


def main() -> None:
    parser = argparse.ArgumentParser(description="Generate RTL, Rust, Python and uHAL views of the register map.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="output folder (default: build/gen)")
    parser.add_argument("--force", action="store_true", help="generate even when nothing changed")
    parser.add_argument("--html", action="store_true", help="also write the browsable register page")
    options = parser.parse_args()
    if generate(options.out, options.force):
        print(f"register map written to {options.out}")
    if options.html:
        write_html(options.out)


if __name__ == "__main__":
    main()
