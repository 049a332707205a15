# SPDX-License-Identifier: Apache-2.0
"""AdvCam's emulated switch (section VI A): it measures the passing payload and triggers a CNP above a threshold."""

from dataclasses import dataclass, field

import cocotb

from lib.cable import Line
from lib.rc_peer import Peer, Seen


@dataclass
class EmulatedSwitch:
    """Watches one queue pair's packets on the line, in a window that slides with every packet.

    A CNP goes out when the payload of the last `window` exceeds `threshold` of the line's rate and the cooldown behind
    the last one is over. All times are those in which the line carries so many octets.
    """

    peer: Peer
    line: Line
    qp: int
    threshold: float
    cooldown: int
    window: int = 40_000  # at 10 Gb/s: 5000 cycles, 32 us
    notified_ns: list[float] = field(default_factory=list)
    measured: list[tuple[float, float]] = field(default_factory=list)  # end of the window in ns, payload in Gb/s
    cooled_ns: float = 0.0

    def __post_init__(self) -> None:
        self.peer.verdict = self.observe

    def observe(self, packet: Seen) -> None:
        now = self.end_ns(packet)
        self.measured.append((now, self.throughput_gbps(now, lambda p: len(p.payload))))
        if now < self.cooled_ns or self.measured[-1][1] <= self.threshold * self.line.gbps:
            return
        self.notified_ns.append(now)
        cocotb.start_soon(self.peer.notify(self.qp))
        self.cooled_ns = now + self.cooldown * self.line.octet_ns

    def throughput_gbps(self, end: float, octets=lambda packet: packet.wire_bytes) -> float:
        """What the packets weigh by `octets` in the window up to `end`, each spread evenly over its time."""
        begin, total = end - self.window * self.line.octet_ns, 0.0
        for packet in reversed(self.peer.seen):
            if self.end_ns(packet) <= begin:
                break
            inside = min(end, self.end_ns(packet)) - max(begin, packet.start_ns)
            if packet.qp == self.qp and inside > 0:
                total += octets(packet) * inside / (self.end_ns(packet) - packet.start_ns)
        return 8 * total / (end - begin)

    def end_ns(self, packet: Seen) -> float:
        """When the packet has left the wire free again."""
        return packet.start_ns + packet.wire_bytes * self.line.octet_ns
