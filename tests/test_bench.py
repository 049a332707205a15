# SPDX-License-Identifier: Apache-2.0
"""`make bench`: its table, its JSON, and the rows that it puts into the pages."""

import json
from collections.abc import Callable
from pathlib import Path

import bench
import measuring
import pytest
from conftest import ROOT

from figures import measured

Written = Callable[..., dict]


def no_rows() -> list[dict]:
    raise measuring.NotHereError("it needs a second machine")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Runs the bench with parts that measure nothing; returns the tables of the pages afterwards."""
    file = tmp_path / "tables.json"
    measured.write({"fast": [{"what": "of before", "measured": "1 s"}], "absent": [{"what": "kept"}]}, file)
    rows = [
        measuring.row("frames", 38_300_000.4, "1/s", 2e6, "higher"),
        measuring.row("latency", 21.25, "us", 20, "lower", command="an example"),
        measuring.row("load", 0.5, "", None, "lower"),
    ]
    monkeypatch.setattr(measured, "BENCH", file)
    monkeypatch.setattr(bench, "PARTS", {"fast": lambda: iter(rows), "absent": no_rows})

    def run(*words: str) -> dict:
        monkeypatch.setattr("sys.argv", ["bench.py", "--out", str(tmp_path), *words])
        assert bench.main() == 0
        return measured.read(file)

    return run


def test_the_table_has_each_row_with_its_target_and_whether_it_is_met(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written()["fast"] == [{"what": "of before", "measured": "1 s"}], "pages change with --docs alone"
    printed = capsys.readouterr()
    head, *lines, last = printed.out.splitlines()
    assert head.split() == ["measured", "target"] and last == f"written: {tmp_path}/bench.json"
    assert [line.split() for line in lines] == [
        ["frames", "3.83e+07", ">=", "2e+06", "1/s", "met"],
        ["latency", "21.25", "<=", "20", "us", "MISSED"],
        ["load", "0.5"],
    ]
    assert "bench: no absent: it needs a second machine" in printed.err
    rows = json.loads((tmp_path / "bench.json").read_text())
    assert [row["met"] for row in rows] == [True, False, None]
    assert [row["command"] for row in rows[:2]] == [".venv/bin/python tests/bench.py --part 'fast'", "an example"]


def test_docs_puts_the_rows_of_a_part_into_the_pages_and_leaves_those_it_could_not_measure(written: Written) -> None:
    tables = written("--docs")
    assert tables["absent"] == [{"what": "kept"}]
    commit = measuring.shell("git rev-parse --short=7 HEAD").strip()
    assert [tuple(row.values()) for row in tables["fast"]] == [
        ("frames", "38,300,000 1/s", ">= 2,000,000", "met", commit),
        ("latency", "21.25 us", "<= 20", "missed", commit),
        ("load", "0.5", None, None, commit),
    ]


def test_every_table_of_the_bench_is_on_a_page_and_is_that_of_a_part() -> None:
    shown = {
        table
        for page in (ROOT / "docs").glob("*.md")
        for table, file in measured.LINK.findall(page.read_text())
        if file == "measured/bench.json"
    }
    assert shown == set(measured.read(measured.BENCH)) <= {*bench.PARTS, "polling with verbs"}
