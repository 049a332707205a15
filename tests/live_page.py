# SPDX-License-Identifier: Apache-2.0
"""The live page in headless Chromium, for its tests and its bench: a run with a page, a script that looks at it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conftest import ROOT, SCENARIO, TIMEOUT_S, Penstock

BROWSER = ROOT / "tests/browser"
# Sixty boards into one server; at a pace of 0.002 the page gets a hundred samples a second.
SIXTY = """
[run]
time_limit = "1s"
[topology]
kind = "star"
boards = 60
[[flow]]
[trace]
interval = "20us"
"""


def browse(case: str, *arguments: object) -> dict:
    """Runs one of tests/browser and returns what it found; the page itself must have had no errors."""
    command = ["node", str(BROWSER / f"{case}.mjs"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == [], found["errors"]
    return found


@dataclass
class Live:
    """A run with its page."""

    process: subprocess.Popen[str]
    url: str
    out: Path

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])


@contextmanager
def live(
    penstock: Penstock, out: Path, *settings: str, scenario: Path = SCENARIO, pace: str | None = None
) -> Iterator[Live]:
    """Starts a run with a page on a free port; it is ended in any case."""
    options = ("--no-plots", "--live", "127.0.0.1:0", *(("--pace", pace) if pace else ()))
    command = penstock.command(out, *settings, scenario=scenario, options=options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        while line.startswith("warning: "):  # the demo offers more than its link carries
            line = process.stderr.readline()
        assert line.startswith("live page: http://127.0.0.1:"), line + process.stderr.read()
        yield Live(process, line.split()[-1], out)
    finally:
        process.kill()
        process.communicate()


def watch_sixty(penstock: Penstock, folder: Path, seconds: float) -> dict:
    """What the page does with `SIXTY` in some seconds: rows, redraws, CPU time of one (tests/browser/sixty.mjs)."""
    scenario = folder / "sixty.toml"
    scenario.write_text(SIXTY)
    with live(penstock, folder / "out", scenario=scenario, pace="0.002") as run:
        return browse("sixty", run.url, seconds)
