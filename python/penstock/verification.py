# SPDX-License-Identifier: Apache-2.0
"""Checks whether the result of a search is better than the scenario's own values over other seeds, too.

Promise: both sides are run with the same seeds, none of which the search has seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.harm import Harm
from penstock.objectives import gain_percent

SEEDS = 5  # that a winner is run over again


@dataclass(frozen=True)
class Outcome:
    """What one run gave: the value of each objective, its goodput in Gb/s, and what it cost."""

    values: dict[str, float]
    goodput_gbps: float
    harm: Harm = field(default_factory=Harm)


@dataclass(frozen=True)
class SeedPair:
    """The scenario's own values and the winner's, run with one seed."""

    seed: int
    default: Outcome
    winner: Outcome

    def gains(self) -> dict[str, float]:
        """In percent of the own values, by objective and `goodput_gbps`; positive is better."""
        gains = {name: gain_percent(value, self.winner.values[name]) for name, value in self.default.values.items()}
        return gains | {"goodput_gbps": gain_percent(-self.default.goodput_gbps, -self.winner.goodput_gbps)}

    def row(self) -> dict:
        """For JSON."""
        return {
            "seed": self.seed,
            "own": {**self.default.values, "goodput_gbps": self.default.goodput_gbps},
            "winner": {**self.winner.values, "goodput_gbps": self.winner.goodput_gbps},
            "gain_percent": self.gains(),
        }


@dataclass(frozen=True)
class Spread:
    """Of a gain over the seeds, in percent."""

    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(sum(values) / len(values), min(values), max(values))

    def __str__(self) -> str:
        if math.isinf(self.least):
            return "no answer with some seeds: too little is delivered or completed"
        return f"{percent(self.mean)} ({self.least:+.1f} to {self.most:+.1f} %)"


def percent(gain: float) -> str:
    """A gain in words: `12.3 % better`."""
    word = "worse" if gain < 0 else "better"
    if math.isinf(gain):
        return f"{word} than 0"
    return f"{abs(gain):.1f} % {word}" if gain else "no change"


@dataclass(frozen=True)
class Verification:
    """A winner against the scenario's own values, seed by seed."""

    pairs: tuple[SeedPair, ...]

    def gains(self) -> dict[str, Spread]:
        """Of each objective and of the goodput."""
        rows = [pair.gains() for pair in self.pairs]
        return {name: Spread.of([row[name] for row in rows]) for name in rows[0]}

    @property
    def is_confirmed(self) -> bool:
        """With every seed no objective is worse than with the scenario's own values, one is better, and nothing more is
        lost or paused."""
        if self.harm is not None:
            return False
        rows = [[gain for name, gain in pair.gains().items() if name in pair.default.values] for pair in self.pairs]
        return all(min(row) >= 0 and max(row) > 0 for row in rows)

    @property
    def harm(self) -> str | None:
        """What the winner costs with the first seed with which it costs more than the own values; None: nothing."""
        for pair in self.pairs:
            if cost := pair.winner.harm.beyond(pair.default.harm):
                return f"with seed {pair.seed} {cost}"
        return None

    def lines(self) -> list[str]:
        """For people."""
        first, last = self.pairs[0].seed, self.pairs[-1].seed
        words = [f"{name.removesuffix('_gbps')} {spread}" for name, spread in self.gains().items()]
        unique = list(dict.fromkeys(words))
        return [f"with the seeds {first} to {last}, mean (least to most): {'; '.join(unique)}"]
