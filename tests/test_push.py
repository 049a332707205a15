# SPDX-License-Identifier: Apache-2.0
"""`penstock figures push`: what helps boards that push, with the numbers of docs/congestion-control.md."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT_S, Penstock


def test_divided_shares_and_staggered_boards_shorten_queues_and_larger_steps_do_not(
    penstock: Penstock, tmp_path: Path
) -> None:
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", "push", "--check", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "push.png").read_bytes().startswith(b"\x89PNG")
    lines = [line for line in done.stdout.splitlines() if line.startswith("| push |")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    measured = {quantity: float(value.split()[0]) for _, quantity, _, value, *_ in cells}

    def of(case: str, quantity: str) -> list[float]:
        """A quantity in the ways of a case, in their order."""
        return [v for name, v in measured.items() if name.startswith(f"{case}, ") and name.endswith(f": {quantity}")]

    whole, divided = of("16 boards with 4 queue pairs each", "queue, 99 %")
    assert whole > 4 * divided
    at_once, staggered = of("256 boards, first 200 ms", "queue, 99 %")
    assert at_once > 3 * staggered
    at_once, staggered = of("events of 64 boards", "longest queue")
    assert at_once > 1.4 * staggered
    of_queue_pair, in_4_us, longer_4, in_50_us, longer_50 = of("64 boards, one CNP", "queue, 99 %")
    assert min(in_4_us, in_50_us) > 10 * max(of_queue_pair, longer_4, longer_50)
    assert max(longer_4, longer_50) <= of_queue_pair
    slow, fast = of("16 of 256 boards", "95 % of the line after")
    assert slow > 5 * fast, "larger steps fill an unused line sooner"
    before, after = of("16 boards, 64 from 120 ms on", "delivered")
    assert before > after + 1, "and lose more of it than they win"
