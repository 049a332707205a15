# SPDX-License-Identifier: Apache-2.0
"""`sender = "gateware"`: several flows a board under each law, at a congestion point, beside the laboratory's hosts.

Both get the same scenario. Where the loop is open (no law) marks and CNPs agree. Where it is closed the first cuts do,
to the bit and in the same sample of the trace, and what follows agrees in the mean: with a packet that comes 100 ns
later another one is marked (docs/results.md, "Gateware compared with the model").
"""

from pathlib import Path

import numpy as np
import pytest
from conftest import Penstock, Run

COMMON = """
[run]
kind = "network"
time_limit = "8ms"

[switch]
ecn = true
kmin = "5KB"
kmax = "200KB"
pmax = 1.0
pfc = true

[qp]
mtu = 1024

[trace]
interval = "20us"

[topology]
kind = "star"
"""
# Two queue pairs of each of two boards into one port.
TWO_FLOWS = f"""{COMMON}
boards = 2
{
    "".join(
        f'''
[[flow]]
name = "{name}"
from = "board*"
to = "server0"
sender = "gateware"
message = "16KB"
size = "600KB"
'''
        for name in "ab"
    )
}"""
# One flow into a link of 4 Gb/s that marks whatever waits behind 30 KB.
ONE_FLOW = f"""{COMMON}
boards = 1

[link]
at.switch-server0.rate = "4Gbps"

[cc]
profile = "zhu"
rate_ai = "200Mbps"

[cc.qcn]
jitter = 0
timer_period = "250us"

[[flow]]
name = "a"
from = "board0"
to = "server0"
sender = "gateware"
message = "16KB"
size = "1MB"
"""
QCN = ("cc.law=qcn", "switch.ecn=false", "switch.qcn.q_eq=26KB", "switch.qcn.jitter=0")


def both(penstock: Penstock, folder: Path, text: str, *settings: str) -> tuple[Run, Run]:
    """The run with the gateware, and with the laboratory's host."""
    scenario = folder / "scenario.toml"
    scenario.write_text(text)
    software = [f"flow.{number}.sender=software" for number in range(text.count("[[flow]]"))]
    runs = [
        penstock.run(folder / name, *settings, *more, scenario=scenario) for name, more in (("g", ()), ("m", software))
    ]
    assert [run.status for run in runs] == [0, 0], [run.stderr for run in runs]
    return runs[0], runs[1]


def total(run: Run, key: str) -> int:
    return sum(flow[key] for flow in run.summary()["flows"])


def marks(run: Run) -> int:
    return sum(port["ecn_marked"] for switch in run.summary()["switches"] for port in switch["ports"])


def register(run: Run, node: str, metric: str, channel: int = 0) -> np.ndarray:
    trace = run.trace().to_pandas()
    chosen = (trace.node == node) & (trace.metric == metric) & (trace.channel == channel)
    return trace[chosen].value.to_numpy()


def test_without_a_law_two_flows_a_board_are_marked_as_those_of_the_model(penstock: Penstock, tmp_path: Path) -> None:
    gateware, model = both(penstock, tmp_path, TWO_FLOWS, "cc.law=off")
    assert marks(model) > 1500
    assert marks(gateware) == pytest.approx(marks(model), rel=0.01)
    assert total(gateware, "packets") == total(model, "packets") == 4 * 600
    for one, other in zip(gateware.summary()["flows"], model.summary()["flows"], strict=True):
        assert one["goodput_gbps"] == pytest.approx(other["goodput_gbps"], rel=0.02)
        assert one["cnps"] == pytest.approx(other["cnps"], abs=4) and one["cnps"] > 20
    assert [board["messages_ok"] for board in gateware.summary()["boards"]] == [2 * 38, 2 * 38]


def test_a_board_is_paused_for_as_long_as_the_model_and_its_flows_report_it(penstock: Penstock, tmp_path: Path) -> None:
    small = ("cc.law=off", "switch.threshold=dynamic", "switch.buffer=400KB", "switch.hysteresis=50KB", "qp.window=256")
    gateware, model = both(penstock, tmp_path, TWO_FLOWS, *small)
    assert min(flow["paused_s"] for flow in model.summary()["flows"]) > 0.5e-3
    for one, other in zip(gateware.summary()["flows"], model.summary()["flows"], strict=True):
        assert one["paused_s"] == pytest.approx(other["paused_s"], rel=0.2)
        assert one["complete"] and one["retransmissions"] == 0
    assert any("ports were paused" in sentence for sentence in gateware.summary()["verdict"]["sentences"])


def test_under_dcqcn_each_flow_of_a_board_is_cut_by_its_own_cnps(penstock: Penstock, tmp_path: Path) -> None:
    gateware, model = both(penstock, tmp_path, TWO_FLOWS, "cc.profile=zhu")
    assert total(gateware, "cnps") == pytest.approx(total(model, "cnps"), rel=0.3)
    for flow in gateware.summary()["flows"]:
        channel = "ab".index(flow["name"][0])
        cuts = register(gateware, flow["from"], "cnp_handled", channel)
        assert 0 < cuts[-1] <= flow["cnps"], flow
        assert register(gateware, flow["from"], "rate_current_bps", channel).min() < 9e9


@pytest.mark.parametrize(("settings", "counter"), [((), "cnps"), (QCN, "feedbacks")], ids=["dcqcn", "qcn"])
def test_gateware_and_model_are_cut_alike(
    penstock: Penstock, tmp_path: Path, settings: tuple[str, ...], counter: str
) -> None:
    step = ("switch.kmin=30KB", "switch.kmax=30KB") if not settings else ()
    gateware, model = both(penstock, tmp_path, ONE_FLOW, "run.time_limit=3ms", "run.stop=time", *step, *settings)
    rates = [register(run, "board0", "rate_current_bps") for run in (gateware, model)]
    first = [np.flatnonzero(np.diff(rate) < 0)[0] for rate in rates]
    assert first[0] == first[1], "the first cut falls into the same 20 us"
    after = [rate[at + 1] for rate, at in zip(rates, first, strict=True)]
    assert after[0] == pytest.approx(after[1], rel=1e-6)
    assert total(gateware, counter) == pytest.approx(total(model, counter), rel=0.25) and total(gateware, counter) >= 4
    assert total(gateware, "delivered_bytes") == pytest.approx(total(model, "delivered_bytes"), rel=0.05)
    cuts = register(gateware, "board0", "cnp_handled")
    assert cuts[-1] == pytest.approx(total(gateware, counter), abs=1)


def test_more_flows_than_queue_pairs_are_refused(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(ONE_FLOW + 4 * ONE_FLOW[ONE_FLOW.index("[[flow]]") :].replace('name = "a"\n', ""))
    run = penstock.run(tmp_path / "out", scenario=scenario)
    assert run.status == 2 and "board0: a board has 4 queue pairs" in run.stderr and "has 5" in run.stderr


def test_a_link_of_a_rate_and_rings_that_no_board_has_are_refused(penstock: Penstock, tmp_path: Path) -> None:
    """tests/gateware_lines.py has the rates of a command with all boards."""
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(ONE_FLOW)
    run = penstock.run(tmp_path / "out", "link.rate=40Gbps", scenario=scenario)
    assert run.status == 2 and "board0: no board of this program has a line of 40Gbps; it has 10Gbps" in run.stderr
    run = penstock.run(tmp_path / "out", "qp.rings=memory", scenario=scenario)
    assert run.status == 2 and "a line of 10Gbps and rings in memory; it has none: `cargo build" in run.stderr
