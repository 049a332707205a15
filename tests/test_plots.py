# SPDX-License-Identifier: Apache-2.0
"""`penstock.plots`: pictures of a page's width with a quantity on each axis, for three boards and for hundreds."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, TIMEOUT_S

sys.path.insert(0, str(ROOT / "python"))

from penstock import drawing, plots
from penstock.results import Run

METRICS = {"wire_throughput_bps": 1e9, "rate_current_bps": 1e9, "rate_target_bps": 1e9, "alpha": 1, "cnp_handled": 9}
SAMPLES = 50


def stored(folder: Path, boards: int) -> Path:
    """A run in which board n has n times a unit of every metric, and a switch with a port for each."""
    names = [f"board{n}" for n in range(boards)]
    columns = [(name, 0, metric, n * unit) for n, name in enumerate(names) for metric, unit in METRICS.items()]
    columns += [
        ("switch", port, metric, 1.0) for port in range(boards + 1) for metric in ("queue_bytes", "pfc_pausing")
    ]
    node, channel, metric, value = (np.repeat(list(column), SAMPLES) for column in zip(*columns, strict=True))
    time = np.tile(np.arange(SAMPLES, dtype=np.uint64) * 100_000_000, len(columns))
    words = {"time_ps": time, "node": node, "channel": channel.astype(np.uint16), "metric": metric, "value": value}
    pq.write_table(pa.table(words), folder / "trace.parquet")
    ports = [{"kmin_bytes": 5000, "kmax_bytes": None}] * (boards + 1)
    summary = {"simulated_s": 5e-3, "boards": [{"name": name} for name in names], "switches": [{"ports": ports}]}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


@pytest.mark.parametrize("boards", [3, 14, 265])
@pytest.mark.parametrize("picture", [plots.throughput, plots.alpha, plots.queue])
def test_a_picture_fits_a_page_and_each_axis_has_its_quantity(picture, boards: int, tmp_path: Path) -> None:
    figure = picture(Run(stored(tmp_path, boards)))
    width, height = figure.get_size_inches()
    assert width == drawing.PAGE_IN and height <= 9.5
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert all(axis.lines for axis in shown)
    assert {axis.get_xlabel() for axis in shown} - {""} == {"simulated time [ms]"}
    lefts = {axis.get_subplotspec().colspan.start: axis for axis in shown}
    assert lefts[0].get_ylabel()


def test_hundreds_of_boards_are_drawn_as_their_median(tmp_path: Path) -> None:
    above, below = plots.throughput(Run(stored(tmp_path, 265))).axes
    for axis in (above, below):
        (line,) = axis.lines
        assert np.asarray(line.get_ydata())[10:-10] == pytest.approx(132.0)


def test_drawing_leaves_the_callers_style_alone(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.queue(Run(stored(tmp_path, 3)))
    assert dict(matplotlib.rcParams) == before


def test_a_run_without_boards_is_refused_with_what_shows_it(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"flows": []}')
    done = subprocess.run(
        [sys.executable, "-m", "penstock.plots", tmp_path], cwd=ROOT / "python", capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "without boards: its report.html" in done.stderr
