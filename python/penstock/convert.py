# SPDX-License-Identifier: Apache-2.0
"""Data of any detector as a file of recorded events: `python -m penstock.convert KIND IN OUT.npz` (docs/your-data.md).

KIND is zfits, fits, hdf5, csv or raw. What the libraries of a kind read is not interpreted: payloads are the numbers of
the file, little-endian, in C order.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from penstock.recorded import Event, write
from penstock.tables import Table, csv_table, fits_table, hdf5_table, of_arrays, whole

UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# Where the payload of an event may lie in a zfits file, by generation of the cameras' data model.
ZFITS_WAVEFORMS = ("waveform", "hiGain.waveforms.samples", "loGain.waveforms.samples")
ZFITS_NUMBERS = ("event_id", "eventNumber")
ZFITS_TYPES = ("event_type", "trigger_type", "eventType")
# Seconds, what is left of them, and how many of these are a nanosecond.
ZFITS_TIMES = (
    ("event_time_s", "event_time_qns", 4),
    ("trigger_time_s", "trigger_time_qns", 4),
    ("local_time_sec", "local_time_nanosec", 1),
)


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; a missing one gets what `_events` says. `events` limits the result."""

    payload: list[str]
    number: str | None = None
    time: str | None = None
    unit: str = "ns"
    trigger: str | None = None
    source: str | None = None
    modules: int | None = None
    events: int | None = None

    def decimals(self) -> list[str]:
        """The columns of one number a row."""
        return [name for name in (self.number, self.time, self.trigger, self.source) if name]


Events = tuple[Iterator[Event], list[int], np.dtype | None]


def _one_a_row(table: Table, name: str, rows: int, allowed: str) -> Any:
    values = table.column(name).read(rows)
    if isinstance(values, list) and all(isinstance(value, Decimal) for value in values):
        return values
    if isinstance(values, list) or values.ndim != 1 or values.dtype.kind not in "iubf":
        found = "rows of variable length" if isinstance(values, list) else f"type {values.dtype}, shape {values.shape}"
        raise ValueError(f"column {name} has {found}: allowed is {allowed} a row")
    return values


def _numbers(table: Table, name: str, rows: int) -> list[int]:
    """Whole numbers of a column, one a row."""
    numbers = []
    for row, value in enumerate(_one_a_row(table, name, rows, "a whole number")):
        try:
            numbers.append(whole(Decimal(value.item() if isinstance(value, np.generic) else value)))
        except (ValueError, ArithmeticError):
            raise ValueError(f"column {name}, row {row}: {value}: allowed is a whole number") from None
    return numbers


def _times(table: Table, columns: Columns, rows: int) -> list[int]:
    """Times in ns, rounded to the nearest one. Whole and decimal numbers keep every digit; without a column events are
    a microsecond apart."""
    if columns.time is None:
        return [row * 1000 for row in range(rows)]
    values = _one_a_row(table, columns.time, rows, "a number")
    scale = UNITS[columns.unit]
    if isinstance(values, list):
        return [round(Fraction(value) * scale) for value in values]
    if values.dtype.kind != "f":
        return [int(value) * scale for value in values]
    if bad := [row for row in range(rows) if not np.isfinite(values[row])]:
        raise ValueError(f"column {columns.time}, row {bad[0]}: {values[bad[0]]} is no time")
    step = float(np.max(np.spacing(np.abs(values)), initial=0)) * scale
    if step > 1:
        print(
            f"warning: column {columns.time} is {values.dtype}: its times are exact to {step:.0f} ns only",
            file=sys.stderr,
        )
    return [round(Fraction(float(value)) * scale) for value in values]


def _payload(table: Table, columns: Columns, rows: int) -> tuple[Sequence[bytes], np.dtype | None]:
    """Bytes of the rows, and the type of a row where all rows are one array or several of the same shapes."""
    found = [(name, _stacked(table.column(name).read(rows))) for name in columns.payload]
    fixed: list[tuple] = []
    for name, values in found:
        kinds = {value.dtype for value in values} if isinstance(values, list) else {values.dtype}
        if wrong := [kind for kind in kinds if kind.kind not in "iufcbSV"]:
            raise ValueError(f"column {name} has type {wrong[0]}: allowed are numbers or bytes")
        if not isinstance(values, list):
            fixed.append((name, values.dtype.newbyteorder("<"), values.shape[1:]))
    if len(fixed) == len(found):
        records = np.zeros(rows, np.dtype(fixed))
        for name, values in found:
            records[name] = values
        if not records.dtype.itemsize:
            raise ValueError(f"columns {', '.join(columns.payload)} have no bytes")
        return [record.tobytes() for record in records.view(np.uint8).reshape(rows, -1)], records.dtype
    pieces = [[value.astype(value.dtype.newbyteorder("<")).tobytes() for value in values] for _, values in found]
    payload = [b"".join(row) for row in zip(*pieces, strict=True)]
    if not any(payload):
        raise ValueError(f"columns {', '.join(columns.payload)} have no bytes")
    return payload, None


def _stacked(values: Any) -> Any:
    """One array where all rows of a list are alike."""
    alike = isinstance(values, list) and len({(value.shape, value.dtype) for value in values}) == 1
    return np.stack(values) if alike else values


def _rows(table: Table, columns: Columns) -> int:
    """Rows of all columns that are named."""
    first, *rest = [*columns.payload, *columns.decimals()]
    rows = table.column(first).rows
    for name in rest:
        if (found := table.column(name).rows) != rows:
            raise ValueError(f"column {name} has {found} rows, column {first} has {rows}")
    if not rows:
        raise ValueError("there is no event in the file")
    return rows


def _events(table: Table, columns: Columns) -> Events:
    """Events of a table. Without `source` a row is an event and is cut into `modules` equal pieces."""
    rows = _rows(table, columns)
    if columns.source is not None:
        return _joined(table, columns, rows)
    rows = min(rows, columns.events or rows)
    payload, kind = _payload(table, columns, rows)
    numbers = _numbers(table, columns.number, rows) if columns.number else range(rows)
    times = _times(table, columns, rows)
    types = _numbers(table, columns.trigger, rows) if columns.trigger else [0] * rows
    pieces = columns.modules or 1
    events = (Event(numbers[row], times[row], types[row], _cut(payload[row], pieces, row)) for row in range(rows))
    return events, list(range(pieces)), _type_of_piece(kind, pieces)


def _joined(table: Table, columns: Columns, rows: int) -> Events:
    """Events of a table in which a row is the fragment of a source. An event has no bytes of a source without a row."""
    if columns.number is None or columns.source is None:
        raise ValueError("--source needs --event-number: it says which rows are one event")
    owners = _numbers(table, columns.source, rows)
    rows_of: dict[int, dict[int, int]] = {}
    for row, (number, owner) in enumerate(zip(_numbers(table, columns.number, rows), owners, strict=True)):
        if owner in rows_of.setdefault(number, {}):
            raise ValueError(f"row {row}: event {number} has source {owner} already, in row {rows_of[number][owner]}")
        rows_of[number][owner] = row
    selected = dict(islice(rows_of.items(), columns.events))
    rows = 1 + max(row for found in selected.values() for row in found.values())
    sources = sorted({owner for found in selected.values() for owner in found})
    is_whole = all(len(found) == len(sources) for found in selected.values())
    payload, kind = _payload(table, columns, rows)
    times = _times(table, columns, rows)
    types = _numbers(table, columns.trigger, rows) if columns.trigger else [0] * rows

    def joined() -> Iterator[Event]:
        for number, found in selected.items():
            first = min(found.values())
            modules = [payload[found[owner]] if owner in found else b"" for owner in sources]
            yield Event(number, times[first], types[first], modules)

    return joined(), sources, kind if is_whole else None


def _cut(payload: bytes, pieces: int, row: int) -> list[bytes]:
    size, left = divmod(len(payload), pieces)
    if left:
        raise ValueError(
            f"--modules {pieces}: row {row} has {len(payload)} bytes, which do not divide into as many pieces"
        )
    return [payload[size * piece : size * (piece + 1)] for piece in range(pieces)]


def _type_of_piece(kind: np.dtype | None, pieces: int) -> np.dtype | None:
    """The type of each of so many pieces of a row: the first axis of a single array may be cut."""
    if kind is None or pieces == 1:
        return kind
    [name, *rest] = kind.names or ()
    base, shape = kind[name].base, kind[name].shape
    if rest or not shape or shape[0] % pieces:
        return None
    return np.dtype([(name, base, (shape[0] // pieces, *shape[1:]))])


def raw(path: Path, description: Path, events: int | None) -> Events:
    """Records of one length, one after the other, as a description in TOML says (docs/your-data.md)."""
    described = tomllib.loads(description.read_text(encoding="utf-8-sig"))
    allowed = {"skip", "fields", "payload", "event_number", "time", "time_unit", "trigger_type", "source", "modules"}
    if strange := sorted(set(described) - allowed):
        raise ValueError(f"{description}: key {strange[0]}: allowed are {', '.join(sorted(allowed))}")
    fields = described.get("fields")
    if not isinstance(fields, list) or not fields:
        raise ValueError(
            f"{description}: fields is missing: a list of {{ name, type, shape }} in the order of the bytes"
        )
    try:
        names = [(field["name"], np.dtype(field["type"]), tuple(field.get("shape", ()))) for field in fields]
        record = np.dtype(names)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'{description}: fields: {error}; e.g. {{ name = "adc", type = "<u2", shape = [40] }}'
        ) from None
    skip, size = described.get("skip", 0), path.stat().st_size
    if not isinstance(skip, int) or not 0 <= skip <= size:
        raise ValueError(f"{description}: skip = {skip}: allowed is 0 to {size}, the bytes of {path}")
    if not record.itemsize or (size - skip) % record.itemsize:
        left = (size - skip) % max(record.itemsize, 1)
        raise ValueError(
            f"{path}: {size - skip} bytes are no whole number of records of {record.itemsize}; {left} are left"
        )
    payload = described.get("payload", [])
    columns = Columns(
        [payload] if isinstance(payload, str) else payload,
        described.get("event_number"), described.get("time"), described.get("time_unit", "ns"),
        described.get("trigger_type"),
        described.get("source"), described.get("modules"), events,
    )  # fmt: skip
    if not columns.payload:
        raise ValueError(f"{description}: payload is missing: the name of a field, or a list of them")
    if columns.unit not in UNITS:
        raise ValueError(f"{description}: time_unit {columns.unit}: allowed are {', '.join(UNITS)}")
    if columns.modules is not None and (not isinstance(columns.modules, int) or columns.modules < 1):
        raise ValueError(f"{description}: modules = {columns.modules}: allowed is 1 and more")
    data = np.memmap(path, record, "r", offset=skip) if size > skip else np.empty(0, record)
    return _events(of_arrays({name: data[name] for name in record.names or ()}), columns)


def zfits(path: Path, payload: str | None, modules: int | None, events: int | None) -> Events:
    """Events of a camera's zfits file (CTAO's protozfits): the waveforms, cut into modules of equal length."""
    import protozfits

    with protozfits.File(str(path)) as file:
        if not hasattr(file, "Events"):
            raise ValueError("there is no table Events")
        # The rows are used while the file is open: protozfits reads after a close without looking.
        rows = list(islice(file.Events, events))
        if not rows:
            raise ValueError("table Events is empty")
        name = payload or next((name for name in ZFITS_WAVEFORMS if _has_samples(rows[0], name)), None)
        if name is None:
            raise ValueError(f"none of {', '.join(ZFITS_WAVEFORMS)} has samples; name another field with --payload")
        first = _attribute(rows[0], name)
        if not isinstance(first, np.ndarray) or not first.size or first.dtype.kind not in "iuf":
            raise ValueError(f"--payload {name}: no array of numbers; an event has {', '.join(rows[0]._fields)}")
        table: dict[str, Any] = {
            name: [_attribute(event, name) for event in rows],
            "number": np.array([_first(event, ZFITS_NUMBERS, row) for row, event in enumerate(rows)]),
            "type": np.array([int(_first(event, ZFITS_TYPES, 0)) for event in rows]),
        }
        times = [_zfits_time(event) for event in rows]
        if timed := all(time is not None for time in times):
            table["time"] = np.array([time or 0 for time in times], np.uint64)
    time = "time" if timed else None
    return _events(of_arrays(table), Columns([name], "number", time, trigger="type", modules=modules))


def _has_samples(event: Any, path: str) -> bool:
    found = _attribute(event, path)
    return isinstance(found, np.ndarray) and found.size > 0


def _attribute(event: Any, path: str) -> Any:
    for name in path.split("."):
        event = getattr(event, name, None)
    return event


def _first(event: Any, names: tuple[str, ...], otherwise: int) -> int:
    return next((int(value) for name in names if (value := getattr(event, name, None)) is not None), otherwise)


def _zfits_time(event: Any) -> int | None:
    """Nanoseconds. R1: seconds and quarters of a nanosecond; earlier files: seconds and nanoseconds, or none."""
    for second, part, parts_per_ns in ZFITS_TIMES:
        if (seconds := getattr(event, second, None)) is not None:
            return int(seconds) * UNITS["s"] + int(getattr(event, part, None) or 0) // parts_per_ns
    return None


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.convert",
        description="Data of any detector as a file of recorded events (docs/your-data.md).",
    )
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")

    def kind(name: str, text: str) -> argparse.ArgumentParser:
        command = kinds.add_parser(name, help=text, description=text)
        command.add_argument("input", type=Path, metavar="IN")
        command.add_argument("output", type=Path, metavar="OUT.npz")
        command.add_argument("--events", type=_positive, metavar="N", help="at most this many events, the first ones")
        return command

    def columns(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--payload", required=True, metavar="COLUMN[,COLUMN]", help="the bytes of a row, in this order"
        )
        command.add_argument("--event-number", metavar="COLUMN", help="without it rows are numbered from 0")
        command.add_argument("--time", metavar="COLUMN", help="without it events are a microsecond apart")
        command.add_argument("--time-unit", choices=UNITS, default="ns")
        command.add_argument("--trigger-type", metavar="COLUMN", help="0 to 65535; without it 0")
        command.add_argument("--source", metavar="COLUMN", help="a row is the fragment of this source, not an event")
        command.add_argument("--modules", type=_positive, metavar="N", help="cut each row into so many equal modules")

    command = kind("zfits", "a camera's zfits file, by protozfits")
    command.add_argument(
        "--payload", metavar="FIELD", help=f"default: the first with samples of {', '.join(ZFITS_WAVEFORMS)}"
    )
    command.add_argument("--modules", type=_positive, metavar="N", help="cut the waveforms into so many equal modules")
    command = kind("fits", "a binary table of a FITS file, by astropy")
    command.add_argument("--hdu", type=int, metavar="N", help="which table; default: the first")
    columns(command)
    columns(kind("hdf5", "datasets of an HDF5 file, by h5py"))
    command = kind("csv", "comma-separated values with a header line")
    columns(command)
    command.add_argument(
        "--type", default="u2", help="of the payload's numbers: u1, u2, i4, f4, ... or hex (default u2)"
    )
    command = kind("raw", "binary records of one length")
    command.add_argument("--description", type=Path, required=True, metavar="FILE.toml", help="what the bytes are")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: allowed is 1 and more")
    return int(text)


def _read(requested: argparse.Namespace) -> Events:
    if requested.kind == "zfits":
        return zfits(requested.input, requested.payload, requested.modules, requested.events)
    if requested.kind == "raw":
        return raw(requested.input, requested.description, requested.events)
    if requested.source and requested.modules:
        raise ValueError("--modules cuts events; with --source a row is one module already: leave one of them out")
    columns = Columns(
        requested.payload.split(","), requested.event_number, requested.time, requested.time_unit,
        requested.trigger_type, requested.source,
        requested.modules, requested.events,
    )  # fmt: skip
    if requested.kind == "fits":
        with fits_table(requested.input, requested.hdu) as table:
            return _events(table, columns)
    if requested.kind == "hdf5":
        with hdf5_table(requested.input) as table:
            return _events(table, columns)
    # The rows of an event may be anywhere in the file.
    rows = None if requested.source else requested.events
    return _events(csv_table(requested.input, requested.type, columns.payload, columns.decimals(), rows), columns)


def main() -> int:
    requested = _arguments().parse_args()
    try:
        with requested.input.open("rb"):  # the libraries' own words for this are many
            pass
        events, sources, module = _read(requested)
        written = write(requested.output, events, sources, module)
    except ModuleNotFoundError as error:
        print(f"error: {requested.kind} needs the package {error.name}: pip install {error.name}", file=sys.stderr)
        return 2
    except (OSError, ValueError, TypeError) as error:
        print(f"error: {requested.input}: {error}", file=sys.stderr)
        return 2
    print(f"{written} events of {len(sources)} modules written to {requested.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
