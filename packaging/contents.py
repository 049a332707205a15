# SPDX-License-Identifier: Apache-2.0
"""What every package installs below its prefix: the command, its manual and completions; with the laboratory also
scenarios and the figures.

The wheel, the Debian package and the static archive differ in their wrapping alone. `share/penstock` has the layout of
the repository, where the command and `figures/` look for scenarios and recorded events.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = ("scenarios", "figures", "data/lst1_run2008")
COMPLETIONS = {
    "bash": "share/bash-completion/completions/penstock",
    "zsh": "share/zsh/site-functions/_penstock",
    "fish": "share/fish/vendor_completions.d/penstock.fish",
}
LICENCES = {
    "LICENSE": "LICENSE",
    "rtl/LICENSE": "LICENSE.gateware",
    "data/lst1_run2008/LICENSE": "LICENSE.lst1_run2008",
}
# AlmaLinux 9 has these, Debian 12 and Ubuntu 22.04 newer ones: none finds a symbol of a version newer than its own.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (11, 0)}


def version() -> str:
    """Of the workspace."""
    return tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def has_laboratory(binary: Path) -> bool:
    """Whether a built command simulates as well; otherwise it only operates readouts."""
    return subprocess.run([binary, "run", "--help"], capture_output=True, check=False).returncode == 0


def install(binary: Path, prefix: Path, scripts: Path | None = None) -> None:
    """Lays out the files of a package around a built command.

    binary: the `penstock` to package; it writes its own manual and completions
    prefix: the folder for `bin` and `share`; made if missing
    scripts: the folder for the command instead of `prefix/bin`

    Raises subprocess.CalledProcessError if the command does not run.
    """
    command = (scripts or prefix / "bin") / "penstock"
    command.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "-o", command, binary], check=True)
    command.chmod(0o755)
    subprocess.run([binary, "man", "--out", prefix / "share/man/man1"], check=True)
    for shell, place in COMPLETIONS.items():
        done = subprocess.run([binary, "completions", shell], capture_output=True, check=True)
        (prefix / place).parent.mkdir(parents=True, exist_ok=True)
        (prefix / place).write_bytes(done.stdout)
    for name in SHARED if has_laboratory(binary) else ():
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / name, prefix / "share/penstock" / name, ignore=leave, dirs_exist_ok=True)


def needed(elf: Path) -> dict[str, tuple[int, ...]]:
    """The newest version of each library's symbols that an executable or a shared object asks for."""
    read = subprocess.run(["readelf", "--version-info", "--wide", elf], capture_output=True, text=True, check=True)
    found: dict[str, tuple[int, ...]] = {}
    for name, number in re.findall(r"Name: ([A-Z]+)_([\d.]+)\s", read.stdout):
        found[name] = max(found.get(name, ()), tuple(map(int, number.split("."))))
    return found


def too_new(elf: Path) -> list[str]:
    """The versions of symbols that an older supported system lacks, as in `GLIBCXX_3.4.30`."""
    return [
        f"{name}_{'.'.join(map(str, number))}"
        for name, number in needed(elf).items()
        if number > NEWEST.get(name, number)
    ]


def packed(description: str, option: str, built: Path, pack: Callable[[Path, Path], Path]) -> int:
    """The command line of a package: calls `pack` with what is built and the output folder; returns the exit status."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument(option, dest="built", type=Path, default=built, help=f"what cargo has built (default: {built})")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the package (default: dist)")
    arguments = parser.parse_args()
    try:
        print(pack(arguments.built, arguments.out))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1
    return 0
