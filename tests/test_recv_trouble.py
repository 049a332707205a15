# SPDX-License-Identifier: Apache-2.0
"""`penstock recv` over a veth pair with wrong settings, or when addresses or folders change during the run.

Promise checked: errors are reported at once, and acknowledged data is not lost.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from processes import killed
from veth import METRICS, SERVER_IP, Result, ended, first_board, read_until, row_groups, until

pytestmark = pytest.mark.usefixtures("namespaces")

# Machines that run tests may stand still for a while.
PATIENT = ("--event-timeout", 5000)
WITH_METRICS = ("--metrics", METRICS)


def written(partial: Path) -> None:
    """Waits until row groups lie in a file."""
    until(f"row group in {partial}", lambda: partial.exists() and row_groups(partial))


# So few slots that a board that waits shows it soon.
RING = ("--slots", 8, "--slot-size", 4096)


def test_a_folder_that_is_deleted_stops_the_boards_and_the_run_is_whole_when_it_is_made_again(network, tmp_path):
    out, events = tmp_path / "run", 4000
    receiver = network.recv(
        first_board(), "--events", events, "--out", out, "--flush", 100, *RING, *PATIENT, *WITH_METRICS
    )
    sender = network.send("-n", events, "-l", 2000, "--rate", 1000, "--ack-timeout", 16, *RING)
    written(out / "events-000000.parquet.partial")
    shutil.rmtree(out)
    reported = read_until(receiver, "storage waits")
    assert f"{out}/events-000000.parquet.partial: cannot be found where it is written: No such file" in reported
    network.counted(1, "board_out_of_buffer", first_board())
    assert sender.poll() is None, "the board waits: it is said before the file is closed"
    out.mkdir()
    result = ended(receiver)
    assert result.status == 0 and "it is written anew, with the " in result.stderr, result
    readout = result.json()["readout"]
    assert (readout["receiver"]["store_stalls"], readout["builder"]["events_complete"]) == (1, events)
    assert ended(sender).json()["boards"][0]["rnr_nak"] > 0
    assert pq.read_table(out)["event_number"].to_pylist() == list(range(events)), "what was written before, too"


def interrupted_while_storage_waits(network, out: Path, events: int, *options: str):
    """A receiver, and its sender, that has had its first signal and holds events that it cannot store."""
    command = (
        network.binary,
        "recv",
        "--iface",
        "veth0",
        first_board(),
        "--events",
        events,
        *RING,
        *PATIENT,
        *WITH_METRICS,
    )
    receiver = network.start("s", *map(str, (*command, "--out", out, "--flush", 100, *options)))
    sender = network.send("-n", events, "-l", 2000, "--rate", 1000, "--ack-timeout", 16, *RING)
    written(out / "events-000000.parquet.partial")
    shutil.rmtree(out)
    read_until(receiver, "storage waits")
    network.counted(1, "board_out_of_buffer", first_board())
    receiver.send_signal(signal.SIGINT)
    read_until(receiver, "events are held until they can be stored")
    return receiver, sender


def test_a_third_signal_ends_it_at_once_and_the_report_is_printed_once(network, tmp_path):
    events = 4000
    receiver, sender = interrupted_while_storage_waits(network, tmp_path / "run", events, "--json")
    # Both are delivered when it goes on, so it has no time of its own between the second and the third.
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        receiver.send_signal(number)
    result = ended(receiver)
    assert result.status == 1 and result.stdout.count('"readout"') == 1, result
    assert 0 < result.json()["readout"]["builder"]["events_complete"] < events
    sender.send_signal(signal.SIGINT)
    ended(sender)


def test_a_full_disk_and_two_signals_leave_what_the_report_counts_and_a_recovery_finds(network, tmp_path):
    """The disk takes the first row groups, or not even one, if it is as long as it may be."""
    disk, kept, program = tmp_path / "disk", tmp_path / "kept", network.binary
    disk.mkdir()
    script = f'mount -t tmpfs -o size=6m none "$0"; "$@"; status=$?; cp -r {disk}/run {kept}; exit $status'
    for flush, rate in ((50, 200), (60_000, 4000)):
        shutil.rmtree(kept, ignore_errors=True)
        options = ("--event-timeout", 60_000, "--out", disk / "run", "--flush", flush, "--slot-size", 16384, "--json")
        command = (
            "sh",
            "-c",
            script,
            disk,
            program,
            "recv",
            "--iface",
            "veth0",
            first_board(),
            *WITH_METRICS,
            *options,
        )
        receiver = network.start("s", *map(str, command))
        read_until(receiver, "veth0: ")
        sender = network.send("-l", 10_000, "--rate", rate, "--ack-timeout", 16, "--slot-size", 16384)
        read_until(receiver, "storage waits")
        # The shell waits for the receiver, whose signals these are.
        [pid] = Path(f"/proc/{receiver.pid}/task/{receiver.pid}/children").read_text().split()
        os.kill(int(pid), signal.SIGINT)
        read_until(receiver, "events are held until they can be stored")
        os.kill(int(pid), signal.SIGINT)
        result = ended(receiver)
        sender.send_signal(signal.SIGINT)
        ended(sender)
        report = result.json()
        counters, builder = report["readout"]["receiver"], report["readout"]["builder"]
        stored, taken = counters["events_stored"], builder["events_complete"] + builder["events_incomplete"]
        [fault] = [fault for fault in report["faults"] if fault.startswith("stopped by a second signal: ")]
        lost, unwritten = map(int, re.search(r"(\d+) events are given up: (\d+) that are not on", fault).groups())
        assert result.status == 1 and unwritten == taken - stored > 0 and lost > unwritten, fault
        assert f"; {stored} events are on the disk" in fault and counters["bytes_stored"] == stored * 10_000
        assert (stored > 0) == (flush == 50), fault
        recovered = subprocess.run([program, "check", kept, "--recover", "--json"], capture_output=True, text=True)
        found = json.loads(recovered.stdout)
        assert sum(file["rows"] for file in found["recovered"]) == stored, recovered.stdout
        assert sum(file["events"] for file in found["files"]) == stored, recovered.stdout


@pytest.mark.parametrize("as_json", [True, False])
def test_a_second_signal_gives_up_what_is_waited_for_and_the_report_has_it(network, tmp_path, as_json):
    events = 4000
    options = ["--json"] if as_json else []
    receiver, sender = interrupted_while_storage_waits(network, tmp_path / "run", events, *options)
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    reported = "stopped by a second signal: "
    assert result.status == 1 and reported in result.stdout, result
    if as_json:
        report = result.json()
        assert any(fault.startswith(reported) and "0 events are on the disk" in fault for fault in report["faults"])
        assert report["readout"]["receiver"]["events_stored"] == 0, "what the deleted folder held is gone"
        assert 0 < report["readout"]["builder"]["events_complete"] < events
    else:
        assert f"fault: {reported}" in result.stdout and "BW average" in result.stdout, "the whole report"
    sender.send_signal(signal.SIGINT)
    ended(sender)


def test_a_file_system_that_is_away_is_waited_for_and_nothing_is_written_below_it(network, tmp_path):
    disk, kept, elsewhere, events = tmp_path / "disk", tmp_path / "kept", tmp_path / "elsewhere", 4000
    disk.mkdir(), elsewhere.mkdir()
    # `ip netns exec` gives a process mounts of its own: they go with it.
    script = f'mount -t tmpfs none "$0" && "$@"; status=$?; cp -r "$0" {kept}; exit $status'
    command = (
        network.binary,
        "recv",
        "--iface",
        "veth0",
        "--json",
        first_board(),
        "--events",
        events,
        *RING,
        *PATIENT,
        *WITH_METRICS,
    )
    words = map(str, (disk, *command, "--out", disk, "--flush", 100))
    receiver = network.start("s", "sh", "-c", script, *words)
    sender = network.send("-n", events, "-l", 2000, "--rate", 1000, "--ack-timeout", 16, *RING)
    written(Path(f"/proc/{receiver.pid}/root{disk}/events-000000.parquet.partial"))

    def move(here: Path, there: Path) -> None:
        move = ("mount", "--move", str(here), str(there))
        subprocess.run(["nsenter", "-t", str(receiver.pid), "-m", *move], check=True)

    move(disk, elsewhere)
    reported = read_until(receiver, "storage waits")
    assert "another file system is in its place; mount the file system that it was begun on" in reported, reported
    network.counted(1, "board_out_of_buffer", first_board())
    assert sender.poll() is None, "the board waits"
    assert list(disk.iterdir()) == []
    move(elsewhere, disk)
    result = ended(receiver)
    assert result.status == 0 and result.json()["readout"]["builder"]["events_complete"] == events, result
    assert ended(sender).status == 0
    assert pq.read_table(kept)["event_number"].to_pylist() == list(range(events))


def test_a_board_that_cannot_be_one_or_cannot_be_reached_is_named_with_what_is_wrong(network, tmp_path):
    refused = ended(network.recv(first_board(), SERVER_IP, "--seconds", 1))
    assert (refused.status, refused.stdout) == (2, "")
    assert f"{SERVER_IP}: {SERVER_IP} is this server's own address" in refused.stderr

    file = tmp_path / "boards.toml"
    twins = "".join(f'[[board]]\nname = "{name}"\nip = "{first_board()}"\n' for name in ("one", "other"))
    file.write_text(twins + '[[board]]\nname = "far"\nip = "192.168.5.5"\n')
    sender = network.send("--boards", 1, "-l", 1000, "--rate", 100)
    receiver = network.recv("--file", file, "--bring-up", 8)
    reported = read_until(receiver, "not up: far")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    far = "OPEN_QP cannot be sent: Network is unreachable (os error 101); has this server a route to it?"
    assert f"not up: far (192.168.5.5): {far} `ip route get 192.168.5.5`" in reported, reported
    faults = result.json()["faults"]
    assert result.status == 1 and any(fault.startswith(f"far (192.168.5.5) never came up: {far}") for fault in faults)
    # Which of the two is first is the system's choice, and a busy one may not answer the last question in time.
    assert any(re.search("(one|other) is up at the same address", fault) for fault in faults), faults
    sender.send_signal(signal.SIGINT)


@pytest.mark.parametrize("nonlocal_bind", [0, 1])
def test_an_address_that_is_taken_from_the_interface_is_reported_and_costs_nothing_if_it_comes_back(
    network, nonlocal_bind
):
    """Also where the kernel lets a socket bind to any address."""
    setting = f"net.ipv4.ip_nonlocal_bind={nonlocal_bind}"
    subprocess.run(["ip", "netns", "exec", f"{network.name}-s", "sysctl", "-qw", setting], check=True)
    sender = network.send("--boards", 2, "-n", 600, "-l", 2000, "--rate", 300, "--ack-timeout", 18)
    receiver = network.recv(first_board(0), first_board(1), "--events", 600, "--keep-alive", 300, *PATIENT)
    read_until(receiver, "2 of 2 boards are up")
    for action, reported in (("del", "has lost the address"), ("add", "again")):
        change = ("addr", action, f"{SERVER_IP}/16", "dev", "veth0")
        subprocess.run(["ip", "-n", f"{network.name}-s", *change], check=True)
        assert f"address {SERVER_IP}" in read_until(receiver, reported)
    result = ended(receiver)
    report = result.json()
    assert result.status == 0 and report["counters"]["address_lost"] == 1, result
    assert report["readout"]["builder"]["events_complete"] == 600
    assert ended(sender).status == 0


def test_a_board_that_is_back_at_a_later_event_slows_nobody_down(network):
    rate, board = 1000, first_board(2)

    def send(source: int, count: int, first_event: int = 0) -> subprocess.Popen:
        here = ("--ip", first_board(source), "--first-source", source, "--first-event", first_event)
        sends = ("send", "--iface", "veth1", "--boards", count, "-l", 1000, "--rate", rate, "--ack-timeout", 16)
        return network.start("b", *map(str, (network.binary, *sends, "--json", *here)))

    staying, dying = send(0, 2), send(2, 1)
    timeout_s = 2
    options = ("--keep-alive", 100, "--outage", timeout_s, *WITH_METRICS)
    receiver = network.recv(*map(first_board, range(3)), *options)
    read_until(receiver, "3 of 3 boards are up")
    network.counted(100, "events_complete")
    killed(dying)
    read_until(receiver, f"{board}: no answer to MODIFY_QP_RTS")
    network.counted(100, "events_incomplete")  # from then on it is not waited for
    # Further ahead than events can be open: none of what it sends can be taken.
    ahead = send(2, 1, 1_000_000)
    network.counted(2, "board_connections", board)
    begun, before = time.monotonic(), network.metrics()["events_incomplete"]
    network.counted(before + 2000, "events_incomplete")
    # If events waited for it again it would be 64, a ring of slots, in each timeout.
    assert time.monotonic() - begun < 2000 / 64 * timeout_s / 2
    network.counted(rate + 1, "fragments_stray")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    assert result.json()["readout"]["builder"]["strays_ahead"] > rate, result
    for sender in (staying, ahead):
        sender.send_signal(signal.SIGINT)
        ended(sender)


ROOT = Path(__file__).resolve().parents[1]


def scapy_board(network, what: str, *options, text: bool = False) -> tuple[str, Result]:
    """What a board that sends `what` was answered, and how the receiver has ended, its report JSON or text."""
    program = str(ROOT / "tests/scapy_board.py")
    board = network.start("b", str(ROOT / ".venv/bin/python"), program, SERVER_IP, first_board(), "veth1", what)
    assert board.stdout.readline() == "ready\n"
    options = (first_board(), "--keep-alive", 200, *options)
    if text:
        receiver = network.start("s", *map(str, (network.binary, "recv", "--iface", "veth0", *options)))
    else:
        receiver = network.recv(*options)
    output = board.stdout.readline()
    receiver.send_signal(signal.SIGINT)
    return output, ended(receiver)


def test_a_write_with_a_wrong_key_is_answered_nak_and_the_fault_names_the_key(network):
    output, result = scapy_board(network, "key")
    assert output.endswith("answered 0x62\n"), "NAK, remote access error"
    key = f"{int(output.split()[3].rstrip(','), 16) ^ 1:#010x}"
    report = result.json()
    assert (result.status, report["boards"][0]["counters"]["resp_remote_access_errors"]) == (1, 1), result
    why = f"queue pair in error: rkey {key} names no memory region: compare with the key the receiver announced"
    assert report["faults"] == [f"{first_board()} came up once and sent nothing: {why}"]
    assert why in result.stderr


@pytest.mark.usefixtures("either_socket")
def test_a_packet_far_above_the_path_mtu_is_answered_nak_and_is_reported(network):
    output, result = scapy_board(network, "long", "--mtu", 1024)
    assert output.endswith("answered 0x61\n"), "NAK, invalid request"
    assert "4096" in result.json()["faults"][0] and "1024" in result.json()["faults"][0], result
    assert result.json()["counters"]["rx_malformed"] == 0


@pytest.mark.usefixtures("either_socket")
def test_a_packet_longer_than_any_path_mtu_is_answered_by_either_socket(network):
    for end, interface in (("s", "veth0"), ("b", "veth1")):
        command = ["ip", "-n", f"{network.name}-{end}", "link", "set", interface, "mtu", "9000"]
        subprocess.run(command, check=True)
    output, result = scapy_board(network, "jumbo", "--mtu", 1024)
    assert output.endswith("answered 0x61\n"), "NAK, invalid request"
    assert "8800" in result.json()["faults"][0] and "1024" in result.json()["faults"][0], result
    assert result.json()["counters"]["rx_malformed"] == 0


def test_another_device_that_claims_the_servers_address_is_named(network):
    """A forged announcement: boards that believe it lose the server, which can only say so."""
    receiver = network.recv(first_board(), "--bring-up", 60)
    read_until(receiver, "veth0: ")  # how frames come in: all sockets are open
    mac, ip = bytes.fromhex("020077000099"), bytes(map(int, SERVER_IP.split(".")))
    arp = bytes.fromhex("0001 0800 06 04 0002") + (mac + ip) * 2
    with network.inside("b"), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("veth1", 0))
        raw.send(b"\xff" * 6 + mac + b"\x08\x06" + arp)
    reported = read_until(receiver, "says by ARP that it has")
    assert f"veth0: 02:00:77:00:00:99 says by ARP that it has {SERVER_IP}, this server's address" in reported
    receiver.send_signal(signal.SIGINT)
    assert ended(receiver).json()["counters"]["address_claimed"] == 1


def test_boards_that_are_up_and_send_nothing_are_reported_while_the_run_goes_on_and_are_its_fault(network):
    """One event, and then triggers that never come."""
    sender = network.send("--rate", 0.001, "-l", 1000)
    receiver = network.recv(first_board(), "--seconds", 2.5, "--event-timeout", 700, "--first-event", 0)
    reported = read_until(receiver, "no message has come for")
    assert "and 1 board is up: are there triggers" in reported and receiver.poll() is None
    result = ended(receiver)
    sender.send_signal(signal.SIGINT)
    ended(sender)
    report = result.json()
    assert report["readout"]["builder"]["events_complete"] == 1
    assert result.status == 1 and report["faults"][0].startswith("no message came for "), report["faults"]


@pytest.mark.usefixtures("either_socket")
@pytest.mark.parametrize(
    ("what", "counted"), [("priority", None), ("vlan", "rx_foreign_vlan"), ("version", "rx_malformed")]
)
def test_both_sockets_take_the_same_frames(network, what, counted):
    output, result = scapy_board(network, what)
    counters = result.json()["counters"]
    assert int(output.split()[-1], 16) < 0x20, "ACK: of the frame itself, or of the right one that followed"
    refused = {name: counters[name] for name in ("rx_foreign_vlan", "rx_malformed") if counters[name]}
    assert refused == ({counted: 1} if counted else {}), counters


def test_frames_that_were_dropped_stand_in_the_text_report(network):
    _, result = scapy_board(network, "vlan", text=True)
    assert "frames dropped: rx_foreign_vlan 1" in result.stdout.splitlines(), result


MISMATCH = "is not in the next slot"


@pytest.mark.parametrize(("slots", "size", "events"), [(16, 8192, 4), (32, 4096, 40)])
def test_slots_of_another_size_or_number_are_named_and_what_came_is_right(network, slots, size, events):
    """Both ends have the same slots, or what lies in a wrong one is refused before it is written."""
    sender = network.send("-n", events, "-l", 1000, "--slots", slots, "--slot-size", size)
    receiver = network.recv(
        first_board(), "--events", events, "--slots", 16, "--slot-size", 4096, "--event-timeout", 60_000
    )
    result = ended(receiver)
    faults = result.json()["faults"]
    assert result.status == 1 and any(MISMATCH in fault or "leaves its region" in fault for fault in faults), result
    assert any("do both ends have slots of the same size and number" in fault for fault in faults), faults
    built = result.json()["readout"]
    assert (built["builder"]["events_complete"], built["receiver"]["fragments_crc_error"]) == (events, 0)
    sender.send_signal(signal.SIGINT)
    ended(sender)


def test_bare_messages_into_slots_of_another_size_are_refused_and_the_run_is_given_up(network):
    """A board that was refused does not come back with the rest: the run says why and does not wait for ever."""
    fixed = ("--packet", "veth1", "--ip", "10.77.9.9", "--slots", 16, "--slot-size", 8192, "--mtu", 1024, "--json")
    board = network.start("b", *map(str, (network.binary, "board", *fixed, "--prbs", "1000x40")))
    pattern = ("--payload", "prbs", "--bare", "--messages", 40, "--mtu", 1024)
    result = ended(network.recv("10.77.9.9", *pattern, "--slots", 16, "--slot-size", 4096))
    faults = result.json()["faults"]
    assert result.status == 1 and any(MISMATCH in fault for fault in faults), result
    found = result.json()["readout"]["pattern"][0]
    assert (found["messages"], found["errors"]) == (1, 0), "nothing looks like damaged data"
    reported = ended(board)
    assert reported.status == 1 and "remote access error" in reported.json()["messages"]["first_error"], reported
