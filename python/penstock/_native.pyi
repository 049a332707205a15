# SPDX-License-Identifier: Apache-2.0
"""The compiled half of the package (crates/py). `penstock.lab` and `penstock.boards` are what people use."""

import os
from collections.abc import Callable
from typing import Any, Self, final

__all__ = ["BoardGroup", "BoardLink", "Outcome", "Stream", "__version__", "check", "run"]

__version__: str

@final
class Stream:
    """A table behind Arrow's C stream interface: `pyarrow.table(stream)` reads it without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class BoardLink:
    """A board over IPbus; `penstock.boards.Board` is what people use."""

    def __new__(cls, address: str, patience_s: float) -> Self: ...
    def identity(self) -> tuple[str, int, int, int]: ...
    def names(self, name: str) -> list[str]: ...
    def members(self, name: str) -> list[str]: ...
    def is_value(self, name: str) -> bool: ...
    def read(self, name: str) -> list[tuple[str, int, str, float | None]]: ...
    def write(
        self,
        name: str,
        value: str | float,
        force: bool,
        journal: str | os.PathLike[str] | None = None,
        operator: str | None = None,
    ) -> list[tuple[str, str | None, str]]: ...
    def read_block(self, address: int, count: int) -> bytes: ...
    def address(self, name: str) -> int: ...

@final
class BoardGroup:
    """Many boards over IPbus; `penstock.gateway` is what people use."""

    def __new__(cls, addresses: list[str], names: list[list[str]], patience_s: float) -> Self: ...
    def seek(self) -> list[tuple[int, str | None]]: ...
    def look(self) -> list[tuple[int, str | None, list[tuple[int, int, str, float | None]]]]: ...
    def describe(
        self, board: int
    ) -> list[tuple[str, str, str, bool, bool, int, float | None, list[tuple[int, str]]]]: ...
    def write(
        self,
        board: int,
        at: int,
        value: str | float,
        journal: str | os.PathLike[str] | None = None,
        operator: str | None = None,
    ) -> tuple[list[tuple[str, str | None, str]], list[tuple[int, int, str, float | None]]]: ...

@final
class Outcome:
    """What a run has left: summary.json as text, and the trace."""

    summary: str
    trace: Stream | None
    never_recorded: list[str]

def check(text: str, path: str | os.PathLike[str], sets: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Settings in force and warnings of a scenario; ValueError says all that is wrong."""

def run(
    text: str,
    path: str | os.PathLike[str],
    sets: list[str],
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[float, float, int, int], None] | None = None,
) -> Outcome:
    """Runs a scenario; `progress(simulated_s, limit_s, flows_over, flows)` is called several times a second."""
