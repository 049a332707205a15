# SPDX-License-Identifier: Apache-2.0
"""The parameters of a law, from the registers that hold them, for the writers of Rust, SystemVerilog and pages."""

import re
from dataclasses import dataclass

from register_model import Field, Group, Register

LAWS = {"cc": "dcqcn", "qcn": "qcn"}  # group of registers -> law
CLOCK = 156_250_000  # Hz; of the defaults in register format
SCALES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


@dataclass(frozen=True)
class Parameter:
    """A field of a register, or a register that has one field."""

    name: str
    group: str
    register: Register
    field: Field

    @property
    def is_whole(self) -> bool:
        """It has the register for itself."""
        return len(self.register.fields) == 1

    @property
    def kind(self) -> str:
        """rate, time, bytes, flag, choice, number (of up to 8 bits) or word."""
        units = {"rate": "rate", "cycles": "time", "bytes": "bytes"}
        if self.field.unit in units:
            return units[self.field.unit]
        if self.field.values:
            return "choice"
        if self.field.width == 1:
            return "flag"
        return "number" if self.field.width <= 8 else "word"

    @property
    def place(self) -> str:
        """As `penstock ctl` names it."""
        path = [self.group, self.register.name, *([] if self.is_whole else [self.field.name])]
        return ".".join(path)

    @property
    def low(self) -> int:
        """The least value of a number."""
        return 1 if self.field.parameter.quantity == "gain" else 0

    @property
    def high(self) -> int:
        return (1 << self.field.width) - 1

    @property
    def preset(self) -> int | None:
        """bit/s, ps or bytes of the value after reset; none: that of the register as it stands."""
        found = re.fullmatch(r"(\d+)([kKMG]?)(bps|B|[pnum]?s)", self.field.parameter.preset)
        if not found:
            return None
        number, scale, unit = int(found[1]), found[2], found[3]
        return number * (SCALES.get(scale, 1) if unit in ("bps", "B") else PICOSECONDS[scale + unit])

    @property
    def reset(self) -> int:
        """The number in its register after reset, at CLOCK and a line of 10 Gb/s."""
        if self.kind == "rate" and self.preset is not None:
            return ((self.preset << 24) + CLOCK * 4) // (CLOCK * 8)
        if self.kind == "time" and self.preset is not None:
            return (self.preset * CLOCK + 10**12 // 2) // 10**12
        if isinstance(self.field.reset, str):
            raise SystemExit(f"{self.place}: has no preset; add one in congestion.rdl")
        return self.field.reset


def parameters_of(group: Group) -> list[Parameter]:
    """All of them, in the order of their bits."""
    return [
        Parameter(register.name if len(register.fields) == 1 else field.name, group.name, register, field)
        for register in group.registers
        for field in register.fields
    ]
