# SPDX-License-Identifier: Apache-2.0
"""From 3 to 265 boards, 1 to 100 Gb/s: the results of profile "penstock" and of other settings, case by case.

A case passes if: no frame is dropped; no pause occurs; and, once the boards have begun, 97 % of the line or more
delivered, the queue's 99th percentile below 250 kB up to 10 Gb/s and 1 MB at 100 Gb/s (in proportion between), and
Jain's index of 0.98 or more over windows in which a fair share is 50 packets. With triggers: every event whole, and the
99th percentile of their completion within 1.5 times that of boards without a limiter in front of a buffer without end.
Without PFC: 95 % of the line, no board lost.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc
from penstock.drawing import panels
from penstock.results import Run

from figures import peers
from figures.comparison import Compared, Drawn, jain
from figures.measured import Row

PACKET_BITS = 8 * (4096 + 90)  # on the wire
WINDOW_PACKETS = 50
TRACE = ("trace.interval=200us", 'trace.metrics=["throughput_bps", "queue_bytes"]')


@dataclass(frozen=True)
class Case:
    """A network and its load: `boards` into one line of `line_gbps`; what `--set` changes; when all have begun; and why
    it may miss its goal."""

    name: str
    boards: int
    line_gbps: float
    settings: tuple[str, ...] = ()
    scenario: str = "incast-64"
    lossless: bool = True
    misses: str = ""
    settled_ms: float = 2.0

    @property
    def triggered(self) -> bool:
        """Events drive it."""
        return self.scenario == "triggers-265"

    @property
    def share_bps(self) -> float:
        """What one board gets of the line if all send at once."""
        return 1e9 * self.line_gbps / self.boards


def _star(
    boards: int,
    line: float,
    name: str = "",
    *settings: str,
    misses: str = "",
    lossless: bool = True,
    settled_ms: float = 2.0,
) -> Case:
    """Boards that have as fast a link as the server, and send 100 KB messages without end."""
    words = f"{boards} x {line:g}G" + (f", {name}" if name else "")
    keys = (f"topology.boards={boards}", f"link.rate={line:g}Gbps", *settings)
    return Case(words, boards, line, keys, lossless=lossless, misses=misses, settled_ms=settled_ms)


def _lossy(boards: int, line: float, preset: str) -> Case:
    keys = (
        f"switch.preset={preset}",
        "switch.pfc=false",
        "switch.kmin=5KB",
        "switch.kmax=200KB",
        "switch.pmax=1.0",
        "switch.ecn=true",
    )
    return _star(boards, line, f"{preset} without PFC", *keys, "switch.ecn_rate=10Gbps", lossless=False)


def _triggers(boards: int, line: float, rate: str, fragment: int, kind: str, *settings: str) -> Case:
    words = f"{boards} boards into {line:g}G, {kind} {rate}, {fragment} B"
    network = (f"topology.boards={boards}", f"link.server.rate={line:g}Gbps", *settings)
    keys = (*network, f"triggers.kind={kind}", f"triggers.rate={rate}", f"triggers.fragment={fragment}B")
    return Case(words, boards, line, keys, "triggers-265")


CASES = (
    _star(3, 10),
    _star(16, 10),
    _star(64, 10),
    _star(256, 10, "1 s", "run.time_limit=1s"),
    _star(8, 1),
    _star(64, 1, "1 s", "run.time_limit=1s"),
    _star(16, 25),
    _star(128, 25),
    _star(16, 100),
    _star(64, 100),
    _star(256, 100),
    _star(3, 10, "50 us a link", "link.delay=50us"),
    _star(64, 10, "50 us a link", "link.delay=50us"),
    _star(256, 100, "50 us a link", "link.delay=50us"),
    Case("256 x 10G behind 8 leaves into 100G", 256, 100, scenario="incast-tree-256"),
    _star(16, 10, "verilated gateware, 8 ms", "flow.0.sender=gateware", "run.time_limit=8ms"),
    _star(64, 10, "CNPs every 4 us", "qp.cnp_interval=4us"),
    _star(64, 10, "one board after the other, 1 ms apart", "flow.0.stagger=1ms", settled_ms=65.0),
    _star(
        64, 10, "share said to be twice as much", "cc.share=312.5Mbps", misses="PFC carries what the shares overbook"
    ),
    _triggers(265, 100, "10kHz", 4150, "periodic"),
    _triggers(265, 100, "1kHz", 41500, "periodic"),
    _triggers(64, 10, "1kHz", 17190, "periodic"),
    _triggers(16, 100, "10kHz", 68760, "periodic", "link.rate=100Gbps"),
    _triggers(265, 100, "10kHz", 4150, "poisson"),
    _triggers(64, 10, "1kHz", 17190, "poisson"),
    _lossy(3, 10, "arista-7050s"),
    _lossy(64, 10, "arista-7050s"),
    _lossy(256, 10, "arista-7050x"),
    _lossy(128, 100, "mellanox-sn2700"),
)


@dataclass(frozen=True)
class Reached:
    """What a case came to: the part of the line that was delivered, the queue in bytes, completion of events against
    the ideal (None without triggers)."""

    line: float
    dropped: int
    paused_ms: float  # summed over the boards
    queue: float
    jain: float | None
    lost_boards: int
    events: float | None = None
    incomplete: int = 0
    missed: tuple[str, ...] = ()


def settings_of(case: Case) -> tuple[str, ...]:
    """All that `--set` changes for it."""
    return (*case.settings, *TRACE)


def ideal_settings(case: Case) -> tuple[str, ...]:
    """The same load without a limiter, with an unlimited buffer."""
    return (
        *case.settings,
        "cc.law=off",
        "switch.ecn=false",
        "switch.pfc=false",
        "switch.buffer=1GB",
        "trace.interval=0us",
    )


def matrix(run: Run, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """All series of a metric: times in ms, and values of shape (samples, series)."""
    if run.trace is None:
        raise ValueError(f"{run.folder} has no trace.parquet")
    rows = run.trace.filter((pc.field("metric") == metric) & (pc.field("node") != "network"))
    rows = rows.set_column(rows.schema.get_field_index("node"), "node", rows["node"].cast("string"))
    rows = rows.sort_by([("node", "ascending"), ("channel", "ascending"), ("time_ps", "ascending")])
    time = np.unique(rows["time_ps"].to_numpy()) / 1e9
    return time, rows["value"].to_numpy().reshape(-1, len(time)).T


def fairness(time: np.ndarray, rates: np.ndarray, case: Case) -> float | None:
    """Mean of Jain's index over windows of 50 packets of a fair share, once all send; None for less than one window.

    `time` in ms, `rates` of shape (samples, flows).
    """
    step = time[1] - time[0]
    each = max(1, round(1e3 * WINDOW_PACKETS * PACKET_BITS / case.share_bps / step))
    rates = rates[time > case.settled_ms]
    count = len(rates) // each
    if count == 0:
        return None
    windows = rates[: count * each].reshape(count, each, -1).mean(axis=1)
    return float(np.nanmean(jain(windows)))


def paused_s(run: Run) -> float:
    """For how long its switches held their neighbours, in sum."""
    return sum(port["pausing_s"] for switch in run.summary["switches"] for port in switch["ports"])


def reached(case: Case, run: Run, ideal: Run | None) -> Reached:
    """Measures a run; `ideal` is that of the same triggers without a limiter."""
    summary = run.summary
    time, rates = matrix(run, "throughput_bps")
    events, (queue_time, queues) = summary["events"], matrix(run, "queue_bytes")
    result = Reached(
        line=float(rates[time > case.settled_ms].sum(axis=1).mean() / 1e9 / case.line_gbps),
        dropped=sum(port["dropped"] for switch in summary["switches"] for port in switch["ports"]),
        paused_ms=1e3 * paused_s(run),
        queue=float(np.percentile(queues[queue_time > case.settled_ms], 99, axis=0).max()),
        jain=None if ideal else fairness(time, rates, case),
        lost_boards=sum(flow["failed"] is not None for flow in summary["flows"]),
        events=events["p99_us"] / ideal.summary["events"]["p99_us"] if ideal else None,
        incomplete=events["triggered"] - events["complete"] if ideal else 0,
    )
    return replace(result, missed=_missed(case, result))


def _missed(case: Case, it: Reached) -> tuple[str, ...]:
    """Which goals it does not meet."""
    goals = {"boards lost": it.lost_boards == 0}
    if not case.lossless:
        return tuple(name for name, met in {**goals, "line": it.line >= 0.95}.items() if not met)
    goals |= {"drops": it.dropped == 0, "pauses": it.paused_ms == 0}
    if it.events is not None:
        goals |= {"events": it.incomplete == 0 and it.events <= 1.5}
    else:
        most = np.interp(case.line_gbps, (10, 100), (250e3, 1e6))
        goals |= {"line": it.line >= 0.97, "queue": it.queue <= float(most), "Jain": it.jain is None or it.jain >= 0.98}
    return tuple(name for name, met in goals.items() if not met)


# ---- beside the world ------------------------------------------------------------------------------------------------

OTHER_LAWS = {
    "penstock": (),
    "Table II of AdvCam": ("cc.profile=advcam",),
    "Zhu et al.": ("cc.profile=zhu", "switch.pmax=0.01"),
    "no law, PFC": ("cc.law=off", "switch.ecn=false"),
    "CMS's TCP": ("flow.0.protocol=simple-tcp", "switch.pfc=false", "switch.buffer=4MB"),
}
SENDERS = (3, 16, 64, 256)
LINE_GBPS = 10


def other_settings(law: str, boards: int) -> tuple[str, ...]:
    """`incast-64` with this number of boards under another law."""
    return (f"topology.boards={boards}", *OTHER_LAWS[law], *TRACE)


def jobs() -> list[tuple[str, str, tuple[str, ...]]]:
    """Folder, scenario and settings of every run: cases, their ideals, and the other laws."""
    runs = [(f"scale-{n}", case.scenario, settings_of(case)) for n, case in enumerate(CASES)]
    runs += [
        (f"scale-{n}-ideal", case.scenario, ideal_settings(case)) for n, case in enumerate(CASES) if case.triggered
    ]
    return runs + [
        (f"scale-{law.split()[0].strip(',').lower()}-{boards}", "incast-64", other_settings(law, boards))
        for law in OTHER_LAWS
        for boards in SENDERS
    ]


def results(runs: list[Run]) -> list[Reached]:
    """What each case came to, from the runs of `jobs`."""
    ideals = iter(runs[len(CASES) :])
    return [
        reached(case, run, next(ideals) if case.triggered else None) for case, run in zip(CASES, runs, strict=False)
    ]


def row(case: Case, it: Reached) -> Row:
    """A case as a row of the table."""
    return {
        "case": case.name,
        "of the line": f"{100 * it.line:.1f} %",
        "queue, 99 %": f"{it.queue / 1e3:.0f} kB",
        "Jain": None if it.jain is None else f"{it.jain:.3f}",
        "events, 99 %": None if it.events is None else f"{it.events:.2f} x ideal",
        "dropped": it.dropped,
        "paused": f"{it.paused_ms:.0f} ms",
        "": f"misses {', '.join(it.missed)}: {case.misses}" if it.missed else None,
    }


def rows(runs: list[Run]) -> list[Row]:
    """The table of cases."""
    return [row(case, it) for case, it in zip(CASES, results(runs), strict=True)]


def draw(runs: list[Run]) -> Drawn:
    """Goodput, pauses and queue over the number of boards, for each law."""
    title = f"Boards of {LINE_GBPS} Gb/s into one line of {LINE_GBPS} Gb/s"
    figure, grid = panels(title, 1, 3, height_in=2.8)
    axes = list(grid[0])
    rest = iter(runs[-len(OTHER_LAWS) * len(SENDERS) :])
    compared = [
        Compared("cases that meet their goals", None, sum(not it.missed for it in results(runs)), f"of {len(CASES)}", 0)
    ]
    for law in OTHER_LAWS:
        of_law = [next(rest) for _ in SENDERS]
        # the whole run counts here: the other laws' trouble is in their start
        line = [run.summary["aggregate_gbps"] for run in of_law]
        paused = [100 * paused_s(run) / n / run.summary["simulated_s"] for run, n in zip(of_law, SENDERS, strict=True)]
        queue = [np.percentile(matrix(run, "queue_bytes")[1], 99, axis=0).max() / 1e3 for run in of_law]
        for axis, values in zip(axes, (line, paused, queue), strict=True):
            axis.plot(SENDERS, values, marker="o", ls="-", label=law, zorder=3 if law == "penstock" else 2)
        for n, value in zip(SENDERS, line, strict=True):
            compared.append(Compared(f"{law}: {n} boards, delivered", None, value, "Gb/s"))
        compared.append(Compared(f"{law}: {SENDERS[-1]} boards, paused", None, paused[-1], "% of the time", 1))
        compared.append(Compared(f"{law}: {SENDERS[-1]} boards, queue, 99 %", None, queue[-1], "kB", 0))
    peers.draw(axes, peers.read())
    for axis, words in zip(
        axes, ("delivered [Gb/s]", "paused [% of the time]", "queue, 99th percentile [kB]"), strict=True
    ):
        axis.set_xscale("log", base=2)
        axis.set_xticks(SENDERS, map(str, SENDERS))
        axis.set_xlabel("boards")
        axis.set_ylabel(words)
    axes[2].set_yscale("log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure, compared
