# SPDX-License-Identifier: Apache-2.0
"""Runs of a farm that follow each other on boards that live: two verilated boards, two receivers and `penstock farm`.

Promise checked: a run ends at one event for all servers, and each receiver ends by itself; the next run begins without
an option, after an end and after a coordinator that was stopped or killed; receivers that are killed and come back
together get no event of each other; every event is in one place or named as lost.
"""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from test_farm import (
    METRICS,
    SERVERS,
    announced_run,
    as_recorded,
    board,
    changes,
    farm,
    farm_file,
    killed,
    notices_of,
    recv,
    server_of,
    stored,
)
from veth import Network, ended, until

pytestmark = pytest.mark.usefixtures("namespaces")

BOARDS = 2
EACH = 6  # events of each server in a run


def span(table: Path) -> tuple[int, int | None]:
    """The first event of a run, and the one after its last."""
    found = changes(table)
    begin = next((change["first"] for change in found if change.get("begin")), 0)
    return begin, next((change["first"] for change in found if change.get("end")), None)


def receivers(network: Network, table: Path, out: list[Path], **settings: int) -> list[subprocess.Popen]:
    """One of each server, which take the events of the boards."""
    addresses = [f"10.77.9.{k + 1}" for k in range(BOARDS)]
    return [recv(network, server, table, out[server], addresses, **settings) for server in (0, 1)]


def check(network: Network, table: Path, out: list[Path], *options: str) -> tuple[int, dict]:
    """What `penstock check` says of a run."""
    command = [network.binary, "check", "--servers", table, "--json", *options, *out]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stderr
    return result.returncode, json.loads(result.stdout)


def flows(network: Network) -> None:
    """Every server completes events."""
    for address in METRICS:
        network.counted(EACH, "events_complete", address=address)


def test_runs_follow_each_other_on_boards_that_live(network, recorded, tmp_path):
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=BOARDS), tmp_path / "servers.toml"
    boards = [board(network, k) for k in range(BOARDS)]

    def out(run: str) -> list[Path]:
        return [tmp_path / f"run{run}.{server}" for server in (0, 1)]

    # The first run ends at one event; nobody tells the receivers.
    coordinator = farm(network, file, "--begin")
    until("the file of servers", table.exists)
    running = receivers(network, table, out("1"))
    flows(network)
    requests = network.start("s", str(network.binary), "farm", file, "--end")
    results = [ended(process) for process in running]
    assert [result.status for result in results] == [0, 0], results
    assert not any(notice["is_fault"] for notice in notices_of(coordinator))
    result = ended(requests)
    begin, end = span(table)
    assert (result.status, begin) == (0, 0) and str(end) in result.stdout, result
    status, report = check(network, table, out("1"))
    assert (status, report["end"], report["events_missing"]) == (0, end, 0), report
    for server, folder in enumerate(out("1")):
        events = stored(folder)
        assert sorted(events) == [event for event in range(end) if server_of(table, event) == server]
        as_recorded(events, recorded, BOARDS)
    # What nobody has stored at the end of the run is missed, and so is what is in the file of another run.
    status, report = check(network, table, out("1")[:1])
    assert status == 1 and report["missing_of"][0]["server"] == 1
    first_run = announced_run(table)

    # The second one begins with the next event, with the same file of the farm and no option.
    coordinator = farm(network, file, "--begin")
    until("the next file of servers", lambda: announced_run(table) not in (None, first_run))
    assert (tmp_path / f"servers-{first_run}.toml").exists()
    running = receivers(network, table, out("2"))
    flows(network)
    assert span(table) == (end, None), "no event lies between the runs"
    _, report = check(network, tmp_path / f"servers-{first_run}.toml", out("1"), "--allow-gaps")
    assert report["misplaced"]["files"] == 0
    # This coordinator is stopped, and the receivers are killed; nothing has ended the run.
    coordinator.send_signal(signal.SIGINT)
    assert not any(notice["is_fault"] for notice in notices_of(coordinator))
    for process in running:
        process.kill()
        process.wait()

    # The third one has another file, as the second one's run has not ended.
    table = tmp_path / "third.toml"
    Path(file).write_text(Path(file).read_text().replace('"servers.toml"', '"third.toml"'))
    coordinator = farm(network, file, "--begin")
    until("the file of servers", table.exists)
    running = receivers(network, table, out("3"))
    flows(network)
    begin, _ = span(table)
    assert begin > end

    # Both receivers and the coordinator die, and all are back at once, the coordinator last.
    for process in running:
        process.kill()
        process.wait()
    killed(coordinator)
    # What one board sent while a server was away never comes. That server waits for it as long as for any event, for
    # the first time in its search for the first one; the other board and the coordinator's change wait for the server.
    running = receivers(network, table, out("3.back"), event_timeout_ms=10_000)
    for address in METRICS:
        network.counted(0, "boards", address=address)
    coordinator = farm(network, file)
    flows(network)
    ended(network.start("s", str(network.binary), "farm", file, "--end"))
    for process in (*running, coordinator):
        result = ended(process)
        assert "is another server's" not in result.stderr, result
    _, report = check(network, table, [*out("3"), *out("3.back")], "--recover")
    assert report["misplaced"] == {"files": 0, "nameless": 0, "events": 0, "outside": 0}, report
    begin, end = span(table)
    lost = {number for of in report["missing_of"] for number in of["numbers"]}
    kept = [event for folder in (*out("3"), *out("3.back")) if folder.exists() for event in stored(folder)]
    incomplete = sum(file["events_incomplete"] for file in report["files"])
    assert len(set(kept)) == len(kept) and len({*kept, *lost}) + incomplete == end - begin
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)


@pytest.mark.parametrize(
    ("interval", "weights", "paces"),
    [("5us", (1, 3), ("1", "1")), ("20us", (2, 1), ("0.0001", "1"))],
)
def test_runs_of_servers_of_different_weights_follow_each_other_at_any_rate(
    network, tmp_path, interval, weights, paces
):
    """Each run is ended by `penstock farm --end` while the boards go on, and begins with the next event. A board on a
    faster line is ahead of the other one by as much as the servers take."""
    network.address("s", SERVERS[1])
    file, table = farm_file(tmp_path, boards=BOARDS, weights=weights), tmp_path / "servers.toml"
    boards = [board(network, k, interval=interval, pace=pace) for k, pace in enumerate(paces)]
    following, name = 0, None
    for run in range(2):
        coordinator = farm(network, file, "--begin")
        until("a file of servers", lambda last=name: announced_run(table) not in (None, last))
        name, out = announced_run(table), [tmp_path / f"{run}.{server}" for server in (0, 1)]
        running = receivers(network, table, out)
        flows(network)
        requests = ended(network.start("s", str(network.binary), "farm", file, "--end"))
        assert requests.status == 0, requests
        results = [ended(process) for process in (*running, coordinator)]
        assert [result.status for result in results] == [0, 0, 0], [
            result.stdout[-3000:] + result.stderr[-1500:] for result in results
        ]
        begin, end = span(table)
        assert begin == following, "no event lies between the runs"
        events = [stored(folder) for folder in out]
        for server, kept in enumerate(events):
            assert sorted(kept) == [event for event in range(begin, end) if server_of(table, event) == server]
        following = end
    for process in boards:
        process.send_signal(signal.SIGINT)
        ended(process)
