# SPDX-License-Identifier: Apache-2.0
"""TCP between two kernels: `.venv/bin/python tests/tcp_bench.py`, `make bench` and `penstock figures cms-tcp-3`.

Promise: iperf3, ordinary sockets and the emulator of the simplified TCP send over one veth pair, in one run, to a
socket that reads and drops; `penstock recv --backend tcp` receives from the emulator. Sender and receiver have a
core each. All cases of a size take turns, and each counts with its best round: what else runs on the machine presses
on one round, not on one case.
Source: CMS-TCP figure 3.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from veth import LIMIT_S, SERVER_IP, Network, allowed, ended, first_board, until

SIZES = tuple(64 << n for n in range(11))  # bytes of a fragment in the stream: 64 B to 64 KiB
LONG = 1 << 16  # of the comparisons in `make bench`
SENDERS = ("emulator", "sockets", "iperf3")
ROUNDS, SECONDS = 3, 0.7
PORT, IPERF3_PORT = 10_000, 5201
MTU = 9000
KERNEL_IP = "10.77.5.5"  # of the sockets; the emulator's address is not the kernel's
OVERHEAD = 48  # of a fragment: its header (40) and that of the stream (8), docs/fragments.md


def sender(network: Network, stack: str, size: int) -> tuple[str, ...]:
    """The command that sends fragments of `size` bytes, headers included, as fast as it can."""
    ip = first_board() if stack == "emulator" else KERNEL_IP
    ends = ("--iface", "veth1", "--ip", ip, "--connect", SERVER_IP, "--port", str(PORT))
    payload = ("-l", str(size - OVERHEAD), "--payload", "counter", "--linger", "0")
    return (str(network.binary), "send", "--protocol", "tcp", "--stack", stack, *ends, *payload)


def listening(network: Network, port: int) -> None:
    """Waits for a listener in the server's namespace."""
    with network.inside("s"):
        table = Path("/proc/thread-self/net/tcp")
        until(f"listener at {port}", lambda: f":{port:04X} 00000000:0000 0A" in table.read_text())


def dropped(network: Network, stack: str, size: int) -> float:
    """bit/s that a socket reads which drops all."""
    with network.inside("s"), socket.create_server((SERVER_IP, PORT)) as server:
        server.settimeout(LIMIT_S)
        process = network.start("b", *sender(network, stack, size), "--seconds", str(SECONDS + 5), "--json")
        connection, _ = server.accept()
        with connection:
            connection.settimeout(LIMIT_S)
            rate = read(connection)
    process.send_signal(signal.SIGINT)
    if ended(process).status not in (0, 1):
        sys.exit(f"tcp_bench: {stack}, {size} bytes: it did not send")
    return rate


def read(connection: socket.socket) -> float:
    """bit/s between the first bytes and those `SECONDS` later."""
    buffer = bytearray(1 << 20)
    connection.recv_into(buffer)
    begun, total = time.monotonic(), 0
    while (now := time.monotonic()) < begun + SECONDS:
        if (count := connection.recv_into(buffer)) == 0:
            break
        total += count
    return total * 8 / (now - begun)


def iperf3(network: Network, size: int) -> float:
    """bit/s of iperf3's receiver; its writes have `size` bytes."""
    server = network.start("s", "iperf3", "-s", "-1", "-B", SERVER_IP, "-p", str(IPERF3_PORT))
    listening(network, IPERF3_PORT)
    options = ("-p", str(IPERF3_PORT), "-B", KERNEL_IP, "-l", str(size), "-t", "1", "--json")
    end = ended(network.start("b", "iperf3", "-c", SERVER_IP, *options)).json()["end"]
    ended(server)
    return end["sum_received"]["bits_per_second"]


def received(network: Network, size: int) -> float:
    """bit/s of the fragments that `penstock recv --backend tcp` gets from the emulator: sockets would be the limit."""
    options = ("--seconds", str(SECONDS + 0.5), "--event-timeout", "5000", "--state", "none", "--json")
    command = ("recv", first_board(), "--backend", "tcp", "--port", str(PORT), "--poll", "hybrid", *options)
    receiver = network.start("s", str(network.binary), *command)
    listening(network, PORT)
    process = network.start("b", *sender(network, "emulator", size), "--json")
    result = ended(receiver)
    process.send_signal(signal.SIGINT)
    ended(process)
    if result.status != 0:
        sys.exit(f"tcp_bench: recv --backend tcp: {result.stdout}{result.stderr}")
    report = result.json()
    return sum(board["bytes"] for board in report["boards"]) * 8 / report["readout_seconds"]


def best(network: Network, sizes: tuple[int, ...], with_receiver: bool) -> dict[str, dict[int, float]]:
    """The best rate of each case and size, bit/s."""
    rates = {case: dict.fromkeys(sizes, 0.0) for case in (*SENDERS, *(["recv"] if with_receiver else []))}
    for size in sizes:
        for _ in range(ROUNDS):
            for case, found in rates.items():
                match case:
                    case "iperf3":
                        rate = iperf3(network, size)
                    case "recv":
                        rate = received(network, size)
                    case _:
                        rate = dropped(network, case, size)
                found[size] = max(found[size], rate)
    return rates


def rates(binary: Path, sizes: tuple[int, ...], with_receiver: bool = False) -> dict[str, dict[int, float]] | None:
    """bit/s by case ("emulator", "sockets", "iperf3"; "recv") and size; none without iperf3 or namespaces."""
    if not allowed() or not shutil.which("iperf3"):
        return None
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as state:
        network = Network(binary, Path(state), cpus=dict(zip("sb", cpus, strict=False)))
        try:
            network.make(0, mtu=MTU)
            network.address("b", KERNEL_IP)
            os.sched_setaffinity(0, cpus[:1])  # this process is the socket that drops
            return best(network, sizes, with_receiver)
        finally:
            os.sched_setaffinity(0, cpus)
            network.delete()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=Path(__file__).resolve().parents[1] / "target/release/penstock")
    parser.add_argument("--json", action="store_true", help="bit/s by case and size")
    arguments = parser.parse_args()
    found = rates(arguments.binary, SIZES)
    if found is None:
        print("tcp_bench: it needs iperf3, and root for network namespaces", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(found))
        return 0
    print(f"| bytes | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for size in SIZES:
        print(f"| {size} | {' | '.join(f'{by[size] / 1e9:.2f}' for by in found.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
