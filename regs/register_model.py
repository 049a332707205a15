# SPDX-License-Identifier: Apache-2.0
"""The register map as plain data, read once from the elaborated SystemRDL for all writers."""

from dataclasses import dataclass
from hashlib import sha256

from systemrdl.node import AddrmapNode, FieldNode, RegfileNode, RegNode


@dataclass(frozen=True)
class Description:
    """What only a parameter of congestion control has (regs/units.rdl); empty where it is not given."""

    preset: str
    key: str
    quantity: str
    meaning: str
    label: str


@dataclass(frozen=True)
class Field:
    name: str
    desc: str
    low: int  # position of the least significant bit
    width: int
    writable: bool  # by software
    pulse: bool  # a written 1 lasts one cycle and reads 0
    used: bool  # by the gateware
    driven: bool  # by the gateware: its live value is read
    reset: int | str  # a name: that signal, which follows from the build
    unit: str  # regs/units.rdl; empty: a plain number
    values: list[tuple[int, str]]  # names of values
    parameter: "Description"

    @property
    def mask(self) -> int:
        """Bits of the register that belong to the field, in place."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    name: str
    desc: str
    offset: int  # bytes from the start of its group
    fields: list[Field]
    writable: bool
    lockable: bool  # not while access.control.locked
    critical: bool  # a change of it breaks a run

    @property
    def reset(self) -> int | None:
        """The word after reset; None where it follows from the build."""
        if any(isinstance(f.reset, str) for f in self.fields):
            return None
        return sum(f.reset << f.low for f in self.fields)


@dataclass(frozen=True)
class Group:
    """Registers at one base; `count` copies of them `stride` bytes apart."""

    name: str
    desc: str
    base: int
    count: int
    stride: int
    registers: list[Register]
    block: str | None  # the external block that answers it
    per_queue_pair: bool  # there are no more copies than queue pairs
    of_streams_too: bool  # but those of TCP streams, which follow


@dataclass(frozen=True)
class Block:
    """A range of addresses that a module outside of the register block answers."""

    name: str
    base: int
    size: int  # bytes

    @property
    def addr_width(self) -> int:
        return (self.size - 1).bit_length()


def tidy(text: str | None) -> str:
    return " ".join((text or "").split())


def described(node) -> str:
    """The node's own description; a register without one is refused, because it could not be used."""
    text = node.get_property("desc")
    if not text:
        raise SystemExit(f'{node.get_path()}: has no description; add `desc = "..."` in penstock.rdl')
    return tidy(text)


def read_values(node: FieldNode) -> list[tuple[int, str]]:
    pairs = (word.split() for word in (node.get_property("values", default="") or "").split(",") if word.strip())
    return [(int(number), name) for number, name in pairs]


def read_description(node: FieldNode) -> Description:
    """Of the field, or of its register."""
    found = {}
    for name in Description.__annotations__:
        given = node.get_property(name, default=None) if name != "preset" else None
        of_register = name in ("preset", "key", "label")
        found[name] = given or (node.parent.get_property(name, default=None) if of_register else None) or ""
    return Description(**found)


def read_field(node: FieldNode, register_desc: str, unit: str) -> Field:
    reset = node.get_property("reset") or 0
    return Field(
        name=node.inst_name,
        desc=tidy(node.get_property("desc")) or register_desc,
        low=node.low,
        width=node.width,
        writable=node.is_sw_writable,
        pulse=bool(node.get_property("singlepulse")),
        used=node.is_hw_readable,
        driven=node.is_hw_writable,
        reset=reset if isinstance(reset, int) else reset.inst_name,
        unit=node.get_property("unit", default=None) or unit,
        values=read_values(node),
        parameter=read_description(node),
    )


def read_register(node: RegNode, offset: int) -> Register:
    desc = described(node)
    unit = node.get_property("unit", default=None) or ""
    fields = [read_field(f, desc, unit) for f in node.fields()]
    lockable = bool(node.get_property("lockable", default=False))
    critical = bool(node.get_property("critical", default=False))
    return Register(node.inst_name, desc, offset, fields, node.has_sw_writable, lockable, critical)


def read_registers(node) -> list[Register]:
    return [read_register(r, r.raw_address_offset) for r in node.children() if isinstance(r, RegNode)]


def read_map(top: AddrmapNode) -> list[Group]:
    """Groups in address order; the first holds the registers at the top level, and is called `global`."""
    groups = [Group("global", described(top), 0, 1, 0, read_registers(top), None, False, False)]
    for child in top.children():
        if not isinstance(child, RegfileNode):
            continue
        arrays = [c for c in child.children() if isinstance(c, RegfileNode)]
        for inner in arrays or [child]:
            count = inner.array_dimensions[0] if inner.is_array else 1
            base = child.raw_address_offset + (inner.raw_address_offset if arrays else 0)
            stride = inner.array_stride if inner.is_array else 0
            block = child.inst_name if child.external else None
            registers = read_registers(inner)
            of = [bool(inner.get_property(name, default=False)) for name in ("per_queue_pair", "of_streams_too")]
            groups.append(Group(inner.inst_name, described(inner), base, count, stride, registers, block, *of))
    return groups


def read_blocks(top: AddrmapNode) -> list[Block]:
    """The external blocks in address order."""
    found = [c for c in top.children() if isinstance(c, RegfileNode) and c.external]
    return [Block(c.inst_name, c.raw_address_offset, c.size) for c in found]


def map_hash(groups: list[Group]) -> int:
    """32 bits that stand for the map: for its names, addresses, fields and access, and for no word of prose."""
    facts = [
        (g.name, g.base, g.count, g.stride, r.name, r.offset, f.name, f.low, f.width, f.writable, f.pulse)
        for g in groups
        for r in g.registers
        for f in r.fields
    ]
    return int.from_bytes(sha256(repr(facts).encode()).digest()[:4], "big")


def read_signals(top: AddrmapNode) -> list[str]:
    """Names of the reset values that follow from the build, as fields use them, in address order."""
    resets = [f.reset for g in read_map(top) if not g.block for r in g.registers for f in r.fields]
    return list(dict.fromkeys(r for r in resets if isinstance(r, str)))
