# SPDX-License-Identifier: Apache-2.0
"""A stored run as one HDF5 file: `python -m penstock.hdf5 RUN OUT.h5`.

The receiver writes only Parquet: libhdf5 would add minutes to every build, and its files do not survive a killed
writer. Layout: one row per event, and one per fragment; the payload of fragment i is
`payload[offset[i]:offset[i + 1]]`, the fragments of event n are `fragment[n]` up to `fragment[n + 1]`.
"""

import argparse
import sys
from pathlib import Path

import h5py
import numpy as np

from penstock.events import read_events

EVENT = {"event_number": "u8", "timestamp_ns": "u8", "complete": "?"}
FRAGMENT = {"source": "u2", "crc32c": "u4"}
CHUNK_ROWS = 1024
CHUNK_BYTES = 1 << 20
EVENTS_AT_A_TIME = 256


def convert(run: Path, out: Path) -> int:
    """Writes the events of a run into a new HDF5 file and returns their number.

    A timestamp that is null is 0. Raises what `read_events` raises, and OSError where `out` cannot be written.
    """
    partial = out.with_name(out.name + ".partial")
    with h5py.File(partial, "w") as file:
        file.attrs["penstock.schema"] = "events/2"
        for name, kind in {**EVENT, **FRAGMENT}.items():
            file.create_dataset(name, (0,), kind, maxshape=(None,), chunks=(CHUNK_ROWS,))
        for name in ("fragment", "offset"):
            file.create_dataset(name, (1,), "u8", maxshape=(None,), chunks=(CHUNK_ROWS,))
        file.create_dataset(
            "payload", (0,), "u1", maxshape=(None,), chunks=(CHUNK_BYTES,), compression="gzip", compression_opts=1
        )
        events, waiting = 0, []
        for row in read_events(run):
            waiting.append(row)
            if len(waiting) == EVENTS_AT_A_TIME:
                _append(file, waiting)
                waiting = []
            events += 1
        _append(file, waiting)
    partial.rename(out)
    return events


def _append(file: h5py.File, rows: list[dict]) -> None:
    payloads = [payload for row in rows for payload in row["fragments"]]
    for name in EVENT:
        _extend(file[name], [row[name] or 0 for row in rows])
    _extend(file["source"], [source for row in rows for source in row["sources"]])
    _extend(file["crc32c"], [crc for row in rows for crc in row["crc32c"]])
    _extend(file["fragment"], file["fragment"][-1] + np.cumsum([len(row["sources"]) for row in rows], dtype="u8"))
    _extend(file["offset"], file["offset"][-1] + np.cumsum([len(payload) for payload in payloads], dtype="u8"))
    _extend(file["payload"], np.frombuffer(b"".join(payloads), np.uint8))


def _extend(dataset: h5py.Dataset, values: list | np.ndarray) -> None:
    if len(values):
        dataset.resize(len(dataset) + len(values), axis=0)
        dataset[-len(values) :] = values


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.hdf5", description="A stored run as one HDF5 file.")
    parser.add_argument("run", type=Path, help="event file, or folder of them")
    parser.add_argument("out", type=Path, help="HDF5 file to write")
    arguments = parser.parse_args()
    try:
        events = convert(arguments.run, arguments.out)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{events} events written to {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
