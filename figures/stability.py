# SPDX-License-Identifier: Apache-2.0
"""Phase plots of DCQCN: the sum of all R_C against the queue, from a start at twice the share, over boards and delay.

The plane and the question are those of the fluid model of Zhu et al., "ECN or Delay", CoNEXT 2016: does the loop of
rate, queue and delayed marks settle at the fair share, or oscillate around it? The points here are those of
the laboratory, packet by packet, with a PFC switch: while it sends pauses, rates can stay far above the line.
"""

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter
from penstock.drawing import BLUE, GREY, VERMILION, panels
from penstock.results import Run

from figures.comparison import Compared, Drawn
from figures.scale import matrix

LINE_BPS = 10e9
BOARDS = (3, 64, 256)
DELAYS = ("1us", "50us")
PROFILES = {"penstock": (), "zhu": ("switch.pmax=0.01",)}
SETTLED_MS = 200.0  # of 400: what a loop does from here on it does for good


def settings(profile: str, boards: int, delay: str) -> tuple[str, ...]:
    """`incast-64` with this number of boards that start at twice their share."""
    return (
        f"cc.profile={profile}",
        f"topology.boards={boards}",
        f"link.delay={delay}",
        f"cc.rate_start={2 * LINE_BPS / boards / 1e6:.6f}Mbps",
        "run.time_limit=400ms",
        "trace.interval=100us",
        'trace.metrics=["rate_current_bps", "queue_bytes"]',
        *PROFILES[profile],
    )


def jobs() -> list[tuple[str, str, tuple[str, ...]]]:
    """Folder, scenario and settings of every run."""
    cases = [(profile, boards, delay) for profile in PROFILES for boards in BOARDS for delay in DELAYS]
    return [(f"stability-{'-'.join(map(str, case))}", "incast-64", settings(*case)) for case in cases]


def _orbit(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time in ms, sum of all R_C as a part of the line, bytes of the longest queue."""
    time, rates = matrix(run, "rate_current_bps")
    _, queues = matrix(run, "queue_bytes")
    return time, rates.sum(axis=1) / LINE_BPS, queues.max(axis=1)


def draw(runs: list[Run]) -> Drawn:
    """A row for each profile, a column for each number of boards, a curve for each delay."""
    title = "From twice the share into 10 Gb/s: path of the first 200 ms (lines), and all points after it"
    figure, axes = panels(title, len(PROFILES), len(BOARDS), height_in=2.3)
    looks = dict(zip(DELAYS, ((BLUE, "o"), (VERMILION, "x")), strict=True))
    compared, rest = [], iter(runs)
    for row, profile in zip(axes, PROFILES, strict=True):
        for axis, boards in zip(row, BOARDS, strict=True):
            for delay in DELAYS:
                time, rate, queue = _orbit(next(rest))
                late = time > SETTLED_MS
                colour, marker = looks[delay]
                axis.plot(rate[~late], 1 + queue[~late] / 1e3, lw=0.5, ls="-", alpha=0.6, color=colour)
                points = {"ls": "", "ms": 2, "alpha": 0.4, "mew": 0.4, "color": colour, "rasterized": True}
                axis.plot(rate[late], 1 + queue[late] / 1e3, marker, label=f"{delay} a link", **points)
                name = f"{profile}: {boards} boards, {delay} a link"
                compared.append(Compared(f"{name}, sum of R_C, 1 %", None, np.percentile(rate[late], 1), "of the line"))
                compared.append(
                    Compared(f"{name}, sum of R_C, 99 %", None, np.percentile(rate[late], 99), "of the line")
                )
                compared.append(Compared(f"{name}, queue, 99 %", None, np.percentile(queue[late], 99) / 1e3, "kB", 0))
            axis.axvline(1.0, color=GREY, lw=0.8, zorder=0)
            axis.set_title(f"{profile}, {boards} boards")
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if np.divide(*axis.get_xlim()) > 0.05 else (1,)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel("sum of $R_C$ / line")
        row[0].set_ylabel("queue + 1 kB [kB]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, markerscale=2)
    return figure, compared
