# SPDX-License-Identifier: Apache-2.0
"""The Makefile's long targets: their commands run, on less data."""

import os
import re
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


def parts(path: str) -> list[str]:
    """What the parallel jobs of a workflow call, one word each."""
    found = re.search(r"(?:part|PART): \[(.*)\]", (ROOT / path).read_text())
    assert found, path
    return re.split(r"[, ]+", found[1])


def test_the_parallel_jobs_of_both_workflows_run_all_that_ci_runs_in_turn():
    whole = [words for target in ("lint", "formal", "test") for words in recipe(target)]
    for path in (".github/workflows/ci.yml", ".gitlab-ci.yml"):
        sliced = [words for target in parts(path) for words in recipe(target)]
        tested = {word for words in sliced if "pytest" in words for word in words if word in ("tb", "tests")}
        assert tested == {"tb", "tests"}, path
        assert [words for words in whole if "pytest" not in words and words not in sliced] == [], path


def test_ci_runs_all_parts_or_those_that_are_named(tmp_path):
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "$@"\n')
    make.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def called(*words: str) -> list[str]:
        done = subprocess.run([ROOT / ".ci/run", *words], env=env, capture_output=True, text=True, check=True)
        [together] = done.stdout.splitlines()
        at_once, *targets = together.split()
        assert at_once == f"--jobs={len(os.sched_getaffinity(0)) + 1}", "the parts run beside each other"
        return targets

    assert called() == ["lint", "formal", "test"]
    assert called("lint", "formal") == called("lint formal") == ["lint", "formal"]
