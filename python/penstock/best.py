# SPDX-License-Identifier: Apache-2.0
"""The result of a search: the best point, and its gain over the scenario's own values.

Promise: a point is recommended only if it is also better than the own values over seeds that the search has not seen.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock import fronts
from penstock.objectives import gain_percent
from penstock.verification import Verification, percent

NO_BETTER = "no better than the scenario's own values"


@dataclass(frozen=True)
class Best:
    """The point that a search names, and what it is worth.

    `value` and `baseline` are of the first objective, `values` and `own` of all by name: of the named point and of the
    scenario's own values. `trials` has a row for each trial; with several objectives its column `on_front` says which
    trials no other one beats in all of them. `verification` is None where nothing was better than the own values.
    """

    settings: dict[str, str]
    point: str
    values: dict[str, float]
    goodput_gbps: float
    own: dict[str, float]
    own_goodput_gbps: float
    trials: pa.Table
    verification: Verification | None

    @property
    def value(self) -> float:
        return next(iter(self.values.values()))

    @property
    def baseline(self) -> float:
        return next(iter(self.own.values()))

    @property
    def is_better(self) -> bool:
        """With the scenario's own seed no objective is worse than with its own values, and one is better."""
        return fronts.dominates(list(self.values.values()), list(self.own.values()))

    @property
    def is_recommended(self) -> bool:
        """It is better with the scenario's own seed and with each of the others."""
        return self.verification is not None and self.verification.is_confirmed

    @property
    def ties(self) -> int:
        """How many trials have the values of the named point."""
        return _values_of(self.trials, self.values).count(tuple(self.values.values()))

    def verdict(self) -> str:
        """What the search has shown, against the scenario's own values; a sentence each."""
        lines = [f"own values: {listed(self.own)} at {self.own_goodput_gbps:.3f} Gb/s"]
        gains = [percent(gain_percent(own, self.values[name])) for name, own in self.own.items()]
        lines.append(f"best trial: {listed(self.values)} at {self.goodput_gbps:.3f} Gb/s ({', '.join(gains)})")
        if self.ties > 1:
            lines.append(
                f"{self.ties} of {self.trials.num_rows} trials have this value: the one that delivers most is named"
            )
        if self.verification is None:
            lines.append("no trial is better than the scenario's own values: keep them")
            return "\n".join(lines)
        lines += self.verification.lines()
        if self.is_recommended:
            lines.append("recommended: better than the scenario's own values with every seed")
        elif self.verification.harm is not None:
            lines.append(f"not recommended: {self.verification.harm}; keep the scenario's own values")
        else:
            lines.append("not recommended: with another seed it is no better than the scenario's own values; keep them")
        return "\n".join(lines)


def listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in values.items())


def _values_of(trials: pa.Table, names: Mapping[str, object]) -> list[tuple[float, ...]]:
    """Of each trial its objectives; a search for one has them in `value`."""
    columns = ["value"] if len(names) == 1 else list(names)
    return list(zip(*(trials[column].to_pylist() for column in columns), strict=True))


def as_toml(best: Best) -> str:
    """The keys as a scenario file has them, section by section; those inside arrays of tables as comments."""
    chosen_keys = best.settings
    lines = [f"# objective {listed(best.values)}"]
    if not best.is_recommended:
        harm = best.verification.harm if best.verification is not None else None
        lines.append(f"# not recommended: {harm or NO_BETTER}")
    inside = [key for key in sorted(chosen_keys) if any(part.isdigit() for part in key.split("."))]
    lines += [f"# --set {key}={chosen_keys[key]}" for key in inside]
    section = None
    for key in sorted(chosen_keys.keys() - set(inside), key=lambda key: key.rpartition(".")):
        table, _, name = key.rpartition(".")
        if table != section and table:
            lines.append(f"[{table}]")
            section = table
        lines.append(f"{name} = {_literal(chosen_keys[key])}")
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    """Unchanged if TOML reads it as a value, quoted otherwise: `--set` has no quotes."""
    try:
        tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return json.dumps(text)
    return text
