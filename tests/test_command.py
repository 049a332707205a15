# SPDX-License-Identifier: Apache-2.0
"""The command as a user meets it: its name, its options, closed pipes, wrong requests.

Promises checked: exit status 2 and a message that says what to do for a wrong request; no panic and no traceback,
whatever standard output and standard error are.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Penstock

LAB = ROOT / "scenarios/advcam-5.toml"
SHORT = ("--set", "flow.0.size=10KB")
REPORTING = ("run", "board", "recv", "send", "check", "gpu-check", "sweep", "tune", "figures")


def ask(penstock: Penstock, *words: str | Path, **options) -> subprocess.CompletedProcess[str]:
    """What the command says; it never panics and shows no traceback."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run([str(penstock.binary), *map(str, words)], text=True, timeout=60, check=False, **given)
    assert done.returncode in (0, 1, 2), done.stderr
    assert "panicked" not in (done.stderr or "") and "Traceback" not in (done.stderr or "")
    return done


def test_it_calls_itself_penstock(penstock: Penstock) -> None:
    assert ask(penstock, "--version").stdout.startswith("penstock 0.")


@pytest.mark.parametrize("command", REPORTING)
def test_every_report_is_json_on_request_by_both_names(penstock: Penstock, command: str) -> None:
    assert "-J, --json" in ask(penstock, command, "--help").stdout


@pytest.mark.parametrize("words", [("run", "--no-plots"), ("run", "--no-plots", "--json"), ("sweep", "--json")])
def test_a_reader_that_has_gone_is_no_fault(penstock: Penstock, tmp_path: Path, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command, *options = words
    try:
        done = ask(penstock, command, LAB, *SHORT, "--out", tmp_path, *options, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / {"run": "summary.json", "sweep": "sweep.parquet"}[command]).exists()


def test_a_run_outlives_who_reads_its_warnings(penstock: Penstock, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        warns = ("--set", "switch.ecn=false")
        done = ask(penstock, "run", LAB, *SHORT, *warns, "--no-plots", "--out", tmp_path, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 0 and "results are in" in done.stdout


@pytest.mark.parametrize("words", [("run", "--no-plots"), ("sweep", "--quiet")])
def test_a_report_that_cannot_be_written_is_a_fault(penstock: Penstock, tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *options = words
    with open("/dev/full", "w") as full:
        done = ask(penstock, command, LAB, *SHORT, "--out", tmp_path, *options, stdout=full)
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "scenarios/advcam-9.toml"), "penstock board --switch"),
        (
            ("board", "--replay", "none", "--ip", "10.0.0.2", "--switch", LAB),
            "scenario of the laboratory (penstock run)",
        ),
        (("run", LAB, "--set", "topology.boards_per_leaf=2,4"), "in brackets"),
        (("recv", "--iface", "lo", "127.0.0.2", "--serve", "localhost:9000"), "a Unix socket of that name"),
        (("sweep", LAB, "--jobs", "-1"), "jobs = -1: at least one"),
        (("sweep", LAB, "--out", "/proc/none"), "out /proc/none: cannot make this folder"),
        (("tune", LAB, "--jobs", "0"), "jobs = 0: at least one"),
    ],
)
def test_a_wrong_request_is_refused_with_what_to_do(
    penstock: Penstock, tmp_path: Path, words: tuple[str | Path, ...], told: str
) -> None:
    done = ask(penstock, *words, *(("--out", tmp_path) if words[0] == "run" else ()), cwd=ROOT)
    assert done.returncode == 2 and told in done.stderr, done.stderr


def test_a_python_without_the_packages_is_named_with_what_is_missing(penstock: Penstock, tmp_path: Path) -> None:
    python = tmp_path / "bare-python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    done = ask(penstock, "sweep", "--help", env={**os.environ, "PENSTOCK_PYTHON": str(python), "PYTHONPATH": ""})
    assert done.returncode == 2 and f"{sys.executable} has no " in done.stderr and "requirements.txt" in done.stderr
