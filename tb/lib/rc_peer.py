# SPDX-License-Identifier: Apache-2.0
"""The other end of the cable (`lib/cable.py`): an RC responder, its headers and ICRC by scapy.

Acceptance rules of IBTA 9.7.5: the expected PSN is taken, an older one is acknowledged again, a newer one is
answered with one NAK sequence error until the gap is filled.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import cocotb
from cocotb.queue import Queue
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

from lib.cable import WIRE_OVERHEAD, plug
from lib.cnm import CN_TAG
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, has_imm, has_reth

QPN_BASE = 0xABC100
PSN_MOD = 1 << 24
ACK, RNR, NAK = 0x1F, 0x20, 0x60  # AETH syndromes; ACK without credit limit
LAST_OPCODES = {0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0A, 0x0B}


@dataclass
class Seen:
    """One packet as it was on the wire."""

    start_ns: float
    qp: int
    psn: int
    opcode: int
    payload: bytes
    wire_bytes: int
    flow: int | None = None  # flow ID of the CN-TAG, when it had one


@dataclass
class Flow:
    """Receiving state of one queue pair."""

    expected: int
    cursor: int = 0
    msn: int = 0
    nak_sent: bool = False
    message: bytearray = field(default_factory=bytearray)


def without_cn_tag(frame: bytes) -> tuple[bytes, int | None]:
    """The frame without a CN-TAG (IEEE 802.1Qau clause 33.2), and the flow ID of that, if there was one."""
    at = 16 if frame[12:14] == b"\x81\x00" else 12
    tag, flow = int.from_bytes(frame[at : at + 2], "big"), int.from_bytes(frame[at + 2 : at + 4], "big")
    return (frame[:at] + frame[at + 4 :], flow) if tag == CN_TAG else (frame, None)


class Peer:
    """`verdict(packet)` may answer "drop", or a syndrome to refuse the expected packet with, instead of None."""

    def __init__(self, dut, expected: dict[int, int], memory: int = 1 << 20):
        self.cable = plug(dut)
        self.source, self.sink = self.cable.source, self.cable.sink
        self.flows = {qp: Flow(psn) for qp, psn in expected.items()}
        self.memory = bytearray(memory)
        self.seen: list[Seen] = []
        self.received: list[tuple[int, bytes, int | None]] = []  # queue pair, SEND payload or b"", immediate
        self.counts: Counter[str] = Counter()
        self.other_frames: Queue[bytes] = Queue()  # frames that are not RoCE
        self.vlan: tuple[int, int] | None = None  # VID and priority of every frame, when tagged
        self.cn_tagged: set[int] = set()  # queue pairs whose frames carry a CN-TAG with their number
        self.credits: Callable[[], int] = lambda: ACK  # code of the credit count in every ACK
        self.verdict: Callable[[Seen], str | int | None] = lambda packet: None
        self.task = cocotb.start_soon(self.run())

    async def run(self) -> None:
        while True:
            await self.handle(*await self.cable.receive())

    async def handle(self, raw: bytes, start) -> None:
        length = len(raw)
        raw, flow = without_cn_tag(raw)
        frame = Ether(raw)
        if BTH not in frame:
            self.other_frames.put_nowait(raw)
            return
        bth = frame[BTH]
        bth.icrc = None  # scapy computes it anew
        assert bytes(frame) == raw, "scapy builds the frame otherwise: ICRC or a length is wrong"
        tag = (frame[Dot1Q].vlan, frame[Dot1Q].prio) if Dot1Q in frame else None
        assert tag == self.vlan, f"frame with tag {tag}"
        assert (frame.src, frame.dst, frame[IP].src, frame[IP].dst) == (LOCAL_MAC, PEER_MAC, LOCAL_IP, PEER_IP)
        body = bytes(bth.payload)
        size = len(body) - bth.padcount
        skip = 16 * has_reth(bth.opcode) + 4 * has_imm(bth.opcode)
        packet = Seen(start / 1000, bth.dqpn, bth.psn, bth.opcode, body[skip:size], length + WIRE_OVERHEAD, flow)
        assert flow == (packet.qp if packet.qp in self.cn_tagged else None), f"frame of {packet.qp} for flow {flow}"
        self.seen.append(packet)
        verdict = self.verdict(packet)
        if verdict != "drop":
            await self.respond(packet, verdict, bth.ackreq, body[:skip])
        else:
            self.counts["dropped"] += 1

    async def respond(self, packet: Seen, refusal: int | None, ack_req: int, extended: bytes) -> None:
        flow = self.flows[packet.qp]
        ahead = (packet.psn - flow.expected) % PSN_MOD
        if ahead == 0 and refusal is None:
            flow.nak_sent = False
            self.accept(flow, packet, extended)
            flow.expected = (flow.expected + 1) % PSN_MOD
            if ack_req:
                await self.answer(packet.qp, packet.psn, self.credits(), flow.msn)
        elif ahead == 0:
            flow.nak_sent = True
            self.counts["refused"] += 1
            await self.answer(packet.qp, packet.psn, refusal, flow.msn)
        elif ahead >= PSN_MOD // 2:
            self.counts["duplicate_request"] += 1
            await self.answer(packet.qp, (flow.expected - 1) % PSN_MOD, self.credits(), flow.msn)
        elif not flow.nak_sent:
            flow.nak_sent = True
            self.counts["out_of_sequence"] += 1
            await self.answer(packet.qp, flow.expected, NAK, flow.msn)

    def accept(self, flow: Flow, packet: Seen, extended: bytes) -> None:
        if has_reth(packet.opcode):
            flow.cursor = int.from_bytes(extended[:8], "big")
        if packet.opcode >= 0x06:
            self.memory[flow.cursor : flow.cursor + len(packet.payload)] = packet.payload
            flow.cursor += len(packet.payload)
        else:
            flow.message += packet.payload
        if packet.opcode in LAST_OPCODES:
            flow.msn = (flow.msn + 1) % PSN_MOD
            immediate = int.from_bytes(extended[-4:], "big") if has_imm(packet.opcode) else None
            if immediate is not None or packet.opcode < 0x06:
                self.received.append((packet.qp, bytes(flow.message), immediate))
            flow.message.clear()

    def lower(self):
        ether = Ether(src=PEER_MAC, dst=LOCAL_MAC)
        if self.vlan:
            ether /= Dot1Q(vlan=self.vlan[0], prio=self.vlan[1])
        return ether / IP(src=PEER_IP, dst=LOCAL_IP) / UDP(sport=4791, dport=4791, chksum=0)

    async def answer(self, qp: int, psn: int, syndrome: int, msn: int) -> None:
        bth = BTH(opcode=0x11, dqpn=QPN_BASE + qp, psn=psn)
        await self.send(bytes(self.lower() / bth / AETH(syndrome=syndrome, msn=msn)))

    async def notify(self, qp: int) -> None:
        """A congestion notification packet."""
        await self.send(bytes(self.lower() / cnp(QPN_BASE + qp)))

    async def send(self, frame: bytes) -> None:
        await self.cable.send(frame)
