# SPDX-License-Identifier: Apache-2.0
"""The effect of a flood of foreign frames on good boards: events/s with and without 150,000 garbage frames/s to the
data port and 50,000 connection manager messages/s, from an address that belongs to no board.

The floods share the boards' end of a veth pair, like other hosts of the network. On a machine with few cores the
generator takes CPU time from boards and receiver: therefore the boards' rate is also measured with the same flood sent
to an unused address.
"""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from measuring import BUILD, namespaces, report, row, shell, stopped
from veth import METRICS, SERVER_IP, Network, ended, first_board

BOARDS, RATE, LENGTH, SECONDS = 8, 500, 4000, 4
GARBAGE_PER_S, MESSAGES_PER_S = 151_500, 50_500  # the generator stays a little below what it is asked for
STRANGER = first_board(BOARDS)
NOBODY = "10.77.0.99"  # with a MAC address that no interface has


@dataclass(frozen=True)
class Cost:
    """Events/s of the good boards, what the floods came to, in frames/s, and the generator's part of a core."""

    events_per_s: float
    garbage_per_s: float = 0
    messages_per_s: float = 0
    generator_cpu: float = 0


def run(network: Network, target: str | None) -> Cost:
    """With floods to `target`, or without."""
    command = str(network.binary)
    options = ("--boards", BOARDS, "-l", LENGTH, "--rate", RATE, "--cc", "off", "--ack-timeout", "16")
    sender = network.start("b", command, "send", "--iface", "veth1", "--ip", first_board(), *map(str, options))
    if target:
        # OPEN_QP with the sender's information, as `tb/lib/connection.py` packs it, of queue pair 7.
        open_qp = bytes([1 << 1 | 1, 0, 0, 0, 7]).ljust(64, b"\0")
        streams = ((4791, GARBAGE_PER_S, bytes(64)), (0x4321, MESSAGES_PER_S, open_qp))
        words = [f"{target}:{port}:{rate}:{payload.hex()}" for port, rate, payload in streams]
        generator = str(network.binary.parent / "examples/flood")
        # Strangers have machines of their own: it goes before all else here.
        flood = network.start("b", "nice", "-n", "-10", generator, STRANGER, *words, stdin=subprocess.PIPE)
    boards = [first_board(k) for k in range(BOARDS)]
    fixed = ("--event-timeout", "5000", "--state", "none", "--metrics", METRICS, "--json")
    receiver = network.start("s", command, "recv", *boards, "--iface", "veth0", *fixed)
    network.counted(2 * RATE, "events_complete")  # what boards had waiting at the start has been sent by then
    begun, before = time.monotonic(), network.metrics()["events_complete"]
    time.sleep(SECONDS)
    events = (network.metrics()["events_complete"] - before) / (time.monotonic() - begun)
    report("recv", stopped(receiver))
    cost = Cost(events)
    if target:
        reported = ended(flood).json()  # its standard input ends here
        cost = Cost(events, *reported["per_s"], reported["cpu"])
    stopped(sender)
    return cost


def rows() -> Iterator[dict]:
    """Without floods, with floods that nobody takes, and with floods to the receiver."""
    shell(f"{BUILD} -p penstock-readout --example flood")
    with namespaces(BOARDS + 1) as network:
        neighbour = ("neigh", "add", NOBODY, "lladdr", "02:00:00:00:00:99", "dev", "veth1")
        subprocess.run(["ip", "-n", f"{network.name}-b", *neighbour], check=True)
        alone, elsewhere, flooded = (run(network, target) for target in (None, NOBODY, SERVER_IP))
    share, generator = (100 * cost.events_per_s / alone.events_per_s for cost in (flooded, elsewhere))
    yield row("good boards under a flood, of their rate without", share, "%", 95, "higher")
    yield row("the same with the flood sent to nobody", generator, "%", 95, "higher")
    yield row("the flood's garbage frames", flooded.garbage_per_s, "1/s", 150_000, "higher")
    yield row("the flood's connection manager messages", flooded.messages_per_s, "1/s", 50_000, "higher")
    yield row("the flood's generator, CPU of one core", 100 * flooded.generator_cpu, "%", None, "lower")
