# SPDX-License-Identifier: Apache-2.0
"""Throughput and latency against the size of messages at 10, 25 and 100 Gb/s (FEROCE, CEPC), and two senders into one
receiver under pause frames alone (FEROCE).

Throughput is payload over the time from the first packet sent to the last acknowledgement. Hosts are models; the
delivery of a message alone is one way: from its first packet sent to its last one received. FEROCE's latency, to a
packet's acknowledgement, is in `meters`. The switch has no latency of its own, cables are 20 m long.
"""

from penstock.drawing import BLUE, GREEN, VERMILION, panels
from penstock.results import Run

from figures.comparison import Compared, Drawn, flows, lost

RATES_GBPS = (10, 25, 100)
SIZES = (256, 1024, 4096, 5000, 16384, 65536, 262144, 1000000)
TOTAL = 20_000_000  # bytes of a run at least, so that its end does not matter
CONGESTED = {10: 8.8, 25: 22.2, 100: 96.5}
CEPC_GBPS = 92.1  # above 5 kB
ALONE = "10ms"  # between two messages; longer than each takes


def point_to_point(rate: int, size: int, alone: bool) -> tuple[str, str, tuple[str, ...]]:
    """Folder, scenario and keys of a run with one sender; `alone`: of single messages."""
    keys = (f"link.rate={rate}Gbps", f"flow.0.message={size}B")
    if alone:
        return f"feroce/{rate}g-{size}-alone", "feroce-1", (*keys, "flow.0.messages=4", f"flow.0.interval={ALONE}")
    return f"feroce/{rate}g-{size}", "feroce-1", (*keys, f"flow.0.messages={max(TOTAL // size, 4)}")


def two_senders(rate: int) -> tuple[str, str, tuple[str, ...]]:
    """Folder, scenario and keys of the congestion test."""
    return f"feroce/{rate}g-two", "feroce-2", (f"link.rate={rate}Gbps",)


POINTS = [(rate, size, alone) for rate in RATES_GBPS for size in SIZES for alone in (False, True)]
JOBS = [point_to_point(*point) for point in POINTS] + [two_senders(rate) for rate in RATES_GBPS]


def draw(runs: list[Run]) -> Drawn:
    """Both curves, and the numbers of the papers."""
    of = dict(zip(POINTS, runs, strict=False))
    congested = dict(zip(RATES_GBPS, runs[len(POINTS) :], strict=True))
    figure, axes = panels("One sender through one switch, MTU 4096", 1, 2, height_in=3.0)
    left, right = axes[0]
    colours = dict(zip(RATES_GBPS, (BLUE, VERMILION, GREEN), strict=True))
    markers = dict(zip(RATES_GBPS, "os^", strict=True))
    compared = []
    for rate in RATES_GBPS:
        throughput = [flows(of[rate, size, False])[0]["goodput_gbps"] for size in SIZES]
        latency = [flows(of[rate, size, True])[0]["mct_us"]["p50"] for size in SIZES]
        look = {"color": colours[rate], "marker": markers[rate], "ls": "-", "label": f"{rate} Gb/s"}
        left.plot(SIZES, throughput, **look)
        right.plot(SIZES, latency, **look)
        for size, gbps, us in zip(SIZES, throughput, latency, strict=True):
            paper = CEPC_GBPS if (rate, size) == (100, 5000) else None
            compared.append(Compared(f"{rate} Gb/s, {size} B: throughput", paper, gbps, "Gb/s"))
            compared.append(Compared(f"{rate} Gb/s, {size} B: delivery of a message alone", None, us, "us"))
        two = flows(congested[rate])
        both = [flow["goodput_gbps"] for flow in two]
        total = 8e-9 * sum(flow["delivered_bytes"] for flow in two) / max(flow["end_s"] for flow in two)
        name = f"{rate} Gb/s, two senders under pause"
        compared.append(Compared(f"{name}, sum", CONGESTED[rate], total, "Gb/s"))
        compared.append(Compared(f"{name}, the slower over the faster", None, min(both) / max(both)))
        compared.append(Compared(f"{name}, frames lost or repeated", None, lost(congested[rate]), digits=0))
    left.set(xscale="log", yscale="log", ylabel="throughput [Gb/s]", xlabel="size of a message [B]")
    right.set(xscale="log", yscale="log", ylabel="delivery [us]", xlabel="size of a message [B]")
    left.set_yticks(RATES_GBPS, map(str, RATES_GBPS))
    left.minorticks_off()
    right.legend(loc="upper left")
    return figure, compared
