# SPDX-License-Identifier: Apache-2.0
"""Looks for congestion-control parameters: `penstock tune scenario.toml --objective fairness --trials 60`.

    best = penstock.tune("scenarios/advcam-5.toml", objective="event-time", trials=60)
    best.settings, best.value

Optuna's TPE sampler proposes points, each is a run of `penstock` (see `penstock.sweeping`), and its objective is read
off the run's summary. One seed gives one search, whatever the number of processes: proposals are made in rounds of
`ROUND`, and what a round has shown is told to the sampler in the order of the proposals.
"""

import argparse
import json
import math
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from penstock.lab import Scenario
from penstock.points import Point, RunError, as_text, check_jobs, command, out_folder, run_point, settings
from penstock.reporting import add_json_option, as_json, say
from penstock.sweeping import of_switches, parse_sets, scenario_file, several

ROUND = 4  # proposals that are made without knowledge of each other


@dataclass(frozen=True)
class Objective:
    """`value(summary)` is to be as small as possible; `meaning` says what it is, with its unit."""

    meaning: str
    value: Callable[[dict], float]


def _of_switches(summary: dict, key: str) -> float:
    return float(of_switches(summary)[key])


def _event_time(summary: dict) -> float:
    events = summary["events"]
    if events is None:
        raise ValueError("the scenario builds no events: the objective event-time needs [triggers]")
    if events["complete"] == 0:
        return math.inf
    return events["p99_us"] * (1 + events["count"] - events["complete"])


def _fairness(summary: dict) -> float:
    if summary["jain"] is None:
        raise ValueError("no window has two flows in it: the objective fairness needs a shorter trace.interval")
    return 1 - summary["jain"] + _missing(summary)


OBJECTIVES = {
    "fairness": Objective(
        "1 - Jain's index (mean over windows of trace.interval), and the share of the posted bytes that did not arrive",
        _fairness,
    ),
    "event-time": Objective(
        "99 % quantile of the event completion time, us, times 1 + the events that were not completed", _event_time
    ),
    "queue": Objective(
        "largest queue of any port, bytes, times 1 + the share that did not arrive",
        lambda s: _of_switches(s, "switches.peak_queue_bytes") * (1 + _missing(s)),
    ),
    "pause-free": Objective(
        "time in which ports were paused, s, and the share that did not arrive",
        lambda s: _of_switches(s, "switches.paused_s") + _missing(s),
    ),
}


def _missing(summary: dict) -> float:
    posted = sum(flow["posted_bytes"] for flow in summary["flows"])
    delivered = sum(flow["delivered_bytes"] for flow in summary["flows"])
    return 1 - delivered / posted if posted else 1.0


# What is searched unless the caller says otherwise: DCQCN's parameters, around what the papers use.
SPACE = {
    "cc.g": ["1/16", "1/32", "1/64", "1/128", "1/256", "1/512", "1/1024"],
    "cc.rate_ai": ["5Mbps", "10Mbps", "20Mbps", "40Mbps", "80Mbps", "160Mbps", "320Mbps"],
    "cc.rate_hai": ["50Mbps", "100Mbps", "200Mbps", "400Mbps", "800Mbps"],
    "cc.decrease_interval": ["3us", "10us", "50us", "100us"],
    "cc.alpha_interval": ["20us", "40us", "55us", "80us", "160us"],
    "cc.increase_interval": ["55us", "150us", "300us", "600us", "1ms", "2ms"],
    "cc.stage_threshold": ["1", "3", "5"],
    "cc.clamp_target": ["true", "false"],
}


@dataclass(frozen=True)
class Best:
    """The best point: its objective, its settings by key, the folder of its run, and all trials as a table."""

    value: float
    settings: dict[str, str]
    point: str
    trials: pa.Table


def tune(
    scenario: Scenario | str | os.PathLike | Mapping,
    *,
    objective: str = "fairness",
    space: Mapping[str, Sequence] | None = None,
    fixed: Mapping[str, object] | None = None,
    trials: int = 40,
    seed: int = 1,
    out: str | os.PathLike = "out/tune",
    jobs: int | None = None,
    progress: bool = True,
) -> Best:
    """Searches `space` (key of the scenario -> values; default `SPACE`) for the smallest `objective` (of `OBJECTIVES`).

    `fixed` are keys set in every run, which are then not searched, nor are those set in a `Scenario`. Writes
    `tune.parquet` (a row for each trial: its parameters and `value`) and `best.toml` into `out`, where finished runs
    are kept as by `sweep`. ValueError names an unknown objective, a space that is empty or holds a fixed key, a
    scenario that is not a laboratory's, or a summary that lacks what the objective needs; RunError is what
    `penstock run` refused.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"objective {objective!r}: allowed are {', '.join(OBJECTIVES)}")
    if trials < 1:
        raise ValueError(f"trials = {trials}: at least one is needed")
    check_jobs(jobs)
    folder = out_folder(out)
    file, sets = scenario_file(scenario, folder)
    if not _is_lab(file):
        raise ValueError(f"{file}: no laboratory scenario (docs/lab.md), and only those can be searched")
    fixed = {**{key: value for key, value in sets.items() if key not in (space or {})}, **(fixed or {})}
    if space is None:
        space = {key: values for key, values in SPACE.items() if key not in fixed}
    if both := fixed.keys() & space.keys():
        raise ValueError(f"parameter {min(both)!r} is both fixed and searched; give it once")
    searched = {key: [as_text(value) for value in several(values)] for key, values in space.items()}
    if not searched:
        raise ValueError("nothing to search: give at least one parameter two values")
    for key, values in searched.items():
        if not values:
            raise ValueError(f"parameter {key!r} has no values; give at least one")
    search = _Search(os.path.abspath(file), OBJECTIVES[objective], searched, fixed, folder, jobs)
    rows = search.run(trials, seed, progress)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, folder / "tune.parquet", compression="zstd")
    row = min(rows, key=lambda row: row["value"])
    chosen = {key: row[key] for key in searched}
    (folder / "best.toml").write_text(_toml(chosen, objective, row["value"]))
    return Best(row["value"], chosen, row["point"], table)


@dataclass
class _Search:
    scenario: str
    objective: Objective
    space: dict[str, list[str]]
    fixed: dict[str, object]
    folder: Path
    jobs: int | None

    def run(self, trials: int, seed: int, progress: bool) -> list[dict]:
        import optuna  # takes a second, which `import penstock` should not

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        rows: list[dict] = []
        workers = ThreadPoolExecutor(self.jobs or os.cpu_count())
        with workers as pool, tqdm(total=trials, unit="run", disable=None if progress else True) as bar:
            while len(rows) < trials:
                asked = [study.ask() for _ in range(min(ROUND, trials - len(rows)))]
                choices = [
                    {key: t.suggest_categorical(key, values) for key, values in self.space.items()} for t in asked
                ]
                points = [Point(self.scenario, settings({**self.fixed, **choice})) for choice in choices]
                # A round may propose a point twice; two processes must not share its folder.
                values = {point: pool.submit(self.evaluate, point) for point in dict.fromkeys(points)}
                for trial, choice, point in zip(asked, choices, points, strict=True):
                    value = values[point].result()
                    study.tell(trial, value)
                    rows.append({**choice, "value": value, "point": point.name})
                    bar.update()
                bar.set_postfix(best=f"{study.best_value:.4g}")
        return rows

    def evaluate(self, point: Point) -> float:
        return self.objective.value(run_point(point, str(self.folder.resolve()), command(), keep=False))


def _is_lab(file: str) -> bool:
    """Whether the file has a topology; what is no TOML is left to the reader of scenarios to refuse."""
    try:
        return "topology" in tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError:
        return True


def _toml(chosen: dict[str, str], objective: str, value: float) -> str:
    """The keys as a scenario file has them, section by section; those inside arrays of tables as comments."""
    lines = [f"# objective {objective}: {value:.6g}"]
    inside = [key for key in sorted(chosen) if any(part.isdigit() for part in key.split("."))]
    lines += [f"# --set {key}={chosen[key]}" for key in inside]
    section = None
    for key in sorted(chosen.keys() - set(inside), key=lambda key: key.rpartition(".")):
        table, _, name = key.rpartition(".")
        if table != section:
            lines.append(f"[{table}]")
            section = table
        lines.append(f"{name} = {_literal(chosen[key])}")
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    """As it stands if TOML reads it as a value, quoted otherwise: `--set` knows no quotes."""
    try:
        tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return json.dumps(text)
    return text


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit status is 0, 2 for a wrong request, 130 after Ctrl-C, or that of a run that broke off."""
    parser = argparse.ArgumentParser(
        prog="penstock tune", description="Look for congestion-control parameters.", allow_abbrev=False
    )
    parser.add_argument("scenario", help="scenario file")
    meanings = "; ".join(f"{name}: {objective.meaning}" for name, objective in OBJECTIVES.items())
    parser.add_argument(
        "--objective", default="fairness", choices=OBJECTIVES, help=f"to be made small. {meanings}".replace("%", "%%")
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE[,VALUE...]",
        help="one value sets a key in every run; several are searched, instead of the default space",
    )
    parser.add_argument("--trials", type=int, default=40, help="runs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the search (default: %(default)s)")
    parser.add_argument("--out", default="out/tune", help="folder for the results (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="processes at a time (default: one for each core)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_json_option(parser)
    given = parser.parse_args(arguments)
    try:
        values = parse_sets(given.set)
        best = tune(
            given.scenario,
            objective=given.objective,
            space={key: several for key, several in values.items() if len(several) > 1} or None,
            fixed={key: one[0] for key, one in values.items() if len(one) == 1},
            trials=given.trials,
            seed=given.seed,
            out=given.out,
            jobs=given.jobs,
            progress=not (given.quiet or given.json),
        )
    except RunError as error:
        print(f"penstock tune: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("penstock tune: interrupted; the same command again goes on from here", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"penstock tune: {error}", file=sys.stderr)
        return 2
    files = {"table": f"{given.out}/tune.parquet", "best": f"{given.out}/best.toml"}
    if given.json:
        found = {"value": best.value, "settings": best.settings, "point": best.point, "trials": best.trials.to_pylist()}
        return say(as_json("tune", {"scenario": given.scenario, "objective": given.objective, **files, **found}))
    return say(f"{Path(files['best']).read_text()}{best.trials.num_rows} trials: {files['table']}, {files['best']}")
