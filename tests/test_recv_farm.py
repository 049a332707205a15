# SPDX-License-Identifier: Apache-2.0
"""Several `penstock recv` share a run by the destination table, as announced in a file that they read while they run.

Promise checked: each event is stored by its server; the events of a dead server are named one by one.
"""

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from processes import killed
from veth import METRICS, ended, first_board, read_until, row_groups, until

sys.path.append(str(Path(__file__).resolve().parents[1] / "tb"))

from lib.source_model import prbs31_bytes

pytestmark = pytest.mark.usefixtures("namespaces")

RUN, CHANGE = 4400, 4000  # a machine that is busy elsewhere has 8 s to announce the change


def test_a_server_that_dies_is_taken_out_at_an_announced_event_and_its_lost_events_are_named(network, built, tmp_path):
    subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "add", "10.77.0.2/16", "dev", "veth0"], check=True)
    table = tmp_path / "servers.toml"
    table.write_text("live = [0, 1]\n")
    out = [tmp_path / f"run{server}" for server in (0, 1)]
    stored = (RUN - CHANGE) + CHANGE // 2

    def recv(server: int, *options: object) -> subprocess.Popen:
        here = ("--servers", table, "--server", server, "--ip", f"10.77.0.{server + 1}", "--out", out[server])
        boards = [first_board(8 * server + k) for k in range(2)]
        return network.recv(*boards, *here, "--flush", 100, "--event-timeout", 5000, *options)

    def send(server: int) -> subprocess.Popen:
        # The queue pairs of the same two boards to another server.
        here = ("--servers", table, "--server", server, "--ip", first_board(8 * server), "--boards", 2)
        what = ("-n", RUN, "-l", 2000, "--rate", 400, "--ack-timeout", 16)
        return network.start("b", *map(str, (built / "penstock", "send", "--iface", "veth1", *here, *what)))

    metrics = "10.77.0.2:9100"
    receivers = [recv(0, "--events", stored), recv(1, "--metrics", metrics)]
    network.sees("01004D0A:12B7")
    network.sees("02004D0A:12B7")
    senders = [send(0), send(1)]
    network.counted(100, "stored_bytes", address=metrics)
    until("events on the disk", lambda: any(map(row_groups, out[1].glob("*.partial"))))
    receivers[1].kill()
    killed(senders[1])
    table.write_text(f"live = [0, 1]\n[[change]]\nfirst = {CHANGE}\nlive = [0]\n")

    result = ended(receivers[0])
    builder = result.json()["readout"]["builder"]
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    assert (builder["events_complete"], builder["events_incomplete"]) == (stored, 0)
    assert f"from event {CHANGE} on this server takes those that are 0 modulo 1" in result.stderr
    assert ended(senders[0]).status == 0
    assert receivers[1].wait() == -signal.SIGKILL

    command = [built / "penstock", "check", "--recover", "--servers", table, "--json", *out]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 1, check.stderr
    lost = json.loads(check.stdout)["missing_of"]
    assert [of["server"] for of in lost] == [1] and lost[0]["events"] == len(lost[0]["numbers"]) > 0
    kept = [pq.read_table(folder, columns=["event_number"])["event_number"].to_pylist() for folder in out]
    assert kept[0] == [*range(0, CHANGE, 2), *range(CHANGE, RUN)]
    assert kept[1] and all(event % 2 == 1 for event in kept[1])
    assert sorted([*kept[1], *lost[0]["numbers"]]) == list(range(1, CHANGE, 2)), "each of its events once"


@pytest.mark.parametrize(("payload", "verb"), [("prbs", ()), ("counter", ()), ("prbs", ("--pull",))])
def test_servers_that_share_a_run_verify_patterns_that_go_over_all_its_events(network, built, tmp_path, payload, verb):
    subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "add", "10.77.0.2/16", "dev", "veth0"], check=True)
    table = tmp_path / "servers.toml"
    # Server 0 has them alone in between: its payloads follow each other there.
    table.write_text("live = [0, 1]\n[[change]]\nfirst = 20\nlive = [0]\n[[change]]\nfirst = 31\nlive = [0, 1]\n")
    events, length = 50, 701
    numbers = [[n for n in range(events) if n % 2 == server or (20 <= n < 31 and server == 0)] for server in (0, 1)]
    numbers[1] = [n for n in numbers[1] if not 20 <= n < 31]
    running, out = [], [tmp_path / f"run{server}" for server in (0, 1)]
    for server in (0, 1):
        share = ("--servers", table, "--server", server, *verb)
        here = ("--ip", f"10.77.0.{server + 1}", "--out", out[server], "--events", len(numbers[server]))
        boards = [first_board(8 * server + k) for k in range(2)]
        running.append(network.recv(*boards, *share, *here, "--payload", payload, "--event-timeout", 5000))
        what = ("--ip", first_board(8 * server), "--boards", 2, "-n", events, "-l", length, "--payload", payload)
        running.append(network.start("b", *map(str, (built / "penstock", "send", "--iface", "veth1", *what, *share))))
    for process in running:
        result = ended(process)
        assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    command = [built / "penstock", "check", "--servers", table, "--payload", payload, *out]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr

    # Together they have what one server would have: the sequence of each board without a gap.
    stored = [pq.read_table(folder, columns=["event_number", "fragments"]).to_pydict() for folder in out]
    assert [columns["event_number"] for columns in stored] == numbers
    fragments = dict(pair for c in stored for pair in zip(c["event_number"], c["fragments"], strict=True))
    for source in range(2):
        sent = b"".join(fragments[event][source] for event in range(events))
        if payload == "prbs":
            assert sent == bytes(itertools.islice(prbs31_bytes(source + 1, True), events * length))
        else:
            words = np.arange(events * 88, dtype="<u8").reshape(events, 88)
            assert sent == b"".join(row.tobytes()[:length] for row in words)


def test_a_change_that_comes_too_late_is_refused_by_both_ends_alike_and_a_later_one_holds(network, built, tmp_path):
    table, out = tmp_path / "servers.toml", tmp_path / "run"
    table.write_text("live = [0]\n")
    boards = [first_board(k) for k in range(2)]
    here = ("--servers", table, "--server", 0)
    receiver = network.recv(*boards, *here, "--out", out, "--metrics", METRICS, "--event-timeout", 5000)
    network.sees("01004D0A:12B7")
    what = ("-n", 0, "-l", 500, "--rate", 200, "--boards", 2)
    sender = network.send(*map(str, (*what, *here)))
    network.counted(100, "events_complete")
    # Both have begun event 20; neither obeys, and events go on.
    table.write_text("live = [0]\n[[change]]\nfirst = 20\nlive = [1]\n")
    for process in (receiver, sender):
        read_until(process, "event 20")
    done = network.metrics()["events_complete"]
    network.counted(done + 50, "events_complete")
    # It is taken out of the file, and an end in time is obeyed.
    last = int(network.metrics()["events_complete"]) + 2000
    table.write_text(f"live = [0]\n[[change]]\nfirst = {last}\nlive = []\nend = true\n")
    result = ended(receiver)
    faults = result.json()["faults"]
    assert result.status == 1 and len(faults) == 1 and "event 20" in faults[0], faults
    assert pq.read_table(out, columns=["event_number"])["event_number"].to_pylist() == list(range(last))
    sender.send_signal(signal.SIGINT)
    result = ended(sender)
    assert result.status == 1 and any("event 20" in fault for fault in result.json()["faults"]), result.stdout
    assert {board["messages"] for board in result.json()["boards"]} == {last}


def test_a_server_without_a_part_of_the_run_needs_no_board(network, tmp_path):
    """Boards give no queue pair to a server that is out of use."""
    table = tmp_path / "servers.toml"
    table.write_text('run = "r"\nlive = [0]\n')
    share = ("--servers", table, "--server", 1, "--out", tmp_path / "run1", "--metrics", METRICS)
    receiver = network.recv(first_board(), *share)
    network.counted(1, "server_tables")
    table.write_text('run = "r"\nlive = [0]\n[[change]]\nfirst = 10\nlive = []\nend = true\n')
    result = ended(receiver)
    assert (result.status, result.json()["faults"]) == (0, []), result.stderr
