# SPDX-License-Identifier: Apache-2.0
"""Forged congestion notifications against `penstock send`.

Promise checked: packets of strangers are counted and change nothing; congestion notifications with the server's address
and the queue pair's drawn number hold a rate down for seconds only, and the front end is named.
"""

import os
import signal
import socket
import threading

import board_server  # noqa: F401  (where `lib` is)
import pytest
from lib import connection as cm
from scapy.contrib.roce import cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from veth import LIMIT_S, SERVER_IP, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")

STRANGER = "10.77.9.9"
FORMER = 0x20_0000  # what front ends in software had as their number


class Forger:
    """Sees the opening at the server's end, and sends what a queue pair there could have sent."""

    def __init__(self, network) -> None:
        with network.inside("s"):
            self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # takes nothing
        self.wire.bind(("veth0", 0))
        self.out.bind(("veth0", 0))
        self.wire.settimeout(LIMIT_S)

    def number(self) -> int:
        """The queue pair number by which the board answers; keeps the MAC addresses."""
        board_ip = socket.inet_aton(first_board())
        while True:
            frame = self.wire.recv(2048)
            if frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[26:30] != board_ip:
                continue
            if int.from_bytes(frame[34:36]) == cm.REQUEST_PORT:
                self.macs = Ether(dst=frame[6:12], src=frame[:6])
                self.wire.close()
                return cm.Message.unpack(frame[42:]).sender.qpn

    def notification(self, source: str, number: int) -> bytes:
        return bytes(self.macs / IP(src=source, dst=first_board()) / UDP(sport=49152, dport=4791) / cnp(dqpn=number))


def test_forged_notifications_are_counted_and_hold_a_rate_for_seconds_only(network):
    forger = Forger(network)
    sender = network.send("-l", 4000)
    receiver = network.recv(first_board(), "--state", "none")
    number = forger.number()
    assert number != FORMER and number > 0xFF, "drawn"
    genuine, over = forger.notification(SERVER_IP, number), threading.Event()
    strange = [forger.notification(STRANGER, number), forger.notification(SERVER_IP, number ^ 1)]

    def forge() -> None:
        # As fast as it can: a rate recovers from one notification within a millisecond.
        while not over.is_set():
            for frame in (*100 * [genuine], *strange):
                forger.out.send(frame)

    # On a busy machine the rate would recover while the forger waits for its turn.
    slow = ("cc[0].rate_min=10Mbps", "cc[0].increase_interval=100ms", "cc[0].control.g_shift=0")
    slow += ("--journal", network.state / "journal")
    set_slow = ended(network.start("s", *map(str, (network.binary, "ctl", "set", first_board(), *slow))))
    assert set_slow.status == 0, set_slow
    thread = threading.Thread(target=forge)
    thread.start()
    os.set_blocking(sender.stderr.fileno(), False)
    reported = ""

    def is_named() -> bool:
        nonlocal reported
        try:
            reported += os.read(sender.stderr.fileno(), 4096).decode()
        except BlockingIOError:
            return False
        assert sender.poll() is None, reported
        return f"WARNING: {first_board()}: congestion notifications hold its rate at" in reported

    try:
        until("warning", is_named)
    finally:
        over.set()
        thread.join()
    os.set_blocking(sender.stderr.fileno(), True)
    for process in (receiver, sender):
        process.send_signal(signal.SIGINT)
    ended(receiver)
    [board] = ended(sender).json()["boards"]
    assert board["rp_cnp_overruled"] >= 1 and board["rp_cnp_received"] > 100, board
    assert board["dropped_wrong_peer"] > 100 and board["dropped_not_for_us"] > 100, board
    assert f"forged CNPs of {SERVER_IP}?" in reported
