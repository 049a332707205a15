# SPDX-License-Identifier: Apache-2.0
"""Who holds the boards' queue pairs: a server that was killed, its successor at another address, strangers.

Promise checked: boards come up at the successor within the dead server's timers and 2 s; a stranger keeps no board
out, and an address that is not allowed gets no answer.
"""

import os
import signal
import socket
import subprocess
import time

import board_server  # noqa: F401  (where `lib` is)
import pytest
from lib import connection as cm
from veth import METRICS, SERVER_IP, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")

TOLD = ("--metrics", METRICS)
SUCCESSOR = "10.77.0.2"
# A queue pair is given up after retries + 1 timers of 67 ms (code 14), or when its server was silent for 5 s.
SENDING_S, IDLE_S, ALLOWANCE_S = 8 * 0.0671, 5.0, 2.0
BOARDS = int(os.environ.get("PENSTOCK_BOARDS", "24"))


def boards_of(count: int) -> list[str]:
    return [f"10.77.{1 + k // 250}.{1 + k % 250}" for k in range(count)]


def recv(network, ip: str, boards: list[str], metrics: str) -> subprocess.Popen:
    ring = ("--slots", 8, "--slot-bytes", 4096)
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
        senders.append(network.start("b", *map(str, command), "--slot-bytes", "4096"))
    first = recv(network, SERVER_IP, boards, METRICS)
    network.counted(BOARDS, "boards_up")
    if rate > 1:
        network.counted(10, "events_complete")
    first.kill()
    first.wait()
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

    def ask(self, board: str) -> bool:
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
    until("answer", lambda: stranger.ask(first_board()))
    result = ended(network.recv(first_board(), "--events", 50, "--event-timeout", 5000))
    assert result.status == 0 and result.json()["boards"][0]["lives"] == 1, result
    assert ended(sender).status == 0


def test_a_server_that_is_not_allowed_gets_no_answer_and_is_counted(network):
    allow = ("--allow", f"{SERVER_IP},192.168.0.0/16")
    sender = network.send("-l", 1000, "--rate", 50, *allow)
    receiver = network.recv(first_board(), *TOLD)
    network.counted(1, "events_complete")
    stranger = Stranger(network)
    assert not any(stranger.ask(first_board()) for _ in range(3))
    before = network.metrics()["events_complete"]
    network.counted(before + 10, "events_complete")
    for process in (receiver, sender):
        process.send_signal(signal.SIGINT)
    assert ended(receiver).status == 0
    result = ended(sender)
    assert result.json()["cm_strangers"] == 3, result
    wrong = ended(network.send("--allow", "10.77.0.1/24"))
    assert wrong.status == 2 and "the network is 10.77.0.0/24" in wrong.stderr, wrong
