# SPDX-License-Identifier: Apache-2.0
"""The data that the message source must send, written from the definitions, independent of the gateware."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from lib import structs

PRBS, COUNTER, REPLAY = range(3)


def prbs31_bits(seed: int) -> Iterator[int]:
    """ITU-T O.150 5.8: 31 stages, the sum of stages 28 and 31 goes into stage 1 and is the next bit.

    `seed` holds the 31 bits before the first, the oldest (stage 31) in bit 0.
    """
    stages = [seed >> (31 - stage) & 1 for stage in range(1, 32)]  # stages[k] is stage k + 1
    while True:
        bit = stages[27] ^ stages[30]
        stages = [bit, *stages[:30]]
        yield bit


def prbs31_bytes(seed: int, invert: bool) -> Iterator[int]:
    """The same as bytes, the first bit the least significant one."""
    bits = prbs31_bits(seed or 0x7FFFFFFF)
    while True:
        yield sum(next(bits) << i for i in range(8)) ^ (0xFF if invert else 0)


def xorshift32(state: int) -> Iterator[int]:
    """Marsaglia 2003, page 4, the triple 13, 17, 5."""
    while True:
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        yield state


@dataclass
class Settings:
    """Members of source_cfg_t."""

    generator: int = PRBS
    prbs_invert: int = 1
    restart: int = 1
    verb: int = 0
    with_imm: int = 0
    in_ring: int = 0
    running_sum: int = 0
    by_event: int = 0
    tag_prefix: int = 0xFF
    qp_first: int = 0
    qp_last: int = 0
    length_min: int = 4096
    length_max: int = 0
    length_seed: int = 1
    count: int = 0
    interval: int = 0
    burst: int = 1
    raddr: int = 0
    raddr_stride: int = 4096
    raddr_slots: int = 0
    first_event: int = 0
    prbs_seed: int = 0x7FFFFFFF
    replay_blocks: int = 256
    warm_up: int = 0

    def pack(self) -> int:
        return structs.pack("source_cfg_t", **asdict(self))


@dataclass
class Message:
    """One descriptor and its payload."""

    qp: int
    verb: int
    with_imm: int
    in_ring: int
    by_event: int
    series: int
    length: int
    raddr: int
    imm: int
    tag: int
    data: bytes = b""

    def descriptor(self) -> int:
        return structs.pack("desc_t", **{name: value for name, value in vars(self).items() if name != "data"})


class Payload:
    """What the generators send, message by message."""

    def __init__(self, s: Settings, memory: bytes):
        self.s = s
        self.memory = memory
        self.stream = prbs31_bytes(s.prbs_seed, bool(s.prbs_invert))
        self.used = 0  # words of the counter, blocks of the replay

    def take(self, length: int) -> bytes:
        if self.s.generator == PRBS:
            return bytes(next(self.stream) for _ in range(length))
        first, size = self.used, 8 if self.s.generator == COUNTER else 64
        self.used += (length + size - 1) // size
        return b"".join(map(self.piece, range(first, self.used)))[:length]

    def piece(self, index: int) -> bytes:
        if self.s.generator == COUNTER:
            return index.to_bytes(8, "little")
        block = index % (self.s.replay_blocks or 256)
        return self.memory[64 * block : 64 * block + 64]


def messages(s: Settings, memory: bytes = b"") -> Iterator[Message]:
    """The messages of a run from its start, without end."""
    draws = xorshift32(s.length_seed or 1)
    payload = Payload(s, memory)
    n_qp = max(s.qp_last - s.qp_first, 0) + 1
    n = total = 0
    while True:
        span = s.length_max - s.length_min + 1 if s.length_max > s.length_min else 0
        warms = bool(s.warm_up) and n < n_qp
        length = s.warm_up if warms else s.length_min + (span * next(draws) >> 32) or 1
        series = n < 2 * n_qp and not warms if s.warm_up else n < n_qp
        event = (s.first_event + n) % 2**64
        slot = n // n_qp % s.raddr_slots if s.raddr_slots else n // n_qp
        offset = total % 2**16 if s.running_sum else slot * s.raddr_stride
        raddr = event if s.by_event or s.in_ring else (s.raddr + offset) % 2**64
        tag = s.tag_prefix << 24 | event & 0xFFFFFF
        qp, imm = s.qp_first + n % n_qp, event & 0xFFFFFFFF
        message = Message(qp, s.verb, s.with_imm, s.in_ring, s.by_event, int(series), length, raddr, imm, tag)
        message.data = payload.take(length)
        yield message
        n, total = n + 1, total + length
