# SPDX-License-Identifier: Apache-2.0
"""`penstock sweep`, `penstock tune` and their Python functions on a laboratory of two boards with 200 kB each."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from functools import partial
from math import isfinite
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, TIMEOUT_S, Penstock

sys.path.insert(0, str(ROOT / "python"))

import penstock as package
from penstock.harm import Harm
from penstock.objectives import OBJECTIVES
from penstock.quantities import column
from penstock.reporting import as_json, as_table
from penstock.verification import Outcome, SeedPair, Verification

SCENARIO = ROOT / "scenarios/advcam-5.toml"
SMALL = {"topology.boards_per_leaf": "[1,1]", "flow.0.size": "200KB", "trace.interval": "20us"}
GRID = {**SMALL, "switch.kmin": ["50KB", "5KB"], "run.seed": [1, 2]}
SPACE = {"switch.kmin": ["5KB", "20KB", "50KB", "100KB"], "cc.g": ["1/16", "1/256"]}


@pytest.fixture(autouse=True)
def command(penstock: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command under test is the one that the package runs, here and on a cluster."""
    monkeypatch.setenv("PENSTOCK", str(penstock.binary))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))


def run(penstock: Penstock, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    return subprocess.run(
        [penstock.binary, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment
    )


def sets(parameters: dict) -> list[str]:
    texts = {k: ",".join(map(str, v)) if isinstance(v, list) else v for k, v in parameters.items()}
    return [word for key, text in texts.items() for word in ("--set", f"{key}={text}")]


def test_a_sweep_without_parameters_is_one_run(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text('[topology]\nkind = "star"\nboards = 2\n[[flow]]\nsize = "200KB"\n')
    done = run(penstock, "sweep", scenario, "--out", tmp_path / "out", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    [point] = json.loads(done.stdout)["points"]
    assert point["delivered_bytes"] == 400_000
    assert pq.read_table(tmp_path / "out/sweep_flows.parquet").num_rows == 2
    output = run(penstock, "sweep", scenario, "--out", tmp_path / "out", "--quiet")
    assert output.returncode == 0 and "1 point" in output.stdout


def test_a_sweep_is_a_table_in_the_order_of_the_grid_with_the_results_of_each_run(
    penstock: Penstock, tmp_path: Path
) -> None:
    done = run(penstock, "sweep", SCENARIO, *sets(GRID), "--out", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    table = pq.read_table(tmp_path / "sweep.parquet")
    reported = json.loads(done.stdout)
    assert (reported["schema"], reported["kind"], reported["scenario"]) == (1, "sweep", str(SCENARIO))
    assert reported["parameters"]["run.seed"] == ["1", "2"]
    assert reported["points"] == table.to_pylist() == pq.read_table(reported["table"]).to_pylist()
    points = list(zip(table["switch.kmin"].to_pylist(), table["run.seed"].to_pylist(), strict=True))
    assert points == [(50_000, 1), (50_000, 2), (5_000, 1), (5_000, 2)]
    assert table.schema.field("switch.kmin").metadata == {b"unit": b"B"}
    assert table["seed"].to_pylist() == [1, 2, 1, 2]
    settings = [f"{key}={value}" for key, value in {**SMALL, "switch.kmin": "5KB"}.items()]
    summary = penstock.run(tmp_path / "alone", *settings, scenario=SCENARIO).summary()
    row = table.to_pylist()[2]
    assert [row[key] for key in ("jain", "mct_us.p99", "end")] == [summary["jain"], summary["mct_us"]["p99"], "done"]
    ports = [port for switch in summary["switches"] for port in switch["ports"]]
    assert row["switches.ecn_marked"] == sum(port["ecn_marked"] for port in ports) > 0
    assert row["switches.peak_queue_bytes"] == max(port["peak_queue_bytes"] for port in ports)
    assert row["jain"] != table["jain"][0].as_py(), "the parameter reaches the run"
    flows = pq.read_table(tmp_path / "sweep_flows.parquet").to_pylist()[4:6]
    assert [flow["goodput_gbps"] for flow in flows] == [flow["goodput_gbps"] for flow in summary["flows"]]


def test_an_answer_is_json_also_where_a_number_is_none() -> None:
    text = as_json("tune", {"value": float("inf"), "trials": [{"value": float("nan")}], "np": pa.scalar(1.5).as_py()})
    assert json.loads(text) == {"schema": 1, "kind": "tune", "value": None, "trials": [{"value": None}], "np": 1.5}


def test_a_sweep_goes_on_where_it_was_and_runs_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, penstock: Penstock
) -> None:
    calls = tmp_path / "calls"
    counting = tmp_path / "penstock"
    counting.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {penstock.binary} "$@"\n')
    counting.chmod(0o755)
    monkeypatch.setenv("PENSTOCK", str(counting))
    out = tmp_path / "out"
    half = package.sweep(SCENARIO, {**GRID, "switch.kmin": "5KB"}, out=out, progress=False)
    whole = package.sweep(SCENARIO, GRID, out=out, progress=False)
    assert len(calls.read_text().splitlines()) == whole.num_rows == 4
    assert whole["point"].to_pylist()[2:] == half["point"].to_pylist()
    # A point that was broken off has no summary in its folder, and runs again.
    (out / half["point"][0].as_py() / "summary.json").unlink()
    assert package.sweep(SCENARIO, GRID, out=out, progress=False) == whole
    assert len(calls.read_text().splitlines()) == 5


def test_a_point_that_was_interrupted_is_not_taken_for_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, penstock: Penstock
) -> None:
    interrupted = tmp_path / "penstock"
    edit = """sed -i 's/"end": "done"/"end": "interrupted"/' "$4/summary.json"; exit 1"""
    interrupted.write_text(f'#!/bin/sh\n{penstock.binary} "$@"\n{edit}\n')
    interrupted.chmod(0o755)
    with monkeypatch.context() as patch, pytest.raises(package.RunError, match="interrupted at"):
        patch.setenv("PENSTOCK", str(interrupted))
        package.sweep(SCENARIO, SMALL, out=tmp_path / "out", progress=False)
    assert package.sweep(SCENARIO, SMALL, out=tmp_path / "out", progress=False)["end"].to_pylist() == ["done"]


def test_a_refused_point_gives_the_message_of_the_scenario_and_its_status(penstock: Penstock, tmp_path: Path) -> None:
    wrong = {**SMALL, "cc.g": ["1/256", "3/2"]}
    swept = run(penstock, "sweep", SCENARIO, *sets(wrong), "--out", tmp_path / "sweep", "--quiet")
    alone = penstock.run(tmp_path / "run", "cc.g=3/2", scenario=SCENARIO)
    assert alone.status == swept.returncode == 2
    assert alone.stderr.splitlines()[0].removeprefix("error: ") in swept.stderr and "Traceback" not in swept.stderr
    with pytest.raises(package.RunError, match=r"3/2") as caught:
        package.sweep(SCENARIO, {**SMALL, "cc.g": "3/2"}, out=tmp_path / "sweep", progress=False)
    assert caught.value.status == 2


def test_a_grid_that_is_none_is_refused_with_the_reason(penstock: Penstock, tmp_path: Path) -> None:
    for values, reports in ((["1/16", "1/16"], "twice"), ([], "no values")):
        with pytest.raises(ValueError, match=reports):
            package.sweep(SCENARIO, {"cc.g": values}, out=tmp_path, progress=False)
    with pytest.raises(TypeError, match="give a mapping"):
        package.sweep(SCENARIO, "cc.g=1/64", out=tmp_path)
    for search in (package.sweep, package.tune):
        with pytest.raises(ValueError, match="jobs = 0"):
            search(SCENARIO, **({"parameters": {}} if search is package.sweep else {}), jobs=0, out=tmp_path)
    done = run(penstock, "sweep", SCENARIO, "--set", "cc.g", "--out", tmp_path)
    assert done.returncode == 2 and "key=value" in done.stderr and "Traceback" not in done.stderr


def test_a_cluster_gives_the_table_that_processes_here_give(tmp_path: Path) -> None:
    from distributed import LocalCluster

    here = package.sweep(SCENARIO, GRID, out=tmp_path / "here", jobs=2, progress=False)
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        there = package.sweep(SCENARIO, GRID, out=tmp_path / "there", dask=address, progress=False)
        with pytest.raises(package.RunError, match=r"3/2") as caught:
            package.sweep(SCENARIO, {"cc.g": "3/2"}, out=tmp_path / "there", dask=address, progress=False)
    assert isinstance(there, pa.Table) and there == here
    assert caught.value.status == 2


def test_a_search_is_the_same_for_any_number_of_processes(penstock: Penstock, tmp_path: Path) -> None:
    arguments = {"trials": 6, "seed": 3, "space": SPACE, "fixed": SMALL, "progress": False}
    one, two = (package.tune(SCENARIO, **arguments, jobs=jobs, out=tmp_path / str(jobs)) for jobs in (1, 2))
    assert one == two and one.trials.num_rows == 6
    assert one.value == min(one.trials["value"].to_pylist())
    assert len(set(one.trials["value"].to_pylist())) > 1, "the parameters reach the runs"
    best = tomllib.loads((tmp_path / "1/best.toml").read_text())
    assert {"switch.kmin": best["switch"]["kmin"], "cc.g": best["cc"]["g"]} == one.settings
    options = ("--trials", "6", "--seed", "3", "--out", tmp_path / "command", "-J")
    done = run(penstock, "tune", SCENARIO, *sets({**SMALL, **SPACE}), *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert pq.read_table(tmp_path / "command/tune.parquet") == one.trials
    reported = json.loads(done.stdout)
    rows = [{**row, "value": row["value"] if isfinite(row["value"]) else None} for row in one.trials.to_pylist()]
    assert (reported["kind"], reported["objective"], reported["trials"]) == ("tune", "fairness", rows)
    assert (reported["value"], reported["settings"], reported["point"]) == (one.value, one.settings, one.point)
    assert tomllib.loads(Path(reported["best"]).read_text()) == best


def test_a_search_recommends_no_parameters_that_starve_the_network(tmp_path: Path) -> None:
    """Links of a tenth of the rate have short queues, and are no answer; nor is what changes nothing."""
    rates = {"link.rate": ["1Gbps", "10Gbps"]}
    arguments = {"objective": "queue", "fixed": SMALL, "trials": 4, "progress": False}
    best = package.tune(SCENARIO, space=rates, out=tmp_path / "rate", **arguments)
    calm = [row for row in best.trials.to_pylist() if row["link.rate"] == 1e9]
    assert best.settings == {"link.rate": "10Gbps"} and calm and all(row["value"] == float("inf") for row in calm)
    same = package.tune(SCENARIO, space={"cc.alpha_interval": ["50ms", "60ms"]}, out=tmp_path / "same", **arguments)
    assert same.ties == 4 and "4 of 4 trials have this value" in same.verdict()
    assert not same.is_better and "keep them" in same.verdict()


def test_nothing_to_tune_is_refused_and_goodput_is_an_objective(penstock: Penstock, tmp_path: Path) -> None:
    options = ("--set", "cc.law=off", "--trials", "2", "--out", tmp_path / "off")
    done = run(penstock, "tune", SCENARIO, *sets(SMALL), *options)
    assert done.returncode == 2 and "law off: no flow is under DCQCN" in done.stderr and "Traceback" not in done.stderr
    best = package.tune(SCENARIO, objective="goodput", fixed=SMALL, trials=2, out=tmp_path / "on", progress=False)
    assert -best.value == max(best.trials["goodput_gbps"].to_pylist()) and best.baseline < 0


def test_a_winner_runs_again_over_five_other_seeds_before_it_is_recommended(penstock: Penstock, tmp_path: Path) -> None:
    fixed = {**SMALL, "flow.0.size": "2MB"}
    arguments = {"objective": "queue", "fixed": {**fixed, "run.seed": 7}, "trials": 4, "progress": False}
    best = package.tune(SCENARIO, space={"switch.kmin": ["10KB", "90KB"]}, out=tmp_path / "out", **arguments)
    assert best.is_better and best.verification is not None
    pairs = best.verification.pairs
    assert [pair.seed for pair in pairs] == [8, 9, 10, 11, 12]
    for pair in pairs:
        sets = [f"{key}={value}" for key, value in {**fixed, **best.settings, "run.seed": pair.seed}.items()]
        summary = penstock.run(tmp_path / "alone", *sets, scenario=SCENARIO).summary()
        assert pair.winner.values["queue"] == OBJECTIVES["queue"].value(summary)
        gain = 100 * (1 - pair.winner.values["queue"] / pair.default.values["queue"])
        assert pair.gains()["queue"] == pytest.approx(gain)
    gains = [pair.gains()["queue"] for pair in pairs]
    spread = best.verification.gains()["queue"]
    assert (spread.least, spread.most, spread.mean) == (min(gains), max(gains), pytest.approx(sum(gains) / 5))
    assert best.is_recommended == all(gain > 0 for gain in gains)
    assert "with the seeds 8 to 12" in best.verdict()


def test_a_search_tries_no_limiter_the_share_and_pull_and_finds_the_best_of_them(tmp_path: Path) -> None:
    """They are left out where a key that they set is fixed."""
    few = {"flow.0.from": "board0", "flow.0.size": "20MB", "cc.rate_start": "100Mbps"}
    arguments = {"trials": 2, "progress": False, "fixed": {**SMALL, **few}, "out": tmp_path / "fixed"}
    rows = package.tune(SCENARIO, objective="goodput", **arguments).trials.to_pylist()
    assert [row["mode"] for row in rows] == [None, None, "no limiter", "pull"], "cc.rate_start is fixed, [cc] stays"
    del few["cc.rate_start"]
    arguments |= {"fixed": {**SMALL, **few}, "out": tmp_path / "free"}
    best = package.tune(SCENARIO, objective="goodput", **arguments)
    rows = best.trials.to_pylist()
    assert [row["mode"] for row in rows] == [None, None, "no limiter", "the share", "pull"]
    assert all((row["cc.g"] is None) == (row["mode"] is not None) for row in rows)
    assert best.value == min(row["value"] for row in rows)
    tomllib.loads((tmp_path / "free/best.toml").read_text())


def test_a_search_recommends_nothing_that_pauses_ports_or_loses_events(tmp_path: Path) -> None:
    """Without a limiter 64 boards deliver as much as with one, and PFC pauses them most of the time."""
    arguments = {"trials": 1, "progress": False, "fixed": {"run.time_limit": "5ms"}, "out": tmp_path}
    best = package.tune(ROOT / "scenarios/incast-64.toml", objective="goodput", **arguments)
    [free] = [row for row in best.trials.to_pylist() if row["mode"] == "no limiter"]
    assert free["value"] == float("inf") and free["goodput_gbps"] > 9.5
    assert best.settings != {"cc.law": "off"}


def test_a_winner_that_costs_more_with_one_seed_is_not_recommended() -> None:
    calm, short, long = (Harm(paused_s=paused_s, simulated_s=0.1) for paused_s in (0.0, 5e-5, 0.02))

    def verified(harm: Harm, default: Harm = calm) -> Verification:
        pair = SeedPair(1, Outcome({"queue": 100.0}, 9.0, default), Outcome({"queue": 80.0}, 9.0, calm))
        costly = SeedPair(2, Outcome({"queue": 100.0}, 9.0, default), Outcome({"queue": 80.0}, 9.0, harm))
        return Verification((pair, costly))

    assert verified(calm).is_confirmed and verified(short).is_confirmed and verified(long, long).is_confirmed
    for harm, words in (
        (long, "with seed 2 ports are paused for 0.02 s in sum, with the own values for 0 s"),
        (Harm(events=3), "with seed 2 3 events are lost or overdue, with the own values 0"),
        (Harm(flows=1), "with seed 2 1 flows fail, with the own values 0"),
        (Harm(frames=7), "with seed 2 7 frames are dropped, with the own values 0"),
    ):
        assert not verified(harm).is_confirmed and verified(harm).harm == words
    assert verified(Harm(frames=7), Harm(frames=9)).is_confirmed


def test_what_is_better_with_one_seed_alone_is_not_recommended() -> None:
    def pair(seed: int, value: float) -> SeedPair:
        return SeedPair(seed, Outcome({"queue": 100.0}, 9.0), Outcome({"queue": value}, 9.0))

    assert Verification(tuple(pair(seed, 80.0) for seed in range(5))).is_confirmed
    lucky = Verification((*(pair(seed, 80.0) for seed in range(4)), pair(4, 130.0)))
    assert not lucky.is_confirmed
    assert lucky.lines() == [
        "with the seeds 0 to 4, mean (least to most): queue 10.0 % better (-30.0 to +20.0 %); "
        "goodput no change (+0.0 to +0.0 %)"
    ]
    best = package.tuning.Best({}, "", {"queue": 80.0}, 9.0, {"queue": 100.0}, 9.0, pa.table({"value": [80.0]}), lucky)
    assert best.is_better and not best.is_recommended and "not recommended: with another seed" in best.verdict()


def test_several_objectives_give_a_front_as_table_and_picture(penstock: Penstock, tmp_path: Path) -> None:
    space = {"switch.kmin": ["10KB", "90KB"], "cc.law": ["dcqcn", "off"], "link.rate": ["2Gbps", "10Gbps"]}
    fixed = {**SMALL, "flow.0.size": "2MB"}
    options = ("--objective", "queue,goodput", "--trials", "8", "--out", tmp_path, "--quiet")
    done = run(penstock, "tune", SCENARIO, *sets({**fixed, **space}), *options, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    reported = json.loads(done.stdout)
    rows = pq.read_table(tmp_path / "tune.parquet").to_pylist()
    for row in rows:
        beaten = any(
            other["queue"] <= row["queue"]
            and other["goodput"] <= row["goodput"]
            and (other["queue"], other["goodput"]) != (row["queue"], row["goodput"])
            for other in rows
        )
        assert row["on_front"] == (isfinite(row["queue"]) and not beaten)
    assert any(row["on_front"] for row in rows) and not all(row["on_front"] for row in rows)
    assert reported["values"].keys() == reported["own"].keys() == {"queue", "goodput"}
    assert Path(reported["front"]).read_bytes().startswith(b"\x89PNG")
    text = run(penstock, "tune", SCENARIO, *sets({**fixed, **space}), *options).stdout.splitlines()
    assert text[0].split()[:3] == ["queue", "goodput", "goodput_gbps"] and max(map(len, text[:3])) <= 80
    again = package.tune(
        SCENARIO, objective=["queue", "goodput"], space=space, fixed=fixed, trials=8, out=tmp_path, progress=False
    )
    assert again.trials.to_pylist() == rows and again.settings == reported["settings"]


def test_a_table_that_is_too_wide_goes_on_below() -> None:
    names = ["#", "first", "a_long_name_of_a_column", "another_long_name_of_a_column", "last_long_name_of_a_column"]
    text = as_table(names, [[0, "x", 1.5, None, 3], [10, "yy", 2.5, 7, 4]])
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and lines[3] == "" and lines[4].split() == ["#", "last_long_name_of_a_column"]
    assert lines[1].split() == ["0", "x", "1.5", "-"] and lines[6].split() == ["10", "4"]


def test_parameters_are_numbers_in_one_unit_or_stay_text() -> None:
    for texts, values, unit in (
        (["50KB", "1MB"], [50_000, 1_000_000], "B"),
        (["55us", "2ms"], [5.5e-05, 0.002], "s"),
        (["1/64", "1/256"], [1 / 64, 1 / 256], ""),
        (["40Mbps", "1MB/s"], [40_000_000, 8_000_000], "bit/s"),
        (["1", "2.5"], [1.0, 2.5], ""),
        (["true", "false"], [True, False], ""),
        (["off", "dcqcn"], ["off", "dcqcn"], ""),
        (["50KB", "5"], ["50KB", "5"], ""),
    ):
        array, found = column(texts)
        assert (array.to_pylist(), found) == (values, unit)


def test_a_sweep_shows_its_points_and_waits_for_no_dead_scheduler(penstock: Penstock, tmp_path: Path) -> None:
    text = run(penstock, "sweep", SCENARIO, *sets(GRID), "--out", tmp_path, "--quiet").stdout.splitlines()
    assert text[0].split()[:4] == ["#", "switch.kmin", "[B]", "run.seed"] and "jain" in text[0]
    assert text[1].split()[:3] == ["0", "50000", "1"] and text[4].split()[:3] == ["3", "5000", "2"]
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # taken, and nothing listens
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        done = run(penstock, "sweep", SCENARIO, *sets(SMALL), "--dask", address, "--out", tmp_path, "--quiet")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    first, *rest = done.stderr.splitlines()
    assert first == f"waiting for the scheduler at {address}, 5 s at most"
    assert f"dask {address}: " in rest[-1] and "give a running scheduler's address" in rest[-1]


def test_the_snippets_of_the_page_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "docs/sweeps.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile("\n".join(snippets), "docs/sweeps.md", "exec"), names)
    assert names["table"].num_rows == 6 and names["best"].settings.keys() == {"cc.g"}


def test_values_are_written_as_toml_has_them(tmp_path: Path) -> None:
    """Tables, lists, truths and NumPy's numbers, one alone or several."""
    parameters = {**SMALL, "link.at": {"server0-root": {"rate": "25Gbps"}}, "run.seed": np.arange(1, 3)}
    table = package.sweep(SCENARIO, {**parameters, "cc.clamp_target": [True]}, out=tmp_path, progress=False)
    assert table["link.at"].to_pylist() == ['{ "server0-root" = { "rate" = "25Gbps" } }'] * 2
    assert (table["run.seed"].to_pylist(), table["cc.clamp_target"].to_pylist()) == ([1, 2], [True, True])
    with pytest.raises(TypeError, match="None: a scenario has strings"):
        package.sweep(SCENARIO, {"run.seed": None}, out=tmp_path, progress=False)
    with pytest.raises(ValueError, match="has no values"):
        package.tune(SCENARIO, space={"cc.g": []}, out=tmp_path, progress=False)
    best = package.tune(SCENARIO, space={"cc.g": "1/64"}, fixed=SMALL, trials=1, out=tmp_path, progress=False)
    assert best.settings == {"cc.g": "1/64"}


def test_what_is_no_laboratory_or_no_grid_is_refused_before_anything_runs(penstock: Penstock, tmp_path: Path) -> None:
    out, switch = tmp_path / "out", ROOT / "scenarios/advcam-9.toml"
    with pytest.raises(ValueError, match=r"advcam-9.toml: no laboratory scenario"):
        package.tune(switch, out=out)
    for missing in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(FileNotFoundError, match=f"{missing}: no such scenario file"):
            package.sweep(missing, {}, out=out)
    with pytest.raises(ValueError, match=r"dask 127.0.0.1: .*tcp://HOST:8786"):
        package.sweep(SCENARIO, SMALL, out=out, dask="127.0.0.1", progress=False)
    done = run(penstock, "sweep", SCENARIO, "--set", "run.seed=1", "--set", "run.seed=2", "--out", out)
    assert done.returncode == 2 and "write run.seed=1,2" in done.stderr and "Traceback" not in done.stderr
    assert not list(out.glob("*/summary.json"))


def test_an_objective_that_the_scenario_cannot_answer_is_refused(penstock: Penstock, tmp_path: Path) -> None:
    options = ("--objective", "event-time", "--trials", "1", "--out", tmp_path)
    done = run(penstock, "tune", SCENARIO, *sets(SMALL), *options)
    assert done.returncode == 2 and "[triggers]" in done.stderr and "Traceback" not in done.stderr
    with pytest.raises(ValueError, match="shorter trace"):
        package.tune(SCENARIO, fixed={**SMALL, "trace.interval": "1ms"}, trials=1, out=tmp_path, progress=False)
    with pytest.raises(ValueError, match="pause-free"):
        package.tune(SCENARIO, objective="speed", out=tmp_path)
    with pytest.raises(ValueError, match="both fixed and searched"):
        package.tune(SCENARIO, fixed={"cc.g": "1/16"}, space=SPACE, out=tmp_path)


def test_tables_of_another_scenario_stay_unless_they_are_to_be_replaced(tmp_path: Path) -> None:
    other = tmp_path / "mine.toml"
    other.write_bytes(SCENARIO.read_bytes())
    for name, results in (
        ("sweep.parquet", partial(package.sweep, parameters=SMALL)),
        ("tune.parquet", partial(package.tune, space={"cc.g": "1/64"}, fixed=SMALL, trials=1)),
    ):
        results(SCENARIO, out=tmp_path, progress=False)
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ValueError, match=f"holds the results of {SCENARIO.name} .{name}.; give another folder"):
            results(other, out=tmp_path, progress=False)
        assert (tmp_path / name).read_bytes() == before
        results(SCENARIO, out=tmp_path, progress=False)
        results(other, out=tmp_path, progress=False, overwrite=True)
        assert pq.read_schema(tmp_path / name).metadata[b"penstock.scenario"] == b"mine.toml"
