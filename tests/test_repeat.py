# SPDX-License-Identifier: Apache-2.0
"""tools/repeat.py: tests in random orders, each replayed by its seed, on a loaded machine."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

# Notes the order; one test fails where another one of its file has not been run.
TESTS = """
import os, pathlib
LOG = pathlib.Path(os.environ["ORDER_LOG"])

def note(name):
    before = LOG.read_text().split()
    LOG.write_text(" ".join([*before, f"{__name__}.{name}"]))
    return [word for word in before if word.startswith(__name__)]

def test_a(): note("a")
def test_b(): note("b")
def test_c(): assert note("c") or __name__ != "test_first"
"""


def repeat(folder: Path, *options: str) -> tuple[subprocess.CompletedProcess, list[str]]:
    """A run of the program, and the order of the tests."""
    for name in ("first", "second", "third"):
        (folder / f"test_{name}.py").write_text(TESTS)
    log = folder / "order"
    log.write_text("")
    words = [*options, "--load", "1", "--", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder)]
    command = [sys.executable, str(ROOT / "tools/repeat.py"), *words]
    done = subprocess.run(command, env={**os.environ, "ORDER_LOG": str(log)}, capture_output=True, text=True)
    return done, log.read_text().split()


def test_each_seed_has_its_own_order_which_it_replays(tmp_path: Path) -> None:
    done, order = repeat(tmp_path, "--times", "2", "--seed", "3")
    assert len(order) == 18, done.stdout + done.stderr
    first, second = order[:9], order[9:]
    assert first != second and set(first) == set(second)
    files = [name.split(".")[0] for name in first]
    assert files == [name for name in dict.fromkeys(files) for _ in range(3)], "the tests of a file stay together"
    again, replayed = repeat(tmp_path, "--times", "1", "--seed", "4")
    assert replayed == second, again.stdout


def test_what_fails_is_named_with_the_seeds_that_replay_it(tmp_path: Path) -> None:
    """With seed 1 `test_c` is the first of its file, with seed 2 it is not."""
    done, _ = repeat(tmp_path, "--times", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_first.py::test_c with seeds 1; `PENSTOCK_ORDER=1 PENSTOCK_SEED=1 " in done.stdout, done.stdout
    assert "repeat: 2 times, 1 tests failed" in done.stdout
