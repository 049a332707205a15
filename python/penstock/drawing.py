# SPDX-License-Identifier: Apache-2.0
"""How all pictures look: as wide as a printed page of two columns, letters of 7 to 9 points there, and colours that
differ for every kind of colour vision.

Colours: the palette of Okabe and Ito (https://jfly.uni-koeln.de/color/). Lines differ in their dashes as well, for
prints in grey.
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, BLACK, GREY = "#e69f00", "#56b4e9", "#000000", "#8c8c8c"

PAGE_IN = 7.16  # width of the text of IEEE's and similar pages
DPI = 200
_DASHES = ("-", (0, (5, 1.5)), "-.", (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (4, 4)))
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "figure.titlesize": 9,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.edgecolor": "none",
    "lines.linewidth": 0.9,
    "lines.markersize": 3,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "axes.prop_cycle": cycler(color=[BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK]) + cycler(linestyle=_DASHES),
}


P = ParamSpec("P")
R = TypeVar("R")


def styled(draws: Callable[P, R]) -> Callable[P, R]:
    """Lets a function draw in this style, and leaves the caller's settings of matplotlib alone."""

    @wraps(draws)
    def inside(*arguments: P.args, **options: P.kwargs) -> R:
        with plt.rc_context(STYLE):
            return draws(*arguments, **options)

    return inside


def panels(title: str, rows: int, columns: int = 1, *, height_in: float, **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure of the page's width, panels of this height; axes of shape (rows, columns). `options`: of `subplots`."""
    size = (PAGE_IN, 0.6 + rows * height_in)
    figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=size, layout="constrained", **options)
    figure.suptitle(title)
    return figure, axes


def coarser(values: np.ndarray, samples: int) -> np.ndarray:
    """Means of this number of samples each, which hide single packets; a shorter rest at the end is left out."""
    whole = len(values) // samples
    return values[: whole * samples].reshape(whole, samples, *values.shape[1:]).mean(axis=1)


def save(figure: Figure, path: Path) -> None:
    """Writes the picture and forgets the figure."""
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
