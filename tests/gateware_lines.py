# SPDX-License-Identifier: Apache-2.0
"""`sender = "gateware"` and `penstock board` at 1, 2.5, 25 and 100 Gb/s, and with rings in memory: `make soak`, since
each front end takes a minute or two to build. Promise checked: what tests/test_gateware_sender.py checks at 10 Gb/s
holds at each rate, and a board has as much under way as its rings hold.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, TIMEOUT_S, Penstock
from scapy.utils import PcapNgReader
from test_board_tcp import SHARED, Cable, fragments, verified
from test_farm import SERVERS, as_recorded, board, changes, ended, farm, farm_file, killed, notices_of, recv, stored
from test_farm_runs import check, flows, span
from test_gateware_sender import ONE_FLOW, TWO_FLOWS, both, marks, register, total
from test_run import TCP, assert_verified
from veth import Network, until

# The line, how long it takes for what is sent, and what a scenario needs beside it: the clock of the slow front ends
# is not that of the laboratory's host on such a link.
LINES = {
    1: ("10ms", "qp.clock=62500kHz", "trace.interval=100us"),
    2.5: ("4ms", "qp.clock=39062500Hz", "trace.interval=40us"),
    25: ("1ms",),
    100: ("500us", "trace.interval=10us"),
}
# How far a flow's CNPs may be apart. A message of 16 kB takes 54 us at 2.5 Gb/s, a little more than the 50 us between
# two CNPs: whether another flow's packets come between its own decides on one of them (131 here, 149 of the model).
CNPS = {1: 0.1, 2.5: 0.15, 25: 0.1, 100: 0.1}
TCP_LINES = (25, 100)


@pytest.fixture(params=LINES, ids=lambda gbps: f"{gbps}G")
def line(request: pytest.FixtureRequest) -> tuple[float, str, tuple[str, ...]]:
    """A rate in Gb/s, a time that suits it, and the settings of a scenario at it."""
    time, *settings = LINES[request.param]
    return request.param, time, (f"link.rate={request.param}Gbps", *settings)


def test_without_a_law_two_flows_a_board_are_marked_as_those_of_the_model(
    all_tops: Penstock, line: tuple[float, str, tuple[str, ...]], tmp_path: Path
) -> None:
    gbps, _, settings = line
    gateware, model = both(all_tops, tmp_path, TWO_FLOWS, "cc.law=off", "run.time_limit=100ms", *settings)
    assert marks(model) > 700
    assert marks(gateware) == pytest.approx(marks(model), rel=0.1)
    assert total(gateware, "packets") == total(model, "packets") == 4 * 600
    for one, other in zip(gateware.summary()["flows"], model.summary()["flows"], strict=True):
        assert one["goodput_gbps"] == pytest.approx(other["goodput_gbps"], rel=0.02)
        assert one["cnps"] == pytest.approx(other["cnps"], rel=CNPS[gbps], abs=1) and one["cnps"] > 1


def test_a_flow_into_a_slower_link_is_cut_as_that_of_the_model(
    all_tops: Penstock, line: tuple[float, str, tuple[str, ...]], tmp_path: Path
) -> None:
    gbps, time, settings = line
    slower = f"link.at.switch-server0.rate={round(400 * gbps)}Mbps"
    step = ("switch.kmin=30KB", "switch.kmax=30KB", f"run.time_limit={time}", "run.stop=time")
    gateware, model = both(all_tops, tmp_path, ONE_FLOW, *settings, slower, *step)
    rates = [register(run, "board0", "rate_current_bps") for run in (gateware, model)]
    first = [np.flatnonzero(np.diff(rate) < 0)[0] for rate in rates]
    assert first[0] == first[1], "the first cut falls into the same sample"
    after = [rate[at + 1] for rate, at in zip(rates, first, strict=True)]
    assert after[0] == pytest.approx(after[1], rel=1e-6) and after[0] < 0.6e9 * gbps
    assert total(gateware, "cnps") == pytest.approx(total(model, "cnps"), rel=0.25) and total(gateware, "cnps") >= 2
    # A CNP as long after a cut as the cut's own interval is obeyed or not by a few nanoseconds.
    assert 1 <= register(gateware, "board0", "cnp_handled")[-1] <= total(gateware, "cnps") + 1


def test_a_transfer_of_cepc_at_100_gbps_loses_and_repeats_nothing(all_tops: Penstock, tmp_path: Path) -> None:
    """2e5 messages of 262 kB, 50 GB; PENSTOCK_MESSAGES is how many of them are sent. Hours have no time limit."""
    messages = int(os.environ.get("PENSTOCK_MESSAGES", "400"))
    transfer = (f"flow.0.messages={messages}", "flow.0.message=262144B", "flow.0.sender=gateware", "run.time_limit=10s")
    command = all_tops.command(tmp_path, *transfer, scenario=ROOT / "scenarios/feroce-1.toml", options=("--no-plots",))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    [flow] = summary["flows"]
    assert (flow["delivered_bytes"], flow["packets"]) == (messages * 262_144, messages * 64)
    assert (flow["complete"], flow["retransmissions"]) == (True, 0)
    assert flow["goodput_gbps"] == pytest.approx(98.03, rel=5e-3)
    [board] = summary["boards"]
    assert board["meters"][0]["bytes"] == messages * 262_144


def test_a_live_board_has_this_line_and_its_time(
    all_tops: Penstock, line: tuple[float, str, tuple[str, ...]], tmp_path: Path
) -> None:
    """Nobody is at the far end: what counts is the board's own time."""
    gbps, *_ = line
    command = [all_tops.binary, "board", "--ip", "10.0.0.2", "--line", f"{gbps}Gbps", "--time", "200us", "--json"]
    wire = ["--unix", f"{tmp_path / 'own'},{tmp_path / 'peer'}"]
    peer = ["--peer-ip", "10.0.0.1", "--peer-mac", "02:00:0a:00:00:01", "--connect", "qpn=0x11,psn=0,rkey=1,va=0x1000"]
    send = ["--prbs", "4096", "--law", "off", "--ack-timeout", "0", "--capture", tmp_path / "sent.pcapng"]
    done = subprocess.run(
        [*command, *wire, *peer, *send], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    times = [float(packet.time) for packet in PcapNgReader(str(tmp_path / "sent.pcapng")) if len(packet) > 4096]
    assert len(times) >= 5
    # 16 bytes of RETH, 4 of immediate data, and 82 around each packet of 4096.
    octets = (times[-1] - times[0]) * gbps * 1e9 / 8
    assert octets == pytest.approx((len(times) - 1) * (4096 + 16 + 4 + 82), rel=0.001)
    assert json.loads(done.stdout)["time"]["simulated_s"] >= 200e-6


@pytest.mark.parametrize(("rings", "packets"), [("chip", 64), ("memory", 1024)])
def test_a_live_board_has_as_much_under_way_as_its_rings_hold(
    all_tops: Penstock, rings: str, packets: int, tmp_path: Path
) -> None:
    """Nobody acknowledges anything."""
    command = [all_tops.binary, "board", "--ip", "10.0.0.2", "--rings", rings, "--time", "4ms"]
    wire = ["--unix", f"{tmp_path / 'own'},{tmp_path / 'peer'}"]
    peer = ["--peer-ip", "10.0.0.1", "--peer-mac", "02:00:0a:00:00:01", "--connect", "qpn=0x11,psn=0,rkey=1,va=0x1000"]
    send = ["--prbs", "4096", "--law", "off", "--ack-timeout", "0", "--capture", tmp_path / "sent.pcapng"]
    subprocess.run([*command, *wire, *peer, *send], capture_output=True, timeout=TIMEOUT_S, check=True)
    sent = [packet for packet in PcapNgReader(str(tmp_path / "sent.pcapng")) if len(packet) > 4096]
    assert len(sent) == packets


@pytest.mark.parametrize("gbps", TCP_LINES)
def test_events_of_boards_with_tcp_are_exact_and_faster_than_at_10g(
    all_tops: Penstock, recorded: np.ndarray, gbps: int, tmp_path: Path
) -> None:
    settings = (*TCP, f"link.rate={gbps}Gbps", "replay.trigger=periodic", "replay.rate=100kHz")
    run = all_tops.run(tmp_path, "replay.events=20", *settings)
    assert_verified(run, recorded, 20)
    assert run.summary()["readout"]["goodput_gbps"] > 10


@pytest.mark.parametrize("gbps", TCP_LINES)
@pytest.mark.usefixtures("namespaces")
def test_a_live_board_with_tcp_sends_every_event_on_this_line(
    all_tops: Penstock, recorded: np.ndarray, gbps: int, tmp_path: Path
) -> None:
    events, cable = 20, Cable(all_tops.binary)
    try:
        receiver = cable.recv("--events", events, "--out", tmp_path / "run")
        verified(cable.board("--events", events, "--line", f"{gbps}Gbps"))
        verified(receiver)
    finally:
        cable.close()
    assert fragments(tmp_path / "run") == {n: [recorded[n % len(recorded), 0::SHARED].tobytes()] for n in range(events)}


@pytest.mark.usefixtures("namespaces")
def test_boards_of_different_lines_follow_one_coordinator(
    all_tops: Penstock, network: Network, recorded: np.ndarray, tmp_path: Path
) -> None:
    """A run of two servers, of which one dies and returns, and its end at one event for all."""
    network.binary = all_tops.binary
    network.address("s", SERVERS[1])
    lines = ("1Gbps", "10Gbps", "100Gbps")
    file, table = farm_file(tmp_path, boards=len(lines)), tmp_path / "servers.toml"
    coordinator = farm(network, file, "--begin")
    until("the file of servers", table.exists)
    out = [tmp_path / name for name in ("run.0", "run.1", "run.1.back")]
    receivers = [recv(network, server, table, out[server]) for server in (0, 1)]
    boards = [board(network, k, "--line", line) for k, line in enumerate(lines)]
    flows(network)

    killed(receivers[1])
    until("a change of servers", lambda: len(changes(table)) == 1)
    receivers[1] = recv(network, 1, table, out[2])
    until("the change back", lambda: len(changes(table)) == 2)
    flows(network)
    assert ended(network.start("s", str(network.binary), "farm", file, "--end")).status == 0
    results = [ended(process) for process in receivers]
    assert not any(result.json()["faults"] for result in results), [result.json()["faults"] for result in results]
    assert not any(notice["is_fault"] for notice in notices_of(coordinator))
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)

    _, report = check(network, table, out, "--recover")
    _, end = span(table)
    kept = [stored(folder) for folder in out]
    numbers = sorted(number for events in kept for number in events)
    lost = {number for of in report["missing_of"] for number in of["numbers"]}
    assert {of["server"] for of in report["missing_of"]} <= {1}, "only the dead server lost events"
    assert len(set(numbers)) == len(numbers) and {*numbers, *lost} == set(range(end))
    for events in kept:
        as_recorded(events, recorded, len(lines))
