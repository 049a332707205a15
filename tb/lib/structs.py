# SPDX-License-Identifier: Apache-2.0
"""The packed structs of the gateware's packages, for benches that drive or read them as words.

Verilator reads the packages and gives the position of each field; no position is repeated in Python. A field of a field
is named with a dot (`vlan.enable`). The table is kept in `build/gen/structs.json` until a package changes.
"""

import hashlib
import json
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from lib import rtl
from lib.toolchain import verilator_root

TABLE = rtl.GENERATED / "structs.json"


@cache
def fields(struct: str) -> dict[str, tuple[int, int]]:
    """(lowest bit, width) of each field that is no struct itself, most significant first.

    `struct` is its name, with the package's in front (`cc_pkg::state_t`) where several packages have one of that name.
    """
    structs = table()
    found = [name for name in structs if f"::{name}".endswith(f"::{struct}")]
    if len(found) != 1:
        raise KeyError(f"struct {struct}: {' and '.join(found) or 'no package has it'}; there are {', '.join(structs)}")
    return {name: (low, bits) for name, low, bits in structs[found[0]]}


def width(struct: str) -> int:
    """Of the whole struct, bits."""
    return sum(bits for _, bits in fields(struct).values())


def pack(struct: str, **values: int) -> int:
    """The word of a struct; fields that are not given are 0, `__` replaces the dot in a name."""
    places = fields(struct)
    word = 0
    for name, value in values.items():
        low, bits = places[name.replace("__", ".")]
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{struct}.{name} = {value} does not fit {bits} bits")
        word |= int(value) << low
    return word


def unpack(struct: str, word: int) -> dict[str, int]:
    """The fields of a word."""
    return {name: word >> low & (1 << bits) - 1 for name, (low, bits) in fields(struct).items()}


@cache
def table() -> dict[str, list[tuple[str, int, int]]]:
    """(name, lowest bit, width) of the fields of each struct, by its name prefixed with the package's."""
    packages = rtl.packages()
    version = hashlib.sha256(b"".join(path.read_bytes() for path in (*packages, Path(__file__)))).hexdigest()
    if TABLE.exists() and (kept := json.loads(TABLE.read_text()))["version"] == version:
        return kept["structs"]
    made = {"version": version, "structs": read(packages)}
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=TABLE.parent, delete=False) as file:
        json.dump(made, file)
    os.replace(file.name, TABLE)
    return made["structs"]


def read(packages: list[Path]) -> dict[str, list[tuple[str, int, int]]]:
    """The structs as Verilator has them after elaboration."""
    root = verilator_root()
    with tempfile.TemporaryDirectory() as folder:
        top, tree = Path(folder, "structs.sv"), Path(folder, "tree.json")
        top.write_text("module structs; endmodule\n")
        command = [
            root / "bin" / "verilator_bin",
            "--json-only",
            "--top-module",
            "structs",
            "-Wno-fatal",
            "-Mdir",
            folder,
        ]
        command += ["--json-only-output", tree, "--json-only-meta-output", Path(folder, "meta.json"), *packages, top]
        subprocess.run(command, env={**os.environ, "VERILATOR_ROOT": str(root)}, check=True, capture_output=True)
        nodes = {node["addr"]: node for node in walk(json.loads(tree.read_text()))}
    structs = [node for node in nodes.values() if node["type"] == "STRUCTDTYPE" and node["packed"] and node["name"]]
    return {node["name"]: list(members(node, nodes)) for node in structs}


def walk(node):
    """Every node of Verilator's tree that can be referred to."""
    if isinstance(node, list):
        for part in node:
            yield from walk(part)
    elif isinstance(node, dict):
        if "addr" in node:
            yield node
        for part in node.values():
            yield from walk(part)


def bits_of(node: dict, nodes: dict[str, dict]) -> int:
    """Width of a data type."""
    if node["type"] == "STRUCTDTYPE":
        return sum(bits_of(nodes[member["dtypep"]], nodes) for member in node["membersp"])
    if node["type"] == "BASICDTYPE":
        high, _, low = node.get("range", "0:0").partition(":")
        return int(high) - int(low) + 1
    inner = bits_of(nodes[node["refDTypep"]], nodes)
    if node["type"] == "PACKARRAYDTYPE":
        high, low = node["declRange"].strip("[]").split(":")
        return inner * (abs(int(high) - int(low)) + 1)
    return inner  # of an enum, a typedef


def members(node: dict, nodes: dict[str, dict], prefix: str = "", base: int = 0):
    """(name, lowest bit, width) of the fields of a struct, those of inner structs in their place."""
    at = base + bits_of(node, nodes)
    for member in node["membersp"]:
        kind = nodes[member["dtypep"]]
        while kind["type"] == "REFDTYPE":
            kind = nodes[kind["refDTypep"]]
        at -= bits_of(kind, nodes)
        if kind["type"] == "STRUCTDTYPE":
            yield from members(kind, nodes, f"{prefix}{member['name']}.", at)
        else:
            yield f"{prefix}{member['name']}", at, bits_of(kind, nodes)
