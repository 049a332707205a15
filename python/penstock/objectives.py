# SPDX-License-Identifier: Apache-2.0
"""The objectives that `penstock tune` minimises, computed from the summary of a run.

Promise: a run that delivers little, or loses messages or events, is rated worse under every objective.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.sweeping import of_switches


@dataclass(frozen=True)
class Objective:
    """`value(summary)` is to be as small as possible; `meaning` says what it is, with its unit.

    Where `has_floor`, a point that delivers too little is no answer, however small its value.
    """

    meaning: str
    value: Callable[[dict], float]
    has_floor: bool = True


def goodput_gbps(summary: dict) -> float:
    """Payload of all flows, from the first message to the last delivery: the SUM of the table."""
    return summary["aggregate_gbps"]


def _missing(summary: dict) -> float:
    posted = sum(flow["posted_bytes"] for flow in summary["flows"])
    delivered = sum(flow["delivered_bytes"] for flow in summary["flows"])
    return 1 - delivered / posted if posted else 1.0


def _of_switches(summary: dict, key: str) -> float:
    return float(of_switches(summary)[key])


def _event_time(summary: dict) -> float:
    events = summary["events"]
    if events is None:
        raise ValueError("the scenario builds no events: the objective event-time needs [triggers]")
    if events["complete"] == 0:
        return math.inf
    return events["p99_us"] * (1 + events["triggered"] - events["complete"])


def _fairness(summary: dict) -> float:
    if summary["jain"] is None:
        raise ValueError("no window has two flows in it: the objective fairness needs a shorter trace.interval")
    return 1 - summary["jain"] + _missing(summary)


OBJECTIVES = {
    "fairness": Objective(
        "1 - Jain's index (mean over windows of trace.interval), and the share of the posted bytes that did not arrive",
        _fairness,
    ),
    "event-time": Objective(
        "99 % quantile of the event completion time, us, times 1 + the triggered events that were not completed",
        _event_time,
    ),
    "queue": Objective(
        "mean queue of the fullest port, bytes, times 1 + the share that did not arrive",
        lambda s: _of_switches(s, "switches.mean_queue_bytes") * (1 + _missing(s)),
    ),
    "pause-free": Objective(
        "time in which ports were paused, s, and the share that did not arrive",
        lambda s: _of_switches(s, "links.paused_s") + _missing(s),
    ),
    "goodput": Objective(
        "minus the payload of all flows from the first message to the last delivery, Gb/s",
        lambda s: -goodput_gbps(s),
        has_floor=False,
    ),
}


def chosen(names: str | Sequence[str]) -> dict[str, Objective]:
    """The objectives of these names, given as a sequence or separated by commas. ValueError says what is allowed."""
    listed = names.split(",") if isinstance(names, str) else list(names)
    listed = [name.strip() for name in listed]
    for n, name in enumerate(listed):
        if name not in OBJECTIVES:
            raise ValueError(f"objective {name!r}: allowed are {', '.join(OBJECTIVES)}, or several with commas between")
        if name in listed[:n]:
            raise ValueError(f"objective {name!r} is there twice; give each once")
    if not listed:
        raise ValueError(f"no objective: allowed are {', '.join(OBJECTIVES)}")
    return {name: OBJECTIVES[name] for name in listed}


def gain_percent(own: float, value: float) -> float:
    """How much better than `own` a value is, in percent of `own`; infinite where `own` leaves no number to compare."""
    if value == own:
        return 0.0
    if own == 0 or math.isinf(own):
        return math.copysign(math.inf, own - value)
    return 100 * (own - value) / abs(own)
