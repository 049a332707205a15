# SPDX-License-Identifier: Apache-2.0
"""TCP between two kernels, for `make bench` and `penstock figures cms-tcp-3`, which calls this for all sizes.

Promise: iperf3, ordinary sockets and the emulator of the simplified TCP send over one veth pair, in one run, to a
socket that reads and drops; `penstock recv --backend tcp` receives from the emulator. Sender and receiver have a
core each. All cases of a size take turns, and each counts with its best round: what else runs on the machine presses
on one round, not on one case.
Source: CMS-TCP figure 3.
"""

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from measuring import BUILD, BUILT, NotHereError, bits_per_second, cores, namespaces, report, row, shell, stopped
from veth import LIMIT_S, SERVER_IP, Network, ended, first_board, until

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
    if stopped(process).status not in (0, 1):
        sys.exit(f"bench: {stack}, {size} bytes: it did not send")
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
    stopped(process)
    return bits_per_second(report("recv --backend tcp", result))


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


def rates(sizes: tuple[int, ...], binary: Path = BUILT / "penstock", with_receiver: bool = False) -> dict:
    """bit/s by case ("emulator", "sockets", "iperf3"; "recv") and size."""
    with namespaces(0, "iperf3", binary=binary, mtu=MTU, cpus=cores()) as network:
        network.address("b", KERNEL_IP)
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {network.cpus["s"]})  # this process is the socket that drops
        try:
            return best(network, sizes, with_receiver)
        finally:
            os.sched_setaffinity(0, before)


def rows() -> Iterator[dict]:
    """The kernel's TCP and the emulator's, in fragments of 64 KiB."""
    shell(BUILD)
    rate = {case: by_size[LONG] for case, by_size in rates((LONG,), with_receiver=True).items()}
    receiver, emulator = "recv --backend tcp over veth, one core", "send --protocol tcp over the same veth"
    yield row(f"{receiver}, of iperf3 TCP's", 100 * rate["recv"] / rate["iperf3"], "%", 90, "higher")
    yield row(f"{emulator}, of sockets'", 100 * rate["emulator"] / rate["sockets"], "%", 90, "higher")
    names = {"sockets": "--stack sockets over the same veth", "iperf3": "iperf3 TCP over the same veth"}
    for case, name in ({"recv": receiver, "emulator": emulator} | names).items():
        yield row(name, rate[case] / 1e9, "Gb/s", None, "higher")


def main() -> int:
    parser = argparse.ArgumentParser(description="bit/s by sender and size of a fragment, as JSON.")
    parser.add_argument("--binary", type=Path, default=BUILT / "penstock")
    try:
        print(json.dumps(rates(SIZES, parser.parse_args().binary)))
    except NotHereError as error:
        print(f"tcp_bench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
