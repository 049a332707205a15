# SPDX-License-Identifier: Apache-2.0
"""What a point of a search costs besides its objectives: events, flows or frames that are lost, and pauses.

Promise: a point that costs more than the scenario's own values with the same seed is never recommended.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.sweeping import of_switches

# Pauses of this part of the run are as good as none.
SHORT = 1e-3


@dataclass(frozen=True)
class Harm:
    """What one run lost; `paused_s` is the time in which ports were paused, in sum, of a run of `simulated_s`."""

    events: int = 0
    flows: int = 0
    frames: int = 0
    paused_s: float = 0.0
    simulated_s: float = 0.0

    @classmethod
    def of(cls, summary: Mapping) -> "Harm":
        """From a summary; events are those that are lost or overdue."""
        events = summary["events"]
        switches = of_switches(summary)
        return cls(
            events["lost"] + events["overdue"] if events else 0,
            sum(flow["failed"] is not None for flow in summary["flows"]),
            int(switches["switches.dropped"]),
            switches["links.paused_s"],
            summary["simulated_s"],
        )

    def beyond(self, own: "Harm") -> str | None:
        """What is worse than with the scenario's own values, in words with both numbers; None: nothing."""
        for name, mine, its in (
            ("events are lost or overdue", self.events, own.events),
            ("flows fail", self.flows, own.flows),
            ("frames are dropped", self.frames, own.frames),
        ):
            if mine > its:
                return f"{mine} {name}, with the own values {its}"
        if self.paused_s > own.paused_s + SHORT * self.simulated_s:
            return f"ports are paused for {self.paused_s:.4g} s in sum, with the own values for {own.paused_s:.4g} s"
        return None
