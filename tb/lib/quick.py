# SPDX-License-Identifier: Apache-2.0
"""Signals of cocotb 2.1 with short ways for what benches do in every cycle; everything else goes cocotb's own way.

Most of a simulation's time is not the model's but Python's, and much of that went into making a new object of the same
few values, comparing it through two more, and looking a signal up by its name again.
"""

from collections.abc import Callable
from functools import cache

import cocotb.handle
from cocotb.handle import HierarchyObject, LogicObject, ValueObjectBase, _LogicArrayObjectBase
from cocotb.triggers import ReadOnly
from cocotb.types import Logic, LogicArray, Range

BITS = {text: Logic(text) for text in "UX01ZWLH-"}
NUMBERS = {BITS["0"]._repr: 0, BITS["1"]._repr: 1}
DEPOSIT = cocotb.handle._GPISetAction.DEPOSIT.value


def install() -> None:
    """Once, by whoever imports the runner: every bench does."""
    if getattr(HierarchyObject.__getattr__, "quick", False):
        return
    put = ValueObjectBase.value.fset
    HierarchyObject.__getattr__ = remembering(HierarchyObject.__getattr__)  # type: ignore[method-assign]
    Logic.__eq__ = comparing(Logic.__eq__)  # type: ignore[method-assign]
    LogicArray.__int__ = converting(LogicArray.__int__)  # type: ignore[method-assign]
    LogicArray._from_handle = classmethod(from_handle)  # type: ignore[method-assign,assignment]
    LogicObject.get = bit  # type: ignore[method-assign]
    LogicObject.value = property(bit, writing(put, put_bit))  # type: ignore[method-assign,attr-defined]
    _LogicArrayObjectBase.value = property(  # type: ignore[method-assign,attr-defined]
        _LogicArrayObjectBase.get, writing(put, put_word)
    )


def remembering(look_up: Callable) -> Callable:
    """A signal that was found becomes an attribute, which Python finds by itself."""

    def find(self: HierarchyObject, name: str) -> object:
        found = look_up(self, name)
        object.__setattr__(self, name, found)
        return found

    find.quick = True  # type: ignore[attr-defined]
    return find


def bit(self: LogicObject) -> Logic:
    return BITS[self._handle.get_signal_val_binstr()]


def writing(write: Callable, quick: Callable) -> Callable:
    """Numbers go straight to a simulator that keeps the order of writes, outside of phases that forbid it."""
    direct, current = cocotb.handle._trust_inertial, cocotb.handle.current_gpi_trigger

    def put(self: ValueObjectBase, value: object) -> None:
        number = type(value) is int or type(value) is bool
        free = number and direct and not self.is_const and not isinstance(current(), ReadOnly)
        if not (free and quick(self, value)):
            write(self, value)

    return put


def put_bit(self: LogicObject, value: int) -> bool:
    """False: it does not fit."""
    if value in (0, 1):
        self._handle.set_signal_val_binstr(DEPOSIT, "1" if value else "0")
        return True
    return False


def put_word(self: _LogicArrayObjectBase, value: int) -> bool:
    if not 0 <= value <= self._max_val:
        return False
    width = self.__dict__.get("_width")
    if width is None:
        width = self.__dict__["_width"] = len(self)
    if width <= 32:
        self._handle.set_signal_val_int(DEPOSIT, value)
    else:
        self._handle.set_signal_val_binstr(DEPOSIT, f"{value:0{width}b}")
    return True


def comparing(equal: Callable) -> Callable:
    def compare(self: Logic, other: object) -> bool:
        if type(other) is int or type(other) is bool:
            return NUMBERS.get(self._repr) == other
        return equal(self, other)

    return compare


def converting(convert: Callable) -> Callable:
    def number(self: LogicArray) -> int:
        if self._value_as_int is None and self._value_as_str:
            try:
                self._value_as_int = int(self._value_as_str, 2)
            except ValueError:  # not 0 and 1 alone
                return convert(self)
        return convert(self) if self._value_as_int is None else self._value_as_int

    return number


@cache
def positions(length: int) -> Range:
    return Range(length - 1, "downto", 0)


def from_handle(cls: type[LogicArray], value: str, warn_indexing: bool) -> LogicArray:
    self = cls.__new__(cls)
    self._value_as_array = self._value_as_int = None
    self._value_as_str = value
    self._range = positions(len(value))
    self._warn_indexing = warn_indexing
    return self
