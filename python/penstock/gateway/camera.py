# SPDX-License-Identifier: Apache-2.0
"""All boards of a gateway: polled in turn by block reads, written one register at a time.

Promise: `changed` gets a value if it differs from the last one reported, and never one older than a completed
write. A board is `found` before its first values, and `lost` once with the reason.
"""

import asyncio
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from penstock.boards import BoardError, RegisterError, error_of
from penstock.lab import compiled

# Served by default.
REGISTERS = (
    "local_ip",
    "local_mac",
    "link_status",
    "flow_control",
    "port",
    "cc",
    "qp.state",
    "qp.rate_current",
    "qp.rate_target",
    "qp.alpha",
    "qp.bytes_acked",
    "source",
    "counters",
)
SOUGHT_EVERY_S = 1.0

Plain = int | float | str


class Kind(Enum):
    """How a register's number is shown."""

    QUANTITY = "a number of its unit"
    NUMBER = "a whole number"
    STATE = "a whole number with a name"
    TEXT = "an address"


@dataclass(frozen=True)
class Register:
    """A register of a board, or a field of one; its `high` is in `unit`."""

    at: int
    name: str
    description: str
    unit: str
    writable: bool
    critical: bool
    high: float
    states: dict[int, str]
    kind: Kind

    @property
    def path(self) -> list[str]:
        """cc[0].rate_ai: ["cc[0]", "rate_ai"]"""
        return self.name.split(".")

    def value(self, number: int, text: str, quantity: float | None) -> Plain:
        match self.kind:
            case Kind.QUANTITY:
                return number if quantity is None else quantity
            case Kind.TEXT:
                return text
            case _:
                return number

    def checked(self, value: Plain) -> str | float:
        """What `Board.write` is given; RegisterError: it is no value of this register."""
        if self.kind is not Kind.QUANTITY or isinstance(value, str):
            return str(value)
        if not math.isfinite(value) or not 0 <= value <= self.high:
            what = f"{self.name}={value:g}: the register takes 0 to {self.high:g} {self.unit}"
            raise RegisterError("range", self.name, what)
        return float(value)


def registers_of(
    described: list[tuple[str, str, str, bool, bool, int, float | None, list[tuple[int, str]]]],
) -> list[Register]:
    found = []
    for at, (name, description, unit, writable, critical, most, highest, states) in enumerate(described):
        if unit in ("IPv4", "MAC"):
            kind = Kind.TEXT
        elif highest is not None:
            kind = Kind.QUANTITY
        else:
            kind = Kind.STATE if states else Kind.NUMBER
        high = float(most) if highest is None else highest
        found.append(Register(at, name, description, unit, writable, critical, high, dict(states), kind))
    return found


class Gateway(ABC):
    """What serves boards by one protocol."""

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def stop(self) -> None: ...

    @abstractmethod
    def place(self) -> str:
        """Where clients find it."""

    @abstractmethod
    async def found(self, board: int, registers: list[Register]) -> None:
        """A board answers, for the first time or again; its registers may be others than before."""

    @abstractmethod
    async def lost(self, board: int, why: str) -> None: ...

    @abstractmethod
    async def changed(self, board: int, values: list[tuple[Register, Plain]]) -> None: ...


class Camera:
    """The boards, by their number in the list. ValueError: an address or a register's name is wrong."""

    def __init__(
        self,
        boards: list[tuple[str, str]],
        registers: list[str],
        interval: float,
        patience: float,
        journal: Path | None = None,
        read_only: bool = False,
    ) -> None:
        self.names = [name for name, _ in boards]
        self.addresses = [address for _, address in boards]
        self.interval, self.read_only = interval, read_only
        self._journal = journal
        try:
            self._group = compiled().BoardGroup(self.addresses, [registers] * len(boards), patience)
        except OSError as error:
            raise ValueError(str(error)) from None
        self._registers: dict[int, list[Register]] = {}
        self._warned: dict[int, str] = {}
        self._locks = [asyncio.Lock() for _ in boards]

    async def run(self, gateway: Gateway) -> None:
        """Looks and seeks for good."""
        await asyncio.gather(self._looks(gateway), self._seeks(gateway))

    async def _looks(self, gateway: Gateway) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            for board, why, changes in await asyncio.to_thread(self._group.look):
                if why is not None:
                    await self._lost(gateway, board, why)
                elif changes:
                    await self._changed(gateway, board, changes)
            due = max(due + self.interval, clock())
            await asyncio.sleep(due - clock())

    async def _seeks(self, gateway: Gateway) -> None:
        while True:
            for board, why in await asyncio.to_thread(self._group.seek):
                if why is not None:
                    await self._lost(gateway, board, why)
            await asyncio.sleep(SOUGHT_EVERY_S)

    async def _lost(self, gateway: Gateway, board: int, why: str) -> None:
        self._registers.pop(board, None)
        if board not in self._warned:
            self._warned[board] = why
            await gateway.lost(board, f"{self.addresses[board]}: {why}")

    async def _changed(self, gateway: Gateway, board: int, changes: list[tuple[int, int, str, float | None]]) -> None:
        if board not in self._registers:
            self._warned.pop(board, None)
            registers = registers_of(self._group.describe(board))
            await gateway.found(board, registers)
            self._registers[board] = registers
        registers = self._registers[board]
        values = [(registers[at], registers[at].value(number, text, of)) for at, number, text, of in changes]
        await gateway.changed(board, values)

    async def write(self, gateway: Gateway, board: int, register: Register, value: Plain, operator: str) -> None:
        """Writes as `penstock ctl set` does, and reports to the gateway; RegisterError, BoardError: not written."""
        if not register.writable:
            raise RegisterError("read_only", register.name, f"{register.name} is read-only")
        if self.read_only:
            raise RegisterError("critical", register.name, "the gateway was started with --read-only")
        given = register.checked(value)
        async with self._locks[board]:
            reported, changes = await asyncio.to_thread(
                self._group.write, board, register.at, given, self._journal, operator
            )
            if changes and board in self._registers:
                await self._changed(gateway, board, changes)
        if error := error_of(reported):
            raise error


__all__ = ["REGISTERS", "BoardError", "Camera", "Gateway", "Kind", "Plain", "Register", "RegisterError"]
