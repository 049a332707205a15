# SPDX-License-Identifier: Apache-2.0
"""The packet back end, by AF_XDP and by its ring, against iperf3 UDP: the same veth pair, the same frame size, one core
for the receiver and one for the sender.

The result of iperf3 is its receiver's rate at the better of two offered rates: full speed, and half of that.
"""

import time
from collections.abc import Iterator

from measuring import BUILD, bits_per_second, cores, namespaces, report, row, shell, stopped
from veth import SERVER_IP, Network, ended, first_board, no_xdp

# After UDP a packet of ours has BTH (12), 4096 bytes and ICRC (4).
DATAGRAM = 4112
SECONDS = 2
# One sending process; the last number of boards is that of the namespace.
BOARDS = (4, 16, 32)
SOCKETS = {"ring": "ring", "xdp": "AF_XDP"}


def iperf3(network: Network, offered: str) -> tuple[float, float]:
    """Sent and received bit/s."""
    network.start("s", "iperf3", "-s", "-1")
    time.sleep(0.3)
    options = ("-u", "-b", offered, "-l", str(DATAGRAM), "-t", str(SECONDS), "--json")
    end = ended(network.start("b", "iperf3", "-c", SERVER_IP, *options)).json()["end"]
    return end["sum_sent"]["bits_per_second"], end["sum_received"]["bits_per_second"]


def packet(network: Network, count: int, socket: str) -> float:
    """Received bit/s of messages of this number of boards, without congestion control."""
    command = str(network.binary)
    ends = ("--boards", str(count), "-l", "100000", "--payload", "counter", "--cc", "off", "--ack-timeout", "16")
    sender = network.start("b", command, "send", "--iface", "veth1", "--ip", first_board(), *ends)
    boards = [first_board(k) for k in range(count)]
    options = ("--seconds", str(SECONDS + 1), "--event-timeout", "5000", "--state", "none", "--json")
    ours = ("--backend", "packet", "--iface", "veth0", "--socket", socket, "--poll", "hybrid", *options)
    received = ended(network.start("s", command, "recv", *boards, *ours))
    stopped(sender)
    return bits_per_second(report(f"{socket}, {count} boards", received))


def rows() -> Iterator[dict]:
    """Every number of boards by each socket, and iperf3."""
    shell(BUILD)
    with namespaces(max(BOARDS), "iperf3", cpus=cores()) as network:
        sent, received = iperf3(network, "0")
        _, at_half = iperf3(network, f"{sent / 2:.0f}")
        limit = max(received, at_half)
        for count in BOARDS:
            for socket in list(SOCKETS)[: 1 if no_xdp() else None]:
                rate = packet(network, count, socket)
                name = f"packet back end over veth, one core, {count} boards, {SOCKETS[socket]}"
                yield row(f"{name}, of iperf3 UDP's", 100 * rate / limit, "%", 70, "higher")
                yield row(name, rate / 1e9, "Gb/s", None, "higher")
    yield row("iperf3 UDP over the same veth, same frames", limit / 1e9, "Gb/s", None, "higher")
