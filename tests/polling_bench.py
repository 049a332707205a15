# SPDX-License-Identifier: Apache-2.0
"""The cost of each polling mode: `.venv/bin/python tests/polling_bench.py`, or `make bench`.

Promise: the same boards for each mode, one after the other; each message is timed, from the kernel's stamp of its last
frame until `penstock recv` passes it on. CPU time is that of the receiving thread. Boards and receiver have a CPU each:
if both ran on one CPU, the boards would determine the latency, not the polling mode.
"""

import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from veth import Network, allowed, ended, first_board

MODES = ("busy", "event", "hybrid:50")
BOARDS, BYTES, RATES = 4, 6000, (100, 2000)
SECONDS = 1.5


@dataclass
class Cost:
    """Of one mode at one rate (events per second of each board)."""

    mode: str
    rate: int
    median_us: float
    p99_us: float
    cpu_percent: float


def cost(network: Network, mode: str, rate: int) -> Cost:
    """Receives from boards that send at a rate, in a mode."""
    sender = network.send("--boards", BOARDS, "-l", BYTES, "--rate", rate)
    boards = [first_board(k) for k in range(BOARDS)]
    report = ended(network.recv(*boards, "--seconds", SECONDS, "--state", "none", "--event-timeout", 5000, poll=mode))
    sender.send_signal(signal.SIGINT)
    ended(sender)
    if report.status != 0:
        sys.exit(f"polling_bench: {mode} at {rate}/s: {report.stdout}{report.stderr}")
    reported = report.json()
    latency = reported["latency"]
    cpu_percent = 100 * reported["cpu_seconds"] / reported["seconds"]
    return Cost(mode, rate, latency["median_ns"] / 1e3, latency["p99_ns"] / 1e3, cpu_percent)


def costs(binary: Path) -> list[Cost] | None:
    """Every mode at every rate; none without the right to make namespaces."""
    if not allowed():
        return None
    with tempfile.TemporaryDirectory() as state:
        # What a wake-up costs is the kernel's and not the socket's; the ring is there on every machine.
        cpus = dict(zip("sb", sorted(os.sched_getaffinity(0)), strict=False))
        network = Network(binary, Path(state), socket="ring", cpus=cpus)
        try:
            network.make(BOARDS)
            return [cost(network, mode, rate) for rate in RATES for mode in MODES]
        finally:
            network.delete()


def main() -> int:
    found = costs(Path(__file__).resolve().parents[1] / "target/release/penstock")
    if found is None:
        print("polling_bench: it needs root, for network namespaces", file=sys.stderr)
        return 2
    print("| `--poll` | events/s | median | 99 % | CPU |\n|---|---|---|---|---|")
    for at in found:
        times = f"{at.median_us:.0f} us | {at.p99_us:.0f} us"
        print(f"| `{at.mode}` | {at.rate} | {times} | {at.cpu_percent:.0f} % |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
