# SPDX-License-Identifier: Apache-2.0
"""What helps boards that push into one line, and what only seems to: each load with a mechanism and without it.

Boards have profile "penstock", the switch that of `scenarios/incast-64.toml`. Queues are sampled each 200 us; "longest"
is exact. A line of 10 Gb/s delivers 9.80 Gb/s of payload.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from penstock.drawing import panels
from penstock.results import Run

from figures.comparison import Compared, Drawn, throughput
from figures.scale import TRACE, matrix, paused_s

PAYLOAD_GBPS = 9.80
WINDOW = 5  # samples of 200 us

Measure = Callable[[Run], tuple[float, str, int]]


def queue(run: Run) -> tuple[float, str, int]:
    """The longest queue, 99th percentile over time."""
    return float(np.percentile(matrix(run, "queue_bytes")[1].max(axis=1), 99)) / 1e3, "kB", 0


def longest(run: Run) -> tuple[float, str, int]:
    """The longest queue of the run."""
    ports = (port for switch in run.summary["switches"] for port in switch["ports"])
    return max(port["peak_queue_bytes"] for port in ports) / 1e3, "kB", 0


def paused(run: Run) -> tuple[float, str, int]:
    """For how long boards were paused, in sum."""
    return 1e3 * paused_s(run), "ms", 1


def delivered(run: Run) -> tuple[float, str, int]:
    """Payload of all flows."""
    return run.summary["aggregate_gbps"], "Gb/s", 2


def filled(run: Run) -> tuple[float, str, int]:
    """Until 1 ms has had 95 % of what the line carries."""
    series = throughput(run, "network")
    means = np.convolve(series.value, np.ones(WINDOW) / WINDOW, "valid")
    return float(series.time_ms[WINDOW - 1 :][means >= 0.95 * PAYLOAD_GBPS][0]), "ms", 0


def completion(run: Run) -> tuple[float, str, int]:
    """99 % of the events are complete after this time."""
    return run.summary["events"]["p99_us"], "us", 0


@dataclass(frozen=True)
class Case:
    """A load, the ways in which boards push it (what `--set` changes), and what is measured."""

    name: str
    scenario: str
    settings: tuple[str, ...]
    ways: dict[str, tuple[str, ...]]
    measures: dict[str, Measure]


def _hai(share_bps: float) -> dict[str, tuple[str, ...]]:
    return {"rate_hai of 8/256 shares": (), "rate_hai of a share": (f"cc.rate_hai={share_bps:.0f}bps",)}


def _of_port(us: int, longer_us: int) -> dict[str, tuple[str, ...]]:
    key, longer = f"qp.cnp_port_interval={us}us", f"cc.increase_interval={longer_us}us"
    return {f"per port in {us} us": (key,), f"that and an increase_interval of {longer_us} us": (key, longer)}


def _flows(*keys: str) -> str:
    """Flows of 100 KB messages without end in place of the scenario's."""
    return "flow=[" + ", ".join(f'{{ {key}, message = "100KB" }}' for key in keys) + "]"


EVENTS = ("topology.boards=64", "link.server.rate=10Gbps", "triggers.rate=1kHz", "triggers.fragment=17190B")
QUEUES: dict[str, Measure] = {"queue, 99 %": queue, "paused": paused}
CASES = (
    Case(
        "16 boards with 4 queue pairs each",
        "incast-64",
        ("topology.boards=16", "run.time_limit=50ms", _flows(*4 * ['from = "board*"'])),
        {"a share each": ("cc.share=625Mbps",), "a share divided": ()},
        QUEUES,
    ),
    Case(
        "256 boards, first 200 ms",
        "incast-64",
        ("topology.boards=256",),
        {"at once": (), "stagger of 3.35 us": ("flow.0.stagger=3.35us",)},
        QUEUES,
    ),
    Case(
        "events of 64 boards",
        "triggers-265",
        (*EVENTS, "triggers.stop=50ms", "run.time_limit=55ms"),
        {"at once": (), "stagger of 3.35 us": ("triggers.stagger=3.35us",)},
        {"longest queue": longest, "events, 99 %": completion},
    ),
    Case(
        "64 boards, one CNP",
        "incast-64",
        (),
        {"per queue pair in 50 us": (), **_of_port(4, 128), **_of_port(50, 1600)},
        {"delivered": delivered, **QUEUES},
    ),
    Case(
        "16 of 256 boards",
        "incast-64",
        ("topology.boards=256", "flow.0.from=board{0..15}", "run.time_limit=300ms"),
        _hai(10e9 / 256),
        {"95 % of the line after": filled},
    ),
    Case(
        "16 boards, 64 from 120 ms on",
        "incast-64",
        ("run.time_limit=200ms", _flows('from = "board{0..15}"', 'from = "board{16..63}", start = "120ms"')),
        _hai(10e9 / 64),
        {"delivered": delivered, "longest queue": longest, "paused": paused},
    ),
)


def jobs() -> list[tuple[str, str, tuple[str, ...]]]:
    """Folder, scenario and settings of every run."""
    return [
        (f"push-{n}-{m}", case.scenario, (*case.settings, *keys, *TRACE))
        for n, case in enumerate(CASES)
        for m, keys in enumerate(case.ways.values())
    ]


def draw(runs: list[Run]) -> Drawn:
    """A panel for each load: the longest queue over time, each way."""
    figure, axes = panels("Boards that push into 10 Gb/s", 2, 3, height_in=2.0)
    compared, rest = [], iter(runs)
    for axis, case in zip(axes.flat, CASES, strict=True):
        for way in case.ways:
            run = next(rest)
            time, queues = matrix(run, "queue_bytes")
            axis.plot(time, queues.max(axis=1) / 1e3, label=way)
            for quantity, measure in case.measures.items():
                compared.append(Compared(f"{case.name}, {way}: {quantity}", None, *measure(run)))
        axis.set_title(case.name)
        axis.legend()
    axes[0, 0].set_ylabel("queue [kB]")
    axes[1, 0].set_ylabel("queue [kB]")
    for axis in axes[1]:
        axis.set_xlabel("time [ms]")
    return figure, compared
