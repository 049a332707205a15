# SPDX-License-Identifier: Apache-2.0
"""Farms: verilated boards into two `penstock recv`, kept in step by `penstock farm`. A receiver is killed and comes
back; two coordinators want the same boards.

Promise checked: no event is split between servers; those that are lost lay with the dead one and are named one by one;
a coordinator that is killed, in the middle of a change too, is followed by the next one, which finishes; of two
coordinators one goes on and the other ends with the reason.
"""

import json
import shutil
import signal
import subprocess
import tomllib
from contextlib import suppress

import board_server  # noqa: F401  (where `lib` is)
import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import DATA
from processes import killed
from veth import SERVER_IP, Network, ended, read_until, row_groups, until

pytestmark = pytest.mark.usefixtures("namespaces")

SERVERS = [SERVER_IP, "10.77.0.2"]
METRICS = [f"{ip}:9100" for ip in SERVERS]
FARM_METRICS = f"{SERVER_IP}:9200"
BOARDS = [f"10.77.9.{k + 1}" for k in range(3)]
EVENTS, SHARED = 100_000, 64  # more than a run gets to; a board has every 64th module of an event
BEYOND = 12  # events of the living server after the change
SLOTS, SLOT_BYTES = 8, 16384
VERBS = ["write-imm", "send-imm", "write-imm"]  # of each board: a receiver takes either
TIMEOUT_CODE, RETRIES = 6, 7
# A queue pair is given up after retries + 1 timers without an answer, the first of them begun by the next event.
TIMERS_US = (RETRIES + 1) * 4.096 * 2**TIMEOUT_CODE
ALLOWANCE_US = TIMERS_US
# Machines that are busy elsewhere make boards and heartbeats slow, and receivers full; looks cost the boards cycles.
PATIENCE = [
    *("--board-patience", "30s", "--heartbeat-patience", "60s", "--start-patience", "100s", "--look", "200ms"),
    *("--full-for", "1000s"),
]


def farm_file(folder, boards: int = len(BOARDS), unused: int | None = None, weights: tuple[int, int] = (1, 1)) -> str:
    """The file of the farm, in which one server may be out of use; returns its name."""
    text = f'servers = "servers.toml"\n[[board]]\nip = "{BOARDS[0]}"\ncount = {boards}\n'
    for k, ip in enumerate(SERVERS):
        use = str(k != unused).lower()
        text += f'[[server]]\nnumber = {k}\nip = "{ip}"\nmetrics = "{METRICS[k]}"\nuse = {use}\n'
        text += f"weight = {weights[k]}\n"
    (folder / "farm.toml").write_text(text)
    return str(folder / "farm.toml")


def recv(
    network: Network, server: int, table, out, boards: list[str] = BOARDS, *options: str, event_timeout_ms: int = 60_000
) -> subprocess.Popen:
    share = ("--servers", table, "--server", server, "--ip", SERVERS[server], "--metrics", METRICS[server])
    ring = ("--slots", SLOTS, "--slot-size", SLOT_BYTES, "--event-timeout", event_timeout_ms, "--flush", 100)
    return network.recv(*boards, *share, *ring, "--state", "none", "--out", out, *options)


def board(network: Network, k: int, *options: str, interval: str = "20us", pace: str = "1") -> subprocess.Popen:
    command = (network.binary, "board", "--packet", "veth1", "--ip", BOARDS[k], "--share", f"{k}/{SHARED}", "--json")
    ring = ("--slots", SLOTS, "--slot-size", SLOT_BYTES, "--ack-timeout", TIMEOUT_CODE, "--retry-cnt", RETRIES)
    events = ("--events", EVENTS, "--by-event", "--verb", VERBS[k], "--data", DATA, "--interval", interval)
    return network.start("b", *map(str, (*command, *ring, *events, "--pace", pace, *options)))


def farm(network: Network, file, *options: object) -> subprocess.Popen:
    command = (network.binary, "farm", file, "--json", *PATIENCE, *options)
    return network.start("s", *map(str, command))


def notices_of(process: subprocess.Popen, status: int = 0) -> list[dict]:
    """What a coordinator that has ended had to say."""
    result = ended(process)
    assert result.status == status, result
    return [json.loads(line) for line in result.stdout.splitlines()]


def interrupted(receivers: list[subprocess.Popen]) -> None:
    """Ends receivers, which do not wait for events that only some boards have sent; `recovered` closes their files."""
    for process in receivers:
        process.send_signal(signal.SIGINT)
    for process in receivers:
        read_until(process, "once more to give up")
        process.send_signal(signal.SIGINT)
    for process in receivers:
        ended(process)


def recovered(network: Network, table, folders: list) -> list[dict]:
    """Completes the files of receivers; gives what each server lacks, the events to which not all boards came too."""
    command = [network.binary, "check", "--recover", "--servers", table, "--json", *folders]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode in (0, 1), check.stderr
    return json.loads(check.stdout)["missing_of"]


def announced_run(table) -> str | None:
    """The run that a file of servers names; none where there is no file, as while the coordinator renames it.

    One look: between two the file may be renamed.
    """
    with suppress(FileNotFoundError):
        return tomllib.loads(table.read_text())["run"]
    return None


def changes(table) -> list[dict]:
    """What a file of servers has announced."""
    return tomllib.loads(table.read_text()).get("change", [])


def server_of(table, event: int) -> int:
    """By a file of servers."""
    tables = [{"first": 0, "live": tomllib.loads(table.read_text())["live"]}, *changes(table)]
    rows = next(change["live"] for change in reversed(tables) if change["first"] <= event)
    return rows[event % len(rows)]


def stored(folder) -> dict[int, tuple[list[int], list[bytes]]]:
    """Sources and payloads of each complete event; none where a receiver was killed before its first file."""
    if not list(folder.glob("*.parquet")):
        return {}
    rows = pq.read_table(folder, columns=["event_number", "complete", "sources", "fragments"]).to_pylist()
    return {row["event_number"]: (row["sources"], row["fragments"]) for row in rows if row["complete"]}


def as_recorded(events: dict[int, tuple[list[int], list[bytes]]], recorded: np.ndarray, boards: int) -> None:
    """Each has all boards' parts, byte for byte."""
    for event, (sources, fragments) in events.items():
        assert sources == list(range(boards)), f"event {event}"
        expected = [recorded[event % len(recorded), k::SHARED].tobytes() for k in sources]
        assert fragments == expected, f"event {event}"


def test_a_receiver_killed_in_full_flow_loses_its_own_events_alone_and_they_are_named(network, recorded, tmp_path):
    subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "add", f"{SERVERS[1]}/16", "dev", "veth0"], check=True)
    file, table = farm_file(tmp_path), tmp_path / "servers.toml"
    out = [tmp_path / f"run{name}" for name in ("0", "1", "1.back")]

    first_coordinator = farm(network, file, "--begin")
    until("the file of servers", table.exists)
    receivers = [recv(network, server, table, out[server]) for server in (0, 1)]
    boards = [board(network, k) for k in range(len(BOARDS))]
    network.counted(5, "events_complete", address=METRICS[1])

    # The coordinator dies, and another one continues.
    killed(first_coordinator)
    second_coordinator = farm(network, file)
    network.counted(10, "events_complete", address=METRICS[1])
    until("events on the disk", lambda: any(map(row_groups, out[1].glob("*.partial"))))
    killed(receivers[1])
    until("a change of servers", lambda: len(changes(table)) == 1)
    # This one dies before the receiver that is left has read the file, or soon after; the third one finishes.
    killed(second_coordinator)
    coordinator = farm(network, file)
    [change] = changes(table)
    assert change["live"] == [0]
    first = change["first"]
    network.counted((first + 1) // 2 + BEYOND, "events_complete", address=METRICS[0])

    # The server comes back, and gets events again from one number on.
    receivers[1] = recv(network, 1, table, out[2])
    until("the change back", lambda: len(changes(table)) == 2)
    back = changes(table)[1]
    assert back["live"] == [0, 1]
    second = back["first"]
    assert second > first
    network.counted(BEYOND, "events_complete", address=METRICS[1])
    network.counted((first + 1) // 2 + second - first + BEYOND, "events_complete", address=METRICS[0])
    for process in boards:
        process.send_signal(signal.SIGINT)
    reports = [ended(process) for process in boards]
    interrupted(receivers)
    coordinator.send_signal(signal.SIGINT)
    notices = notices_of(coordinator)
    assert not any(notice["is_fault"] for notice in notices), notices

    # What is in no file is named, and was the dead server's.
    [lost] = [of for of in recovered(network, table, out) if of["server"] == 1]
    kept = [stored(folder) for folder in out]
    named = [number for number in lost["numbers"] if number < second]  # the servers were not stopped at one event
    assert named
    alone = list(range(first, second))
    assert sorted(kept[0]) == sorted({*range(0, max(kept[0]) + 1, 2), *alone}) and len(alone) >= BEYOND
    assert sorted([*kept[1], *named]) == list(range(1, first, 2)), "each of its events once"
    assert sorted(kept[2]) == list(range(second | 1, max(kept[2]) + 1, 2)) and len(kept[2]) >= BEYOND

    for events in kept:
        as_recorded(events, recorded, len(BOARDS))

    # The boards know of no other lost events. Their timers run in their own time, the coordinator in the machine's, in
    # which slow boards answer late.
    seconds = {notice["what"]: notice["seconds"] for notice in notices}  # the last of each: of the change back
    print(f"table of all boards changed {1e3 * (seconds['done'] - seconds['begun']):.0f} ms after it was wanted")
    for report in reports:
        summary = report.json()
        failed = sum(destination["failed"] for destination in summary["destinations"])
        assert failed <= lost["events"] and report.status == 1
        [outage] = summary["outages"]
        assert (outage["server"], outage["first_event"]) == (SERVERS[1], first)
        given_up_us = outage["failed_us"] - outage["answered_us"]
        print(
            f"given up {given_up_us:.0f} us after the last answer, of the board's time; "
            f"{summary['timing']['slowdown']:.0f} times slower than real time"
        )
        assert TIMERS_US < given_up_us < TIMERS_US + ALLOWANCE_US
        assert outage["resumed_us"] > outage["failed_us"]


def yielded(process: subprocess.Popen, owner: int) -> None:
    """A coordinator has ended, as another one has boards of its farm."""
    faults = [notice for notice in notices_of(process, status=1) if notice["is_fault"]]
    # Receivers that read the other one's file are of no use to it.
    faults = [notice for notice in faults if notice["what"] != "heartbeat_refused"]
    assert [(notice["what"], notice["owner"]) for notice in faults] == [("taken", owner)]
    assert "--take-over" in faults[0]["text"]


def test_of_two_coordinators_one_ends_and_names_the_owner_of_the_boards_and_no_event_is_split(
    network, recorded, tmp_path
):
    """Begun at once on two hosts, whose files are their own; on one host; late; and with the boards taken over."""
    network.address("s", SERVERS[1])
    hosts = [tmp_path / name for name in ("here", "there")]
    for host in hosts:
        host.mkdir()
    files = [farm_file(host, boards=2) for host in hosts]
    tables = [host / "servers.toml" for host in hosts]
    owners = here, there = 5, 6
    both = [farm(network, file, "--begin", "--owner", owner) for file, owner in zip(files, owners, strict=True)]
    until("the files of servers", lambda: all(table.exists() for table in tables))
    # What receivers read is the file of the coordinator that has the boards.
    table = tmp_path / "servers.toml"
    table.symlink_to(tables[0])
    out = [tmp_path / f"run{server}" for server in (0, 1)]
    receivers = [recv(network, server, table, out[server], BOARDS[:2]) for server in (0, 1)]
    boards = [board(network, k) for k in range(2)]

    # Of those that have begun at once one ends, or both do; one that takes over has all boards.
    until("a coordinator to end", lambda: any(process.poll() is not None for process in both))
    over = [process.poll() is not None for process in both]
    for process, has_ended, other in zip(both, over, (there, here), strict=True):
        if has_ended:
            yielded(process, other)
        else:
            process.send_signal(signal.SIGINT)
            ended(process)
    first = farm(network, files[0], "--owner", here, "--take-over", "--metrics", FARM_METRICS)
    network.counted(2, "farm_boards_in_force", address=FARM_METRICS)
    network.counted(5, "events_complete", address=METRICS[1])
    # A second one on the same host, and one on another host.
    same = ended(farm(network, files[0], "--owner", here))
    assert same.status == 2 and "another `penstock farm` coordinates these servers" in same.stderr, same
    yielded(farm(network, files[1], "--owner", there), here)
    assert first.poll() is None and not changes(tables[0])

    # Taken over, with the file of the run: the first one ends, and the other changes the servers.
    shutil.copy(tables[0], tables[1])
    taker = farm(network, files[1], "--owner", there, "--take-over")
    yielded(first, there)
    (tmp_path / "next").symlink_to(tables[1])
    (tmp_path / "next").rename(table)
    farm_file(hosts[1], boards=2, weights=(2, 1))
    until("a change of weights", lambda: len(changes(tables[1])) == 1)
    [heavier] = changes(tables[1])
    weighed = heavier["first"]
    assert heavier["live"] == [0, 1, 0] and not changes(tables[0])
    network.counted((weighed + 1) // 2 + BEYOND, "events_complete", address=METRICS[0])
    farm_file(hosts[1], boards=2, weights=(2, 1), unused=1)
    until("a change of servers", lambda: len(changes(tables[1])) == 2)
    _, change = changes(tables[1])
    begin = change["first"]
    assert change["live"] == [0] and begin >= weighed + BEYOND
    servers_before = [server_of(tables[1], event) for event in range(begin)]
    network.counted(servers_before.count(0) + BEYOND, "events_complete", address=METRICS[0])
    # A board may be further with the one server than with the other, and gives up the rest when it is interrupted.
    network.counted(servers_before.count(1), "events_complete", address=METRICS[1])
    for process in (*boards, taker):
        process.send_signal(signal.SIGINT)
    for process in boards:
        ended(process)
    interrupted(receivers)
    assert not any(notice["is_fault"] for notice in notices_of(taker))

    # Every event has gone to one server, that of the table, with the parts of both boards.
    lost = [number for of in recovered(network, table, out) for number in of["numbers"]]
    assert all(number >= begin for number in lost), "but those at the end, to which one board did not come"
    kept = [stored(folder) for folder in out]
    end = max(kept[0]) + 1
    for server in (0, 1):
        assert sorted(kept[server]) == [event for event in range(end) if server_of(table, event) == server]
    of_weights = [server_of(table, event) for event in range(weighed, begin)]
    assert abs(of_weights.count(0) - 2 * of_weights.count(1)) <= 2
    for events in kept:
        as_recorded(events, recorded, boards=2)
