# SPDX-License-Identifier: Apache-2.0
"""Ownership of the boards' queue pairs: a server that was killed, its successor at another address, strangers.

Promise checked: boards come up at the successor within the dead server's timers and 2 s; a stranger blocks no board,
and an address that is not allowed gets no answer.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import board_server  # noqa: F401  (where `lib` is)
import pytest
from lib import connection as cm
from processes import killed
from veth import LIMIT_S, METRICS, SERVER_IP, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")

WITH_METRICS = ("--metrics", METRICS)
FORGED = 0x666
SUCCESSOR = "10.77.0.2"
# A queue pair is given up after retries + 1 timers of 67 ms (code 14), or when its server was silent for 5 s.
SENDING_S, IDLE_S, ALLOWANCE_S = 8 * 0.0671, 5.0, 2.0
BOARDS = int(os.environ.get("PENSTOCK_BOARDS", "24"))


def boards_of(count: int) -> list[str]:
    return [f"10.77.{1 + k // 250}.{1 + k % 250}" for k in range(count)]


def recv(network, ip: str, boards: list[str], metrics: str) -> subprocess.Popen:
    ring = ("--slots", 8, "--slot-size", 4096)
    return network.recv(*boards, "--ip", ip, "--state", "none", "--metrics", metrics, *ring)


@pytest.mark.parametrize(("rate", "timers_s"), [(50, SENDING_S), (0.01, IDLE_S)])
def test_boards_come_up_at_another_address_within_the_dead_servers_timers(network, rate, timers_s):
    """`PENSTOCK_BOARDS=264` for a whole camera: then no other work on the machine."""
    subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "add", f"{SUCCESSOR}/16", "dev", "veth0"], check=True)
    boards = boards_of(BOARDS)
    lines = [f"addr replace {ip}/16 dev veth1" for ip in boards]
    subprocess.run(["ip", "-n", f"{network.name}-b", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    senders = []
    for begin in range(0, BOARDS, 250):
        count = min(250, BOARDS - begin)
        options = ("--boards", count, "--first-source", begin, "-l", 1000, "--rate", rate, "--slots", 8)
        command = (network.binary, "send", "--iface", "veth1", "--json", "--ip", boards[begin], *options)
        senders.append(network.start("b", *map(str, command), "--slot-size", "4096"))
    first = recv(network, SERVER_IP, boards, METRICS)
    network.counted(BOARDS, "boards_up")
    if rate > 1:
        network.counted(10, "events_complete")
    killed(first)
    begun = time.monotonic()
    second = recv(network, SUCCESSOR, boards, f"{SUCCESSOR}:9101")
    network.counted(BOARDS, "boards_up", address=f"{SUCCESSOR}:9101")
    took = time.monotonic() - begun
    print(f"{BOARDS} boards at {rate} events/s are up after {took:.2f} s")
    assert took < timers_s + ALLOWANCE_S
    if rate > 1:
        network.counted(10, "events_complete", address=f"{SUCCESSOR}:9101")
    for process in (second, *senders):
        process.send_signal(signal.SIGINT)
        ended(process)


class Stranger:
    """An address of the server's network that asks boards for their queue pairs."""

    def __init__(self, network) -> None:
        self.ip = "10.77.0.66"
        subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "add", f"{self.ip}/16", "dev", "veth0"], check=True)
        with network.inside("s"):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.ip, 0))

    def open_qp(self, board: str) -> bool:
        """OPEN_QP with all of this side; whether there was an answer."""
        info = cm.Info(qpn=7, psn=0, rkey=1, base=0x1000, ip=int.from_bytes(socket.inet_aton(self.ip)))
        request = cm.Message(cm.OPEN_QP, info, port=self.socket.getsockname()[1])
        self.socket.settimeout(0.5)
        self.socket.sendto(request.pack(), (board, cm.REQUEST_PORT))
        try:
            return cm.Message.unpack(self.socket.recv(64)).answer is not None
        except TimeoutError:
            return False


def test_a_stranger_whose_message_takes_a_queue_pair_does_not_keep_the_server_out(network):
    sender = network.send("-n", 50, "-l", 1000, "--rate", 50, "--ack-timeout", 12)
    stranger = Stranger(network)
    until("answer", lambda: stranger.open_qp(first_board()))
    result = ended(network.recv(first_board(), "--events", 50, "--event-timeout", 5000))
    assert result.status == 0 and result.json()["boards"][0]["lives"] == 1, result
    assert ended(sender).status == 0


def test_a_server_that_is_not_allowed_gets_no_answer_and_is_counted(network):
    allow = ("--allow", f"{SERVER_IP},192.168.0.0/16")
    sender = network.send("-l", 1000, "--rate", 50, *allow)
    receiver = network.recv(first_board(), *WITH_METRICS)
    network.counted(1, "events_complete")
    stranger = Stranger(network)
    assert not any(stranger.open_qp(first_board()) for _ in range(3))
    before = network.metrics()["events_complete"]
    network.counted(before + 10, "events_complete")
    for process in (receiver, sender):
        process.send_signal(signal.SIGINT)
    assert ended(receiver).status == 0
    result = ended(sender)
    assert result.json()["cm_strangers"] == 3, result
    wrong = ended(network.send("--allow", "10.77.0.1/24"))
    assert wrong.status == 2 and "the network is 10.77.0.0/24" in wrong.stderr, wrong


class Forger:
    """Sends OPEN_QP with a board's own address to the server that the board opens a connection to."""

    def __init__(self, network, board: str) -> None:
        with network.inside("b"):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((board, 0))
        self.ip = int.from_bytes(socket.inet_aton(board))
        self.wire.bind(("veth1", 0))
        self.wire.settimeout(LIMIT_S)

    def messages(self) -> Iterator[tuple[bytes, cm.Message]]:
        """The connection managers' messages on the wire, with the address that each comes from."""
        while True:
            frame = self.wire.recv(65536)
            if frame[23] == socket.IPPROTO_UDP and len(frame) == 42 + 64:
                yield frame[26:30], cm.Message.unpack(frame[42:])

    def learns(self) -> int:
        """The board's queue pair, from the server's ACK to its OPEN_QP."""
        for _, message in self.messages():
            if (message.request, message.answer) == (cm.OPEN_QP, cm.ACK) and message.other.qpn != FORGED:
                return message.other.qpn

    def sees_it_answer(self) -> None:
        """Waits for the board's answer to a keep-alive: from then on the server knows what silence means."""
        board = self.ip.to_bytes(4)
        next(m for ip, m in self.messages() if ip == board and (m.request, m.answer) == (cm.MODIFY_QP_RTS, cm.ACK))

    def forges(self, qpn: int) -> None:
        info = cm.Info(qpn=qpn, psn=FORGED, rkey=0, base=0, ip=self.ip)
        self.socket.sendto(cm.Message(cm.OPEN_QP, info, port=9).pack(), (SERVER_IP, cm.REQUEST_PORT))


@pytest.mark.parametrize("rate", [50, 0.4])
def test_openings_forged_with_a_board_s_address_take_nothing_from_it(network, rate):
    """Before it connects they block it only briefly; then the server checks with the board, known to answer."""
    receiver = network.recv(first_board(), "--listen", *WITH_METRICS)
    until("answer", lambda: network.metrics())
    forger = Forger(network, first_board())
    forger.forges(FORGED)
    network.counted(1, "boards_up")
    sender = network.send("--connect", SERVER_IP, "-l", 1000, "--rate", rate)
    number = forger.learns()
    forger.sees_it_answer()
    network.counted(1, "events_complete")
    for _ in range(20):
        for qpn in (number, 0x777):
            forger.forges(qpn)
        before = network.metrics()["events_complete"]
        time.sleep(0.1)
    network.counted(before + 2, "events_complete")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    sender.send_signal(signal.SIGINT)
    board = result.json()["boards"][0]
    # The forged life, and one that lasts.
    assert result.status == 0 and board["lives"] == 2, result
    assert ended(sender).status == 0
