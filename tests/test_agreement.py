# SPDX-License-Identifier: Apache-2.0
"""All outputs agree: the numbers of table, summary.json, report.html, sweep, tune and check, over five
scenarios.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import ROOT, TIMEOUT_S, Penstock, Run

sys.path.insert(0, str(ROOT / "python"))

import penstock as package
from penstock.objectives import OBJECTIVES

# Scenario and what is set in it, so that it takes a second.
CASES = {
    "incast-3": {"replay.events": "5", "cc.law": "off"},
    "advcam-5": {"flow.0.size": "1MB", "trace.interval": "20us"},
    "cms-tcp-3": {"run.time_limit": "5ms"},
    "camera": {"run.time_limit": "4ms", "triggers.stop": "2ms"},
    "qcn-1-100us": {"run.time_limit": "50ms"},
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, penstock: Penstock, tmp_path_factory: pytest.TempPathFactory):
    """The scenario, what is set, and its run with a report."""
    path, sets = ROOT / f"scenarios/{request.param}.toml", CASES[request.param]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_PYTHON", "/bin/false")  # no plots
        out = tmp_path_factory.mktemp(request.param)
        run = penstock.run(out, *(f"{key}={value}" for key, value in sets.items()), scenario=path, options=())
        assert run.status in (0, 1), run.stderr
        return path, sets, run


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_table_has_the_numbers_of_the_summary(case: tuple[Path, dict, Run]) -> None:
    _, _, run = case
    summary, text = run.summary(), flat(run.stdout)
    if "readout" in summary:
        readout = summary["readout"]
        assert f"events {readout['events_complete']} complete, {readout['events_incomplete']} incomplete" in text
        assert f"{readout['bytes_stored']} bytes stored" in text and f"{readout['goodput_gbps']:.3f} Gb/s" in text
    else:
        cnps, again = (sum(flow[key] for flow in summary["flows"]) for key in ("cnps", "retransmissions"))
        total = next(line for line in run.stdout.splitlines() if "SUM of" in line).split()
        assert total[:3] == ["SUM", "of", str(len(summary["flows"]))]
        assert total[4] == f"{summary['delivered_bytes'] / 1e6:.2f}" and total[5] == f"{summary['aggregate_gbps']:.3f}"
        assert total[6:8] == [str(again), str(cnps)]
    if events := summary["events"]:
        if "readout" in summary:
            assert events["complete"] == summary["readout"]["events_complete"]
        else:
            assert f"{events['complete']} complete of {events['triggered']} triggered" in text
        parts = ("complete", "in_flight", "never_begun", "lost")
        assert sum(events[part] for part in parts) == events["triggered"]
    for sentence in summary["verdict"]["sentences"]:
        assert sentence in text
    output = next(
        re.findall(r"Carried by: (\d+) marks and (\d+) \w+.*?, (\d+) pause frames .*?, (\d+) drops, (\d+)", s)
        for s in summary["verdict"]["sentences"]
        if s.startswith("Carried by")
    )[0]
    ports = [port for switch in summary["switches"] for port in switch["ports"]]
    assert int(output[0]) == sum(port["ecn_marked"] for port in ports)
    assert int(output[1]) == sum(flow["cnps"] + flow["feedbacks"] for flow in summary["flows"])
    assert int(output[2]) == sum(port["pauses_sent"] for port in ports)
    drops = ("dropped_buffer", "dropped_threshold", "dropped_headroom")
    assert int(output[3]) == sum(switch[drop] for switch in summary["switches"] for drop in drops)
    assert int(output[4]) == sum(flow["retransmissions"] for flow in summary["flows"])


def test_the_report_has_the_summary_and_the_thresholds_in_force(case: tuple[Path, dict, Run]) -> None:
    _, _, run = case
    summary, text = run.summary(), (run.out / "report.html").read_text()
    [head] = re.findall(r'<script type="application/json" id="run">(.*?)</script>', text, re.DOTALL)
    stored = json.loads(head)
    assert {key: value for key, value in stored["summary"].items() if key != "timing"} == {
        key: value for key, value in summary.items() if key != "timing"
    }
    assert stored["manifest"]["all_senders"] == len(summary["flows"])
    in_force = {
        f"{switch['name']} > {port['peer']}": (port["kmin_bytes"], port["kmax_bytes"])
        for switch in summary["switches"]
        for port in switch["ports"]
    }
    assert stored["manifest"]["queues"]
    for queue, thresholds in zip(stored["manifest"]["queues"], stored["settings"]["ecn"], strict=True):
        assert in_force[queue["name"]] == (tuple(thresholds) if thresholds else (None, None))


def test_sweep_and_tune_have_the_numbers_of_the_run(
    case: tuple[Path, dict, Run], penstock: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sets, run = case
    monkeypatch.setenv("PENSTOCK", str(penstock.binary))
    summary = run.summary()
    table = package.sweep(path, sets, out=tmp_path / "sweep", progress=False)
    [row] = table.to_pylist()
    for key in ("aggregate_gbps", "delivered_bytes", "jain", "simulated_s", "end"):
        assert row[key] == summary[key], key
    for key, value in (summary["events"] or {}).items():
        assert row[f"events.{key}"] == value, key
    flows = pq.read_table(tmp_path / "sweep/sweep_flows.parquet").to_pylist()
    assert [flow["cnps"] for flow in flows] == [flow["cnps"] for flow in summary["flows"]]
    space = {"qp.retry_cnt": ["6", "7"]}
    name = "event-time" if summary["events"] else "goodput"
    best = package.tune(path, objective=name, space=space, fixed=sets, trials=1, out=tmp_path / "tune", progress=False)
    default = OBJECTIVES[name].value(summary)
    assert (best.baseline, best.own_goodput_gbps) == (default, summary["aggregate_gbps"])


def test_check_has_the_numbers_of_the_readout(case: tuple[Path, dict, Run], penstock: Penstock) -> None:
    _, _, run = case
    summary = run.summary()
    if "readout" not in summary:
        assert not (run.out / "events.parquet").exists()
        return
    command = [penstock.binary, "check", run.out, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    report = json.loads(done.stdout)
    [file] = report["files"]
    readout = summary["readout"]
    assert done.returncode == 0 and report["verified"] == readout["byte_exact"]
    assert file["events"] == readout["events_complete"] + readout["events_incomplete"] == readout["events_wanted"]
    assert file["events_incomplete"] == readout["events_incomplete"]
