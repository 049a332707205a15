# SPDX-License-Identifier: Apache-2.0
"""Figures of the papers from the scenarios of the same names: `penstock figures [NAMES...]`, or `python -m figures`
in the root of the repository (installed: in `share/penstock`) with `python/` on `PYTHONPATH`.

`penstock run` runs the scenario of each figure into OUT/NAME; the plot in OUT/NAME.png includes the paper's numbers.
Prints one table of all numbers; `--docs` writes them into docs/measured/figures.json, a table for each figure, and
`--check` compares them with that file. docs/results.md and docs/congestion-control.md show its tables.
`--sampled FOLDER` draws AdvCam 12 to 14 of boards that `penstock ctl sample` has read.
Numbers: AdvCam, FEROCE, CEPC, QCN, CMS-TCP. `disorder`, `push`, `scale`, `shallow` and `stability` are our own figures;
`disorder` and `scale` have tables of their cases, too, and of other simulators' results.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.drawing import save, styled
from penstock.points import out_folder
from penstock.reporting import add_json_option, as_json, print_result
from penstock.results import Run

from figures import (
    advcam,
    cms_tcp,
    demo,
    disorder,
    disorder_peers,
    feroce,
    latency,
    measured,
    meters,
    peers,
    push,
    qcn,
    sampled,
    scale,
    stability,
)
from figures.comparison import Compared, Drawn

REPOSITORY = Path(__file__).resolve().parents[1]
Drawing = Callable[[list[Run]], Drawn]


@dataclass(frozen=True)
class Job:
    """One run of a scenario: `folder` below the output folder, what `--set` changes."""

    folder: str
    scenario: str
    settings: tuple[str, ...] = ()

    def command(self, binary: str, out: str) -> list[str]:
        changes = [word for setting in self.settings for word in ("--set", setting)]
        return [binary, "run", f"scenarios/{self.scenario}.toml", *changes, "--out", f"{out}/{self.folder}"]


@dataclass(frozen=True)
class Figure:
    """A figure: its runs, and what draws them and compares the numbers."""

    jobs: tuple[Job, ...]
    draw: Drawing


def _one(scenario: str, draw: Drawing) -> Figure:
    return Figure((Job(scenario, scenario),), draw)


def _cases(scenario: str, draw: Drawing, cases: dict[str, tuple[str, ...]]) -> Figure:
    """A run for each case: what its folder is called by, and the keys it sets."""
    return Figure(tuple(Job(f"{scenario}-{name}", scenario, keys) for name, keys in cases.items()), draw)


def _seeds(scenario: str, draw: Drawing, seeds: int) -> Figure:
    jobs = (Job(f"{scenario}-seed{seed}", scenario, (f"run.seed={seed}",)) for seed in range(1, seeds + 1))
    return Figure(tuple(jobs), draw)


FIGURES = {
    "advcam-4": _one("advcam-4", advcam.parking_lot),
    "advcam-5": Figure(
        (*_seeds("advcam-5", advcam.fair_share, 5).jobs, Job("advcam-5-ns3", "advcam-5", advcam.NS3_RULES)),
        advcam.fair_share,
    ),
    "advcam-6": _one("advcam-6", advcam.one_sender),
    "advcam-9": _one("advcam-9-network", advcam.emulated_switch),
    "advcam-9-rules": _cases(
        "advcam-9-network", advcam.rules, {f"rule{n}": keys for n, keys in enumerate(advcam.RULES.values())}
    ),
    "advcam-11": _one("advcam-11", advcam.on_off),
    "advcam-12": _one("advcam-12", advcam.plateaus),
    "advcam-13": Figure(
        (Job("advcam-13", "advcam-13"), Job("advcam-13-module", "advcam-13", advcam.MODULE_RULES)), advcam.saw_tooth
    ),
    "advcam-14": _one("advcam-14", advcam.limiter),
    "qcn-1-100us": _seeds("qcn-1-100us", qcn.recovery(179.0), 8),
    "qcn-1-100us-pause": _seeds("qcn-1-100us-pause", qcn.recovery(165.0), 8),
    "qcn-8-500us": _one("qcn-8-500us", qcn.recovery(None)),
    "qcn-8-500us-pause": _one("qcn-8-500us-pause", qcn.recovery(None)),
    "qcn-panels": Figure(tuple(Job(*qcn.panel_job(*panel)) for panel in qcn.PANELS), qcn.panels),
    "qcn-tcp": _cases("qcn-tcp", qcn.tcp, qcn.tcp_cases(sources=1)),
    "qcn-tcp-2": _cases("qcn-tcp", qcn.tcp, qcn.tcp_cases(sources=2)),
    "qcn-tcp-queue": _cases("qcn-tcp", qcn.limiter_queues, {f"queue-{n}": k for n, k in qcn.LIMITER_QUEUES.items()}),
    "feroce": Figure(tuple(Job(*job) for job in feroce.JOBS), feroce.draw),
    "meters": Figure(tuple(Job(*job) for job in meters.JOBS), meters.draw),
    "cepc-latency": _cases(
        "feroce-1",
        latency.draw,
        {f"{of.lower().replace(' ', '-')}-{size}-alone": latency.settings(of, size) for of, size in latency.POINTS},
    ),
    "cms-tcp-1": _one("cms-daq", cms_tcp.merged),
    "cms-tcp-3": _cases(
        "cms-tcp-3",
        cms_tcp.fragment_sizes,
        {f"{stack}-{size}": cms_tcp.size_settings(stack, size) for stack in cms_tcp.STACKS for size in cms_tcp.SIZES},
    ),
    "cms-tcp-5": _cases("cms-tcp-5", cms_tcp.collapse, cms_tcp.EMULATORS),
    "cms-tcp-6": _one("cms-tcp-6", cms_tcp.recovers),
    "cms-tcp-stall": _cases("cms-tcp-stall", cms_tcp.stalled, cms_tcp.STALLED),
    "disorder": Figure(tuple(Job(*job) for job in disorder.jobs()), disorder.draw),
    "push": Figure(tuple(Job(*job) for job in push.jobs()), push.draw),
    "scale": Figure(tuple(Job(*job) for job in scale.jobs()), scale.draw),
    "shallow": _cases("incast-3", demo.shallow, demo.CASES),
    "stability": Figure(tuple(Job(*job) for job in stability.jobs()), stability.draw),
}


class RunFailed(Exception):
    """`penstock run` refused a scenario or did not start; the text says why."""


def simulate(job: Job, binary: str, out: Path) -> Run:
    """Runs the job; raises `RunFailed` with what `penstock run` said. Status 1 (such as loss) is a result."""
    command = job.command(binary, str(out))
    try:
        result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunFailed(
            f"{binary}: {error.strerror}; build it with `make build`, or say where it is in PENSTOCK"
        ) from error
    if result.returncode not in (0, 1) or not (out / job.folder / "summary.json").exists():
        raise RunFailed(f"{' '.join(command)}: exit status {result.returncode}\n{result.stderr.strip()}")
    return Run(out / job.folder)


# Figures of boards that only a build with `all-tops` has: drawn when they are named.
ALL_TOPS = ("meters",)
# Figures with a measurement of this machine, which is drawn when nothing else runs any more.
MEASURED = ("cms-tcp-3",)


@styled
def draw(name: str, runs: list[Run], out: Path) -> list[Compared]:
    """Draws and compares one figure of its runs."""
    picture, compared = FIGURES[name].draw(runs)
    save(picture, out / f"{name}.png")
    print(f"{name}: {out / name}.png", file=sys.stderr)
    return compared


def make(names: list[str], binary: str, out: Path) -> tuple[list[tuple[str, Compared]], dict[Job, Run]]:
    """Runs, draws and compares figures, as many runs at a time as there are cores; those that figures share run once.

    Returns the figures' rows in order, and all runs. Raises `RunFailed` for the first run that does.
    """
    jobs = list(dict.fromkeys(job for name in names for job in FIGURES[name].jobs))
    compared: dict[str, list[Compared]] = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = {job: pool.submit(simulate, job, binary, out) for job in jobs}
        try:
            for name in names:
                mine = [runs[job].result() for job in FIGURES[name].jobs]
                if name not in MEASURED:
                    compared[name] = draw(name, mine, out)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    done = {job: run.result() for job, run in runs.items()}
    for name in set(names) & set(MEASURED):
        compared[name] = draw(name, [done[job] for job in FIGURES[name].jobs], out)
    return [(name, row) for name in names for row in compared[name]], done


@styled
def make_sampled(name: str, of: sampled.Sampled, out: Path) -> list[Compared]:
    """Draws and compares one figure of sampled boards."""
    picture, compared = sampled.FIGURES[name](of)
    save(picture, out / f"{name}.png")
    return compared


def table(rows: list[tuple[str, Compared]], options: str = "") -> str:
    """The comparison as a Markdown table; `options` are those of the command, from a space on."""
    return measured.markdown(
        [{"figure": name, **row.cells(), "command": f"`penstock figures {name}{options}`"} for name, row in rows]
    )


def report(rows: list[tuple[str, Compared]], out: Path) -> list[dict[str, object]]:
    """The comparison as `--json` has it: for each figure its picture and its quantities."""
    names = dict.fromkeys(name for name, _ in rows)
    quantities = {name: [row.entry() for of, row in rows if of == name] for name in names}
    return [{"figure": name, "picture": str(out / f"{name}.png"), "quantities": quantities[name]} for name in names]


# Of these figures also a table of cases.
CASES: dict[str, Callable[[list[Run]], list[measured.Row]]] = {"disorder": disorder.rows, "scale": scale.rows}


def tables(rows: list[tuple[str, Compared]], done: Mapping[Job, Run]) -> dict[str, list[measured.Row]]:
    """Those of docs/measured/figures.json: one for each figure, those of cases, and other simulators' results."""
    found: dict[str, list[measured.Row]] = {}
    for name, row in rows:
        found.setdefault(name, []).append(row.cells())
    for name in [name for name in CASES if name in found]:
        found[f"{name} cases"] = CASES[name]([done[job] for job in FIGURES[name].jobs])
    if "disorder" in found:
        found["disorder peers"] = disorder.peer_rows(disorder_peers.read())
    if "scale" in found:
        found["scale peers"] = peers.rows(peers.read())
    return found


def differences(
    made: Mapping[str, Sequence[measured.Row]],
    written: Mapping[str, Sequence[measured.Row]],
    of_machine: set[tuple[str, str]],
) -> list[str]:
    """Rows that only the file (-) or only the tables made (+) have.

    Those of the figures and quantities `of_machine` are not compared: every machine has its own.
    """
    other = []
    for name, rows in made.items():
        before, after = (
            [row for row in side if (name, row.get("quantity")) not in of_machine]
            for side in (written.get(name, []), rows)
        )
        other += [f"- {name}{_cells(row)}" for row in before if row not in after]
        other += [f"+ {name}{_cells(row)}" for row in after if row not in before]
    return other


def _cells(row: measured.Row) -> str:
    return "".join(f" | {'' if cell is None else cell}" for cell in row.values())


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="penstock figures", description="Draw figures of the papers and compare numbers.", allow_abbrev=False
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"without any all but {', '.join(ALL_TOPS)}: {', '.join(FIGURES)}"
    )
    parser.add_argument("--out", type=Path, default=Path("out/figures"), help="folder (default: out/figures)")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/measured")
    parser.add_argument("--check", action="store_true", help="exit status 1 if docs/measured has other numbers")
    parser.add_argument(
        "--sampled", metavar="FOLDER", help=f"draw {', '.join(sampled.FIGURES)} of a folder of `penstock ctl sample`"
    )
    parser.add_argument("--board", metavar="ADDRESS", help="of --sampled: the board of figures 13 and 14 [the first]")
    parser.add_argument("--queue-pair", type=int, metavar="N", help="of --sampled [the first]")
    add_json_option(parser)
    arguments = parser.parse_args(words)
    there = FIGURES if arguments.sampled is None else sampled.FIGURES
    unknown = [name for name in arguments.names if name not in there]
    if unknown:
        parser.error(f"{', '.join(unknown)}: no such figure; there are {', '.join(there)}")
    if arguments.sampled is None and (arguments.board or arguments.queue_pair is not None):
        parser.error("--board and --queue-pair are of sampled boards: name their folder by --sampled")
    if arguments.sampled is not None and (arguments.docs or arguments.check):
        parser.error("--docs and --check are of the scenarios' figures, and not of --sampled")
    if (arguments.docs or arguments.check) and not measured.FIGURES.exists():
        parser.error(f"--docs and --check need the pages of a clone of the repository; {REPOSITORY} is installed")
    return arguments


def _draw_sampled(arguments: argparse.Namespace, out: Path) -> int:
    """The figures of a folder of sampled boards; returns the exit status."""
    try:
        of = sampled.opened(arguments.sampled, arguments.board, arguments.queue_pair)
    except ValueError as error:
        print(f"penstock figures: {error}", file=sys.stderr)
        return 2
    rows = []
    for name in arguments.names or sampled.FIGURES:
        rows += [(name, row) for row in make_sampled(name, of, out)]
        print(f"{name}: {out / name}.png", file=sys.stderr)
    options = f" --sampled {shlex.quote(arguments.sampled)}"
    return print_result(as_json("figures", {"figures": report(rows, out)}) if arguments.json else table(rows, options))


def main(words: list[str] | None = None) -> int:
    """The command with these arguments, else those of the process; returns the exit status."""
    arguments = _arguments(words)
    binary = os.environ.get("PENSTOCK") or str(REPOSITORY / "target/release/penstock")
    try:
        out = out_folder(arguments.out).resolve()
    except OSError as error:
        print(f"penstock figures: {error}", file=sys.stderr)
        return 2
    if arguments.sampled is not None:
        return _draw_sampled(arguments, out)
    try:
        rows, done = make(arguments.names or [name for name in FIGURES if name not in ALL_TOPS], binary, out)
    except RunFailed as error:
        print(f"penstock figures: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("penstock figures: interrupted", file=sys.stderr)
        return 130
    made = tables(rows, done)
    of_machine = {(name, row.quantity) for name, row in rows if row.of_machine}
    if arguments.check and (other := differences(made, measured.read(measured.FIGURES), of_machine)):
        print("\n".join(["docs/measured has other numbers (-) than these figures (+):", *other]), file=sys.stderr)
        return 1
    if arguments.docs:
        measured.replace(made, measured.FIGURES)
    cases = [measured.markdown(made[f"{name} cases"]) for name in CASES if f"{name} cases" in made]
    text = "\n".join([table(rows), *cases]).rstrip("\n")
    return print_result(as_json("figures", {"figures": report(rows, out)}) if arguments.json else text)


if __name__ == "__main__":
    sys.exit(main())
