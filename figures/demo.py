# SPDX-License-Identifier: Apache-2.0
"""What congestion control is worth: the demo's camera events through a switch with a shallow buffer and no PFC.

README.md shows the numbers. The boards are verilated, the receiver is the real one.
"""

from penstock.drawing import panels
from penstock.results import Run

from figures.comparison import Compared, Drawn, flows, throughput

SHALLOW = ("switch.pfc=false", "switch.buffer=450KB")
LAWS = {"DCQCN on": (), "DCQCN off": ("cc.law=off",)}
CASES = {name.replace(" ", "-").lower(): (*SHALLOW, *keys) for name, keys in LAWS.items()}


def shallow(runs: list[Run]) -> Drawn:
    """A panel for each law: throughput of each board."""
    figure, [axes] = panels("Three boards into 10 Gb/s, buffer of 450 kB, no PFC", 1, len(LAWS), height_in=2.3)
    compared = []
    for axis, law, run in zip(axes, LAWS, runs, strict=True):
        for flow in flows(run):
            series = throughput(run, flow["name"])
            axis.plot(series.time_ms, series.value, lw=0.8, label=flow["from"])
        axis.set_title(law)
        axis.set_xlabel("time [ms]")
        readout = run.summary["readout"]
        dropped = sum(switch["dropped_buffer"] + switch["dropped_threshold"] for switch in run.summary["switches"])
        again = sum(board["retransmissions"] for board in run.summary["boards"])
        compared += [
            Compared(f"{law}, goodput stored", None, readout["goodput_gbps"], "Gb/s"),
            Compared(f"{law}, Jain's index", None, readout["jain_1ms"], digits=3),
            Compared(f"{law}, retransmissions", None, again, digits=0),
            Compared(f"{law}, drops", None, dropped, digits=0),
            Compared(f"{law}, byte-exact", None, readout["byte_exact"], digits=0),
        ]
    axes[0].set_ylabel("throughput [Gb/s]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure, compared
