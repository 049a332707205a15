# SPDX-License-Identifier: Apache-2.0
"""Plots of a run: `python -m penstock.plots out/` writes three PNG files next to its tables.

| file | shows |
|---|---|
| `throughput.png` | per board: throughput on the wire with R_C (and R_T) over it, as in AdvCam figure 14 |
| `alpha.png` | per board: the congestion estimate, and a mark for each cut of the rate |
| `queue.png` | the switch's queue towards the server, with the marking thresholds |

Runs of `penstock ctl sample` have the payload throughput of boards, and no switch.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.results import Run, Series, samples

BLUE, RED, ORANGE, GREEN, GREY = "#1f77b4", "#d62728", "#ff7f0e", "#2ca02c", "#7f7f7f"


def _series(run: Run, node: str, metric: str, channel: int = 0) -> Series:
    """One metric; a run shorter than a sample has none, and a picture without a line."""
    return samples(run.trace, node, metric, channel)


def _smooth(series: Series, window_ms: float) -> Series:
    """Mean over a sliding window, so that single packets do not hide the rate."""
    if len(series.time_ms) < 3:
        return series
    step = np.median(np.diff(series.time_ms))
    width = max(1, round(window_ms / step))
    kernel = np.ones(width)
    count = np.convolve(np.ones(len(series.value)), kernel, mode="same")
    return Series(series.time_ms, np.convolve(series.value, kernel, mode="same") / count)


def _panels(run: Run, title: str, ylabel: str) -> tuple[Figure, dict[str, Axes]]:
    """One panel per board, common time axis."""
    names = run.boards
    figure, axes = plt.subplots(
        len(names),
        1,
        sharex=True,
        sharey=True,
        squeeze=False,
        figsize=(9, 1.2 + 1.7 * len(names)),
        layout="constrained",
    )
    figure.suptitle(title)
    for axis, name in zip(axes[:, 0], names, strict=True):
        axis.set_ylabel(f"{name}\n{ylabel}")
        axis.grid(alpha=0.3)
    axes[-1, 0].set_xlabel("simulated time [ms]")
    return figure, dict(zip(names, axes[:, 0], strict=True))


def throughput(run: Run) -> Figure:
    """Throughput of every board, averaged over 100 us, with R_C and R_T."""
    figure, panels = _panels(run, "Throughput on the wire (100 us mean) and rate limiter", "rate [Gb/s]")
    for name, axis in panels.items():
        seen = _smooth(_series(run, name, "wire_throughput_bps"), 0.1)
        if len(seen.value) == 0:
            seen = _series(run, name, "throughput_bps")
        axis.plot(seen.time_ms, seen.value / 1e9, color=BLUE, lw=1, label="measured")
        current, target = _series(run, name, "rate_current_bps"), _series(run, name, "rate_target_bps")
        axis.step(current.time_ms, current.value / 1e9, color=RED, lw=1, where="post", label="$R_C$")
        axis.step(target.time_ms, target.value / 1e9, color=ORANGE, lw=0.8, ls="--", where="post", label="$R_T$")
        axis.set_ylim(0, 10.5)
    next(iter(panels.values())).legend(loc="upper right", ncols=3, fontsize="small")
    return figure


def alpha(run: Run) -> Figure:
    """The congestion estimate of every board, with a mark at each sample in which a CNP was handled."""
    figure, panels = _panels(run, "Congestion estimate", "alpha")
    for name, axis in panels.items():
        estimate, cnps = _series(run, name, "alpha"), _series(run, name, "cnp_handled")
        axis.step(estimate.time_ms, estimate.value, color=BLUE, lw=1, where="post", label="alpha")
        marks = cnps.time_ms[1:][np.diff(cnps.value) > 0]
        axis.vlines(marks, 0, 1.05, color=GREEN, lw=0.6, alpha=0.6, label=f"CNP ({int(cnps.value.max(initial=0))})")
        axis.set_ylim(0, 1.05)
        axis.legend(loc="upper right", ncols=2, fontsize="small")
    return figure


def queue(run: Run) -> Figure:
    """Bytes waiting in the switch for the link to the server, and when it paused the boards."""
    figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
    figure.suptitle("Switch queue towards the server")
    server_port = len(run.boards)
    waiting = _series(run, "switch", "queue_bytes", server_port)
    axis.plot(waiting.time_ms, waiting.value / 1e3, color=BLUE, lw=0.8, label="queue")
    port = run.summary["switches"][0]["ports"][server_port]
    for key, name, style in (("kmin_bytes", "$K_{min}$", ":"), ("kmax_bytes", "$K_{max}$", "--")):
        if port[key] is not None:
            axis.axhline(port[key] / 1e3, color=GREY, lw=1, ls=style, label=name)
    pausing = [_series(run, "switch", "pfc_pausing", port) for port in range(server_port)]
    if pausing and len(pausing[0].value):
        any_paused = np.max([series.value for series in pausing], axis=0) > 0
        top = max(waiting.value.max(initial=1.0), 1.0) / 1e3
        axis.fill_between(pausing[0].time_ms, 0, top, where=any_paused, color=RED, alpha=0.15, step="post", label="PFC")
    axis.set_xlabel("simulated time [ms]")
    axis.set_ylabel("waiting [kB]")
    axis.grid(alpha=0.3)
    axis.legend(loc="upper right", ncols=4, fontsize="small")
    return figure


def draw(folder: Path) -> list[Path]:
    """Draws all pictures of the run in `folder`; returns their files. Nothing is drawn without a trace."""
    run = Run(folder)
    if run.trace is None:
        return []
    written = []
    pictures = [("throughput", throughput), ("alpha", alpha)]
    if run.summary["switches"]:  # the switches of sampled boards were not sampled
        pictures.append(("queue", queue))
    for name, picture in pictures:
        path = folder / f"{name}.png"
        figure = picture(run)
        figure.savefig(path, dpi=130)
        plt.close(figure)
        written.append(path)
    return written


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m penstock.plots FOLDER (what `penstock run --out` has written)", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    if not (folder / "summary.json").exists():
        print(f"{folder}: no summary.json here; run `penstock run SCENARIO --out {folder}` first", file=sys.stderr)
        return 2
    for path in draw(folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
