# SPDX-License-Identifier: Apache-2.0
"""The performance table: `make bench` prints it and writes `out/bench.json`.

Each row is an object {name, value, unit, target, better, command, met}; `better` is "higher" or "lower", and a target
of null marks a figure that only explains another. Shares of a line have goodput_gbps and limit_gbps, too. A figure
that misses its target is shown as missed. Compare figures that depend on the machine only on the same machine.
`--docs` puts the rows of each part that has run into docs/measured/bench.json, whose tables docs/measurements.md shows.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import ctl_bench
import flood_bench
import live_page
import packet_bench
import polling_bench
import read_bench
import tcp_bench
from conftest import Penstock
from measuring import BUILD, BUILT, ROOT, NotHereError, row, shell

sys.path.append(str(ROOT))

from figures import measured

LINE_RATE = "cargo run --release -q -p penstock-board --features all-tops --example line_rate"
SWITCH = "cargo run --release -q -p penstock-board --example switch_speed"
MODEL = "cargo run --release -q -p penstock-cc --example speed"
READOUT = "cargo run --release -q -p penstock-readout --example readout_speed"
LABORATORY = "cargo run --release -q -p penstock-lab --example lab_speed"
SOFT_ROCE = ".venv/bin/python tests/softroce/speed.py --json"
DEMO = "target/release/penstock run scenarios/incast-3.toml --out out/bench"
DEMO_SEEDS = range(1, 6)  # one run is a draw of a spread that is wider than what the rows are to show (docs/results.md)


def example_rows(command: str) -> list[dict]:
    """What an example measures; it knows its targets."""
    return [{**found, "command": command} for found in json.loads(shell(command))]


def model_rows() -> Iterator[dict]:
    """The congestion-control model, 64 busy flows on one core."""
    found = json.loads(shell(MODEL))
    for law, key in {"DCQCN": "dcqcn_visits_per_second", "QCN": "qcn_visits_per_second"}.items():
        yield row(f"{law} model, one core", found[key], "visits/s", 20e6, "higher", command=MODEL)


def soft_roce_rows() -> list[dict]:
    """The kernel's rdma_rxe in a virtual machine, under the verbs back end."""
    shell("cargo build --release -q -p penstock-readout --examples")
    return json.loads(shell(SOFT_ROCE))


def demo_rows() -> Iterator[dict]:
    """The whole way of the data, with plots, as a user starts it the second time; what several seeds store."""
    started = time.monotonic()
    shell(DEMO)
    yield row("demo, later runs", round(time.monotonic() - started, 2), "s", 60, "lower", command=DEMO)
    goodput, jain = [], []
    for seed in DEMO_SEEDS:
        shell(f"{DEMO} --no-plots --set run.seed={seed}")
        summary = json.loads((ROOT / "out/bench/summary.json").read_text())
        goodput.append(summary["readout"]["goodput_gbps"])
        jain.append(summary["readout"]["jain_1ms"])
    seeds, command = f"mean of seeds {DEMO_SEEDS[0]} to {DEMO_SEEDS[-1]}", f"{DEMO} --set run.seed=..."
    yield row(f"demo, goodput stored, {seeds}", statistics.mean(goodput), "Gb/s", 9.4, "higher", command=command)
    yield row(f"demo, Jain's index, {seeds}", statistics.mean(jain), "", 0.95, "higher", command=command)


def page_rows() -> Iterator[dict]:
    """The live page of sixty boards: at twenty updates a second a redraw has 50 ms."""
    shell(BUILD)
    with tempfile.TemporaryDirectory() as folder:
        found = live_page.watch_sixty(Penstock(BUILT / "penstock"), Path(folder), 10)
    yield row("live page of 60 boards, CPU time of a redraw", found["cpu_ms"], "ms", 50, "lower")


# In the order of running: what counts seconds of the wall first. A part without a command of its own is measured by
# this one with `--part`.
PARTS = {
    "readout": partial(example_rows, READOUT),
    "packet back end": packet_bench.rows,
    "TCP": tcp_bench.rows,
    "polling": polling_bench.rows,
    "flood": flood_bench.rows,
    "ctl": ctl_bench.rows,
    "live page": page_rows,
    "Soft-RoCE": soft_roce_rows,
    "gateware": partial(example_rows, LINE_RATE),
    "READs": read_bench.rows,
    "switch": partial(example_rows, SWITCH),
    "model": model_rows,
    "laboratory": partial(example_rows, LABORATORY),
    "demo": demo_rows,
}


def measure(part: str) -> list[dict]:
    """The rows of a part; none on a machine that lacks what it needs."""
    started, command = time.monotonic(), f".venv/bin/python tests/bench.py --part '{part}'"
    try:
        rows = [{"command": command, **entry, "met": is_met(entry)} for entry in PARTS[part]()]
    except NotHereError as error:
        print(f"bench: no {part}: {error}", file=sys.stderr)
        rows = []
    print(f"bench: {part}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return rows


def is_met(entry: dict) -> bool | None:
    """Whether a figure reaches its target; none where it has none."""
    value, target = entry["value"], entry["target"]
    if target is None:
        return None
    return value >= target if entry["better"] == "higher" else value <= target


AIMS = {"higher": ">=", "lower": "<="}
MET = {True: "met", False: "MISSED", None: ""}


def lines(rows: list[dict]) -> Iterator[str]:
    """The table."""
    width = max(len(entry["name"]) for entry in rows)
    yield f"{'':{width}}  {'measured':>12}  {'target':>12}"
    for entry in rows:
        target = "" if entry["target"] is None else f"{AIMS[entry['better']]} {entry['target']:.6g}"
        measured_and_target = f"{entry['value']:>12.6g}  {target:>12} {entry['unit']:11} {MET[entry['met']]}"
        yield f"{entry['name']:{width}}  {measured_and_target}".rstrip()


def page_row(entry: dict, commit: str) -> measured.Row:
    """A row as a page shows it."""
    target = None if entry["target"] is None else f"{AIMS[entry['better']]} {page_number(entry['target'])}"
    value = f"{page_number(entry['value'])} {entry['unit']}".rstrip()
    met = MET[entry["met"]].lower() or None
    return {"what": entry["name"], "measured": value, "target": target, "": met, "commit": commit}


def page_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.5g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out", help="folder for bench.json")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given again")
    parser.add_argument("--docs", action="store_true", help="put the rows into docs/measured/bench.json")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = {part: rows for part in args.part or PARTS if (rows := measure(part))}
    rows = [entry for of_part in found.values() for entry in of_part]
    (args.out / "bench.json").write_text(json.dumps(rows, indent=2) + "\n")
    if args.docs:
        commit = shell("git rev-parse --short=7 HEAD").strip()
        tables = {part: [page_row(entry, commit) for entry in of_part] for part, of_part in found.items()}
        measured.replace(tables, measured.BENCH)
    if rows:
        print("\n".join(lines(rows)))
    print(f"written: {args.out / 'bench.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
