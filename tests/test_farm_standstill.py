# SPDX-License-Identifier: Apache-2.0
"""A farm's server that stands still: its disk is full, or its process is suspended. Two verilated boards, two
receivers, one with a disk of its own, and `penstock farm`.

Promise checked: the other server stands still for a bounded time, whether the full one is left to the coordinator or
taken out by hand; the server gets events again within a bounded time once there is room, or it is resumed; only events
that were its own are lost, and `penstock check --servers` names them.
"""

import json
import signal
import time
from collections.abc import Callable

import pytest
from campaign import disks
from test_farm import BOARDS, METRICS, PATIENCE, SERVERS, changes, farm_file, recv, server_of, stored
from test_farm_edges import board
from test_farm_runs import check
from veth import Network, ended, until

pytestmark = pytest.mark.usefixtures("namespaces")

FULL_FOR_S = 1
# A board is stuck for --full-for before it is freed, and for as long again by an event of the table before.
STILL_S = 20
# A suspended receiver's events are given up a second after it has found its boards lost, not after --event-timeout.
RETURN_S = 30
# A change that it has not read waits for it for --read-patience (5 s); then boards give up their queue pairs to it.
SUSPENDED_S = 5 + 5
MORE = 4  # events
# A machine that is busy elsewhere makes boards slow: the bounds grow with the time of so many events.
SLOW_EVENTS = 10


class Watch:
    """How long a server has completed no event, at most."""

    def __init__(self, network: Network, address: str) -> None:
        self.network, self.address = network, address
        self.still_s, self.since, self.count = 0.0, time.monotonic(), self.complete()

    def complete(self) -> float:
        return self.network.metrics(self.address).get("events_complete", 0)

    def until(self, what: str, condition: Callable[[], object]) -> None:
        def look() -> bool:
            count, now = self.complete(), time.monotonic()
            self.still_s = max(self.still_s, now - self.since)
            if count > self.count:
                self.count, self.since = count, now
            return bool(condition())

        until(what, look)

    def goes_on(self) -> None:
        goal = self.count + MORE
        self.until("more events", lambda: self.count >= goal)


def completes_more(network: Network) -> None:
    """Server 1 has events again."""
    network.counted(network.metrics(METRICS[1])["events_complete"] + 1, "events_complete", address=METRICS[1])


def test_a_server_that_stands_still_stops_no_other_one_and_returns(network, tmp_path):
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=2), tmp_path / "servers.toml"
    patience = [*PATIENCE, "--relief", "2s"]
    patience[patience.index("--full-for") + 1] = f"{FULL_FOR_S}s"
    command = map(str, (network.binary, "farm", file, "--json", *patience, "--begin"))

    def live() -> list[int]:
        return changes(table)[-1]["live"] if changes(table) else [0, 1]

    with disks([tmp_path / "disk"]) as [disk]:
        coordinator = network.start("s", *command)
        until("the file of servers", table.exists)
        out = [tmp_path / "run.0", disk.folder / "run.1"]
        running = [recv(network, server, table, out[server], BOARDS[:2]) for server in (0, 1)]
        boards = [board(network, k, 100_000) for k in range(2)]
        network.counted(1, "events_complete")
        begun, before = time.monotonic(), network.metrics()["events_complete"]
        for address in METRICS:
            network.counted(before + MORE, "events_complete", address=address)
        slow_s = SLOW_EVENTS * (time.monotonic() - begun) / MORE
        for is_taken_out in (False, True):
            watch = Watch(network, METRICS[0])
            stalls = network.metrics(METRICS[1])["store_stalls"]
            disk.fill()
            watch.until("storage that waits", lambda n=stalls: network.metrics(METRICS[1])["store_stalls"] > n)
            if is_taken_out:
                farm_file(tmp_path, boards=2, unused=1)
            watch.until("a table without it", lambda: live() == [0])
            watch.goes_on()
            print(f"server 0 stood still for {watch.still_s:.1f} s; server 1 taken out by hand: {is_taken_out}")
            assert watch.still_s < STILL_S + slow_s
            disk.free()
            farm_file(tmp_path, boards=2)
            watch.until("a table with it", lambda: 1 in live())
            completes_more(network)
        # Suspended, it is like a dead one: others stand still for the boards' timers, which run in the boards' time.
        watch = Watch(network, METRICS[0])
        running[1].send_signal(signal.SIGSTOP)
        watch.until("a table without it", lambda: live() == [0])
        watch.goes_on()
        running[1].send_signal(signal.SIGCONT)
        resumed = time.monotonic()
        until("a table with it", lambda: 1 in live())
        completes_more(network)
        returned_s = time.monotonic() - resumed
        print(f"server 0 stood still for {watch.still_s:.1f} s; server 1 was suspended")
        assert watch.still_s < SUSPENDED_S + slow_s
        print(f"server 1 had events again {returned_s:.1f} s after SIGCONT")
        assert returned_s < RETURN_S + slow_s
        requests = network.start("s", str(network.binary), "farm", file, "--end")
        results = [ended(process) for process in (*running, coordinator, requests)]
        stuck = [json.loads(line) for line in results[2].stdout.splitlines()]
        # It may have been suspended before it had read a change.
        assert {notice["what"] for notice in stuck if notice["is_fault"]} <= {"unread"}, stuck
        assert results[3].status == 0, results[3]
        print([notice["text"] for notice in stuck if notice["what"] in ("stuck", "server_full", "server_free")])
        _, report = check(network, table, out)
        lost = [number for of in report["missing_of"] for number in of["numbers"]]
        print(f"{len(lost)} events are lost, {len([e for f in out for e in stored(f)])} are complete")
        assert {of["server"] for of in report["missing_of"]} <= {1}, report["missing_of"]
        assert not any(report["misplaced"].values()), report["misplaced"]
        complete = [event for folder in out for event in stored(folder)]
        assert sorted(stored(out[0])) == [event for event in range(report["end"]) if server_of(table, event) == 0]
        incomplete = sum(file["events_incomplete"] for file in report["files"])
        assert len(complete) + len(lost) + incomplete == report["end"]
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)
