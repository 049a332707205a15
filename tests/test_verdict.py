# SPDX-License-Identifier: Apache-2.0
"""The statements of a run: the outcome of every trigger, the verdict with its numbers, the settings of switches."""

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT, Penstock, Run

OVERLOADED = """
[run]
time_limit = "110ms"
[topology]
kind = "star"
boards = 4
[triggers]
kind = "periodic"
rate = "10kHz"
stop = "100ms"
fragment = "50KB"
"""


@pytest.fixture(scope="module")
def overloaded(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """16 Gb/s of events into a link of 10 Gb/s."""
    folder = tmp_path_factory.mktemp("overloaded")
    scenario = folder / "overloaded.toml"
    scenario.write_text(OVERLOADED)
    return penstock.run(folder / "out", scenario=scenario)


def flat(text: str) -> str:
    """A table without its line breaks."""
    return " ".join(text.split())


def test_every_trigger_is_complete_in_flight_lost_or_never_begun(overloaded: Run) -> None:
    events = overloaded.summary()["events"]
    assert events["triggered"] == 1000
    parts = [events[key] for key in ("complete", "in_flight", "never_begun", "lost")]
    assert sum(parts) == 1000 and events["complete"] < 700 and events["never_begun"] > 300 and events["lost"] == 0
    assert overloaded.status == 1
    output = f"{parts[0]} complete of 1000 triggered: {parts[1]} in flight at the end, {parts[2]} never begun, 0 lost"
    assert output in flat(overloaded.stdout)
    assert f"fault: {1000 - parts[0]} of 1000 events were not complete" in flat(overloaded.stdout)


def test_a_load_that_no_link_carries_is_reported_before_the_run_and_in_the_verdict(overloaded: Run) -> None:
    assert re.search(r"warning: .*the link from switch to server0 is offered 16\.3\d Gb/s", overloaded.stderr)
    assert "(16.00 Gb/s of payload) and carries 10.00 Gb/s" in overloaded.stderr
    verdict = overloaded.summary()["verdict"]
    [load, *_] = verdict["offered"]
    assert (load["from"], load["to"], load["capacity_gbps"]) == ("switch", "server0", 10.0)
    assert load["payload_gbps"] == pytest.approx(16.0) and 16.3 < load["wire_gbps"] < 16.4
    assert (verdict["bottleneck"]["from"], verdict["bottleneck"]["to"]) == ("switch", "server0")
    # 1000 events of 200 kB and their headers come within 99.9 ms, of which the link takes 1.25 GB/s.
    [buffer] = overloaded.summary()["ideal"]["buffers"]
    assert buffer["switch"] == "switch" and buffer["buffer_bytes"] == 2_000_000
    assert buffer["needed_bytes"] == pytest.approx(204e6 - 0.0999 * 1.25e9, rel=0.02)
    # Of 10,000 events a second, the link carries 10 of 16.3 Gb/s.
    assert overloaded.summary()["events"]["backlog_per_s"] == pytest.approx(10e3 * (1 - 10 / 16.35), rel=0.05)
    assert "this load cannot be read out" in " ".join(verdict["sentences"])
    assert re.fullmatch(
        r"give switch to server0 17\.\d Gb/s instead of 10\.0, or trigger at 5\.8\d kHz at most", verdict["advice"]
    )
    assert verdict["sentences"] and all(re.search(r"\d", sentence) for sentence in verdict["sentences"])
    for sentence in verdict["sentences"]:
        assert sentence in flat(overloaded.stdout)


def test_an_event_whose_sender_gave_up_is_lost(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "cut.toml"
    scenario.write_text(
        OVERLOADED.replace('rate = "10kHz"', 'rate = "1kHz"')
        + """
[qp]
ack_timeout = "100us"
retry_cnt = 1
[[change]]
link = "board0-switch"
at = "20ms"
loss = 1.0
"""
    )
    run = penstock.run(tmp_path / "out", scenario=scenario)
    events = run.summary()["events"]
    assert run.status == 1 and events["triggered"] == 100
    assert 18 <= events["complete"] <= 21 and events["lost"] == 100 - events["complete"]
    assert events["in_flight"] == events["never_begun"] == 0
    assert f"{events['lost']} lost" in flat(run.stdout)
    assert "find out why board0>server0 gave up" in run.summary()["verdict"]["advice"]


def test_a_load_that_fits_is_complete_and_reports_what_is_left(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "fits.toml"
    scenario.write_text(OVERLOADED.replace('fragment = "50KB"', 'fragment = "10KB"'))
    run = penstock.run(tmp_path / "out", scenario=scenario)
    assert run.status == 0 and "warning" not in run.stderr, run.stdout + run.stderr
    verdict = run.summary()["verdict"]
    assert "Events: all 1000 were complete" in " ".join(verdict["sentences"])
    assert verdict["outstanding_bytes"] == 0 and run.summary()["events"]["backlog_per_s"] is None
    # Of four fragments that come at once, three wait.
    assert run.summary()["ideal"]["buffers"][0]["needed_bytes"] == pytest.approx(30_000, rel=0.1)
    assert re.search(
        r"nothing has to change; the busiest link, switch to server0, has 6\d\.\d % left", verdict["advice"]
    )


CALM = """
[run]
time_limit = "60ms"
[topology]
kind = "star"
boards = 16
[triggers]
kind = "periodic"
rate = "2kHz"
stop = "50ms"
fragment = "10KB"
"""
BURSTS = (
    CALM.replace('"periodic"', '"burst"\nburst = 25\nspacing = "10us"')
    .replace("50ms", "200ms")
    .replace("60ms", "250ms")
)
# What happens, and the first words of the advice: the mean load of each fits with ease.
DISORDER = {
    "a burst that the link cannot take": (BURSTS, "give switch to server0 more than its rate"),
    "a link that loses frames": (
        CALM + '[[change]]\nlink = "board0-switch"\nat = "10ms"\nuntil = "15ms"\nloss = 1.0\n',
        "mend board0-switch: it lost",
    ),
    "a server's link that is slow for a while": (
        CALM + '[[change]]\nlink = "switch-server0"\nat = "10ms"\nuntil = "20ms"\nrate = "1Gbps"\n',
        'compare with cc.law = "off": 99 % of the events',
    ),
    "boards that are paused": (
        CALM.replace("10KB", "20KB") + '[cc]\nlaw = "off"\n[switch]\nbuffer = "300KB"\n',
        "lower switch.kmin and kmax, so that marks come before pauses: 16 ports",
    ),
    "a timer that is shorter than the queue": (
        CALM + '[cc]\nlaw = "off"\n[switch]\nbuffer = "20MB"\npfc = false\n[qp]\nack_timeout = "65us"\n',
        "raise qp.ack_timeout:",
    ),
}


@pytest.mark.parametrize("case", DISORDER)
def test_a_mean_load_that_fits_does_not_hide_what_goes_wrong(penstock: Penstock, tmp_path: Path, case: str) -> None:
    text, advice = DISORDER[case]
    scenario = tmp_path / "disorder.toml"
    scenario.write_text(text)
    summary = penstock.run(tmp_path / "out", scenario=scenario).summary()
    assert summary["verdict"]["offered"][0]["wire_gbps"] < 8, "the mean load fits"
    assert summary["verdict"]["advice"].startswith(advice), json.dumps(summary["verdict"], indent=1)


def test_the_ideal_is_what_a_run_without_limiter_and_limits_takes(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "free.toml"
    scenario.write_text(BURSTS + '[cc]\nlaw = "off"\n[switch]\nbuffer = "100MB"\necn = false\npfc = false\n')
    summary = penstock.run(tmp_path / "out", scenario=scenario).summary()
    ideal, events = summary["ideal"], summary["events"]
    assert [ideal["completion_us"][key] for key in ("p50", "p99", "max")] == [
        pytest.approx(events[f"{key}_us"], rel=1e-3) for key in ("p50", "p99", "max")
    ]
    [port] = [port for port in summary["switches"][0]["ports"] if port["peer"] == "server0"]
    assert ideal["ports"][0]["to"] == "server0"
    assert ideal["ports"][0]["needed_bytes"] == pytest.approx(port["peak_queue_bytes"], rel=1e-3)


def test_pauses_stand_where_boards_are_paused(penstock: Penstock, tmp_path: Path) -> None:
    text, _ = DISORDER["boards that are paused"]
    scenario = tmp_path / "paused.toml"
    scenario.write_text(text)
    summary = penstock.run(tmp_path / "out", scenario=scenario).summary()
    boards = [link for link in summary["links"] if link["name"].startswith("board")]
    assert all(link["paused_s"][0] > 0 and link["paused_s"][1] == 0 for link in boards)
    of_flows = {flow["from"]: flow["paused_s"] for flow in summary["flows"]}
    assert all(link["paused_s"][0] >= of_flows[link["name"].split("-")[0]] > 0 for link in boards)


@pytest.mark.parametrize("scenario", ["advcam-5", "fat-tree-320", "camera"])
def test_a_comparison_without_ecn_and_pfc_keeps_buffer_and_thresholds(
    penstock: Penstock, tmp_path: Path, scenario: str
) -> None:
    path = ROOT / f"scenarios/{scenario}.toml"
    fast = ("run.time_limit=20us", "link.rate=100Gbps")
    default = penstock.run(tmp_path / "own", *fast, scenario=path)
    off = penstock.run(tmp_path / "off", *fast, "switch.ecn=false", "switch.pfc=false", scenario=path)
    of_run = [[switch["buffer_bytes"] for switch in run.summary()["switches"]] for run in (default, off)]
    assert of_run[0] == of_run[1] and all(of_run[0])
    assert "off" not in {switch["pfc"] for switch in default.summary()["switches"]}
    assert {switch["pfc"] for switch in off.summary()["switches"]} == {"off"}


def test_what_is_in_force_stands_in_table_and_summary(penstock: Penstock, tmp_path: Path) -> None:
    """Thresholds for 25 Gb/s at ports of 10 Gb/s: 40 % of them."""
    run = penstock.run(tmp_path, "flow.0.size=200KB", scenario=ROOT / "scenarios/advcam-5.toml")
    root = next(switch for switch in run.summary()["switches"] if switch["name"] == "root")
    for port in root["ports"]:
        assert (port["kmin_bytes"], port["kmax_bytes"]) == (40_000, 160_000)
        assert port["xon_bytes"] < port["xoff_bytes"] and port["headroom_bytes"] > 10_000
    first, settings = root["ports"][0], run.summary()["settings"]
    assert settings["computed.root.buffer"] == f"{root['buffer_bytes'] // 1000}KB" or root["buffer_bytes"] % 10**6 == 0
    output = f"in force: buffer {root['buffer_bytes'] / 1e3:.1f} kB, K_min 40.0 kB, K_max 160.0 kB"
    assert f"{output}, X_off {first['xoff_bytes'] / 1e3:.1f} kB" in flat(run.stdout)


STARTING = """
[run]
time_limit = "100ms"
stop = "time"
[topology]
kind = "star"
boards = 8
[cc]
law = "off"
[triggers]
kind = "periodic"
rate = "1kHz"
stop = "95ms"
fragment = "10KB"
[[flow]]
size = "1MB"
message = "1MB"
rate = "1Gbps"
"""


def test_what_happens_in_the_warm_up_is_apart_from_what_comes_after_it(penstock: Penstock, tmp_path: Path) -> None:
    """Each board first sends 1 MB at the rate of its line."""
    scenario = tmp_path / "starting.toml"
    scenario.write_text(STARTING)
    whole, apart = (
        penstock.run(tmp_path / warm_up, f"run.warm_up={warm_up}", scenario=scenario).summary()
        for warm_up in ("0us", "20ms")
    )
    assert "bursts of up to" in whole["verdict"]["advice"] and "phases" not in whole
    start_up, steady = apart["phases"]["start_up"], apart["phases"]["steady"]
    assert [start_up["from_s"], start_up["to_s"], steady["from_s"], steady["to_s"]] == pytest.approx(
        [0, 0.02, 0.02, 0.1]
    )
    assert start_up["delivered_bytes"] + steady["delivered_bytes"] == whole["delivered_bytes"]
    pausing = sum(port["pausing_s"] for switch in apart["switches"] for port in switch["ports"])
    assert start_up["pausing_s"] == pytest.approx(pausing) and pausing > 0 and start_up["pause_frames"] > 0
    assert steady["pausing_s"] == steady["pause_frames"] == steady["dropped"] == 0
    assert start_up["completion_us"]["max"] == whole["events"]["max_us"] > 1000 > steady["completion_us"]["max"]
    assert steady["peak_queue_bytes"] < 100_000 < start_up["peak_queue_bytes"]
    assert apart["ideal"]["completion_us"]["p99"] < 1000 < whole["ideal"]["completion_us"]["p99"]
    assert max(port["overloaded_s"] for port in apart["ideal"]["ports"]) == 0
    assert apart["verdict"]["advice"].startswith("give switch a switch.buffer"), "it must hold the start-up too"
    assert any(sentence.startswith("Start-up: up to 20.00 ms") for sentence in apart["verdict"]["sentences"])
    whole.pop("timing"), apart.pop("timing")
    for key in ("flows", "events", "switches", "links"):
        assert apart[key] == whole[key], f"{key}: observation changes nothing"


def test_a_warm_up_that_is_as_long_as_the_run_is_refused(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "starting.toml"
    scenario.write_text(STARTING)
    run = penstock.run(tmp_path / "out", "run.warm_up=100ms", scenario=scenario)
    assert run.status == 2 and "run.warm_up = 100ms: allowed is less than run.time_limit" in run.stderr
