# SPDX-License-Identifier: Apache-2.0
"""A short fingerprint of the logic of a design: equal for equal circuits, independent of their source text.

    python rtl/syn/fingerprint.py penstock_xgmii N_QP=16 STORE=1

Yosys reads the design, flattens it and splits it into single bits; a cell's colour is then made from its type and the
colours of what it reads, over and over (Weisfeiler and Lehman's refinement), and the fingerprint from all colours.
Comments, layout, names of signals, hierarchy and structs instead of single ports do not change it; the names of the
top's ports are part of it. It takes one to three minutes for a front end.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import yosys  # noqa: E402

import rtl  # noqa: E402

ROUNDS = 48  # of refinement: a cell's colour depends on the cells up to this many before it
# Cells that work on bits alone are split, since a struct is one word where its fields were many.
BITWISE = "mux pmux bwmux not and or xor xnor logic_not logic_and logic_or reduce_or reduce_and reduce_xor reduce_bool"
BITWISE += " eq ne dff dffe sdff sdffe sdffce adff aldff"
SYMMETRIC = {"$_AND_", "$_OR_", "$_XOR_"}  # gates whose inputs may be swapped
COMMANDS = [
    "proc",
    "flatten",
    "opt_clean -purge",
    "opt -full -purge",
    "memory_collect",
    "simplemap " + " ".join(f"t:${kind}" for kind in BITWISE.split()),
    "opt -full -purge",
    "opt_clean -purge",
]


def of_netlist(module: dict) -> str:
    """The fingerprint of a flat module in the form of Yosys' `write_json`; 16 hexadecimal digits."""
    bits: dict[int | str, int] = {value: number(value) for value in ("0", "1", "x", "z")}
    for name, port in module["ports"].items():
        bits |= {bit: number(f"{name}[{i}]") for i, bit in enumerate(port["bits"]) if port["direction"] == "input"}
    cells = []
    for cell in module["cells"].values():
        ways = cell["port_directions"]
        pins = sorted(cell["connections"].items())
        parameters = sorted((key, value) for key, value in cell["parameters"].items() if key != "MEMID")
        kind = number(json.dumps([cell["type"], parameters, [(pin, len(wires)) for pin, wires in pins]]))
        reads = [bit for pin, wires in pins for bit in wires if ways[pin] == "input"]
        drives = [bit for pin, wires in pins for bit in wires if ways[pin] == "output"]
        cells.append((kind, cell["type"] in SYMMETRIC, reads, drives))
    for *_, drives in cells:
        bits.update((bit, 0) for bit in drives)
    colours: list[int] = []
    for _ in range(ROUNDS):
        # The hash of a tuple of integers is the same in every process.
        colours = []
        for kind, symmetric, reads, _ in cells:
            seen = [bits.get(bit, 1) for bit in reads]
            colours.append(hash((kind, *(sorted(seen) if symmetric else seen))))
        for (*_, drives), colour in zip(cells, colours, strict=True):
            bits.update((bit, hash((colour, place))) for place, bit in enumerate(drives))
    outputs = [
        (name, [bits.get(bit, 1) for bit in port["bits"]])
        for name, port in sorted(module["ports"].items())
        if port["direction"] == "output"
    ]
    return hashlib.sha256(json.dumps([sorted(colours), outputs]).encode()).hexdigest()[:16]


def number(text: str) -> int:
    """A number derived from a text, the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def fingerprint(top: str, params: dict[str, int], source: Path | None = None) -> str:
    """Of one module with these parameters; `source` is its file, if it is none of the gateware's own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "netlist.json")
        read = yosys.read(top, params, source or rtl.module(top)[0])
        yosys.run([read, f"hierarchy -top {top}", *COMMANDS, f"write_json {file}"])
        return of_netlist(json.loads(file.read_text())["modules"][top])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"{sys.argv[0]}: takes the name of a module and NAME=number for its parameters")
    print(fingerprint(sys.argv[1], {name: int(value) for name, value in (word.split("=") for word in sys.argv[2:])}))
