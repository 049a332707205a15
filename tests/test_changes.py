# SPDX-License-Identifier: Apache-2.0
"""What has changed since a run of the tests, and the proofs and planted faults that concerns."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "rtl/formal"), str(ROOT / "rtl/syn"), str(ROOT / "tb/lib")]

import changes  # noqa: E402
import faults  # noqa: E402
import record  # noqa: E402
from proofs import PROOFS  # noqa: E402

import rtl  # noqa: E402

SETTINGS = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *SETTINGS, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path, *names: str) -> None:
    for name in names:
        (root / name).write_text(name)
        git(root, "add", name)
    git(root, "commit", "-q", "-m", f"Add {', '.join(names)}")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits on main, and no surrounding one."""
    monkeypatch.delenv("PENSTOCK_BASE", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "first")
    commit(tmp_path, "second", "third")
    return tmp_path


def test_on_a_branch_it_is_all_that_differs_from_main_and_what_is_not_committed(tree: Path) -> None:
    git(tree, "switch", "-q", "-c", "work")
    commit(tree, "fourth")
    commit(tree, "fifth")
    (tree / "new").touch()
    (tree / "first").write_text("changed")
    assert changes.since_base(tree) == ["fifth", "first", "fourth", "new"]


def test_on_main_it_is_the_last_commit_or_what_came_after_the_named_revision(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changes.since_base(tree) == ["second", "third"]
    commit(tree, "fourth")
    monkeypatch.setenv("PENSTOCK_BASE", "HEAD~2")
    assert changes.since_base(tree) == ["fourth", "second", "third"]


def test_where_the_base_is_not_known_it_is_everything(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_BASE", "0" * 40)
    assert changes.since_base(tree) is None
    monkeypatch.delenv("PENSTOCK_BASE")
    git(tree, "branch", "-m", "other")
    assert changes.since_base(tree) is None
    git(tree, "branch", "-m", "main")
    git(tree, "reset", "-q", "--hard", "HEAD^")  # the first commit has none before it
    assert changes.since_base(tree) is None
    monkeypatch.setenv("PATH", "")
    assert changes.since_base(tree) is None


def test_a_test_concerns_the_folders_that_it_names_and_all_where_the_base_is_not_known(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changes.concerns("sec", "none", root=tree) and not changes.concerns("first", root=tree)
    monkeypatch.setenv("PENSTOCK_BASE", "none")
    assert changes.concerns("first", root=tree)


def planted(*paths: str) -> set[str]:
    """The proofs whose faults are planted if these files have changed."""
    rtl.generate()
    kept = faults.planted(PROOFS, list(paths))
    assert [proof.name for proof in kept] == [proof.name for proof in PROOFS]
    return {proof.name.split("-")[0] for proof in kept if proof.mutants}


ALL = {proof.name.split("-")[0] for proof in PROOFS if proof.mutants}


def test_a_changed_module_concerns_the_proofs_that_read_it() -> None:
    assert planted("rtl/lib/block_fifo.sv") >= {"block_fifo"} and "pacer" not in planted("rtl/lib/block_fifo.sv")
    assert planted("rtl/formal/pacer_props.sv") == {"pacer"}
    assert planted("docs/lab.md", "rtl/boards/kcu105/kcu105.sv", "crates/cc/src/red.rs") == set()
    everywhere = planted(*(str(path.relative_to(ROOT)) for path in (ROOT / "rtl").rglob("*.sv")))
    assert everywhere == ALL


def test_a_changed_list_concerns_its_faults_and_a_changed_tool_all() -> None:
    eth = {proof.name.split("-")[0] for proof in faults.ROOMS["eth"]}
    assert planted("rtl/formal/proofs/eth.py") == eth & ALL
    for path in ("rtl/formal/engine.py", "rtl/syn/yosys.py", "requirements.txt"):
        assert planted(path) == ALL
    assert faults.planted(PROOFS, None) == PROOFS


def test_each_fault_is_planted_if_its_own_file_changes() -> None:
    for proof in PROOFS:
        for mutant in proof.mutants:
            (file,) = rtl.module(mutant.file or proof.top)
            assert faults.touched(proof, {str(file.relative_to(ROOT))}), (proof.name, mutant.new)


def test_a_changed_register_map_concerns_the_proofs_that_read_registers() -> None:
    assert planted("regs/penstock.rdl") < ALL


def test_a_proof_is_recorded_until_a_text_a_setting_or_a_tool_is_another(tmp_path: Path, monkeypatch) -> None:
    rtl.generate()
    proof, other = (next(proof for proof in PROOFS if proof.top == top) for top in ("sync_fifo", "block_fifo"))
    monkeypatch.setattr(record, "RECORD", tmp_path / "proved.json")
    record.record([proof], PROOFS)
    assert record.is_recorded(proof) and not record.is_recorded(other)
    record.record([other], PROOFS)
    assert record.is_recorded(proof) and record.is_recorded(other)
    assert record.is_recorded(replace(proof, mutants=())), "faults are no part of a proof"
    assert not record.is_recorded(replace(proof, depth=proof.depth + 1))
    with monkeypatch.context() as patch:
        patch.setattr(record, "checker", lambda: "of another solver")
        assert not record.is_recorded(proof)
    files = record.sources(proof)
    assert {"sync_fifo.sv", "sync_fifo_props.sv", "anything.sv"} <= {path.name for path in files}
    for path in files:
        changed = tmp_path / path.name
        changed.write_text(path.read_text() + "// another\n")
        with monkeypatch.context() as patch:
            patch.setattr(record, "sources", lambda _, here=path, there=changed: {*files - {here}, there})
            assert not record.is_recorded(proof), path
    record.record([], [proof])
    assert list(record.recorded()) == [proof.name], "what is in no list is dropped"


def test_the_record_is_of_the_proofs_that_there_are() -> None:
    assert record.recorded().keys() <= {proof.name for proof in PROOFS}
