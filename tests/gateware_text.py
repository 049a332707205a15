# SPDX-License-Identifier: Apache-2.0
"""Reads ports and packed structs from the text of the gateware, relying on its style; for tests that compare copies."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tb" / "lib"))

from toolchain import verilator_root  # noqa: E402

import rtl  # noqa: E402

DATA_W = re.compile(r"localparam int unsigned DATA_W\s*=\s*(\d+)")
PORT = re.compile(r"^\s*(input|output)\s+logic\s*(?:\[([^:\]]+):0\])?\s*(\w+)", re.M)
PARAMETER = re.compile(r"^\s*parameter\s+.*?(\w+)\s*=", re.M)


@cache
def header(name: str) -> str:
    """A module's text up to the end of its ports, with what it includes and with macros replaced."""
    root = verilator_root()
    command = [root / "bin" / "verilator_bin", "-E", "-P", *rtl.include_options(), REPO / "rtl" / "top" / f"{name}.sv"]
    text = subprocess.check_output(command, env={**os.environ, "VERILATOR_ROOT": str(root)}, text=True)
    return text[text.index(f"module {name}") : text.index("\n);")]


def ports(name: str) -> list[tuple[str, str, str]]:
    """(direction, name, highest bit by the parameters, empty for a single bit) of each port of a top, in order."""
    data_w = int(DATA_W.search(header(name))[1])
    return [(way, port, highest(high.replace(" ", ""), data_w)) for way, high, port in PORT.findall(header(name))]


def highest(written: str, data_w: int) -> str:
    """The highest bit of a port without DATA_W, as a number if it needs no parameter."""
    written = written.replace("DATA_W/8", str(data_w // 8)).replace("DATA_W", str(data_w))
    number = re.fullmatch(r"(\d+)-1", written)
    return str(int(number[1]) - 1) if number else written


def parameters(name: str) -> list[str]:
    return PARAMETER.findall(header(name))


def width(kind: str, package: str) -> int:
    """Bits of a type of this package: `logic [a:b]`, a typedef of it, an enum."""
    if found := re.match(r"logic(?:\s*\[(\d+):(\d+)\])?", kind):
        return int(found[1] or 0) - int(found[2] or 0) + 1
    if found := re.search(
        rf"typedef\s+(?:enum\s+)?(logic\s*(?:\[\d+:\d+\])?)[^;}}]*?(?:\{{[^}}]*\}}\s*)?{kind}\s*;", package
    ):
        return width(found[1], package)
    raise ValueError(f"type {kind!r} is not understood by tests/gateware_text.py")


def fields(struct: str) -> list[tuple[str, int, int]]:
    """(name, highest bit, lowest bit) of the fields of a packed struct of penstock_pkg, highest first."""
    package = (REPO / "rtl" / "lib" / "penstock_pkg.sv").read_text()
    package = re.sub(r"//.*", "", package)
    body = next(
        b for b, name in re.findall(r"typedef struct packed \{(.*?)\}\s*(\w+);", package, re.S) if name == struct
    )
    members = [line.split() for line in body.split(";") if line.strip()]
    sizes = [(words[-1], width(" ".join(words[:-1]), package)) for words in members]
    found, high = [], sum(bits for _, bits in sizes) - 1
    for name, bits in sizes:
        found.append((name, high, high - bits + 1))
        high -= bits
    return found
