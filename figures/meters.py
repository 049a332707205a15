# SPDX-License-Identifier: Apache-2.0
"""What verilated boards measure of their own packets at 10, 25 and 100 Gb/s: FEROCE's latency, the mean from a packet's
start to its acknowledgement, alone and under pause frames, and CEPC's, that of the first packet of a transfer.

One board or two, one switch without a latency of its own, cables of 20 m, a host that acknowledges at once (scenarios
feroce-1 and feroce-2). Needs a build with every front end: `cargo build --release -p penstock-cli --features all-tops`.
"""

from penstock.drawing import BLUE, GREEN, VERMILION, panels
from penstock.results import Run

from figures.comparison import Compared, Drawn, lost

RATES_GBPS = {10: BLUE, 25: VERMILION, 100: GREEN}
SIZES = (256, 1024, 4096)  # messages of one packet
FEROCE_UNDER_PAUSE_US = {10: 15.0, 25: 20.0, 100: 25.0}
# CEPC's transfer: messages of 262 kB, 4096 bytes in a packet, at 322.27 MHz.
CEPC_CYCLES = 728
CEPC_US = 2.27
SHORT = "flow.0.messages=4"
Job = tuple[str, str, tuple[str, ...]]


def job(scenario: str, rate: int, *settings: str) -> Job:
    """Folder, scenario and keys of a run with boards."""
    keys = (f"link.rate={rate}Gbps", "flow.0.sender=gateware", *settings)
    return f"meters/{'-'.join((scenario, *keys))}", scenario, keys


POINTS = [(rate, size) for rate in RATES_GBPS for size in SIZES]
ALONE = [job("feroce-1", rate, SHORT, f"flow.0.message={size}B", "flow.0.interval=100us") for rate, size in POINTS]
# What the packets of two boards wait for: a queue up to XOFF, and in long messages an acknowledgement of eight packets.
SINGLE = ("flow.0.message=4096B", "flow.0.messages=1000")
UNDER_PAUSE = {
    "1 MB": (SHORT,),
    "4096 B": SINGLE,
    "4096 B, XOFF at 15 kB": (*SINGLE, "switch.xoff=15KB", "switch.xon=10KB"),
}
PAUSED = [job("feroce-2", rate, *keys) for rate in RATES_GBPS for keys in UNDER_PAUSE.values()]
STREAM = [job("feroce-1", rate, *SINGLE) for rate in RATES_GBPS]
TRANSFER = [job("feroce-1", 100, SHORT, "flow.0.message=262144B")]
JOBS = [*ALONE, *PAUSED, *STREAM, *TRANSFER]


def meters(run: Run) -> list[dict]:
    """Those of the first queue pair of each board."""
    return [board["meters"][0] for board in run.summary["boards"]]


def mean_us(run: Run) -> float:
    """FEROCE's latency, the mean of all boards."""
    means = [meter["latency_mean_ns"] for meter in meters(run)]
    return sum(means) / len(means) / 1e3


def draw(runs: list[Run]) -> Drawn:
    """The latencies against the size of a packet, and the numbers of the papers."""
    alone = dict(zip(POINTS, runs, strict=False))
    cases = [(rate, name) for rate in RATES_GBPS for name in UNDER_PAUSE]
    paused = dict(zip(cases, runs[len(POINTS) :], strict=False))
    stream = dict(zip(RATES_GBPS, runs[len(POINTS) + len(cases) :], strict=False))
    figure, axes = panels("A board's packet, from its start to its acknowledgement", 1, height_in=2.8)
    axis = axes[0, 0]
    compared = []
    for rate, colour in RATES_GBPS.items():
        axis.plot(SIZES, [mean_us(alone[rate, size]) for size in SIZES], "o-", color=colour, label=f"{rate} Gb/s")
        for size in SIZES:
            compared.append(Compared(f"{rate} Gb/s, {size} B alone", None, mean_us(alone[rate, size]), "us"))
        compared.append(Compared(f"{rate} Gb/s, 4096 B back to back", None, mean_us(stream[rate]), "us"))
        for name in UNDER_PAUSE:
            under_pause = mean_us(paused[rate, name])
            paper = FEROCE_UNDER_PAUSE_US[rate]
            compared.append(Compared(f"{rate} Gb/s, two boards under pause, {name}", paper, under_pause, "us"))
        frames = sum(lost(paused[rate, name]) for name in UNDER_PAUSE)
        compared.append(Compared(f"{rate} Gb/s, two boards under pause: frames lost", None, frames, digits=0))
    [first] = meters(runs[-1])
    of_first = "100 Gb/s, messages of 262144 B: first packet"
    compared.append(Compared(f"{of_first}, clock cycles", CEPC_CYCLES, first["latency_first_packet"], digits=0))
    compared.append(Compared(of_first, CEPC_US, first["latency_first_packet"] / 322.265625, "us"))
    axis.set(xscale="log", xlabel="payload of a packet [B]", ylabel="latency [us]", ylim=(0, None))
    axis.set_xticks(SIZES, map(str, SIZES))
    axis.minorticks_off()
    axis.legend()
    return figure, compared
