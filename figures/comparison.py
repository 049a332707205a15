# SPDX-License-Identifier: Apache-2.0
"""A number of a paper compared with ours, and the functions that the figures use to measure it.

Rates are Gb/s of payload delivered in order, times ms; a window counts for the instant at which it ends.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from penstock.results import Run, Series


@dataclass(frozen=True)
class Compared:
    """A quantity: the paper's value (a number, words when it is only described, None when it states none) and ours.

    `by_construction`: the scenario has the paper's value, or values of ours that were chosen to give it; agreement then
    shows nothing. `of_machine`: measured in the time of the machine that draws the figure, and so another on each.
    """

    quantity: str
    paper: float | str | None
    penstock: float
    unit: str = ""
    digits: int = 2
    of_machine: bool = False
    by_construction: bool = False

    def text(self) -> str:
        """Our value with its unit."""
        return f"{self.penstock:.{self.digits}f} {self.unit}".rstrip()

    def paper_text(self) -> str:
        """The paper's value with its unit."""
        if isinstance(self.paper, float):
            return f"{self.paper:g} {self.unit}".rstrip()
        return self.paper or ""

    def deviation_percent(self) -> float | None:
        """Ours against the paper's in per cent; None where the paper has no number."""
        if not isinstance(self.paper, float) or self.paper == 0 or self.by_construction:
            return None
        return 100 * (self.penstock / self.paper - 1)

    def deviation(self) -> str:
        """As the table shows it; empty where the paper has no number."""
        if self.by_construction:
            return "by construction"
        percent = self.deviation_percent()
        return "" if percent is None else f"{percent:+.1f} %"

    def cells(self) -> dict[str, str | None]:
        """The columns of a row, as tables show them."""
        texts = {"paper": self.paper_text(), "Penstock": self.text(), "deviation": self.deviation()}
        return {"quantity": self.quantity, **{column: text or None for column, text in texts.items()}}

    def entry(self) -> dict[str, object]:
        """As `penstock figures --json` has it."""
        numbers = {"paper": self.paper, "penstock": self.penstock, "unit": self.unit}
        return {"quantity": self.quantity, **numbers, "deviation_percent": self.deviation_percent()}


# A picture and its numbers.
Drawn = tuple[Figure, list[Compared]]


def flows(run: Run) -> list[dict]:
    """The flows of summary.json, in order."""
    return run.summary["flows"]


def throughput(run: Run, name: str) -> Series:
    """Throughput of a flow (or "network") in Gb/s."""
    series = run.series(name, "throughput_bps")
    return Series(series.time_ms, series.value / 1e9)


def register(run: Run, flow: dict, metric: str) -> Series:
    """A metric of the sender of a flow; its host has one sender."""
    return run.series(flow["from"], metric)


def mean(series: Series, begin_ms: float, end_ms: float) -> float:
    """Mean of the windows that lie in [begin, end]; nan when there is none."""
    step = np.median(np.diff(series.time_ms)) if len(series.time_ms) > 1 else 0.0
    inside = (series.time_ms - step >= begin_ms - 1e-6) & (series.time_ms <= end_ms + 1e-6)
    return float(series.value[inside].mean()) if inside.any() else float("nan")


def lost(run: Run) -> int:
    """Frames dropped by switches, and retransmissions."""
    dropped = sum(switch[key] for switch in run.summary["switches"] for key in switch if key.startswith("dropped_"))
    return dropped + sum(flow["retransmissions"] for flow in flows(run))


def jain(rates: np.ndarray) -> np.ndarray:
    """Jain's index of each row, for `rates` of shape (windows, flows); nan where all are zero."""
    squares = (rates**2).sum(axis=1) * rates.shape[1]
    return np.divide(rates.sum(axis=1) ** 2, squares, out=np.full(len(rates), np.nan), where=squares > 0)
