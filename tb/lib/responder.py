# SPDX-License-Identifier: Apache-2.0
"""An RC responder for benches, written from the IBTA rules (volume 1, 9.7.4, 9.7.5, 9.9.3).

Sans-IO: `Responder.receive(packet)` takes one request packet and returns the acknowledgements that it
causes. `FaultyNetwork` carries packets and acknowledgements with seeded loss, copies and delays.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

PSN_MASK = (1 << 24) - 1
HALF = 1 << 23

# RC opcodes (IBTA table 38): (verb, first, last, with immediate)
OPCODES = {
    base + offset: (verb, first, last, imm)
    for verb, base in (("send", 0x00), ("write", 0x06))
    for offset, (first, last, imm) in enumerate([(1, 0, 0), (0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)])
}


# Credit counts by code (IBTA table 46); 31 means no limit.
UNLIMITED = 31
CREDITS = [0, 1, *(step << i for i in range(15) for step in (2, 3))][:31]


class Ack(IntEnum):
    """Kinds of acknowledgement, numbered as ack_kind_e of penstock_pkg."""

    OK = 0
    NAK_SEQ = 1
    RNR = 2
    INV_REQ = 3
    ACCESS = 4
    REM_OP = 5


@dataclass(frozen=True)
class Packet:
    """One request packet; `va`, `rkey`, `dma_len` only with a RETH, `imm` only with immediate data."""

    opcode: int
    psn: int
    ack_req: bool
    payload: bytes
    va: int | None = None
    rkey: int | None = None
    dma_len: int | None = None
    imm: int | None = None


@dataclass(frozen=True)
class Reply:
    kind: Ack
    psn: int
    value: int = 0  # RNR timer code, or code of the credit count
    msn: int = 0


@dataclass
class Message:
    """A message as the responder received it."""

    verb: str
    va: int | None
    imm: int | None
    data: bytes


class ProtocolError(AssertionError):
    """The requester broke a rule that no network fault excuses."""


@dataclass
class Responder:
    """One queue pair's receiving side.

    `refuse(packet)` may return an Ack to answer an expected packet with a NAK: RNR leaves the packet
    unexecuted, a fatal one ends the queue pair. `credits()` is the code of the credit count in each ACK.
    An empty WRITE without immediate is a keep-alive: counted, but no message of the user.
    """

    psn: int
    mtu: int
    rkey: int = 0
    rnr_code: int = 1
    refuse: Callable[[Packet], Ack | None] = lambda packet: None
    credits: Callable[[], int] = lambda: UNLIMITED
    msn: int = 0
    keep_alives: int = 0
    messages: list[Message] = field(default_factory=list)
    dead: bool = False
    _open: Message | None = None
    _left: int = 0
    _nak_sent: bool = False
    _seen: dict[int, Packet] = field(default_factory=dict)

    def receive(self, packet: Packet) -> list[Reply]:
        if self.dead:
            return []
        ahead = (packet.psn - self.psn) & PSN_MASK
        if ahead >= HALF:
            return self._duplicate(packet)
        if ahead:
            if self._nak_sent:
                return []
            self._nak_sent = True  # once per gap
            return [Reply(Ack.NAK_SEQ, self.psn, msn=self.msn)]
        refusal = self.refuse(packet)
        if refusal == Ack.RNR:
            return [Reply(Ack.RNR, packet.psn, self.rnr_code, self.msn)]
        if refusal is not None:
            self.dead = True
            return [Reply(refusal, packet.psn, msn=self.msn)]
        self._execute(packet)
        self._seen[packet.psn] = packet
        self._nak_sent = False
        self.psn = (self.psn + 1) & PSN_MASK
        return [self.positive()] if packet.ack_req else []

    def positive(self) -> Reply:
        """The acknowledgement of all that has arrived; unsolicited, it may bring new credits."""
        return Reply(Ack.OK, (self.psn - 1) & PSN_MASK, self.credits(), self.msn)

    def _duplicate(self, packet: Packet) -> list[Reply]:
        """Acknowledged again, not executed; it must be the packet it was (but for AckReq)."""
        first = self._seen.get(packet.psn)
        if first is None:
            raise ProtocolError(f"psn {packet.psn:#x} lies before the first one of this connection")
        for name in ("opcode", "payload", "va", "rkey", "dma_len", "imm"):
            if getattr(first, name) != getattr(packet, name):
                raise ProtocolError(f"retransmitted psn {packet.psn:#x} differs in {name}")
        return [self.positive()]

    def _execute(self, packet: Packet) -> None:
        verb, first, last, with_imm = OPCODES[packet.opcode]
        if verb == "write" and first and last and not with_imm and packet.dma_len == 0 and not packet.payload:
            self.keep_alives += 1
            self.msn += 1
            return
        where = f"psn {packet.psn:#x} opcode {packet.opcode:#x}"
        if bool(first) == (self._open is not None):
            raise ProtocolError(f"{where}: {'begins inside' if first else 'continues without'} a message")
        if first:
            self._open = Message(verb, packet.va, None, b"")
            self._left = packet.dma_len if verb == "write" else 1 << 31
            if verb == "write" and (packet.va is None or packet.rkey != self.rkey):
                raise ProtocolError(f"{where}: no RETH, or rkey {packet.rkey} instead of {self.rkey}")
        elif packet.va is not None:
            raise ProtocolError(f"{where}: RETH inside a message")
        message = self._open
        if message.verb != verb:
            raise ProtocolError(f"{where}: verb changes inside a message")
        size = len(packet.payload)
        if (not last and size != self.mtu) or not 0 < size <= min(self.mtu, self._left):
            raise ProtocolError(f"{where}: payload of {size} bytes, MTU {self.mtu}, {self._left} left")
        if bool(with_imm) != (packet.imm is not None):
            raise ProtocolError(f"{where}: immediate data where the opcode has none, or missing")
        message.data += packet.payload
        self._left -= size
        if last:
            if verb == "write" and self._left:
                raise ProtocolError(f"{where}: message ends {self._left} bytes early")
            message.imm = packet.imm
            self.messages.append(message)
            self.msn += 1
            self._open = None


@dataclass
class Faults:
    """Probabilities per packet or acknowledgement; delays in clock cycles."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0  # probability of `reorder_delay` on top
    reorder_delay: int = 200
    delay: int = 10


class FaultyNetwork:
    """Decides, for everything that enters, when it arrives: zero, one or two delays in cycles."""

    def __init__(self, rng: random.Random, faults: Faults):
        self.rng = rng
        self.faults = faults

    def arrivals(self) -> list[int]:
        f, rng = self.faults, self.rng
        copies = 0 if rng.random() < f.loss else 2 if rng.random() < f.duplicate else 1
        return [f.delay + (rng.randrange(f.reorder_delay) if rng.random() < f.reorder else 0) for _ in range(copies)]
