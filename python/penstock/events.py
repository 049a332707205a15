# SPDX-License-Identifier: Apache-2.0
"""Stored and served events in Python. The tables are those of docs/storage.md."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

SCHEMA_KEY = b"penstock.schema"
PAYLOAD_KEY = b"penstock.payload"  # of charges that a GPU has computed
TABLES = ("events/3", "events/2")
# An entry of the table of parts, and the bits of its flags (docs/fragments.md).
PART = np.dtype(
    [("input", "u1"), ("reserved", "u1"), ("flags", "<u2"), ("offset", "<u4"), ("length", "<u4"), ("spare", "<u4")]
)
PART_FLAGS = ("missing", "cut", "stopped", "dropped", "trigger_differs")


def event_files(run: str | Path) -> list[Path]:
    """The event files of a run: a file, or those of a folder in order. Raises FileNotFoundError where there is none."""
    run = Path(run)
    if not run.exists():
        raise FileNotFoundError(f"{run}: there is no such file or folder")
    files = [run] if run.is_file() else sorted(run.glob("events*.parquet"))
    if not files:
        raise FileNotFoundError(f"{run}: no events*.parquet; a run that was killed needs `penstock check --recover`")
    return files


def read_events(run: str | Path) -> Iterator[dict]:
    """The events of a run one by one, as rows of table `events/3`; needs one row group of memory.

    Files of `events/2`, which was before it, have neither `trigger_types` nor `parts`.

    Raises FileNotFoundError, or ValueError for a file that holds another table.
    """
    for path in event_files(run):
        with pq.ParquetFile(path) as file:
            found = (file.metadata.metadata or {}).get(SCHEMA_KEY, b"no penstock.schema").decode()
            if found not in TABLES:
                raise ValueError(f"{path}: holds {found}, not {' or '.join(TABLES)}")
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).to_pylist()


def parts(row: dict, fragment: int) -> Iterator[tuple[int, set[str], bytes]]:
    """The parts of one fragment of an event: input, flags, bytes. None where the board sent no table.

    `fragment` counts `row["sources"]`.
    """
    payload = row["fragments"][fragment]
    for entry in np.frombuffer(row["parts"][fragment], PART) if "parts" in row else ():
        flags = {name for bit, name in enumerate(PART_FLAGS) if entry["flags"] >> bit & 1}
        yield int(entry["input"]), flags, payload[entry["offset"] : entry["offset"] + entry["length"]]


def connected(address: str, wait_s: float = 0.0) -> socket.socket:
    """A connection to a receiver that serves events; one that does not listen yet is tried again for `wait_s`.

    Raises OSError.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            return _connected(address)
        except (ConnectionRefusedError, FileNotFoundError):
            if time.monotonic() >= end:
                raise
        time.sleep(0.1)


def _connected(address: str) -> socket.socket:
    if ":" in address and not Path(address).exists():
        host, port = address.rsplit(":", 1)
        return socket.create_connection((host, int(port)))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


class _Tail:
    """A stream that remembers its last bytes: Arrow takes a broken connection for the end of a stream."""

    END = b"\xff\xff\xff\xff\0\0\0\0"  # Arrow columnar format, "IPC streaming format"

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._last, self.closed = stream, b"", False

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._last = (self._last + data[-8:])[-8:]
        return data

    def ended(self) -> bool:
        return self._last == self.END

    def close(self) -> None:
        self.closed = True


def follow_batches(address: str) -> Iterator[pa.RecordBatch]:
    """Events as a receiver serves them, as Arrow batches, until it closes; columns as `follow_events` has them.

    Raises OSError; ConnectionError where the stream broke off before the receiver had sent its last event.
    """
    yield from batches_over(connected(address))


def batches_over(connection: socket.socket) -> Iterator[pa.RecordBatch]:
    """The same over a connection, which is closed at the end."""
    with connection, connection.makefile("rb") as stream:
        tail = _Tail(stream)
        with pa.ipc.open_stream(pa.PythonFile(tail, mode="r")) as reader:
            yield from reader
        if not tail.ended():
            raise ConnectionError("the stream broke off: the receiver ended early, or took this consumer for dead")


def follow_events(address: str) -> Iterator[dict]:
    """Events as a receiver serves them (docs/storage.md), at HOST:PORT or the path of a Unix socket, until it closes.

    Rows of table `events/3` and `missed`: how many events in front of this one did not come. Raises OSError.
    """
    with _connected(address) as connection, connection.makefile("rb") as stream, pa.ipc.open_stream(stream) as reader:
        for batch in reader:
            yield from batch.to_pylist()
