# SPDX-License-Identifier: Apache-2.0
"""The list of the gateware's files and the arguments for tools: the only place for both.

One module per file, named after it, so Verilator finds modules by name in these folders (`-y`);
packages come first on its command line. As a program:

    python tb/lib/rtl.py penstock_xgmii   the arguments for one top, one per line
"""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
RTL = REPO / "rtl"
WAIVERS = RTL / "verilator.vlt"
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
INCLUDES = [RTL / name for name in ("lib", "top", "boards")]  # folders of what these files include
FOLDERS = [
    *(RTL / name for name in ROOMS),
    *(RTL / "boards" / name for name in ("", "blackbox", *BOARDS)),
    GENERATED,
]


def generate() -> None:
    """Brings what is made from `regs/penstock.rdl` up to date; quick when it is."""
    subprocess.run([sys.executable, REPO / "regs" / "generate.py"], check=True, stdout=sys.stderr)


def packages() -> list[Path]:
    """The packages, which must be read before any module; those that others import first."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*_pkg.sv"))]
    return sorted(found, key=lambda path: path.name not in ("penstock_pkg.sv", "penstock_regs_pkg.sv"))


def module(name: str) -> list[Path]:
    """The file of a module in these folders; empty for a bench's own wrapper."""
    return [path for folder in FOLDERS if (path := folder / f"{name}.sv").exists()]


def options() -> list[str]:
    """Verilator's options that find modules by name, and the waivers."""
    search = [arg for folder in FOLDERS if folder.is_dir() for arg in ("-y", str(folder))]
    return [*search, "+libext+.sv", str(WAIVERS)]


def modules() -> dict[str, Path]:
    """The files of modules and packages, by their names."""
    return {path.stem: path for folder in FOLDERS for path in folder.glob("*.sv")}


def sources(top: str, wrappers: Iterable[Path] = ()) -> list[Path]:
    """All that a model of a top is made of: packages in their order, modules, and what these include (`.svh`).

    `wrappers` are modules of a bench, which take the place of the gateware's where they have the same names.
    """
    files = modules() | {path.stem: path for path in wrappers}
    named = closure([top, *(path.stem for path in wrappers)], files, instances)
    first = [path for path in packages() if path.stem in named]
    rest = sorted(files[name] for name in named - {path.stem for path in first})
    return [*first, *rest, *included([*first, *rest])]


def included(files: Iterable[Path]) -> list[Path]:
    """The files that these include, each once."""
    names = {name for path in files for name in re.findall(r'(?m)^\s*`include "([^"]+)"', text_of(path))}
    return [path for name in sorted(names) for folder in INCLUDES if (path := folder / name).exists()]


def include_options() -> list[str]:
    """The options of Verilator and slang that find included files."""
    return [f"-I{folder}" for folder in INCLUDES]


def compiled(files: Iterable[Path]) -> list[Path]:
    """Of these files those that a tool reads by name, the others being included."""
    return [path for path in files if path.suffix != ".svh"]


def waivers(files: Iterable[Path]) -> list[str]:
    """The waivers that apply to one of these files."""
    lines = [line for line in text_of(WAIVERS).splitlines() if line.startswith("lint_off")]
    return [line for line in lines if any(fnmatch(str(path), line.split('"')[1]) for path in files)]


def instances(text: str) -> set[str]:
    """Names in a SystemVerilog text that may be modules or packages: `name #(`, `name u_name (`, `name::`."""
    return set(re.findall(r"\b(\w+)(?=\s*(?:#\s*\(|::)|\s+\w+\s*\()", re.sub("//.*", "", text)))


def references(path: Path) -> set[str]:
    """What a file names: modules and packages, and the files that it includes."""
    return _named(path, instances) | {file.stem for file in included([path])}


def closure(names: Iterable[str], files: dict[str, Path], named: Callable[[str], set[str]]) -> set[str]:
    """The files that these names lead to, through the names in their texts."""
    found: set[str] = set()
    waiting = [name for name in names if name in files]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _named(files[name], named) & files.keys()
    return found


@cache
def _named(path: Path, named: Callable[[str], set[str]]) -> set[str]:
    return named("\n".join(map(text_of, [path, *included([path])])))


@cache
def text_of(path: Path) -> str:
    """The text of a file, read once."""
    return path.read_text()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough (`| head`) is no error
    if len(sys.argv) != 2:
        sys.exit(f"{sys.argv[0]}: takes the name of one top, such as penstock_xgmii")
    generate()
    print("\n".join([*options(), *map(str, packages()), *map(str, module(sys.argv[1]))]))
