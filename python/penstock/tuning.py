# SPDX-License-Identifier: Apache-2.0
"""Searches for congestion-control parameters: `penstock tune scenario.toml --objective fairness --trials 60`.

    best = penstock.tune("scenarios/advcam-5.toml", objective="event-time", trials=60)
    best.settings, best.value, best.is_recommended

The scenario's own values run first. Then Optuna's TPE sampler proposes points, each is a run of `penstock` (see
`penstock.sweeping`), and its objectives are computed from the run's summary (`penstock.objectives`). A point that
delivers less than `FLOOR` of what the scenario's own values deliver is rated infinitely bad, because a network with
little traffic trivially has no congestion; so is one that loses events or frames or pauses ports where these do not
(`penstock.harm`). A better point runs again over other seeds before it is recommended.

One seed gives one search, for any number of processes: proposals are made in rounds of `ROUND`, and the results of a
round are passed to the sampler in the order of the proposals.
"""

import math
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from tqdm import tqdm

from penstock import fronts
from penstock.best import Best, as_toml
from penstock.harm import Harm
from penstock.lab import Scenario
from penstock.objectives import OBJECTIVES, Objective, chosen, gain_percent, goodput_gbps
from penstock.points import Point, Results, RunError, as_text, check_jobs
from penstock.reporting import as_json, as_table, parser_of, report
from penstock.sweeping import parameter_table, parse_sets, scenario_file, several
from penstock.verification import SEEDS, Outcome, SeedPair, Verification

ROUND = 4  # proposals that are made without knowledge of each other
REFUSED = 2  # the exit status of a run whose scenario is refused
FLOOR = 0.95  # of the goodput of the scenario's own values

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


# What is tried in addition, unless the caller names the keys to search: other ways to share the line.
MODES = {
    "no limiter": {"cc.law": "off"},
    "the share": {"cc": '{ profile = "penstock" }'},
    "pull": {"qp.mode": "pull"},
}


def tune(
    scenario: Scenario | str | os.PathLike | Mapping,
    *,
    objective: str | Sequence[str] = "fairness",
    space: Mapping[str, Sequence] | None = None,
    fixed: Mapping[str, object] | None = None,
    trials: int = 40,
    seed: int = 1,
    out: str | os.PathLike = "out/tune",
    jobs: int | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Best:
    """Searches `space` (key of the scenario -> values; default `SPACE`) for the smallest `objective` (of `OBJECTIVES`;
    several with commas between, or as a sequence, are searched together).

    Without `space`, those of `MODES` that the scenario allows run after the `trials`; the column `mode` names them.

    `fixed` are keys set in every run, which are then not searched, nor are those set in a `Scenario`. Writes
    `tune.parquet` (a row for each trial: its parameters, `value` and `goodput_gbps`; of several objectives a column
    each and `on_front`) and `best.toml` into `out`, of several also `front.png`; finished runs are kept there as by
    `sweep`. ValueError: an unknown objective; a space that is empty or holds a fixed key or the seed; a scenario that
    is not a laboratory's or has no flow under DCQCN for the default space; a summary that lacks what the objective
    needs; results of another scenario in `out` without `overwrite`. RunError is what `penstock run` refused.
    """
    objectives = chosen(objective)
    if trials < 1:
        raise ValueError(f"trials = {trials}: at least one is needed")
    check_jobs(jobs)
    results = Results.at(out)
    file, sets = scenario_file(scenario, results.folder)
    if not _is_network(file):
        raise ValueError(f"{file}: no laboratory scenario (docs/lab.md), and only those can be searched")
    fixed = {**{key: value for key, value in sets.items() if key not in (space or {})}, **(fixed or {})}
    is_default = space is None
    searched = _searched(SPACE if space is None else space, fixed, is_default)
    if not overwrite:
        results.refuse_foreign("tune.parquet", file)
    search = _Search(os.path.abspath(file), objectives, searched, fixed, results.runner(), jobs)
    baseline = search.default_values()
    laws = sorted({flow["law"] for flow in baseline["flows"]})
    if is_default and "dcqcn" not in laws:
        raise ValueError(
            f"law {', '.join(laws)}: no flow is under DCQCN, whose parameters are searched by default; set cc.law, or "
            "give several values to the keys that are to be searched"
        )
    own = search.outcome(baseline)
    with tqdm(total=trials + (len(MODES) if is_default else 0), unit="run", disable=None if progress else True) as bar:
        rows = search.run(trials, seed, bar)
        if is_default:
            rows += search.modes(bar)
        named = _named(rows, own, list(objectives))
        values = {name: named["values"][name] for name in objectives}
        verification = None
        if fronts.dominates(list(values.values()), list(own.values.values())):
            verification = search.verify(named["settings"], baseline["seed"], bar)
    table = _table(rows, list(objectives), searched)
    results.write("tune.parquet", table, file)
    best = Best(
        named["settings"],
        named["point"],
        values,
        named["goodput_gbps"],
        own.values,
        own.goodput_gbps,
        table,
        verification,
    )
    (results.folder / "best.toml").write_text(as_toml(best))
    if len(objectives) > 1:
        meanings = {name: one.meaning for name, one in objectives.items()}
        fronts.draw(results.folder / "front.png", table.to_pylist(), own.values, named["point"], meanings)
    return best


def _searched(space: Mapping[str, Sequence], fixed: Mapping[str, object], is_default: bool) -> dict[str, list[str]]:
    """The values of each key that is searched, as text."""
    if is_default:
        space = {key: values for key, values in space.items() if key not in fixed}
    if both := fixed.keys() & space.keys():
        raise ValueError(f"parameter {min(both)!r} is both fixed and searched; give it once")
    if "run.seed" in space:
        raise ValueError("run.seed cannot be searched: a winner is run again over other seeds; give it one value")
    searched = {key: [as_text(value) for value in several(values)] for key, values in space.items()}
    if not searched:
        raise ValueError("nothing to search: give at least one parameter two values")
    for key, values in searched.items():
        if not values:
            raise ValueError(f"parameter {key!r} has no values; give at least one")
    return searched


def _named(rows: list[dict], own: Outcome, objectives: list[str]) -> dict:
    """The trial that is named: of one objective the smallest, and of several with this value the one that delivers
    most; of several objectives the one of the front that gains most in sum without a loss in any, or else that loses
    least.
    """
    if len(objectives) == 1:
        return min(rows, key=lambda row: (row["values"][objectives[0]], -row["goodput_gbps"]))

    def rank(row: dict) -> tuple[float, float, float]:
        gains = [gain_percent(own.values[name], row["values"][name]) for name in objectives]
        worst = min(gains)
        return (min(worst, 0.0), sum(gain for gain in gains if math.isfinite(gain)), row["goodput_gbps"])

    front = fronts.on_front([tuple(row["values"].values()) for row in rows])
    return max((row for row, is_on in zip(rows, front, strict=True) if is_on or not any(front)), key=rank)


def _table(rows: list[dict], objectives: list[str], searched: Mapping[str, Sequence[str]]) -> pa.Table:
    """A row for each trial; parameters have their types."""
    sampled = [row["settings"] for row in rows if row["mode"] is None]
    parameters = parameter_table(sampled, list(searched))
    modes = [row["mode"] for row in rows]
    if any(modes):
        schema = parameters.schema
        missing = pa.table([pa.nulls(len(rows) - len(sampled), field.type) for field in schema], schema)
        parameters = pa.concat_tables([parameters, missing]).combine_chunks().append_column("mode", pa.array(modes))
    columns: dict[str, object] = {}
    if len(objectives) == 1:
        columns["value"] = [row["values"][objectives[0]] for row in rows]
    else:
        columns |= {name: [row["values"][name] for row in rows] for name in objectives}
        columns["on_front"] = fronts.on_front([tuple(row["values"].values()) for row in rows])
    columns |= {key: [row[key] for row in rows] for key in ("goodput_gbps", "point")}
    for name, values in columns.items():
        parameters = parameters.append_column(name, pa.array(values))
    return parameters


@dataclass
class _Search:
    scenario: str
    objectives: dict[str, Objective]
    space: dict[str, list[str]]
    fixed: dict[str, object]
    run_point: Callable[[Point], dict]
    jobs: int | None
    least_gbps: float = 0.0  # what a point has to deliver
    harm: Harm | None = None  # what it may cost

    def default_values(self) -> dict:
        """The summary of the run that all others are measured against."""
        summary = self.summary({})
        self.outcome(summary)  # refuses a summary that lacks what an objective needs
        self.least_gbps, self.harm = FLOOR * goodput_gbps(summary), Harm.of(summary)
        return summary

    def point(self, choice: Mapping[str, object]) -> Point:
        return Point.of(self.scenario, {**self.fixed, **choice})

    def summary(self, choice: Mapping[str, object]) -> dict:
        return self.run_point(self.point(choice))

    def outcome(self, summary: dict, least_gbps: float = 0.0, most: Harm | None = None) -> Outcome:
        """The objectives and the goodput; those with a floor are infinite below it, and all if the run costs more than
        `most`."""
        delivered = goodput_gbps(summary)
        values = {name: one.value(summary) for name, one in self.objectives.items()}
        below = {name for name, one in self.objectives.items() if one.has_floor and delivered < least_gbps}
        harm = Harm.of(summary)
        if most is not None and harm.beyond(most):
            below = set(values)
        return Outcome({name: math.inf if name in below else value for name, value in values.items()}, delivered, harm)

    def run(self, trials: int, seed: int, bar: tqdm) -> list[dict]:
        import optuna  # takes a second, which `import penstock` should not

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        directions = [optuna.study.StudyDirection.MINIMIZE] * len(self.objectives)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), directions=directions)
        rows: list[dict] = []
        with ThreadPoolExecutor(self.jobs or os.cpu_count()) as pool:
            while len(rows) < trials:
                requested = [study.ask() for _ in range(min(ROUND, trials - len(rows)))]
                choices = [
                    {key: t.suggest_categorical(key, values) for key, values in self.space.items()} for t in requested
                ]
                # A round may propose a point twice; two processes must not share its folder.
                points = [self.point(choice) for choice in choices]
                first = dict(zip(reversed(points), reversed(choices), strict=True))
                found = {point: pool.submit(self.summary, choice) for point, choice in first.items()}
                for trial, choice, point in zip(requested, choices, points, strict=True):
                    row = self.row(choice, found[point].result())
                    study.tell(trial, list(row["values"].values()))
                    rows.append(row)
                    bar.update()
        return rows

    def row(self, choice: Mapping[str, str], summary: dict, mode: str | None = None) -> dict:
        """A trial as `_table` takes it."""
        outcome = self.outcome(summary, self.least_gbps, self.harm)
        found = {"settings": dict(choice), "values": outcome.values, "goodput_gbps": outcome.goodput_gbps}
        return {**found, "point": self.point(choice).name, "mode": mode}

    def modes(self, bar: tqdm) -> list[dict]:
        """The runs of `MODES`, without those that set what is fixed, and those that `penstock run` refuses (boards of
        gateware are not pulled)."""

        def is_free(key: str) -> bool:
            return not any(fixed == key or fixed.startswith(f"{key}.") for fixed in self.fixed)

        rows = []
        for name, choice in MODES.items():
            if all(map(is_free, choice)):
                try:
                    rows.append(self.row(choice, self.summary(choice), name))
                except RunError as error:
                    if error.status != REFUSED:
                        raise
                bar.update()
        return rows

    def verify(self, choice: Mapping[str, str], seed: int, bar: tqdm) -> Verification:
        """The choice and the scenario's own values, each over seeds that the search has not seen."""
        seeds = [seed + n for n in range(1, SEEDS + 1)]
        bar.total += 2 * SEEDS
        bar.refresh()

        def one(setting: Mapping[str, object]) -> dict:
            summary = self.summary(setting)
            bar.update()
            return summary

        with ThreadPoolExecutor(self.jobs or os.cpu_count()) as pool:
            own = [pool.submit(one, {"run.seed": other}) for other in seeds]
            again = [pool.submit(one, {**choice, "run.seed": other}) for other in seeds]
            pairs = []
            for number, base, winner in zip(seeds, own, again, strict=True):
                measured = self.outcome(base.result())
                floor = FLOOR * measured.goodput_gbps
                pairs.append(SeedPair(number, measured, self.outcome(winner.result(), floor)))
        return Verification(tuple(pairs))


def _is_network(file: str) -> bool:
    """Whether `run.kind` says so; what is no TOML is left to the reader of scenarios to refuse."""
    try:
        run = tomllib.loads(Path(file).read_text(encoding="utf-8-sig")).get("run", {})
    except ValueError:
        return True
    return not isinstance(run, dict) or run.get("kind", "network") == "network"


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit status is that of `reporting.report`."""
    sets = "one value sets a key in every run; several are searched, instead of the default space"
    parser = parser_of("tune", "Look for congestion-control parameters.", sets=sets, out="out/tune")
    meanings = "; ".join(f"{name}: {objective.meaning}" for name, objective in OBJECTIVES.items())
    parser.add_argument(
        "--objective",
        default="fairness",
        metavar="NAME[,NAME...]",
        help=f"to be made small; several are searched together. {meanings}".replace("%", "%%"),
    )
    parser.add_argument("--trials", type=int, default=40, help="runs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the search (default: %(default)s)")
    given = parser.parse_args(arguments)

    def work() -> str:
        values = parse_sets(given.set)
        options = {name: getattr(given, name) for name in ("objective", "trials", "seed", "out", "jobs", "overwrite")}
        best = tune(
            given.scenario,
            space={key: several for key, several in values.items() if len(several) > 1} or None,
            fixed={key: one[0] for key, one in values.items() if len(one) == 1},
            progress=not (given.quiet or given.json),
            **options,
        )
        files = {"table": f"{given.out}/tune.parquet", "best": f"{given.out}/best.toml"}
        if len(best.values) > 1:
            files["front"] = f"{given.out}/front.png"
        if given.json:
            content = {"scenario": given.scenario, "objective": given.objective, **files, **_found(best)}
            return as_json("tune", content)
        sections = [Path(files["best"]).read_text().rstrip("\n"), best.verdict()]
        if len(best.values) > 1:
            sections.insert(0, _front_table(best))
        return "\n".join([*sections, f"{best.trials.num_rows} trials: {', '.join(files.values())}"])

    return report("tune", work)


def _found(best: Best) -> dict:
    """For JSON."""
    found = {"value": best.value, "settings": best.settings, "point": best.point, "trials": best.trials.to_pylist()}
    found |= {"baseline": best.baseline, "values": best.values, "own": best.own, "ties": best.ties}
    found |= {"goodput_gbps": best.goodput_gbps, "own_goodput_gbps": best.own_goodput_gbps}
    found |= {"is_better": best.is_better, "is_recommended": best.is_recommended}
    checked = best.verification
    found["other_seeds"] = [pair.row() for pair in checked.pairs] if checked else []
    found["harm"] = checked.harm if checked else None
    found["gain_percent"] = {name: vars(spread) for name, spread in checked.gains().items()} if checked else {}
    return found


def _front_table(best: Best) -> str:
    """The trials of the front, by the first objective."""
    rows = [row for row in best.trials.to_pylist() if row["on_front"]]
    rows.sort(key=lambda row: [row[name] for name in best.values])
    apart = {*best.values, "goodput_gbps", "on_front", "point"}
    names = [*best.values, "goodput_gbps", *(name for name in best.trials.column_names if name not in apart)]
    distinct = {tuple(row[name] for name in names): row for row in rows}
    return as_table(names, [list(key) for key in distinct])
