# SPDX-License-Identifier: Apache-2.0
"""The responder of crates/transport with SENDs and WRITEs, as a model for benches; a requester that sends messages
through a bad network; and their packets as frames."""

import random
from dataclasses import dataclass, field

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.read_model import (
    ACK,
    LONGEST,
    MASK,
    NAK_ACCESS,
    NAK_INVALID,
    NAK_SEQUENCE,
    POSITIVE,
    Answer,
    Nak,
    Reply,
    Request,
    Responder,
    Window,
)
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, has_imm, has_reth

READ_REQUEST = 0x0C
FIRST, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM = range(6)  # of a SEND; those of a WRITE are 6 more
RNR = 0x20


@dataclass(frozen=True)
class Message:
    """A SEND, or a WRITE to `va`."""

    data: bytes
    va: int | None = None
    imm: int | None = None
    length: int | None = None  # in the RETH, if it lies


@dataclass(frozen=True)
class Packet:
    """A packet of a SEND or a WRITE."""

    qp: int
    psn: int
    opcode: int
    payload: bytes = b""
    va: int = 0
    rkey: int = 0
    length: int = 0
    imm: int = 0
    ack_req: bool = False

    @property
    def is_send(self) -> bool:
        return self.opcode < 6

    @property
    def place(self) -> int:
        return self.opcode % 6

    @property
    def starts(self) -> bool:
        return self.place in (FIRST, ONLY, ONLY_IMM)

    @property
    def ends(self) -> bool:
        return self.place >= LAST


def frame(one: Packet | Request, qpn_base: int, pad: int | None = None, icrc: bool = True) -> bytes:
    """As the peer sends it. `pad`: another count of padding in the BTH than fits."""
    if isinstance(one, Request):
        extended, payload, opcode, ack_req = reth(one.va, one.rkey, one.length), b"", READ_REQUEST, True
        payload = b"" if one.is_whole else bytes(4)
    else:
        opcode, payload, ack_req = one.opcode, one.payload, one.ack_req
        extended = reth(one.va, one.rkey, one.length) if has_reth(opcode) else b""
        extended += one.imm.to_bytes(4, "big") if has_imm(opcode) else b""
    padding = -len(payload) % 4
    bth = BTH(opcode=opcode, dqpn=qpn_base + one.qp, psn=one.psn, ackreq=ack_req,
              padcount=padding if pad is None else pad)  # fmt: skip
    lower = Ether(src=PEER_MAC, dst=LOCAL_MAC) / IP(src=PEER_IP, dst=LOCAL_IP) / UDP(sport=4791, dport=4791, chksum=0)
    raw = bytes(lower / bth / Raw(extended + payload + bytes(padding)))
    return raw if icrc else raw[:-1] + bytes([raw[-1] ^ 1])


def reth(va: int, rkey: int, length: int) -> bytes:
    return va.to_bytes(8, "big") + rkey.to_bytes(4, "big") + length.to_bytes(4, "big")


def packets_of(message: Message, qp: int, psn: int, rkey: int, mtu: int, ack_req: bool = True) -> list[Packet]:
    """The last one requests an acknowledgement, if any does."""
    parts = [message.data[i : i + mtu] for i in range(0, len(message.data), mtu)] or [b""]
    packets = []
    for i, part in enumerate(parts):
        is_last = i == len(parts) - 1
        place = (ONLY if is_last else FIRST) if i == 0 else (LAST if is_last else MIDDLE)
        place += is_last and message.imm is not None
        opcode = place + 6 * (message.va is not None)
        length = len(message.data) if message.length is None else message.length
        packets.append(
            Packet(qp, (psn + i) & MASK, opcode, part, message.va or 0 if has_reth(opcode) else 0,
                   rkey if has_reth(opcode) else 0, length if has_reth(opcode) else 0,
                   message.imm or 0 if has_imm(opcode) else 0, ack_req and is_last)
        )  # fmt: skip
    return packets


@dataclass
class WriteWindow(Window):
    """read_cfg_t."""

    write: bool = True
    rnr_timer: int = 1

    def takes(self, rkey: int, va: int, length: int) -> bool:
        inside = self.base <= va and va + length <= self.base + self.length
        return length == 0 or (rkey == self.rkey and self.write and inside)


@dataclass
class Acknowledgement:
    """An ACK that waits; what waits leaves in the order of its numbers."""

    number: float
    psn: int
    msn: int


@dataclass
class Delivery:
    """A packet to the stream of SENDs, or the notice of a WRITE."""

    qp: int
    data: bytes
    starts: bool
    ends: bool
    imm: int | None
    is_write: bool = False


@dataclass
class Receiver(Responder):
    """One queue pair (transport::Responder): what it is sent goes to `memory` and `stream`."""

    memory: bytearray = field(default_factory=bytearray)
    stream: list[Delivery] = field(default_factory=list)
    message: dict | None = None
    writes: int = 0
    sends: int = 0

    def receive_packet(self, packet: Packet, room: bool) -> None:
        if self.failed:
            return
        distance = (packet.psn - self.expected) & MASK
        if distance == 0:
            self.in_its_turn(packet, room)
        elif distance < 1 << 23:
            if not self.refused:
                self.refused = True
                self.nak(NAK_SEQUENCE)
        else:  # not beyond a READ, whose answer would pass for received
            self.acknowledge(packet.psn if self.reads else (self.expected - 1) & MASK)

    def in_order(self, request: Request) -> None:
        if self.message is not None:
            self.fail(NAK_INVALID)
        else:
            super().in_order(request)

    def in_its_turn(self, packet: Packet, room: bool) -> None:
        place, message, length = packet.place, self.message, len(packet.payload)
        fits = packet.starts if message is None else not packet.starts and message["send"] == packet.is_send
        if not fits:
            return self.fail(NAK_INVALID)
        if (packet.is_send or has_imm(packet.opcode)) and not room:
            self.nak(RNR | self.window.rnr_timer)
            self.refused = True
            return None
        if not (length == self.mtu if place in (FIRST, MIDDLE) else length <= self.mtu):
            return self.fail(NAK_INVALID)
        if place in (LAST, LAST_IMM) and not length:
            return self.fail(NAK_INVALID)
        if message is None:
            message = {"send": packet.is_send, "va": packet.va, "rkey": packet.rkey, "left": packet.length,
                       "start": packet.va, "length": packet.length}  # fmt: skip
        if not packet.is_send:
            left = message["left"]
            if message["length"] > LONGEST or not (left == length if packet.ends else left > length):
                return self.fail(NAK_INVALID)
            if not self.window.takes(message["rkey"], message["va"], left):
                return self.fail(NAK_ACCESS)
            self.memory[message["va"] : message["va"] + length] = packet.payload
            message["va"] += length
            message["left"] -= length
        imm = packet.imm if has_imm(packet.opcode) else None
        if packet.is_send:
            self.stream.append(Delivery(self.qp, packet.payload, packet.starts, packet.ends, imm))
        elif imm is not None:
            notice = message["start"].to_bytes(8, "little") + message["length"].to_bytes(4, "little")
            self.stream.append(Delivery(self.qp, notice, True, True, imm, is_write=True))
        self.message = None if packet.ends else message
        self.refused = False
        self.expected = (self.expected + 1) & MASK
        if packet.ends:
            self.msn = (self.msn + 1) & MASK
            self.sends += packet.is_send
            self.writes += not packet.is_send
        if packet.ack_req or packet.ends:
            self.acknowledge(packet.psn)
        return None

    def nak(self, syndrome: int) -> None:
        """It includes the acknowledgement of all before it."""
        self.waiting = [one for one in self.waiting if not isinstance(one, Acknowledgement)]
        super().nak(syndrome)

    def acknowledge(self, psn: int) -> None:
        """One that waits is replaced, and goes no less far."""
        for one in self.waiting:
            if isinstance(one, Acknowledgement) and (one.psn - psn) & MASK < 1 << 23:
                psn = one.psn
        self.waiting = [one for one in self.waiting if not isinstance(one, Acknowledgement)]
        self.waiting.append(Acknowledgement(self.executed + 0.5, psn, self.msn))

    def send(self) -> Reply | None:
        one = self.waiting[0]
        if isinstance(one, Acknowledgement):
            self.waiting.pop(0)
            return Reply(self.qp, ACK, one.psn, (POSITIVE, one.msn))
        return super().send()

    def window_closed(self, window: Window) -> None:
        one = self.waiting[0]
        if isinstance(one, Answer | Nak):
            super().window_closed(window)


@dataclass
class Sender:
    """A requester of messages: go-back-N after a NAK, an RNR NAK's time, or silence (IBTA 9.7.5.2, 9.7.6)."""

    qp: int
    psn: int
    packets: list[Packet]
    rng: random.Random
    window: int = 12
    patience: int = 3000  # cycles
    una: int = 0  # packets that were acknowledged
    nxt: int = 0
    quiet: int = 0
    waits: int = 0
    retries: int = 0
    out: list[Packet] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return self.una == len(self.packets)

    def tick(self) -> None:
        self.quiet += 1
        if self.waits:
            self.waits -= 1
            return
        while self.nxt < len(self.packets) and self.nxt - self.una < self.window:
            self.out.append(self.packets[self.nxt])
            self.nxt += 1
        if not self.done and self.quiet > self.patience:
            self.again()

    def again(self) -> None:
        self.nxt, self.quiet = self.una, 0
        self.retries += 1

    def receive(self, reply: Reply) -> None:
        assert reply.opcode == ACK and reply.aeth is not None
        syndrome = reply.aeth[0]
        upto = (reply.psn - self.psn) & MASK
        acknowledged = upto + (syndrome >> 5 == 0)
        if acknowledged > self.una and acknowledged <= len(self.packets):
            self.una, self.quiet = acknowledged, 0
            self.nxt = max(self.nxt, self.una)
        if syndrome == NAK_SEQUENCE and upto == self.una and self.quiet > 50:
            self.again()
        elif syndrome >> 5 == 1 and upto == self.una:
            self.again()
            self.waits = 200
        assert syndrome >> 5 in (0, 1) or syndrome == NAK_SEQUENCE, f"{reply} to a valid request"
