# SPDX-License-Identifier: Apache-2.0
"""A verilated model is made again if what it is made from has changed, and only then."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tb"), str(ROOT / "tb/lib")]

import test_benches  # noqa: E402
from lib import models, rtl, runner, runtime  # noqa: E402

BOARDS = {"Vboard": "penstock_xgmii", "Vqcn_switch": "penstock_switch"}
Keys = Callable[..., dict[str, str]]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Keys:
    """The keys of all models of benches and of two boards, for a tree in which one file has one more line.

    Verilator writes the same C++ for the boards, whatever has changed.
    """
    for name in ("start", "clocked_left", "clocked_right"):
        (tmp_path / f"{name}.cc").touch()
    rtl.generate()
    texts = rtl.text_of
    requested: dict[str, str] = {}

    def note(name: str, parts: list, make: Callable) -> Path:
        requested[name] = models.digest(parts)
        return tmp_path

    monkeypatch.setattr(models, "made", note)

    def all_keys(changed: str = "", generic: str = "-GN_QP=4", flags: str = "-Os") -> dict[str, str]:
        requested.clear()
        file = ROOT / changed
        assert file.exists()
        monkeypatch.setattr(rtl, "text_of", lambda path: texts(path) + ("\n" if path == file else ""))
        for _, bench, config in (parameters.values for parameters in test_benches.benches()):
            runner.build(None, bench, config, None)
        for name, top in BOARDS.items():
            models.board(top, name, [generic], "c++ -O0", f"c++ {flags}", None)
        return dict(requested)

    return all_keys


def differ(some: dict[str, str], more: dict[str, str]) -> set[str]:
    assert some.keys() == more.keys()
    return {name for name in some if some[name] != more[name]}


def test_a_change_of_one_module_makes_the_models_that_hold_it(keys: Keys) -> None:
    changed = differ(keys(), keys("rtl/roce/icrc_append.sv"))
    holders = {bench.model(config) for _, bench, config in (parameters.values for parameters in test_benches.benches())
               if any(path.stem == "icrc_append" for path in rtl.sources(bench.top, bench.sources))}  # fmt: skip
    assert changed == {*holders, "Vboard"} and {"icrc_append_DATA_W64", "icrc_append_DATA_W512"} < changed
    assert "cnp_limiter" not in changed


def test_a_change_of_what_no_model_holds_makes_none(keys: Keys) -> None:
    before = keys()
    for path in ("rtl/boards/kcu105/kcu105.sv", "rtl/formal/block_fifo_props.sv", "tb/ipbus/bench.py"):
        assert differ(before, keys(path)) == set()


def test_a_change_of_a_wrapper_or_of_what_it_includes_makes_its_models(keys: Keys) -> None:
    before = keys()
    assert differ(before, keys("tb/axil_mux/axil_mux_bench.sv")) == {"axil_mux_bench_axil_mux"}
    changed = differ(before, keys("rtl/lib/axi_ports.svh"))
    assert {"axil_mux_bench_axil_mux", "Vboard"} < changed and "axis_register_W64" not in changed


def test_a_waiver_counts_for_the_files_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, limiter, other = rtl.text_of, rtl.module("cnp_limiter"), rtl.module("axis_register")
    before = models.settings(limiter), models.settings(other)
    more = '// why\nlint_off -rule UNUSEDSIGNAL -file "*rtl/cc/cnp_limiter.sv"\n'
    monkeypatch.setattr(rtl, "text_of", lambda path: texts(path) + (more if path == rtl.WAIVERS else ""))
    assert models.settings(limiter) != before[0] and models.settings(other) == before[1]


def test_generics_flags_and_tools_are_part_of_the_key(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys()
    assert differ(before, keys(generic="-GN_QP=8")) == set(BOARDS)
    assert differ(before, keys(flags="-O3")) == {f"{name}-objects" for name in BOARDS}
    monkeypatch.setattr(runtime, "OPTIMISE", "-O1")
    assert "axis_register_W64" in differ(before, keys())
    monkeypatch.setattr(models, "tools", lambda compiler="c++": "another compiler")
    monkeypatch.setattr(runtime, "tools", models.tools)
    assert differ(before, keys()) == before.keys()


def test_models_of_one_top_differ_by_their_parameters_and_by_what_a_bench_sees(keys: Keys) -> None:
    found = [key for name, key in keys().items() if "objects" not in name]
    assert len(set(found)) == len(found)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(models, "STORE", tmp_path / "models")
    return tmp_path / "models"


def writing(calls: list[str], size: int = 10) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        assert list(folder.iterdir()) == []
        calls.append(folder.name)
        (folder / "program").write_bytes(bytes(size))

    return make


def test_a_model_is_made_once_and_found_again_when_a_change_is_taken_back(store: Path) -> None:
    calls: list[str] = []
    first = models.made("model", ["one"], writing(calls))
    second = models.made("model", ["two"], writing(calls))
    assert first != second and models.made("model", ["one"], writing(calls)) == first
    assert calls == [first.name, second.name]


def test_a_model_whose_making_was_interrupted_is_made_from_the_beginning(store: Path) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        models.made("model", ["one"], interrupted)
    calls: list[str] = []
    assert (models.made("model", ["one"], writing(calls)) / "program").exists() and len(calls) == 1


def test_the_store_keeps_to_its_limit_by_removing_what_was_not_used_for_longest(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "LIMIT_BYTES", 250)
    folders = [models.made("model", [str(number)], writing([], 100)) for number in range(3)]
    assert all(folder.exists() for folder in folders), "what was used within the hour stays"
    now_s = time.time()
    for hours, folder in zip((2, 4, 3), folders, strict=True):
        os.utime(folder / "made", (now_s, now_s - 3600 * hours))
    models.made("model", ["0"], writing([]))  # is used
    models.made("another", [""], writing([], 100))
    assert [folder.exists() for folder in folders] == [True, False, False]


def test_objects_are_made_again_only_if_the_c_plus_plus_has_changed(store: Path, tmp_path: Path) -> None:
    def compiled(folder: str, text: str) -> Path:
        file = tmp_path / folder / "clocked.cc"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        rtl.text_of.cache_clear()
        return models.objects("Vmodel", [(file, "c++ -O0")], [], None)

    first = compiled("one", "int a;")
    assert (first / "clocked.o").exists()
    assert compiled("two", "int a;") == first != compiled("two", "int b;")


def test_an_object_is_compiled_by_its_own_profile_of_any_earlier_model(store: Path, tmp_path: Path) -> None:
    """g++ records a run of one model, and warns if it does not find that when it compiles the next."""
    profile, file = tmp_path / "profile", tmp_path / "clocked.cc"
    record = f"c++ -O2 -fprofile-generate={profile}"
    file.write_text("int main(int n, char **) { while (n < 100) n += n % 7; return 0; }\n")
    first = models.objects("Vmodel", [(file, record)], [], None)
    models.ended([*record.split(), first / "clocked.o", "-o", tmp_path / "program"])
    models.ended([tmp_path / "program"])
    assert models.recorded(profile, "Vmodel", "clocked") and not models.recorded(profile, "Vmodel_tcp", "clocked")
    strict = "c++ -O2 -Werror=missing-profile"
    second = models.objects("Vmodel", [(file, strict)], [], profile)
    assert (second / "clocked.o").exists() and second != models.objects("Vmodel", [(file, strict)], [], None)
    nothing = models.ended(
        [*strict.split(), "-fprofile-use=/none", "-c", file, "-o", tmp_path / "clocked.o"], check=False
    )
    assert "missing-profile" in nothing
