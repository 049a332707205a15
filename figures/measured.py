# SPDX-License-Identifier: Apache-2.0
"""Measured tables: rows that commands write into docs/measured/*.json, rendered when the site is built.

A file has the columns of each table and its rows, one a line. A page shows a table by a line that is a link to its
rows, `[Rows: NAME](measured/FILE.json)`. In the root of the repository this prints a page with its tables:

    python -m figures.measured docs/synthesis.md
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
SYNTHESIS, FIGURES, BENCH, PULL = (
    DOCS / "measured" / f"{name}.json" for name in ("synthesis", "figures", "bench", "pull")
)
LINK = re.compile(r"^\[Rows: ([^\]]+)\]\((measured/\w+\.json)\)$", re.MULTILINE)
WIDE = 10  # columns; the paths of a wider table are in a table of their own
PATHS = "levels"  # the first column of these
NAMES = {"from", "to", "block", "memory"}

Row = Mapping[str, str | int | float | None]


def read(file: Path = SYNTHESIS) -> dict[str, list[Row]]:
    """The rows of each table."""
    tables = json.loads(file.read_text())
    return {
        name: [dict(zip(table["columns"], cells, strict=True)) for cells in table["rows"]]
        for name, table in tables.items()
    }


def put(table: str, rows: Sequence[Row], order: Sequence[tuple], file: Path = SYNTHESIS) -> None:
    """Writes rows into a table; `order` has the first cells of every row that it may have. Others stay as they are."""
    tables = read(file)
    width = len(order[0])
    by_key = {tuple(row.values())[:width]: row for row in [*tables.get(table, []), *rows]}
    tables[table] = [by_key[key] for key in order if key in by_key]
    write(tables, file)


def replace(tables: Mapping[str, Sequence[Row]], file: Path) -> None:
    """Writes whole tables; others stay as they are."""
    write({**read(file), **tables}, file)


def write(tables: Mapping[str, Sequence[Row]], file: Path = SYNTHESIS) -> None:
    """All tables; the columns of one are those of its first row."""
    texts = []
    for name, rows in tables.items():
        columns = list(rows[0])
        lines = ",\n".join(json.dumps([row.get(column) for column in columns]) for row in rows)
        texts.append(f'{json.dumps(name)}: {{"columns": {json.dumps(columns)}, "rows": [\n{lines}\n]}}')
    file.write_text("{\n" + ",\n".join(texts) + "\n}\n")


def markdown(rows: Sequence[Row]) -> str:
    """A table; of a wide one its paths follow in a second, with the first columns repeated."""
    columns = list(rows[0])
    if len(columns) <= WIDE or PATHS not in columns:
        return _table(columns, rows)
    at = columns.index(PATHS)
    first = next(n for n, column in enumerate(columns) if column == "LUT")
    return (
        _table(columns[:at], rows)
        + "\n"
        + _table([*columns[:first], *columns[at:]], [r for r in rows if r.get(PATHS) is not None])
    )


def _table(columns: Sequence[str], rows: Sequence[Row]) -> str:
    lines = [columns, ["---"] * len(columns), *([_cell(column, row) for column in columns] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(column: str, row: Row) -> str:
    value = row.get(column)
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return f"`{text}`" if column in NAMES and text and not text.endswith(("more", "*")) else text


def rendered(page: str) -> str:
    """The page of docs/ with its tables. KeyError if there is no table of that name."""
    return LINK.sub(lambda found: markdown(read(DOCS / found[2])[found[1]]).rstrip("\n"), page)


if __name__ == "__main__":
    print(rendered(Path(sys.argv[1]).read_text()))
