# SPDX-License-Identifier: Apache-2.0
"""Profile "penstock" from 3 to 265 boards: `penstock figures scale` meets its goals; its page shows these numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT_S, Penstock

PAGE = ROOT / "docs/congestion-control.md"


@pytest.fixture(scope="module")
def table(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The cells of the cases, a list for each."""
    out = tmp_path_factory.mktemp("scale")
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    command = [penstock.binary, "figures", "scale", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (out / "scale.png").read_bytes().startswith(b"\x89PNG")
    lines = done.stdout.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("| case |"))
    page = PAGE.read_text()
    assert "\n".join(lines[begin:]) in page, "write it with `penstock figures scale --docs`"
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[begin + 2 :]]


def test_every_case_meets_its_goals_or_the_page_says_why_not(table: list[list[str]]) -> None:
    assert len(table) >= 20
    missing = [row for row in table if row[-1]]
    assert len(missing) <= 1
    for row in missing:
        goals, _, reason = row[-1].partition(":")
        assert goals.startswith("misses ") and len(reason) > 20, row


def test_the_goals_can_be_missed(penstock: Penstock, tmp_path: Path) -> None:
    """The numbers after the table, of 64 boards under Zhu et al.'s parameters, which PFC then holds."""
    command = [penstock.binary, "run", ROOT / "scenarios/incast-64.toml", "--out", tmp_path / "run", "--no-plots"]
    command += ["--set", "cc.profile=zhu", "--set", "trace.interval=200us"]
    subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert sum(flow["paused_s"] for flow in summary["flows"]) > 5
    code = (
        "import json, sys\n"
        "from figures import scale\n"
        "from penstock.results import Run\n"
        f"case = scale.CASES[2]; print(json.dumps(scale.reached(case, Run({str(tmp_path / 'run')!r}), None).missed))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == ["pauses", "queue"]


def ask(code: str) -> object:
    """What Python says with the figures at hand, as JSON."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def test_the_picture_and_the_page_have_the_peers_of_the_file() -> None:
    code = (
        "import json, matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt; from figures import peers\n"
        "axes = plt.subplots(1, 3)[1]; peers.draw(axes, peers.read())\n"
        "lines = [[[line.get_label(), *(data.tolist() for data in line.get_data())] for line in axis.lines]"
        " for axis in axes]\n"
        "print(json.dumps({'table': peers.table(peers.read()), 'lines': lines}))"
    )
    found = ask(code)
    assert found["table"] in PAGE.read_text(), "write it with `penstock figures scale --docs`"
    rows = [line.split(",") for line in (ROOT / "figures/peers.csv").read_text().splitlines()[2:]]
    for column, axis in enumerate(found["lines"]):
        assert [label for label, *_ in axis] == ["DCQCN, ns-3", "TIMELY, ns-3", "HPCC, ns-3"]
        drawn = [(label.split(",")[0], n, value) for label, *data in axis for n, value in zip(*data, strict=True)]
        assert drawn == [(row[0], int(row[1]), float(row[2 + column])) for row in rows]
    assert {row[0] for row in rows} == {"DCQCN", "TIMELY", "HPCC"} and len(rows) == 9


def test_a_file_of_peers_with_other_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "peers.csv"
    file.write_text("law,boards\nDCQCN,3\n")
    code = (
        f"import json; from pathlib import Path; from figures import peers; file = Path({str(file)!r})\n"
        "try: peers.read(file)\nexcept ValueError as error: print(json.dumps(str(error)))"
    )
    assert "columns are ['law', 'boards'], and must be ['law', 'boards', 'delivered_gbps'" in ask(code)
