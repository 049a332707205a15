# SPDX-License-Identifier: Apache-2.0
"""tools/check.py selects the tests that a change can break, runs the closest first, lists failed and skipped ones."""

import os
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT
from test_links import TRACKED

sys.path.insert(0, str(ROOT / "tools"))

import check
from check import Step


def names(*paths: str) -> list[str]:
    return [step.what for step in check.steps(list(paths))]


def benches(*paths: str) -> list[str]:
    """The benches, in their order."""
    listed = [name.removeprefix("benches ").split(", ") for name in names(*paths) if name.startswith("benches ")]
    return [label for labels in listed for label in labels]


def test_a_changed_crate_is_tested_before_those_that_use_it_and_others_are_not() -> None:
    tested = [name.removeprefix("tests of ") for name in names("crates/cc/src/red.rs") if name.startswith("tests of ")]
    assert tested[0] == "penstock-cc" and tested.index("penstock-transport") < tested.index("penstock-readout")
    assert "penstock-dashboard" not in tested
    assert {"a scenario", "clippy", "unit tests"} <= set(names("crates/cc/src/red.rs"))


def test_a_changed_module_is_tested_by_the_benches_that_hold_it_small_ones_first() -> None:
    chosen = benches("rtl/roce/icrc_append.sv")
    assert chosen[0].startswith("icrc_append") and any(label.startswith("front_end") for label in chosen[4:])
    assert not [label for label in chosen if label.startswith(("pacer", "sync_fifo", "cc_engine"))]
    [lint] = [step for step in check.steps(["rtl/lib/block_fifo.sv"]) if step.what == "lint of gateware"]
    assert "block_fifo" in lint.command and "pacer" not in lint.command
    assert {"lint of gateware", "proofs of block_fifo"} <= set(names("rtl/lib/block_fifo.sv"))


def test_a_changed_bench_or_a_part_of_one_runs_that_bench() -> None:
    assert {label.split("-")[0] for label in benches("tb/qp_table/bench.py")} == {"qp_table"}
    users = {label.split("-")[0] for label in benches("tb/lib/cnm.py")}
    assert "cnm_receiver" in users and "sync_fifo" not in users


def test_a_changed_rule_is_compared_with_its_model() -> None:
    assert "test_tcp_equality" in names("rtl/tcp/tcp_step.sv") and "test_equality" not in names("rtl/tcp/tcp_step.sv")
    assert "test_equality" in names("rtl/cc/cc_step.sv") and "test_tcp_equality" in names("tb/tcp_equality/steps.cpp")


def test_changed_tests_pages_and_python_are_checked() -> None:
    assert "test_run" in names("tests/test_run.py")
    assert {"test_recv", "test_recv_xdp"} <= set(names("tests/veth.py")) and "test_sweep" not in names("tests/veth.py")
    assert {"test_links", "test_citations"} <= set(names("docs/lab.md"))
    assert {"mypy", "ruff", "test_sweep"} <= set(names("python/penstock/tuning.py"))
    assert "test_figures" in names("figures/advcam.py")


def test_a_source_file_of_any_folder_is_checked_by_more_than_its_format() -> None:
    kinds = (".rs", ".sv", ".py", ".md", ".ts", ".mjs", ".rdl", ".lua")
    samples = {(path.parent, path.suffix): str(path) for path in TRACKED if path.suffix in kinds}
    del samples[Path("tests/softroce"), ".py"]  # of `make bench`, if it is not a test
    format_alone = {"test_citations", "ruff", "format of Python", "format of Rust"}
    assert [path for path in samples.values() if set(names(path)) <= format_alone] == []


def test_every_test_that_is_named_is_there() -> None:
    named = {name for some in check.TESTS.values() for name in some} | set(check.PAGES)
    assert named <= {path.stem for path in TRACKED if path.parts[0] == "tests"}
    assert check.TESTS.keys() <= {str(folder) for path in TRACKED for folder in path.parents}


def test_a_step_that_fails_is_shown_and_one_that_comes_too_late_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    good, bad = Step(0, "good", ("true",)), Step(1, "bad", ("sh", "-c", "echo broken; false"))
    assert check.run([good, bad, good]) == 1
    output = capfd.readouterr().out
    assert "good: ok" in output and "broken" in output and "FAILED: bad: `sh -c echo broken; false`" in output
    assert check.run([good, Step(0, "late", ("false",))], begin_before_s=-1) == 0
    assert "not run, as -1 s are over: good, late; `make test` runs them" in capfd.readouterr().out


def test_a_step_that_takes_too_long_is_stopped_with_all_that_it_began(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    with open(os.open(held, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as reader:
        slow = Step(0, "slow", ("sh", "-c", f"sleep 1000 > {held} & wait"))
        assert check.run([slow], end_before_s=1.0) == 0
        deadline = time.monotonic() + 60
        while reader.read(1) is None and time.monotonic() < deadline:  # None: `sleep` still holds the other end
            time.sleep(0.01)
        assert reader.read(1) == b""
    output = capfd.readouterr().out
    assert "slow: not done" in output and "stopped, as 1 s are over: slow; `make test` runs it" in output
    assert "0 of 1 run, 0 failed" in output


def test_the_change_is_what_differs_from_a_revision_new_files_included() -> None:
    with pytest.raises(SystemExit, match=r"no-such-revision.*BASE="):
        check.changed("no-such-revision")


def test_a_change_is_all_that_differs_from_the_base_and_what_is_not_committed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")

    def commit(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text(name)
        check.git("add", *names, root=tmp_path)
        check.git(*settings, "commit", "-q", "-m", f"Add {', '.join(names)}", root=tmp_path)

    check.git("init", "-q", "-b", "main", root=tmp_path)
    commit("first", "second")
    check.git("switch", "-q", "-c", "work", root=tmp_path)
    commit("third")
    commit("fourth")
    (tmp_path / "new").touch()
    (tmp_path / "first").write_text("changed")
    assert check.changed("main", tmp_path) == ["first", "fourth", "new", "third"]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"git.*BASE="):
        check.changed("main", tmp_path)
