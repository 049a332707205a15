# SPDX-License-Identifier: Apache-2.0
"""The cost of each polling mode: `.venv/bin/python tests/bench.py --part polling`.

Promise: the same boards for each mode, one after the other; each message is timed, from the kernel's stamp of its last
frame until `penstock recv` passes it on. CPU time is that of the receiving thread. Boards and receiver have a CPU each:
if both ran on one CPU, the boards would determine the latency, not the polling mode.
"""

from collections.abc import Iterator

from measuring import BUILD, cores, namespaces, report, row, shell, stopped
from veth import ended, first_board

MODES = ("busy", "event", "hybrid:50")
BOARDS, BYTES, RATES = 4, 6000, (100, 2000)
SECONDS = 1.5


def rows() -> Iterator[dict]:
    """Every mode at every rate, in events per second of each board."""
    shell(BUILD)
    boards = [first_board(k) for k in range(BOARDS)]
    options = ("--seconds", SECONDS, "--state", "none", "--event-timeout", 5000)
    # What a wake-up costs is the kernel's and not the socket's; the ring is there on every machine.
    with namespaces(BOARDS, socket="ring", cpus=cores()) as network:
        for rate, mode in ((rate, mode) for rate in RATES for mode in MODES):
            sender = network.send("--boards", BOARDS, "-l", BYTES, "--rate", rate)
            received = ended(network.recv(*boards, *options, poll=mode))
            stopped(sender)
            found = report(f"{mode} at {rate}/s", received)
            name, latency = f"--poll {mode}, {rate} events/s of {BOARDS} boards", found["latency"]
            cpu_percent = 100 * found["cpu_seconds"] / found["seconds"]
            handed_on = f"{name}: last frame to message handed on"
            yield row(f"{handed_on}, median", latency["median_ns"] / 1e3, "us", None, "lower")
            yield row(f"{handed_on}, 99 %", latency["p99_ns"] / 1e3, "us", None, "lower")
            yield row(f"{name}: CPU time", cpu_percent, "%", None, "lower")
