# SPDX-License-Identifier: Apache-2.0
"""A TCP receiver for benches: listens, accepts one connection, acknowledges in-order data, keeps out-of-order data.

Sans-IO, without payload bytes: `handle` takes a segment and returns the answers. Source: RFC 9293 section 3.10.7
(LISTEN, SYN-RECEIVED, ESTABLISHED), RFC 5681 section 4.2 (an immediate ACK for out-of-order data), RFC 5961
section 3.2 (a challenge ACK for an RST that is not the next sequence number).
"""

from dataclasses import dataclass, field

from scapy.layers.inet import TCP

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
WRAP = 1 << 32


def ahead(a: int, b: int) -> int:
    """How far a lies after b; negative where it lies before."""
    return (a - b + WRAP // 2) % WRAP - WRAP // 2


@dataclass(frozen=True)
class Segment:
    """The fields that count."""

    seq: int
    ack: int
    flags: int
    len: int = 0
    window: int = 0
    options: dict = field(default_factory=dict)  # of tcp_options_t


@dataclass
class Receiver:
    """One end of a connection that the other side opens."""

    iss: int
    mss: int = 1460
    scale: int = 0
    buffer: int = 65535  # bytes that it takes beyond what is in order
    listens: bool = True

    connected: bool = False
    rcv_nxt: int = 0
    bytes: int = 0  # in order, of this connection
    highest: int = 0  # bytes up to the last one that ever came
    beyond: dict[int, int] = field(default_factory=dict)  # first byte to length, not in order yet
    repeated: int = 0  # segments that brought nothing new
    resets: int = 0  # that ended a connection

    def handle(self, segment: Segment) -> list[Segment]:
        """The answers to a segment."""
        if segment.flags & RST:
            beyond = ahead(segment.seq, self.rcv_nxt)
            if self.connected and beyond == 0:
                self.connected, self.resets = False, self.resets + 1
            return [self.acknowledgement()] if self.connected and 0 < beyond < self.buffer else []
        if segment.flags & SYN:
            return self._syn(segment)
        if not self.connected:
            return [Segment(segment.ack, 0, RST)]
        if segment.len:
            self._data(segment)
            return [self.acknowledgement()]
        return []

    def _syn(self, segment: Segment) -> list[Segment]:
        if not self.listens:
            return [Segment(0, (segment.seq + 1) % WRAP, RST | ACK)]
        self.connected, self.rcv_nxt, self.bytes, self.highest = True, (segment.seq + 1) % WRAP, 0, 0
        self.beyond.clear()
        options = {"has_mss": 1, "mss": self.mss, "has_scale": 1, "scale": self.scale}
        return [Segment(self.iss, self.rcv_nxt, SYN | ACK, window=min(self.buffer, 65535), options=options)]

    def _data(self, segment: Segment) -> None:
        first = self.bytes + ahead(segment.seq, self.rcv_nxt)
        last = first + segment.len
        assert last <= self.bytes + max(self.buffer, 1), f"{segment} ends {last - self.bytes} after {self.rcv_nxt}"
        if last <= self.highest:
            self.repeated += 1
        self.highest = max(self.highest, last)
        if self.buffer:  # a probe of a closed window is dropped
            self.beyond[first] = max(segment.len, self.beyond.get(first, 0))
        for first, length in sorted(self.beyond.items()):
            if first <= self.bytes:
                self.bytes, self.rcv_nxt = self._forward(first + length - self.bytes)
                del self.beyond[first]

    def _forward(self, count: int) -> tuple[int, int]:
        count = max(count, 0)
        return self.bytes + count, (self.rcv_nxt + count) % WRAP

    def acknowledgement(self) -> Segment:
        """Where it stands."""
        return Segment((self.iss + 1) % WRAP, self.rcv_nxt, ACK, window=self.buffer >> self.scale)

    def end(self, flags: int) -> Segment:
        """Its FIN or RST."""
        if flags & RST:
            self.connected = False
        return Segment((self.iss + 1) % WRAP, self.rcv_nxt, flags | ACK, window=self.buffer >> self.scale)


@dataclass
class KeepingReceiver(Receiver):
    """A receiver that keeps the bytes, too."""

    content: bytearray = field(default_factory=bytearray)

    def take(self, segment: Segment, payload: bytes) -> list[Segment]:
        """As `handle`, with the payload's bytes at their places."""
        if segment.flags & SYN:
            self.content.clear()
        elif self.connected and payload:
            at = self.bytes + ahead(segment.seq, self.rcv_nxt)
            self.content.extend(bytes(max(at + len(payload) - len(self.content), 0)))
            for i, byte in enumerate(payload):
                if at + i >= self.bytes and self.buffer:
                    self.content[at + i] = byte
        return self.handle(segment)


def segment_of(tcp: TCP, length: int) -> Segment:
    """The counts for a segment with this number of payload bytes."""
    return Segment(tcp.seq, tcp.ack, int(tcp.flags), length)


def tcp_of(segment: Segment, sport: int, dport: int) -> TCP:
    """The segment as scapy has it."""
    options = []
    if segment.options:
        options = [("MSS", segment.options["mss"]), ("NOP", None), ("WScale", segment.options["scale"])]
    return TCP(sport=sport, dport=dport, seq=segment.seq, ack=segment.ack, flags=segment.flags, window=segment.window,
               options=options)  # fmt: skip
