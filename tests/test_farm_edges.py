# SPDX-License-Identifier: Apache-2.0
"""Ends and begins of a farm's runs with detectors that rest and boards that are off: two verilated boards, two
receivers and `penstock farm`.

Promise checked: whatever the boards do, a run ends within a bounded time, at the event after the last one that has
begun; a board that is left out is named; the next run begins.
"""

import json
import signal
import subprocess
import time

import pytest
from processes import killed
from test_farm import (
    BOARDS,
    DATA,
    METRICS,
    PATIENCE,
    RETRIES,
    SERVERS,
    SLOT_BYTES,
    SLOTS,
    TIMEOUT_CODE,
    announced_run,
    changes,
    farm_file,
    recv,
    stored,
)
from test_farm_runs import check, span
from veth import Network, Result, ended, until

pytestmark = pytest.mark.usefixtures("namespaces")

REST = 12  # events, after which the detector rests
# How long the end of a run waits for a board that is off. Boards are slow on a machine that is busy elsewhere.
OFF = {"--board-patience": "8s", "--start-patience": "10s"}
BOUND_S = 100  # far more than an end takes, on a busy machine; without a bound it lasts until the next event


def board(network: Network, k: int, events: int, interval: str = "20us") -> subprocess.Popen:
    """Board `k` of two, with so many events."""
    command = (network.binary, "board", "--packet", "veth1", "--ip", BOARDS[k], "--share", f"{k}/64", "--json")
    ring = ("--slots", SLOTS, "--slot-size", SLOT_BYTES, "--ack-timeout", TIMEOUT_CODE, "--retry-cnt", RETRIES)
    which = ("--events", events, "--stay", "--by-event", "--data", DATA, "--interval", interval)
    return network.start("b", *map(str, (*command, *ring, *which)))


def farm(network: Network, file, patience: dict[str, str]) -> subprocess.Popen:
    """The coordinator of a new run."""
    options = [*PATIENCE]
    for option, value in patience.items():
        options[options.index(option) + 1] = value
    return network.start("s", *map(str, (network.binary, "farm", file, "--json", "--begin", *options)))


def receivers(network: Network, table, out: list) -> list[subprocess.Popen]:
    return [recv(network, server, table, out[server], BOARDS[:2]) for server in (0, 1)]


def end(
    network: Network, file, running: list[subprocess.Popen], coordinator, statuses: tuple[int, ...] = (0,)
) -> list[Result]:
    """Ends the run; all processes end by themselves. Gives the receivers' results."""
    begun = time.monotonic()
    assert ended(network.start("s", str(network.binary), "farm", file, "--end"), BOUND_S).status == 0
    results = [ended(process, BOUND_S) for process in running]
    print(f"the run has ended {time.monotonic() - begun:.1f} s after it was to end")
    result = ended(coordinator)
    assert result.status in statuses, result
    coordinator.notices = [json.loads(line) for line in result.stdout.splitlines()]
    return results


def test_a_run_ends_and_the_next_one_begins_while_the_detector_rests(network, tmp_path):
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=2), tmp_path / "servers.toml"
    boards = [board(network, k, REST) for k in range(2)]
    out = [tmp_path / f"run1.{server}" for server in (0, 1)]
    coordinator = farm(network, file, {})
    until("the file of servers", table.exists)
    running = receivers(network, table, out)
    for address in METRICS:
        network.counted(REST / 2, "events_complete", address=address)
    # No event will reach this change.
    farm_file(tmp_path, boards=2, unused=1)
    until("a change", lambda: len(changes(table)) == 1)
    results = end(network, file, running, coordinator)
    assert [result.status for result in results] == [0, 0], results
    assert span(table) == (0, REST)
    status, report = check(network, table, out)
    assert (status, report["end"], report["events_missing"]) == (0, REST, 0), report
    assert sorted(event for folder in out for event in stored(folder)) == list(range(REST))
    assert not any(notice["what"] in ("stuck", "board_left_out") for notice in coordinator.notices)

    # A run without any event begins and ends there.
    farm_file(tmp_path, boards=2)
    ended_run = announced_run(table)
    coordinator = farm(network, file, {})
    until("the next file of servers", lambda: announced_run(table) not in (None, ended_run))
    until("the begin of its run", lambda: span(table) == (REST, None))
    running = receivers(network, table, [tmp_path / f"run2.{server}" for server in (0, 1)])
    for address in METRICS:
        network.counted(2, "boards_up", address=address)
    results = end(network, file, running, coordinator)
    assert [result.status for result in results] == [0, 0], results
    assert span(table) == (REST, REST)
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)


def test_a_run_ends_without_a_board_that_is_off_and_names_it(network, tmp_path):
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=2), tmp_path / "servers.toml"
    boards = [board(network, k, 100_000) for k in range(2)]
    out = [tmp_path / f"run.{server}" for server in (0, 1)]
    coordinator = farm(network, file, OFF)
    until("the file of servers", table.exists)
    running = receivers(network, table, out)
    for address in METRICS:
        network.counted(4, "events_complete", address=address)
    killed(boards[1])
    # A fault, unless the servers miss it too.
    results = end(network, file, running, coordinator, statuses=(0, 1))
    left_out = [notice for notice in coordinator.notices if notice["what"] in ("board_left_out", "board_gone")]
    assert left_out and left_out[-1]["board"] == BOARDS[1], coordinator.notices
    for result in results:
        assert result.status == 1 and BOARDS[1] in " ".join(result.json()["faults"]), result
    _, last = span(table)
    complete = [event for folder in out for event in stored(folder)]
    assert complete and max(complete) < last
    boards[0].send_signal(signal.SIGINT)
    ended(boards[0])


def test_a_run_begins_after_all_was_killed_and_what_that_lost_is_named(network, tmp_path):
    """Boards do not notice that their receivers are dead: their queue pairs look ready when the next run begins."""
    network.address("s", SERVERS[1])
    file, table, abandoned = farm_file(tmp_path, boards=2), tmp_path / "servers.toml", tmp_path / "abandoned.toml"
    boards = [board(network, k, 100_000) for k in range(2)]
    out = [[tmp_path / f"run{run}.{server}" for server in (0, 1)] for run in (1, 2)]
    coordinator = farm(network, file, {})
    until("the file of servers", table.exists)
    running = receivers(network, table, out[0])
    for address in METRICS:
        network.counted(4, "events_complete", address=address)
    for process in (coordinator, *running):
        killed(process)
    _, report = check(network, table, out[0], "--recover")
    next_event = max((event for folder in out[0] for event in stored(folder)), default=-1) + 1
    assert report["not_known_from"] == next_event and report["end"] is None
    table.rename(abandoned)

    coordinator = farm(network, file, {})
    until("the next file of servers", table.exists)
    running = receivers(network, table, out[1])
    for address in METRICS:
        network.counted(4, "events_complete", address=address)
    results = end(network, file, running, coordinator)
    assert [(result.status, result.json()["faults"]) for result in results] == [(0, []), (0, [])], results
    begin, last = span(table)
    status, report = check(network, table, out[1])
    assert (status, report["not_known_from"]) == (0, None), report
    assert sorted(event for folder in out[1] for event in stored(folder)) == list(range(begin, last))

    # What the first run has lost is named up to the begin of the second one.
    [abandon] = [notice for notice in coordinator.notices if notice["what"] == "run_abandoned"]
    assert abandon["first"] == begin > next_event
    abandoned.write_text(f"{abandoned.read_text()}\n[[change]]\nfirst = {begin}\nlive = []\nend = true\n")
    _, report = check(network, abandoned, out[0])
    kept = [event for folder in out[0] for event in stored(folder)]
    incomplete = sum(file["events_incomplete"] for file in report["files"])
    lost = [number for of in report["missing_of"] for number in of["numbers"]]
    assert set(range(next_event, begin)) <= set(lost) and len(kept) + len(lost) + incomplete == begin
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)


def test_a_receiver_that_is_killed_again_and_again_gets_its_queue_pairs_each_time(network, tmp_path):
    """A board at rest does not notice that a receiver is dead, and has four queue pairs."""
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=1), tmp_path / "servers.toml"
    resting = board(network, 0, REST)
    coordinator = farm(network, file, {})
    until("the file of servers", table.exists)
    out = [tmp_path / f"run.{life}" for life in range(7)]
    first, second = (recv(network, server, table, out[server], BOARDS[:1]) for server in (0, 1))
    for address in METRICS:
        network.counted(REST / 2, "events_complete", address=address)
    for folder in out[2:]:
        killed(second)
        second = recv(network, 1, table, folder, BOARDS[:1])
        network.counted(1, "boards_up", address=METRICS[1])
    for process in (first, second, coordinator, resting):
        killed(process)


def test_boards_that_are_busy_at_times_of_their_own_give_an_event_one_time(network, tmp_path):
    """Triggers come late, each board's by another time, and receivers refuse fragments whose times differ by 1 us."""
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=2), tmp_path / "servers.toml"
    boards = [board(network, k, 100_000, "4us") for k in range(2)]
    coordinator = farm(network, file, {})
    until("the file of servers", table.exists)
    running = receivers(network, table, [tmp_path / f"run.{server}" for server in (0, 1)])
    for address in METRICS:
        network.counted(2, "events_complete", address=address)
    for k, packets in enumerate((1, 4)):
        limits = [f"timing.ring_{side}={packets}" for side in ("high", "low")]
        network.output("s", str(network.binary), "ctl", "set", BOARDS[k], *limits, "--patience", "20s")
    for address in METRICS:
        network.counted(200, "events_complete", address=address)
    results = end(network, file, running, coordinator)
    for result in results:
        assert result.status == 0 and result.json()["readout"]["builder"]["strays_timestamp"] == 0, result
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)
