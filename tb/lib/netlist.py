# SPDX-License-Identifier: Apache-2.0
"""Mapped netlists as models for benches: `run` of runner.py takes one instead of the RTL.

Verilator has two states: X becomes a random value, another one with another `PENSTOCK_SEED`. Icarus has four, and is
slow: it shows whether an X leaves the top.
"""

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lib.rtl import REPO

# The models of the cells that Yosys does not ship.
CELLS = REPO / "tb" / "lib" / "cells"
VERILATOR_ARGS = ["-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-SPECIFYIGN", "-Wno-INITIALDLY", "--timing"]
VERILATOR_ARGS += ["--x-initial", "unique", "--x-assign", "unique", "--no-public-flat-rw"]


class NetlistError(Exception):
    """Yosys could not map the design; says why."""


@dataclass(frozen=True)
class Netlist:
    """A file of cells, and whether it is simulated with four states."""

    file: Path
    four_state: bool = False

    @property
    def simulator(self) -> str:
        return "icarus" if self.four_state else "verilator"

    @property
    def setting(self) -> str:
        """What the environment says to run the benches on it."""
        return "NETLIST=x" if self.four_state else "NETLIST=1"

    @property
    def name(self) -> str:
        """Of its model and of the folders of its runs."""
        return f"{self.file.stem}_{self.simulator}"

    def sources(self) -> list[Path]:
        """The netlist and the models of all cells."""
        found = importlib.util.find_spec("pyosys")
        if not found or not found.origin:
            raise NetlistError("pyosys is not installed: `make setup`")
        return [Path(found.origin).parent / "share" / "xilinx" / "cells_sim.v", *sorted(CELLS.glob("*.sv")), self.file]

    def ports(self) -> list[str]:
        """The ports of the top, the first module of the file; all other nets are Verilator's to optimise."""
        head = re.search(r"^module \S+\(([^)]*)\);", self.file.read_text(), re.MULTILINE)
        if not head:
            raise NetlistError(f"{self.file}: begins with no module")
        return [name.strip() for name in head[1].split(",")]

    def build_args(self) -> list[str]:
        return [] if self.four_state else VERILATOR_ARGS


def synthesised(top: str, config: dict[str, int], source: Path | None = None) -> Path:
    """The netlist of a top with these parameters, made if need be (rtl/syn/netlist.py); minutes for a front end."""
    program = [sys.executable, REPO / "rtl" / "syn" / "netlist.py", top]
    settings = [f"{key}={value}" for key, value in config.items()]
    from_file = ["--source", str(source)] if source else []
    made = subprocess.run([*program, *settings, *from_file], capture_output=True, text=True)
    if made.returncode:
        raise NetlistError(f"{top}: {made.stderr}")
    return Path(made.stdout.strip())
