# SPDX-License-Identifier: Apache-2.0
"""A model of the front end's clock, for benches that know the clock cycle of an event.

Time is a sum of steps in units of 2^-48 ns, one per cycle; a pulse per second changes the step by a second-order loop
(docs/fragments.md, "Time"). Cycles are numbered from the first one out of reset.
"""

import bisect

FRACTION = 48  # fractional bits of a step
SYNCHRONISED = 2  # cycles from the pin to the edge
DIVIDES = 64  # cycles that the remainder by the second takes
STEERS = 2  # from there to the new step


class TaiModel:
    """`set_at` says that the clock shows `ns` in this cycle; `pulse` that PPS has risen before this one."""

    def __init__(self, clock_khz: int, second_ns: int):
        self.second = second_ns
        self.nominal = (1_000_000 << FRACTION) // clock_khz
        self.unit = self.nominal // second_ns
        self.most = second_ns >> 13  # ns of a correction
        self.learnt = 0  # 1/32 ns
        self.offsets: list[int] = []
        self.steps = [(0, 0, self.nominal)]  # from this cycle on, sum until there, step
        self.base = 0

    def sum(self, cycle: int) -> int:
        """Steps of all cycles before this one."""
        first, so_far, step = self.steps[bisect.bisect_right(self.steps, cycle, key=lambda row: row[0]) - 1]
        return so_far + (cycle - first) * step

    def ns(self, cycle: int) -> int:
        """The clock's value before this cycle's edge."""
        return self.base + (self.sum(cycle - 2) >> FRACTION)

    def set_at(self, cycle: int, ns: int) -> None:
        self.base += ns - self.ns(cycle)

    def held(self, value: int) -> int:
        return max(-self.most, min(self.most, value))

    def pulse(self, cycle: int) -> None:
        """A pulse that counts; the cycle is the first in which the pin is seen as 1."""
        offset = self.ns(cycle + SYNCHRONISED) % self.second
        offset -= self.second if offset >= self.second // 2 else 0
        self.offsets.append(offset)
        learnt = self.learnt - offset
        if self.held(learnt >> 5) == learnt >> 5:
            self.learnt = learnt
        correction = self.held((self.learnt >> 5) - (offset >> 2))
        change, bound = correction * self.unit, self.nominal >> 13
        step = self.nominal + max(-bound, min(bound, change))
        begins = cycle + SYNCHRONISED + DIVIDES + STEERS
        self.steps.append((begins, self.sum(begins), step))
