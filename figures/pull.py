# SPDX-License-Identifier: Apache-2.0
"""The cases of pull, each next to the same load in a network that holds nothing back: docs/measured/pull.json.

    python -m figures.pull [--docs | --check] [NAMES...]

in the root of the repository runs `cargo run --release -p penstock-cli-laboratory --example pull_cases` and prints
the table of docs/congestion-control.md. `--docs` writes it into docs/measured, `--check` compares it with that file.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from figures import measured
from figures.measured import Row

ROOT = Path(__file__).resolve().parents[1]
TABLE = "pull cases"
PACKAGE = "penstock-cli-laboratory"
BUILD = ("cargo", "run", "--release", "--locked", "-q", "-p", PACKAGE, "--example", "pull_cases", "--")
MEASURES = {"events": ("event, 99 %", "us"), "messages": ("message, 99 %", "us"), "goodput": ("delivered", "Gb/s")}


def run(command: Sequence[str], names: Sequence[str] = ()) -> list[dict]:
    """Runs the cases of these names, or all. Raises `CalledProcessError`."""
    done = subprocess.run([*command, *names], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(case: dict) -> Row:
    """A case as a row of the table."""
    measure, unit = MEASURES[case["measure"]]
    missed, reason = ", ".join(case["missed"]), case["reason"] or "no reason is given"
    return {
        "case": case["case"],
        "measure": measure,
        "ideal": _value(case["ideal"], unit),
        "pull": _value(case["pull"], unit),
        "queue, 99 %": _kilobytes(case["queue_p99_bytes"]),
        "longest": _kilobytes(case["queue_peak_bytes"]),
        "bound": _kilobytes(case["bound_bytes"]),
        "W": _kilobytes(case["window_bytes"]),
        "announcements": f"{100 * case['announcement_share']:.1f} %",
        "dropped": case["dropped"],
        "paused": f"{case['paused_us']:.0f} us",
        "": f"misses {missed}: {reason}" if missed else None,
    }


def _value(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}" if unit == "Gb/s" else f"{value:.0f} {unit}"


def _kilobytes(value: int | None) -> str | None:
    return None if value is None else f"{value / 1e3:.1f} kB"


def differences(made: list[Row], written: list[Row]) -> list[str]:
    """Rows that only the file (-) or only the cases that have run (+) have."""
    names = {row["case"] for row in made}
    before = [row for row in written if row["case"] in names]
    other = [("-", row) for row in before if row not in made] + [("+", row) for row in made if row not in before]
    return [f"{sign} {' | '.join(map(str, row.values()))}" for sign, row in other]


def main(words: list[str] | None = None) -> int:
    """The command with these arguments, else those of the process; returns the exit status."""
    parser = argparse.ArgumentParser(prog="figures.pull", description="Run the cases of pull.", allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases; all when none is given")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/measured")
    parser.add_argument("--check", action="store_true", help="exit status 1 if docs/measured has other numbers")
    arguments = parser.parse_args(words)
    if arguments.docs and arguments.names:
        parser.error("--docs writes the whole table: leave out the names")
    try:
        rows = [row(case) for case in run(BUILD, arguments.names)]
    except subprocess.CalledProcessError as error:
        return error.returncode
    if arguments.docs:
        measured.write({TABLE: rows}, measured.PULL)
    if arguments.check and (other := differences(rows, measured.read(measured.PULL)[TABLE])):
        print("\n".join(["docs/measured has other numbers (-) than these cases (+):", *other]), file=sys.stderr)
        return 1
    print(measured.markdown(rows), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
