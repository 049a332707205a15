# SPDX-License-Identifier: Apache-2.0
"""Compiles the common part of all models once: Verilator's runtime as one object, its headers precompiled.

For a small model g++ spends most time on the headers, even on reading them precompiled: so cocotb's main program is
part of the model's file.
"""

import subprocess
from pathlib import Path

import cocotb
import cocotb_tools.config

from lib.models import tools
from lib.toolchain import REPO, verilator_root

FOLDER = REPO / "build" / "tb" / "runtime"
OBJECT, HEADER = FOLDER / "runtime.o", FOLDER / "model.h"

OPTIMISE = "-Og"  # models; g++ takes the compiled headers only with the options that they were compiled with
# Of verilated.mk, for a model without traces.
OPTIONS = ["-std=gnu++20", "-DVERILATOR=1"]
OPTIONS += [f"-DVM_{name}=0" for name in ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")]
SOURCES = ("verilated", "verilated_dpi", "verilated_vpi", "verilated_threads", "verilated_timing")
HEADERS = ("verilated", "verilated_dpi", "verilated_vpi")

# What a model without traces is built with to have both. Neither the runtime's files are compiled again nor the main
# program by itself.
MAKE_VARIABLES = "VM_GLOBAL_FAST= VM_USER_CLASSES="
MAIN = Path(cocotb_tools.config.share_dir) / "lib" / "verilator" / "verilator.cpp"
VERILATOR_OPTIONS = ["-CFLAGS", f"-include {HEADER} -include {MAIN}", "-LDFLAGS", str(OBJECT)]


def version() -> str:
    """What a model depends on besides its own files: the tools, and what of it is compiled here."""
    return "\n".join([tools(), OPTIMISE, *OPTIONS, *SOURCES, *HEADERS, cocotb.__version__, MAIN.read_text()])


def make() -> None:
    """Brings both up to date; quick when they are."""
    stamp, made = FOLDER / "made", version()
    if stamp.exists() and stamp.read_text() == made:
        return
    options = [*OPTIONS, *(f"-I{verilator_root() / 'include' / name}" for name in ("", "vltstd"))]
    FOLDER.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    (FOLDER / "runtime.cpp").write_text("".join(f'#include "{name}.cpp"\n' for name in SOURCES))
    HEADER.write_text("".join(f'#include "{name}.h"\n' for name in HEADERS))
    subprocess.run(["c++", *options, "-O2", "-c", FOLDER / "runtime.cpp", "-o", OBJECT], check=True)
    subprocess.run(["c++", *options, OPTIMISE, "-x", "c++-header", HEADER, "-o", f"{HEADER}.gch"], check=True)
    stamp.write_text(made)
