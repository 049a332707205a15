# SPDX-License-Identifier: Apache-2.0
"""The cases of pull (`figures/pull.py`) have the numbers of docs/measured/pull.json.

`make figures-check` runs all of them.
"""

import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT)]

from figures import measured, pull  # noqa: E402

ROWS = measured.read(measured.PULL)[pull.TABLE]
# One of each kind, in seconds.
QUICK = (
    "16 of 256 into 10G, first ms",
    "zipf by event 96x1 10G 80 %",
    "sparse 96x4 10G 50 %",
    "on and off 200 kB, 50 %",
    "server's link at half speed",
    "uplinks of 10G under 24 boards",
    "other traffic of 3 Gb/s: all",
    "verilated: zipf by event 4x1 10G 80 %",
    "verilated: join and leave every 300 us",
)


@pytest.fixture(scope="module")
def made(built: Path) -> list[dict]:
    """These cases, run."""
    return pull.run([str(built / "examples/pull_cases")], QUICK)


def test_cases_have_the_numbers_of_the_page(made: list[dict]) -> None:
    rows = [pull.row(case) for case in made]
    assert [row["case"] for row in rows] == sorted(QUICK, key=[row["case"] for row in ROWS].index)
    assert pull.differences(rows, ROWS) == [], "write it with `python -m figures.pull --docs`"


def test_no_queue_is_longer_than_its_bound(made: list[dict]) -> None:
    bounds = [case for case in made if case["bound_bytes"] is not None]
    assert len(bounds) == len(QUICK) - 1, "other traffic has none"
    assert [case["case"] for case in bounds if case["queue_peak_bytes"] > case["bound_bytes"]] == []


def test_every_case_of_the_page_meets_its_goals_or_gives_the_reason() -> None:
    assert len(ROWS) >= 40
    missed = [str(row[""]) for row in ROWS if row[""]]
    assert len(missed) < len(ROWS) / 5
    assert [text for text in missed if len(text.partition(": ")[2]) < 20 or "no reason is given" in text] == []


def test_a_difference_is_found() -> None:
    changed = {**ROWS[0], "pull": "0.01 Gb/s"}
    assert [line[0] for line in pull.differences([changed], ROWS)] == ["-", "+"]
