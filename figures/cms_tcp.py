# SPDX-License-Identifier: Apache-2.0
"""CMS-TCP figure 1: the network of 600 front ends. Figure 3: throughput against the size of fragments, measured between
two kernels and simulated. Figures 5 and 6: one link's useful throughput and the total bandwidth that it takes before,
while and after a fifth sender makes it congested; the same where a receiver that stands still for 2 s is the cause.

Measured is what `tests/tcp_bench.py` measures on this machine, over a veth pair; where it may not make one, the
simulated half stands alone.

Useful throughput counts payload delivered in order; total bandwidth counts all payload sent, with retransmissions.
Means are over the last 0.5 s before the fifth sender starts, its own time, and the last 0.5 s of the run, when it has
long stopped; all over the four senders. Source: CMS-TCP, section 3.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from penstock.drawing import BLACK, BLUE, GREY, VERMILION, panels
from penstock.results import Run

from figures.comparison import Compared, Drawn, flows, lost, mean, register, throughput

START_MS, STOP_MS, END_MS = 1000.0, 1900.0, 3000.0  # `flow.1.start`, `flow.1.stop`, `run.time_limit` of the scenarios


def _useful(run: Run, begin_ms: float, end_ms: float) -> float:
    """Mean useful throughput of one of the four senders."""
    return float(np.mean([mean(throughput(run, flow["name"]), begin_ms, end_ms) for flow in flows(run)[:4]]))


def _attempted(run: Run, begin_ms: float, end_ms: float) -> float:
    """Mean rate at which one of the four senders sends, retransmissions included."""

    def rate(flow: dict) -> float:
        sent = register(run, flow, "tx_payload_bytes")
        return (
            float(np.diff(np.interp((begin_ms, end_ms), sent.time_ms, sent.value))[0]) * 8 / (end_ms - begin_ms) / 1e6
        )

    return float(np.mean([rate(flow) for flow in flows(run)[:4]]))


def _lines(axis: Axes, run: Run) -> None:
    """Total bandwidth and useful throughput of the first link."""
    flow = flows(run)[0]
    sent = register(run, flow, "tx_payload_bytes")
    total = np.diff(sent.value) * 8 / np.diff(sent.time_ms) / 1e6
    axis.plot(sent.time_ms[1:], total, lw=0.8, ls="-", color=VERMILION, label="total bandwidth")
    useful = throughput(run, flow["name"])
    axis.plot(useful.time_ms, useful.value, lw=0.8, color=BLUE, label="useful throughput")


def _draw(run: Run, title: str, paper: float) -> Figure:
    """The first of the four links, as in the paper: the useful part of its traffic."""
    figure, axes = panels(title, 1, height_in=2.6)
    axis = axes[0, 0]
    _lines(axis, run)
    axis.axhline(paper, color=BLACK, lw=0.9, ls="--")
    axis.axvspan(START_MS, STOP_MS, color=GREY, alpha=0.2, lw=0)
    axis.set(xlabel="simulated time [ms]", ylabel="rate of one link [Gb/s]", ylim=(0, None))
    axis.legend(loc="upper left")
    return figure


def _compare(run: Run, during: float | str, after: float | str, attempted: str = "") -> list[Compared]:
    repeated = sum(flow["retransmissions"] for flow in flows(run)[:4]) / sum(flow["packets"] for flow in flows(run)[:4])
    return [
        Compared(
            "one link before the fifth sender",
            2.048,
            _useful(run, START_MS - 500, START_MS),
            "Gb/s",
            by_construction=True,
        ),
        Compared("one link while it sends", during, _useful(run, START_MS, STOP_MS), "Gb/s"),
        Compared("one link long after it stopped", after, _useful(run, END_MS - 500, END_MS), "Gb/s"),
        Compared("attempted by one link while it sends", attempted, _attempted(run, START_MS, STOP_MS), "Gb/s"),
        Compared("attempted by one link long after", attempted, _attempted(run, END_MS - 500, END_MS), "Gb/s"),
        Compared("retransmissions in all segments of the four", "", 100 * repeated, "%", 0),
    ]


# Figure 5 by what the paper does not give: the emulator's timeout, the memory for its unacknowledged data, and others.
EMULATORS: dict[str, tuple[str, ...]] = {
    "as in the scenario": (),
    "timeout 2 ms, memory 1.5 MB": ("tcp.min_rto=2ms", "tcp.send_buffer=1500KB"),
    "timeout 10 ms, memory 4 MB": ("tcp.min_rto=10ms", "tcp.send_buffer=4MB"),
    "timeout 10 ms, memory 500 KB": ("tcp.min_rto=10ms", "tcp.send_buffer=500KB"),
    "receive buffer 1 MB": ("tcp.receive_buffer=1MB",),
    "switch's buffer 100 KB": ("switch.buffer=100KB",),
    "switch's buffer 400 KB": ("switch.buffer=400KB",),
    "delays of 40 us": ("link.delay=40us",),
}


def collapse(runs: list[Run]) -> Drawn:
    """Figure 5: without congestion control the collapse stays."""
    picture = _draw(runs[0], "CMS-TCP 5: no congestion control; grey: the fifth sends; dashed: the paper", 0.69)
    compared = _compare(runs[0], 0.69, 0.69, "up to 5 Gb/s")
    for name, run in list(zip(EMULATORS, runs, strict=True))[1:]:
        case = f"{name}, one link"
        compared += [
            Compared(f"{case} while it sends", 0.69, _useful(run, START_MS, STOP_MS), "Gb/s"),
            Compared(f"{case} long after it stopped", 0.69, _useful(run, END_MS - 500, END_MS), "Gb/s"),
            Compared(f"{case} while it sends, attempted", None, _attempted(run, START_MS, STOP_MS), "Gb/s"),
        ]
    return picture, compared


def recovers(runs: list[Run]) -> Drawn:
    """Figure 6: with the simplified congestion control the links recover."""
    picture = _draw(runs[0], "CMS-TCP 6: simplified congestion control; grey: the fifth sends; dashed: offered", 2.048)
    return picture, _compare(runs[0], "falls", 2.048)


STALL_MS = (500.0, 2500.0)  # `tcp.stall_start` and its end, of the scenario
STALLED: dict[str, tuple[str, ...]] = {"without": ("tcp.back_off=false",), "with": ("tcp.back_off=true",)}


def stalled(runs: list[Run]) -> Drawn:
    """What a receiver that stands still leaves behind, without and with congestion control."""
    title = "CMS-TCP section 3.3: the receiver reads nothing for 2 s (grey)"
    figure, grid = panels(title, 2, height_in=1.8, sharex=True, sharey=True)
    axes, compared = list(grid[:, 0]), []
    for axis, name, run in zip(axes, STALLED, runs, strict=True):
        _lines(axis, run)
        axis.axvspan(*STALL_MS, color=GREY, alpha=0.2, lw=0)
        axis.set_ylabel("rate of one link [Gb/s]")
        axis.set_title(f"{name} congestion control", loc="left", pad=3)
        begin, end = STALL_MS
        case = f"{name} congestion control, one link"
        compared += [
            Compared(f"{case} before the stall", 2.048, _useful(run, 0.0, begin), "Gb/s", by_construction=True),
            Compared(f"{case} in the stall's second half", None, _useful(run, (begin + end) / 2, end), "Gb/s"),
            Compared(f"{case} 1 s later", None, _useful(run, end + 1000, end + 1500), "Gb/s"),
            Compared(f"{case} 1 s later, attempted", None, _attempted(run, end + 1000, end + 1500), "Gb/s"),
        ]
    axes[0].set_ylim(bottom=0)
    axes[0].legend(loc="upper left")
    axes[1].set_xlabel("simulated time [ms]")
    return figure, compared


def merged(runs: list[Run]) -> Drawn:
    """Figure 1: what 600 front ends deliver through links of 40 Gb/s, and how late their fragments come."""
    [run] = runs
    rates = np.array([mean(throughput(run, flow["name"]), 5.0, 10.0) for flow in flows(run)])
    late = np.array([[flow["mct_us"][of] for of in ("p50", "p99")] for flow in flows(run)])
    figure, axes = panels("CMS-TCP 1: 600 front ends, twelve to a link of 40 Gb/s", 1, 2, height_in=2.6)
    left, right = axes[0]
    left.ecdf(rates, color=BLUE)
    left.set(xlabel="throughput, at most [Gb/s]", ylabel="share of the front ends")
    left.ticklabel_format(useOffset=False)
    for column, label in enumerate(("half of its fragments", "99 % of them")):
        right.ecdf(late[:, column], label=label)
    right.set(xlabel="delivered within [us]", xlim=(0, None))
    right.legend(loc="upper left")
    return figure, [
        Compared("front ends", 600.0, len(rates), digits=0, by_construction=True),
        Compared("one front end, mean", 2.048, float(rates.mean()), "Gb/s", 3, by_construction=True),  # what is offered
        Compared("one front end, least", 2.048, float(rates.min()), "Gb/s", 3, by_construction=True),
        Compared("fragments delivered within, 99 %, the slowest front end", None, float(late[:, 1].max()), "us", 1),
        Compared("frames lost or repeated", None, lost(run), digits=0),
    ]


# Figure 3: sizes of fragments in bytes, and the two stacks; `penstock figures cms-tcp-3` runs each with each.
SIZES = [64 << n for n in range(12)]
STACKS = ("simple-tcp", "tcp")


def size_settings(stack: str, size: int) -> tuple[str, ...]:
    """The keys of a point of figure 3."""
    return (f"flow.0.protocol={stack}", f"flow.0.message={size}B")


# By its exit status the measurement says that this machine lacks iperf3, or the right to make network namespaces.
NOT_HERE = 2
SHOWN = (64, 512, 4096, 65536)  # bytes of fragments with a row in the table
BENCH = Path(__file__).resolve().parents[1] / "tests/tcp_bench.py"
MEASURED = {"emulator": "the emulator", "sockets": "ordinary sockets", "iperf3": "iperf3"}


def measured() -> dict[str, dict[int, float]]:
    """Gb/s by sender and size between two kernels of this machine; nothing where it cannot be measured."""
    if not BENCH.exists():
        print("cms-tcp-3: simulated only: the measurement is part of a clone of the repository", file=sys.stderr)
        return {}
    command = [sys.executable, str(BENCH)]
    if binary := os.environ.get("PENSTOCK"):
        command += ["--binary", binary]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == NOT_HERE:
        print(f"cms-tcp-3: simulated only: {done.stderr.strip()}", file=sys.stderr)
        return {}
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.strip()}")
    rates = json.loads(done.stdout)
    return {name: {int(size): rate / 1e9 for size, rate in rates[name].items()} for name in MEASURED}


def fragment_sizes(runs: list[Run]) -> Drawn:
    """Figure 3: simulated over the second half of each run; runs come stack by stack, size by size."""
    rates = [mean(throughput(run, flows(run)[0]["name"]), 25.0, 50.0) for run in runs]
    by_stack = dict(zip(STACKS, np.reshape(rates, (len(STACKS), len(SIZES))), strict=True))
    title = "CMS-TCP 3: throughput against the size of fragments; dashed: the paper's highest"
    figure, axes = panels(title, 1, 2, height_in=2.8)
    real, simulated = axes[0]
    found = measured()
    for name, by_size in found.items():
        real.semilogx(list(by_size), list(by_size.values()), marker="o", label=MEASURED[name], base=2)
    real.set_title("measured: a veth pair, a core each" if found else "measured: not on this machine")
    for stack, series in by_stack.items():
        simulated.semilogx(SIZES, series, marker="o", label=stack, base=2)
    simulated.set_title("simulated: a line of 10 Gb/s")
    for paper in (7.0, 9.89):
        simulated.axhline(paper, color=BLACK, lw=0.9, ls="--")
    for axis in (real, simulated):
        axis.set(xlabel="fragment size [B]", ylabel="throughput [Gb/s]", ylim=(0, None))
        if axis.get_legend_handles_labels()[0]:
            axis.legend(loc="lower right")
    simple, host = by_stack["simple-tcp"], by_stack["tcp"]
    compared = [
        Compared("simplified TCP, highest", "7 Gb/s, by its processor", simple.max(), "Gb/s"),
        Compared("simplified TCP, fragments of 64 B", None, simple[0], "Gb/s"),
        Compared("a host's TCP, highest", 9.89, host.max(), "Gb/s", by_construction=True),  # of the line, less headers
        Compared("a host's TCP, fragments of 64 B", None, host[0], "Gb/s"),
    ]
    compared += [
        Compared(f"measured: {MEASURED[name]}, fragments of {size} B", None, by_size[size], "Gb/s", of_machine=True)
        for name, by_size in found.items()
        for size in SHOWN
    ]
    return figure, compared
