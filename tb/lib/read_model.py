# SPDX-License-Identifier: Apache-2.0
"""The READ responder of crates/transport as a model for benches, and a requester that reads through a bad network."""

import random
from dataclasses import dataclass, field

ENTRIES, MASK = 16, (1 << 24) - 1
FIRST, MIDDLE, LAST, ONLY, ACK = 0x0D, 0x0E, 0x0F, 0x10, 0x11
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL = 0x60, 0x61, 0x62, 0x63
POSITIVE = 0x1F
LONGEST = 1 << 31


@dataclass
class Window:
    """read_cfg_t."""

    rkey: int
    base: int
    length: int
    resources: int = 16
    psn: int = 0

    def permits(self, rkey: int, va: int, length: int) -> bool:
        inside = self.base <= va and va + length <= self.base + self.length
        return length == 0 or (rkey == self.rkey and self.resources > 0 and inside)


@dataclass(frozen=True)
class Request:
    """read_request_t."""

    qp: int
    psn: int
    va: int
    rkey: int
    length: int
    is_read: bool = True
    is_whole: bool = True

    def packets(self, mtu: int) -> int:
        return max(1, -(-self.length // mtu))


@dataclass(frozen=True)
class Reply:
    """A packet as it leaves; of a READ response its address and bytes, of a NAK neither."""

    qp: int
    opcode: int
    psn: int
    aeth: tuple[int, int] | None  # syndrome, MSN
    va: int = 0
    length: int = 0


@dataclass
class Answer:
    """The rest of an answer (transport::read::Responses)."""

    number: float  # of its READ; what waits leaves in the order of its numbers
    rkey: int
    psn: int
    va: int
    left: int
    msn: int
    begun: bool = False
    is_repeated: bool = False


@dataclass
class Nak:
    number: float
    psn: int
    syndrome: int
    msn: int


@dataclass
class Responder:
    """One queue pair (transport::Responder, transport::replies)."""

    qp: int
    mtu: int
    window: Window
    expected: int = 0
    msn: int = 0
    executed: int = 0
    refused: bool = False
    failed: bool = False
    reads: list[tuple[int, Request]] = field(default_factory=list)  # the latest, numbered
    waiting: list[Answer | Nak] = field(default_factory=list)  # in the order in which they leave

    def __post_init__(self) -> None:
        self.expected = self.window.psn

    def receive(self, request: Request) -> None:
        if self.failed:
            return
        distance = (request.psn - self.expected) & MASK
        if distance == 0:
            self.in_order(request)
        elif distance < 1 << 23:
            if not self.refused:
                self.refused = True
                self.nak(NAK_SEQUENCE)
        elif request.is_read:
            self.repeat(request)

    def nak(self, syndrome: int) -> None:
        """A NAK that still waits is replaced."""
        self.waiting = [one for one in self.waiting if not isinstance(one, Nak)]
        self.waiting.append(Nak(self.executed + 0.5, self.expected, syndrome, self.msn))

    def in_order(self, request: Request) -> None:
        resources = min(self.window.resources, ENTRIES)
        full = len(self.reads) >= resources
        unanswered = full and any(
            one.number == self.reads[0][0] and not one.is_repeated for one in self.waiting if isinstance(one, Answer)
        )
        if not request.is_read or not resources or not request.is_whole or request.length > LONGEST or unanswered:
            return self.fail(NAK_INVALID)
        if not self.window.permits(request.rkey, request.va, request.length):
            return self.fail(NAK_ACCESS)
        if full:
            self.forget(self.reads.pop(0)[0])
        self.executed += 1
        self.reads.append((self.executed, request))
        self.refused = False
        self.expected = (self.expected + request.packets(self.mtu)) & MASK
        self.msn = (self.msn + 1) & MASK
        self.waiting.append(Answer(self.executed, request.rkey, request.psn, request.va, request.length, self.msn))

    def fail(self, syndrome: int) -> None:
        self.nak(syndrome)
        self.failed = self.refused = True

    def forget(self, number: int) -> None:
        self.waiting = [one for one in self.waiting if one.number != number]

    def repeat(self, part: Request) -> None:
        for number, whole in self.reads:
            packet = (part.psn - whole.psn) & MASK
            offset = packet * self.mtu
            if (packet < whole.packets(self.mtu) and part.va == (whole.va + offset) & (1 << 64) - 1
                    and part.rkey == whole.rkey and part.length <= whole.length - offset
                    and (part.length > 0 or whole.length == 0)):  # fmt: skip
                self.forget(number)
                answer = Answer(number, part.rkey, part.psn, part.va, part.length, self.msn, is_repeated=True)
                self.waiting = sorted([*self.waiting, answer], key=lambda one: one.number)
                return

    def send(self) -> Reply | None:
        """The next packet; none where the window has closed before an answer, whose NAK comes next."""
        one = self.waiting[0]
        if isinstance(one, Nak):
            self.waiting.pop(0)
            return Reply(self.qp, ACK, one.psn, (one.syndrome, one.msn))
        length = min(one.left, self.mtu)
        is_last = one.left <= self.mtu
        opcode = {(0, 0): FIRST, (1, 0): MIDDLE, (1, 1): LAST, (0, 1): ONLY}[int(one.begun), int(is_last)]
        aeth = None if opcode == MIDDLE else (POSITIVE, one.msn)
        reply = Reply(self.qp, opcode, one.psn, aeth, one.va, length)
        one.psn, one.va, one.left, one.begun = (one.psn + 1) & MASK, one.va + length, one.left - length, True
        if is_last:
            self.waiting.pop(0)
        return reply

    def window_closed(self, window: Window) -> None:
        """Where the next answer is no longer permitted, a NAK takes the place of all answers."""
        one = self.waiting[0]
        if isinstance(one, Answer) and not window.permits(one.rkey, one.va, one.left):
            self.waiting = [Nak(0, one.psn, NAK_ACCESS, self.msn)]
            self.failed = True


@dataclass
class Reader:
    """A requester of READs: up to `depth` outstanding, again from the first missing byte after a loss (IBTA 9.7.3)."""

    qp: int
    mtu: int
    window: Window
    reads: list[tuple[int, int]]  # address, length
    depth: int
    rng: random.Random
    patience: int = 3000  # cycles without progress
    results: list[bytes] = field(default_factory=list)
    outstanding: list[tuple[Request, bytearray]] = field(default_factory=list)
    posted: int = 0
    psn: int = 0
    quiet: int = 0
    out: list[Request] = field(default_factory=list)
    retries: int = 0

    def __post_init__(self) -> None:
        self.psn = self.window.psn

    @property
    def done(self) -> bool:
        return len(self.results) == len(self.reads)

    def post(self) -> None:
        while self.posted < len(self.reads) and len(self.outstanding) < self.depth:
            va, length = self.reads[self.posted]
            request = Request(self.qp, self.psn, va, self.window.rkey, length)
            self.psn = (self.psn + request.packets(self.mtu)) & MASK
            self.outstanding.append((request, bytearray()))
            self.out.append(request)
            self.posted += 1

    def tick(self) -> None:
        self.post()
        self.quiet += 1
        if self.outstanding and self.quiet > self.patience:
            self.again()

    def again(self) -> None:
        """The rest of the oldest READ, and all later ones whole."""
        self.quiet = 0
        self.retries += 1
        for request, data in self.outstanding:
            got = len(data) // self.mtu
            self.out.append(
                Request(self.qp, (request.psn + got) & MASK, request.va + len(data), request.rkey,
                        request.length - len(data))
            )  # fmt: skip

    def receive(self, reply: Reply, data: bytes) -> None:
        if reply.opcode == ACK:
            assert reply.aeth is not None and reply.aeth[0] == NAK_SEQUENCE, f"{reply} to a valid request"
            if self.outstanding and self.quiet > 50:
                self.again()
            return
        if not self.outstanding:
            return
        request, got = self.outstanding[0]
        if reply.psn != (request.psn + len(got) // self.mtu) & MASK:
            if self.quiet > 200:
                self.again()
            return
        got += data
        self.quiet = 0
        if reply.opcode in (LAST, ONLY) and len(got) == request.length:
            self.results.append(bytes(got))
            self.outstanding.pop(0)
