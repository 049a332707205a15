# SPDX-License-Identifier: Apache-2.0
"""Frames that a device refuses: too long for what is behind it, or an interface that is down or gone.

Promise checked: such frames are lost after a bounded time, counted, and reported once with interface and reason; the
timers of their connections act, and all else goes on.
"""

import json
import signal
import socket
import subprocess
import threading

import pytest
from processes import killed
from veth import LIMIT_S, METRICS, MTU, SERVER_IP, Network, ended, first_board, read_until

pytestmark = pytest.mark.usefixtures("namespaces")

PORT = 10_000
HEADERS = 48  # of a message in a stream: its length, its fragment's header
# What a veth device says of a frame that its peer's MTU does not let in, and of one longer than its own.
BEHIND, LOCAL = ("s", "veth0", "No buffer space available"), ("b", "veth1", "Message too long")


def link(network: Network, end: str, *words: object) -> None:
    subprocess.run(["ip", "-n", f"{network.name}-{end}", "link", *map(str, words)], check=True)


def stream(network: Network, events: int, length: int = 4000) -> tuple[subprocess.Popen, socket.socket]:
    """A stream of frames that the kernel does not cut, and the socket that receives it."""
    with network.inside("s"), socket.create_server((SERVER_IP, PORT)) as server:
        server.settimeout(LIMIT_S)
        fixed = ("--protocol", "tcp", "--payload", "counter", "--connect", SERVER_IP, "--reorder", "1e-9")
        sender = network.send(*fixed, "-n", str(events), "-l", str(length), "--rate", "400")
        connection = server.accept()[0]
    connection.settimeout(LIMIT_S)
    return sender, connection


def read_all(connection: socket.socket, have: int) -> threading.Thread:
    """Reads in the background; the thread's `total` is all that has come, `have` included."""
    thread = threading.Thread(target=lambda: setattr(thread, "total", have + drained(connection)))
    thread.start()
    return thread


def drained(connection: socket.socket) -> int:
    total = 0
    try:
        while part := connection.recv(1 << 20):
            total += len(part)
    except ConnectionResetError:
        pass
    return total


def report(process: subprocess.Popen, status: int = 0) -> dict:
    result = ended(process)
    assert result.status == status, f"{result.stdout}\n{result.stderr}"
    return result.json()


@pytest.mark.parametrize(("end", "interface", "reason"), [BEHIND, LOCAL], ids=["behind", "own"])
def test_a_stream_whose_segments_are_refused_for_a_while_loses_none(wire, end, interface, reason):
    sender, connection = stream(wire, events=200)
    have = len(connection.recv(1))
    link(wire, end, "set", interface, "mtu", 1000)
    reader = read_all(connection, have)
    reported = read_until(sender, reason)
    assert "WARN" in reported and "veth1" in reported and "is the interface up" not in reported
    link(wire, end, "set", interface, "mtu", MTU)
    sent = report(sender)
    reader.join(LIMIT_S)
    [board] = sent["boards"]
    assert reader.total == 200 * (HEADERS + 4000)
    assert sent["refused_frames"] > 0 and board["retransmitted"] > 0 and board["lives"] == 1


@pytest.mark.parametrize(("end", "interface", "reason"), [BEHIND, LOCAL], ids=["behind", "own"])
def test_a_queue_pair_whose_packets_are_refused_fails_by_its_timers_and_goes_on(
    network, tmp_path, end, interface, reason
):
    out = tmp_path / "run"
    receiver = network.recv(first_board(), "--events", 300, "--out", out, "--metrics", METRICS)
    sender = network.send("-n", "300", "-l", "16384", "--rate", "200", "--ack-timeout", "10")
    network.counted(5, "events_complete")
    link(network, end, "set", interface, "mtu", 1500)
    reported = read_until(sender, reason)
    assert "WARN" in reported and "veth1" in reported and "is the interface up" not in reported
    # Its retries are spent, and the server opens it again: small frames go through.
    network.counted(2, "board_connections", first_board())
    link(network, end, "set", interface, "mtu", MTU)
    received, sent = report(receiver), report(sender)
    [board] = sent["boards"]
    assert received["readout"]["builder"]["events_complete"] == 300
    assert sent["refused_frames"] > 0 and board["local_ack_timeout_err"] > 0 and board["messages"] == 300


def test_frames_that_are_refused_to_the_end_are_named_in_the_faults(network):
    link(network, "s", "set", "veth0", "mtu", 1500)
    receiver = network.recv(first_board(), "--mtu", "4096")
    sender = network.send("-n", "10", "-l", "16384", "--ack-timeout", "8")
    read_until(sender, "No buffer space available")
    sender.send_signal(signal.SIGINT)
    faults = report(sender, status=1)["faults"]
    assert any("veth1 refused" in fault and "No buffer space available" in fault for fault in faults), faults
    killed(receiver)


def test_an_interface_that_goes_down_is_waited_for_and_one_that_is_gone_ends_the_run(wire):
    sender, connection = stream(wire, events=20_000, length=1000)
    have = len(connection.recv(1))
    link(wire, "b", "set", "veth1", "down")
    read_until(sender, "veth1 is down")
    link(wire, "b", "set", "veth1", "up")
    while have < 200 * (HEADERS + 1000):
        have += len(connection.recv(1 << 16))
    link(wire, "b", "del", "veth1")
    result = ended(sender)
    assert result.status == 1
    faults = json.loads(result.stdout)["faults"]
    assert "veth1" in faults[0] and "the interface is gone" in faults[0], faults
    connection.close()


def test_a_board_whose_packets_are_refused_answers_ping_meanwhile(wire):
    """The verilated board: before, its clock stood still from the first such frame on."""
    binary, board = str(wire.binary), "10.77.1.2"
    options = ("--events", "20", "--ack-timeout", "6", "--patience", "10")
    process = wire.start("b", binary, "board", "--packet", "veth1", "--ip", board, "--json", *options)
    receiver = wire.recv(board, "--mtu", "4096")
    link(wire, "s", "set", "veth0", "mtu", 1500)
    reported = read_until(process, "No buffer space available")
    assert "WARN" in reported and "veth1" in reported
    ping = ["ip", "netns", "exec", f"{wire.name}-s", "ping", "-c", "3", "-i", "0.2", "-W", "60", board]
    assert " 0% packet loss" in subprocess.run(ping, capture_output=True, text=True).stdout
    process.send_signal(signal.SIGINT)
    frames = json.loads(ended(process).stdout)["frames"]
    assert frames["lost"] > 0
    killed(receiver)
