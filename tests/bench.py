# SPDX-License-Identifier: Apache-2.0
"""The performance table: `make bench` prints it and writes `out/bench.json`.

Each row is an object {name, value, unit, target, better, command, met}; `better` is "higher" or "lower", and a target
of null marks a figure that only explains another. Shares of a line have goodput_gbps and limit_gbps, too. A figure
that misses its target is shown as missed. Compare figures that depend on the machine only on the same machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ctl_bench
import flood_bench
import live_page
import packet_bench
import polling_bench
import tcp_bench
from conftest import Penstock

REPO = Path(__file__).resolve().parents[1]
LINE_RATE = "cargo run --release -q -p penstock-board --features all-tops --example line_rate"
SWITCH = "cargo run --release -q -p penstock-board --example switch_speed"
MODEL = "cargo run --release -q -p penstock-cc --example speed"
READOUT = "cargo run --release -q -p penstock-readout --example readout_speed"
LABORATORY = "cargo run --release -q -p penstock-lab --example lab_speed"
SOFT_ROCE = ".venv/bin/python tests/softroce/speed.py --json"
COMMAND_BUILD = "cargo build --release -q -p penstock-cli"
PACKET = "make bench (tests/packet_bench.py)"
TCP = "make bench (tests/tcp_bench.py)"
POLLING = ".venv/bin/python tests/polling_bench.py"
FLOOD = ".venv/bin/python tests/flood_bench.py"
CTL = ".venv/bin/python tests/ctl_bench.py"
PAGE = "make bench (tests/live_page.py)"
DEMO = "target/release/penstock run scenarios/incast-3.toml --out out/bench"
DEMO_SEEDS = range(1, 6)  # one run is a draw of a spread that is wider than what the rows are to show (docs/results.md)


def row(name: str, value: float, unit: str, target: float | None, better: str, command: str) -> dict:
    """One line of the table, in the layout of bench.json."""
    return {"name": name, "value": value, "unit": unit, "target": target, "better": better, "command": command}


def shell(command: str) -> str:
    """Standard output of a command run in the repository; its message and exit status when it fails."""
    result = subprocess.run(command.split(), cwd=REPO, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"bench: `{command}` ended with {result.returncode}\n{result.stderr}")
    return result.stdout


def board_rows() -> list[dict]:
    """The verilated front ends at 10G, 25G and 100G against servers that answer after 1 us."""
    return [{**found, "command": LINE_RATE} for found in json.loads(shell(LINE_RATE))]


def switch_rows() -> list[dict]:
    """The verilated QCN switch with four full lines; the example knows its target."""
    return [{**found, "command": SWITCH} for found in json.loads(shell(SWITCH))]


def model_rows() -> list[dict]:
    """The congestion-control model, 64 busy flows on one core."""
    found = json.loads(shell(MODEL))
    names = {"DCQCN": "dcqcn_visits_per_second", "QCN": "qcn_visits_per_second"}
    return [row(f"{law} model, one core", found[key], "visits/s", 20e6, "higher", MODEL) for law, key in names.items()]


def readout_rows() -> list[dict]:
    """Receiver, event builder and writer in memory; the example knows their targets."""
    return [{**found, "command": READOUT} for found in json.loads(shell(READOUT))]


def laboratory_rows() -> list[dict]:
    """The network laboratory: packets over links per CPU second, growth, memory; the example knows their targets."""
    return [{**found, "command": LABORATORY} for found in json.loads(shell(LABORATORY))]


def soft_roce_rows() -> list[dict]:
    """The kernel's rdma_rxe in a virtual machine, under the verbs back end."""
    shell("cargo build --release -q -p penstock-readout --examples")
    return json.loads(shell(SOFT_ROCE))


def packet_rows() -> list[dict]:
    """The packet back end over a veth pair, against iperf3 UDP in the same namespaces."""
    shell(COMMAND_BUILD)
    found = packet_bench.rates(REPO / "target/release/penstock")
    if found is None:
        print("bench: no packet back end against iperf3: it needs root and iperf3", file=sys.stderr)
        return []
    ours, iperf3 = found
    rows = []
    for (count, socket), rate in ours.items():
        by = {"ring": "ring", "xdp": "AF_XDP"}[socket]
        name = f"packet back end over veth, one core, {count} boards, {by}"
        rows.append(row(f"{name}, of iperf3 UDP's", 100 * rate / iperf3, "%", 70, "higher", PACKET))
        rows.append(row(name, rate / 1e9, "Gb/s", None, "higher", PACKET))
    return [
        *rows,
        row("iperf3 UDP over the same veth, same frames", iperf3 / 1e9, "Gb/s", None, "higher", PACKET),
    ]


def tcp_rows() -> list[dict]:
    """TCP of the kernel and of the emulator over a veth pair, in fragments of 64 KiB."""
    shell(COMMAND_BUILD)
    found = tcp_bench.rates(REPO / "target/release/penstock", (tcp_bench.LONG,), with_receiver=True)
    if found is None:
        print("bench: no TCP between two kernels: it needs root and iperf3", file=sys.stderr)
        return []
    rate = {case: by_size[tcp_bench.LONG] for case, by_size in found.items()}
    names = {"recv": "recv --backend tcp over veth, one core", "emulator": "send --protocol tcp over the same veth"}
    return [
        row(f"{names['recv']}, of iperf3 TCP's", 100 * rate["recv"] / rate["iperf3"], "%", 90, "higher", TCP),
        row(f"{names['emulator']}, of sockets'", 100 * rate["emulator"] / rate["sockets"], "%", 90, "higher", TCP),
        row(names["recv"], rate["recv"] / 1e9, "Gb/s", None, "higher", TCP),
        row(names["emulator"], rate["emulator"] / 1e9, "Gb/s", None, "higher", TCP),
        row("--stack sockets over the same veth", rate["sockets"] / 1e9, "Gb/s", None, "higher", TCP),
        row("iperf3 TCP over the same veth", rate["iperf3"] / 1e9, "Gb/s", None, "higher", TCP),
    ]


def polling_rows() -> list[dict]:
    """What each way to poll costs, over the same veth pair."""
    shell(COMMAND_BUILD)
    rows = []
    for at in polling_bench.costs(REPO / "target/release/penstock") or []:
        name = f"--poll {at.mode}, {at.rate} events/s of {polling_bench.BOARDS} boards"
        rows.append(row(f"{name}: last frame to message handed on, median", at.median_us, "us", None, "lower", POLLING))
        rows.append(row(f"{name}: last frame to message handed on, 99 %", at.p99_us, "us", None, "lower", POLLING))
        rows.append(row(f"{name}: CPU time", at.cpu_percent, "%", None, "lower", POLLING))
    return rows


def ctl_rows() -> list[dict]:
    """Slow control of many boards in software, on loopback."""
    shell(f"{COMMAND_BUILD} -p penstock-ipbus --bin penstock --example responders")
    at = ctl_bench.costs(REPO / "target/release")
    return [
        row("ctl status of 1,000 boards", at.status_s, "s", 2, "lower", CTL),
        row("ctl apply of 100 registers to each of 1,000 boards", at.apply_s, "s", 5, "lower", CTL),
        row("ctl sample of 265 boards: samples of a board", at.sampled_per_s, "1/s", 990, "higher", CTL),
        row("the same: CPU time of a sample", at.sample_us, "us", 3.8, "lower", CTL),
        row("the same: CPU of one core", at.cpu_percent, "%", 100, "lower", CTL),
        row("the same: CPU of the boards in software", at.boards_percent, "%", None, "lower", CTL),
        row("the same: samples missed", at.missed_percent, "%", None, "lower", CTL),
        row("uHAL's time for the registers of 100 boards, in that of ctl get", at.of_uhal, "", None, "higher", CTL),
    ]


def flood_rows() -> list[dict]:
    """What a flood of strangers' frames and messages leaves of good boards' rate."""
    shell(f"{COMMAND_BUILD} -p penstock-readout --bin penstock --example flood")
    found = flood_bench.costs(REPO / "target/release/penstock")
    if found is None:
        return []
    alone, elsewhere, flooded = found
    share = 100 * flooded.events_per_s / alone.events_per_s
    generator = 100 * elsewhere.events_per_s / alone.events_per_s
    return [
        row("good boards under a flood, of their rate without", share, "%", 95, "higher", FLOOD),
        row("the same with the flood sent to nobody", generator, "%", 95, "higher", FLOOD),
        row("the flood's garbage frames", flooded.garbage_per_s, "1/s", 150_000, "higher", FLOOD),
        row("the flood's connection manager messages", flooded.messages_per_s, "1/s", 50_000, "higher", FLOOD),
    ]


def demo_rows() -> list[dict]:
    """The whole way of the data, with plots, as a user starts it the second time; what several seeds store."""
    started = time.monotonic()
    shell(DEMO)
    wall = time.monotonic() - started
    goodput, jain = [], []
    for seed in DEMO_SEEDS:
        shell(f"{DEMO} --no-plots --set run.seed={seed}")
        summary = json.loads((REPO / "out/bench/summary.json").read_text())
        goodput.append(summary["readout"]["goodput_gbps"])
        jain.append(summary["readout"]["jain_1ms"])
    seeds = f"mean of seeds {DEMO_SEEDS[0]} to {DEMO_SEEDS[-1]}"
    command = f"{DEMO} --set run.seed=..."
    return [
        row("demo, later runs", round(wall, 2), "s", 60, "lower", DEMO),
        row(f"demo, goodput stored, {seeds}", statistics.mean(goodput), "Gb/s", 9.4, "higher", command),
        row(f"demo, Jain's index, {seeds}", statistics.mean(jain), "", 0.95, "higher", command),
    ]


def page_rows() -> list[dict]:
    """The live page of sixty boards: at twenty updates a second a redraw has 50 ms."""
    shell(COMMAND_BUILD)
    with tempfile.TemporaryDirectory() as folder:
        found = live_page.watch_sixty(Penstock(REPO / "target/release/penstock"), Path(folder), 10)
    return [row("live page of 60 boards, CPU time of a redraw", found["cpu_ms"], "ms", 50, "lower", PAGE)]


def is_met(entry: dict) -> bool | None:
    """Whether a figure reaches its target; none where it has none."""
    value, target = entry["value"], entry["target"]
    if target is None:
        return None
    return value >= target if entry["better"] == "higher" else value <= target


def verdict(entry: dict) -> str:
    """A figure against its target, in the table's words."""
    value, target = entry["value"], entry["target"]
    if target is None:
        return f"{value:>12.6g}  {'':>12} {entry['unit']}"
    shown = f"{'>=' if entry['better'] == 'higher' else '<='} {target:.6g}"
    return f"{value:>12.6g}  {shown:>12} {entry['unit']:11} {'met' if entry['met'] else 'MISSED'}"


# In the order of running: what counts seconds of the wall first.
PARTS = {
    "readout": readout_rows,
    "packet back end": packet_rows,
    "TCP": tcp_rows,
    "polling": polling_rows,
    "flood": flood_rows,
    "ctl": ctl_rows,
    "live page": page_rows,
    "Soft-RoCE": soft_roce_rows,
    "gateware": board_rows,
    "switch": switch_rows,
    "model": model_rows,
    "laboratory": laboratory_rows,
    "demo": demo_rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPO / "out", help="folder for bench.json")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given again")
    args = parser.parse_args()
    out, rows = args.out, []
    out.mkdir(parents=True, exist_ok=True)
    for part in args.part or PARTS:
        started = time.monotonic()
        rows += [{**entry, "met": is_met(entry)} for entry in PARTS[part]()]
        print(f"bench: {part}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    (out / "bench.json").write_text(json.dumps(rows, indent=2) + "\n")
    width = max(len(entry["name"]) for entry in rows)
    print(f"{'':{width}}  {'measured':>12}  {'target':>12}")
    for entry in rows:
        print(f"{entry['name']:{width}}  {verdict(entry)}")
    print(f"written: {out / 'bench.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
