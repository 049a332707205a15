# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a command waits for something that does not come.

Promise checked: it ends within a second. Each wait here takes half a minute or more; a busy machine has `SOON_S`.
"""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from ctl import Ctl, boards
from veth import LIMIT_S, SERVER_IP, Network, first_board, said_until, until

SOON_S = 8.0
PORT = 10_000
SILENT = str(IPv4Address("127.200.0.0") + os.getpid() % 65_536)  # tests of other processes have others
PATIENCE = ("--patience", "60s")


def interrupt(process: subprocess.Popen) -> None:
    """Sends the signal to a thread that does not wait, if there is one: no system call is cut short by it then."""
    threads = [int(thread.name) for thread in Path(f"/proc/{process.pid}/task").iterdir()]
    thread = max(threads, key=lambda number: number != process.pid)
    assert ctypes.CDLL(None, use_errno=True).tgkill(process.pid, thread, signal.SIGINT) == 0, ctypes.get_errno()


def handles_it(process: subprocess.Popen) -> bool:
    """Whether the process has a handler of SIGINT by now."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> signal.SIGINT - 1 & 1)


def interrupted(process: subprocess.Popen, soon_s: float = SOON_S) -> str:
    """What a process prints that Ctrl-C ends."""
    interrupt(process)
    begun = time.monotonic()
    try:
        out, _ = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    took = time.monotonic() - begun
    assert took < soon_s, f"{took:.1f} s from Ctrl-C to the end"
    return out


@pytest.fixture
def wire(namespaces: None, built: Path, tmp_path: Path) -> Iterator[Network]:
    """A server's end with an address, and a boards' end without."""
    network = Network(built / "penstock", tmp_path / "state", name=f"int{os.getpid()}")
    try:
        network.make(0)
        yield network
    finally:
        network.delete()


@pytest.fixture
def ctl(built: Path, tmp_path: Path) -> Ctl:
    return Ctl(built / "penstock", tmp_path / "state")


def test_a_stream_whose_next_message_is_due_in_an_hour(wire):
    with wire.inside("s"), socket.create_server((SERVER_IP, PORT)) as server:
        server.settimeout(LIMIT_S)
        options = ("--payload", "counter", "-n", "3", "-l", "1000", "--rate", "0.001")
        sender = wire.send("--protocol", "tcp", "--connect", SERVER_IP, *options)
        connection = server.accept()[0]
    connection.settimeout(LIMIT_S)
    wire.knows(first_board())
    have = 0
    while have < 1048:
        have += len(connection.recv(65536))
    assert "1 messages acknowledged" in interrupted(sender)
    connection.close()


def test_ordinary_sockets_whose_server_answers_none_of_them(wire):
    """Each attempt takes its time, one board after the other."""
    for board in range(40):
        wire.address("b", f"10.77.1.{board + 1}")
    before = wire.received("veth0")
    options = ("--boards", "40", "-n", "1", "-l", "100", "--stack", "sockets")
    sender = wire.send("--protocol", "tcp", "--connect", "10.77.0.99", *options)
    until("a question for the server's MAC", lambda: wire.received("veth0") > before)
    until("a handler of SIGINT", lambda: handles_it(sender))
    assert "never came up" in interrupted(sender)


def test_a_board_whose_peer_does_not_answer_arp(wire):
    before = wire.received("veth0")
    peer = ("--connect", "qpn=0x11,psn=0,rkey=7,va=0x10000", "--peer-ip", "10.9.0.1")
    command = (str(wire.binary), "board", "--packet", "veth1", "--ip", "10.9.0.2", *peer)
    board = wire.start("b", *command)
    until("a request of ARP", lambda: wire.received("veth0") > before)
    interrupted(board, soon_s=5.0)  # of the 10 s for which it asks


@pytest.mark.parametrize("words", [("watch", "uptime"), ("serve", "--metrics", "127.0.0.1:0"), ("sample", "--out")])
def test_a_command_that_waits_for_a_silent_board_to_be_identified(ctl, tmp_path, words):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as board:
        board.bind((SILENT, 50_001))
        board.settimeout(LIMIT_S)
        name, *options = words
        options += [str(tmp_path / "out")] if name == "sample" else []
        process = subprocess.Popen(
            ctl.command(name, SILENT, *options, *PATIENCE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        board.recv(2048)
        interrupted(process)


def test_samples_of_a_board_that_falls_silent_are_kept(ctl, built, tmp_path):
    out = tmp_path / "out"
    with boards(built, 1) as one:
        address = one.address(0)
        command = ctl.command("sample", address, "--out", out, "--live", "127.0.0.1:0", *PATIENCE, "-J")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said_until(process, "live page")
        one.process.send_signal(signal.SIGSTOP)
        # A request that it does not take waits in its socket.
        local = f"{int.from_bytes(socket.inet_aton(address), 'little'):08X}:C351"

        def is_asked() -> bool:
            lines = Path("/proc/net/udp").read_text().splitlines()
            return any(words[1] == local and words[4] != "00000000:00000000" for words in map(str.split, lines))

        until("a request in the silent board's socket", is_asked)
        interrupted(process)
        one.process.send_signal(signal.SIGCONT)
    assert (out / "trace.parquet").stat().st_size > 0 and (out / "summary.json").exists()
