# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario over a grid of parameters: `penstock sweep scenario.toml --set cc.g=1/64,1/256 --set run.seed=1,2,3`.

    table = penstock.sweep("scenarios/advcam-5.toml", {"cc.g": ["1/64", "1/256"], "run.seed": range(3)})

Every point is a separate process, on this machine (`jobs` at a time) or on a Dask cluster (`dask="tcp://..."`), whose
workers must see the same folders. Finished points are kept under `out`, so an interrupted sweep can continue.

Two tables are written, with one column for each parameter, named as its key: numbers are numbers, quantities in the
unit that the column's metadata names, all else is text as it was given.

| file | a row is | columns in addition to the parameters |
|---|---|---|
| `sweep.parquet` | a point | `point` (its folder), the numbers of the top level and of `events`, totals of `switches` |
| `sweep_flows.parquet` | a flow of a point | `point`, `flow`, and the numbers of the flow's entry |
"""

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pyarrow as pa
from tqdm import tqdm

from penstock.lab import Scenario
from penstock.points import Point, Results, RunError, as_text, check_jobs
from penstock.quantities import column as typed_column
from penstock.reporting import as_json, as_table, parser_of, report

SCHEDULER_S = 5  # after which a scheduler that does not answer is given up


def grid(scenario: str, parameters: Mapping[str, Sequence]) -> list[Point]:
    """Every combination, the last parameter changing fastest. ValueError names a parameter without values, or with one
    that is there twice.
    """
    for key, values in parameters.items():
        if len(values) == 0:
            raise ValueError(f"parameter {key!r} has no values; give at least one")
        texts = [as_text(value) for value in values]
        if twice := [text for n, text in enumerate(texts) if text in texts[:n]]:
            raise ValueError(f"parameter {key!r} has the value {twice[0]} twice; give each once")
    combinations = itertools.product(*parameters.values())
    scenario = os.path.abspath(scenario)
    return [Point.of(scenario, dict(zip(parameters, values, strict=True))) for values in combinations]


def sweep(
    scenario: Scenario | str | os.PathLike | Mapping,
    parameters: Mapping[str, Iterable],
    *,
    out: str | os.PathLike = "out/sweep",
    jobs: int | None = None,
    dask: str | None = None,
    keep: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> pa.Table:
    """Runs the scenario at every point of the grid and returns `sweep.parquet` as a table, in the order of the grid.

    `scenario` is a file, a mapping, or a `penstock.Scenario` (one that is no file is written to `out`/scenario.toml;
    files that it names are then looked for there). `parameters` maps keys of the scenario ("cc.g", "switch.kmin",
    "flow.0.start") to their values; one value is a setting, several are a dimension. `jobs` processes run at a time
    (default: one for each core); with `dask`, the address of a scheduler, the cluster decides. `keep` leaves the traces
    of every point. ValueError if `out` has the tables of another scenario and `overwrite` is not set; RunError at the
    first point that is refused, with its message; points that are done stay done.
    """
    check_jobs(jobs)
    if not isinstance(parameters, Mapping):
        raise TypeError(f'parameters = {parameters!r}: give a mapping, as in {{"cc.g": ["1/64", "1/256"]}}')
    lists = {key: several(values) for key, values in parameters.items()}
    results = Results.at(out)
    file, sets = scenario_file(scenario, results.folder)
    if not overwrite:
        results.refuse_foreign("sweep.parquet", file)
    lists = {**{key: [value] for key, value in sets.items()}, **lists}
    points = grid(file, lists)
    summaries: dict[Point, dict] = {}
    run = results.runner(keep)
    runs = _on_cluster(points, run, dask) if dask else _here(points, run, jobs)
    with tqdm(total=len(points), unit="run", disable=None if progress else True) as bar:
        for point, summary in runs:
            summaries[point] = summary
            bar.update()
    return _write(results, points, [summaries[point] for point in points])


def several(values: object) -> list:
    """The values of a parameter; a single value counts as a list of one."""
    if isinstance(values, str | os.PathLike | Mapping) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def scenario_file(scenario: Scenario | str | os.PathLike | Mapping, folder: Path) -> tuple[str, dict[str, str]]:
    """A scenario as a file, and what is set in it: points are processes. FileNotFoundError names a missing file."""
    if isinstance(scenario, Mapping):
        scenario = Scenario(scenario)
    if not isinstance(scenario, Scenario):
        if not Path(scenario).is_file():
            raise FileNotFoundError(f"{os.fspath(scenario)}: no such scenario file")
        return os.fspath(scenario), {}
    file = scenario.path
    if not file.is_file():
        file = folder / "scenario.toml"
        file.write_text(scenario.text, encoding="utf-8")
    return os.fspath(file), scenario.sets


def _here(points: list[Point], run: Callable[[Point], dict], jobs: int | None) -> Iterator[tuple[Point, dict]]:
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:  # threads that wait for processes
        futures = {pool.submit(run, point): point for point in points}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _on_cluster(points: list[Point], run: Callable[[Point], dict], address: str) -> Iterator[tuple[Point, dict]]:
    from distributed import Client
    from distributed import as_completed as cluster_completed

    print(f"waiting for the scheduler at {address}, {SCHEDULER_S} s at most", file=sys.stderr, flush=True)
    try:
        client = Client(address, timeout=SCHEDULER_S)
    except (OSError, ValueError) as error:
        what = str(error) or "no answer"
        raise ValueError(f"dask {address}: {what}; give a running scheduler's address, as tcp://HOST:8786") from None
    with client:
        futures = {client.submit(run, point, pure=False): point for point in points}
        for future in cluster_completed(list(futures)):
            try:
                summary = future.result()
            except (RunError, OSError):
                raise
            except Exception as error:
                needed = "scheduler and workers need this package on their path, and its requirements"
                raise RunError(f"dask {address}: {error}\n  {needed} (docs/sweeps.md)") from error
            yield futures[future], summary


def scalars(entry: Mapping, prefix: str = "") -> dict[str, object]:
    """The numbers, words and truths of an entry of the summary, nested ones as `outer.inner`; lists are left out."""
    flat = {}
    for key, value in entry.items():
        if isinstance(value, Mapping):
            flat.update(scalars(value, f"{prefix}{key}."))
        elif value is None or isinstance(value, str | int | float | bool):
            flat[prefix + key] = value
    return flat


# What the terminal shows of a point; sweep.parquet has more.
SHOWN = (
    "aggregate_gbps",
    "jain",
    "mct_us.p99",
    "events.complete",
    "events.triggered",
    "events.p99_us",
    "switches.peak_queue_bytes",
    "switches.mean_queue_bytes",
    "switches.dropped",
    "links.paused_s",
    "end",
)

# Of the summary's top level these are not results of the simulation.
NOT_RESULTS = ("schema", "scenario", "settings", "timing")


def ports(summary: Mapping) -> list[dict]:
    """The ports of all switches of a laboratory's summary."""
    return [port for switch in summary["switches"] for port in switch["ports"]]


def of_switches(summary: Mapping) -> dict[str, int | float]:
    """What switches and pauses of a laboratory did, all together; nothing for a run of another kind."""
    if summary.get("kind") != "lab":
        return {}
    causes = ("dropped_buffer", "dropped_threshold", "dropped_headroom")
    return {
        "switches.dropped": sum(switch[cause] for switch in summary["switches"] for cause in causes),
        "switches.ecn_marked": sum(port["ecn_marked"] for port in ports(summary)),
        "switches.pauses": sum(port["pauses_sent"] for port in ports(summary)),
        "links.paused_s": sum((paused for link in summary["links"] for paused in link["paused_s"]), 0.0),
        "switches.mean_queue_bytes": max((port["mean_queue_bytes"] for port in ports(summary)), default=0.0),
        "switches.peak_queue_bytes": max((port["peak_queue_bytes"] for port in ports(summary)), default=0),
    }


def _write(results: Results, points: list[Point], summaries: list[dict]) -> pa.Table:
    rows, flows, of_flows = [], [], []
    names = [key for key, _ in points[0].settings]
    for point, summary in zip(points, summaries, strict=True):
        head = {"point": point.name}
        of_run = scalars({key: value for key, value in summary.items() if key not in NOT_RESULTS})
        rows.append({**head, **of_run, **of_switches(summary)})
        for flow in summary.get("flows", []):
            of_flows.append(dict(point.settings))
            flows.append({**head, "flow": flow["name"], **scalars({k: v for k, v in flow.items() if k != "name"})})
    table = _joined(parameter_table([dict(point.settings) for point in points], names), _table(rows))
    flow_table = _joined(parameter_table(of_flows, names), _table(flows))
    for name, content in (("sweep.parquet", table), ("sweep_flows.parquet", flow_table)):
        results.write(name, content, points[0].scenario)
    return table


def _table(rows: list[dict]) -> pa.Table:
    """Columns in the order in which the rows name them; what a row lacks is null."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def parameter_table(choices: Sequence[Mapping[str, str]], names: Sequence[str]) -> pa.Table:
    """A column for each parameter, with its type; the unit of a quantity is in the field's metadata."""
    arrays, fields = [], []
    for name in names:
        array, unit = typed_column([choice[name] for choice in choices])
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"unit": unit} if unit else None))
    return pa.table(arrays, schema=pa.schema(fields))


def _joined(left: pa.Table, right: pa.Table) -> pa.Table:
    """The columns of both; a result that is named as a parameter gives way to it."""
    if left.num_columns == 0:  # without parameters: a table of no columns has no rows that others could join
        return right
    for field in right.schema:
        if field.name not in left.column_names:
            left = left.append_column(field, right[field.name])
    return left


def overview(table: pa.Table, parameters: Mapping[str, Sequence]) -> str:
    """The table of a sweep for the terminal: what was varied, and what each point gave."""
    varied = [key for key, values in parameters.items() if len(values) > 1]
    results = [name for name in SHOWN if name in table.column_names and table[name].null_count < table.num_rows]
    rows = [[n, *(row[name] for name in varied + results)] for n, row in enumerate(table.to_pylist())]
    units = {name: table.schema.field(name).metadata or {} for name in varied}
    heads = [f"{name} [{unit.decode()}]" if (unit := units[name].get(b"unit")) else name for name in varied]
    return as_table(["#", *heads, *results], rows)


def _column(values: list) -> pa.Array:
    """Whole numbers among fractions become fractions; anything else mixed becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) == 2:
        values = [None if value is None else float(value) for value in values]
    elif len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)


def parse_sets(options: Sequence[str]) -> dict[str, list[str]]:
    """`key=a,b,c` as a dimension; a comma inside quotes or brackets separates nothing. ValueError shows the form."""
    parameters: dict[str, list[str]] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"--set {option}: write --set section.key=value or --set section.key=value,value,...")
        if key.strip() in parameters:
            both = ",".join([*parameters[key.strip()], text.strip()])
            raise ValueError(f"--set {key.strip()} is there twice; to try several values write {key.strip()}={both}")
        parameters[key.strip()] = [value.strip() for value in split_values(text)]
    return parameters


def split_values(text: str) -> list[str]:
    """At commas outside of quotes and brackets."""
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            values.append("")
            continue
        values[-1] += letter
    return values


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit status is that of `reporting.report`."""
    sets = "one value sets a key, several sweep it"
    parser = parser_of("sweep", "Run a scenario over a grid of parameters.", sets=sets, out="out/sweep")
    parser.add_argument("--dask", metavar="tcp://HOST:PORT", help="scheduler of a Dask cluster")
    parser.add_argument("--keep", action="store_true", help="keep the traces of every point")
    given = parser.parse_args(arguments)

    def work() -> str:
        parameters = parse_sets(given.set)
        options = {name: getattr(given, name) for name in ("out", "jobs", "dask", "keep", "overwrite")}
        table = sweep(given.scenario, parameters, progress=not (given.quiet or given.json), **options)
        files = {"table": f"{given.out}/sweep.parquet", "flows": f"{given.out}/sweep_flows.parquet"}
        if given.json:
            content = {"scenario": given.scenario, "parameters": parameters, **files, "points": table.to_pylist()}
            return as_json("sweep", content)
        count = "1 point" if table.num_rows == 1 else f"{table.num_rows} points"
        return f"{overview(table, parameters)}\n{count}: {files['table']}, {files['flows']}"

    return report("sweep", work)
