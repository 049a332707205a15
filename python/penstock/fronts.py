# SPDX-License-Identifier: Apache-2.0
"""Plots the Pareto front of a search for several objectives: the trials that no other trial beats in all of them.

Source: Pareto dominance; a trial is on the front unless another is as good in each objective and better in one.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether `one` is at least as small everywhere, and smaller somewhere."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def on_front(values: Sequence[Sequence[float]]) -> list[bool]:
    """For each trial; one with values that are not finite is not on the front."""
    finite = [all(map(math.isfinite, row)) for row in values]
    return [
        fine and not any(dominates(other, row) for other in values) for fine, row in zip(finite, values, strict=True)
    ]


def draw(file: Path, trials: Sequence[Mapping], own: Mapping[str, float], named: str | None, meanings: Mapping) -> None:
    """All trials and the front, a panel for each pair of neighbouring objectives. `trials` are rows with `on_front` and
    `point`; `named` is the point that is recommended.
    """
    from penstock.drawing import save, styled  # matplotlib takes a second, which `import penstock` should not

    save(styled(_front)(trials, own, named, meanings), file)


def _front(trials: Sequence[Mapping], own: Mapping[str, float], named: str | None, meanings: Mapping) -> "Figure":
    from penstock.drawing import BLUE, GREEN, GREY, VERMILION, panels

    names = list(own)
    pairs = list(itertools.pairwise(names))
    figure, axes = panels(f"{len(trials)} trials, and those that no other beats", 1, len(pairs), height_in=2.8)
    for axis, (x, y) in zip(axes[0], pairs, strict=True):
        inside = [row for row in trials if math.isfinite(row[x]) and math.isfinite(row[y])]
        front = sorted((row for row in inside if row["on_front"]), key=lambda row: (row[x], row[y]))
        axis.plot([r[x] for r in inside], [r[y] for r in inside], "o", color=GREY, ms=3, label="trials")
        line = "-" if len(names) == 2 else ""
        axis.plot([r[x] for r in front], [r[y] for r in front], f"o{line}", color=BLUE, ms=5, label="front")
        if math.isfinite(own[x]) and math.isfinite(own[y]):
            axis.plot([own[x]], [own[y]], "s", color=VERMILION, ms=6, label="own values")
        for row in front:
            if row["point"] == named:
                axis.plot([row[x]], [row[y]], "*", color=GREEN, ms=11, label="named")
        axis.set_xlabel(f"{x}: {meanings[x]}", wrap=True)
        axis.set_ylabel(f"{y}: {meanings[y]}", wrap=True)
        axis.legend()
    return figure
