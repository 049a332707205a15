# SPDX-License-Identifier: Apache-2.0
"""`penstock figures disorder`: unequal loads, with the numbers and lessons of docs/congestion-control.md."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT_S, Penstock

sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from figures import disorder, disorder_peers, measured  # noqa: E402
from figures.disorder_peers import Flow, Load  # noqa: E402
from figures.peers import held  # noqa: E402

TABLES = measured.read(measured.FIGURES)
ROWS = {(row["case"], row["quantity"]): row for row in TABLES["disorder cases"]}
NAMES = [case.name for case in disorder.CASES]
LOST_BY_PULL = NAMES[-4:-2] + NAMES[-1:]


def number(case: str, quantity: str, way: str) -> float:
    return float(str(ROWS[case, quantity][way]).split()[0])


def parts(way: str) -> dict[str, float]:
    """How near each case comes to the ideal."""
    found = {}
    for case in disorder.CASES:
        ours, ideal = (number(case.name, case.about, of) for of in (way, disorder.IDEAL))
        found[case.name] = ideal / ours if case.about in disorder.TIMES else ours / ideal
    return found


def test_the_page_has_the_numbers_that_the_figure_gives(penstock: Penstock, tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", "disorder", "--check", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "disorder.png").read_bytes().startswith(b"\x89PNG")
    assert "| links of 200 us | longest queue |" in done.stdout


def test_pull_is_near_the_ideal_but_for_the_loads_that_the_page_names() -> None:
    near = {name for name, part in parts("pull").items() if part >= disorder.NEAR}
    assert set(NAMES) - near == set(LOST_BY_PULL)
    for way in ("PFC alone", "Table II", "QCN"):
        for name in NAMES:
            assert number(name, "longest queue", "pull") < number(name, "longest queue", way) / 3


@pytest.mark.parametrize(
    ("case", "way", "is_so"),
    [
        ("64 of 64 boards", "penstock", lambda part: part > 0.98),
        ("16 of 256 boards", "penstock", lambda part: part < 0.4),
        ("events, hot spots", "penstock", lambda part: part < 0.03),
        ("events, hot spots with weights", "penstock", lambda part: part > 0.75),
        ("events of 1 in 16 boards", "PFC alone", lambda part: part < 0.6),
        ("leaves of 48, 6 and 6 into 25G", "PFC alone", lambda part: part > 0.98),
        ("a flow to another server", "PFC alone", lambda part: part < 0.01),
        ("events, equal fragments", "Table II", lambda part: part < 0.1),
        ("250 kB on and off, 80 %", "QCN", lambda part: part < 0.1),
    ],
)
def test_the_lessons_of_the_page_about_pushed_boards_are_in_the_rows(
    case: str, way: str, is_so: Callable[[float], bool]
) -> None:
    assert is_so(parts(way)[case])


def test_the_page_has_the_peers_of_the_file() -> None:
    peers = disorder_peers.read()
    assert disorder.peer_rows(peers) == TABLES["disorder peers"], "write it with `penstock figures disorder --docs`"
    assert {peer.scheme for peer in peers} == set(disorder_peers.SCHEMES)
    assert {peer.case for peer in peers} == set(NAMES) - {"events, hot spots with weights", "1 kB of 1000 boards, 90 %"}


def test_a_file_of_peers_with_other_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "peers.csv"
    file.write_text("scheme,case\nHPCC,64 of 64 boards\n")
    with pytest.raises(ValueError, match="columns are"):
        disorder_peers.read(file)


def test_a_load_is_compared_with_a_line_that_has_its_events_in_order() -> None:
    flows = [Flow(0, 0, 1000, 0, 0), Flow(1, 0, 1000, 0, 0), Flow(0, 0, 1000, 100, 1)]
    load = Load("", 2, flows, lambda _: True)
    assert disorder_peers.ideal(load, "HPCC") == pytest.approx((3 * 1048 * 0.8 - 100) / 1e6)
    assert disorder_peers.value(load, [900.0, 5000.0, 1700.0], 0) == pytest.approx(5000 / 1e6), (
        "the last fragment counts"
    )
    assert disorder_peers.value(load, [900.0, float("inf"), 1700.0], 0) == float("inf")
    amounts = Load("", 2, [Flow(0, 0, 1000), Flow(1, 0, 1000)])
    assert disorder_peers.value(amounts, [900.0, 2000.0], 0) == pytest.approx(8)
    behind_a_leaf = Load("", 40, amounts.flows, server_gbps=40, leaves=(38, 2))
    assert disorder_peers.ideal(behind_a_leaf, "HPCC") == pytest.approx(20 * 1000 / 1048)


def test_pauses_last_until_they_are_taken_back_or_the_run_ends(tmp_path: Path) -> None:
    file = tmp_path / "pfc.txt"
    file.write_text("100 3 0 1 1\n150 3 0 1 1\n200 3 0 1 0\n300 4 0 1 1\n310 3 0 2 1\n400 3 0 2 0\n")
    assert held(file, 1000) == {(3, 1): 100, (4, 1): 700, (3, 2): 90}


def test_flows_of_one_pair_are_done_in_the_order_of_their_ports(tmp_path: Path) -> None:
    file = tmp_path / "fct.txt"
    lines = ["0b000001 0b000201 10001 100 9 2000000500 7 7", "0b000001 0b000201 10000 100 9 2000000000 900 7"]
    file.write_text("\n".join(lines))
    load = Load("", 2, [Flow(0, 0, 9), Flow(0, 0, 9, 500), Flow(1, 0, 9, 600)])
    assert disorder_peers.ns3_ends(file, load) == [900, 507, float("inf")]
