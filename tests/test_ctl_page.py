# SPDX-License-Identifier: Apache-2.0
"""docs/ctl.md, "From power-on to data": its commands in their order, on boards in software with other addresses."""

import re
import subprocess

import pyarrow.parquet as pq
from conftest import ROOT
from ctl import Ctl, boards

PAGE = (ROOT / "docs/ctl.md").read_text()
BEGINNING = PAGE[PAGE.index("## From power-on to data") : PAGE.index("## Lists of boards")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", BEGINNING, re.DOTALL)


def test_the_page_s_commands_set_a_camera_up_and_close_it(built, penstock, tmp_path):
    ctl = Ctl(penstock.binary, tmp_path / "state")
    with boards(built, 3) as group:
        first = group.address(0).rsplit(".", 1)
        assert int(first[1]) < 250

        def here(text: str) -> str:
            return re.sub(r"10\.0\.0\.([234])\b", lambda found: group.address(int(found[1]) - 2), text)

        [configuration] = blocks("toml")
        (tmp_path / "boards.toml").write_text(here(configuration))
        commands = [line for block in blocks("sh") for line in block.splitlines()]
        assert len(commands) == 9
        said = {}
        for command in commands:
            words = here(command).removeprefix("penstock ctl ").split(" || ")[0].split()
            done = subprocess.run(
                ctl.command(*words), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
                env={"XDG_STATE_HOME": str(tmp_path)},
            )  # fmt: skip
            assert done.returncode == (1 if "|| true" in command else 0), f"{command}: {done}"
            said[command] = done.stdout
        applied = "penstock ctl apply boards.toml"
        assert "3 boards differ, 0 are as the file says" in said[applied]
        assert "0 boards differ, 3 are as the file says" in said["penstock ctl diff boards.toml"]
    trace = pq.read_table(tmp_path / "sampled/trace.parquet").to_pandas()
    assert set(trace["node"]) == {group.address(n) for n in range(3)}
    assert {"rate_current_bps", "rate_target_bps", "alpha", "stage", "cnp_handled"} <= set(trace["metric"])
    assert "penstock" in (tmp_path / "sampled/report.html").read_text()
