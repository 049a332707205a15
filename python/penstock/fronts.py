# SPDX-License-Identifier: Apache-2.0
"""Plots the Pareto front of a search for several objectives: the trials that no other trial beats in all of them.

Source: Pareto dominance; a trial is on the front unless another is as good in each objective and better in one.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path


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
    import matplotlib  # takes a second, which `import penstock` should not

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(own)
    pairs = list(itertools.pairwise(names))
    figure, axes = plt.subplots(1, len(pairs), figsize=(6.4 * len(pairs), 4.8), layout="constrained", squeeze=False)
    for axis, (x, y) in zip(axes[0], pairs, strict=True):
        inside = [row for row in trials if math.isfinite(row[x]) and math.isfinite(row[y])]
        front = sorted((row for row in inside if row["on_front"]), key=lambda row: (row[x], row[y]))
        axis.plot([r[x] for r in inside], [r[y] for r in inside], "o", color="#b0b0b0", ms=4, label="trials")
        line = "-" if len(names) == 2 else ""
        axis.plot([r[x] for r in front], [r[y] for r in front], f"o{line}", color="#1f77b4", ms=6, label="front")
        if math.isfinite(own[x]) and math.isfinite(own[y]):
            axis.plot([own[x]], [own[y]], "s", color="#d62728", ms=8, label="own values")
        for row in front:
            if row["point"] == named:
                axis.plot([row[x]], [row[y]], "*", color="#2ca02c", ms=15, label="named")
        axis.set_xlabel(f"{x}: {meanings[x]}", fontsize="small", wrap=True)
        axis.set_ylabel(f"{y}: {meanings[y]}", fontsize="small", wrap=True)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(file, dpi=130)
    plt.close(figure)
