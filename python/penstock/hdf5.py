# SPDX-License-Identifier: Apache-2.0
"""A stored run as one HDF5 file: `python -m penstock.hdf5 RUN OUT.h5 [--like RECORDED.npz]`.

The receiver writes only Parquet: libhdf5 would add minutes to every build, and its files do not survive a killed
writer. Layout: one row per event, and one per fragment; the payload of fragment i is
`payload[offset[i]:offset[i + 1]]`, the fragments of event n are `fragment[n]` up to `fragment[n + 1]`.

With `--like` the bytes become numbers: in place of `payload` and `offset` there is a dataset for each field of the
modules' type, shape (events, modules, ...), and `present` (events, modules); a module that did not come is zeros.
"""

import argparse
import sys
from pathlib import Path

import h5py
import numpy as np

from penstock import recorded
from penstock.events import read_events

EVENT = {"event_number": "u8", "timestamp_ns": "u8", "complete": "?"}
FRAGMENT = {"source": "u2", "crc32c": "u4"}
CHUNK_ROWS = 1024
CHUNK_BYTES = 1 << 20
EVENTS_AT_A_TIME = 256


def convert(run: Path, out: Path, like: Path | None = None) -> int:
    """Writes the events of a run into a new HDF5 file and returns their number.

    `like` is the file of recorded events that was sent; its modules' type shapes the numbers. A timestamp that is null
    is 0. Raises what `read_events` and `recorded.module_type` raise, ValueError for a fragment that is not made of such
    modules, and OSError where `out` cannot be written.
    """
    module = recorded.module_type(like) if like else None
    modules = recorded.modules(like) if like else 0
    partial = out.with_name(out.name + ".partial")
    with h5py.File(partial, "w") as file:
        file.attrs["penstock.schema"] = "events/2"
        for name, kind in {**EVENT, **FRAGMENT}.items():
            file.create_dataset(name, (0,), kind, maxshape=(None,), chunks=(CHUNK_ROWS,))
        for name in ("fragment",) if module else ("fragment", "offset"):
            file.create_dataset(name, (1,), "u8", maxshape=(None,), chunks=(CHUNK_ROWS,))
        if module:
            file.create_dataset("present", (0, modules), "?", maxshape=(None, modules))
            for name in module.names or ():
                shape = (modules, *module[name].shape)
                file.create_dataset(
                    name, (0, *shape), module[name].base, maxshape=(None, *shape), chunks=(1, *shape),
                    compression="gzip", compression_opts=1,
                )  # fmt: skip
        else:
            file.create_dataset(
                "payload", (0,), "u1", maxshape=(None,), chunks=(CHUNK_BYTES,), compression="gzip", compression_opts=1
            )
        events, waiting = 0, []
        for row in read_events(run):
            waiting.append(row)
            if len(waiting) == EVENTS_AT_A_TIME:
                _append(file, waiting, module)
                waiting = []
            events += 1
        _append(file, waiting, module)
    partial.rename(out)
    return events


def _append(file: h5py.File, rows: list[dict], module: np.dtype | None) -> None:
    payloads = [payload for row in rows for payload in row["fragments"]]
    for name in EVENT:
        _extend(file[name], [row[name] or 0 for row in rows])
    _extend(file["source"], [source for row in rows for source in row["sources"]])
    _extend(file["crc32c"], [crc for row in rows for crc in row["crc32c"]])
    _extend(file["fragment"], file["fragment"][-1] + np.cumsum([len(row["sources"]) for row in rows], dtype="u8"))
    if module:
        _append_numbers(file, rows, module)
        return
    _extend(file["offset"], file["offset"][-1] + np.cumsum([len(payload) for payload in payloads], dtype="u8"))
    _extend(file["payload"], np.frombuffer(b"".join(payloads), np.uint8))


def _append_numbers(file: h5py.File, rows: list[dict], module: np.dtype) -> None:
    """The modules of each event: board k of n has modules k, k + n, k + 2n..."""
    modules = file["present"].shape[1]
    for row in rows:
        numbers, present = np.zeros(modules, module), np.zeros(modules, bool)
        boards = len(row["sources"]) + len(row["missing"])
        for source, payload in zip(row["sources"], row["fragments"], strict=True):
            expected = len(numbers[source::boards]) * module.itemsize
            if len(payload) != expected:
                where = f"event {row['event_number']}, source {source} of {boards}"
                raise ValueError(f"{where}: {len(payload)} bytes; the modules of --like have {expected} there")
            numbers[source::boards] = np.frombuffer(payload, module)
            present[source::boards] = True
        _extend(file["present"], present[np.newaxis])
        for name in module.names or ():
            _extend(file[name], numbers[name][np.newaxis])


def _extend(dataset: h5py.Dataset, values: list | np.ndarray) -> None:
    if len(values):
        dataset.resize(len(dataset) + len(values), axis=0)
        dataset[-len(values) :] = values


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.hdf5", description="A stored run as one HDF5 file.")
    parser.add_argument("run", type=Path, help="event file, or folder of them")
    parser.add_argument("out", type=Path, help="HDF5 file to write")
    parser.add_argument("--like", type=Path, metavar="RECORDED.npz", help="shape the bytes as this file's modules")
    arguments = parser.parse_args()
    try:
        events = convert(arguments.run, arguments.out, arguments.like)
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{events} events written to {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
