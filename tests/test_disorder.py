# SPDX-License-Identifier: Apache-2.0
"""`penstock figures disorder`: unequal loads, with the numbers and lessons of docs/congestion-control.md."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT_S, Penstock

sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from figures import disorder, measured  # noqa: E402

ROWS = {(row["case"], row["quantity"]): row for row in measured.read(measured.FIGURES)["disorder cases"]}
NAMES = [case.name for case in disorder.CASES]
LOST_BY_PULL = NAMES[-4:-2] + NAMES[-1:]


def number(case: str, quantity: str, way: str) -> float:
    return float(str(ROWS[case, quantity][way]).split()[0])


def parts(way: str) -> dict[str, float]:
    """How near each case comes to the ideal."""
    found = {}
    for case in disorder.CASES:
        ours, ideal = (number(case.name, case.about, of) for of in (way, disorder.IDEAL))
        found[case.name] = ideal / ours if case.about in disorder.TIMES else ours / ideal
    return found


def test_the_page_has_the_numbers_that_the_figure_gives(penstock: Penstock, tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", "disorder", "--check", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "disorder.png").read_bytes().startswith(b"\x89PNG")
    assert "| links of 200 us | longest queue |" in done.stdout


def test_pull_is_near_the_ideal_but_for_the_loads_that_the_page_names() -> None:
    near = {name for name, part in parts("pull").items() if part >= disorder.NEAR}
    assert set(NAMES) - near == set(LOST_BY_PULL)
    for way in ("PFC alone", "Table II", "QCN"):
        for name in NAMES:
            assert number(name, "longest queue", "pull") < number(name, "longest queue", way) / 3


@pytest.mark.parametrize(
    ("case", "way", "is_so"),
    [
        ("64 of 64 boards", "penstock", lambda part: part > 0.98),
        ("16 of 256 boards", "penstock", lambda part: part < 0.4),
        ("events, hot spots", "penstock", lambda part: part < 0.03),
        ("events, hot spots with weights", "penstock", lambda part: part > 0.75),
        ("events of 1 in 16 boards", "PFC alone", lambda part: part < 0.6),
        ("leaves of 48, 6 and 6 into 25G", "PFC alone", lambda part: part > 0.98),
        ("a flow to another server", "PFC alone", lambda part: part < 0.01),
        ("events, equal fragments", "Table II", lambda part: part < 0.1),
        ("250 kB on and off, 80 %", "QCN", lambda part: part < 0.1),
    ],
)
def test_the_lessons_of_the_page_about_pushed_boards_are_in_the_rows(
    case: str, way: str, is_so: Callable[[float], bool]
) -> None:
    assert is_so(parts(way)[case])
