# SPDX-License-Identifier: Apache-2.0
"""Unequal, partial and changing loads under each way to control them: pull, profile "penstock", PFC alone, DCQCN with
AdvCam's Table II, and QCN.

The switch is that of `scenarios/incast-64.toml`, with QCN's congestion point at its default where boards obey QCN.
"ideal" pushes without limiter, marks, pauses and ACK timers through an endless buffer. Boards that are not timed send
an amount, and "delivered" is its payload until the last one is done, or they send all the time. "longest queue" is that
of the run, "paused" the time for which switches hold their neighbours, in sum.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from penstock.drawing import panels
from penstock.results import Run

from figures import disorder_peers
from figures.comparison import Compared, Drawn, flows
from figures.disorder_peers import SCHEMES, Peer
from figures.measured import Row
from figures.push import Measure, delivered, longest, paused

IDEAL = "ideal"
ENDLESS = ("switch.ecn=false", "switch.pfc=false", "switch.buffer=400GB", "qp.ack_timeout=0us", "qp.window=4000000")
WAYS: dict[str, tuple[str, ...]] = {
    IDEAL: ("cc.law=off", *ENDLESS),
    "pull": ("qp.mode=pull",),
    "penstock": (),
    "PFC alone": ("cc.law=off", "switch.ecn=false"),
    "Table II": ("cc.profile=advcam",),
    "QCN": ("cc.law=qcn", "switch.ecn=false", "switch.qcn={}"),
}
COSTS: dict[str, Measure] = {"longest queue": longest, "paused": paused}
NEAR = 0.8  # of the ideal


def events(run: Run) -> tuple[float, str, int]:
    """99 % of the events are complete after this time; infinite if some are not by the end of the run."""
    of = run.summary["events"]
    return (of["p99_us"] / 1e3 if of["complete"] == of["triggered"] else np.inf), "ms", 2


def messages(run: Run) -> tuple[float, str, int]:
    """99 % of the messages are complete after this time."""
    return run.summary["mct_us"]["p99"] / 1e3, "ms", 2


def neighbour(run: Run) -> tuple[float, str, int]:
    """The same for messages of the flow "other" alone."""
    [other] = (flow for flow in flows(run) if flow["name"] == "other")
    return other["mct_us"]["p99"] / 1e3, "ms", 2


TIMES = {"event, 99 %": events, "message, 99 %": messages, "its message, 99 %": neighbour}


def _text(value: float, unit: str, digits: int) -> str:
    return f"{value:.{digits}f} {unit}" if np.isfinite(value) else "not all"


@dataclass(frozen=True)
class Case:
    """A load: the scenario, what `--set` changes, and what it is about, a key of `TIMES` or what is delivered."""

    name: str
    scenario: str
    settings: tuple[str, ...]
    about: str = "delivered"

    def measure(self, run: Run) -> tuple[float, str, int]:
        """What it is about."""
        return TIMES.get(self.about, delivered)(run)

    def part(self, run: Run, ideal: Run) -> float:
        """How near a run is to the ideal: 1 is equal to it."""
        return self.nearness(self.measure(run)[0], self.measure(ideal)[0])

    def nearness(self, value: float, ideal: float) -> float:
        """The same of two values."""
        return ideal / value if self.about in TIMES else value / ideal

    def peer_text(self, peer: Peer) -> str:
        """A peer's value, and its part of the ideal."""
        part = 100 * self.nearness(peer.value, peer.ideal)
        return f"{_text(peer.value, 'ms' if self.about in TIMES else 'Gb/s', 2)}, {part:.0f} %"


PEER_COSTS: dict[str, Callable[[Peer], str | None]] = {
    "longest queue": lambda peer: None if peer.longest_kb is None else _text(peer.longest_kb, "kB", 0),
    "paused": lambda peer: None if peer.paused_ms is None else _text(peer.paused_ms, "ms", 1),
    "dropped": lambda peer: None if peer.dropped is None else f"{peer.dropped:.0f}",
}


def _flows(*flows: str, end: str = "") -> tuple[str, ...]:
    """Flows in place of the scenario's, until the last one is done, or to an end."""
    time = (f"run.time_limit={end}",) if end else ("run.time_limit=2s", "run.stop=done")
    return (*time, "flow=[" + ", ".join(f"{{ {keys} }}" for keys in flows) + "]")


def _star(*flows: str, boards: int = 64, keys: tuple[str, ...] = (), end: str = "") -> tuple[str, ...]:
    return (f"topology.boards={boards}", *keys, *_flows(*flows, end=end))


def _events(groups: str = "", servers: int = 1, end: str = "300ms") -> tuple[str, ...]:
    """Events of 80 boards at 80 % of what the servers' 10 Gb/s carry, with fragments of one packet on average."""
    boards, mean = 80, 4010
    rate = 0.8 * servers * 10e9 / (8 * (mean + 86) * boards)
    network = (f"topology.boards={boards}", f"topology.servers={servers}", "link.server.rate=10Gbps")
    triggers = ("kind=poisson", f"rate={rate:.0f}Hz", f"fragment={mean}B", f"stop={end}")
    of_boards = (f"triggers.group=[{groups}]",) if groups else ()
    return (*network, *(f"triggers.{key}" for key in triggers), *of_boards, "run.time_limit=5s")


def _tree(leaves: str, server_gbps: int, *flows: str, end: str = "") -> tuple[str, ...]:
    """Leaves with an uplink of 10 Gb/s each."""
    topology = f'topology={{ kind = "tree", boards_per_leaf = [{leaves}], servers = 1 }}'
    return (topology, f"link.server.rate={server_gbps}Gbps", "link.uplink.rate=10Gbps", *_flows(*flows, end=end))


ENDLESSLY = 'message = "100KB"'
ZIPF = '{ sizes = "zipf", exponent = 0.8, fragment = "4010B" }'
HOT = '{ from = "board{0..3}", fragment = "41120B" }, { fragment = "2056B" }'
WEIGHTED = '{ from = "board{0..3}", fragment = "41120B", weight = 20 }, { fragment = "2056B" }'
SPARSE = '{ probability = 0.0625, fragment = "64160B" }'
ON_OFF = 'message = "250KB", rate = "122.5Mbps", random = true, stop = "400ms"'
SMALL = 'message = "1KB", rate = "9Mbps", random = true, stop = "20ms"'
HALF = ("link.server.rate=5Gbps", "cc.share=312.5Mbps")  # the share of 10 Gb/s
SLOW = ("link.server.rate=100Gbps", *(f"link.at.board{board}-switch.rate=1Gbps" for board in range(12)))
TWO_SERVERS = (
    'topology={ kind = "tree", boards_per_leaf = [16, 16, 16, 16], servers = 2 }',
    "link.uplink.rate=200Gbps",
    *_flows(
        'from = "board{0..62}", to = "server0", message = "100KB"',
        'name = "other", from = "board63", to = "server1", message = "20KB", rate = "1Gbps", random = true',
        end="50ms",
    ),
)


def _each(size: str, keys: str = "") -> str:
    return f'{keys}message = "100KB", size = "{size}"'


def _group(n: int) -> str:
    return _each("800KB", f'from = "board{{{16 * n}..{16 * n + 15}}}", start = "{5 * n}ms", ')


CASES = (
    Case("64 of 64 boards", "incast-64", _star(_each("1MB"))),
    Case("16 of 256 boards", "incast-64", _star(_each("4MB", 'from = "board{0..15}", '), boards=256)),
    Case("events, equal fragments", "triggers-265", _events(), "event, 99 %"),
    Case("events, Zipf", "triggers-265", _events(ZIPF), "event, 99 %"),
    Case("events, hot spots", "triggers-265", _events(HOT), "event, 99 %"),
    Case("events, hot spots with weights", "triggers-265", _events(WEIGHTED), "event, 99 %"),
    Case("events of 1 in 16 boards", "triggers-265", _events(SPARSE), "event, 99 %"),
    Case("events, Zipf, 4 servers", "triggers-265", _events(ZIPF, 4, "100ms"), "event, 99 %"),
    Case("groups of 16 join and leave", "incast-64", _star(*map(_group, range(4)))),
    Case("250 kB on and off, 80 %", "incast-64", _star(ON_OFF), "message, 99 %"),
    Case("server's link at half its rate", "incast-64", _star(_each("1MB"), boards=32, keys=HALF)),
    Case("links of 200 us", "incast-64", _star(_each("4MB"), keys=("link.delay=200us",))),
    Case("4 uplinks of 10G into 40G", "incast-64", _tree("32, 32, 32, 32", 40, _each("1MB"))),
    Case("leaves of 48, 6 and 6 into 25G", "incast-64", _tree("48, 6, 6", 25, ENDLESSLY, end="50ms")),
    Case("boards of 1G and 10G into 100G", "incast-64", _star(ENDLESSLY, boards=36, keys=SLOW, end="20ms")),
    Case("a flow to another server", "incast-64", TWO_SERVERS, "its message, 99 %"),
    Case("1 kB of 1000 boards, 90 %", "incast-64", _star(SMALL, boards=1000), "message, 99 %"),
)


def jobs() -> list[tuple[str, str, tuple[str, ...]]]:
    """Folder, scenario and settings of every run."""
    return [
        (f"disorder-{n}-{m}", case.scenario, (*case.settings, *keys, "trace.interval=0us"))
        for n, case in enumerate(CASES)
        for m, keys in enumerate(WAYS.values())
    ]


def _by_case(runs: list[Run]) -> Iterator[tuple[Case, dict[str, Run]]]:
    """Each case with its run in each way, from the runs of `jobs`."""
    rest = iter(runs)
    for case in CASES:
        yield case, {way: next(rest) for way in WAYS}


def rows(runs: list[Run]) -> list[Row]:
    """The table of cases: a column for each way."""
    table: list[Row] = []
    for case, of in _by_case(runs):
        for quantity, measure in {case.about: case.measure, **COSTS}.items():
            cells = {way: _text(*measure(run)) for way, run in of.items() if way != IDEAL or measure == case.measure}
            table.append({"case": case.name, "quantity": quantity, **{way: cells.get(way) for way in WAYS}})
    return table


def peer_rows(peers: list[Peer]) -> list[Row]:
    """The same of other simulators' schemes; a part of the ideal is that of their own load."""
    table: list[Row] = []
    for case in CASES:
        of = {peer.scheme: peer for peer in peers if peer.case == case.name}
        for quantity, text in {f"{case.about}, of the ideal": case.peer_text, **PEER_COSTS}.items():
            cells = {scheme: text(peer) for scheme, peer in of.items()}
            if any(cells.values()):
                columns = {f"{scheme}, {simulator}": cells.get(scheme) for scheme, simulator in SCHEMES.items()}
                table.append({"case": case.name, "quantity": quantity, **columns})
    return table


def draw(runs: list[Run]) -> Drawn:
    """A mark for each case and way: what it is about next to the ideal, the longest queue, the time of pauses."""
    figure, axes = panels("Unequal, partial and changing loads", 3, 1, height_in=1.8)
    ways = [way for way in WAYS if way != IDEAL]
    parts, queues, pauses = np.zeros((3, len(ways), len(CASES)))
    for n, (case, of) in enumerate(_by_case(runs)):
        parts[:, n] = [case.part(of[way], of[IDEAL]) for way in ways]
        queues[:, n], pauses[:, n] = ([measure(of[way])[0] for way in ways] for measure in COSTS.values())
    labels = ("part of the ideal", "longest queue [kB]", "paused [ms]")
    for axis, values, label in zip(axes.flat, (parts, queues, pauses), labels, strict=True):
        for m, (way, row) in enumerate(zip(ways, values, strict=True)):
            axis.plot(np.arange(len(CASES)) + 0.12 * (m - 2), row, "o", ms=4, label=way)
        axis.set_ylabel(label)
        axis.set_xticks(range(len(CASES)), [])
    _draw_peers(axes.flat[:3], disorder_peers.read())
    axes.flat[0].set_yscale("log")
    axes.flat[1].set_yscale("log")
    axes.flat[2].set_yscale("symlog", linthresh=1)
    axes.flat[2].set_ylim(bottom=-0.5)
    axes.flat[2].set_xticks(range(len(CASES)), [case.name for case in CASES], rotation=30, ha="right")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(ways))
    return figure, [row for m, way in enumerate(ways) for row in _summary(way, parts[m], queues[m], pauses[m])]


def _draw_peers(axes: Iterable[Axes], peers: list[Peer]) -> None:
    """A cross for each load of another simulator's scheme."""
    at = {case.name: n for n, case in enumerate(CASES)}
    near = {case.name: case.nearness for case in CASES}
    for m, (scheme, simulator) in enumerate(SCHEMES.items()):
        of = [peer for peer in peers if peer.scheme == scheme]
        x = [at[peer.case] + 0.12 * (m - 1.5) for peer in of]
        parts = [near[peer.case](peer.value, peer.ideal) for peer in of]
        costs = np.array([(peer.longest_kb, peer.paused_ms) for peer in of], dtype=float)  # nan: not measured
        for axis, values in zip(axes, (np.array(parts), *costs.T), strict=True):
            axis.plot(x, values, "x", ms=3, label=f"{scheme}, {simulator}")


def _summary(way: str, parts: np.ndarray, queues: np.ndarray, pauses: np.ndarray) -> list[Compared]:
    """What a way has come to over all cases."""
    near = int((parts >= NEAR).sum())
    return [
        Compared(f"{way}: loads at {100 * NEAR:.0f} % of the ideal or more", None, near, f"of {len(CASES)}", 0),
        Compared(f"{way}: the worst load", None, 100 * parts.min(), "% of the ideal", 1),
        Compared(f"{way}: loads without a pause", None, int((pauses == 0).sum()), f"of {len(CASES)}", 0),
        Compared(f"{way}: longest queue, median of the loads", None, float(np.median(queues)), "kB", 0),
    ]
