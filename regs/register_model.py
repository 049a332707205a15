# SPDX-License-Identifier: Apache-2.0
"""The register map as plain data, read once from the elaborated SystemRDL for all writers."""

from dataclasses import dataclass

from systemrdl.node import AddrmapNode, FieldNode, RegfileNode, RegNode


@dataclass(frozen=True)
class Field:
    name: str
    desc: str
    low: int  # position of the least significant bit
    width: int

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
    reset: int | None  # None: it follows from the build


@dataclass(frozen=True)
class Group:
    """Registers at one base; `count` copies of them `stride` bytes apart."""

    name: str
    desc: str
    base: int
    count: int
    stride: int
    registers: list[Register]


def tidy(text: str | None) -> str:
    return " ".join((text or "").split())


def described(node) -> str:
    """The node's own description; a register without one is refused, as nobody could use it."""
    text = node.get_property("desc")
    if not text:
        raise SystemExit(f'{node.get_path()}: has no description; add `desc = "..."` in penstock.rdl')
    return tidy(text)


def read_field(node: FieldNode, register_desc: str) -> Field:
    return Field(node.inst_name, tidy(node.get_property("desc")) or register_desc, node.low, node.width)


def read_register(node: RegNode, offset: int) -> Register:
    desc = described(node)
    resets = [(f.get_property("reset") or 0, f.low) for f in node.fields()]
    constant = all(isinstance(value, int) for value, _ in resets)
    reset = sum(value << low for value, low in resets) if constant else None
    fields = [read_field(f, desc) for f in node.fields()]
    return Register(node.inst_name, desc, offset, fields, node.has_sw_writable, reset)


def read_registers(node) -> list[Register]:
    return [read_register(r, r.raw_address_offset) for r in node.children() if isinstance(r, RegNode)]


def read_map(top: AddrmapNode) -> list[Group]:
    """Groups in address order; the first holds the registers at the top level, and is called `global`."""
    groups = [Group("global", described(top), 0, 1, 0, read_registers(top))]
    for child in top.children():
        if not isinstance(child, RegfileNode):
            continue
        arrays = [c for c in child.children() if isinstance(c, RegfileNode)]
        for inner in arrays or [child]:
            count = inner.array_dimensions[0] if inner.is_array else 1
            base = child.raw_address_offset + (inner.raw_address_offset if arrays else 0)
            stride = inner.array_stride if inner.is_array else 0
            groups.append(Group(inner.inst_name, described(inner), base, count, stride, read_registers(inner)))
    return groups
