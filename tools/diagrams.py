# SPDX-License-Identifier: Apache-2.0
"""Draws the block diagrams of the pages: `python tools/diagrams.py` writes docs/images/*.svg.

A diagram is boxes on a grid and arrows between them; its names are those of modules, crates and files.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parents[1] / "docs/images"
# Of a box and of the gaps between boxes, pixels.
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 170, 58, 46, 44, 16
FILL = {"code": "#e8f0fb", "memory": "#fdf1d8", "outside": "#f0f0f0"}


@dataclass
class Diagram:
    """Boxes by name: (column, row, title, second line, kind). Arrows: (from, to, label)."""

    caption: str
    boxes: dict[str, tuple[float, float, str, str, str]]
    arrows: list[tuple[str, str, str]] = field(default_factory=list)

    def svg(self) -> str:
        """The picture; equal text for equal data."""
        width = max(self._corner(name)[0] for name in self.boxes) + WIDTH + MARGIN
        height = max(self._corner(name)[1] for name in self.boxes) + HEIGHT + MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="sans-serif" font-size="12" role="img">',
            f"<title>{escape(self.caption)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 8 4 0 8z" fill="#444"/></marker></defs>',
            f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
            *(self._arrow(*arrow) for arrow in self.arrows),
            *(self._box(name) for name in self.boxes),
            "</svg>\n",
        ]
        return "\n".join(parts)

    def _corner(self, name: str) -> tuple[float, float]:
        column, row = self.boxes[name][:2]
        return MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)

    def _box(self, name: str) -> str:
        (x, y), (_, _, title, second, kind) = self._corner(name), self.boxes[name]
        middle = x + WIDTH / 2
        return (
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{FILL[kind]}" stroke="#444"/>'
            f'<text x="{middle:g}" y="{y + 24:g}" text-anchor="middle" font-weight="bold">{escape(title)}</text>'
            f'<text x="{middle:g}" y="{y + 43:g}" text-anchor="middle" font-size="11">{escape(second)}</text>'
        )

    def _arrow(self, start: str, end: str, label: str) -> str:
        """Straight in a row or a column; otherwise out of the side, up or down half-way, and in at the side."""
        (x0, y0), (x1, y1) = self._corner(start), self._corner(end)
        middle = HEIGHT / 2
        if x0 == x1:
            down = y1 > y0
            x = x0 + WIDTH / 2
            points = [(x, y0 + (HEIGHT if down else 0)), (x, y1 + (0 if down else HEIGHT))]
            at = (x + 5, (points[0][1] + points[1][1]) / 2 + 4, "start")
        else:
            right = x1 > x0
            begin, finish = (x0 + WIDTH if right else x0, y0 + middle), (x1 if right else x1 + WIDTH, y1 + middle)
            bend = finish[0] - (GAP_X / 2 if right else -GAP_X / 2)
            points = [begin, (bend, begin[1]), (bend, finish[1]), finish] if y0 != y1 else [begin, finish]
            at = (sum(x for x, _ in points[:2]) / 2, begin[1] - 5, "middle")
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        line = f'<polyline points="{path}" fill="none" stroke="#444" marker-end="url(#tip)"/>'
        x, y, anchor = at
        text = f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="10" fill="#333">{escape(label)}</text>'
        return line + (text if label else "")


DIAGRAMS = {
    "gateware": Diagram(
        "The gateware of a front end with RoCEv2: from the detector's streams to the line, and back",
        {
            "detector": (0, 0, "detector", "1 to 16 AXI-Streams", "outside"),
            "events": (1, 0, "event_path", "merger, header, CRC-32C", "code"),
            "input": (2, 0, "message_input", "events, user, test source", "code"),
            "segmenter": (3, 0, "segmenter", "packets of one MTU", "code"),
            "store": (4, 0, "packet_store", "send rings: chip or AXI4", "memory"),
            "framer": (5, 0, "roce_framer", "packet, icrc_append", "code"),
            "port": (6, 0, "eth_port", "pause, PFC, VLAN", "code"),
            "trigger": (0, 1, "triggers", "veto, busy, TAI clock", "outside"),
            "timing": (1, 1, "event_timing", "number, type and time", "code"),
            "scheduler": (3, 1, "tx_scheduler", "next queue pair", "code"),
            "requester": (4, 1, "requester", "go-back-N, credits, timers", "code"),
            "header": (5, 1, "packet_header", "Ethernet to BTH", "code"),
            "mac": (6, 1, "mac_xgmii", "FCS, gaps, link faults", "code"),
            "cc": (3, 2, "congestion_control", "DCQCN, QCN, pacers", "code"),
            "ack": (4, 2, "ack_receiver", "checks the peer", "code"),
            "rx": (5, 2, "roce_rx", "parser, ICRC check", "code"),
            "line": (6, 2, "line", "1 to 100 Gb/s", "outside"),
            "registers": (3, 3, "registers", "settings and counters", "memory"),
            "control": (4, 3, "slow_control", "IPbus, connections", "code"),
            "services": (5, 3, "services", "ARP, ICMP, UDP, access", "code"),
        },
        [
            ("detector", "events", ""),
            ("trigger", "timing", ""),
            ("timing", "events", ""),
            ("events", "input", ""),
            ("input", "segmenter", ""),
            ("segmenter", "store", ""),
            ("store", "framer", ""),
            ("framer", "port", ""),
            ("port", "mac", ""),
            ("mac", "line", ""),
            ("scheduler", "requester", "grant"),
            ("requester", "header", ""),
            ("requester", "store", "slot to read, slots to free"),
            ("header", "framer", ""),
            ("cc", "scheduler", "credit"),
            ("mac", "rx", ""),
            ("mac", "services", ""),
            ("rx", "ack", ""),
            ("ack", "requester", "ACK, NAK"),
            ("ack", "cc", "CNP"),
            ("services", "control", ""),
            ("control", "registers", ""),
        ],
    ),
    "receiver": Diagram(
        "The receiver of events: from the network to files and subscribers",
        {
            "boards": (0, 0, "boards", "WRITE, SEND, segments", "outside"),
            "verbs": (1, 0, "Verbs", "an RDMA NIC", "code"),
            "packet": (1, 1, "PacketBackend", "packet socket or AF_XDP", "code"),
            "tcp": (1, 2, "TcpBackend", "the kernel's TCP", "code"),
            "session": (0, 2, "session", "opens and watches boards", "code"),
            "rings": (2, 0, "rings of slots", "one per board, or a pool", "memory"),
            "receiver": (2, 1, "receiver", "header and CRC-32C", "code"),
            "builder": (3, 1, "builder", "fragments by event number", "code"),
            "check": (3, 2, "check", "compares payloads", "code"),
            "writer": (4, 0, "write_behind", "encode, compress, sync", "code"),
            "files": (5, 0, "Parquet files", "checked, recovered", "outside"),
            "serve": (4, 1, "serve", "Arrow streams", "code"),
            "gpu": (4, 2, "OnGpu", "charges, experimental", "code"),
            "subscribers": (5, 1, "subscribers", "Python, ZeroMQ, Kafka", "outside"),
        },
        [
            ("boards", "verbs", ""),
            ("boards", "packet", ""),
            ("boards", "tcp", ""),
            ("session", "boards", "queue pairs"),
            ("verbs", "rings", ""),
            ("packet", "rings", ""),
            ("tcp", "rings", ""),
            ("rings", "receiver", ""),
            ("receiver", "builder", ""),
            ("builder", "check", ""),
            ("builder", "writer", ""),
            ("builder", "serve", ""),
            ("builder", "gpu", ""),
            ("writer", "files", ""),
            ("serve", "subscribers", ""),
        ],
    ),
    "laboratory": Diagram(
        "The network laboratory: from a scenario to its results",
        {
            "file": (0, 0, "scenario.toml", "or a mapping in Python", "outside"),
            "read": (1, 0, "lab::read", "keys, units, places", "code"),
            "build": (2, 0, "lab::build", "nodes and links", "code"),
            "run": (3, 0, "lab::run", "until its end", "code"),
            "report": (4, 0, "lab::report", "summary and tables", "code"),
            "topology": (1, 1, "lab::topology", "generators, ns-3 import", "code"),
            "workload": (2, 1, "lab::workload", "flows and triggers", "code"),
            "engine": (3, 1, "netsim::engine", "events in picoseconds", "code"),
            "trace": (4, 1, "netsim::trace", "Parquet, pcapng", "code"),
            "station": (2, 2, "netsim::station", "hosts: RC and TCP", "code"),
            "switch": (3, 2, "netsim::switch", "queues, ECN, PFC, QCN", "code"),
            "board": (4, 2, "board::BoardNode", "the verilated gateware", "code"),
            "transport": (2, 3, "transport", "RC, TCP, connections", "code"),
            "cc": (3, 3, "cc", "DCQCN, QCN, RED", "code"),
            "rtl": (4, 3, "rtl/", "by Verilator", "outside"),
        },
        [
            ("file", "read", ""),
            ("read", "build", ""),
            ("read", "topology", ""),
            ("build", "workload", ""),
            ("build", "run", ""),
            ("run", "report", ""),
            ("run", "engine", ""),
            ("engine", "trace", ""),
            ("engine", "switch", ""),
            ("station", "switch", "frames"),
            ("board", "switch", "frames"),
            ("transport", "station", ""),
            ("cc", "switch", ""),
            ("rtl", "board", ""),
        ],
    ),
}


def main() -> int:
    for name, diagram in DIAGRAMS.items():
        (IMAGES / f"{name}.svg").write_text(diagram.svg())
    return 0


if __name__ == "__main__":
    sys.exit(main())
