# SPDX-License-Identifier: Apache-2.0
"""What the parts of `make bench` share: rows of its table, programs, and two network namespaces with a core each."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veth import Network, Result, allowed, ended

ROOT = Path(__file__).resolve().parents[1]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
BUILD = "cargo build --release -q -p penstock-cli --bin penstock"


class NotHereError(Exception):
    """This machine lacks what a measurement needs; the text says what."""


def row(name: str, value: float, unit: str, target: float | None, better: str, **more: object) -> dict:
    """One line of the table, in the layout of bench.json (tests/bench.py)."""
    return {"name": name, "value": value, "unit": unit, "target": target, "better": better, **more}


def shell(command: str) -> str:
    """Standard output of a command run in the repository; its message and exit status when it fails."""
    result = subprocess.run(command.split(), cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"bench: `{command}` ended with {result.returncode}\n{result.stderr}")
    return result.stdout


def cores() -> dict[str, int]:
    """A core for the processes at either end of a network, where there are two."""
    return dict(zip("sb", sorted(os.sched_getaffinity(0)), strict=False))


@contextmanager
def namespaces(
    boards: int, *programs: str, binary: Path = BUILT / "penstock", mtu: int | None = None, **options: object
) -> Iterator[Network]:
    """Two namespaces with so many boards, until the end. NotHereError without the right to make them, or a program."""
    if not allowed():
        raise NotHereError("it needs root, for network namespaces")
    if missing := [program for program in programs if not shutil.which(program)]:
        raise NotHereError(f"it needs {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as state:
        made = Network(binary, Path(state), **options)
        try:
            made.make(boards, **({"mtu": mtu} if mtu else {}))
            yield made
        finally:
            made.delete()


def stopped(process: subprocess.Popen) -> Result:
    """A process that an interrupt ends, as Ctrl-C does."""
    process.send_signal(signal.SIGINT)
    return ended(process)


def report(what: str, result: Result) -> dict:
    """The JSON of a command that has measured; ends the bench with its messages if it failed."""
    if result.status != 0:
        sys.exit(f"bench: {what}: {result.stdout}{result.stderr}")
    return result.json()


def bits_per_second(received: dict) -> float:
    """Of a receiver's report: payload of all boards over the time of its readout."""
    return sum(board["bytes"] for board in received["boards"]) * 8 / received["readout_seconds"]
