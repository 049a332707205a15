# SPDX-License-Identifier: Apache-2.0
"""`switch.gateware = true`: the verilated QCN switch between the laboratory's hosts, beside the simulated switch.

Both get the same scenario. Where the loop is open (pause) frames, queues and pauses agree. Where it is closed the
queue stays near Q_eq with as many notifications; single samples differ, as the jitter of the two has other seeds.
"""

from pathlib import Path

import numpy as np
import pytest
from conftest import Penstock, Run

TWO_TO_ONE = """
[run]
stop = "time"
time_limit = "2ms"

[topology]
kind = "star"
boards = 2

[switch]
gateware = true
ecn = false
pfc = false

[qp]
mtu = 1024

[[flow]]
from = "board*"
to = "server0"
message = "16KB"

[trace]
interval = "2us"
"""
QCN = (
    "cc.law=qcn",
    "cc.qcn.rate_ai=50Mbps",
    "cc.qcn.rate_hai=500Mbps",
    "cc.qcn.timer_period=1ms",
    "switch.qcn.q_eq=33KB",
    "run.time_limit=3ms",
)
# The same loop on lines of a tenth: everything takes ten times as long.
QCN_1G = (
    "link.rate=1Gbps",
    "cc.law=qcn",
    "cc.qcn.rate_ai=5Mbps",
    "cc.qcn.rate_hai=50Mbps",
    "cc.qcn.timer_period=10ms",
    "switch.qcn.q_eq=33KB",
    "run.time_limit=30ms",
    "trace.interval=20us",
)
PAUSE = (
    "run.time_limit=1ms",
    "cc.law=off",
    "switch.pfc=true",
    "switch.threshold=queue",
    "switch.xoff=130KB",
    "switch.xon=110KB",
)


@pytest.fixture
def both(penstock: Penstock, tmp_path: Path):
    """The run with the gateware, and with the simulated switch."""

    def run(*settings: str) -> tuple[Run, Run]:
        scenario = tmp_path / "scenario.toml"
        scenario.write_text(TWO_TO_ONE)
        runs = [
            penstock.run(tmp_path / name, f"switch.gateware={name}", *settings, scenario=scenario)
            for name in ("true", "false")
        ]
        assert [run.status for run in runs] == [0, 0], [run.stderr for run in runs]
        return runs[0], runs[1]

    return run


def series(run: Run, metric: str, channel: int) -> np.ndarray:
    trace = run.trace().to_pandas()
    return trace[(trace.node == "switch") & (trace.metric == metric) & (trace.channel == channel)].value.to_numpy()


def server_port(run: Run) -> dict:
    (switch,) = run.summary()["switches"]
    (port,) = (port for port in switch["ports"] if port["peer"] == "server0")
    return port


@pytest.mark.parametrize("settings", [QCN, QCN_1G], ids=["10Gbps", "1Gbps"])
def test_the_closed_loop_is_that_of_the_simulated_switch(both, settings: tuple[str, ...]) -> None:
    gateware, model = both(*settings)
    switches = [run.summary()["switches"][0] for run in (gateware, model)]
    assert [switch["gateware"] for switch in switches] == [True, False]
    port = server_port(gateware)["port"]
    queues = [series(run, "queue_bytes", port) for run in (gateware, model)]
    settled = [queue[1000:] for queue in queues]
    output = [switch["cnm_sent"] for switch in switches]
    for name, queue, count in zip(("gateware", "model"), queues, output, strict=True):
        print(f"{name}: queue {queue[1000:].mean():.0f}, at first up to {queue.max():.0f}; {count} notifications")
    assert queues[0].max() == pytest.approx(queues[1].max(), rel=0.1), "before the first cuts"
    assert settled[0].mean() == pytest.approx(settled[1].mean(), rel=0.4)
    assert 15_000 < settled[0].mean() < 66_000
    assert output[0] == pytest.approx(output[1], rel=0.5) and output[0] > 20
    assert gateware.summary()["aggregate_gbps"] == pytest.approx(model.summary()["aggregate_gbps"], rel=0.01)
    for run, count in zip((gateware, model), output, strict=True):
        assert sum(flow["feedbacks"] for flow in run.summary()["flows"]) == pytest.approx(count, abs=2)
        assert run.summary()["switches"][0]["dropped_buffer"] == 0
        counted = series(run, "cnm_sent", port)
        assert (np.diff(counted) >= 0).all() and counted[-1] == pytest.approx(count, abs=1)
        assert 0 < series(run, "feedback", port).max() <= 63


@pytest.mark.parametrize("frame", ["port", "class"])
@pytest.mark.parametrize(
    "line", [("link.rate=1Gbps", "run.time_limit=10ms", "trace.interval=20us"), ()], ids=["1G", "10G"]
)
def test_pauses_by_the_egress_queue_are_those_of_the_simulated_switch(both, frame: str, line: tuple[str, ...]) -> None:
    gateware, model = both(*PAUSE, f"switch.pause={frame}", *line)
    ports = [server_port(run) for run in (gateware, model)]
    for one in ports:
        assert one["dropped"] == 0 and 130_000 < one["peak_queue_bytes"] < 160_000
    assert ports[0]["peak_queue_bytes"] == pytest.approx(ports[1]["peak_queue_bytes"], rel=0.05)
    assert ports[0]["tx_frames"] == pytest.approx(ports[1]["tx_frames"], rel=0.01)
    assert ports[0]["mean_queue_bytes"] == pytest.approx(ports[1]["mean_queue_bytes"], rel=0.05)
    for name in ("pauses_sent", "pausing_s"):
        counted = [
            sum(port[name] for port in run.summary()["switches"][0]["ports"] if port["peer"] != "server0")
            for run in (gateware, model)
        ]
        assert counted[0] == pytest.approx(counted[1], rel=0.1) and counted[0] > 0
    for run in (gateware, model):
        assert sum(flow["retransmissions"] for flow in run.summary()["flows"]) == 0
    assert series(gateware, "pfc_pausing", 0).mean() == pytest.approx(series(model, "pfc_pausing", 0).mean(), abs=0.1)


def test_a_full_queue_drops_as_many_frames_as_a_full_buffer(both) -> None:
    gateware, model = both("cc.law=off", "switch.buffer=100KB", "run.time_limit=1ms")
    for run in (gateware, model):
        (switch,) = run.summary()["switches"]
        assert switch["dropped_buffer"] == server_port(run)["dropped"] > 0
        assert 95_000 < server_port(run)["peak_queue_bytes"] <= 100_000
    dropped = [server_port(run)["dropped"] for run in (gateware, model)]
    assert dropped[0] == pytest.approx(dropped[1], rel=0.05)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("topology.boards=4", "switch has 5 links; the gateware has 4 ports"),
        ("link.rate=25Gbps", "has 25Gbps; the gateware's lines have 1Gbps or 10Gbps"),
        ("link.at.board1-switch.rate=1Gbps", "has 1Gbps; the gateware's lines have all one rate, the first 10Gbps"),
        ("flow.0.sender=gateware", "board0 at link board0-switch is in gateware too"),
        ("switch.ecn=true", "switch.ecn = true: allowed is false with gateware = true"),
        ("switch.pfc=true", 'switch.threshold = static (default): allowed is "queue"'),
        ("switch.buffer=300KB", "switch.buffer = 300KB: allowed is up to"),
        ("switch.lossy_alpha=1", "switch.lossy_alpha"),
        ("switch.headroom=10KB", "switch.headroom"),
        ("switch.weights=[1,1,1,1,1,1,1,1]", "switch.weights"),
        ("switch.qcn.q_eq=20MB", "switch.qcn.q_eq"),
        ("switch.qcn.sample=20MB", "switch.qcn.sample"),
    ],
)
def test_what_the_gateware_lacks_is_refused(penstock: Penstock, tmp_path: Path, setting: str, reason: str) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(TWO_TO_ONE)
    run = penstock.run(tmp_path / "out", setting, scenario=scenario)
    assert run.status == 2 and reason in run.stderr, run.stderr
