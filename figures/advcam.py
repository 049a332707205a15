# SPDX-License-Identifier: Apache-2.0
"""AdvCam figures 4, 5, 6, 9, 11, 12, 13 and 14: each function draws one and compares its numbers.

Each takes the runs of the figure and returns the plot and the list of `Compared`. Source: AdvCam, sections III, IV, VI
and VII.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from penstock.drawing import BLACK, BLUE, GREEN, SKY, VERMILION, coarser, panels
from penstock.results import Run, Series

from figures.comparison import Compared, Drawn, flows, jain, lost, mean, register, throughput

PAPER: dict[str, Any] = {"color": "black", "lw": 0.9, "ls": "--"}
LINE_GBPS = 10.0
PAYLOAD_SHARE = 4096 / 4178  # of the line, for MTU 4096: R_C counts the bytes on the wire


def goodput_axes(
    title: str, rows: int = 1, height_in: float = 2.2, time: str = "simulated time"
) -> tuple[Figure, list[Axes]]:
    """Panels of goodput over time."""
    figure, axes = panels(title, rows, height_in=height_in, sharex=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("goodput [Gb/s]")
    axes[-1, 0].set_xlabel(f"{time} [ms]")
    return figure, list(axes[:, 0])


def _contention_ms(run: Run) -> float:
    """Until the first flow ends, all contend."""
    return min(flow["end_s"] for flow in flows(run)) * 1e3


def _last_end_ms(run: Run) -> float:
    return max(flow["end_s"] for flow in flows(run)) * 1e3


def _senders(title: str, run: Run, columns: int, mean_ms: float) -> tuple[Figure, list[Axes]]:
    """Each sender in a panel of its own: the windows of the trace, and their mean over a longer time."""
    names = [flow["name"] for flow in flows(run)]
    rows = -(-len(names) // columns)
    figure, axes = panels(title, rows, columns, height_in=1.15, sharex=True, sharey=True)
    for axis, name in zip(axes.flat, names, strict=False):
        series = throughput(run, name)
        window_ms = float(np.median(np.diff(series.time_ms)))
        windows = max(1, round(mean_ms / window_ms))
        axis.plot(series.time_ms, series.value, lw=0.3, color=SKY, rasterized=True, label=f"{window_ms:g} ms windows")
        smooth = (coarser(values, windows) for values in (series.time_ms, series.value))
        axis.plot(*smooth, lw=1.1, ls="-", color=BLUE, label=f"mean of {mean_ms:g} ms")
        axis.set_title(name, loc="left", pad=3)
    for axis in axes[:, 0]:
        axis.set_ylabel("goodput [Gb/s]")
    for axis in axes[-1]:
        axis.set_xlabel("simulated time [ms]")
    return figure, list(axes.flat)


def parking_lot(runs: list[Run]) -> Drawn:
    """Figure 4: mean rate of each sender while all eight contend."""
    (run,) = runs
    end = _contention_ms(run)
    rates = np.array([mean(throughput(run, flow["name"]), 0, end) for flow in flows(run)])
    small, large = rates[[0, 1, 6, 7]], rates[2:6]
    figure, axes = _senders("AdvCam 4: PFC only", run, 2, 5.0)
    for number, axis in enumerate(axes):
        axis.axhline(0.81 if 2 <= number < 6 else 1.58, **PAPER, label="the paper's mean until the first ends")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure, [
        Compared("senders 5, 6, 11, 12, mean until the first ends", 1.58, small.mean(), "Gb/s"),
        Compared("senders 7 to 10, mean until the first ends", 0.81, large.mean(), "Gb/s"),
        Compared("frames lost or repeated", "none", lost(run), digits=0),
    ]


def _spread(rates: np.ndarray) -> float:
    """By how much the fastest is faster than the slowest, in per cent."""
    return 100 * (rates.max() / rates.min() - 1)


# DCQCN and marking as the RDMA simulators on ns-3 have them, with the numbers of the scenario (F = 5).
NS3_RULES = (
    "cc.stage_counting=single",
    "cc.hyper_threshold=6",
    "cc.byte_threshold=0B",
    "cc.cut_on_tick=true",
    "cc.alpha_rule=interval",
    "switch.mark_on=departure",
)


def fair_share(runs: list[Run]) -> Drawn:
    """Figure 5: goodput of each sender over its whole transfer; runs differ in their seed, the last has NS3_RULES."""
    *runs, ns3 = runs
    of_ns3 = np.array([flow["goodput_gbps"] for flow in flows(ns3)])
    goodput = [np.array([flow["goodput_gbps"] for flow in flows(run)]) for run in runs]
    spreads = [_spread(rates) for rates in goodput]
    figure, axes = _senders("AdvCam 5: PFC and DCQCN", runs[0], 2, 5.0)
    for axis in axes:
        axis.axhline(1.1, **PAPER, label="the paper")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    end = _contention_ms(runs[0])
    return figure, [
        Compared("mean of the eight senders", 1.1, goodput[0].mean(), "Gb/s"),
        Compared("slowest sender", "about 1.1 Gb/s", goodput[0].min(), "Gb/s"),
        Compared("slowest sender of five seeds", "", min(rates.min() for rates in goodput), "Gb/s"),
        Compared("fastest over slowest", "negligible", spreads[0], "%", 1),
        Compared("fastest over slowest, least of five seeds", "negligible", min(spreads), "%", 1),
        Compared("fastest over slowest, most of five seeds", "negligible", max(spreads), "%", 1),
        Compared(
            "aggregate until the first ends", "tracks 10 Gb/s", mean(throughput(runs[0], "network"), 0, end), "Gb/s"
        ),
        Compared("frames lost or repeated, five seeds", 0.0, sum(lost(run) for run in runs), digits=0),
        Compared("mean of the eight senders, rules of ns-3", 1.1, of_ns3.mean(), "Gb/s"),
        Compared("slowest sender, rules of ns-3", "about 1.1 Gb/s", of_ns3.min(), "Gb/s"),
        Compared("fastest over slowest, rules of ns-3", "negligible", _spread(of_ns3), "%", 1),
        Compared("last sender ends", "", _last_end_ms(runs[0]), "ms", 0),
        Compared("last sender ends, rules of ns-3", "", _last_end_ms(ns3), "ms", 0),
    ]


def one_sender(runs: list[Run]) -> Drawn:
    """Figure 6: node 12 (the last flow of the scenario) oscillates, and climbs to the line rate once the others end."""
    (run,) = runs
    sender = flows(run)[-1]
    series, end = throughput(run, sender["name"]), _contention_ms(run)
    inside = (series.time_ms > 20) & (series.time_ms <= end)
    alone = max(flow["end_s"] for flow in flows(run)[:-1]) * 1e3
    climbed = series.time_ms[series.value >= 0.9 * LINE_GBPS * PAYLOAD_SHARE]
    figure, (axis,) = goodput_axes(f"AdvCam 6: node 12 ({sender['name']}), 100 us windows")
    axis.plot(series.time_ms, series.value, lw=0.6, color=BLUE)
    axis.axvline(280, **PAPER, label="the paper's climb begins")
    axis.legend(loc="upper left")
    return figure, [
        Compared("first flow ends, the climb begins", 280.0, end, "ms", 0, by_construction=True),  # by the flows' sizes
        Compared("standard deviation of 100 us windows in contention", "small", series.value[inside].std(), "Gb/s"),
        Compared("from the last other flow's end to 90 % of the line", "sharp", _first(climbed) - alone, "ms", 0),
        Compared("highest rate", "line rate", series.value.max(), "Gb/s"),
    ]


def _first(values: np.ndarray) -> float:
    return float(values[0]) if len(values) else float("nan")


def on_off(runs: list[Run]) -> Drawn:
    """Figure 11: without DCQCN; duty and length of bursts and silences, and fairness over 1 ms windows."""
    (run,) = runs
    end = _contention_ms(run)
    figure, axes = goodput_axes("AdvCam 11: DCQCN off, 1 ms windows", len(flows(run)), 1.3)
    columns = []
    for axis, flow in zip(axes, flows(run), strict=True):
        series = throughput(run, flow["name"])
        columns.append(series.value[series.time_ms <= end])
        axis.plot(series.time_ms, series.value, lw=0.8, color=BLUE)
        axis.set_xlim(0, min(end, 400))
        axis.set_title(flow["name"], loc="left", pad=3)
    rates = np.stack(columns, axis=1)
    off, full = rates < 0.5, rates > 8.8
    return figure, [
        Compared("time at more than 90 % of the line", "long bursts", 100 * full.mean(), "%", 0),
        Compared("time at less than 5 % of the line", "essentially zero", 100 * off.mean(), "%", 0),
        Compared("mean length of a silence", "", _run_length(off), "ms", 1),
        Compared("Jain's index of 1 ms windows, mean", "unfair", np.nanmean(jain(rates))),
        Compared("Jain's index of 10 ms windows, mean", "unfair", np.nanmean(jain(coarser(rates, 10)))),
        Compared("aggregate until the first ends", "near the line rate", rates.sum(axis=1).mean(), "Gb/s"),
        Compared("frames lost or repeated", "retransmissions", lost(run), digits=0),
    ]


def _run_length(states: np.ndarray) -> float:
    """Mean number of windows for which a state holds without a break, over all columns; 0 when it never does."""
    begins = sum(int(column[0]) + int((np.diff(column.astype(int)) == 1).sum()) for column in states.T)
    return states.sum() / begins if begins else 0.0


def plateaus(runs: list[Run]) -> Drawn:
    """Figure 12: the three plateaus, 200 ms after each change, and the aggregate over the run."""
    (run,) = runs
    ends = sorted(flow["end_s"] * 1e3 for flow in flows(run))
    figure, axes = goodput_axes("AdvCam 12: Table II", len(ends) + 1, 1.2)
    for axis, name in zip(axes, [*(flow["name"] for flow in flows(run)), "network"], strict=True):
        series = throughput(run, name)
        axis.plot(series.time_ms, series.value, lw=0.7, color=BLUE)
        axis.set_title("all of them" if name == "network" else name, loc="left", pad=3)
        axis.set_ylim(0, 10.5)
    compared, begin = [], 0.0
    for active, (end, paper) in enumerate(zip(ends, (3.3, 4.9, 9.7), strict=True)):
        names = [flow["name"] for flow in flows(run) if flow["end_s"] * 1e3 >= end - 1e-6]
        rates = [mean(throughput(run, name), begin + 200, end) for name in names]
        for axis, flow in zip(axes, flows(run), strict=False):
            if flow["name"] in names:
                axis.plot((begin, end), (paper, paper), **PAPER, label=None if active else "the paper")
        label = f"plateau of {3 - active}" if len(names) > 1 else "plateau of the last"
        compared.append(Compared(f"{label}, mean", paper, float(np.mean(rates)), "Gb/s"))
        if len(names) > 1:
            compared.append(Compared(f"{label}, lowest flow", paper, min(rates), "Gb/s"))
            compared.append(Compared(f"{label}, highest flow", paper, max(rates), "Gb/s"))
        begin = end
    axes[0].legend(loc="upper right")
    compared.append(Compared("aggregate over the run", 9.77, run.summary["aggregate_gbps"], "Gb/s"))
    compared.append(Compared("frames lost or repeated", 0.0, lost(run), digits=0))
    return figure, compared


def saw_tooth(runs: list[Run]) -> Drawn:
    """Figure 13: R_C of flow_a, from 200 ms on while all contend: its climbs, and the decay after each.

    A climb is a rise of more than 20 % from one sample to the next. A decay runs from a climb to where R_C is within
    5 % of its lowest before the next. The second run has MODULE_RULES.
    """
    run, module = runs
    end = _contention_ms(run)
    figure, axes = goodput_axes(
        "AdvCam 13: flow_a with a timer of 200 ms and no clamp of $R_T$; windows of 2 ms", 4, 1.3
    )
    found, of_module = _saw_teeth(run, axes[:2]), _saw_teeth(module, axes[2:])
    axes[2].set_title("alpha of 10 bits, and a timer that every cut restarts", loc="left", pad=3)
    shares = [mean(throughput(run, each["name"]), 200, end) for each in flows(run)]
    return figure, [
        Compared("climbs of flow_a", "sharp", len(found.climbs), digits=0),
        *found.compared(),
        Compared("flow_a, mean", "", shares[0], "Gb/s"),
        Compared("slower of the other two senders", "take what is free", min(shares[1:]), "Gb/s"),
        Compared("alpha of 10 bits: R_C before a climb, median", "toward zero", _median(of_module.lows), "Gb/s"),
        Compared(
            "alpha of 10 bits: length of the decay, median", "over many CNPs", _median(of_module.decays[:, 0]), "ms", 0
        ),
        Compared(
            "alpha of 10 bits: its time constant, median", "exponential", _median(of_module.decays[:, 1]), "ms", 0
        ),
        Compared("alpha of 10 bits: R2 of an exponential, median", "exponential", _median(of_module.decays[:, 2])),
        Compared("alpha of 10 bits: time between climbs, median", "", _median(of_module.periods), "ms", 0),
    ]


# As in the module that the paper's group has published: alpha's resolution, and a timer that CNPs restart.
MODULE_RULES = ("cc.alpha_bits=10", "cc.restart_timer=true")


@dataclass(frozen=True)
class Teeth:
    """R_C of one sender: where it climbs, and how it decays after each climb.

    `time_ms`, `rate_gbps` and `cuts` (notifications so far) are arrays of shape (samples,), `climbs` the samples after
    which R_C rises, `decays` what `_decay` says of each tooth, of shape (climbs - 1, 4).
    """

    time_ms: np.ndarray
    rate_gbps: np.ndarray
    cuts: np.ndarray
    climbs: np.ndarray
    decays: np.ndarray

    @property
    def periods(self) -> np.ndarray:
        """Time from climb to climb, in ms."""
        return np.diff(self.time_ms[self.climbs])

    @property
    def lows(self) -> np.ndarray:
        """R_C before each climb, in Gb/s."""
        return self.rate_gbps[self.climbs]

    def compared(self) -> list[Compared]:
        """What the paper says of them in words."""
        return [
            Compared("time between climbs, median", "", _median(self.periods), "ms", 0),
            Compared("R_C before a climb, median", "toward zero", _median(self.lows), "Gb/s"),
            Compared(
                "R_C after a climb, median", "the bottleneck rate", _median(self.rate_gbps[self.climbs + 1]), "Gb/s"
            ),
            Compared("cuts per recovery, median", "many", _median(np.diff(self.cuts[self.climbs])), digits=0),
            Compared("length of the decay, median", "over many CNPs", _median(self.decays[:, 0]), "ms", 1),
            Compared("its time constant, median", "exponential", _median(self.decays[:, 1]), "ms", 1),
            Compared("R2 of an exponential through it, median", "exponential", _median(self.decays[:, 2])),
            Compared("fall of R_C from there to the next climb, median", "", _median(self.decays[:, 3]), "%", 0),
        ]


def teeth(current: Series, cuts: Series, begin_ms: float, end_ms: float) -> Teeth:
    """The teeth of `rate_current_bps` between two times; `cuts` is `cnp_handled` of the same samples."""
    inside = (current.time_ms > begin_ms) & (current.time_ms < end_ms)
    time, rate = current.time_ms[inside], current.value[inside] / 1e9
    climbs = np.flatnonzero((np.diff(rate) > 0.2 * rate[:-1]) & (np.diff(rate) > 0.05))
    decays = np.array([_decay(time[a + 1 : b + 1], rate[a + 1 : b + 1]) for a, b in pairwise(climbs)]).reshape(-1, 4)
    return Teeth(time, rate, cuts.value[inside], climbs, decays)


def draw_rate(axis: Axes, current: Series, name: str) -> None:
    """R_C over time."""
    axis.step(current.time_ms, current.value / 1e9, where="post", color=VERMILION, ls="-")
    axis.set_ylabel(f"$R_C$ of {name} [Gb/s]")


def _saw_teeth(run: Run, axes: list[Axes]) -> Teeth:
    """Draws throughput and R_C of flow_a while all contend."""
    flow = flows(run)[0]
    current = register(run, flow, "rate_current_bps")
    for each in flows(run):
        series = throughput(run, each["name"])
        axes[0].plot(*(coarser(values, 20) for values in (series.time_ms, series.value)), label=each["name"])
    axes[0].set_ylim(0, 11)
    axes[0].legend(loc="upper left", ncols=3)
    draw_rate(axes[1], current, "flow_a")
    return teeth(current, register(run, flow, "cnp_handled"), 199, _contention_ms(run))


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _decay(time: np.ndarray, rate: np.ndarray) -> tuple[float, float, float, float]:
    """Length and time constant in ms, R2 of an exponential, and fall in % after it; nan if it is too short."""
    low = int(np.flatnonzero(rate <= 1.05 * rate.min())[0]) + 1
    behind = 100 * (1 - rate[-1] / rate[low - 1])
    if low < 4:
        return time[low - 1] - time[0], np.nan, np.nan, behind
    times, logs = time[:low], np.log(rate[:low])
    slope, offset = np.polyfit(times, logs, 1)
    left = ((logs - slope * times - offset) ** 2).sum()
    return time[low - 1] - time[0], -1 / slope, 1 - left / ((logs - logs.mean()) ** 2).sum(), behind


# Of figure 9 the paper gives these: the emulated switch's threshold, and alpha and R_C at the CNPs.
THRESHOLD_GBPS, WINDOW_US = 5.0, 32
ALPHAS = {"first": 1.0, "second": 0.8, "third": 0.3}


def emulated_switch(runs: list[Run]) -> Drawn:
    """Figure 9: payload in the switch's window against its threshold, R_C and R_T, alpha; dashed: CNPs."""
    (run,) = runs
    (flow,) = flows(run)
    current, target, alpha, handled = (
        register(run, flow, metric) for metric in ("rate_current_bps", "rate_target_bps", "alpha", "cnp_handled")
    )
    figure, axes = panels("AdvCam 9: the emulated switch, threshold 5 Gb/s", 3, height_in=1.5, sharex=True)
    above, middle, below = axes[:, 0]
    measured = throughput(run, flow["name"])
    above.plot(
        measured.time_ms,
        np.convolve(measured.value, np.full(WINDOW_US, 1 / WINDOW_US))[: len(measured.value)],
        color=BLUE,
        ls="-",
    )
    above.axhline(THRESHOLD_GBPS, **PAPER)
    above.set(ylabel="payload [Gb/s]", ylim=(0, 11))
    middle.step(current.time_ms, current.value / 1e9, where="post", color=VERMILION, ls="-", label="$R_C$")
    middle.step(target.time_ms, target.value / 1e9, where="post", color=BLACK, lw=0.8, ls=":", label="$R_T$")
    middle.set(ylabel="rate [Gb/s]", ylim=(0, 11))
    middle.legend(loc="upper right", ncols=2)
    below.step(alpha.time_ms, alpha.value, where="post", color=BLUE, ls="-")
    below.set(ylabel="alpha", xlabel="simulated time [ms]", ylim=(0, 1.1))
    cuts = np.flatnonzero(np.diff(handled.value) > 0)  # the last sample before each
    for axis in axes[:, 0]:
        for cut in cuts:
            axis.axvline(handled.time_ms[cut + 1], color=GREEN, lw=0.8, ls="--")
    compared = [Compared("CNPs", 3.0, len(cuts), digits=0, by_construction=True)]  # cooldown and timer were fitted
    for (name, paper), cut in zip(ALPHAS.items(), cuts, strict=False):
        before, after = (10.0, 5.0) if name == "first" else (None, None)
        compared += [
            Compared(f"{name} CNP: alpha", paper, alpha.value[cut], by_construction=True),
            Compared(
                f"{name} CNP: R_C before", before, current.value[cut] / 1e9, "Gb/s", by_construction=before is not None
            ),
            Compared(
                f"{name} CNP: R_C after", after, current.value[cut + 1] / 1e9, "Gb/s", by_construction=after is not None
            ),
        ]
    errors = sum(board["messages_error"] for board in run.summary["boards"])
    compared.append(Compared("work requests lost or completed with an error", "none", errors, digits=0))
    return figure, compared


_TABLE_II = (
    "flow.0.sender=software",
    "flow.0.size=100MB",
    "run.time_limit=20ms",
    "run.stop=time",
    "trace.interval=10us",
    "cc.g=1/256",
    "cc.alpha_interval=40us",
    "cc.increase_interval=2ms",
    "cc.decrease_interval=3us",
)
# Payload above 100 Gb/s never comes: these CNPs answer marks of a queue in front of a link of 5 Gb/s.
_MARKED = (
    *_TABLE_II,
    "qp.cnp_above=100Gbps",
    "link.server.rate=5Gbps",
    "switch.ecn=true",
    "switch.ecn_rate=5Gbps",
    "switch.kmin=1KB",
    "switch.kmax=1001B",
    "switch.pmax=1",
)
# Rules that could give the CNPs of figure 9, each with the keys that it changes of its scenario.
RULES: dict[str, tuple[str, ...]] = {
    "Table II, cooldown 2.3 ms, timer 3.4 ms": (*_TABLE_II, "qp.cnp_interval=2.3ms", "cc.increase_interval=3.4ms"),
    "Table II, cooldown 1.9 ms": (*_TABLE_II, "qp.cnp_interval=1.9ms"),
    "Table II, cooldown 1.9 ms, MTU 2048": (*_TABLE_II, "qp.cnp_interval=1.9ms", "qp.mtu=2048"),
    "Table II, cooldown 1.9 ms, MTU 1024": (*_TABLE_II, "qp.cnp_interval=1.9ms", "qp.mtu=1024"),
    "Table II, cooldown 50 us": (*_TABLE_II, "qp.cnp_interval=50us"),
    "Table II, marks of a queue, CNPs 1.9 ms apart": (*_MARKED, "qp.cnp_interval=1.9ms"),
    "Table II, marks of a queue, CNPs 50 us apart": (*_MARKED, "qp.cnp_interval=50us"),
}


def rules(runs: list[Run]) -> Drawn:
    """R_C under each of the rules, and alpha at the first CNPs against the paper's."""
    figure, axes = panels("AdvCam 9: which rules give its CNPs", len(runs), height_in=0.9, sharex=True)
    compared = []
    for (name, run), axis in zip(zip(RULES, runs, strict=True), axes[:, 0], strict=True):
        (flow,) = flows(run)
        current, alpha, handled = (
            register(run, flow, metric) for metric in ("rate_current_bps", "alpha", "cnp_handled")
        )
        axis.step(current.time_ms, current.value / 1e9, where="post", color=VERMILION, ls="-")
        axis.set(ylabel="$R_C$ [Gb/s]", ylim=(0, 11))
        axis.set_title(name, loc="left", pad=3)
        cuts = np.flatnonzero(np.diff(handled.value) > 0)
        for (number, paper), cut in list(zip(ALPHAS.items(), cuts, strict=False))[1:]:
            compared += [
                Compared(f"{name}: {number} CNP: alpha", paper, alpha.value[cut]),
                Compared(f"{name}: {number} CNP: R_C before", None, current.value[cut] / 1e9, "Gb/s"),
            ]
    axes[-1, 0].set_xlabel("simulated time [ms]")
    return figure, compared


def limiter(runs: list[Run]) -> Drawn:
    """Figure 14: R_C and R_T of one sender, sampled at 1 kHz, over its measured throughput."""
    (run,) = runs
    flow = flows(run)[-1]
    current, target = register(run, flow, "rate_current_bps"), register(run, flow, "rate_target_bps")
    figure, axes = goodput_axes(f"AdvCam 14: {flow['name']}, registers at 1 kHz as payload rates", 2, 1.9)
    return figure, overlap(axes, throughput(run, flow["name"]), current, target, 200, flow["end_s"] * 1e3)


def overlap(
    axes: list[Axes],
    measured: Series,
    current: Series,
    target: Series,
    begin_ms: float,
    end_ms: float,
    window_ms: float = 1.0,
) -> list[Compared]:
    """Draws R_C and R_T (in bit/s) over the throughput (in Gb/s, in windows of `window_ms`); compares them between two
    times.
    """
    inside = (measured.time_ms > begin_ms) & (measured.time_ms < end_ms)
    expected = np.interp(measured.time_ms, current.time_ms, current.value) / 1e9 * PAYLOAD_SHARE
    goal = np.interp(measured.time_ms, target.time_ms, target.value) / 1e9 * PAYLOAD_SHARE
    above, below = axes
    above.plot(measured.time_ms, measured.value, color=SKY, lw=2, label="measured")
    above.plot(measured.time_ms, expected, color=VERMILION, lw=0.8, ls="-", label="$R_C$")
    above.legend(loc="upper left")
    below.plot(measured.time_ms, 100 * (measured.value / expected - 1), color=BLUE, lw=0.6, label="measured")
    below.plot(measured.time_ms, 100 * (goal / expected - 1), color=BLACK, lw=0.8, ls=":", label="$R_T$")
    below.set(ylabel="difference to $R_C$ [%]", ylim=(-15, 15))
    below.legend(loc="upper left", ncols=2)
    error = np.abs(measured.value[inside] / expected[inside] - 1)
    gap = np.abs(goal[inside] / expected[inside] - 1)
    return [
        Compared(
            f"throughput against R_C, mean deviation of {window_ms:g} ms windows",
            "overlap",
            100 * error.mean(),
            "%",
            1,
        ),
        Compared("R_T against R_C, mean deviation", "overlap", 100 * gap.mean(), "%", 1),
        Compared(
            "correlation of throughput and R_C",
            "overlap",
            np.corrcoef(measured.value[inside], expected[inside])[0, 1],
            digits=3,
        ),
    ]
