# SPDX-License-Identifier: Apache-2.0
"""The live page and report.html, in headless Chromium.

Promises checked: the page's numbers are those of trace.parquet; a parameter changed on the page changes the board's
registers and is noted; a lost connection and an ended run are said; a stored run opens from its file and loads nothing;
pages of other origins and forged hosts get nothing; a page of sixty boards keeps up.
"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pyarrow.compute as pc
import pytest
from conftest import ROOT, TIMEOUT_S, Penstock, Run
from live_page import browse, live, watch_sixty

# What the page calls a series, and the metric of the trace.
SERIES = {
    "throughput": "wire_throughput_bps",
    "rate_current": "rate_current_bps",
    "rate_target": "rate_target_bps",
    "alpha": "alpha",
    "cnp_handled": "cnp_handled",
    "paused": "paused_fraction",
}


def at_sample(run: Run, node: str, metric: str, sample: int) -> float:
    """The value of a trace at a sample, by pyarrow alone."""
    trace = run.trace()
    mine = trace.filter(pc.and_(pc.equal(trace["node"], node), pc.equal(trace["metric"], metric)))
    interval = 20_000_000
    values = [
        value
        for time, value in zip(mine["time_ps"].to_pylist(), mine["value"].to_pylist(), strict=True)
        if time // interval == sample
    ]
    assert len(values) == 1, f"{node} {metric} {sample}: {values}"
    return values[0]


# ---- a stored run --------------------------------------------------------------------------------------------------


def test_a_stored_run_opens_from_its_file_with_the_values_of_the_trace(
    penstock: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PYTHON", "/bin/false")  # other tests look at the plots, which take their time
    run = penstock.run(tmp_path, "replay.events=6", options=())
    assert run.status == 0, run.stderr
    report = tmp_path / "report.html"
    samples = (3, 41, 60)
    found = browse("stored", f"file://{report}", *samples)
    assert found["asked"] == [], "a report loads nothing"
    summary = run.summary()
    goodput, bottleneck = summary["readout"]["goodput_gbps"], summary["verdict"]["bottleneck"]
    tiles = [tile.splitlines() for tile in found["tiles"]]
    assert tiles[0] == ["Throughput", f"{goodput:.2f} Gb/s", "stored over the whole run, 3 boards"]
    assert tiles[1][2] == f"at most, {bottleneck['from']} > {bottleneck['to']}, the bottleneck"
    assert found["narrow"], "it fits a phone's width of 390 px"
    assert found["state"] == "stored run, done"
    for sample in samples:
        read = found["read"][str(sample)]
        assert read["when"] == f"at {sample * 0.02:.2f} ms"
        for board in ("board0", "board1", "board2"):
            for series, metric in SERIES.items():
                shown = float(read["values"][board][series]["exact"].split()[0])
                assert shown == at_sample(run, board, metric, sample), f"{board} {metric} at sample {sample}"
        rate_gbps = at_sample(run, "board0", "rate_current_bps", sample) / 1e9
        assert read["values"]["board0"]["rate_current"]["text"] == f"{rate_gbps:.3f}"
    for chart in ("chart-throughput", "chart-rates", "chart-alpha"):
        assert found["ink"][chart] > 500, f"{chart} is empty: {found['ink']}"
    assert {"pause", "follow", "whole", "mean", "theme", "help", "none", "checkbox"} <= set(found["reached"]), found[
        "reached"
    ]
    assert "unseen" not in found["reached"], "the focus must be seen"
    assert {"space", "+", "?"} <= set(found["keys"])
    assert min(found["contrast"].values()) >= 4.5, found["contrast"]


def test_a_laboratory_shows_what_all_flows_did_the_verdict_and_what_was_in_force(
    penstock: Penstock, tmp_path: Path
) -> None:
    """140 flows into one port, of which the page shows 128."""
    scenario = tmp_path / "many.toml"
    scenario.write_text(
        """
        [topology]
        kind = "star"
        boards = 140
        [[flow]]
        size = "100KB"
        """
    )
    run = penstock.run(tmp_path / "out", scenario=scenario, options=())
    summary = run.summary()
    found = browse("lab", f"file://{tmp_path}/out/report.html")
    cnps = sum(flow["cnps"] for flow in summary["flows"])
    tile = found["tiles"]["CNPs"]
    assert cnps > 140 and tile["value"] == str(cnps)
    assert re.fullmatch(r"received by all; \d+ cut the rate of the first 128 of 140 flows", tile["of"])
    assert found["tiles"]["Throughput"]["of"] == "payload over the whole run, 140 flows"
    assert found["verdict"] == summary["verdict"]["sentences"]
    [switch] = summary["switches"]
    assert f"buffer {switch['buffer_bytes'] / 1e6:.1f} MB, K_min 50.0 kB, K_max 200 kB" in found["inForce"][0]
    assert found["axes"] == ["rate [Gb/s]", "rate [Gb/s]", "alpha", "waiting [kB]"]
    assert found["coloured"] == 2 and found["ink"]["chart-throughput"] > 100


def test_runs_without_plots_write_no_report(penstock: Penstock, tmp_path: Path) -> None:
    assert penstock.run(tmp_path, "replay.events=1").status == 0
    assert not (tmp_path / "report.html").exists()


# ---- a live run ----------------------------------------------------------------------------------------------------


def test_a_parameter_changed_on_the_page_changes_the_rate_of_its_board(penstock: Penstock, tmp_path: Path) -> None:
    with live(penstock, tmp_path, "replay.events=2000") as run:
        found = browse("steer", run.url, run.process.pid, "cc.rate_min", "7Gbps", "seven")
    assert found["running"] == "running"
    assert found["before"]["ink"]["chart-throughput"] > 100
    assert "seven" in found["refused"], "the run's own words, with the value"
    assert "board0: cc.rate_min = 7Gbps" in found["log"]
    # The floor of R_C holds from the next cut or raise on: by Q8.24 bytes per cycle a little beside 7 Gb/s.
    assert min(found["steered"]["board0"][-4:]) >= 6.99e9, found["steered"]
    assert min(found["steered"]["board1"]) < 6.9e9, "the others are left alone"
    assert found["back"]["rows"] >= 5 and found["back"]["same"], "taken up where it broke off"
    assert found["back"]["gaps"] == 0, "no row is missing"
    assert found["lost"]["state"] == "connection lost"
    assert "was lost at" in found["lost"]["banner"] and found["lost"]["rows"] > 0


def test_a_run_that_ended_shows_it_notes_its_steering_and_lets_no_other_origin_in(
    penstock: Penstock, tmp_path: Path
) -> None:
    with live(penstock, tmp_path, "replay.events=8", pace="0.0005") as run:
        wish = {"senders": ["board1"], "set": {"cc.rate_ai": "80Mbps", "switch.kmin": "60KB"}}
        assert request(run.port, "POST", "/control", json.dumps(wish)) == (204, "")
        found = browse("ended", run.url)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(timeout=TIMEOUT_S) == 0
    assert "has ended: everything was sent and answered" in found["banner"]
    assert found["apply"] is True and found["late"]["status"] == 409 and "has ended" in found["late"]["text"]
    assert found["counters"], "the gateware's counters are there at the end"
    assert found["foreign"] == {"read": "refused", "post": "refused", "feed": "refused"}
    of_board, of_switch = sorted(
        json.loads((tmp_path / "summary.json").read_text())["steered"], key=lambda one: not one["senders"]
    )
    assert of_board["senders"] == ["board1"] and of_board["set"] == {"cc.rate_ai": "80Mbps"}
    assert of_board["registers"], "the register writes are noted"
    assert of_switch["senders"] == [] and of_switch["set"] == {"switch.kmin": "60KB"}


def test_a_page_of_sixty_boards_redraws_less_often_than_samples_come(penstock: Penstock, tmp_path: Path) -> None:
    """What a redraw costs is a row of `make bench`."""
    found = watch_sixty(penstock, tmp_path, 4)
    assert found["senders"] == 60
    assert found["rows"] > 20 and found["redraws"] > 3, found
    assert found["redraws"] <= found["rows"], found


# ---- who may, and where --------------------------------------------------------------------------------------------


def request(port: int, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    """One request with chosen headers; its status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    chosen = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", **chosen}
    connection.putrequest(method, path, skip_host=True)
    for name, value in given.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    if body is not None:
        connection.send(body.encode())
    response = connection.getresponse()
    text = "" if path.startswith("/feed") and response.status == 200 else response.read().decode()
    connection.close()
    return response.status, text


def test_forged_hosts_and_other_origins_are_refused(penstock: Penstock, tmp_path: Path) -> None:
    steer = json.dumps({"set": {"cc.law": "off"}})
    with live(penstock, tmp_path, "replay.events=2000") as run:
        host = f"127.0.0.1:{run.port}"
        for path in ("/", "/app.js", "/feed"):
            assert request(run.port, "GET", path)[0] == 200
            assert request(run.port, "GET", path, Host=f"localhost:{run.port}")[0] == 200
            status, text = request(run.port, "GET", path, Host="rebound.example")
            assert status == 403 and "rebound.example" in text
        for origin in ("http://evil.example", f"http://localhost:{run.port}", "null"):
            assert request(run.port, "GET", "/feed", Origin=origin)[0] == 403
            assert request(run.port, "POST", "/control", steer, Origin=origin)[0] == 403
        assert request(run.port, "GET", "/feed", Sec_Fetch_Site="cross-site")[0] == 403
        assert request(run.port, "POST", "/control", steer, Content_Type="text/plain")[0] == 415
        assert request(run.port, "POST", "/control", "{}", Origin=f"http://{host}")[0] == 400
        for wish, status in (
            ({"set": {"cc.law": "sometimes"}}, 422),
            ({"set": {"run.seed": "2"}}, 422),
            ({"senders": ["board9"], "set": {"cc.law": "off"}}, 404),
        ):
            assert request(run.port, "POST", "/control", json.dumps(wish))[0] == status, wish
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense", "give ADDR:PORT"),
        ("127.0.0.1:99999", "give ADDR:PORT"),
        ("192.0.2.1:8080", "does not have that address"),
        ("taken", "in use; give another"),
    ],
)
def test_an_address_that_cannot_be_had_is_refused_before_anything_runs(
    penstock: Penstock, tmp_path: Path, address: str, words: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        if address == "taken":
            address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = penstock.run(tmp_path / "out", options=("--live", address))
    assert run.status == 2 and words in run.stderr, run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("pace", ["0", "-1", "fast", "inf"])
def test_a_pace_that_is_none_is_refused(penstock: Penstock, tmp_path: Path, pace: str) -> None:
    run = penstock.run(tmp_path, options=(f"--pace={pace}",))
    assert run.status == 2 and "0.001" in run.stderr


def test_the_logic_of_the_page_holds() -> None:
    """web/test, by node's own test runner."""
    environment = {**os.environ, "npm_config_loglevel": "error"}
    done = subprocess.run(
        ["npm", "test"], cwd=ROOT / "web", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
