# SPDX-License-Identifier: Apache-2.0
"""AdvCam figures 11 to 14 with three verilated boards as senders: `make soak`, since 0.1 s of them take some 75 s of a
core. Promise checked: without a law the boards send and are paused as the model is; with it shares, climbs and decays
are the model's, and the throughput of a board follows its registers.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Penstock

sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from penstock.results import Run  # noqa: E402

from figures.advcam import PAYLOAD_SHARE, on_off, teeth  # noqa: E402
from figures.comparison import flows, lost, mean, register, throughput  # noqa: E402

# Enough for a plateau of three flows from 0.1 s on, one of two, and the last one's climb.
SIZES = ("flow.0.size=50MB", "flow.1.size=95MB", "flow.2.size=180MB", "run.time_limit=1s", "trace.interval=1ms")
# Of figure 13 two teeth: the first sender climbs each 200 ms.
TEETH = ("run.stop=time", "run.time_limit=620ms")
# Figure 11 at a quarter of its lengths: a flow's window is a ring of 4 MB, which the model has as a window of as many
# packets.
QUARTER = (
    *(f"flow.{number}.size=40MB" for number in range(3)),
    *("qp.rings=memory", "qp.window=1024", "switch.buffer=8MB", "switch.hysteresis=1MB", "trace.interval=250us"),
)


def both(penstock: Penstock, scenario: str, folder: Path, settings: tuple[str, ...]) -> list[Run]:
    """The run of the gateware and that of the model."""
    found = []
    for sender in ("gateware", "software"):
        command = [penstock.binary, "run", ROOT / f"scenarios/{scenario}.toml", "--no-plots", "--out", folder / sender]
        for setting in (*settings, *(f"flow.{number}.sender={sender}" for number in range(3))):
            command += ["--set", setting]
        subprocess.run(command, check=True)
        found.append(Run(folder / sender))
    return found


@pytest.fixture(scope="module")
def runs(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return both(penstock, "advcam-12", tmp_path_factory.mktemp("figures"), SIZES)


def shares(run: Run) -> dict[int, float]:
    """The mean rate of a flow by how many send, settled, in Gb/s."""
    ends = [flow["end_s"] * 1e3 for flow in flows(run)]
    names = [flow["name"] for flow in flows(run)]
    of = {3: (100.0, ends[0], names), 2: (ends[0] + 40, ends[1], names[1:]), 1: (ends[2] - 10, ends[2], names[2:])}
    return {
        count: float(np.mean([mean(throughput(run, name), begin, end) for name in sending]))
        for count, (begin, end, sending) in of.items()
    }


def test_advcam_11_boards_with_rings_in_memory_send_in_bursts_and_are_silent_as_the_model_is(
    all_tops: Penstock, tmp_path: Path
) -> None:
    runs = both(all_tops, "advcam-11", tmp_path, QUARTER)
    ours, theirs = ({row.quantity: row.penstock for row in on_off([run])[1]} for run in runs)
    for quantity, within in (
        ("time at more than 90 % of the line", 0.2),
        ("time at less than 5 % of the line", 0.1),
        ("mean length of a silence", 0.2),
        ("Jain's index of 1 ms windows, mean", 0.1),
        ("aggregate until the first ends", 0.01),
    ):
        assert ours[quantity] == pytest.approx(theirs[quantity], rel=within), quantity
    assert ours["time at less than 5 % of the line"] > 40, "per cent"
    assert lost(runs[0]) == 0
    for one, other in zip(flows(runs[0]), flows(runs[1]), strict=True):
        assert one["end_s"] == pytest.approx(other["end_s"], rel=0.05)


def test_advcam_12_boards_share_the_line_and_take_what_becomes_free(runs: list[Run]) -> None:
    gateware, model = runs
    ours, theirs = shares(gateware), shares(model)
    assert ours[3] == pytest.approx(3.3, rel=0.05) and ours[2] == pytest.approx(4.9, rel=0.05) and ours[1] > 8.5
    for count, rate in ours.items():
        assert rate == pytest.approx(theirs[count], rel=0.05), f"{count} boards"
    assert lost(gateware) == 0
    for one, other in zip(flows(gateware), flows(model), strict=True):
        assert one["end_s"] == pytest.approx(other["end_s"], rel=0.05)


def test_advcam_13_a_board_climbs_with_its_timer_and_is_cut_back_as_the_model_is(
    penstock: Penstock, tmp_path: Path
) -> None:
    runs = both(penstock, "advcam-13", tmp_path, TEETH)
    rates = [[register(run, flows(run)[0], metric) for metric in ("rate_current_bps", "cnp_handled")] for run in runs]
    ours, theirs = (teeth(*of_run, 150, 620) for of_run in rates)
    for found in (ours, theirs):
        assert found.time_ms[found.climbs] == pytest.approx([200, 400, 600], abs=0.2)
    after = [found.rate_gbps[found.climbs + 1] for found in (ours, theirs)]
    assert after[0] == pytest.approx(after[1], rel=0.05), "R_C after a climb"
    assert np.diff(ours.cuts[ours.climbs]) == pytest.approx(np.diff(theirs.cuts[theirs.climbs]), rel=0.3)
    # R_C before the second and third: the first one falls from the line rate.
    assert ours.lows[1:] == pytest.approx(theirs.lows[1:], rel=0.25)
    for length_ms, constant_ms, r2, _ in (*ours.decays, theirs.decays[0]):
        assert length_ms < 5 and constant_ms == pytest.approx(1.7, rel=0.2) and r2 > 0.9
    assert lost(runs[0]) == 0


def test_advcam_14_the_throughput_of_a_board_is_that_of_its_registers(runs: list[Run]) -> None:
    run = runs[0]
    flow = flows(run)[-1]
    measured = throughput(run, flow["name"])
    inside = (measured.time_ms > 100) & (measured.time_ms < flow["end_s"] * 1e3)
    current, target = (
        np.interp(measured.time_ms, series.time_ms, series.value)[inside] / 1e9 * PAYLOAD_SHARE
        for series in (register(run, flow, "rate_current_bps"), register(run, flow, "rate_target_bps"))
    )
    assert np.abs(measured.value[inside] / current - 1).mean() < 0.01
    assert np.abs(target / current - 1).mean() < 0.02
    assert np.corrcoef(measured.value[inside], current)[0, 1] > 0.999
