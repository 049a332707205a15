# SPDX-License-Identifier: Apache-2.0
"""Profile "penstock" from 3 to 265 boards: the cases of `penstock figures scale` have the numbers of the pages.

`make figures-check` draws the figure, with the other laws beside these cases.
"""

import sys
from pathlib import Path

import pytest
from conftest import ROOT, Penstock
from matplotlib.figure import Figure

sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from penstock.results import Run  # noqa: E402

from figures import measured, peers, scale  # noqa: E402

TABLES = measured.read(measured.FIGURES)
# Sixteen verilated boards take minutes: `make figures-check` has their case.
CASES = [case for case in scale.CASES if "flow.0.sender=gateware" not in case.settings]


def run_of(penstock: Penstock, out: Path, scenario: str, settings: tuple[str, ...]) -> Run:
    done = penstock.run(out, *settings, scenario=ROOT / f"scenarios/{scenario}.toml")
    assert done.status in (0, 1), done.stderr  # loss is a result
    return Run(out)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_the_numbers_of_the_page(penstock: Penstock, tmp_path: Path, case: scale.Case) -> None:
    kinds = {"limited": scale.settings_of(case), **({"ideal": scale.ideal_settings(case)} if case.triggered else {})}
    runs = {kind: run_of(penstock, tmp_path / kind, case.scenario, keys) for kind, keys in kinds.items()}
    row = scale.row(case, scale.reached(case, runs["limited"], runs.get("ideal")))
    assert row in TABLES["scale cases"], "write it with `penstock figures scale --docs`"


def test_every_case_of_the_page_meets_its_goals_or_gives_the_reason() -> None:
    rows = TABLES["scale cases"]
    assert [row["case"] for row in rows] == [case.name for case in scale.CASES]
    missing = [verdict for row in rows if (verdict := row[""])]
    assert len(missing) <= 1
    for verdict in missing:
        goals, _, reason = verdict.partition(":")
        assert goals.startswith("misses ") and len(reason) > 20, verdict


def test_the_goals_can_be_missed(penstock: Penstock, tmp_path: Path) -> None:
    """The numbers after the table, of 64 boards under Zhu et al.'s parameters, which PFC then holds."""
    settings = ("cc.profile=zhu", "trace.interval=200us")
    run = run_of(penstock, tmp_path / "run", "incast-64", settings)
    assert sum(flow["paused_s"] for flow in run.summary["flows"]) > 5
    assert scale.reached(scale.CASES[2], run, None).missed == ("pauses", "queue")


def test_the_picture_and_the_page_have_the_peers_of_the_file() -> None:
    assert peers.rows(peers.read()) == TABLES["scale peers"], "write it with `penstock figures scale --docs`"
    rows = [line.split(",") for line in (ROOT / "figures/peers.csv").read_text().splitlines()[2:]]
    axes = Figure().subplots(1, 3)
    peers.draw(axes, peers.read())
    for column, axis in enumerate(axes):
        assert [line.get_label() for line in axis.lines] == ["DCQCN, ns-3", "TIMELY, ns-3", "HPCC, ns-3"]
        drawn = [
            (line.get_label().split(",")[0], n, value)
            for line in axis.lines
            for n, value in zip(*(data.tolist() for data in line.get_data()), strict=True)
        ]
        assert drawn == [(row[0], int(row[1]), float(row[2 + column])) for row in rows]
    assert {row[0] for row in rows} == {"DCQCN", "TIMELY", "HPCC"} and len(rows) == 9


def test_a_file_of_peers_with_other_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "peers.csv"
    file.write_text("law,boards\nDCQCN,3\n")
    with pytest.raises(ValueError, match=r"columns are \['law', 'boards'\], and must be \['law', 'boards', 'deliv"):
        peers.read(file)
