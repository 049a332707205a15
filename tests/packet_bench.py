# SPDX-License-Identifier: Apache-2.0
"""The packet back end, by AF_XDP and by its ring, against iperf3 UDP: the same veth pair, the same frame size, one core
for the receiver.

The result of iperf3 is its receiver's rate at the better of two offered rates: full speed, and half of that.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from veth import SERVER_IP, Network, allowed, ended, first_board, no_xdp

# After UDP a packet of ours has BTH (12), 4096 bytes and ICRC (4).
DATAGRAM = 4112
SECONDS = 2
# Each shares one receiver, one veth and one sending process.
BOARDS = (4, 16, 32)
SOCKETS = ("ring", "xdp")


def pinned(core: int) -> tuple[str, ...]:
    return ("taskset", "-c", str(core % os.cpu_count()))


def iperf3(network: Network, offered: str) -> tuple[float, float]:
    """Sent and received bit/s."""
    network.start("s", *pinned(0), "iperf3", "-s", "-1")
    time.sleep(0.3)
    options = ("-u", "-b", offered, "-l", str(DATAGRAM), "-t", str(SECONDS), "--json")
    end = ended(network.start("b", *pinned(1), "iperf3", "-c", SERVER_IP, *options)).json()["end"]
    return end["sum_sent"]["bits_per_second"], end["sum_received"]["bits_per_second"]


def packet(network: Network, count: int, socket: str) -> float:
    """Received bit/s of messages of this number of boards, without congestion control."""
    command = str(network.binary)
    ends = ("--boards", str(count), "-l", "100000", "--payload", "counter", "--cc", "off", "--ack-timeout", "16")
    sender = network.start("b", *pinned(1), command, "send", "--iface", "veth1", "--ip", first_board(), *ends)
    boards = [first_board(k) for k in range(count)]
    options = ("--seconds", str(SECONDS + 1), "--event-timeout", "5000", "--state", "none", "--json")
    ours = ("--backend", "packet", "--iface", "veth0", "--socket", socket, "--poll", "hybrid", *options)
    receiver = ended(network.start("s", *pinned(0), command, "recv", *boards, *ours))
    sender.send_signal(signal.SIGINT)
    ended(sender)
    if receiver.status != 0:
        sys.exit(f"packet_bench: {socket}, {count} boards: {receiver.stdout}{receiver.stderr}")
    report = receiver.json()
    return sum(board["bytes"] for board in report["boards"]) * 8 / report["readout_seconds"]


def rates(binary: Path) -> tuple[dict[tuple[int, str], float], float] | None:
    """Ours by boards and socket, and iperf3's, in bit/s; none without iperf3 or the right to make namespaces."""
    if not allowed() or not shutil.which("iperf3"):
        return None
    with tempfile.TemporaryDirectory() as state:
        network = Network(binary, Path(state))
        try:
            network.make(max(BOARDS))
            sent, received = iperf3(network, "0")
            _, at_half = iperf3(network, f"{sent / 2:.0f}")
            sockets = SOCKETS[:1] if no_xdp() else SOCKETS
            ours = {(count, by): packet(network, count, by) for count in BOARDS for by in sockets}
            return ours, max(received, at_half)
        finally:
            network.delete()
