# SPDX-License-Identifier: Apache-2.0
"""The list of the gateware's files and the arguments for tools: the only place for both.

One module per file, named after it, so Verilator finds modules by name in these folders (`-y`);
packages come first on its command line. As a program:

    python tb/lib/rtl.py penstock_xgmii   the arguments for one top, one per line
"""

import signal
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
RTL = REPO / "rtl"
GENERATED = REPO / "build" / "gen"
WRITTEN = REPO / "build" / "tb" / "written"  # modules that a bench makes for itself
ROOMS = ["lib", "eth", "pcs", "ip", "roce", "tcp", "event", "source", "cc", "switch", "ctrl", "top"]
BOARDS = [
    "kcu105",
    "vcu118",
    "mpf300_eval",
    "ecpix5",
    "versa_ecp5",
    "versa_basex",
]  # each has its top and constraints; shared modules are in the parent folder
FOLDERS = [
    *(RTL / name for name in ROOMS),
    *(RTL / "boards" / name for name in ("", "blackbox", *BOARDS)),
    GENERATED,
]


def generate() -> None:
    """Brings what is made from `regs/penstock.rdl` up to date; quick when it is."""
    subprocess.run([sys.executable, REPO / "regs" / "generate.py"], check=True, stdout=sys.stderr)


def packages() -> list[Path]:
    """The packages, which must be read before any module; the shared one first."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*_pkg.sv"))]
    return sorted(found, key=lambda path: path.name != "penstock_pkg.sv")


def module(name: str) -> list[Path]:
    """The file of a module in these folders; empty for a bench's own wrapper."""
    return [path for folder in FOLDERS if (path := folder / f"{name}.sv").exists()]


def options() -> list[str]:
    """Verilator's options that find modules by name, and the waivers."""
    search = [arg for folder in FOLDERS if folder.is_dir() for arg in ("-y", str(folder))]
    return [*search, "+libext+.sv", str(RTL / "verilator.vlt")]


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough (`| head`) is no error
    if len(sys.argv) != 2:
        sys.exit(f"{sys.argv[0]}: takes the name of one top, such as penstock_xgmii")
    generate()
    print("\n".join([*options(), *map(str, packages()), *map(str, module(sys.argv[1]))]))
