# SPDX-License-Identifier: Apache-2.0
"""`penstock figures`: pictures and numbers from the papers' scenarios, as docs/results.md has them."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, TIMEOUT_S, Penstock

QUICK = ["advcam-4", "advcam-5"]


def figures(penstock: Penstock, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(tuple(f"| {name} |" for name in QUICK))]


def test_the_page_of_results_has_the_numbers_that_the_figures_give(penstock: Penstock, tmp_path: Path) -> None:
    done = figures(penstock, *QUICK, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    measured = rows(done.stdout)
    assert len(measured) > 8
    assert measured == rows((ROOT / "docs/results.md").read_text())
    for name in QUICK:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG"), name


def test_a_figure_that_does_not_exist_is_refused_with_those_that_do(penstock: Penstock) -> None:
    done = figures(penstock, "advcam-99")
    assert done.returncode == 2
    assert "advcam-99" in done.stderr and "advcam-12" in done.stderr
