# SPDX-License-Identifier: Apache-2.0
"""Data of any detector as a file of recorded events: `python -m penstock.convert KIND IN OUT.npz` (docs/your-data.md).

KIND is zfits, fits, hdf5, csv or raw. What the libraries of a kind read is not interpreted: payloads are the numbers of
the file, little-endian, in C order.
"""

import argparse
import csv
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.recorded import Event, write

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
    """Which columns of a table are what; a missing one gets what `_events` says."""

    payload: list[str]
    number: str | None
    time: str | None
    unit: str
    trigger: str | None
    source: str | None
    modules: int | None


Table = Mapping[str, np.ndarray]


def _column(table: Table, name: str) -> np.ndarray:
    try:
        return table[name]
    except KeyError:
        raise ValueError(f"there is no column {name}; there are: {', '.join(table) or 'none'}") from None


def _numbers(table: Table, name: str) -> list[int]:
    """Whole numbers of a column, one a row."""
    values = _column(table, name)
    if values.ndim != 1 or values.dtype.kind not in "iub":
        raise ValueError(
            f"column {name} has type {values.dtype}, shape {values.shape}: allowed is a whole number a row"
        )
    return [int(value) for value in values]


def _times(table: Table, columns: Columns, rows: int) -> list[int]:
    """Times in ns. Whole numbers keep every digit; without a column events are a microsecond apart."""
    if columns.time is None:
        return [row * 1000 for row in range(rows)]
    values = _column(table, columns.time)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ValueError(
            f"column {columns.time} has type {values.dtype}, shape {values.shape}: allowed is a number a row"
        )
    if bad := [row for row in range(rows) if not np.isfinite(values[row])]:
        raise ValueError(f"column {columns.time}, row {bad[0]}: {values[bad[0]]} is no time")
    scale = UNITS[columns.unit]
    return [round(float(value) * scale) if values.dtype.kind == "f" else int(value) * scale for value in values]


def _payload(table: Table, columns: Columns, rows: int) -> tuple[np.ndarray, np.dtype | None]:
    """Bytes of the rows, shape (rows, bytes), and the type of a row where it is one array or several."""
    fields: list[tuple] = []
    for name in columns.payload:
        values = _column(table, name)
        if values.dtype.kind not in "iufcbSV" or len(values) != rows:
            allowed = f"numbers or bytes of one length in each of {rows} rows"
            raise ValueError(f"column {name} has type {values.dtype}, shape {values.shape}: allowed are {allowed}")
        fields.append((name, values.dtype.newbyteorder("<"), values.shape[1:]))
    records = np.zeros(rows, np.dtype(fields))
    for name, *_ in fields:
        records[name] = table[name]
    if not records.dtype.itemsize:
        raise ValueError(f"columns {', '.join(columns.payload)} have no bytes")
    return records.view(np.uint8).reshape(rows, -1), records.dtype


def _events(table: Table, columns: Columns) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    """Events of a table. Without `source` a row is an event and is cut into `modules` equal pieces."""
    rows = len(_column(table, columns.payload[0]))
    if not rows:
        raise ValueError("there is no event in the file")
    payload, kind = _payload(table, columns, rows)
    numbers = _numbers(table, columns.number) if columns.number else None
    times = _times(table, columns, rows)
    types = _numbers(table, columns.trigger) if columns.trigger else [0] * rows
    if columns.source is None:
        pieces = columns.modules or 1
        cut, module = _cut(kind, pieces)
        events = (
            Event(numbers[row] if numbers else row, times[row], types[row], _pieces(payload[row].tobytes(), cut))
            for row in range(rows)
        )
        return events, list(range(pieces)), module
    if numbers is None:
        raise ValueError("--source needs --event-number: it says which rows are one event")
    owners = _numbers(table, columns.source)
    sources = sorted(set(owners))
    rows_of: dict[int, dict[int, int]] = {}
    for row, (number, owner) in enumerate(zip(numbers, owners, strict=True)):
        if owner in rows_of.setdefault(number, {}):
            raise ValueError(f"row {row}: event {number} has source {owner} already, in row {rows_of[number][owner]}")
        rows_of[number][owner] = row
    whole = all(len(found) == len(sources) for found in rows_of.values())

    def joined() -> Iterator[Event]:
        for number, found in rows_of.items():
            first = min(found.values())
            modules = [payload[found[owner]].tobytes() if owner in found else b"" for owner in sources]
            yield Event(number, times[first], types[first], modules)

    return joined(), sources, kind if whole else None


def _cut(kind: np.dtype | None, pieces: int) -> tuple[int, np.dtype | None]:
    """Bytes of each of so many pieces of a row, and a piece's type: the first axis of a single array may be cut."""
    assert kind is not None
    if kind.itemsize % pieces:
        raise ValueError(f"--modules {pieces}: a row of {kind.itemsize} bytes does not divide into as many pieces")
    size = kind.itemsize // pieces
    if pieces == 1:
        return size, kind
    [name, *others] = kind.names or ()
    base, shape = kind[name].base, kind[name].shape
    if others or not shape or shape[0] % pieces:
        return size, None
    inner = (shape[0] // pieces, *shape[1:])
    return size, np.dtype([(name, base, inner)])


def _pieces(payload: bytes, size: int) -> list[bytes]:
    return [payload[at : at + size] for at in range(0, len(payload), size)]


def fits(path: Path, hdu: int | None, columns: Columns) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    """Rows of a binary table of a FITS file; the first one where `hdu` does not say which."""
    from astropy.io import fits as astropy_fits

    with astropy_fits.open(path, memmap=False) as file:
        tables = [index for index, unit in enumerate(file) if isinstance(unit, astropy_fits.BinTableHDU)]
        wanted = (tables[0] if tables else None) if hdu is None else hdu
        if wanted not in tables:
            raise ValueError(
                f"HDU {wanted} is no binary table; the file's are: {', '.join(map(str, tables)) or 'none'}"
            )
        data = file[wanted].data
        table = {name: np.array(data[name]) for name in file[wanted].columns.names}
    return _events(table, columns)


def hdf5(path: Path, columns: Columns) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    """Datasets of an HDF5 file with one row an event or fragment; fields of compound datasets as DATASET.FIELD."""
    import h5py

    table: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:

        def visit(name: str, found: Any) -> None:
            if isinstance(found, h5py.Dataset) and found.shape:
                fields = found.dtype.names
                table.update({f"{name}.{field}": found[field] for field in fields} if fields else {name: found[()]})

        file.visititems(visit)
    return _events(table, columns)


def from_csv(path: Path, kind: str, columns: Columns) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    """A table with a header line. Payload columns are numbers of type `kind`, or hexadecimal digits (`hex`)."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        lines = [(reader.line_num, row) for row in reader if row]
    table: dict[str, np.ndarray] = {}
    for line, row in lines:
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} columns, the first line has {len(header)}")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise ValueError(f"line 1: two columns are called {twice[0]}")
    named = [columns.number, columns.time, columns.trigger, columns.source]
    for index, name in enumerate(header):
        if name in columns.payload:
            parse = _digits if kind == "hex" else _number_of(np.dtype(kind))
        elif name in named:
            parse = float if name == columns.time and any("." in row[index] for _, row in lines) else int
        else:
            continue
        values = []
        for line, row in lines:
            try:
                values.append(parse(row[index].strip()))
            except (ValueError, OverflowError):
                allowed = "hexadecimal digits" if parse is _digits else kind if name in columns.payload else "a number"
                raise ValueError(f"line {line}, column {name}: `{row[index]}`: allowed is {allowed}") from None
        if parse is _digits:
            if len(set(map(len, values))) > 1:
                raise ValueError(
                    f"column {name}: rows of {min(map(len, values))} to {max(map(len, values))} bytes; pad them"
                )
            table[name] = np.array([np.frombuffer(value, np.uint8) for value in values])
        else:
            table[name] = np.array(values, kind) if name in columns.payload else np.array(values)
    missing = [name for name in (*columns.payload, *named) if name and name not in table]
    if missing:
        raise ValueError(f"there is no column {missing[0]}; line 1 has: {', '.join(header) or 'nothing'}")
    return _events(table, columns)


def _digits(text: str) -> bytes:
    return bytes.fromhex(text)


def _number_of(kind: np.dtype) -> Callable[[str], Any]:
    if kind.kind not in "iuf":
        raise ValueError(f"--type {kind}: allowed are whole numbers, floating point (u2, i4, f4, ...) and hex")

    def parse(text: str) -> int | float:
        if kind.kind == "f":
            return float(text)
        value, limits = int(text), np.iinfo(kind)
        if not limits.min <= value <= limits.max:
            raise ValueError
        return value

    return parse


def raw(path: Path, description: Path) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    """Records of one length, one behind the other, as a description in TOML says (docs/your-data.md)."""
    said = tomllib.loads(description.read_text(encoding="utf-8"))
    allowed = {"skip", "fields", "payload", "event_number", "time", "time_unit", "trigger_type", "source", "modules"}
    if strange := sorted(set(said) - allowed):
        raise ValueError(f"{description}: key {strange[0]}: allowed are {', '.join(sorted(allowed))}")
    fields = said.get("fields")
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
    skip, size = said.get("skip", 0), path.stat().st_size
    if not isinstance(skip, int) or not 0 <= skip <= size:
        raise ValueError(f"{description}: skip = {skip}: allowed is 0 to {size}, the bytes of {path}")
    if not record.itemsize or (size - skip) % record.itemsize:
        left = (size - skip) % max(record.itemsize, 1)
        raise ValueError(
            f"{path}: {size - skip} bytes are no whole number of records of {record.itemsize}; {left} are left"
        )
    data = np.fromfile(path, record, offset=skip)
    payload = said.get("payload", [])
    columns = Columns(
        [payload] if isinstance(payload, str) else payload,
        said.get("event_number"), said.get("time"), said.get("time_unit", "ns"), said.get("trigger_type"),
        said.get("source"), said.get("modules"),
    )  # fmt: skip
    if not columns.payload:
        raise ValueError(f"{description}: payload is missing: the name of a field, or a list of them")
    if columns.unit not in UNITS:
        raise ValueError(f"{description}: time_unit {columns.unit}: allowed are {', '.join(UNITS)}")
    if columns.modules is not None and (not isinstance(columns.modules, int) or columns.modules < 1):
        raise ValueError(f"{description}: modules = {columns.modules}: allowed is 1 and more")
    return _events({name: data[name] for name in record.names or ()}, columns)


def zfits(path: Path, payload: str | None, modules: int | None) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    """Events of a camera's zfits file (CTAO's protozfits): the waveforms, cut into modules of equal length."""
    import protozfits

    with protozfits.File(str(path)) as file:
        if not hasattr(file, "Events"):
            raise ValueError("there is no table Events")
        # The rows are used while the file is open: protozfits reads after a close without looking.
        rows = list(file.Events)
        if not rows:
            raise ValueError("table Events is empty")
        name = payload or next((name for name in ZFITS_WAVEFORMS if _has_samples(rows[0], name)), None)
        if name is None:
            raise ValueError(f"none of {', '.join(ZFITS_WAVEFORMS)} has samples; name another field with --payload")
        first = _attribute(rows[0], name)
        if not isinstance(first, np.ndarray) or not first.size or first.dtype.kind not in "iuf":
            raise ValueError(f"--payload {name}: no array of numbers; an event has {', '.join(rows[0]._fields)}")
        if odd := next(
            (row for row, event in enumerate(rows) if np.shape(_attribute(event, name)) != first.shape), None
        ):
            raise ValueError(f"event {odd}: {name} has another number of samples than in event 0; choose another field")
        table: dict[str, np.ndarray] = {
            name: np.stack([_attribute(event, name) for event in rows]),
            "number": np.array([_first(event, ZFITS_NUMBERS, row) for row, event in enumerate(rows)]),
            "type": np.array([int(_first(event, ZFITS_TYPES, 0)) for event in rows]),
        }
        times = [_zfits_time(event) for event in rows]
        if timed := all(time is not None for time in times):
            table["time"] = np.array([time or 0 for time in times], np.uint64)
    return _events(table, Columns([name], "number", "time" if timed else None, "ns", "type", None, modules))


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
        own = kinds.add_parser(name, help=text, description=text)
        own.add_argument("input", type=Path, metavar="IN")
        own.add_argument("output", type=Path, metavar="OUT.npz")
        own.add_argument("--events", type=_positive, metavar="N", help="at most this many events, the first ones")
        return own

    def columns(own: argparse.ArgumentParser) -> None:
        own.add_argument(
            "--payload", required=True, metavar="COLUMN[,COLUMN]", help="the bytes of a row, in this order"
        )
        own.add_argument("--event-number", metavar="COLUMN", help="without it rows are numbered from 0")
        own.add_argument("--time", metavar="COLUMN", help="without it events are a microsecond apart")
        own.add_argument("--time-unit", choices=UNITS, default="ns")
        own.add_argument("--trigger-type", metavar="COLUMN", help="0 to 65535; without it 0")
        own.add_argument("--source", metavar="COLUMN", help="a row is the fragment of this source, not an event")
        own.add_argument("--modules", type=_positive, metavar="N", help="cut each row into so many equal modules")

    own = kind("zfits", "a camera's zfits file, by protozfits")
    own.add_argument(
        "--payload", metavar="FIELD", help=f"default: the first with samples of {', '.join(ZFITS_WAVEFORMS)}"
    )
    own.add_argument("--modules", type=_positive, metavar="N", help="cut the waveforms into so many equal modules")
    own = kind("fits", "a binary table of a FITS file, by astropy")
    own.add_argument("--hdu", type=int, metavar="N", help="which table; default: the first")
    columns(own)
    columns(kind("hdf5", "datasets of an HDF5 file, by h5py"))
    own = kind("csv", "comma-separated values with a header line")
    columns(own)
    own.add_argument("--type", default="u2", help="of the payload's numbers: u1, u2, i4, f4, ... or hex (default u2)")
    own = kind("raw", "binary records of one length")
    own.add_argument("--description", type=Path, required=True, metavar="FILE.toml", help="what the bytes are")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: allowed is 1 and more")
    return int(text)


def _read(asked: argparse.Namespace) -> tuple[Iterator[Event], list[int], np.dtype | None]:
    if asked.kind == "zfits":
        return zfits(asked.input, asked.payload, asked.modules)
    if asked.kind == "raw":
        return raw(asked.input, asked.description)
    if asked.source and asked.modules:
        raise ValueError("--modules cuts events; with --source a row is one module already: leave one of them out")
    columns = Columns(
        asked.payload.split(","), asked.event_number, asked.time, asked.time_unit, asked.trigger_type, asked.source,
        asked.modules,
    )  # fmt: skip
    if asked.kind == "fits":
        return fits(asked.input, asked.hdu, columns)
    if asked.kind == "hdf5":
        return hdf5(asked.input, columns)
    return from_csv(asked.input, asked.type, columns)


def main() -> int:
    asked = _arguments().parse_args()
    try:
        with asked.input.open("rb"):  # the libraries' own words for this are many
            pass
        events, sources, module = _read(asked)
        limited = (event for count, event in enumerate(events) if asked.events is None or count < asked.events)
        written = write(asked.output, limited, sources, module)
    except ModuleNotFoundError as error:
        print(f"error: {asked.kind} needs the package {error.name}: pip install {error.name}", file=sys.stderr)
        return 2
    except (OSError, ValueError, TypeError) as error:
        print(f"error: {asked.input}: {error}", file=sys.stderr)
        return 2
    print(f"{written} events of {len(sources)} modules written to {asked.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
