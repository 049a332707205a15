# SPDX-License-Identifier: Apache-2.0
"""Plots of a run: `python -m penstock.plots out/` writes three PNG files next to its tables.

| file | shows |
|---|---|
| `throughput.png` | per board: throughput on the wire with R_C (and R_T) over it, as in AdvCam figure 14 |
| `alpha.png` | per board: the congestion estimate, and a mark for each cut of the rate |
| `queue.png` | the switch's queue towards the server, with the marking thresholds |

More than a page of boards are drawn as their median and spread. Runs of `penstock ctl sample` have the payload
throughput of boards, and no switch.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.drawing import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION, panels, save, styled
from penstock.results import Run, Series, samples

MOST_PANELS = 14  # boards with a panel of their own
RATE = "rate [Gb/s]"


def _time(run: Run) -> str:
    return "time [ms]" if run.summary.get("kind") == "sample" else "simulated time [ms]"


def _seconds(run: Run) -> float:
    """How long it was: simulated, or sampled."""
    summary = run.summary
    return summary["seconds"] if summary.get("kind") == "sample" else summary["simulated_s"]


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


def _measured(run: Run, name: str, window_ms: float = 0.1) -> Series:
    seen = _smooth(_series(run, name, "wire_throughput_bps"), window_ms)
    return seen if len(seen.value) else _series(run, name, "throughput_bps")


def _boards(run: Run, title: str, quantity: str) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each board, in one column or two, with common axes."""
    names = run.boards
    columns = 1 if len(names) <= 4 else 2
    rows = -(-len(names) // columns)
    figure, axes = panels(title, rows, columns, height_in=1.15, sharex=True, sharey=True)
    of = dict(zip(names, axes.flat, strict=False))
    for name, axis in of.items():
        axis.set_title(name, loc="left", pad=3)
    for axis in list(axes.flat)[len(names) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel(quantity)
    for axis in list(of.values())[-columns:]:
        axis.set_xlabel(_time(run))
        axis.xaxis.set_tick_params(labelbottom=True)
    return figure, of


def _spread(axis: Axes, run: Run, read: Callable[[str], Series], quantity: str) -> None:
    """Median, the middle 80 % and all of the boards over time."""
    every = [found for found in map(read, run.boards) if len(found.value)]
    axis.set_ylabel(quantity)
    if not every:
        return
    time = max((series.time_ms for series in every), key=len)
    values = np.array([np.interp(time, series.time_ms, series.value) for series in every])
    least, low, median, high, most = np.quantile(values, (0, 0.1, 0.5, 0.9, 1), axis=0)
    axis.fill_between(time, least, most, color=SKY, alpha=0.3, lw=0, label="all boards")
    axis.fill_between(time, low, high, color=SKY, alpha=0.8, lw=0, label="10 % to 90 %")
    axis.plot(time, median, color=BLUE, label="median")
    axis.set_ylim(bottom=0)


def _gbps(series: Series) -> Series:
    return Series(series.time_ms, series.value / 1e9)


@styled
def throughput(run: Run) -> Figure:
    """Throughput of every board, averaged over 100 us, with R_C and R_T."""
    if len(run.boards) > MOST_PANELS:
        window = max(0.1, 1e3 * _seconds(run) / 200)  # a small share has few packets
        title = f"Throughput on the wire ({window:.1g} ms mean) and rate limiter of {len(run.boards)} boards"
        figure, axes = panels(title, 2, height_in=1.8, sharex=True)
        _spread(axes[0, 0], run, lambda name: _gbps(_measured(run, name, window)), f"throughput\n{RATE}")
        _spread(axes[1, 0], run, lambda name: _gbps(_series(run, name, "rate_current_bps")), f"$R_C$\n{RATE}")
        axes[0, 0].legend(loc="lower right", ncols=3)
        axes[1, 0].set_xlabel(_time(run))
        return figure
    figure, of = _boards(run, "Throughput on the wire (100 us mean) and rate limiter", RATE)
    for name, axis in of.items():
        seen = _measured(run, name)
        axis.plot(seen.time_ms, seen.value / 1e9, color=SKY, lw=1.6, label="measured")
        current, target = _series(run, name, "rate_current_bps"), _series(run, name, "rate_target_bps")
        axis.step(current.time_ms, current.value / 1e9, color=VERMILION, lw=0.8, ls="-", where="post", label="$R_C$")
        axis.step(target.time_ms, target.value / 1e9, color=BLACK, lw=0.7, ls=":", where="post", label="$R_T$")
    first = next(iter(of.values()))
    first.set_ylim(bottom=0)  # of all panels, once all have their lines
    first.legend(loc="lower right", ncols=3)
    return figure


@styled
def alpha(run: Run) -> Figure:
    """The congestion estimate of every board, with a mark at each sample in which a CNP was handled."""
    if len(run.boards) > MOST_PANELS:
        figure, axes = panels(f"Congestion estimate of {len(run.boards)} boards", 1, height_in=2.2)
        _spread(axes[0, 0], run, lambda name: _series(run, name, "alpha"), "alpha")
        axes[0, 0].set_xlabel(_time(run))
        axes[0, 0].legend(loc="upper right", ncols=3)
        return figure
    figure, of = _boards(run, "Congestion estimate, and marks where a CNP was handled", "alpha")
    for name, axis in of.items():
        estimate, cnps = _series(run, name, "alpha"), _series(run, name, "cnp_handled")
        axis.step(estimate.time_ms, estimate.value, color=BLUE, where="post")
        marks = cnps.time_ms[1:][np.diff(cnps.value) > 0]
        axis.vlines(marks, 1.06, 1.2, color=GREEN, lw=0.6)
        axis.set_title(f"{int(cnps.value.max(initial=0))} CNPs", loc="right", pad=3, color=GREEN)
        axis.set_ylim(0, 1.22)
        axis.set_yticks((0, 0.5, 1))
    return figure


@styled
def queue(run: Run) -> Figure:
    """Bytes waiting in the switch for the link to the server, and when it paused the boards."""
    figure, axes = panels("Switch queue towards the server", 1, height_in=2.2)
    axis = axes[0, 0]
    server_port = len(run.boards)
    waiting = _series(run, "switch", "queue_bytes", server_port)
    axis.plot(waiting.time_ms, waiting.value / 1e3, color=BLUE, lw=0.8, label="queue")
    port = run.summary["switches"][0]["ports"][server_port]
    for key, name, style in (("kmin_bytes", "$K_{min}$", ":"), ("kmax_bytes", "$K_{max}$", "--")):
        if port[key] is not None:
            axis.axhline(port[key] / 1e3, color=BLACK, lw=0.8, ls=style, label=f"{name}, {port[key] / 1e3:g} kB")
    pausing = [_series(run, "switch", "pfc_pausing", port) for port in range(server_port)]
    if pausing and len(pausing[0].value):
        any_paused = np.max([series.value for series in pausing], axis=0) > 0
        if any_paused.any():
            top = max(waiting.value.max(initial=1.0), 1.0) / 1e3
            hatched = {"color": ORANGE, "alpha": 0.4, "lw": 0, "step": "post", "label": "PFC pauses boards"}
            axis.fill_between(pausing[0].time_ms, 0, top, where=any_paused, **hatched)
    axis.set_xlabel(_time(run))
    axis.set_ylabel("waiting [kB]")
    axis.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def draw(folder: Path) -> list[Path]:
    """Draws all pictures of the run in `folder`; returns their files. Nothing is drawn without a trace.

    ValueError: a run without boards, whose flows only its report shows.
    """
    run = Run(folder)
    if not run.summary.get("boards"):
        raise ValueError(f"{folder} is a run without boards: its report.html shows rates and queues of its flows")
    if run.trace is None:
        return []
    written = []
    pictures = [("throughput", throughput), ("alpha", alpha)]
    if run.summary["switches"]:  # the switches of sampled boards were not sampled
        pictures.append(("queue", queue))
    for name, picture in pictures:
        path = folder / f"{name}.png"
        save(picture(run), path)
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
    try:
        written = draw(folder)
    except ValueError as error:
        print(f"penstock.plots: {error}", file=sys.stderr)
        return 2
    for path in written:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
