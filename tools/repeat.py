# SPDX-License-Identifier: Apache-2.0
"""Repeats tests in random order on a loaded machine, to find those that depend on time or on each other.

    .venv/bin/python tools/repeat.py --times 20 --seed 1 -- -n 3 tests

Each time has its own seed, which orders the files, the tests in each file, and is `PENSTOCK_SEED` of the tests. All
times are run. The end names the failed tests and the seeds that replay them; exit status 1 if there are any.
"""

import argparse
import multiprocessing
import os
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORDER = "PENSTOCK_ORDER"


def pytest_collection_modifyitems(items: list) -> None:
    """As a plugin of pytest: files in random order, and the tests of each, which share what is set up for a file."""
    chance = random.Random(int(os.environ[ORDER]))
    files = sorted({item.path for item in items})
    places = {path: chance.random() for path in files}
    items.sort(key=lambda item: item.nodeid)
    chance.shuffle(items)
    items.sort(key=lambda item: places[item.path])


def spin() -> None:
    """Keeps one core busy."""
    while True:
        pass


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Others compete for the cores; they end with this process, however it ends."""
    spinning = [multiprocessing.Process(target=spin, daemon=True) for _ in range(processes)]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


def failures(seed: int, words: list[str]) -> list[str]:
    """Runs the tests once; the failed ones. Prints what pytest prints."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, ORDER: str(seed), "PENSTOCK_SEED": str(seed), "PYTHONPATH": path, "COLUMNS": "160"}
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "repeat", *words]
    print(f"repeat: seed {seed}: {shlex.join(command)}", flush=True)
    found = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if failed := re.match(r"(?:FAILED|ERROR) (\S+)", line):
                found.append(failed[1])
    return found or ([f"pytest ended with {process.returncode}"] if process.returncode else [])


def main() -> int:
    parser = argparse.ArgumentParser(description="Repeat tests in random order on a loaded machine.")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first time; each further one has the next")
    parser.add_argument("--load", type=int, default=4, help="processes that compete for the cores")
    parser.add_argument("words", nargs="+", help="behind --: pytest's arguments")
    given = parser.parse_args()
    failed: dict[str, list[int]] = {}
    with load(given.load):
        for seed in range(given.seed, given.seed + given.times):
            for test in failures(seed, given.words):
                failed.setdefault(test, []).append(seed)
    for test, seeds in failed.items():
        replay = f"{ORDER}={seeds[0]} PENSTOCK_SEED={seeds[0]} PYTHONPATH=tools .venv/bin/pytest -p repeat"
        print(f"repeat: FAILED: {test} with seeds {', '.join(map(str, seeds))}; `{replay} {shlex.join(given.words)}`")
    print(f"repeat: {given.times} times, {len(failed)} tests failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
