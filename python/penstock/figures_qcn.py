# SPDX-License-Identifier: Apache-2.0
"""Traces and recovery times of the QCN hardware evaluation (Kabbani, Yasuda, Prabhakar).

The recovery time runs from the end of the hotspot to the first sample at which the senders' current rates together are
back at 95 % of the line; the jitter of timer and byte counter makes it random, so it is the mean of several seeds.
"""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np

from penstock.comparison import Compared, flows, lost, register
from penstock.results import Run

HOTSPOT_END_MS = 4500.0  # `change.0.until` of the scenarios
LINE_BPS = 1e9


def _rate(run: Run):
    """Times and the sum of R_C of all senders in bit/s, no more than the line."""
    all_rates = [register(run, flow, "rate_current_bps") for flow in flows(run)]
    return all_rates[0].time_ms, np.minimum(np.sum([series.value for series in all_rates], axis=0), LINE_BPS)


def recovery_ms(run: Run) -> float:
    """Time from the end of the hotspot until the rate is back; nan when it never is."""
    time, rate = _rate(run)
    back = time[(time >= HOTSPOT_END_MS) & (rate >= 0.95 * LINE_BPS)]
    return float(back[0] - HOTSPOT_END_MS) if len(back) else float("nan")


def recovery(paper_ms: float | None) -> Callable[[list[Run]], tuple]:
    """What draws the traces and compares the recovery time with the paper's."""

    def draw(runs: list[Run]):
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
            compared.append(Compared("recovery time, standard deviation", None, times.std(ddof=1), "ms", 0))
        peak = max(switch["peak_buffer_bytes"] for run in runs for switch in run.summary["switches"])
        compared.append(Compared("highest queue", None, peak / 1e3, "kB", 0))
        compared.append(Compared("frames lost or repeated", None, sum(lost(run) for run in runs), digits=0))
        return figure, compared

    return draw
