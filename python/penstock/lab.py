# SPDX-License-Identifier: Apache-2.0
"""Laboratories in this process: scenarios as objects, results as tables.

    scenario = penstock.Scenario("scenarios/advcam-5.toml").set("cc.g", "1/64")
    run = penstock.run(scenario, {"flow.0.size": "4MB"})
    run.flows.to_pandas(), run.trace, run.summary["jain"]

Scenarios are those of the command (docs/lab.md), checked by the same reader. Simulations run without the
interpreter lock: other threads continue, and Ctrl-C ends a run.
"""

import argparse
import copy
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pyarrow as pa
from tqdm.auto import tqdm

from penstock.points import RunError, as_text, out_folder, to_toml
from penstock.reporting import print_result
from penstock.results import Run


def compiled() -> ModuleType:
    """The compiled half of the package; ImportError says how to get it. All but laboratories works without it."""
    try:
        from penstock import _native
    except ImportError:
        text = "penstock's compiled module is missing: `pip install .` in Penstock's repository builds it"
        raise ImportError(text) from None
    return _native


class Scenario:
    """A checked scenario of the network laboratory, and what is set in it.

    `source` is a file (str or PathLike) or a mapping with the tables of one, `{"topology": {"kind": "star"}, ...}`.
    Raises ValueError with all that is wrong, each with place, key, value and what is allowed; OSError when a file
    cannot be read. Verilated boards and a readout are checked here and refused by `run`: only the command has them.
    """

    def __init__(self, source: str | os.PathLike | Mapping, sets: Mapping[str, object] | None = None) -> None:
        if isinstance(source, Mapping):
            self._begin(to_toml(source), Path("scenario"), sets)
        else:
            self._begin(Path(source).read_text(encoding="utf-8-sig"), Path(source), sets)

    @classmethod
    def from_text(
        cls, text: str, *, folder: str | os.PathLike = ".", sets: Mapping[str, object] | None = None
    ) -> "Scenario":
        """A scenario from TOML text; files that it names are looked for in `folder`."""
        scenario = cls.__new__(cls)
        scenario._begin(text, Path(folder, "scenario"), sets)
        return scenario

    def _begin(self, text: str, path: Path, sets: Mapping[str, object] | None) -> None:
        self._text, self._path = text, path
        self._sets: dict[str, str] = {}
        self.set(sets or {})

    def set(self, key: str | Mapping[str, object], value: object = None) -> "Scenario":
        """Sets a key, `set("cc.g", "1/64")`, or several at once, `set({"switch.kmin": "5KB", "switch.kmax": "9KB"})`.

        Values are written as in the file; returns the scenario itself. ValueError leaves it as it was.
        """
        new = {name: as_text(item) for name, item in (key if isinstance(key, Mapping) else {key: value}).items()}
        # A key that is set again counts from now: later ones may lie inside of it.
        sets = {**{name: item for name, item in self._sets.items() if name not in new}, **new}
        settings, warnings = compiled().check(self._text, self._path, _options(sets))
        self._sets, self._settings, self._warnings = sets, dict(settings), warnings
        return self

    def copy(self) -> "Scenario":
        """Another scenario that says the same."""
        return copy.copy(self)  # what it holds is replaced by `set`, never changed

    @property
    def text(self) -> str:
        """The scenario as TOML, without what was set."""
        return self._text

    @property
    def path(self) -> Path:
        """The file, or its name in messages."""
        return self._path

    @property
    def sets(self) -> dict[str, str]:
        """What was set, as text."""
        return dict(self._sets)

    @property
    def settings(self) -> dict[str, str]:
        """Every key with the value in force, defaults and computed values included."""
        return dict(self._settings)

    @property
    def warnings(self) -> list[str]:
        """What is allowed but will probably hurt."""
        return list(self._warnings)

    def __repr__(self) -> str:
        return " ".join([f"<Scenario {self._path}", *_options(self._sets)]) + ">"


def run(
    scenario: Scenario | str | os.PathLike | Mapping,
    sets: Mapping[str, object] | None = None,
    *,
    out: str | os.PathLike | None = None,
    progress: bool = False,
) -> Run:
    """Runs a scenario to its end, with `sets` overriding its keys.

    Tables are the simulator's own memory (a trace has 22 bytes a row). With `out`, a folder, trace.parquet,
    summary.json and capture.pcapng are written there, as `penstock run --out` does, and the trace is read when it is
    asked for. Raises ValueError and OSError as `Scenario` does, RunError when the simulation itself breaks off, and
    KeyboardInterrupt after Ctrl-C, which leaves whole files. A run that ends with a fault returns: see `Run.check`.
    """
    chosen = scenario.copy() if isinstance(scenario, Scenario) else Scenario(scenario)
    chosen.set(sets or {})
    folder = None if out is None else _prepared(Path(out))
    before = time.perf_counter(), time.thread_time()
    try:
        with _bar(progress) as advance:
            done = compiled().run(chosen.text, chosen.path, _options(chosen.sets), folder, advance)
    except RuntimeError as error:
        raise RunError(str(error), 1) from None
    summary = json.loads(done.summary)
    summary["timing"].update(_taken(before, summary["timing"]["traversals"]))
    never = [f"trace.metrics: nothing recorded a metric `{metric}`" for metric in done.never_recorded]
    summary["warnings"] += never
    if folder is None:
        return Run(None, (summary, None if done.trace is None else pa.table(done.trace)))
    (folder / "summary.json").write_text(json.dumps(summary, indent=2))
    return Run(folder)


def _prepared(folder: Path) -> Path:
    """The folder, without what an earlier run has left there."""
    out_folder(folder)
    for name in ("summary.json", "trace.parquet", "capture.pcapng", "events.parquet"):
        (folder / name).unlink(missing_ok=True)
    return folder


def _taken(before: tuple[float, float], traversals: int) -> dict[str, float]:
    """What the run took of the machine: times of this thread, memory of the process."""
    wall_s, cpu_s = time.perf_counter() - before[0], time.thread_time() - before[1]
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    peak_rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit * 1e-6
    rate = traversals / max(cpu_s, sys.float_info.min)
    return {"wall_s": wall_s, "cpu_s": cpu_s, "traversals_per_cpu_s": rate, "peak_rss_mb": peak_rss_mb}


class _bar:
    """A progress bar of simulated time; the object that `with` gives is called with the progress of the run."""

    def __init__(self, shown: bool) -> None:
        form = "{l_bar}{bar}| {elapsed}<{remaining}{postfix}"
        self.bar = tqdm(total=100, unit="%", bar_format=form, disable=not shown)

    def __enter__(self) -> Callable[[float, float, int, int], None] | None:
        return None if self.bar.disable else self.advance

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def advance(self, now_s: float, limit_s: float, over: int, flows: int) -> None:
        self.bar.n = round(100 * now_s / limit_s, 1)
        self.bar.set_postfix_str(f"{now_s * 1e3:.2f} ms simulated, {over} of {flows} flows done")


def _options(sets: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sets.items()]


def main(arguments: list[str] | None = None) -> int:
    """`python -m penstock run`: a laboratory without the command, with the command's exit status."""
    parser = argparse.ArgumentParser(prog="python -m penstock run", description="Run a scenario.", allow_abbrev=False)
    parser.add_argument("scenario", help="scenario file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a key of the scenario")
    parser.add_argument("--out", default="out", help="folder for summary.json and trace.parquet (default: %(default)s)")
    parser.add_argument("-J", "--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--no-plots", action="store_true", help=argparse.SUPPRESS)  # the command's; none are drawn here
    given = parser.parse_args(arguments)
    try:
        pairs = [option.partition("=") for option in given.set]
        if wrong := [key for key, equals, _ in pairs if not equals]:
            raise ValueError(f"--set {wrong[0]}: write --set section.key=value")
        scenario = Scenario(given.scenario, {key.strip(): value for key, _, value in pairs})
        for warning in scenario.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        done = run(scenario, out=given.out, progress=not given.json and sys.stderr.isatty())
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 1
    return print_result(json.dumps(done.summary, indent=2) if given.json else str(done)) or done.status
