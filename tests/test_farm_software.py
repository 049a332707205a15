# SPDX-License-Identifier: Apache-2.0
"""Boards in software under the coordinator: `penstock send --by-event`, two receivers, `penstock farm`.

Promise checked: pushed or pulled they do what verilated boards do: each event goes to the server that the table names,
runs begin and end on boards that live, what is lost lay with a receiver that was killed, and it is named.
"""

import signal
import subprocess

import numpy as np
import pytest
from campaign import Sent, stored
from processes import killed
from test_farm import METRICS, SERVERS, announced_run, changes, farm, farm_file, recv, server_of
from test_farm_runs import check, span
from veth import Network, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")

BOARDS = [first_board(k) for k in range(2)]
RATE, LENGTH = 2000, 1500
EACH = 50  # events of each server before anything happens


def boards(network: Network, *options: object, slots: int = 8) -> subprocess.Popen:
    many = ("--by-event", "--boards", len(BOARDS), "--rate", RATE, "-l", LENGTH)
    return network.send(*map(str, (*many, "--slots", slots, "--slot-size", 16384, *options)))


def flows(network: Network) -> None:
    for address in METRICS:
        least = network.metrics(address).get("events_complete", 0) + EACH
        network.counted(least, "events_complete", address=address)


# Slots that a server reads are more than the READs that may be repeated; others are those of the server's ring.
@pytest.mark.parametrize(("verb", "slots"), [((), 8), (("--pull",), 32)], ids=["push", "pull"])
def test_boards_in_software_follow_the_coordinator(network, tmp_path, verb, slots):
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=2), tmp_path / "servers.toml"
    text = (tmp_path / "farm.toml").read_text().replace("10.77.9.1", BOARDS[0])
    (tmp_path / "farm.toml").write_text(text)
    senders, sent = boards(network, *verb, slots=slots), Sent(np.empty(0), LENGTH)
    following, name = 0, None
    for run in range(3):
        coordinator = farm(network, file, "--begin")
        until("a file of servers", lambda last=name: announced_run(table) not in (None, last))
        name, out = announced_run(table), [tmp_path / f"{run}.{server}" for server in (0, 1)]
        running = [recv(network, server, table, out[server], BOARDS, *verb) for server in (0, 1)]
        flows(network)
        if run == 1:
            # A receiver is killed in full flow and comes back.
            killed(running[1])
            until("a table without it", lambda: [change["live"] for change in changes(table)][-1:] == [[0]])
            out.append(tmp_path / f"{run}.back")
            running[1] = recv(network, 1, table, out[2], BOARDS, *verb)
            until("a table with it", lambda: [change["live"] for change in changes(table)][-1:] == [[0, 1]])
            flows(network)
        requests = ended(network.start("s", str(network.binary), "farm", file, "--end"))
        results = [ended(process) for process in (*running, coordinator)]
        failed = [result.stdout[-3000:] + result.stderr[-1500:] for result in (requests, *results) if result.status]
        assert failed == []
        begin, end = span(table)
        assert begin == following, "no event lies between the runs"
        following = end
        kept: list[int] = []
        recover = ["--recover"] if run == 1 else []
        status, report = check(network, table, out, *recover)
        lost = {number for of in report["missing_of"] for number in of["numbers"]}
        for server, folder in zip((0, 1, 1), out, strict=False):
            found = stored(folder, sent, {})
            assert all(server_of(table, event) == server for event in found.numbers)
            assert run == 1 or not found.missing
            kept += found.numbers
        assert sorted([*kept, *lost]) == list(range(begin, end))
        assert status == 0 or (run == 1 and all(server_of(table, event) == 1 for event in lost)), report
    senders.send_signal(signal.SIGINT)
    report = ended(senders).json()
    assert [board["messages"] + board["messages_lost"] >= following for board in report["boards"]] == [True, True]


def test_what_cannot_be_steered_is_refused_by_name(network, tmp_path):
    for options, why in [
        (("--protocol", "tcp"), "--by-event: goes with --protocol rc"),
        (("--connect", SERVERS[0]), "--by-event"),
    ]:
        result = ended(boards(network, *options))
        assert result.status == 2 and why in result.stderr, result
    # One without a table says so to the coordinator.
    file = farm_file(tmp_path, boards=1)
    (tmp_path / "farm.toml").write_text((tmp_path / "farm.toml").read_text().replace("10.77.9.1", BOARDS[0]))
    sender = network.send("-n", "1")
    coordinator = farm(network, file, "--begin")
    for line in coordinator.stdout:
        if BOARDS[0] in line:
            break
    assert "--by-event" in line, line
    for process in (coordinator, sender):
        process.send_signal(signal.SIGINT)
        ended(process)
