# SPDX-License-Identifier: Apache-2.0
"""Boards over IPbus: registers as attributes, blocks of registers as NumPy arrays.

    board = Board("10.0.0.2")
    board.cc[0].rate_ai = "40Mbps"     # or 40e6: a float is a quantity in bit/s, s or as a fraction
    board.qp[3].state.text             # 'rts'
    board.qp[0].rate_current.quantity  # bit/s
    board.block("replay_block[0].word0", 4096)

Names and units are those of `penstock ctl` (docs/ctl.md). So are the checks, the journal of writes
and the detection of other operators.
"""

import operator
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.lab import compiled

if TYPE_CHECKING:
    from penstock._native import BoardLink


class _Fault(Exception):
    """An error of a register, by kind. Other processes get it whole (`concurrent.futures`, Dask)."""

    def __init__(self, kind: str, register: str | None, message: str) -> None:
        super().__init__(message)
        self.kind, self.register = kind, register

    def __reduce__(self) -> tuple[type, tuple[str, str | None, str]]:
        return type(self), (self.kind, self.register, str(self))


class RegisterError(_Fault, ValueError):
    """What cannot be written, by `kind`: name, read_only, range, value, refused; critical: only with `force`."""


class BoardError(_Fault, OSError):
    """What a board did not do, by `kind`: silent, differs; busy: another operator is changing it; journal: there is
    none; other: what became of a write is not known."""


class OperatorWarning(UserWarning):
    """Another operator began to change the board while it was written to."""


REGISTER_KINDS = ("name", "read_only", "range", "value", "refused", "critical")
Report = tuple[str, str | None, str]


def error_of(reported: list[Report]) -> RegisterError | BoardError | None:
    """What a write has left undone, in one error; None: nothing but, perhaps, another operator's doing."""
    faults = [fault for fault in reported if fault[0] != "meanwhile"]
    if not faults:
        return None
    kind, register, _ = faults[0]
    message = "; ".join(message for _, _, message in faults)
    return (RegisterError if kind in REGISTER_KINDS else BoardError)(kind, register, message)


@dataclass(frozen=True, eq=False)
class Value:
    """What a register holds: `number` in its bits, `text` with its unit, `quantity` in bit/s, s or as a fraction
    (None for a plain number).

    It is the quantity where there is one, for `float()`, `int()` and `==`, and false where it is 0. It equals its text,
    too: `board.qp[0].state == "rts"`.
    """

    name: str
    number: int
    text: str
    quantity: float | None

    def __int__(self) -> int:
        return int(self._plain())

    def __float__(self) -> float:
        return float(self._plain())

    def __index__(self) -> int:
        if self.quantity is not None:
            raise TypeError(f"{self.name} is {self.text}: its bits are .number")
        return self.number

    def __bool__(self) -> bool:
        return self.number != 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Value):
            return self._plain() == other._plain()
        return self.text == other if isinstance(other, str) else self._plain() == other

    # It equals numbers and texts, which have no hash in common.
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.text

    def _plain(self) -> int | float:
        return self.number if self.quantity is None else self.quantity


class Node:
    """A group of registers, a copy of one, or a register with fields; made by `Board`.

    Copies are like a list: `board.qp[0]`, `board.qp[-1]`, `len(board.qp)`, `for qp in board.qp`.
    """

    _board: "Board"
    _name: str

    def __init__(self, board: "Board", name: str) -> None:
        object.__setattr__(self, "_board", board)
        object.__setattr__(self, "_name", name)

    def __len__(self) -> int:
        """Copies of it. TypeError: there are none."""
        start = f"{self._name}["
        numbers = [name[len(start) :].split("]")[0] for name in self._board._link.names(self._name)]
        if not self._board._link.names(self._name)[0].startswith(start):
            raise TypeError(f"{self._name} has no copies; its registers: {self._name}.read()")
        return 1 + max(map(int, numbers))

    def __getitem__(self, index: int) -> "Node | Value":
        copies, number = len(self), operator.index(index)
        if not -copies <= number < copies:
            raise IndexError(f"{self._name}[{number}]: there are {self._name}[0] to {self._name}[{copies - 1}]")
        return self._board._at(f"{self._name}[{number % copies}]")

    def __iter__(self) -> Iterator["Node | Value"]:
        return (self[index] for index in range(len(self)))

    def __contains__(self, what: object) -> bool:
        if isinstance(what, Node):
            return any(what == node for node in self)
        raise TypeError(f"`in {self._name}` asks for a node; its copies: len({self._name})")

    def __bool__(self) -> bool:
        raise TypeError(f"{self._name} has several registers, which are neither true nor false: name one of them")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Node):
            return self._board is other._board and self._name == other._name
        raise TypeError(f"{self._name} has several registers; compare one of them")

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._board.address}>"

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        return self._board._at(f"{self._name}.{key}")

    def __setattr__(self, key: str, value: object) -> None:
        self._board.write(f"{self._name}.{key}", value)

    def __setitem__(self, index: int, value: object) -> None:
        self._board.write(f"{self._name}[{operator.index(index)}]", value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._board._link.members(self._name)]

    def read(self) -> dict[str, Value]:
        """All registers of it, by name."""
        return self._board.read(self._name)


class Board:
    """A board. OSError: it does not answer, or has another register map; ValueError: no such register or value.

    `patience`: seconds that a silent board is asked. `journal`: the file that writes are noted in, else the user's own
    of `penstock ctl`. Several programs may use a board at once.
    """

    _link: "BoardLink"
    _journal: str | os.PathLike[str] | None
    address: str
    version: str
    data_width: int
    queue_pairs: int
    clock_khz: int

    def __init__(self, address: str, patience: float = 2.0, journal: str | os.PathLike[str] | None = None) -> None:
        link = compiled().BoardLink(address, patience)
        version, width, queue_pairs, clock_khz = link.identity()
        for name, value in {
            "_link": link,
            "_journal": journal,
            "address": address,
            "version": version,
            "data_width": width,
            "queue_pairs": queue_pairs,
            "clock_khz": clock_khz,
        }.items():
            object.__setattr__(self, name, value)

    def read(self, name: str) -> dict[str, Value]:
        """All registers of a name: `read("qp[0-3].state")`, `read("source")`."""
        return {found[0]: Value(*found) for found in self._link.read(name)}

    def write(self, name: str, value: object, force: bool = False) -> None:
        """Writes a value, reads it back and notes it in the journal: a text with its unit, a float, which is a quantity
        in the register's unit (`Value.quantity`), or an int, which is the register's number (`Value.number`).

        `force` also writes what breaks a run (addresses, masks, keys, PSNs and states of open queue pairs), and takes
        over from another operator. RegisterError, BoardError: it was not written; OperatorWarning: look again.
        """
        plain = value.number if isinstance(value, Value) else int(value) if isinstance(value, bool) else value
        given = float(plain) if isinstance(plain, float | np.floating) else str(plain)
        reported = self._link.write(name, given, force, self._journal)
        for kind, _, message in reported:
            if kind == "meanwhile":
                warnings.warn(message, OperatorWarning, stacklevel=2)
        if error := error_of(reported):
            raise error

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

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._link.members("")]

    def __repr__(self) -> str:
        return f"Board({self.address!r}): map {self.version}, {self.queue_pairs} queue pairs, {self.clock_khz} kHz"
