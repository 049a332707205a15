# SPDX-License-Identifier: Apache-2.0
"""Reads ports and packed structs from the text of the gateware, relying on its style; for tests that compare copies."""

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
PORT = re.compile(r"^\s*(input|output)\s+logic\s*(?:\[([^:\]]+):0\])?\s*(\w+)", re.M)
PARAMETER = re.compile(r"^\s*parameter\s+.*?(\w+)\s*=", re.M)


def header(name: str) -> str:
    """A module's text up to the end of its ports."""
    text = (REPO / "rtl" / "top" / f"{name}.sv").read_text()
    return text[text.index(f"module {name}") : text.index("\n);")]


def ports(name: str) -> list[tuple[str, str, str]]:
    """(direction, name, highest bit as it is written, empty for a single bit) of each port of a top, in order."""
    return [(way, port, high.replace(" ", "")) for way, high, port in PORT.findall(header(name))]


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
