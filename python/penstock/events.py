# SPDX-License-Identifier: Apache-2.0
"""Stored events, and events as they are served, in Python. The tables are those of docs/storage.md."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

SCHEMA_KEY = b"penstock.schema"


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
    """The events of a run one by one, as rows of table `events/2`; needs one row group of memory.

    Raises FileNotFoundError, or ValueError for a file that holds another table.
    """
    for path in event_files(run):
        with pq.ParquetFile(path) as file:
            found = (file.metadata.metadata or {}).get(SCHEMA_KEY, b"no penstock.schema").decode()
            if found != "events/2":
                raise ValueError(f"{path}: holds {found}, not events/2")
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).to_pylist()


def follow_events(address: str) -> Iterator[dict]:
    """Events as a receiver serves them (docs/storage.md), at HOST:PORT or the path of a Unix socket, until it closes.

    Rows of table `events/2` and `missed`: how many events in front of this one did not come. Raises OSError.
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
