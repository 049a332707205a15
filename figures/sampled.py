# SPDX-License-Identifier: Apache-2.0
"""AdvCam figures 12, 13 and 14 of boards that `penstock ctl sample` has read: `penstock figures --sampled FOLDER`.

The pictures and numbers are those of the scenarios (`figures.advcam`), where a board takes the place of a flow. Nothing
says when a board sends: it sends while more than 1 % of its line is acknowledged, in windows of 10 ms or ten samples.
A span is the time between two changes of the boards that send; the numbers are taken from 200 ms after its begin on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from penstock.drawing import BLACK, BLUE, SKY, coarser
from penstock.results import Run, Series, samples

from figures.advcam import PAPER, draw_rate, goodput_axes, overlap, teeth
from figures.comparison import Compared, Drawn

MOST_PANELS = 14  # boards with a panel of their own
MOST_NAMED = 7  # and with a line of their own
SENDS = 0.01  # of the line
SETTLED_MS = 200.0
LEAST_MS = 300.0  # a shorter span has no numbers


@dataclass(frozen=True)
class Span:
    """A time in which the same boards send; numbers are taken from `settled_ms` on."""

    begin_ms: float
    end_ms: float
    boards: tuple[str, ...]

    @property
    def settled_ms(self) -> float:
        return self.begin_ms + SETTLED_MS


@dataclass(frozen=True)
class Sampled:
    """A folder of `ctl sample`; figures 13 and 14 show `board`, all show `queue_pair`."""

    run: Run
    board: str
    queue_pair: int

    def series(self, metric: str, board: str | None = None) -> Series:
        """A metric of a board; empty when it was never read."""
        return samples(self.run.trace, board or self.board, metric, self.queue_pair)

    def goodput(self, board: str | None = None) -> Series:
        """Acknowledged payload of a board in Gb/s."""
        series = self.series("throughput_bps", board)
        return Series(series.time_ms, series.value / 1e9)

    @cached_property
    def window_ms(self) -> float:
        """The windows in which a board sends or does not."""
        return max(10.0, 10e3 * self.run.summary["interval_s"])

    @cached_property
    def rates(self) -> np.ndarray:
        """Goodput in Gb/s, of shape (boards, windows); 0 where a board was silent."""
        windows = int(1e3 * self.run.summary["seconds"] // self.window_ms)
        rows = []
        for name in self.run.boards:
            series = self.goodput(name)
            at = (series.time_ms // self.window_ms).astype(int)
            count = np.bincount(at, minlength=windows)[:windows]
            total = np.bincount(at, series.value, minlength=windows)[:windows]
            rows.append(np.divide(total, count, out=np.zeros(windows), where=count > 0))
        return np.array(rows)

    @cached_property
    def time_ms(self) -> np.ndarray:
        """The middles of the windows."""
        return (np.arange(self.rates.shape[1]) + 0.5) * self.window_ms

    @cached_property
    def spans(self) -> list[Span]:
        """All that are long enough, in time."""
        lines = np.array([board["line_rate_bps"] / 1e9 for board in self.run.summary["boards"]])
        sends = self.rates > SENDS * lines[:, None]
        changes = np.flatnonzero((sends[:, 1:] != sends[:, :-1]).any(axis=0)) + 1
        found = []
        for begin, end in pairwise([0, *changes.tolist(), sends.shape[1]]):
            if (end - begin) * self.window_ms >= LEAST_MS and sends[:, begin].any():
                names = tuple(np.array(self.run.boards)[sends[:, begin]])
                found.append(Span(begin * self.window_ms, end * self.window_ms, names))
        return found

    @cached_property
    def shown(self) -> Span:
        """The longest span in which the board sends; the whole run when there is none."""
        of_board = [span for span in self.spans if self.board in span.boards]
        whole = Span(-SETTLED_MS, 1e3 * self.run.summary["seconds"], ())
        return max(of_board, key=lambda span: span.end_ms - span.begin_ms, default=whole)


def _mean(sampled: Sampled, board: str, span: Span) -> float:
    inside = (sampled.time_ms > span.settled_ms) & (sampled.time_ms < span.end_ms)
    return float(sampled.rates[sampled.run.boards.index(board), inside].mean())


def plateaus(sampled: Sampled) -> Drawn:
    """Figure 12: goodput of all boards and their sum; the plateau of each span, and the mean of the sum."""
    names = sampled.run.boards
    title, total = "AdvCam 12, measured", sampled.rates.sum(axis=0)
    few = len(names) <= MOST_PANELS
    figure, axes = goodput_axes(title, len(names) + 1 if few else 2, 1.2 if few else 1.9, "time")
    if few:
        for axis, name in zip(axes, names, strict=False):
            series = sampled.goodput(name)
            axis.plot(series.time_ms, series.value, lw=0.7, color=BLUE)
            axis.set_title(name, loc="left", pad=3)
            for span in (span for span in sampled.spans if name in span.boards):
                axis.plot((span.settled_ms, span.end_ms), [_mean(sampled, name, span)] * 2, **PAPER)
    else:
        low, median, high = np.quantile(sampled.rates, (0.1, 0.5, 0.9), axis=0)
        axes[0].fill_between(sampled.time_ms, low, high, color=SKY, lw=0, label="10 % to 90 %")
        axes[0].plot(sampled.time_ms, median, color=BLUE, label="median")
        axes[0].set_title(f"{len(names)} boards", loc="left", pad=3)
        axes[0].legend(loc="upper right")
    axes[-1].plot(sampled.time_ms, total, color=BLACK)
    axes[-1].set_title("all of them", loc="left", pad=3)
    for axis in axes:
        axis.set_ylim(bottom=0)
    compared = []
    for span in sampled.spans:
        rates = [_mean(sampled, name, span) for name in span.boards]
        senders = f"{len(rates)} boards" if len(rates) > 1 else span.boards[0]
        label = f"{senders} from {span.begin_ms / 1e3:.2f} s to {span.end_ms / 1e3:.2f} s"
        compared.append(Compared(f"{label}, mean", None, float(np.mean(rates)), "Gb/s"))
        if len(rates) > 1:
            compared.append(Compared(f"{label}, lowest board", None, min(rates), "Gb/s"))
            compared.append(Compared(f"{label}, highest board", None, max(rates), "Gb/s"))
    compared.append(Compared("sum of all boards, mean over the run", None, float(total.mean()), "Gb/s"))
    return figure, compared


def saw_tooth(sampled: Sampled) -> Drawn:
    """Figure 13: goodput of the boards that send along with this one, and its R_C."""
    board, span = sampled.board, sampled.shown
    figure, axes = goodput_axes(f"AdvCam 13, measured: {board}; windows of 2 samples", 2, 1.5, "time")
    rest = [name for name in span.boards if name != board]
    for name in [board, *rest[: MOST_NAMED - 1]]:
        series = sampled.goodput(name)
        axes[0].plot(*(coarser(values, 2) for values in (series.time_ms, series.value)), label=name)
    axes[0].set_ylim(bottom=0)
    axes[0].legend(loc="upper left", ncols=3)
    current = sampled.series("rate_current_bps")
    draw_rate(axes[1], current, board)
    found = teeth(current, sampled.series("cnp_handled"), span.settled_ms, span.end_ms)
    return figure, [
        Compared(f"climbs of {board}", "sharp", len(found.climbs), digits=0),
        *found.compared(),
        Compared(f"{board}, mean", None, _mean(sampled, board, span), "Gb/s"),
    ]


def limiter(sampled: Sampled) -> Drawn:
    """Figure 14: R_C and R_T of the board over its goodput, as payload rates of an MTU of 4096 bytes."""
    span, current, target = sampled.shown, sampled.series("rate_current_bps"), sampled.series("rate_target_bps")
    figure, axes = goodput_axes(f"AdvCam 14, measured: {sampled.board}, registers as payload rates", 2, 1.9, "time")
    times = span.settled_ms, span.end_ms, 1e3 * sampled.run.summary["interval_s"]
    return figure, overlap(axes, sampled.goodput(), current, target, *times)


FIGURES: dict[str, Callable[[Sampled], Drawn]] = {
    "advcam-12": plateaus,
    "advcam-13": saw_tooth,
    "advcam-14": limiter,
}


def opened(folder: str, board: str | None, queue_pair: int | None) -> Sampled:
    """The boards of a folder; ValueError says what it has instead of what is asked for."""
    run = Run(Path(folder))
    if not Path(folder, "summary.json").exists() or run.summary.get("kind") != "sample":
        raise ValueError(f"{folder}: there is no result of `penstock ctl sample`")
    read = [entry["name"] for entry in run.summary["boards"] if entry["samples"] > 1]
    if run.trace is None or not read:
        raise ValueError(f"{folder}: no board was read twice: sample for a longer time")
    if board is not None and board not in read:
        raise ValueError(f"--board {board}: it was not sampled; there are {', '.join(read)}")
    pairs = run.summary["queue_pairs"]
    if queue_pair is not None and queue_pair not in pairs:
        raise ValueError(f"--queue-pair {queue_pair}: it was not sampled; there are {', '.join(map(str, pairs))}")
    return Sampled(run, board or read[0], pairs[0] if queue_pair is None else queue_pair)
