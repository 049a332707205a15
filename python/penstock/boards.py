# SPDX-License-Identifier: Apache-2.0
"""Boards over IPbus: registers as attributes, blocks of registers as NumPy arrays.

    board = Board("10.0.0.2")
    board.cc[0].rate_ai = "40Mbps"
    board.qp[3].state.text             # 'rts'
    board.qp[0].rate_current.quantity  # bit/s
    board.block("replay_block[0].word0", 4096)

Names and units are those of `penstock ctl` (docs/ctl.md). Writes are read back. They are neither
entered in its journal nor announced to other operators.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.lab import compiled

if TYPE_CHECKING:
    from penstock._native import BoardLink


@dataclass(frozen=True)
class Value:
    """What a register holds: `number`, `text` with its unit, `quantity` in bit/s, s or as a fraction (else None)."""

    name: str
    number: int
    text: str
    quantity: float | None

    def __int__(self) -> int:
        return self.number

    def __index__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self.number == (other.number if isinstance(other, Value) else other)

    def __hash__(self) -> int:
        return hash(self.number)

    def __str__(self) -> str:
        return self.text


class Node:
    """A group of registers, a copy of one, or a register with fields; made by `Board`."""

    _board: "Board"
    _name: str

    def __init__(self, board: "Board", name: str) -> None:
        object.__setattr__(self, "_board", board)
        object.__setattr__(self, "_name", name)

    def __getitem__(self, index: int) -> "Node":
        return Node(self._board, f"{self._name}[{index}]")

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        return self._board._at(f"{self._name}.{key}")

    def __setattr__(self, key: str, value: object) -> None:
        self._board.write(f"{self._name}.{key}", value)

    def read(self) -> dict[str, Value]:
        """All registers of it, by name."""
        return self._board.read(self._name)


class Board:
    """A board. OSError: it does not answer, or has another register map; ValueError: no such register or value.

    `patience`: seconds that a silent board is asked. Several programs may use a board at once.
    """

    _link: "BoardLink"
    address: str
    version: str
    data_width: int
    queue_pairs: int
    clock_khz: int

    def __init__(self, address: str, patience: float = 2.0) -> None:
        link = compiled().BoardLink(address, patience)
        version, width, queue_pairs, clock_khz = link.identity()
        for name, value in {
            "_link": link,
            "address": address,
            "version": version,
            "data_width": width,
            "queue_pairs": queue_pairs,
            "clock_khz": clock_khz,
        }.items():
            object.__setattr__(self, name, value)

    def read(self, name: str) -> dict[str, Value]:
        """Everything that a name stands for: `read("qp[0-3].state")`, `read("source")`."""
        return {found[0]: Value(*found) for found in self._link.read(name)}

    def write(self, name: str, value: object, force: bool = False) -> None:
        """Writes a number or a text with its unit; `force` for what breaks a run (addresses, keys, PSNs, states)."""
        text = str(int(value)) if isinstance(value, bool | Value) else str(value)
        self._link.write(name, text, force)

    def block(self, name: str, count: int) -> np.ndarray:
        """`count` words from a register on, uint32 of shape (count,)."""
        words: bytes = self._link.read_block(self._link.address(name), count)
        return np.frombuffer(words, dtype="<u4")

    def _at(self, name: str) -> "Node | Value":
        """A value, else a node to go on from: a group, a copy, a register with several fields."""
        try:
            is_value = self._link.is_value(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None
        if not is_value:
            return Node(self, name)
        [value] = self.read(name).values()
        return value

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        return self._at(key)

    def __setattr__(self, key: str, value: object) -> None:
        self.write(key, value)

    def __repr__(self) -> str:
        return f"Board({self.address!r}): map {self.version}, {self.queue_pairs} queue pairs, {self.clock_khz} kHz"
