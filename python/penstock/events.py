# SPDX-License-Identifier: Apache-2.0
"""Stored and served events in Python. The tables are those of docs/storage.md."""

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

SCHEMA_KEY = b"penstock.schema"
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


def follow_events(address: str) -> Iterator[dict]:
    """Events as a receiver serves them (docs/storage.md), at HOST:PORT or the path of a Unix socket, until it closes.

    Rows of table `events/3` and `missed`: how many events in front of this one did not come. Raises OSError.
    """
    if ":" in address and not Path(address).exists():
        host, port = address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
    else:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    with connection, connection.makefile("rb") as stream, pa.ipc.open_stream(stream) as reader:
        for batch in reader:
            yield from batch.to_pylist()
