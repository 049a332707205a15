# SPDX-License-Identifier: Apache-2.0
"""Columns of tables in FITS, HDF5 and CSV files, for `penstock.convert`.

Promise: only the columns that are named are read, and of these only the first rows; links are followed; a row of
variable length is an array of its own. Source: the FITS standard (binary tables), the HDF5 file format, RFC 4180.
"""

import contextlib
import csv
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

# Digits that a decimal number may have in front of its point: 10^40 is far beyond every time and event number.
MAX_DECIMAL_EXPONENT = 40
NAMES_SHOWN = 40


@dataclass(frozen=True)
class Column:
    """A column with `rows` rows. `read(n)` gives the first n of them: an array, or a list of arrays of any length."""

    rows: int
    read: Callable[[int], Any]


@dataclass(frozen=True)
class Table:
    """Columns by name. `find` gives None for a name that there is not; `names` is for messages."""

    find: Callable[[str], Column | None]
    names: Callable[[], list[str]]

    def column(self, name: str) -> Column:
        """Raises ValueError where there is no such column."""
        if found := self.find(name):
            return found
        names = self.names()
        more = f", ... ({len(names)} in all)" if len(names) > NAMES_SHOWN else ""
        there = ", ".join(names[:NAMES_SHOWN]) + more or "none"
        raise ValueError(f"there is no column {name}; there are: {there}")


def of_arrays(arrays: Mapping[str, Any]) -> Table:
    """A table of arrays, or lists, that are in memory."""

    def find(name: str) -> Column | None:
        if name not in arrays:
            return None
        values = arrays[name]
        return Column(len(values), lambda rows: values[:rows])

    return Table(find, lambda: list(arrays))


@contextlib.contextmanager
def fits_table(path: Path, hdu: int | None) -> Iterator[Table]:
    """A binary table of a FITS file; the first one where `hdu` does not say which."""
    from astropy.io import fits

    with fits.open(path, memmap=True) as file:
        tables = [index for index, unit in enumerate(file) if isinstance(unit, fits.BinTableHDU)]
        selected = (tables[0] if tables else None) if hdu is None else hdu
        if selected not in tables:
            raise ValueError(
                f"HDU {selected} is no binary table; the file's are: {', '.join(map(str, tables)) or 'none'}"
            )
        unit = file[selected]
        if unit.header.get("ZTABLE"):
            raise ValueError(
                f"HDU {selected} is a compressed table: `funpack` decompresses it; zfits is a kind of its own"
            )

        def find(name: str) -> Column | None:
            columns = {column.lower(): column for column in unit.columns.names}
            if (exact := columns.get(name.lower())) is None:
                return None

            def read(rows: int) -> Any:
                values = unit.data[:rows][exact]
                # Formats P and Q: the rows are in the heap.
                return list(values) if values.dtype == object else np.array(values)

            return Column(unit.header["NAXIS2"], read)

        yield Table(find, lambda: unit.columns.names)


@contextlib.contextmanager
def hdf5_table(path: Path) -> Iterator[Table]:
    """Datasets of an HDF5 file with one row an event or fragment; fields of compound datasets as DATASET.FIELD."""
    import h5py

    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("hdf5plugin")  # registers the filters of detectors' files
    with h5py.File(path) as file:

        def dataset(name: str) -> Any:
            try:
                found = file[name]
            except (KeyError, OSError) as error:
                link = file.get(name, getlink=True)
                if isinstance(link, h5py.ExternalLink):
                    raise ValueError(f"column {name} is a link to {link.path} in {link.filename}: {error}") from None
                if isinstance(link, h5py.SoftLink):
                    raise ValueError(f"column {name} is a link to {link.path}: {error}") from None
                return None
            return found if isinstance(found, h5py.Dataset) and found.shape else None

        def find(name: str) -> Column | None:
            # A dataset's name may have dots, too: the longest one that there is.
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                stem, fields = ".".join(parts[:end]), parts[end:]
                if stem not in file and file.get(stem, getlink=True, default=None) is None:
                    continue
                if (found := dataset(stem)) is None:
                    continue
                kind = found.dtype
                for field in fields:
                    if field not in (kind.names or ()):
                        return None
                    kind = kind[field].base
                if kind.names:
                    raise ValueError(f"column {name} is compound; name a field: {name}.{kind.names[0]}")
                _complete(found)
                return Column(len(found), partial(_rows, found, fields, name))
            return None

        def names() -> list[str]:
            listed: list[str] = []

            def visit(name: str, link: Any) -> None:
                found = file.get(name) if isinstance(link, h5py.HardLink) else None
                if isinstance(found, h5py.Dataset) and found.shape:
                    listed.extend([f"{name}.{field}" for field in found.dtype.names or ()] or [name])
                elif found is None:
                    listed.append(name)

            file.visititems_links(visit)
            return listed

        yield Table(find, names)


def _complete(dataset: Any) -> None:
    """A virtual dataset reads as zeros where one of its files is absent. ValueError names the file."""
    for source in dataset.virtual_sources() if dataset.is_virtual else ():
        at = (Path(dataset.file.filename).parent / source.file_name).resolve()
        if source.file_name != "." and "%" not in source.file_name and not at.exists():
            raise ValueError(f"dataset {dataset.name} has rows in {at}, which is absent")


def _rows(dataset: Any, fields: list[str], name: str, rows: int) -> Any:
    import h5py

    try:
        values = dataset.fields(fields[0])[:rows] if fields else dataset[:rows]
    except OSError as error:
        hint = "; compressions of other projects: pip install hdf5plugin"
        raise ValueError(f"column {name} cannot be read: {error}{hint}") from None
    for field in fields[1:]:
        values = values[field]
    if values.dtype != object:
        return values
    if h5py.check_string_dtype(values.dtype) or (len(values) and isinstance(values[0], bytes | str)):
        texts = [text.encode() if isinstance(text, str) else text for text in values]
        return [np.frombuffer(text, np.uint8) for text in texts]
    base = h5py.check_vlen_dtype(values.dtype) or h5py.check_vlen_dtype(_type_of(dataset, fields))
    if base is not None and not base.isnative and not _reads_big_endian_rows():
        return [value.view(base) for value in values]
    return list(values)


def _type_of(dataset: Any, fields: list[str]) -> np.dtype:
    kind = dataset.dtype
    for field in fields:
        kind = kind[field]
    return kind


@cache
def _reads_big_endian_rows() -> bool:
    """Whether h5py swaps the bytes of rows of variable length. 3.16 does not, but says that it did."""
    import h5py

    foreign = np.dtype("=u2").newbyteorder("S")
    with h5py.File("rows", "w", driver="core", backing_store=False) as file:
        rows = file.create_dataset("rows", (1,), h5py.vlen_dtype(foreign))
        rows[0] = np.array([1], foreign)
        return bool(rows[0][0] == 1)


def csv_table(path: Path, kind: str, payload: list[str], decimals: list[str], rows: int | None) -> Table:
    """A table with a header line. Payload columns are numbers of type `kind`, or hexadecimal digits (`hex`); those of
    `decimals` are exact decimal numbers. At most `rows` lines are read, if that is not None."""
    with path.open(newline="", encoding=_encoding(path)) as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        filled = ((reader.line_num, row) for row in reader if row)
        lines = list(islice(filled, rows))
    for line, row in lines:
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} columns, the first line has {len(header)}")
    arrays: dict[str, Any] = {}
    for name in {*payload, *decimals}:
        if header.count(name) > 1:
            raise ValueError(f"line 1: two columns are called {name}")
        if name not in header:
            raise ValueError(f"there is no column {name}; line 1 has: {', '.join(header) or 'nothing'}")
        index = header.index(name)
        cells = [(line, row[index]) for line, row in lines]
        if name not in payload:
            arrays[name] = _parsed(cells, name, decimal, "a number")
        elif kind == "hex":
            arrays[name] = _parsed(cells, name, _digits, "hexadecimal digits")
        else:
            arrays[name] = np.array(_parsed(cells, name, _number_of(np.dtype(kind)), kind), kind)
    return of_arrays(arrays)


def _encoding(path: Path) -> str:
    """UTF-8, or what the byte order mark says."""
    with path.open("rb") as file:
        start = file.read(2)
    return "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _parsed(cells: list[tuple[int, str]], name: str, parse: Callable[[str], Any], allowed: str) -> list[Any]:
    values = []
    for line, text in cells:
        try:
            values.append(parse(text.strip()))
        except (ValueError, OverflowError):
            raise ValueError(f"line {line}, column {name}: `{text}`: allowed is {allowed}") from None
    return values


def decimal(text: str) -> Decimal:
    """The number with all of its digits. Raises ValueError where it is none, infinite, or beyond 10^40."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    if not value.is_finite() or abs(value.adjusted()) > MAX_DECIMAL_EXPONENT or len(text) > 100:
        raise ValueError
    return value


def whole(value: Decimal) -> int:
    """A whole number, also one written as 5.0 or 1e9. Raises ValueError."""
    if value != value.to_integral_value():
        raise ValueError
    return int(value)


def _digits(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.uint8)


def _number_of(kind: np.dtype) -> Callable[[str], Any]:
    if kind.kind not in "iuf":
        raise ValueError(f"--type {kind}: allowed are whole numbers, floating point (u2, i4, f4, ...) and hex")

    def parse(text: str) -> int | float:
        if kind.kind == "f":
            value = float(text)
            if np.isfinite(value) and abs(value) > np.finfo(kind).max:
                raise ValueError
            return value
        number, limits = whole(decimal(text)), np.iinfo(kind)
        if not limits.min <= number <= limits.max:
            raise ValueError
        return number

    return parse
