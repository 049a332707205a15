# SPDX-License-Identifier: Apache-2.0
"""Traces and recovery times of the QCN hardware evaluation (Kabbani, Yasuda, Prabhakar).

The recovery time is the time from the end of the hotspot to the first sample at which the sum of the senders' current
rates is back at 95 % of the line (the evaluation does not define its times); the jitter of timer and byte
counter makes it random, so it is the mean of several seeds.
"""

from collections.abc import Callable

import matplotlib
import numpy as np
from penstock import drawing
from penstock.drawing import BLACK, BLUE, GREY, SKY, VERMILION, coarser
from penstock.results import Run, Series

from figures.comparison import Compared, Drawn, flows, lost, mean, register, throughput

HOTSPOT_MS, HOTSPOT_END_MS = 1000.0, 4500.0  # `change.0.at` and `until` of the scenarios
LINE_BPS = 1e9


def _rate(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Times and the sum of R_C of all senders in bit/s, no more than the line."""
    all_rates = [register(run, flow, "rate_current_bps") for flow in flows(run)]
    return all_rates[0].time_ms, np.minimum(np.sum([series.value for series in all_rates], axis=0), LINE_BPS)


def recovery_ms(run: Run) -> float:
    """Time from the end of the hotspot until the rate is back; nan when it never is."""
    time, rate = _rate(run)
    back = time[(time >= HOTSPOT_END_MS) & (rate >= 0.95 * LINE_BPS)]
    return float(back[0] - HOTSPOT_END_MS) if len(back) else float("nan")


def _peak_kb(run: Run) -> float:
    return max(switch["peak_buffer_bytes"] for switch in run.summary["switches"]) / 1e3


def highest_queue_kb(run: Run) -> float:
    """The highest sample of the bottleneck's queue from the hotspot on; all sources start at the line rate before."""
    queue = run.series("switch", "queue_bytes", len(flows(run)))
    return float(queue.value[queue.time_ms >= HOTSPOT_MS].max()) / 1e3


def recovery(paper_ms: float | None) -> Callable[[list[Run]], Drawn]:
    """What draws the traces and compares the recovery time with the paper's."""

    def draw(runs: list[Run]) -> Drawn:
        times = np.array([recovery_ms(run) for run in runs])
        figure, axes = drawing.panels("QCN: hotspot of 0.2 Gb/s from 1 s to 4.5 s", 2, 2, height_in=1.7, sharey="row")
        for number, run in reversed(list(enumerate(runs))):
            time, rate = _rate(run)
            look = {"color": GREY, "lw": 0.5} if number else {"color": BLUE, "lw": 1}
            for axis in axes[0]:
                axis.plot(time, rate / 1e6, ls="-", label=(None, "other seeds", "seed 1")[max(0, 2 - number)], **look)
        queue = runs[0].series("switch", "queue_bytes", len(flows(runs[0])))
        for axis in axes[1]:
            axis.plot(queue.time_ms, queue.value / 1e3, lw=0.6, color=BLUE)
            axis.set_xlabel("simulated time [ms]")
        for axis in axes[:, 1]:
            axis.set_xlim(HOTSPOT_END_MS - 100, HOTSPOT_END_MS + 400)
        if paper_ms:
            axes[0, 1].axvline(HOTSPOT_END_MS + paper_ms, color=BLACK, ls="--", label=f"the paper, {paper_ms:g} ms")
        axes[0, 0].set(ylabel="current rate [Mb/s]", title="the whole run")
        axes[0, 1].set(title="the end of the hotspot")
        axes[0, 1].legend(loc="lower right")
        axes[1, 0].set_ylabel("queue, seed 1 [kB]")
        compared = [
            Compared(
                f"recovery time, mean of {len(runs)} seeds" if len(runs) > 1 else "recovery time",
                paper_ms,
                times.mean(),
                "ms",
                0,
            )
        ]
        if len(runs) > 1:
            compared += [
                Compared("recovery time, standard deviation", None, times.std(ddof=1), "ms", 0),
                Compared("recovery time, least", None, times.min(), "ms", 0),
                Compared("recovery time, most", None, times.max(), "ms", 0),
            ]
        compared.append(Compared("highest queue from the hotspot on", None, max(map(highest_queue_kb, runs)), "kB", 0))
        compared.append(Compared("most in the switch, the start included", None, max(map(_peak_kb, runs)), "kB", 0))
        compared.append(Compared("frames lost or repeated", None, sum(lost(run) for run in runs), digits=0))
        return figure, compared

    return draw


# The paper's panels: reaction points, round trip in us, pause.
SOURCES, ROUND_TRIPS_US = range(1, 9), (100, 500, 1000)
PANELS = [(sources, rtt, pause) for pause in (False, True) for rtt in ROUND_TRIPS_US for sources in SOURCES]
SHOWN = (1, 2, 4, 8)  # of the sources, in the picture


def panel_job(sources: int, rtt_us: int, pause: bool) -> tuple[str, str, tuple[str, ...]]:
    """Folder, scenario and keys of a panel."""
    scenario = "qcn-8-500us-pause" if pause else "qcn-8-500us"
    settings = (f"topology.boards={sources}", f"link.delay={rtt_us // 4}us")
    return f"qcn-panels/{sources}-{rtt_us}us{'-pause' if pause else ''}", scenario, settings


def panels(runs: list[Run]) -> Drawn:
    """All panels: rates and queues of some numbers of sources, recovery and highest queue of each."""
    of = dict(zip(PANELS, runs, strict=True))
    figure, axes = drawing.panels(
        "QCN: hotspot of 0.2 Gb/s from 1 s to 4.5 s", 4, 3, height_in=1.5, sharex=True, sharey="row"
    )
    colours = dict(zip(SHOWN, matplotlib.colormaps["viridis"](np.linspace(0, 0.85, len(SHOWN))), strict=True))
    for pause in (False, True):
        for column, rtt in enumerate(ROUND_TRIPS_US):
            rates, queues = axes[2 * pause, column], axes[2 * pause + 1, column]
            rates.set_title(f"round trip {rtt} us, {'pause' if pause else 'no pause'}")
            for sources, colour in colours.items():
                run = of[sources, rtt, pause]
                time, rate = _rate(run)
                rates.plot(time, rate / 1e6, lw=0.7, ls="-", color=colour, label=f"{sources}")
                queue = run.series("switch", "queue_bytes", sources)
                queues.plot(queue.time_ms, queue.value / 1e3, lw=0.5, ls="-", color=colour)
        axes[2 * pause, 0].set_ylabel("sum of $R_C$ [Mb/s]")
        axes[2 * pause + 1, 0].set_ylabel("queue [kB]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), title="sources", loc="outside lower center", ncols=4)
    for axis in axes[-1]:
        axis.set_xlabel("simulated time [ms]")
    compared = []
    for (sources, rtt, pause), run in of.items():
        name = f"{sources} x {rtt} us, {'pause' if pause else 'no pause'}"
        compared.append(Compared(f"{name}: recovery time", None, recovery_ms(run), "ms", 0))
        compared.append(Compared(f"{name}: highest queue from the hotspot on", None, highest_queue_kb(run), "kB", 0))
        compared.append(Compared(f"{name}: most in the switch, the start included", None, _peak_kb(run), "kB", 0))
    compared.append(Compared("frames lost or repeated, all panels", None, sum(map(lost, runs)), digits=0))
    return figure, compared


# What `penstock figures qcn-tcp` changes of its scenario, in the order of its runs: variant, round trip in us, QCN.
VARIANTS, TCP_ROUND_TRIPS_US = ("new-reno", "bic", "cubic"), (200, 400)
TCP_CASES = [(variant, rtt, qcn) for qcn in (False, True) for variant in VARIANTS for rtt in TCP_ROUND_TRIPS_US]
TCP_LINK_MBPS = 750.0
SETTLED_MS = 1000.0  # slow start and the first recoveries are over


def tcp_cases(sources: int) -> dict[str, tuple[str, ...]]:
    """Name and keys of each case, for this number of reaction points."""
    laws = {False: ("switch.qcn.enabled=false", "cc.law=off"), True: ("switch.qcn.enabled=true", "cc.law=qcn")}
    return {
        f"{sources}-{variant}-{rtt}-{qcn}": (
            f"topology.boards={sources}",
            f"tcp.variant={variant}",
            f"link.delay={rtt // 4}us",
            *laws[qcn],
        )
        for variant, rtt, qcn in TCP_CASES
    }


def tcp(runs: list[Run]) -> Drawn:
    """Queue length and throughput of TCP with and without QCN; the paper shows pictures, without numbers."""
    sources = len(flows(runs[0]))
    title = f"TCP through a link of 750 Mb/s, {sources} reaction point{'s' * (sources > 1)}"
    figure, axes = drawing.panels(title, len(runs) // 2, 4, height_in=1.0, sharex=True)
    compared = []
    for number, ((variant, rtt, qcn), run) in enumerate(zip(TCP_CASES, runs, strict=True)):
        name = f"{variant}, {rtt} us, {'QCN' if qcn else 'no QCN'}"
        left, right = (axes[number // 2, 2 * of + number % 2] for of in (0, 1))
        queue = run.series("switch", "queue_bytes", sources)
        left.plot(queue.time_ms, queue.value / 1e3, lw=0.6, color=BLUE)
        rates = [throughput(run, flow["name"]) for flow in flows(run)]
        whole = Series(rates[0].time_ms, np.sum([rate.value for rate in rates], axis=0))
        windows = max(1, round(20 / np.median(np.diff(whole.time_ms))))
        for rate in rates:
            look = {"lw": 0.7, "ls": "-"} | ({"color": BLUE} if rate is rates[0] else {"color": VERMILION})
            right.plot(*(coarser(values, windows) for values in (rate.time_ms, rate.value * 1e3)), **look)
        right.axhline(TCP_LINK_MBPS / sources, color=BLACK, lw=0.8, ls="--")
        left.set_ylim(0, 550)
        right.set_ylim(0, 1.2 * TCP_LINK_MBPS)
        if number < 2:
            left.set_title(f"{rtt} us: queue [kB]", loc="left", pad=3)
            right.set_title(f"{rtt} us: goodput [Mb/s]", loc="left", pad=3)
        if number % 2 == 0:
            left.set_ylabel(f"{variant}\n{'QCN' if qcn else 'no QCN'}")
        settled = queue.value[queue.time_ms >= SETTLED_MS] / 1e3
        compared += [
            Compared(f"{name}: throughput", None, 1e3 * mean(whole, SETTLED_MS, whole.time_ms[-1]), "Mb/s", 0),
            Compared(f"{name}: queue, mean", None, settled.mean(), "kB", 0),
            Compared(f"{name}: queue, standard deviation", None, settled.std(), "kB", 0),
        ]
        if sources > 1:
            means = [mean(rate, SETTLED_MS, rate.time_ms[-1]) for rate in rates]
            compared.append(Compared(f"{name}: the slower over the faster", None, min(means) / max(means)))
    for axis in axes[-1]:
        axis.set_xlabel("simulated time [ms]")
    return figure, compared


# The sizes of a queue between host and rate limiter, and what its end does: keys of `penstock figures qcn-tcp-queue`.
LIMITER_QUEUES: dict[str, tuple[str, ...]] = {"none": ()} | {
    f"{size}-{full}": (f"tcp.limiter_queue={size}", f"tcp.limiter_full={full}")
    for full in ("wait", "drop")
    for size in ("64KB", "256KB", "1MB")
}


def limiter_queues(runs: list[Run]) -> Drawn:
    """What New Reno sees of its card's queue under QCN; the paper says that its size is tunable."""
    title = "New Reno under QCN by the queue before its rate limiter: size, and what its end does"
    figure, axes = drawing.panels(title, 2, 2, height_in=1.6, sharex=True, sharey="row")
    colours = dict(zip(LIMITER_QUEUES, [GREY, *2 * (SKY, BLUE, VERMILION)], strict=True))
    compared = []
    for name, run in zip(LIMITER_QUEUES, runs, strict=True):
        size, _, full = name.partition("-")
        (flow,) = flows(run)
        held, round_trip = (register(run, flow, metric) for metric in ("limiter_queue_bytes", "smoothed_rtt_us"))
        column = int(full == "drop")
        for axis, series, unit in ((axes[0, column], held, 1e3), (axes[1, column], round_trip, 1e3)):
            axis.plot(series.time_ms, series.value / unit, lw=0.8, ls="-", color=colours[name], label=size)
        settled = round_trip.time_ms >= SETTLED_MS
        case = (
            "no queue" if size == "none" else f"{size}, {'the host waits' if full == 'wait' else 'frames are dropped'}"
        )
        rate = throughput(run, flow["name"])
        compared += [
            Compared(f"{case}: throughput", None, 1e3 * mean(rate, SETTLED_MS, rate.time_ms[-1]), "Mb/s", 0),
            Compared(f"{case}: bytes in the queue, mean", None, held.value[settled].mean() / 1e3, "kB", 0),
            Compared(f"{case}: smoothed round trip, mean", None, round_trip.value[settled].mean() / 1e3, "ms"),
            Compared(f"{case}: frames dropped there", None, flow["limiter_drops"], digits=0),
            Compared(f"{case}: frames sent again", None, flow["retransmissions"], digits=0),
        ]
    for axis, full in zip(axes[0], ("the host waits", "frames are dropped"), strict=True):
        axis.set_title(full, loc="left", pad=3)
        axis.legend(loc="upper right", ncols=4)
    axes[0, 0].set(ylabel="limiter's queue [kB]", ylim=(0, 1300))
    axes[1, 0].set_ylabel("smoothed RTT [ms]")
    for axis in axes[-1]:
        axis.set_xlabel("simulated time [ms]")
    return figure, compared
