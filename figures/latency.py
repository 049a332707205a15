# SPDX-License-Identifier: Apache-2.0
"""Latency of a message alone, by RDMA and by TCP over one network: from the moment it is posted until the receiver has
its last byte. CEPC's table has 0.5 to 2 us for RDMA and 10 to 40 us for TCP between two FPGAs; what is simulated here
is the network's part, without hosts' processors: one switch without a latency of its own, links of 100 Gb/s, 20 m.
"""

from penstock.drawing import BLUE, VERMILION, panels
from penstock.results import Run

from figures.comparison import Compared, Drawn, flows

SIZES = (256, 4096, 16384, 65536, 262144)
# Jumbo segments; a receiver that holds an acknowledgement back for 1 ms at most (Linux: 40 ms).
JUMBO = ("tcp.mss=8960", "tcp.delayed_ack=1ms", "tcp.min_rto=2ms")
TRANSPORTS = {
    "RDMA": ("flow.0.protocol=rc",),
    "TCP": ("flow.0.protocol=simple-tcp", *JUMBO),
    "TCP without Nagle": ("flow.0.protocol=simple-tcp", "tcp.nagle=false", *JUMBO),
}
PAPER = {"RDMA": "0.5 to 2 us", "TCP": "10 to 40 us", "TCP without Nagle": "10 to 40 us"}
POINTS = [(transport, size) for transport in TRANSPORTS for size in SIZES]
ALONE = ("flow.0.messages=4", "flow.0.interval=10ms")  # each is delivered before the next one


def settings(transport: str, size: int) -> tuple[str, ...]:
    """The keys of a run of single messages."""
    return (*TRANSPORTS[transport], f"flow.0.message={size}B", *ALONE)


def draw(runs: list[Run]) -> Drawn:
    """Latency against the size of the message; the paper's numbers are those of small ones."""
    latency = {point: flows(run)[0]["mct_us"]["p50"] for point, run in zip(POINTS, runs, strict=True)}
    figure, axes = panels("A message alone through one switch, 100 Gb/s", 1, height_in=2.8)
    axis = axes[0, 0]
    axis.axhspan(0.5, 2, color=BLUE, alpha=0.12, lw=0, label="CEPC's table, RDMA")
    axis.axhspan(10, 40, color=VERMILION, alpha=0.12, lw=0, label="CEPC's table, TCP")
    for transport in TRANSPORTS:
        axis.loglog(SIZES, [latency[transport, size] for size in SIZES], marker="o", label=transport, base=2)
    axis.set(xlabel="size of a message [B]", ylabel="latency [us]", yscale="log")
    axis.legend()
    compared = [
        Compared(f"{transport}, {size} B", PAPER[transport] if size == SIZES[0] else None, us, "us")
        for (transport, size), us in latency.items()
    ]
    return figure, compared
