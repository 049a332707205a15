# SPDX-License-Identifier: Apache-2.0
"""The netlist is the design: proves small blocks equal to their mapped netlists, cell by cell as Yosys models them.

    python rtl/syn/equivalence.py [arbiter_rr ...]

Each block is read once as it is written and once mapped to UltraScale+ by the flow of synth.py, with the models of the
vendor's cells that Yosys ships (xilinx/cells_sim.v) in place of its cells. Registers keep their names, so both have the
same state; Yosys proves by induction that equal states and inputs give equal outputs and next states. Ends with 1 when
a block is not proved equal. Blocks with block RAM or LUT RAM, whose words have no name in the netlist, are not here.
"""

import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import yosys  # noqa: E402

import rtl  # noqa: E402

# Parameters besides the defaults.
BLOCKS: dict[str, dict[str, int]] = {
    "arbiter_rr": {},
    "axis_register": {"W": 64},
    "cnp_limiter": {},
    "link_fault": {},
    "vlan_strip": {},
    "word_packer": {},
}


def prove(name: str, params: dict[str, int]) -> str:
    """Yosys' word on one block; raises `yosys.YosysError` when it is not proved."""
    read = yosys.read(name, params, rtl.module(name)[0])
    tidy = ["async2sync", "opt_clean"]
    with tempfile.TemporaryDirectory() as folder:
        netlist = Path(folder, "netlist.v")
        mapped = [read, *yosys.synthesise(name, "-flatten"), f"write_verilog -noattr {netlist}", "design -reset"]
        gate = ["read_verilog +/xilinx/cells_sim.v", f"read_verilog {netlist}", f"hierarchy -top {name}", "proc"]
        gate += ["flatten -wb", *tidy, f"rename {name} gate", "design -stash gate"]
        gold = [read, f"prep -flatten -top {name}", "memory_map", *tidy, f"rename {name} gold", "design -stash gold"]
        both = [f"design -copy-from {side} {side}" for side in ("gold", "gate")]
        both += ["equiv_make gold gate equal", "hierarchy -top equal", "equiv_struct", "equiv_simple -undef"]
        return yosys.run([*mapped, *gate, *gold, *both, "equiv_induct -undef -seq 4", "equiv_status -assert"])


def main(chosen: list[str]) -> int:
    if unknown := set(chosen) - set(BLOCKS):
        print(f"equivalence: no block {', '.join(sorted(unknown))}; there are {', '.join(BLOCKS)}", file=sys.stderr)
        return 2
    failed = 0
    for name in chosen or BLOCKS:
        started = time.monotonic()
        try:
            prove(name, BLOCKS[name])
            reported = "equal"
        except yosys.YosysError as error:
            failed += 1
            reported = f"NOT proved equal: {error}"
        print(f"{name}: {reported}, {time.monotonic() - started:.0f} s", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
