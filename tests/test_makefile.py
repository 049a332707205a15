# SPDX-License-Identifier: Apache-2.0
"""The Makefile's long targets: their commands run, on less data."""

import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

LESS = ("--set", "run.stop=time", "--set", "run.time_limit=100us")


def recipe(target: str) -> list[list[str]]:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    return [shlex.split(line) for line in done.stdout.splitlines()]


def test_make_profile_runs_each_recorded_scenario_after_the_others(penstock, tmp_path):
    """All runs share one folder of results, so each replaces those of the one before."""
    runs = [words for words in recipe("profile") if words[0] == "target/release/penstock"]
    assert len(runs) == 4
    for run in runs:
        words = [str(tmp_path) if word == "build/recorded" else word for word in run[1:]]
        command = [str(penstock.binary), *words, *LESS]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        # 1: cut short, events are missing; 2: refused.
        assert done.returncode in (0, 1), f"{shlex.join(command)}: {done.stdout}{done.stderr}"
