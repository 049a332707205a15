# SPDX-License-Identifier: Apache-2.0
"""Files of recorded events for `penstock run`, `send`, `recv --data` and `board --data` (docs/your-data.md).

A file holds events; an event has a number, a time, a trigger type and the bytes of each module. Every event has the
same modules; a module may have no bytes in an event.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# The command refuses larger arrays, so that a damaged file cannot ask for more memory than there is.
MAX_PAYLOAD_BYTES = 1 << 32
LST1_MODULE = np.dtype([("counters", "u1", (22,)), ("samples", "<u2", (2, 7, 40))])


@dataclass(frozen=True)
class Event:
    """One event: `modules` are the bytes of each module, in the order of the file's sources."""

    number: int
    timestamp_ns: int
    trigger_type: int
    modules: Sequence[bytes]


def write(path: str | Path, events: Iterable[Event], sources: Sequence[int], module: np.dtype | None = None) -> int:
    """Writes a file of recorded events and returns their number. Every event is kept in memory until the end.

    `sources` are the modules' numbers, ascending, 0 to 65535. `module`, where given, is the type of one module's bytes;
    readers such as `penstock.hdf5` find it in the file.

    Raises ValueError for events that no file can hold (no event, numbers out of range, another number of modules, more
    than 4 GiB), naming the event; OSError.
    """
    if not sources or list(sources) != sorted(set(sources)) or not 0 <= sources[0] <= sources[-1] <= 65535:
        raise ValueError(f"sources {_short(sources)}: allowed are ascending numbers from 0 to 65535, each once")
    numbers: list[int] = []
    times: list[int] = []
    types: list[int] = []
    lengths: list[int] = []
    payloads: list[bytes] = []
    total = 0
    for index, event in enumerate(events):
        where = f"event {index} (number {event.number})"
        for name, value, top in (
            ("event number", event.number, 2**63 - 1),
            ("timestamp_ns", event.timestamp_ns, 2**64 - 1),
            ("trigger type", event.trigger_type, 65535),
        ):
            if not 0 <= value <= top:
                raise ValueError(f"{where}: {name} {value}: allowed is 0 to {top}")
        if len(event.modules) != len(sources):
            raise ValueError(f"{where} has {len(event.modules)} modules; the file has {len(sources)} sources")
        if times and event.timestamp_ns < times[-1]:
            raise ValueError(f"{where}: at {event.timestamp_ns} ns, before the event ahead of it; sort events by time")
        numbers.append(event.number)
        times.append(event.timestamp_ns)
        types.append(event.trigger_type)
        for source, payload in zip(sources, event.modules, strict=True):
            if module is not None and len(payload) != module.itemsize:
                raise ValueError(f"{where}, source {source}: {len(payload)} bytes; its type has {module.itemsize}")
            lengths.append(len(payload))
            payloads.append(payload)
            total += len(payload)
        if total > MAX_PAYLOAD_BYTES - 128:
            raise ValueError(f"{where}: more than 4 GiB up to here; convert fewer events (--events {index})")
    if not numbers:
        raise ValueError("there is no event in the file")
    arrays: dict[str, np.ndarray] = {
        "event_number": np.array(numbers, "<u8"),
        "timestamp_ns": np.array(times, "<u8"),
        "trigger_type": np.array(types, "<u2"),
        "source": np.array(sources, "<u2"),
        "offset": np.concatenate([np.zeros(1, "<u8"), np.cumsum(lengths, dtype="<u8")]),
        "payload": np.frombuffer(b"".join(payloads), np.uint8),
    }
    if module is not None:
        arrays["module"] = np.empty(0, module)
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return len(numbers)


def read(path: str | Path) -> tuple[list[Event], list[int]]:
    """The events of a file that `write` has made, and its sources. Raises OSError, ValueError, KeyError."""
    with np.load(path) as file:
        sources = file["source"].tolist()
        offset, payload = file["offset"], file["payload"].tobytes()
        cut = [payload[start:end] for start, end in zip(offset[:-1].tolist(), offset[1:].tolist(), strict=True)]
        numbers, times, types = (file[name].tolist() for name in ("event_number", "timestamp_ns", "trigger_type"))
    width = len(sources)
    modules = [cut[start : start + width] for start in range(0, len(cut), width)]
    return [Event(*row) for row in zip(numbers, times, types, modules, strict=True)], sources


def module_type(path: str | Path) -> np.dtype:
    """The type of one module's bytes in a file of recorded events, also of `data/lst1_run2008`.

    Raises OSError; ValueError where the file does not say.
    """
    with np.load(path) as file:
        if "module" in file.files:
            return file["module"].dtype
        if "frag" in file.files:
            return LST1_MODULE
    raise ValueError(f"{path}: does not say what a module's bytes are; only tables of numbers do (docs/your-data.md)")


def modules(path: str | Path) -> int:
    """How many modules an event has in a file of recorded events. Raises OSError, KeyError."""
    with np.load(path) as file:
        return file["frag"].shape[1] if "frag" in file.files else len(file["source"])


def _short(values: Sequence[int]) -> str:
    return ", ".join(map(str, values[:8])) + (", ..." if len(values) > 8 else "") if values else "(none)"
