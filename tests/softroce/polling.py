# SPDX-License-Identifier: Apache-2.0
"""The cost of each polling mode with verbs: `.venv/bin/python tests/softroce/polling.py`.

Promise: the same boards for each mode, in turn, into `penstock recv --backend verbs` in the Soft-RoCE machine, every
event complete; the round with the least median is reported. `rdma_rxe` does not time-stamp completions, so the time is
measured outside, with one clock: from an event's last frame at the boards' interface until a consumer at the same end
has the event (`--serve`). It includes the round trip, which is the same for all modes; the `ping` time is reported,
too. CPU time is that of the receiving thread. Needs root.
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2]))

import build
from machine import Machine
from veth import SERVER_IP, Network, allowed, ended, first_board

from figures import measured

HERE = Path(__file__).parent
MODES = ("busy", "event", "hybrid:50", "hybrid:1000")
BOARDS, EVENTS, BYTES, RATE = 4, 300, 6000, 50
WARM_UP = 50  # events: boards come up, and the consumer's stream begins
PORT = 9000
SIZE = "--slots 16 --slot-size 8192"
LIMIT_S, ROUNDS = 90, 3


@dataclass
class Cost:
    """Of one mode."""

    mode: str
    median_us: float
    p99_us: float
    cpu_percent: float


def boards() -> list[str]:
    return [first_board(k) for k in range(BOARDS)]


def cost(machine: Machine, network: Network, mode: str) -> Cost:
    """Receives all events in a mode. Ends the program if one is not whole."""
    receive = f"penstock recv --backend verbs --device rxe0 {' '.join(boards())} --state none --poll {mode} {SIZE}"
    receive += f" --events {EVENTS} --first-event 0 --event-timeout 20000 --seconds 60 --json"
    machine.start("recv", f"{receive} --serve {SERVER_IP}:{PORT}")
    watched = (str(HERE / "watch.py"), "veth1", SERVER_IP, str(PORT), str(EVENTS), str(WARM_UP))
    watcher = network.start("b", sys.executable, *watched)
    if watcher.stdout.readline() != "watching\n":
        sys.exit(f"polling: no consumer: {watcher.stderr.read()}{machine.run('job err recv').output}")
    what = ("--boards", BOARDS, "-n", EVENTS, "-l", BYTES, "--rate", RATE, "--ack-timeout", 19)
    sender = network.send(*what, *SIZE.split())
    received, sent, seen = machine.wait("recv", LIMIT_S), ended(sender, LIMIT_S), ended(watcher, LIMIT_S)
    if (received.status, sent.status, seen.status) != (0, 0, 0):
        errors = machine.run("job err recv").output
        sys.exit(f"polling: {mode}: {received.output}{errors}{sent.stdout}{sent.stderr}{seen.stderr}")
    report, us = json.loads(received.output), [ns / 1e3 for ns in seen.json().values()]
    whole = report["readout"]["builder"]["events_complete"]
    if whole != EVENTS or len(us) != EVENTS - WARM_UP:
        sys.exit(f"polling: {mode}: {whole} events whole and {len(us)} timed of {EVENTS}, {EVENTS - WARM_UP} expected")
    cpu_percent = 100 * report["cpu_seconds"] / report["seconds"]
    return Cost(mode, statistics.median(us), statistics.quantiles(us, n=100)[98], cpu_percent)


def way_us(network: Network) -> float:
    """Median of `ping` through relay and machine, there and back."""
    result = ended(network.start("b", "ping", "-c", "40", "-i", "0.02", SERVER_IP))
    times = [float(ms) * 1e3 for ms in re.findall(r"time=([0-9.]+) ms", result.stdout)]
    if not times:
        sys.exit(f"polling: the machine does not answer: {result.stdout}{result.stderr}")
    return statistics.median(times)


def costs(target: Path) -> tuple[float, list[Cost]]:
    """The way there and back, us, and every mode, in one machine."""
    image = build.build(target, log=lambda text: print(text, file=sys.stderr))
    with Machine(image) as machine, tempfile.TemporaryDirectory() as state:
        network = Network(target / "penstock", Path(state))
        try:
            machine.check("ip route add 10.77.1.0/24 dev eth0")
            network.make(BOARDS, ip=None)
            relay = network.start("s", sys.executable, str(HERE / "relay.py"), "veth0", *machine.ethernet())
            if relay.stdout.readline() != "joined\n":
                sys.exit(f"polling: no relay: {relay.stderr.read()}")
            way = way_us(network)
            rounds = [[cost(machine, network, mode) for mode in MODES] for _ in range(ROUNDS)]
            return way, [min(of_mode, key=lambda at: at.median_us) for of_mode in zip(*rounds, strict=True)]
        finally:
            network.delete()


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the ways to poll with verbs in the Soft-RoCE machine.")
    parser.add_argument("--target", type=Path, default=build.TARGET, help="cargo's folder of programs")
    parser.add_argument("--docs", action="store_true", help="put the rows into docs/measured/bench.json")
    arguments = parser.parse_args()
    if not allowed():
        print("polling: it needs root, for network namespaces", file=sys.stderr)
        return 2
    way, found = costs(arguments.target)
    rows = [
        {
            "`--poll`": f"`{at.mode}`",
            "median": f"{at.median_us / 1e3:.1f} ms",
            "99 %": f"{at.p99_us / 1e3:.1f} ms",
            "CPU": f"{at.cpu_percent:.0f} %",
        }
        for at in found
    ]
    print(f"ping there and back: {way:.0f} us\n\n{measured.markdown(rows)}", end="")
    if arguments.docs:
        measured.replace({"polling with verbs": rows}, measured.BENCH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
