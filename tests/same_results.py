#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the results of two builds: summary, events and trace of each run, value for value.

    tests/same_results.py OLD NEW [--renamed KEYS.toml]

OLD and NEW each hold one folder per run, made by `penstock run ... --out OLD/NAME`. All values of `summary.json`
except `timing` are compared. Events and traces are compared by content: the encoding of a Parquet file may change,
its rows may not. The order of events may not change either; a trace is compared series by series. A table of renamed
keys carries results over a change of names.
Status 0: all are equal; 1: something differs; 2: there is nothing to compare.
"""

import argparse
import json
import math
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# What depends on the machine and not on the run.
VOLATILE = ("timing",)
MOST_LINES = 20

# The tables of a file of renamed keys.
Names = dict[str, dict[str, Any]]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a JSON document with its path: `boards.0.goodput_bps`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            # A name may hold dots itself (`settings` has scenario keys).
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}.{index}")
    else:
        yield path, value


def summary(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "summary.json").read_text())
    return dict(leaves({key: value for key, value in document.items() if key not in VOLATILE}))


def same(old: Any, new: Any, factor: float = 1.0) -> bool:
    """Whether values are equal; under a change of unit, but for the rounding of a last bit or two."""
    if factor != 1.0 and isinstance(old, float | int) and isinstance(new, float | int):
        return math.isclose(old * factor, new, rel_tol=1e-14)
    if isinstance(old, float) and isinstance(new, float):
        return old == new or (math.isnan(old) and math.isnan(new))
    return bool(old == new)


def renamed(path: str, names: dict[str, str]) -> str | None:
    """The path in the new layout; `*` in a pattern matches one part and is carried over. None: the value is removed."""
    for old, new in names.items():
        pattern, parts = old.split("."), path.split(".")
        if len(pattern) != len(parts) or any(p not in ("*", q) for p, q in zip(pattern, parts, strict=True)):
            continue
        if not new:
            return None
        kept = iter([q for p, q in zip(pattern, parts, strict=True) if p == "*"])
        return ".".join(next(kept) if part == "*" else part for part in new.split("."))
    return path


def compare_summaries(old: Path, new: Path, names: dict[str, str], factors: dict[str, float]) -> Iterator[str]:
    before, after = summary(old), summary(new)
    for path, value in before.items():
        target = renamed(path, names)
        if target is None:
            continue
        if target not in after:
            yield f"summary.json: {path} = {value!r} has no {target}"
        elif not same(value, after[target], factors.get(path.rsplit(".", 1)[-1], 1.0)):
            yield f"summary.json: {path} = {value!r}, now {target} = {after[target]!r}"


def under_new_names(rows: pa.Table, column: str, names: dict[str, str]) -> pa.Table:
    if column not in rows.column_names or not names:
        return rows
    values = [names.get(value, value) for value in rows[column].to_pylist()]
    return rows.set_column(rows.column_names.index(column), column, pa.array(values, pa.string()))


def table(path: Path, metrics: dict[str, str], nodes: dict[str, str]) -> pa.Table:
    """A table of plain columns; metrics and nodes under their new names, metrics that are gone left out."""
    rows = pq.read_table(path)
    for index, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            rows = rows.set_column(index, field.name, pc.cast(rows.column(index), field.type.value_type))
    if "metric" in rows.column_names and metrics:
        gone = pa.array([old for old, new in metrics.items() if not new], pa.string())
        rows = rows.filter(pc.invert(pc.is_in(rows["metric"], gone)))
    rows = under_new_names(under_new_names(rows, "metric", metrics), "node", nodes)
    return rows.replace_schema_metadata(None)


def by_series(rows: pa.Table) -> pa.Table:
    """A trace ordered by series and time; another table as it is."""
    series = ["node", "channel", "metric", "time_ps", "value"]
    return rows.sort_by([(name, "ascending") for name in series]) if set(series) <= set(rows.column_names) else rows


def without_added(before: pa.Table, after: pa.Table, added: list[str]) -> pa.Table:
    """The new rows but those of metrics that were added since."""
    if "metric" not in before.column_names or not added:
        return after
    known = set(pc.unique(before["metric"]).to_pylist())
    fresh = pa.array([metric for metric in added if metric not in known], pa.string())
    return after.filter(pc.invert(pc.is_in(after["metric"], fresh)))


def compare_tables(old: Path, new: Path, names: Names) -> Iterator[str]:
    if not new.exists():
        yield f"{old.name}: missing"
        return
    before, after = table(old, names.get("metric", {}), names.get("node", {})), table(new, {}, {})
    after = without_added(before, after, names.get("added", {}).get("metrics", []))
    if before.column_names != after.column_names:
        yield f"{old.name}: columns {before.column_names}, now {after.column_names}"
        return
    if before.num_rows != after.num_rows:
        yield f"{old.name}: {before.num_rows} rows, now {after.num_rows}"
        return
    before, after = by_series(before), by_series(after)
    for name in before.column_names:
        left, right = before[name].combine_chunks(), after[name].combine_chunks()
        if left.equals(right):
            continue
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        row, values = next((row, pair) for row, pair in enumerate(pairs) if not same(*pair))
        yield f"{old.name}: column {name}, row {row}: {values[0]!r}, now {values[1]!r}"


def compare(old: Path, new: Path, names: Names) -> list[str]:
    """What differs between two folders of one run."""
    if not (new / "summary.json").exists():
        return ["summary.json: missing"]
    found = list(compare_summaries(old, new, names.get("summary", {}), names.get("factor", {})))
    for path in sorted(old.glob("*.parquet")):
        found += compare_tables(path, new / path.name, names)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    tables = "TOML: [summary], [metric], [node]: old name = new name, empty: gone; [factor]; [added]"
    parser.add_argument("--renamed", type=Path, help=tables)
    arguments = parser.parse_args()
    names = tomllib.loads(arguments.renamed.read_text()) if arguments.renamed else {}
    runs = sorted(path.parent for path in arguments.old.glob("*/summary.json"))
    if not runs:
        print(f"no run in {arguments.old}: expected FOLDER/summary.json in it", file=sys.stderr)
        return 2
    different = 0
    for run in runs:
        found = compare(run, arguments.new / run.name, names)
        different += bool(found)
        for line in found[:MOST_LINES]:
            print(f"{run.name}: {line}")
        if len(found) > MOST_LINES:
            print(f"{run.name}: {len(found) - MOST_LINES} more")
    print(f"{len(runs)} runs, {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
