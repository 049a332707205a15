# SPDX-License-Identifier: Apache-2.0
"""docs/lab.md's first network: the files and commands on the page give the output shown on the page."""

import re
import shlex
import subprocess
from pathlib import Path

import pandas
from conftest import ROOT, TIMEOUT_S, Penstock

PAGE = (ROOT / "docs/lab.md").read_text()
BEGINNING = PAGE[PAGE.index("## A first network") : PAGE.index("## How a scenario is written")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", BEGINNING, re.DOTALL)


def typed(penstock: Penstock, command: str, folder: Path) -> list[str]:
    """The lines that a command of the page prints."""
    words = shlex.split(command)
    assert words[0] == "penstock"
    done = subprocess.run(
        [penstock.binary, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.rstrip() for line in done.stdout.splitlines()]


def test_the_first_network_of_the_page_runs_as_written_and_prints_what_is_there(
    penstock: Penstock, tmp_path: Path
) -> None:
    [scenario], [command] = blocks("toml"), blocks("sh")
    assert len([line for line in scenario.splitlines() if line]) <= 10
    (tmp_path / "first.toml").write_text(scenario)
    [other] = re.findall(r"`(penstock run first[^`]* --set [^`]*)`", BEGINNING)
    for line, output in zip((command.strip(), other), blocks("text"), strict=True):
        printed = typed(penstock, line, tmp_path)
        of_time = re.compile(r"^ time |per CPU second")  # folded onto two lines
        expected = [text for text in output.splitlines() if not of_time.search(text)]
        assert [text for text in expected if text not in printed] == []
    [requested] = re.findall(r"--set 'capture.links=[^`]*'", BEGINNING)
    typed(penstock, f"{command.strip()} {requested}", tmp_path)
    files = re.findall(r"^- `(\w+\.\w+)`: ", BEGINNING, re.MULTILINE)
    assert len(files) == 4 and all((tmp_path / "out" / name).stat().st_size > 0 for name in files)
    assert {"node", "metric", "value"} <= set(pandas.read_parquet(tmp_path / "out/trace.parquet"))
