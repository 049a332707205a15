# SPDX-License-Identifier: Apache-2.0
"""`penstock recv` over a veth pair when what it was told is wrong, or the world changes under it: addresses, folders.

Promise checked: it says at once what is wrong, and what was acknowledged is not given up.
"""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from veth import SERVER_IP, ended, first_board, said_until

pytestmark = pytest.mark.usefixtures("namespaces")

# Machines that run tests may stand still for a while.
PATIENT = ("--event-timeout", 5000)


def written(partial: Path) -> None:
    """Waits until row groups lie in a file."""
    deadline = time.monotonic() + 10
    while not (partial.exists() and partial.stat().st_size > 100_000):
        assert time.monotonic() < deadline, "nothing is written"
        time.sleep(0.02)


# So few slots that a board that waits shows it soon.
RING = ("--slots", 8, "--slot-bytes", 4096)


def test_a_folder_that_is_deleted_stops_the_boards_and_the_run_is_whole_when_it_is_made_again(network, tmp_path):
    out, events = tmp_path / "run", 4000
    receiver = network.recv(first_board(), "--events", events, "--out", out, "--flush", 100, *RING, *PATIENT)
    sender = network.send("-n", events, "-l", 2000, "--rate", 1000, "--ack-timeout", 16, *RING)
    written(out / "events-000000.parquet.partial")
    shutil.rmtree(out)
    taken = time.monotonic()
    said = said_until(receiver, "storage waits")
    assert f"{out}/events-000000.parquet.partial: cannot be found where it is written: No such file" in said
    assert time.monotonic() - taken < 5, "and not when the file is closed"
    time.sleep(0.5)
    assert sender.poll() is None, "the board waits"
    out.mkdir()
    result = ended(receiver)
    assert result.status == 0 and "it is written anew, with the " in result.stderr, result
    readout = result.json()["readout"]
    assert (readout["receiver"]["store_stalls"], readout["builder"]["events_complete"]) == (1, events)
    assert ended(sender).json()["boards"][0]["rnr_nak"] > 0
    assert pq.read_table(out)["event_number"].to_pylist() == list(range(events)), "what was written before, too"


def test_a_file_system_that_is_away_is_waited_for_and_nothing_is_written_below_it(network, tmp_path):
    disk, kept, elsewhere, events = tmp_path / "disk", tmp_path / "kept", tmp_path / "elsewhere", 4000
    disk.mkdir(), elsewhere.mkdir()
    # `ip netns exec` gives a process mounts of its own: they go with it.
    script = f'mount -t tmpfs none "$0" && "$@"; status=$?; cp -r "$0" {kept}; exit $status'
    command = (network.binary, "recv", "--iface", "veth0", "--json", first_board(), "--events", events, *RING, *PATIENT)
    words = map(str, (disk, *command, "--out", disk, "--flush", 100))
    receiver = network.start("s", "sh", "-c", script, *words)
    sender = network.send("-n", events, "-l", 2000, "--rate", 1000, "--ack-timeout", 16, *RING)
    written(Path(f"/proc/{receiver.pid}/root{disk}/events-000000.parquet.partial"))

    def move(here: Path, there: Path) -> None:
        move = ("mount", "--move", str(here), str(there))
        subprocess.run(["nsenter", "-t", str(receiver.pid), "-m", *move], check=True)

    move(disk, elsewhere)
    said = said_until(receiver, "storage waits")
    assert "another file system is in its place; mount the file system that it was begun on" in said, said
    time.sleep(0.5)
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
    result = ended(network.recv("--file", file, "--seconds", 4, "--bring-up", 2))
    far = "OPEN_QP cannot be sent: Network is unreachable (os error 101); has this server a route to it?"
    assert f"not up: far (192.168.5.5): {far} `ip route get 192.168.5.5`" in result.stderr, result.stderr
    faults = result.json()["faults"]
    assert result.status == 1 and any(fault.startswith(f"far (192.168.5.5) never came up: {far}") for fault in faults)
    assert any("answered NO_QP to OPEN_QP" in fault and "one is up at the same address" in fault for fault in faults)
    sender.send_signal(signal.SIGINT)


def test_an_address_that_is_taken_from_the_interface_is_said_and_costs_nothing_if_it_comes_back(network):
    sender = network.send("--boards", 2, "-n", 600, "-l", 2000, "--rate", 300, "--ack-timeout", 14)
    receiver = network.recv(first_board(0), first_board(1), "--events", 600, "--keep-alive", 300, *PATIENT)
    said_until(receiver, "2 of 2 boards are up")
    for action, said in (("del", "has lost the address"), ("add", "again")):
        change = ("addr", action, f"{SERVER_IP}/16", "dev", "veth0")
        subprocess.run(["ip", "-n", f"{network.name}-s", *change], check=True)
        assert f"address {SERVER_IP}" in said_until(receiver, said)
    result = ended(receiver)
    report = result.json()
    assert result.status == 0 and report["counters"]["address_lost"] == 1, result
    assert report["readout"]["builder"]["events_complete"] == 600
    assert ended(sender).status == 0


def test_a_board_that_is_back_at_a_later_event_slows_nobody_down(network):
    rate, board = 1000, first_board(2)

    def send(source: int, count: int, first_event: int = 0) -> subprocess.Popen:
        here = ("--ip", first_board(source), "--first-source", source, "--first-event", first_event)
        sends = ("send", "--iface", "veth1", "--boards", count, "-l", 1000, "--rate", rate, "--ack-timeout", 14)
        return network.start("b", *map(str, (network.binary, *sends, "--json", *here)))

    def metrics() -> dict[str, int]:
        fetch = f"import urllib.request as u; print(u.urlopen('http://{SERVER_IP}:9100/metrics').read().decode())"
        text = ended(network.start("s", "python3", "-c", fetch)).stdout
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {name: int(float(value)) for name, value in lines}

    def events() -> int:
        now = metrics()
        return now["penstock_events_complete_total"] + now["penstock_events_incomplete_total"]

    staying, dying = send(0, 2), send(2, 1)
    options = ("--keep-alive", 100, "--event-timeout", 1500, "--metrics", f"{SERVER_IP}:9100")
    receiver = network.recv(*map(first_board, range(3)), *options)
    said_until(receiver, "3 of 3 boards are up")
    time.sleep(0.5)
    dying.kill()
    dying.wait()
    assert "was it reset" in said_until(receiver, board)
    time.sleep(2)  # from then on it is not waited for
    # Further ahead than events can be open: none of what it sends can be taken.
    ahead = send(2, 1, 1_000_000)
    deadline = time.monotonic() + 10
    while metrics()[f'penstock_board_connections_total{{board="{board}"}}'] < 2:
        assert time.monotonic() < deadline, "it does not come up again"
    time.sleep(0.5)
    before = events()
    time.sleep(3)
    # If events waited for it again it would be 64, a ring of slots, each 1.5 s.
    assert events() - before > rate
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    assert result.json()["readout"]["builder"]["strays_ahead"] > rate, result
    for sender in (staying, ahead):
        sender.send_signal(signal.SIGINT)
        ended(sender)


# A board of its own: it opens as one does, and then writes with a key that is not the one it was told.
BOARD = """
import socket, struct, sys
from scapy.all import Ether, IP, UDP, AsyncSniffer, Raw, getmacbyip, sendp
from scapy.contrib.roce import AETH, BTH

server, board, iface = sys.argv[1:]
there = getmacbyip(server)
held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
held.bind((board, 4791))
manager = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
manager.bind((board, 0x4321))
answers = AsyncSniffer(iface=iface, filter=f"udp dst port 4791 and src host {server}", count=1)
answers.start()
print("ready", flush=True)
while True:
    request, (_, port) = manager.recvfrom(64)
    (code, peer) = ((request[0] >> 1) & 7, request[2:25])
    mine = bytes.fromhex("000200 00 000100") + bytes(12) + socket.inet_aton(board)
    answer = bytes([code << 1 | 1 << 4 | 1 << 5 | 1, 0]) + mine + b"\\0" + peer
    manager.sendto(answer.ljust(64, b"\\0"), (server, 0x4322))
    if code == 3:  # MODIFY_QP_RTS: it may send
        (key, base), qpn = struct.unpack(">IQ", peer[7:19]), int.from_bytes(peer[:3], "big")
        write = BTH(opcode=0x0B, dqpn=qpn, psn=0x100, ackreq=1, pkey=0xFFFF)
        body = struct.pack(">QIII", base, key ^ 1, 64, 0) + bytes(64)
        ip = IP(src=board, dst=server, tos=2, flags="DF") / UDP(sport=0xC000, dport=4791, chksum=0)
        sendp(Ether(dst=there) / ip / write / Raw(body), iface=iface, verbose=0)
        break
answers.join(timeout=5)
print(f"wrote with {key ^ 1:#010x}, answered {answers.results[0][AETH].syndrome:#04x}", flush=True)
"""


def test_a_write_with_a_wrong_key_is_answered_nak_and_the_fault_says_which_key(network):
    python = str(Path(__file__).resolve().parents[1] / ".venv/bin/python")
    board = network.start("b", python, "-c", BOARD, SERVER_IP, first_board(), "veth1")
    assert board.stdout.readline() == "ready\n"
    receiver = network.recv(first_board(), "--seconds", 4)
    told = board.stdout.readline()
    assert told.endswith("answered 0x62\n"), "NAK, remote access error"
    key, result = told.split()[2].rstrip(","), ended(receiver)
    report = result.json()
    assert (result.status, report["boards"][0]["counters"]["resp_remote_access_errors"]) == (1, 1), result
    why = f"queue pair in error: rkey {key} names no memory region: compare with the key the receiver announced"
    assert report["faults"] == [f"{first_board()} came up once and sent nothing: {why}"]
    assert why in result.stderr
