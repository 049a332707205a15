# SPDX-License-Identifier: Apache-2.0
"""`penstock run` of a laboratory scenario, end to end: the summary, the trace, the capture, the exit status."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Penstock, Run
from scapy.contrib.roce import BTH
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgReader

SCENARIO = ROOT / "scenarios/advcam-5.toml"
SHORT = ("flow.0.size=200KB", "trace.interval=20us")


@pytest.fixture(scope="module")
def run(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The incast of AdvCam figure 5 with short flows and the server's link captured."""
    capture = ('capture.links=["server0-root"]', "capture.snap=128B")
    run = penstock.run(
        tmp_path_factory.mktemp("lab"), *SHORT, *capture, scenario=SCENARIO, options=("--no-plots", "--json")
    )
    assert run.status == 0, run.stderr
    assert run.summary() == json.loads(run.stdout)
    return run


def test_the_summary_counts_every_flow_once(run: Run) -> None:
    summary = run.summary()
    assert (summary["kind"], summary["end"]) == ("lab", "done")
    assert [flow["delivered_bytes"] for flow in summary["flows"]] == [200_000] * 8
    assert all(flow["complete"] and flow["path"][-2:] == ["root", "server0"] for flow in summary["flows"])
    packets = 8 * -(-200_000 // 4096)
    assert summary["timing"]["traversals"] == 3 * packets
    assert 0 < summary["jain_min"] <= summary["jain"] <= 1


def test_the_windows_of_the_trace_add_up_to_what_was_delivered(run: Run) -> None:
    rows = run.trace().to_pylist()
    windows = [row["value"] for row in rows if row["metric"] == "throughput_bps" and row["node"] == "network"]
    assert sum(windows) * 20e-6 / 8 == pytest.approx(run.summary()["delivered_bytes"])


def test_the_capture_is_read_by_others_without_a_malformed_frame(run: Run) -> None:
    capture = run.out / "capture.pcapng"
    frames = list(PcapNgReader(str(capture)))
    times = [frame.time for frame in frames]
    assert times == sorted(times)
    data = [Ether(bytes(frame)) for frame in frames if frame.wirelen > 1000]
    assert len(data) == 8 * -(-200_000 // 4096)
    assert all(frame[UDP].dport == 4791 and BTH in frame for frame in data)
    if tshark := shutil.which("tshark"):
        command = [tshark, "-r", capture, "-Y", "_ws.malformed"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_a_run_that_does_not_end_in_time_is_a_fault_and_a_wrong_key_is_refused(
    penstock: Penstock, tmp_path: Path
) -> None:
    late = penstock.run(tmp_path, *SHORT, "run.time_limit=200us", scenario=SCENARIO)
    assert late.status == 1 and "time limit" in late.stdout
    refused = penstock.run(tmp_path, "run.time_limt=1ms", scenario=SCENARIO)
    assert refused.status == 2 and "time_limt" in refused.stderr


def test_a_metric_that_no_flow_has_is_a_warning_of_the_run_and_of_its_summary(
    penstock: Penstock, tmp_path: Path
) -> None:
    run = penstock.run(tmp_path, *SHORT, "trace.metrics=smoothed_rtt_us", scenario=SCENARIO)
    warning = "trace.metrics: nothing recorded a metric `smoothed_rtt_us`"
    assert run.summary()["warnings"] == [warning] and f"warning: {warning}\n" == run.stderr


BOARD = """
[run]
time_limit = "50ms"
[topology]
kind = "star"
boards = 2
[cc]
profile = "advcam"
[qp]
ack_timeout = "100us"
[[flow]]
from = "board0"
to = "server0"
sender = "gateware"
size = "100KB"
message = "20KB"
[[flow]]
from = "board1"
to = "server0"
size = "100KB"
message = "20KB"
[trace]
interval = "20us"
"""


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A verilated board and a software sender, into one server."""
    scenario = tmp_path / "board.toml"
    scenario.write_text(BOARD)
    return scenario


def test_a_verilated_board_stands_in_for_a_sender(penstock: Penstock, board: Path, tmp_path: Path) -> None:
    run = penstock.run(tmp_path / "out", scenario=board)
    assert run.status == 0, run.stderr
    gateware, software = run.summary()["flows"]
    assert gateware["path"] == ["board0", "switch", "server0"]
    for flow in (gateware, software):
        assert (flow["delivered_bytes"], flow["messages"], flow["packets"]) == (100_000, 5, 25)
    assert gateware["goodput_gbps"] == pytest.approx(software["goodput_gbps"], rel=0.05)
    rates = [row["value"] for row in run.trace().to_pylist() if row["metric"] == "rate_current_bps"]
    assert rates and set(rates) == {1e10}, "nothing was marked"
    urgent, other = penstock.run(tmp_path / "urgent", "flow.0.dscp=34", scenario=board).summary()["flows"]
    assert urgent["goodput_gbps"] > 1.5 * other["goodput_gbps"], "a higher class goes first"


def test_a_verilated_board_repeats_what_links_lose(penstock: Penstock, board: Path, tmp_path: Path) -> None:
    run = penstock.run(tmp_path / "out", "link.loss=0.03", "flow.0.size=400KB", scenario=board)
    assert run.status == 0, run.stdout + run.stderr
    gateware = run.summary()["flows"][0]
    assert gateware["delivered_bytes"] == 400_000 and gateware["complete"]
    assert gateware["retransmissions"] > 0 and gateware["naks"] + gateware["timeouts"] > 0


def test_what_a_board_cannot_do_is_refused_by_name(penstock: Penstock, board: Path, tmp_path: Path) -> None:
    cases = [
        (("link.rate=25Gbps",), "25Gbps"),
        (("flow.1.to=board0",), "board0 is a board of gateware and cannot receive flow"),
        (("flow.1.from=board0", "flow.1.sender=software"), "must be sent by it too"),
        (("flow.0.protocol=tcp",), 'the gateware speaks "rc" only'),
    ]
    for wrong, reports in cases:
        run = penstock.run(tmp_path / "out", "flow.1.sender=gateware", *wrong, scenario=board)
        assert run.status == 2 and reports in run.stderr, run.stderr
