# SPDX-License-Identifier: Apache-2.0
"""One point of a sweep: a scenario with some keys set, run in a process of its own and kept in a folder of its own."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class RunError(RuntimeError):
    """`penstock run` refused a point or broke off; the message is what it said."""


def command() -> str:
    """The `penstock` command: `$PENSTOCK`, else the one on the path, else the repository's.

    Raises FileNotFoundError, which names the three places, when there is none.
    """
    built = REPOSITORY / "target" / "release" / "penstock"
    for candidate in (os.environ.get("PENSTOCK"), shutil.which("penstock"), str(built) if built.exists() else None):
        if candidate:
            return candidate
    raise FileNotFoundError(
        f"no penstock command: set PENSTOCK to it, put it on the path, or build {built} with `make build`"
    )


@dataclass(frozen=True)
class Point:
    """A scenario and what is set in it; `settings` are (key, value) pairs, in the order of the sweep's parameters."""

    scenario: str
    settings: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """A folder name that says what the point is: a digest of the scenario's text and of the settings."""
        path = Path(self.scenario)
        content = path.read_bytes() if path.exists() else b""
        whole = json.dumps([self.scenario, hashlib.sha256(content).hexdigest(), self.settings])
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    def arguments(self, out: Path) -> list[str]:
        """Of `penstock`."""
        sets = [part for key, value in self.settings for part in ("--set", f"{key}={value}")]
        return ["run", self.scenario, "--out", str(out), *sets]


def run_point(point: Point, folder: str, penstock: str, keep: bool) -> dict:
    """Runs a point into `folder/<name>` and returns its summary; a summary that is there already is taken as it is.

    A finished point is known by its summary.json, which is put in place last, so a point that was interrupted runs
    again. `keep` leaves traces and captures beside it. Raises RunError.
    """
    home = Path(folder, point.name)
    kept = home / "summary.json"
    if kept.exists():
        return json.loads(kept.read_text())
    shutil.rmtree(home, ignore_errors=True)
    work = home / "run"
    work.mkdir(parents=True)
    done = subprocess.run([penstock, *point.arguments(work)], capture_output=True, text=True)
    # 1 is a run that went through and found a fault, which is a result like any other.
    if done.returncode not in (0, 1) or not (work / "summary.json").exists():
        raise RunError(f"{' '.join(done.args)}: exit status {done.returncode}\n{done.stderr.strip()}")
    summary = (work / "summary.json").read_text()
    if not keep:
        shutil.rmtree(work)
    (home / "point.json").write_text(json.dumps({"scenario": point.scenario, "settings": dict(point.settings)}))
    (home / "summary.json.part").write_text(summary)
    (home / "summary.json.part").rename(kept)
    return json.loads(summary)


def settings(pairs: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Values as a scenario file writes them: `True` is `true`, all else as `str` has it."""
    return tuple((key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in pairs.items())
