# SPDX-License-Identifier: Apache-2.0
"""`penstock recv` with one board that is stale or silent among good ones.

Promise checked: such a board is named and excluded, the others' events are stored at their rate, and every fragment
that was acknowledged is stored or counted.
"""

import signal
import subprocess
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from processes import killed
from veth import METRICS, ended, first_board, read_until

pytestmark = pytest.mark.usefixtures("namespaces")

SLOTS = 64  # of a board, by default


def send(network, source: int, count: int, *options) -> subprocess.Popen:
    here = ("--ip", first_board(source), "--first-source", source, "--boards", count, "-l", 1000)
    command = (network.binary, "send", "--iface", "veth1", "--json", *here, "--ack-timeout", 16, *options)
    return network.start("b", *map(str, command))


def test_a_stale_board_does_not_decide_where_the_run_begins_and_what_it_sends_is_counted(network, tmp_path):
    stale_events, begin, events = 200, 100_000, 500
    good = send(network, 0, 2, "-n", events, "--first-event", begin, "--rate", 500)
    stale = send(network, 2, 1, "-n", stale_events, "--rate", 500)
    receiver = network.recv(*map(first_board, range(3)), "--events", events, "--out", tmp_path / "run")
    reported = read_until(receiver, "events do not wait for it")
    assert f"it sends event 0 and the run is at event {begin}" in reported and first_board(2) in reported
    assert ended(stale).json()["boards"][0]["messages"] == stale_events
    result = ended(receiver)
    report = result.json()
    assert result.status == 1 and ended(good).status == 0, result
    board = report["boards"][2]
    assert (board["strays_late"], board["events_missing"]) == (stale_events, events), board
    assert f"left out at the end: it sends event 0 and the run is at event {begin}" in report["faults"][-1]
    table = pq.read_table(tmp_path / "run", columns=["event_number", "sources"]).to_pydict()
    assert table["event_number"] == list(range(begin, begin + events)), "none of the good boards' is lost"
    assert all(sources == [0, 1] for sources in table["sources"])


def test_a_number_that_none_follows_does_not_decide_where_the_run_begins(network, tmp_path):
    """Of two boards one begins far ahead, as with a flipped bit, and sends nothing more."""
    begin, flipped = 5, 5 | 1 << 40
    good = send(network, 0, 1, "--first-event", begin, "--rate", 200)
    wrong = send(network, 1, 1, "--first-event", flipped, "-n", 1)
    receiver = network.recv(*map(first_board, range(2)), "--out", tmp_path / "run", "--metrics", METRICS)
    network.counted(50, "events_incomplete")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    report = result.json()
    table = pq.read_table(tmp_path / "run", columns=["event_number", "sources"]).to_pydict()
    assert table["event_number"] == list(range(begin, begin + len(table["sources"]))), (
        "none of the good board's is lost"
    )
    assert all(sources == [0] for sources in table["sources"])
    assert result.status == 1 and report["boards"][1]["strays_ahead"] == 1, result
    assert f"it sends event {flipped} and the run is at event {begin}" in "".join(report["faults"])
    good.send_signal(signal.SIGINT)
    assert ended(wrong).status == 0 and ended(good).status == 0


def test_a_run_goes_on_with_boards_that_are_all_back_far_ahead(network, tmp_path):
    """A crate is switched off and on while triggers are counted elsewhere."""
    ahead, events = 100_000, 400
    before = send(network, 0, 2, "--rate", 500)
    receiver = network.recv(*map(first_board, range(2)), "--out", tmp_path / "run", "--metrics", METRICS)
    network.counted(100, "events_complete")
    killed(before)
    after = send(network, 0, 2, "-n", events, "--first-event", ahead, "--rate", 500)
    assert ended(after).status == 0
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    report = result.json()
    table = pq.read_table(tmp_path / "run", columns=["event_number", "complete"]).to_pydict()
    stored = [number for number, complete in zip(*table.values(), strict=True) if complete and number >= ahead]
    assert stored and stored == list(range(stored[0], ahead + events)), result
    lost = [board["strays_ahead"] for board in report["boards"]]
    assert stored[0] - ahead <= max(lost) <= 2 * SLOTS, "what was refused before all had gone ahead"
    skipped = report["readout"]["builder"]["events_skipped"]
    assert skipped == sum(later - number - 1 for number, later in pairwise(table["event_number"])) > 0
    assert result.status == 1 and any(f"{skipped} events came from no board" in fault for fault in report["faults"])


def test_a_board_that_answers_keep_alives_and_sends_nothing_does_not_slow_the_others_down(network):
    events, timeout_ms, slots = 3000, 300, 8
    ring = ("--slots", slots, "--slot-size", 4096)
    good = send(network, 0, 2, "-n", events, "--rate", 1000, *ring)
    # Its second event is a thousand seconds away.
    silent = send(network, 2, 1, "-n", 2, "--rate", 0.001, *ring)
    options = ("--events", events, "--event-timeout", timeout_ms, "--keep-alive", 100)
    receiver = network.recv(*map(first_board, range(3)), *options, *ring)
    reported = read_until(receiver, "events do not wait for it")
    assert "it has a connection and has sent nothing for several events" in reported and first_board(2) in reported
    # Were every event waited for, a ring of slots would take the timeout each time.
    waiting_s = events / slots * timeout_ms / 1000
    result = ended(receiver, waiting_s)
    report = result.json()
    assert report["readout_seconds"] < waiting_s / 2, report
    assert [board["lives"] for board in report["boards"]] == [1, 1, 1], "it was up all along"
    assert [board["events_missing"] for board in report["boards"]] == [0, 0, events - 1]
    assert "sent nothing for several events" in report["boards"][2]["left_out"]
    assert ended(good).status == 0
    silent.send_signal(signal.SIGINT)
    ended(silent)
