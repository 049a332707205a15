# SPDX-License-Identifier: Apache-2.0
"""`penstock figures stability`: from twice the share every loop of profile "penstock" settles around the line."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT_S, Penstock


def test_from_twice_the_share_rates_settle_at_the_line_whatever_boards_and_delay(
    penstock: Penstock, tmp_path: Path
) -> None:
    """3 to 256 boards, 1 and 50 us a link; Zhu et al.'s parameters do not, and the pages have these numbers."""
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", "stability", "--check", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "stability.png").read_bytes().startswith(b"\x89PNG")
    lines = [line for line in done.stdout.splitlines() if line.startswith("| stability |")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    measured = {quantity: float(value.split()[0]) for _, quantity, _, value, *_ in cells}
    ours = {quantity: value for quantity, value in measured.items() if quantity.startswith("penstock: ")}
    assert len(ours) == 18
    for quantity, value in ours.items():
        limits = (0, 250) if "queue" in quantity else (0.93, 1.06)
        assert limits[0] <= value <= limits[1], (quantity, value)
    assert measured["zhu: 3 boards, 50us a link, sum of R_C, 1 %"] < 0.5, "it circles"
    assert measured["zhu: 64 boards, 1us a link, sum of R_C, 1 %"] > 60, "it stays behind PFC"
