# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --pull` reads what `penstock send --pull` announces, over a veth pair.

Promise checked: stored events are byte for byte what was sent, despite loss, slow consumers and boards that stop, die
or announce what they do not have; no more than the window is ever on its way.
"""

import re
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from processes import killed
from veth import METRICS, SERVER_IP, Result, ended, first_board, read_until, sums, until, verified

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data/lst1_run2008/modules.npz"
pytestmark = pytest.mark.usefixtures("namespaces")

# Machines that run tests may stand still for a while.
PATIENT = ("--event-timeout", 5000)
WITH_METRICS = ("--metrics", METRICS)


def boards(count: int) -> list[str]:
    return [first_board(k) for k in range(count)]


def board(network, k: int, *options: object) -> subprocess.Popen:
    """One board in a process of its own."""
    fixed = ["--iface", "veth1", "--ip", first_board(k), "--first-source", k, "--pull", "--json"]
    return network.start("b", str(network.binary), "send", *map(str, (*fixed, *options)))


@pytest.mark.usefixtures("either_socket")
def test_recorded_events_are_read_byte_exact_over_loss_copies_disorder_and_damage(network, recorded, tmp_path):
    events, faults = 60, ("--loss", 0.02, "--duplicate", 0.01, "--reorder", 0.01, "--corrupt", 0.01)
    faults += ("--ack-loss", 0.02, "--ack-duplicate", 0.01, "--ack-reorder", 0.01, "--ack-corrupt", 0.01)
    payload = ("--payload", "recorded", "--data", DATA, "-n", events, "--mtu", 1024)
    sender = network.send("--pull", "--boards", 3, *payload, *faults)
    options = ("--data", DATA, "--events", events, "--out", tmp_path / "run", "--mtu", 1024, *PATIENT)
    received, sent = verified(network.recv("--pull", *boards(3), *options), sender)
    builder, check = received["readout"]["builder"], received["readout"]["check"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (events, 0)
    assert (check["fragments"], check["fragments_differing"]) == (3 * events, 0)
    assert sums(received, "pull_requests_repeated") > 0 and received["counters"]["rx_icrc_encapsulated"] > 0
    assert sums(received, "pull_read") >= 3 * events == sum(one["messages"] for one in sent["boards"])
    assert sums(received, "pull_mislabelled") == sums(received, "pull_malformed") == 0

    table = pq.read_table(tmp_path / "run")
    assert table["event_number"].to_pylist() == list(range(events))
    for event, fragments in enumerate(table["fragments"].to_pylist()):
        assert fragments == [recorded[event % len(recorded), k::3].tobytes() for k in range(3)]


def test_no_more_than_the_window_is_on_its_way_and_announcements_are_few(network, tmp_path):
    events, window = 3000, 50_000
    sender = network.send("--pull", "--boards", 4, "-n", events, "-l", 3000)
    receiver = network.recv("--pull", *boards(4), "--events", events, "--window", window, "--payload", "prbs", *PATIENT)
    received, sent = verified(receiver, sender)
    counters = received["counters"]
    assert received["readout"]["builder"]["events_complete"] == events
    assert sum(pattern["errors"] + pattern["gaps"] for pattern in received["readout"]["pattern"]) == 0
    assert counters["pull_window_bytes"] == window
    assert 40_000 < counters["pull_highest_in_flight_bytes"] <= window
    assert counters["pull_in_flight_bytes"] == counters["pull_unanswered_bytes"] == 0
    assert counters["pull_read_bytes"] == 4 * events * (3040 + 10)
    assert sums(received, "pull_announced") == sums(received, "pull_read") == 4 * events
    assert sums(received, "pull_announcements") < sums(received, "pull_announced"), (
        "READs of a busy board bring the others"
    )
    assert sums(received, "pull_carried") > 0
    assert [one["tx_payload_bytes"] >= events * (3040 + 10) for one in sent["boards"]] == [True] * 4


def test_a_slow_consumer_stops_the_reads_and_loses_nothing(network):
    """Boards keep what is not read: there is no RNR NAK of a full ring."""
    ring = ("--slots", 20, "--slot-size", 32768)
    sender = network.send("--pull", "--boards", 2, "-n", 60, "-l", 20000, *ring)
    receiver = network.recv("--pull", *boards(2), "--events", 60, "--consumer-rate", 4, *ring, "--event-timeout", 5000)
    received, sent = verified(receiver, sender)
    assert received["readout"]["builder"]["events_complete"] == 60
    # The last ones that arrive wait in both rings.
    assert received["seconds"] > (60 - 20) * 2 * 20000 / 4e6, "no faster than the consumer"
    assert sums(received, "out_of_buffer") == 0
    assert [one["messages"] for one in sent["boards"]] == [60, 60]


def test_a_board_that_stands_still_holds_nothing_of_the_window_and_is_waited_for(network):
    events = 30000  # as fast as they can, so that something is always on its way
    senders = [board(network, k, "-n", events, "-l", 4000) for k in range(3)]
    options = ("--pull", *boards(3), "--events", events, "--outage", 60, *PATIENT, *WITH_METRICS)
    receiver = network.recv(*options)
    network.counted(200, "events_complete")
    senders[1].send_signal(signal.SIGSTOP)
    until("silence", lambda: network.metrics().get("pull_silences", 0) >= 1)
    time.sleep(1.5)  # the outage itself
    senders[1].send_signal(signal.SIGCONT)
    received, *_ = verified(receiver, *senders)
    builder = received["readout"]["builder"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (events, 0)
    lives = [one["lives"] for one in received["boards"]]
    assert lives[0] == lives[2] == 1, "others are read on"
    assert received["boards"][1]["counters"]["pull_requests_repeated"] > 0, "it is read again"


def test_a_board_that_is_killed_is_named_with_what_was_not_read(network, tmp_path):
    senders = [board(network, k, "-l", 20000, "--slot-size", 32768) for k in range(2)]
    options = ("--pull", *boards(2), "--outage", 0.5, "--slot-size", 32768, "--consumer-rate", 20, *WITH_METRICS)
    receiver = network.recv(*options, "--out", tmp_path / "run")
    network.counted(100, "events_complete")
    killed(senders[1])
    reported = read_until(receiver, "were announced and not read")
    unread = re.search(r"(\d+) fragments of events (\d+) to (\d+) were announced and not read: (.*)", reported)
    count, first, last = map(int, unread.groups()[:3])
    assert count == last - first + 1 and "was not acknowledged after 7 retries" in unread.group(4), reported
    network.counted(50, "events_incomplete")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    report = result.json()
    assert result.status == 1 and any(first_board(1) in fault for fault in report["faults"]), report["faults"]
    assert report["boards"][1]["counters"]["pull_forgotten"] >= count
    senders[0].send_signal(signal.SIGINT)
    assert ended(senders[0]).status == 0
    table = pq.read_table(tmp_path / "run", columns=["event_number", "complete", "missing"]).to_pydict()
    assert table["event_number"] == list(range(len(table["event_number"])))
    lacking = [missing for missing, complete in zip(table["missing"], table["complete"], strict=True) if not complete]
    assert lacking and all(missing == [1] for missing in lacking)


def test_either_side_is_killed_and_started_again_and_what_was_not_read_is_still_there(network, tmp_path):
    events = 1500
    sender = network.send("--pull", "--boards", 2, "-n", events, "-l", 4000, "--rate", 500)
    receiver = network.recv("--pull", *boards(2), "--out", tmp_path / "a", "--flush", 50, *PATIENT, *WITH_METRICS)
    network.counted(200, "events_complete")
    killed(receiver)
    receiver = network.recv("--pull", *boards(2), "--out", tmp_path / "b", *PATIENT, *WITH_METRICS)
    assert ended(sender).status == 0
    receiver.send_signal(signal.SIGINT)
    report = verified(receiver)[0]
    assert report["readout"]["builder"]["events_incomplete"] == 0
    numbers = pq.read_table(tmp_path / "b")["event_number"].to_pylist()
    assert numbers == list(range(numbers[0], events)) and 0 < numbers[0] < events


def scapy_board(network, what: str, *options: object) -> tuple[str, Result]:
    """What a board that sends `what` was answered, and how the receiver has ended."""
    program = str(ROOT / "tests/scapy_board.py")
    scapy = network.start("b", str(ROOT / ".venv/bin/python"), program, SERVER_IP, first_board(), "veth1", what)
    assert scapy.stdout.readline() == "ready\n"
    receiver = network.recv("--pull", first_board(), "--keep-alive", 200, *options)
    output = scapy.stdout.readline()
    read_until(receiver, "queue pair in error")
    receiver.send_signal(signal.SIGINT)
    return output, ended(receiver)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("no announcement", 'announcement begins with [00, 00, 00, 00] instead of "PSTA"'),
        ("later announcement", "announcement version 3, this reader has 2"),
        (
            "overlapping announcement",
            "announcement of event 0: 64 bytes and 10 of successors, but the next fragment begins after 73",
        ),
        ("too long", "event 0 of 1048576 bytes was announced: --slot-size has 131072"),
        ("nothing there", "a READ of what the board has announced failed: PSN"),
    ],
)
def test_a_false_announcement_is_named_and_counted(network, what, why):
    output, result = scapy_board(network, what)
    assert "answered 0x" in output
    report = result.json()
    assert result.status == 1 and why in report["faults"][0], report["faults"]
    counters = report["boards"][0]["counters"]
    assert counters["pull_malformed"] == (what != "nothing there"), counters
    assert counters["pull_forgotten"] == (what == "nothing there")


def test_an_end_without_pull_is_named_at_the_other(network):
    sender = network.send("--boards", 1, "-l", 2000)
    result = ended(network.recv("--pull", first_board(), "--seconds", 2))
    assert result.status == 1
    assert "the board must announce, as `penstock send --pull` does" in result.stderr, result.stderr
    sender.send_signal(signal.SIGINT)
    ended(sender)
    sender = network.send("--pull", "-l", 2000)
    result = ended(network.recv(first_board(), "--seconds", 2))
    assert result.status == 1 and "PSTF" in result.stderr, result.stderr
    sender.send_signal(signal.SIGINT)
    ended(sender)


def test_what_cannot_be_read_is_refused_by_name(network):
    for options, why in [
        (("--backend", "tcp", "--pull"), "--pull: TCP has no RDMA READ"),
        (("--iface", "veth0", "--pull", "--window", "0"), "--pull: a window of 0 bytes has no room"),
    ]:
        result = ended(network.start("s", str(network.binary), "recv", *options, first_board()))
        assert result.status == 2 and why in result.stderr, result
    for options, why in [
        (("--protocol", "tcp", "--pull", "--connect", SERVER_IP), "--pull: RDMA READ needs a reliable connection"),
        (("--pull", "--slots", "16"), "--slots 16: --pull needs more than 16"),
    ]:
        result = ended(network.send(*options))
        assert result.status == 2 and why in result.stderr, result
