# SPDX-License-Identifier: Apache-2.0
"""`penstock figures`: plots and numbers from the papers' scenarios, as in docs/measured/figures.json.

The shapes of AdvCam 11 and 13 are computed here from the traces alone, by a different method than in the figures.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from conftest import ROOT, TIMEOUT_S, Penstock

sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from figures import measured  # noqa: E402
from figures.__main__ import FIGURES, differences, main, tables  # noqa: E402
from figures.comparison import Compared  # noqa: E402

# With those of `quantities`, all figures whose paper has a number, but for CMS-TCP 3, which measures for long.
QUICK = [
    *(f"advcam-{number}" for number in ("4", "5", "6", "9", "11", "12", "13", "14")),
    *("qcn-1-100us", "qcn-1-100us-pause", "qcn-8-500us", "qcn-8-500us-pause", "feroce"),
]
LINE_BPS = 10e9


def figures(penstock: Penstock, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)


def printed_rows(text: str) -> list[list[str]]:
    """The cells of each row of a printed table."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


@pytest.fixture(scope="module")
def drawn(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the command printed, and its folder."""
    out = tmp_path_factory.mktemp("figures")
    done = figures(penstock, *QUICK, "--out", out)
    assert done.returncode == 0, done.stderr
    return done.stdout, out


def samples(out: Path, figure: str, node: str, metric: str) -> np.ndarray:
    """All samples of one metric of one node, in time."""
    trace = pandas.read_parquet(out / figure / "trace.parquet")
    return trace[(trace.node == node) & (trace.metric == metric)].value.to_numpy()


def test_the_pages_have_the_numbers_that_the_figures_give(drawn: tuple[str, Path]) -> None:
    text, out = drawn
    written = measured.read(measured.FIGURES)
    expected = [
        [name, *(cell or "" for cell in row.values()), f"`penstock figures {name}`"]
        for name in QUICK
        for row in written[name]
    ]
    assert len(expected) > 25
    assert printed_rows(text) == expected
    for name in QUICK:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG"), name


def test_every_figure_has_its_table_on_a_page() -> None:
    shown = {
        table
        for page in (ROOT / "docs").glob("*.md")
        for table, file in measured.LINK.findall(page.read_text())
        if file == "measured/figures.json"
    }
    more = {"disorder cases", "disorder peers", "scale cases", "scale peers"}
    assert shown == set(FIGURES) | more == set(measured.read(measured.FIGURES))


def test_advcam_13_flow_a_alone_climbs_every_200_ms_and_is_cut_many_times_behind_each(drawn: tuple[str, Path]) -> None:
    """One sample each 100 us: a timer of 200 ms is 2000 of them. R_T stays at the line, so R_C climbs halfway to it."""
    _, out = drawn
    rate, cuts = (samples(out, "advcam-13", "board0", metric) for metric in ("rate_current_bps", "cnp_handled"))
    contention = slice(2000, int(np.flatnonzero(samples(out, "advcam-13", "flow_b", "throughput_bps"))[-1]))
    climbs = 2000 + np.flatnonzero(rate[contention][1:] > 1.5 * rate[contention][:-1])
    assert 15 <= len(climbs) <= 19
    assert set(np.diff(climbs)) <= {1999, 2000, 2001}
    below, above = rate[climbs], rate[climbs + 1]
    assert np.median(below) < 0.2 * LINE_BPS
    assert above == pytest.approx((below + LINE_BPS) / 2, rel=0.05)
    assert np.diff(cuts[climbs]).min() >= 20
    fallen = rate[climbs[:-1] + 1 + 50]
    assert (fallen < 1.5 * below[1:]).all(), "after 5 ms it is down again"
    for other in ("board1", "board2"):
        rate = samples(out, "advcam-13", other, "rate_current_bps")[contention]
        assert not (rate[1:] > 1.5 * rate[:-1]).any(), other


def test_advcam_11_without_dcqcn_a_sender_has_all_of_the_line_or_nothing(drawn: tuple[str, Path]) -> None:
    """Windows of 1 ms until the first flow ends: on and off by turns, for many windows each, and the line is full."""
    _, out = drawn
    rates = np.stack([samples(out, "advcam-11", f"flow_{x}", "throughput_bps") for x in "abc"]) / LINE_BPS
    rates = rates[:, : min(int(np.flatnonzero(flow)[-1]) for flow in rates)]
    on, off = rates > 0.88, rates < 0.05
    assert (on.mean(axis=1) > 0.15).all() and (off.mean(axis=1) > 0.4).all()
    assert (on | off).mean() > 0.75, "hardly ever anything between"
    begins = (np.diff(off.astype(int), axis=1) == 1).sum(axis=1)
    assert (begins >= 5).all() and 8 < off.sum() / begins.sum() < 20, "silences of some 10 ms, again and again"
    assert rates[:, 1:].sum(axis=0).mean() > 0.95
    assert (rates.sum(axis=0) ** 2 / (3 * (rates**2).sum(axis=0)))[1:].mean() < 0.5, "Jain's index"


def test_advcam_11_has_retransmissions_at_the_line_rate_by_short_ack_timeouts_not_by_losses(
    penstock: Penstock, tmp_path: Path
) -> None:
    """docs/results.md: PFC on, frames wait in the switch for longer than the timeout; a loss costs half of the line."""

    def run(setting: str) -> tuple[int, int, float]:
        scenario = ROOT / "scenarios/advcam-11.toml"
        done = penstock.run(tmp_path / setting, setting, "trace.interval=10ms", scenario=scenario)
        summary = done.summary()
        delivered = sum(flow["delivered_bytes"] for flow in summary["flows"])
        end = max(flow["end_s"] for flow in summary["flows"])
        again = sum(flow["retransmissions"] for flow in summary["flows"])
        [switch] = summary["switches"]
        lost = sum(switch[f"dropped_{where}"] for where in ("buffer", "threshold", "headroom"))
        return lost, again, 8e-9 * delivered / end

    for timeout, most in (("8ms", 4000), ("4ms", 6000)):
        lost, again, gbps = run(f"qp.ack_timeout={timeout}")
        assert lost == 0 and 1000 < again < most and gbps > 9.7, (timeout, lost, again, gbps)
    assert run("switch.headroom=12KB")[:2] == (0, 0)
    lost, again, gbps = run("switch.headroom=8KB")
    assert lost > 0 and again > 100_000 and gbps < 6, (lost, again, gbps)


def test_50_gb_at_100_gbps_take_as_long_as_those_of_cepc(penstock: Penstock, tmp_path: Path) -> None:
    """CEPC: 2e5 messages of 262 kB take 1,378,101,107 cycles of 322.27 MHz from the start to the last ACK."""
    transfer = ("flow.0.messages=200000", "flow.0.message=262144B", "run.time_limit=10s")
    done = penstock.run(tmp_path, *transfer, scenario=ROOT / "scenarios/feroce-1.toml")
    [flow] = done.summary()["flows"]
    assert (flow["delivered_bytes"], flow["packets"]) == (200_000 * 262_144, 200_000 * 64)
    assert (flow["complete"], flow["retransmissions"]) == (True, 0)
    assert flow["end_s"] == pytest.approx(1_378_101_107 / 322.265625e6, rel=1e-3)


def quantities(penstock: Penstock, out: Path, *names: str) -> dict[str, dict[str, float]]:
    """The numbers of some figures, by figure and quantity; docs/measured has them, too."""
    done = figures(penstock, *names, "--out", out, "--json", "--check")
    assert done.returncode == 0, done.stderr
    drawn = json.loads(done.stdout)["figures"]
    return {one["figure"]: {row["quantity"]: row["penstock"] for row in one["quantities"]} for one in drawn}


@pytest.fixture(scope="module")
def congested(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """The numbers of CMS-TCP 5 and 6 and of the stalled receiver, by figure and quantity."""
    return quantities(penstock, tmp_path_factory.mktemp("cms"), "cms-tcp-5", "cms-tcp-6", "cms-tcp-stall")


def test_cms_tcp_5_without_congestion_control_the_collapse_stays(congested: dict[str, dict[str, float]]) -> None:
    """Half of a link's demand is not delivered, nearly twice as much is sent, long after the cause is gone."""
    figure = congested["cms-tcp-5"]
    assert figure["one link before the fifth sender"] == pytest.approx(2.048, rel=0.01)
    for when in ("while it sends", "long after"):
        assert figure[f"attempted by one link {when}"] > 1.9 * 2.048
    assert figure["one link while it sends"] < 2.048 / 2
    assert figure["one link long after it stopped"] < 2.048 / 2
    assert figure["retransmissions in all segments of the four"] > 50


def test_cms_tcp_6_with_it_the_links_recover(congested: dict[str, dict[str, float]]) -> None:
    figure = congested["cms-tcp-6"]
    assert figure["one link while it sends"] < 2.048 * 0.95, "there is congestion to recover from"
    assert figure["one link long after it stopped"] == pytest.approx(2.048, rel=0.01)
    assert figure["attempted by one link long after"] == pytest.approx(2.048, rel=0.01)
    assert figure["retransmissions in all segments of the four"] < 10


def test_what_a_receiver_that_stood_still_leaves_behind_ends_by_congestion_control_only(
    congested: dict[str, dict[str, float]],
) -> None:
    figure = congested["cms-tcp-stall"]
    for case, useful in (("without", 2.048 / 2), ("with", 2.048 * 1.01)):
        case = f"{case} congestion control, one link"
        assert figure[f"{case} before the stall"] == pytest.approx(2.048, rel=0.01)
        assert figure[f"{case} in the stall's second half"] < 0.1
        assert figure[f"{case} 1 s later"] < useful
    assert figure["without congestion control, one link 1 s later, attempted"] > 1.9 * 2.048
    assert figure["with congestion control, one link 1 s later"] == pytest.approx(2.048, rel=0.01)


def test_600_front_ends_are_merged_into_links_of_40_gbps_without_loss(penstock: Penstock, tmp_path: Path) -> None:
    figure = quantities(penstock, tmp_path, "cms-tcp-1")["cms-tcp-1"]
    assert figure["front ends"] == 600 and figure["frames lost or repeated"] == 0
    assert figure["one front end, least"] == pytest.approx(2.048, rel=0.01)


def test_tcp_is_as_fast_as_rdma_until_nagle_holds_the_end_of_a_message(penstock: Penstock, tmp_path: Path) -> None:
    """A last segment that is short waits for the acknowledgement of those before it, which the receiver delays."""
    figure = quantities(penstock, tmp_path, "cepc-latency")["cepc-latency"]
    for size in (256, 4096):
        assert figure[f"TCP, {size} B"] == pytest.approx(figure[f"RDMA, {size} B"], rel=0.05)
    for size in (16384, 65536):
        assert figure[f"TCP, {size} B"] > 1000
        assert figure[f"TCP without Nagle, {size} B"] < 1.3 * figure[f"RDMA, {size} B"]


def test_the_numbers_are_json_on_request(penstock: Penstock, drawn: tuple[str, Path], tmp_path: Path) -> None:
    done = figures(penstock, "advcam-4", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["schema"], report["kind"]) == (1, "figures")
    [figure] = report["figures"]
    assert figure["figure"] == "advcam-4" and Path(figure["picture"]).read_bytes().startswith(b"\x89PNG")
    lines = [line for line in drawn[0].splitlines() if line.startswith("| advcam-4 |")]
    for line, row in zip(lines, figure["quantities"], strict=True):
        _, _, quantity, _, ours, deviation, *_ = (cell.strip() for cell in line.split("|"))
        digits = len(ours.split()[0].partition(".")[2])
        assert (row["quantity"], f"{row['penstock']:.{digits}f}") == (quantity, ours.split()[0])
        assert deviation == ("" if row["deviation_percent"] is None else f"{row['deviation_percent']:+.1f} %")


def test_numbers_that_the_file_does_not_have_are_reported(penstock: Penstock, tmp_path: Path) -> None:
    assert figures(penstock, "advcam-4", "--check", "--out", tmp_path).returncode == 0
    changed = Compared("senders 7 to 10, mean until the first ends", 0.81, 0.9, "Gb/s")
    made = tables([("advcam-4", changed)], {})
    [*missing, other] = differences(made, measured.read(measured.FIGURES), set())
    assert len(missing) == 3 and all(line.startswith("- advcam-4 | ") for line in missing)
    assert other.startswith("+ advcam-4 | ") and "0.90 Gb/s" in other


def test_docs_writes_the_tables_of_the_figures_drawn_and_leaves_the_others(
    penstock: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, file = measured.read(measured.FIGURES), tmp_path / "figures.json"
    measured.write({"qcn-tcp": written["qcn-tcp"], "advcam-4": written["advcam-5"]}, file)
    monkeypatch.setattr(measured, "FIGURES", file)
    monkeypatch.setenv("PENSTOCK", str(penstock.binary))
    assert main(["advcam-4", "--docs", "--out", str(tmp_path / "out")]) == 0
    assert measured.read(file) == {name: written[name] for name in ("qcn-tcp", "advcam-4")}


def test_measurements_of_this_machine_are_not_compared() -> None:
    on_page = [Compared("measured: x", None, 1.0, "Gb/s"), Compared("simulated", None, 2.0, "Gb/s")]
    written = tables([("cms-tcp-3", row) for row in on_page], {})
    made = tables([("cms-tcp-3", Compared("measured: x", None, 3.0, "Gb/s", of_machine=True))], {})
    [other] = differences(made, written, {("cms-tcp-3", "measured: x")})
    assert other.startswith("- cms-tcp-3 | simulated | ")


def test_a_figure_that_does_not_exist_is_refused_with_those_that_do(penstock: Penstock) -> None:
    done = figures(penstock, "advcam-99")
    assert done.returncode == 2
    assert "advcam-99" in done.stderr and "advcam-12" in done.stderr


BOARDS = ("10.0.0.2", "10.0.0.3", "10.0.0.4")


@pytest.fixture(scope="module")
def as_sampled(drawn: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of AdvCam 13 as `ctl sample` would have read it from its boards: so the truth is known."""
    source, folder = drawn[1] / "advcam-13", tmp_path_factory.mktemp("sampled")
    trace = pandas.read_parquet(source / "trace.parquet").astype({"node": str, "metric": str})
    flows = dict(zip(("flow_a", "flow_b", "flow_c"), BOARDS, strict=True))
    hosts = {f"board{n}": address for n, address in enumerate(BOARDS)}
    of_flows = trace[trace.node.isin(flows) & (trace.metric == "throughput_bps")].replace({"node": flows})
    read = ["rate_current_bps", "cnp_handled"]
    of_hosts = trace[trace.node.isin(hosts) & trace.metric.isin(read)].replace({"node": hosts})
    # The scenario does not record R_T, which stays at the line.
    targets = of_hosts[of_hosts.metric == read[0]].assign(metric="rate_target_bps", value=LINE_BPS)
    pandas.concat([of_flows, of_hosts, targets]).to_parquet(folder / "trace.parquet")
    boards = [{"name": name, "samples": 1000, "line_rate_bps": 10_000_000_000} for name in BOARDS]
    seconds = trace.time_ps.max() / 1e12
    summary = {"kind": "sample", "seconds": seconds, "interval_s": 1e-4, "queue_pairs": [0], "boards": boards}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_sampled_boards_give_the_figures_that_their_flows_gave(
    penstock: Penstock, drawn: tuple[str, Path], as_sampled: Path, tmp_path: Path
) -> None:
    done = figures(penstock, "--sampled", as_sampled, "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = {one["figure"]: one for one in json.loads(done.stdout)["figures"]}
    assert list(found) == ["advcam-12", "advcam-13", "advcam-14"]
    assert all((tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in found)
    ours = {name: {row["quantity"]: row["penstock"] for row in one["quantities"]} for name, one in found.items()}

    flows = [samples(drawn[1], "advcam-13", f"flow_{x}", "throughput_bps") for x in "abc"]
    # Until the first timer, at 0.2 s, the first board has less than 1 % of the line; the numbers begin 0.2 s later.
    contention = slice(4000, min(int(np.flatnonzero(flow)[-1]) for flow in flows))
    means = [flow[contention].mean() / 1e9 for flow in flows]
    [label] = {key.rpartition(",")[0] for key in ours["advcam-12"] if key.startswith("3 boards from 0.20 s")}
    assert ours["advcam-12"][f"{label}, mean"] == pytest.approx(np.mean(means), rel=0.02)
    assert ours["advcam-12"][f"{label}, lowest board"] == pytest.approx(min(means), rel=0.02)
    assert ours["advcam-12"][f"{label}, highest board"] == pytest.approx(max(means), rel=0.02)
    whole = sum(flow.mean() for flow in flows) / 1e9
    assert ours["advcam-12"]["sum of all boards, mean over the run"] == pytest.approx(whole, rel=0.02)

    rate, cuts = (samples(drawn[1], "advcam-13", "board0", metric) for metric in ("rate_current_bps", "cnp_handled"))
    climbs = 4000 + np.flatnonzero(rate[contention][1:] > 1.5 * rate[contention][:-1])
    assert abs(ours["advcam-13"][f"climbs of {BOARDS[0]}"] - len(climbs)) <= 1
    assert ours["advcam-13"]["time between climbs, median"] == pytest.approx(200, abs=1)
    assert ours["advcam-13"]["cuts per recovery, median"] == pytest.approx(np.median(np.diff(cuts[climbs])), abs=1)
    assert ours["advcam-13"][f"{BOARDS[0]}, mean"] == pytest.approx(means[0], rel=0.02)
    assert ours["advcam-14"]["correlation of throughput and R_C"] > 0.5


def test_of_several_sampled_boards_one_is_chosen_and_what_is_not_there_is_refused(
    penstock: Penstock, as_sampled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = figures(penstock, "advcam-13", "--sampled", as_sampled, "--board", BOARDS[2], "--out", tmp_path)
    assert f"| advcam-13 | climbs of {BOARDS[2]} |" in done.stdout, done.stderr
    assert f"`penstock figures advcam-13 --sampled {as_sampled}`" in done.stdout
    for words, reported in [
        (["--sampled", tmp_path], "there is no result of `penstock ctl sample`"),
        (["--sampled", as_sampled, "--board", "10.0.0.9"], "--board 10.0.0.9: it was not sampled; there are 10.0.0.2,"),
        (["--sampled", as_sampled, "--queue-pair", "3"], "--queue-pair 3: it was not sampled; there are 0"),
        (["feroce", "--sampled", as_sampled], "feroce: no such figure; there are advcam-12, advcam-13, advcam-14"),
        (["advcam-12", "--board", BOARDS[0]], "name their folder by --sampled"),
        (["--sampled", as_sampled, "--check"], "--docs and --check are of the scenarios' figures"),
    ]:
        # In this process: seven interpreters would take most of the time.
        try:
            status = main([*map(str, words), "--out", str(tmp_path)])
        except SystemExit as refused:
            status = refused.code
        error = capsys.readouterr().err
        assert status == 2 and reported in error, error
