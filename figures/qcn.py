# SPDX-License-Identifier: Apache-2.0
"""Traces and recovery times of the QCN hardware evaluation (Kabbani, Yasuda, Prabhakar).

The recovery time is the time from the end of the hotspot to the first sample at which the sum of the senders' current
rates is back at 95 % of the line (the evaluation does not define its times); the jitter of timer and byte
counter makes it random, so it is the mean of several seeds.
"""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
from penstock.results import Run

from figures.comparison import Compared, Drawn, flows, lost, mean, register, throughput

HOTSPOT_END_MS = 4500.0  # `change.0.until` of the scenarios
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


def recovery(paper_ms: float | None) -> Callable[[list[Run]], Drawn]:
    """What draws the traces and compares the recovery time with the paper's."""

    def draw(runs: list[Run]) -> Drawn:
        times = np.array([recovery_ms(run) for run in runs])
        figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(9, 6), layout="constrained")
        figure.suptitle(
            "QCN: hotspot of 0.2 Gb/s from 1 s to 4.5 s"
            + (f"; dashed: the paper's {paper_ms:g} ms" if paper_ms else "")
        )
        for run in runs:
            time, rate = _rate(run)
            above.plot(time, rate / 1e6, lw=0.7)
        if paper_ms:
            above.axvline(HOTSPOT_END_MS + paper_ms, color="black", lw=1, ls="--")
        above.set_ylabel("current rate [Mb/s]")
        queue = runs[0].series("switch", "queue_bytes", len(flows(runs[0])))
        below.plot(queue.time_ms, queue.value / 1e3, lw=0.6)
        below.set_ylabel("queue [kB]")
        below.set_xlabel("simulated time [ms]")
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
        peak = max(switch["peak_buffer_bytes"] for run in runs for switch in run.summary["switches"])
        compared.append(Compared("highest queue", None, peak / 1e3, "kB", 0))
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
    figure, axes = plt.subplots(4, 3, sharex=True, sharey="row", figsize=(11, 10), layout="constrained")
    figure.suptitle("QCN: hotspot of 0.2 Gb/s from 1 s to 4.5 s; rates and queue without and with pause")
    colours = dict(zip(SHOWN, plt.colormaps["viridis"](np.linspace(0, 0.85, len(SHOWN))), strict=True))
    for pause in (False, True):
        for column, rtt in enumerate(ROUND_TRIPS_US):
            rates, queues = axes[2 * pause, column], axes[2 * pause + 1, column]
            rates.set_title(f"{rtt} us, {'pause' if pause else 'no pause'}", fontsize="small")
            for sources, colour in colours.items():
                run = of[sources, rtt, pause]
                time, rate = _rate(run)
                rates.plot(time, rate / 1e6, lw=0.6, color=colour, label=f"{sources}")
                queue = run.series("switch", "queue_bytes", sources)
                queues.plot(queue.time_ms, queue.value / 1e3, lw=0.5, color=colour)
        axes[2 * pause, 0].set_ylabel("sum of R_C [Mb/s]")
        axes[2 * pause + 1, 0].set_ylabel("queue [kB]")
    axes[0, 0].legend(title="sources", fontsize="x-small", title_fontsize="x-small", loc="lower left")
    for axis in axes[-1]:
        axis.set_xlabel("simulated time [ms]")
    compared = []
    for (sources, rtt, pause), run in of.items():
        name = f"{sources} x {rtt} us, {'pause' if pause else 'no pause'}"
        peak = max(switch["peak_buffer_bytes"] for switch in run.summary["switches"])
        compared.append(Compared(f"{name}: recovery time", None, recovery_ms(run), "ms", 0))
        compared.append(Compared(f"{name}: highest queue", None, peak / 1e3, "kB", 0))
    compared.append(Compared("frames lost or repeated, all panels", None, sum(map(lost, runs)), digits=0))
    return figure, compared


# What `penstock figures qcn-tcp` changes of its scenario, in the order of its runs: variant, round trip in us, QCN.
TCP_CASES = [(variant, rtt, qcn) for qcn in (False, True) for variant in ("new-reno", "bic") for rtt in (200, 400)]
TCP_LINK_MBPS = 750.0
SETTLED_MS = 1000.0  # slow start and the first recoveries are over


def tcp_settings(variant: str, rtt_us: int, qcn: bool) -> tuple[str, ...]:
    """The keys of a case."""
    law = ("switch.qcn.enabled=true", "cc.law=qcn") if qcn else ("switch.qcn.enabled=false", "cc.law=off")
    return (f"tcp.variant={variant}", f"link.delay={rtt_us // 4}us", *law)


def tcp(runs: list[Run]) -> Drawn:
    """Queue length and throughput of TCP with and without QCN; the paper shows pictures, without numbers."""
    figure, axes = plt.subplots(len(runs), 2, sharex=True, figsize=(11, 14), layout="constrained")
    figure.suptitle(
        "TCP through a link of 750 Mb/s: queue and goodput; a window in which a lost segment came again delivers all "
        "that waited for it, and is cut off"
    )
    compared = []
    for (variant, rtt, qcn), run, (left, right) in zip(TCP_CASES, runs, axes, strict=True):
        name = f"{variant}, {rtt} us, {'QCN' if qcn else 'no QCN'}"
        queue = run.series("switch", "queue_bytes", len(flows(run)))
        rate = throughput(run, flows(run)[0]["name"])
        left.plot(queue.time_ms, queue.value / 1e3, lw=0.6)
        left.set_ylabel(f"{name}\nqueue [kB]", fontsize="small")
        right.plot(rate.time_ms, rate.value * 1e3, lw=0.6)
        right.set_ylabel("goodput [Mb/s]", fontsize="small")
        right.axhline(TCP_LINK_MBPS, color="black", lw=0.8, ls="--")
        right.set_ylim(0, 1.2 * TCP_LINK_MBPS)
        settled = queue.value[queue.time_ms >= SETTLED_MS] / 1e3
        compared += [
            Compared(f"{name}: throughput", None, 1e3 * mean(rate, SETTLED_MS, rate.time_ms[-1]), "Mb/s", 0),
            Compared(f"{name}: queue, mean", None, settled.mean(), "kB", 0),
            Compared(f"{name}: queue, standard deviation", None, settled.std(), "kB", 0),
        ]
    for axis in axes[-1]:
        axis.set_xlabel("simulated time [ms]")
    return figure, compared
