# SPDX-License-Identifier: Apache-2.0
"""The command as a user sees it: its name, its options, closed pipes, invalid requests.

Promises checked: exit status 2 and a message that says what to do for an invalid request; no panic and no traceback
for any kind of standard output and standard error.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, TIMEOUT_S, Penstock

LAB = ROOT / "scenarios/advcam-5.toml"
SHORT = ("--set", "flow.0.size=10KB")
REPORTING = ("run", "board", "recv", "send", "check", "gpu-check", "sweep", "tune", "figures")


def run_command(penstock: Penstock, *words: str | Path, **options) -> subprocess.CompletedProcess[str]:
    """What the command says; it never panics and shows no traceback."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run([str(penstock.binary), *map(str, words)], text=True, timeout=TIMEOUT_S, check=False, **given)
    assert done.returncode in (0, 1, 2), done.stderr
    assert "panicked" not in (done.stderr or "") and "Traceback" not in (done.stderr or "")
    return done


def test_it_calls_itself_penstock(penstock: Penstock) -> None:
    assert run_command(penstock, "--version").stdout.startswith("penstock 0.")


def test_its_version_names_the_commit(penstock: Penstock) -> None:
    """Its form alone: a built command may be older than the checkout. Sources without git have no commit."""
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False)
    commit = r" \([0-9a-f]{12,}\)" if git.returncode == 0 else ""
    assert re.fullmatch(rf"penstock \d+\.\d+\.\d+{commit}\n", run_command(penstock, "--version").stdout)


@pytest.mark.parametrize(("shell", "check"), [("bash", ("bash", "-n")), ("zsh", None), ("fish", None)])
def test_completions_hold_every_command(penstock: Penstock, shell: str, check: tuple[str, ...] | None) -> None:
    text = run_command(penstock, "completions", shell).stdout
    assert all(command in text for command in REPORTING)
    if check:
        assert subprocess.run(check, input=text, text=True, timeout=TIMEOUT_S, check=False).returncode == 0


def test_bash_completes_a_command_and_its_options(penstock: Penstock, tmp_path: Path) -> None:
    (tmp_path / "penstock.bash").write_text(run_command(penstock, "completions", "bash").stdout)
    program = """
        . ./penstock.bash
        answer() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _penstock penstock "${@: -1}" "${@: -2:1}"
            echo "${COMPREPLY[@]}"
        }
        answer penstock che
        answer penstock recv --lis
    """
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    commands, options = done.stdout.splitlines()
    assert commands == "check"
    assert options.split() and all(option.startswith("--lis") for option in options.split())


@pytest.mark.parametrize("command", ["sweep", "tune", "figures"])
def test_the_manual_and_the_completions_have_the_options_of_a_command_in_python(
    penstock: Penstock, command: str, tmp_path: Path
) -> None:
    parsed = set(
        re.findall(r"--[a-z]+", re.sub(r"default: [^)]*", "", run_command(penstock, command, "--help").stdout))
    )
    assert run_command(penstock, "man", "--out", tmp_path).returncode == 0
    page = (tmp_path / f"penstock-{command}.1").read_text().replace("\\-", "-")
    assert set(re.findall(r"--[a-z]+", page)) == parsed
    script = run_command(penstock, "completions", "bash").stdout
    [offered] = re.findall(rf'penstock__subcmd__{command}\)\s+opts="([^"]*)"', script)
    assert set(re.findall(r"--[a-z]+", offered)) == parsed


def test_the_manual_has_a_page_for_each_command(penstock: Penstock, tmp_path: Path) -> None:
    assert run_command(penstock, "man", "--out", tmp_path / "man1").returncode == 0
    pages = {page.name: page.read_text() for page in (tmp_path / "man1").iterdir()}
    assert {"penstock.1", *(f"penstock-{command}.1" for command in REPORTING)} <= pages.keys()
    assert ".SH OPTIONS" in pages["penstock-recv.1"] and "\\-\\-listen" in pages["penstock-recv.1"]
    (tmp_path / "file").write_text("")
    refused = run_command(penstock, "man", "--out", tmp_path / "file")
    assert refused.returncode == 1 and f"cannot write the manual to {tmp_path}/file" in refused.stderr


@pytest.mark.parametrize("command", REPORTING)
def test_every_report_is_json_on_request_by_both_names(penstock: Penstock, command: str) -> None:
    assert "-J, --json" in run_command(penstock, command, "--help").stdout


@pytest.mark.parametrize("words", [("run", "--no-plots"), ("run", "--no-plots", "--json"), ("sweep", "--json")])
def test_a_reader_that_has_gone_is_no_fault(penstock: Penstock, tmp_path: Path, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command, *options = words
    try:
        done = run_command(penstock, command, LAB, *SHORT, "--out", tmp_path, *options, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / {"run": "summary.json", "sweep": "sweep.parquet"}[command]).exists()


def test_a_run_outlives_who_reads_its_warnings(penstock: Penstock, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        warns = ("--set", "switch.ecn=false")
        done = run_command(penstock, "run", LAB, *SHORT, *warns, "--no-plots", "--out", tmp_path, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 0 and "results are in" in done.stdout


@pytest.mark.parametrize("words", [("run", "--no-plots"), ("sweep", "--quiet")])
def test_a_report_that_cannot_be_written_is_a_fault(penstock: Penstock, tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *options = words
    with open("/dev/full", "w") as full:
        done = run_command(penstock, command, LAB, *SHORT, "--out", tmp_path, *options, stdout=full)
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("run", "scenarios/advcam-9.toml"), "penstock board --switch"),
        (
            ("board", "--replay", "none", "--ip", "10.0.0.2", "--switch", LAB),
            "a network is for `penstock run`",
        ),
        (("run", LAB, "--set", "topology.boards_per_leaf=2,4"), "in brackets"),
        (("recv", "--iface", "lo", "127.0.0.2", "--serve", "localhost:9000"), "a Unix socket of that name"),
        (("sweep", LAB, "--jobs", "-1"), "jobs = -1: at least one"),
        (("sweep", LAB, "--out", "/proc/none"), "out /proc/none: cannot make this folder"),
        (("tune", LAB, "--jobs", "0"), "jobs = 0: at least one"),
        (("run", LAB, "--pace", "1e-300"), "give a number of 1e-9 or more"),
        (("run", LAB, "--set", "trace.metrics=[]"), "trace.metrics = []: allowed is one value or more"),
        (("board", "--replay", "none", "--ip", "0.0.0.0"), "0.0.0.0 stands for no host"),
        (("board", "--replay", "none", "--ip", "10.0.0.2", "--slots", "-1"), "invalid value '-1' for '--slots"),
        (("check", "-1"), "-1: there is no such file or folder"),
    ],
)
def test_a_wrong_request_is_refused_with_what_to_do(
    penstock: Penstock, tmp_path: Path, words: tuple[str | Path, ...], reason: str
) -> None:
    done = run_command(penstock, *words, *(("--out", tmp_path) if words[0] == "run" else ()), cwd=ROOT)
    assert done.returncode == 2 and reason in done.stderr, done.stderr


def test_a_recording_without_times_is_not_replayed_at_one_instant(penstock: Penstock, tmp_path: Path) -> None:
    with np.load(ROOT / "data/lst1_run2008/modules.npz") as recorded:
        arrays = dict(recorded)
    np.savez(tmp_path / "untimed.npz", **(arrays | {"counters": np.zeros_like(arrays["counters"])}))
    lines = ['[topology]\nkind = "star"', '[replay]\nfile = "untimed.npz"\ntrigger = "recorded"\nto = "server0"', ""]
    scenario = tmp_path / "untimed.toml"
    scenario.write_text("\n".join(lines))
    refused = run_command(penstock, "run", scenario, "--out", tmp_path / "out")
    reason = "recording gives all events the same time; set trigger = "
    assert refused.returncode == 2 and reason in refused.stderr, refused.stderr
    done = run_command(
        penstock, "run", scenario, "--set", "replay.trigger=periodic", "--no-plots", "--out", tmp_path / "out"
    )
    assert done.returncode in (0, 1) and reason not in done.stderr, done.stderr


def test_results_of_another_scenario_are_replaced_only_on_request(penstock: Penstock, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(LAB.read_text())
    words = (*SHORT, "--no-plots", "--out", tmp_path / "out")
    assert run_command(penstock, "run", LAB, *words).returncode == 0
    stored = (tmp_path / "out/summary.json").read_bytes()
    refused = run_command(penstock, "run", other, *words)
    assert refused.returncode == 2 and f"holds the results of {LAB}; give another folder" in refused.stderr
    assert (tmp_path / "out/summary.json").read_bytes() == stored
    assert run_command(penstock, "run", other, *words, "--overwrite").returncode == 0


def test_a_port_alone_is_one_of_this_machine(penstock: Penstock, tmp_path: Path) -> None:
    done = run_command(penstock, "run", LAB, *SHORT, "--no-plots", "--out", tmp_path, "--live", ":0", "--live-exit")
    assert done.returncode == 0
    assert re.search(r"live page: http://127\.0\.0\.1:[1-9][0-9]*$", done.stderr, re.MULTILINE), done.stderr


def test_a_page_that_cannot_be_written_whole_is_a_fault_and_is_not_there(penstock: Penstock, tmp_path: Path) -> None:
    (tmp_path / "report.html.part").symlink_to("/dev/full")
    done = run_command(penstock, "run", LAB, *SHORT, "--out", tmp_path)
    assert done.returncode == 1 and "cannot write" in done.stderr and "No space left on device" in done.stderr
    assert not list(tmp_path.glob("report.html*")) and (tmp_path / "summary.json").exists()


def test_no_line_of_a_report_is_wider_than_a_terminal(penstock: Penstock, tmp_path: Path) -> None:
    for scenario in (LAB, ROOT / "scenarios/camera.toml", ROOT / "scenarios/cms-tcp-3.toml"):
        out = tmp_path / scenario.stem
        done = run_command(penstock, "run", scenario, "--set", "run.time_limit=1ms", "--no-plots", "--out", out)
        assert "SUM of" in done.stdout
        prefixes = ("fault:", "results are in")
        assert not [line for line in done.stdout.splitlines() if len(line) > 80 and not line.startswith(prefixes)], (
            done.stdout
        )


def test_a_python_without_the_packages_is_named_with_what_is_missing(penstock: Penstock, tmp_path: Path) -> None:
    python = tmp_path / "bare-python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    done = run_command(
        penstock, "sweep", "--help", env={**os.environ, "PENSTOCK_PYTHON": str(python), "PYTHONPATH": ""}
    )
    assert done.returncode == 2 and f"{sys.executable} has no " in done.stderr and "`make setup`" in done.stderr
