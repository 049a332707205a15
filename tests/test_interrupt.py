# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a command waits for something that does not come.

Promise checked: it ends within a second. Each wait here takes half a minute or more; a busy machine has `SOON_S`.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from ipaddress import IPv4Address
from pathlib import Path
from urllib.request import urlopen

import pytest
from ctl import Ctl, boards, free_port
from processes import killed
from veth import LIMIT_S, SERVER_IP, Network, first_board, no_xdp, read_until, until

ROOT = Path(__file__).resolve().parents[1]
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
        killed(process)
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
    wire.pin_board_mac(first_board())
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


@pytest.mark.parametrize("messages", [(), ("--counter", "100x3")], ids=["none", "three"])
def test_a_board_whose_peer_does_not_answer_arp(wire, messages):
    before = wire.received("veth0")
    peer = ("--connect", "qpn=0x11,psn=0,rkey=7,va=0x10000", "--peer-ip", "10.9.0.1")
    command = (str(wire.binary), "board", "--packet", "veth1", "--ip", "10.9.0.2", *peer, *messages, "--json")
    board = wire.start("b", *command)
    until("a request of ARP", lambda: wire.received("veth0") > before)
    until("a handler of SIGINT", lambda: handles_it(board))
    report = json.loads(interrupted(board))
    assert (report["end"], board.returncode) == ("interrupted", 1)
    assert report["unfinished"] == "the queue pair was not opened: 10.9.0.1 had not answered ARP"


@pytest.mark.skipif(no_xdp() is not None, reason=f"{no_xdp()}: no AF_XDP")
def test_a_receiver_that_waits_for_another_ones_interface(wire):
    """Nothing has begun: it ends by the signal."""
    wire.socket = "xdp"
    wire.address("s", "10.77.0.2")
    first = wire.recv(first_board(0), "--ip", SERVER_IP)
    read_until(first, "AF_XDP, ")
    second = wire.recv(first_board(1), "--ip", "10.77.0.2")
    read_until(second, "in use by another process; waiting for up to ")
    interrupted(second)
    assert second.returncode == -signal.SIGINT, "it did not wait until the end"


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


def has_request(address: str) -> bool:
    """Whether a request lies in the socket of a board that does not take it."""
    local = f"{int.from_bytes(socket.inet_aton(address), 'little'):08X}:C351"
    lines = Path("/proc/net/udp").read_text().splitlines()
    return any(words[1] == local and words[4] != "00000000:00000000" for words in map(str.split, lines))


def test_a_control_of_the_page_for_a_board_that_falls_silent(ctl, built):
    metrics = f"127.0.0.1:{free_port()}"
    with boards(built, 1) as one:
        address = one.address(0)
        ports = ("--metrics", metrics, "--live", "127.0.0.1:0", "--interval", "300s")
        process = subprocess.Popen(
            ctl.command("serve", address, *ports, *PATIENCE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        page = read_until(process, "live page").split("http://")[-1].strip()
        up = f'penstock_gateware_up{{board="{address}"}} 1'
        until("first look", lambda: up in urlopen(f"http://{metrics}/metrics", timeout=LIMIT_S).read().decode())
        one.process.send_signal(signal.SIGSTOP)
        body = json.dumps({"senders": [address], "set": {"scratch": "5"}})
        control = HTTPConnection(page, timeout=LIMIT_S)
        control.request("POST", "/control", body, {"Content-Type": "application/json"})
        until("a request in the silent board's socket", lambda: has_request(address))
        interrupted(process)
        one.process.send_signal(signal.SIGCONT)
        control.close()


def test_samples_of_a_board_that_falls_silent_are_kept(ctl, built, tmp_path):
    out = tmp_path / "out"
    with boards(built, 1) as one:
        address = one.address(0)
        command = ctl.command("sample", address, "--out", out, "--live", "127.0.0.1:0", *PATIENCE, "-J")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        read_until(process, "live page")
        one.process.send_signal(signal.SIGSTOP)
        until("a request in the silent board's socket", lambda: has_request(address))
        interrupted(process)
        one.process.send_signal(signal.SIGCONT)
    assert (out / "trace.parquet").stat().st_size > 0 and (out / "summary.json").exists()


def test_plots_that_are_being_drawn(built, tmp_path):
    begun, python = tmp_path / "begun", tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch {begun}\nexec sleep 600\n")
    python.chmod(0o755)
    scenario = [ROOT / "scenarios/incast-3.toml", "--set", "replay.events=1"]
    command = [built / "penstock", "run", *scenario, "--out", tmp_path / "out", "--json"]
    environment = {**os.environ, "PENSTOCK_PYTHON": str(python)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, **pipes)
    until("drawing", lambda: begun.exists() or process.poll() is not None)
    assert json.loads(interrupted(process))["end"] == "done"
    assert process.returncode == 0, "the run had ended well"
