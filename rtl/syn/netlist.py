# SPDX-License-Identifier: Apache-2.0
"""Writes the mapped netlist of a top as Verilog, for the benches to run on (`NETLIST=1`, docs/synthesis.md).

    python rtl/syn/netlist.py penstock_xgmii CLK_KHZ=156250 N_QP=4 RING_BYTES=65536 SLOTS=64

The flow is synth.py's, for UltraScale+ and flat, and block RAMs keep their contents. What has no initial value in the
RTL has X in the netlist. A netlist is kept in build/netlist and made again if its logic or a program has changed.
Simulations take the cells from Yosys (`cells_sim.v`), and those that Yosys does not model from tb/lib/cells.
"""

import argparse
import fcntl
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "tb" / "lib"), str(Path(__file__).parent)]

import synth  # noqa: E402
import yosys  # noqa: E402

import rtl  # noqa: E402

KEPT = REPO / "build" / "netlist"
SPLIT = ["techmap -map +/xilinx/cells_sim.v t:CARRY4", "simplemap t:$mux t:$xor", "splitnets", "clean"]


def label(top: str, params: dict[str, int]) -> str:
    """What the file of a netlist begins with."""
    return "_".join([top, *(f"{key}{value}" for key, value in params.items())])


def verilog(top: str, params: dict[str, int], source: Path | None = None) -> Path:
    """The netlist of a module with these parameters; `source` is its file if it is not one of the gateware's.

    Nets are single bits, and a carry chain is its model's gates (`SPLIT`): a simulator that looks at whole words would
    find loops where there are none.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / f"{label(top, params)}.lock", "w") as lock:  # benches of one netlist, in parallel
        fcntl.flock(lock, fcntl.LOCK_EX)
        return made(top, params, source)


def made(top: str, params: dict[str, int], source: Path | None) -> Path:
    """As `verilog`, of one process at a time."""
    programs = synth.digest(Path(__file__), Path(yosys.__file__))
    found = synth.logic(top, params, source)
    kept = KEPT / f"{label(top, params)}_{found[:16]}_{programs}.v"
    if kept.exists():
        return kept
    read = yosys.read(top, params, source or rtl.module(top)[0])
    mapped = yosys.synthesise(top, "-flatten", contents=True)
    part = kept.with_suffix(".part")
    yosys.run([read, *mapped, *SPLIT, f"write_verilog -noattr {part}"])
    for old in KEPT.glob(f"{label(top, params)}_{'?' * 16}_{'?' * 16}.v"):
        old.unlink()
    return part.rename(kept)


def setting(text: str) -> tuple[str, int]:
    """NAME=number."""
    name, _, value = text.partition("=")
    return name, int(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("top", help="a module of rtl/, or of --source")
    parser.add_argument("parameters", nargs="*", type=setting, metavar="NAME=number", help="of the top")
    parser.add_argument("--source", type=Path, help="the top's file if it is not in rtl/, such as a bench's wrapper")
    options = parser.parse_args()
    if not options.source and not rtl.module(options.top):
        parser.error(f"no module {options.top} in rtl/")
    started = time.monotonic()
    try:
        print(verilog(options.top, dict(options.parameters), options.source))
    except yosys.YosysError as error:
        print(f"netlist: {error}", file=sys.stderr)
        return 1
    print(f"netlist: {time.monotonic() - started:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
