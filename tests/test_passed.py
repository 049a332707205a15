# SPDX-License-Identifier: Apache-2.0
"""A proof, bench, lint or bitstream that is recorded as passed is made again if a text, a setting or a tool changes."""

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / folder) for folder in ("rtl/formal", "rtl/syn", "tb", "tb/lib")]

import lint  # noqa: E402
import passed  # noqa: E402
import record  # noqa: E402
import test_benches  # noqa: E402
import test_bitstream  # noqa: E402
from lib import bench_texts, rtl  # noqa: E402
from proofs import PROOFS  # noqa: E402

BENCHES = {parameters.id: parameters.values for parameters in test_benches.benches()}
# The files that decide about each kind, and one that does not.
CASES = {
    "proof": (["sync_fifo.sv", "sync_fifo_props.sv", "anything.sv"], "block_fifo.sv"),
    "lint": (["sync_fifo.sv", "penstock_pkg.sv"], "block_fifo.sv"),
    "bench": (["sync_fifo.sv", "tb/sync_fifo/bench.py", "tb/lib/runner.py", "penstock_regs.py"], "tb/lib/cnm.py"),
    "model": (["history.rs", "penstock.rdl", "Cargo.lock"], "crates/wire/src/lib.rs"),
    "vectors": (["suppression.txt", "zero_suppression.sv", "make_vectors.py"], "feroce_messages.txt"),
    "registers": (["registers_harness.sv", "tb/registers/bench.py"], "tb/registers/test_generate.py"),
    "uhal": (["uhal_client.py", "uhal_bridge.py", "penstock.xml"], "tests/softroce/machine.py"),
    "machine": (["verbs_sink.rs", "tests/softroce/machine.py", "init.sh"], "test_softroce_machine.py"),
    "bitstream": (["pcs_basex.sv", "versa_basex.lpf", "floorplan.py"], "roce_tx.sv"),
}
BENCH_OF = {"bench": "sync_fifo", "model": "cc_equality", "vectors": "zero_suppression", "registers": "registers"}
BENCH_OF |= {"uhal": "slow_control", "machine": "softroce"}


def fingerprint(kind: str) -> str | None:
    if kind == "proof":
        return record.fingerprint(proof("sync_fifo"))
    if kind == "lint":
        return lint.fingerprint(("sync_fifo", {}))
    if kind == "bitstream":
        return test_bitstream.fingerprint("versa_basex-echo")
    return of_bench(BENCH_OF[kind])


def of_bench(prefix: str) -> str | None:
    return bench_texts.fingerprint(*next(values for name, values in BENCHES.items() if name.startswith(prefix)))


def proof(top: str):
    return next(proof for proof in PROOFS if proof.top == top)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting makes a bench another one."""
    rtl.generate()
    for variable in bench_texts.VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def with_another_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Files of this name, or whose path ends so, have one more line."""
    read = Path.read_text

    def text(path: Path, *arguments, **settings) -> str:
        added = "\n# another\n" if f"/{path}".endswith(f"/{name}") else ""
        return read(path, *arguments, **settings) + added

    monkeypatch.setattr(Path, "read_text", text)
    for module in [module for loaded, module in sys.modules.items() if loaded.endswith("rtl")]:  # rtl, lib.rtl
        if hasattr(module, "text_of"):
            monkeypatch.setattr(module, "text_of", Path.read_text)
    monkeypatch.setattr(record, "checker", record.checker.__wrapped__)


@pytest.mark.parametrize("kind", CASES)
def test_each_text_of_a_check_counts_and_no_other(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, does_not = CASES[kind]
    before = fingerprint(kind)
    assert before and fingerprint(kind) == before
    for name in counts:
        with monkeypatch.context() as patch:
            with_another_line(patch, name)
            assert fingerprint(kind) != before, name
    with_another_line(monkeypatch, does_not)
    assert fingerprint(kind) == before


@pytest.mark.parametrize("kind", CASES)
def test_another_version_of_a_tool_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(kind)
    for module in (record, lint, bench_texts, test_bitstream):
        monkeypatch.setattr(module, "version", lambda name: f"after {importlib.metadata.version(name)}")
    monkeypatch.setattr(bench_texts, "_tools", bench_texts._tools.__wrapped__)
    monkeypatch.setattr(record, "checker", record.checker.__wrapped__)
    assert fingerprint(kind) not in (None, before)


def test_settings_of_a_proof_and_its_planted_faults_count() -> None:
    one = proof("sync_fifo")
    assert record.fingerprint(replace(one, depth=one.depth + 1)) != record.fingerprint(one)
    assert record.fingerprint(replace(one, mutants=one.mutants[1:])) != record.fingerprint(one)


def test_each_fault_is_planted_in_a_file_that_counts() -> None:
    for one in PROOFS:
        for mutant in one.mutants:
            assert {*rtl.module(mutant.file or one.top)} <= record.sources(one), (one.name, mutant.new)


def test_a_bench_with_a_peer_that_nothing_names_or_with_a_setting_is_never_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert None not in {bench_texts.fingerprint(*values) for values in BENCHES.values()}
    with monkeypatch.context() as patch:
        patch.setattr(bench_texts, "PEERS", {})
        always = {name.split("-")[0] for name, values in BENCHES.items() if bench_texts.fingerprint(*values) is None}
        assert always == {"ipbus", "slow_control", "softroce", "tcp_kernel"}
    monkeypatch.setenv("PENSTOCK_SEED", "7")
    assert {bench_texts.fingerprint(*values) for values in BENCHES.values()} == {None}


def test_another_kernel_counts_where_the_kernel_is_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    before, release = of_bench("tcp_kernel"), os.uname().release
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(sysname="Linux", release=f"{release}-next", version="#1"))
    assert of_bench("tcp_kernel") not in (None, before)


def test_the_machine_counts_by_its_packages_and_without_them_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench_texts, "_soft_roce", bench_texts._soft_roce.__wrapped__)
    monkeypatch.setitem(bench_texts.PEERS, "softroce.bench", bench_texts._soft_roce)
    before = of_bench("softroce")
    build = sys.modules["build"]
    versions = build.versions()
    assert any(version.startswith("linux-image-") for version in versions)
    for at in range(len(versions)):
        changed = [f"{version}.1" if at == place else version for place, version in enumerate(versions)]
        monkeypatch.setattr(build, "versions", lambda changed=changed: changed)
        assert of_bench("softroce") not in (None, before), versions[at]

    def missing() -> list[str]:
        raise build.kernel.ImageError("no dpkg-query")

    monkeypatch.setattr(build, "versions", missing)
    assert of_bench("softroce") is None


def test_a_record_keeps_what_there_is(tmp_path: Path) -> None:
    kept = passed.Record(tmp_path / "passed.json")
    assert kept.passed() == {}
    kept.add({"one": "1", "two": "2"}, ["one", "two"])
    kept.add({"three": "3", "one": "4"}, ["three", "one"])
    assert kept.passed() == {"one": "4", "three": "3"}, "what is in no list is dropped"


@pytest.mark.parametrize("path", ["rtl/formal/proved.json", "tb/passed.json", "tb/linted.json", "rtl/syn/placed.json"])
def test_the_records_of_the_tree_have_nothing_that_there_is_not(path: str) -> None:
    comparisons = [name for name in bench_texts.RECORD.passed() if (ROOT / name.partition("::")[0]).is_file()]
    names: dict[str, Callable[[], set[str]]] = {
        "proved": lambda: {one.name for one in PROOFS},
        "passed": lambda: {*BENCHES, *comparisons},
        "linted": lambda: {lint.label(case) for case in lint.cases()},
        "placed": lambda: set(test_bitstream.NEEDED),
    }
    assert passed.Record(ROOT / path).passed().keys() <= names[Path(path).stem]()


def test_pytest_leaves_out_what_is_recorded_and_makes_what_is_not() -> None:
    run = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tb", "--changed"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.partition("[")[2].rstrip("]") for line in done.stdout.splitlines() if "test_bench[" in line}
    before = bench_texts.RECORD.passed()
    left = {name for name, values in BENCHES.items() if (name, bench_texts.fingerprint(*values)) in before.items()}
    assert listed == BENCHES.keys() - left
    deselected = re.search(r"\((\d+) deselected\)", done.stdout)
    assert int(deselected[1] if deselected else 0) >= len(left)
