# SPDX-License-Identifier: Apache-2.0
"""SENDs and WRITEs of a peer reach the stream and the window once and in order, whatever the network does; no other
byte of the memory changes.

Frames are scapy's. Each reply is compared with the model (tb/lib/receive_model.py), which sees requests and grants in
the order in which the gateware takes them.
"""

import random
from collections import Counter, deque
from dataclasses import dataclass, replace
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib import structs
from lib.axi_memory import AxiMemory
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.read_model import ACK, MASK, NAK_ACCESS, NAK_INVALID, NAK_OPERATIONAL, NAK_SEQUENCE, Reply, Request
from lib.receive_model import (
    RNR,
    Message,
    Packet,
    Receiver,
    Sender,
    WriteWindow,
    frame,
    packets_of,
)
from lib.responder_bed import CLOCK_NS, ResponderBed
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, ip_int, mac_int
from lib.runner import Bench, seed

BENCH = Bench(
    top="receive_bench",
    configs=[{"DATA_W": 64, "N_QP": 4}, {"DATA_W": 512, "N_QP": 1}],
    sources=[Path(__file__).parent / "receive_bench.sv"],
)

SIZE, BASE = 1 << 17, 0xABC100


@dataclass
class Beat:
    """Of the stream of SENDs."""

    qp: int
    data: bytes
    starts: bool
    last: bool
    imm: int | None
    is_write: bool


class Harness(ResponderBed):
    def __init__(self, dut, rng: random.Random, mtu: list[int] | None = None):
        super().__init__(dut)
        self.rng = rng
        self.lanes, self.n_qp = len(dut.m_axis_tkeep), int(dut.N_QP.value)
        self.mtu = mtu or [128 << rng.randrange(1, 6) for _ in range(self.n_qp)]
        self.windows = [WriteWindow(rng.getrandbits(32), 0, SIZE, psn=rng.getrandbits(24)) for _ in range(self.n_qp)]
        self.models: list[Receiver | None] = [None] * self.n_qp
        self.packets: deque[tuple[Packet | Request, bytes]] = deque()  # that wait for the wire
        self.sent: deque[Packet | Request] = deque()  # that are on it
        self.expected: deque[Reply] = deque()  # packets that were chosen
        self.replies: list[Reply] = []
        self.answers: list[bytes] = []  # payloads of READ responses
        self.delivered: deque = deque()  # by the models, to the stream
        self.beats: list[Beat] = []
        self.faults: list[int] = []
        self.counted: Counter[str] = Counter()  # read_stat_t
        self.executed = self.dropped = self.cycle = self.unserved = 0
        self.is_exact = True  # the model foretells each reply
        self.gap = lambda: 3 if self.lanes == 8 else 1  # cycles from a frame to the next one
        self.stream_ready = lambda: True

    async def start(self, latency=lambda rng: 20, stall: float = 0.0, eligible: float = 1.0) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.rst.value = 1
        self.stall, self.eligible = stall, eligible
        for name in ("ready", "tx_paused", "hdr_ready", "cfg", "window", "m_axis_receive_tready"):
            getattr(dut, name).value = 0
        dut.qpn_base.value = BASE
        dut.local_mac.value, dut.local_ip.value, dut.peer_ip.value = (
            mac_int(LOCAL_MAC),
            ip_int(LOCAL_IP),
            ip_int(PEER_IP),
        )
        dut.eligible.value = (1 << self.n_qp) - 1
        dut.sent_ready.value = 1
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.memory = AxiMemory(dut, self.rng, SIZE, latency, CLOCK_NS)
        self.model_memory = bytearray(self.memory.mem)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        if stall:
            self.memory.stall(self.rng, stall)
            self.stream_ready = lambda: self.rng.random() >= stall
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        for task in (self._drive, self.table, self._watch, self._answers):
            cocotb.start_soon(task())
        return self

    def open(self, qp: int) -> None:
        made = Receiver(qp, self.mtu[qp], self.windows[qp], memory=self.model_memory, stream=self.delivered)
        self.open_with(qp, made)

    def of_writes(self, window: WriteWindow) -> dict[str, int]:
        return {"write": window.write, "rnr_timer": window.rnr_timer}

    def post(self, *packets: Packet | Request) -> None:
        for packet in packets:
            self.packets.append((packet, frame(packet, BASE)))

    async def _drive(self) -> None:
        while True:
            if not self.packets:
                await RisingEdge(self.dut.clk)
                continue
            packet, raw = self.packets.popleft()
            self.sent.append(packet)
            await self.source.send(AxiStreamFrame(raw))
            await self.source.wait()
            await ClockCycles(self.dut.clk, self.gap())

    async def _watch(self) -> None:
        dut, rng, closing = self.dut, self.rng, None
        while True:
            await RisingEdge(dut.clk)
            if closing is not None:  # as the table does after a fault
                self.close(closing)
            if self.stall or self.cycle < 2:
                dut.hdr_ready.value = rng.random() >= self.stall
            dut.m_axis_receive_tready.value = self.stream_ready()
            if self.stall:
                dut.sent_ready.value = rng.random() >= 0.2
                dut.tx_paused.value = rng.random() < 0.1
            if self.eligible < 1:
                dut.eligible.value = sum((rng.random() < self.eligible) << qp for qp in range(self.n_qp))
            await ReadOnly()
            self.cycle += 1
            if stat := int(dut.stat_bits.value):
                self.counted.update(structs.unpack("read_stat_t", stat))
            self.unserved += dut.unserved.value == 1
            if dut.executed.value == 1:
                self.executes(int(dut.executed_request.value), dut.ignored.value == 1, dut.had_room.value == 1)
            if dut.sent_valid.value == 1 and self.is_exact:
                model = self.models[int(dut.sent_qp.value)]
                model.window_closed(self.window)
                self.expected.append(model.send())
            closing = int(dut.fault_qp.value) if dut.fault_valid.value == 1 else None
            if closing is not None:
                self.faults.append(closing)
            if dut.hdr_valid.value == 1 and dut.hdr_ready.value == 1:
                self.leaves(structs.unpack("tx_hdr_t", int(dut.hdr.value)))
            if dut.m_axis_receive_tvalid.value == 1 and dut.m_axis_receive_tready.value == 1:
                self.streams()

    def executes(self, word: int, ignored: bool, room: bool) -> None:
        """Requests that the gateware has lost are no longer on the wire when a later one is carried out."""
        self.executed += 1
        fields = structs.unpack("read_request_t", word)
        while not self.is_same(self.sent[0], fields):
            self.sent.popleft()
            self.dropped += 1
        packet = self.sent.popleft()
        if ignored:
            return
        model = self.models[packet.qp]
        if isinstance(packet, Request):
            model.receive(packet)
        else:
            model.receive_packet(packet, room)

    def is_same(self, packet: Packet | Request, fields: dict[str, int]) -> bool:
        is_read = isinstance(packet, Request)
        if (packet.qp, packet.psn, is_read) != (fields["qp"], fields["psn"], bool(fields["is_read"])):
            return False
        return is_read or (
            bool(fields["receive.is_send"]) == packet.is_send
            and bool(fields["receive.starts"]) == packet.starts
            and bool(fields["receive.ends"]) == packet.ends
            and bool(fields["receive.ack_req"]) == packet.ack_req
            and fields["receive.len"] == len(packet.payload)
            and (not fields["receive.has_imm"] or fields["receive.imm"] == packet.imm)
        )

    def leaves(self, hdr: dict[str, int]) -> None:
        aeth = (hdr["imm"] >> 24, hdr["imm"] & MASK) if hdr["has_imm"] else None
        qp = hdr["dst_ip"] - 1
        seen = Reply(qp, hdr["opcode"], hdr["psn"], aeth, 0, hdr["payload_len"])
        if self.is_exact:
            reply = replace(self.expected.popleft(), va=0)
            assert seen == reply, f"{seen} in place of {reply}"
        assert hdr["dest_qpn"] == self.dest_qpn(qp) and not hdr["has_reth"] and not hdr["ack_req"]
        self.replies.append(seen)

    def streams(self) -> None:
        dut = self.dut
        user = structs.unpack("receive_user_t", int(dut.m_axis_receive_tuser.value))
        keep = int(dut.m_axis_receive_tkeep.value)
        count = keep.bit_count()
        assert keep == (1 << count) - 1, f"tkeep {keep:b}"
        data = int(dut.m_axis_receive_tdata.value).to_bytes(self.lanes, "little")[:count]
        last = dut.m_axis_receive_tlast.value == 1
        self.beats.append(
            Beat(user["qp"], data, bool(user["starts"]), last, user["imm"] if user["has_imm"] else None,
                 bool(user["is_write"]))
        )  # fmt: skip

    def expected_beats(self) -> list[Beat]:
        beats = []
        for one in self.delivered:
            parts = [one.data[i : i + self.lanes] for i in range(0, len(one.data), self.lanes)] or [b""]
            for i, part in enumerate(parts):
                at_end = i == len(parts) - 1
                beats.append(
                    Beat(one.qp, part, one.starts and i == 0, one.ends and at_end, one.imm if at_end else None,
                         one.is_write)
                )  # fmt: skip
        return beats

    async def _answers(self) -> None:
        while True:
            self.answers.append(bytes((await self.sink.recv()).tdata))

    async def settle(self, cycles: int = 400) -> None:
        await self.until(lambda: not self.packets)
        await ClockCycles(self.dut.clk, cycles)
        await self.until(lambda: not self.expected and int(self.dut.backlog.value) == 0)
        await ClockCycles(self.dut.clk, cycles)

    async def check(self) -> None:
        """What has reached the memory and the stream is what the models have accepted, and nothing else."""
        assert self.memory.mem == self.model_memory, "memory differs"
        expected = self.expected_beats()
        # The stream may take its beats long after they were acknowledged, up to a whole buffer of them.
        end = self.cycle + 16_384
        while self.cycle < end and (len(self.beats) < len(expected) or self.dut.m_axis_receive_tvalid.value == 1):
            await RisingEdge(self.dut.clk)
        assert len(self.beats) == len(expected), f"{len(self.beats)} beats in place of {len(expected)}"
        for i, (beat, right) in enumerate(zip(self.beats, expected, strict=True)):
            assert beat == right, f"beat {i}: {beat} in place of {right}"


def random_messages(rng: random.Random, window: WriteWindow, mtu: int, count: int) -> list[Message]:
    messages = []
    for _ in range(count):
        length = rng.choice([0, 1, mtu, mtu + 1, 2 * mtu - 1, rng.randrange(200), rng.randrange(4 * mtu + 1)])
        length = min(length, window.length)
        start = window.base + rng.randrange(window.length - length + 1)
        va = rng.choice([None, start, start, window.base, window.base + window.length - length])
        messages.append(Message(rng.randbytes(length), va, rng.choice([None, rng.getrandbits(32)])))
    return messages


def senders_of(h: Harness, count: int) -> list[Sender]:
    """Each queue pair writes to its part of the memory, so that the order between them does not count."""
    rng, senders = h.rng, []
    part = SIZE // h.n_qp
    for qp in range(h.n_qp):
        window = h.windows[qp]
        window.base = qp * part + 64 * rng.randrange(part // 128)
        window.length = 64 * rng.randrange(1, ((qp + 1) * part - window.base) // 64 + 1)
        h.open(qp)
        packets, psn = [], window.psn
        for message in random_messages(rng, window, h.mtu[qp], count):
            packets += packets_of(message, qp, psn, window.rkey, h.mtu[qp], rng.random() < 0.8)
            psn = (psn + len(packets_of(message, qp, psn, 0, h.mtu[qp]))) & MASK
        senders.append(Sender(qp, window.psn, packets, rng, rng.randrange(1, 16)))
    return senders


async def send_through_network(h: Harness, senders: list[Sender], loss: float, repeat: float, late: float) -> None:
    """Runs the senders; packets and replies are lost, repeated and delayed at random."""
    rng, taken = h.rng, 0
    arriving: list[tuple[int, Packet]] = []
    returning: list[tuple[int, Reply]] = []

    def delay() -> int:
        return h.cycle + (rng.randrange(400) if rng.random() < late else 20)

    while not all(sender.done for sender in senders):
        await RisingEdge(h.dut.clk)
        for sender in senders:
            if len(h.packets) < 8:
                sender.tick()
            while sender.out:
                packet = sender.out.pop(0)
                for _ in range(int(rng.random() >= loss) + int(rng.random() < repeat)):
                    arriving.append((delay(), packet))
        h.post(*(packet for due, packet in arriving if due <= h.cycle))
        arriving = [one for one in arriving if one[0] > h.cycle]
        while taken < len(h.replies):
            for _ in range(int(rng.random() >= loss) + int(rng.random() < repeat)):
                returning.append((delay(), h.replies[taken]))
            taken += 1
        for _, reply in [one for one in returning if one[0] <= h.cycle]:
            senders[reply.qp].receive(reply)
        returning = [one for one in returning if one[0] > h.cycle]
        assert h.cycle < 2_000_000, [(s.una, len(s.packets), s.retries) for s in senders]
    await h.settle()


@cocotb.test()
async def messages_of_all_lengths_reach_their_place(dut):
    h = await Harness(dut, seed()).start()
    await send_through_network(h, senders_of(h, 40 // h.n_qp), loss=0, repeat=0, late=0)
    await h.check()
    assert h.counted["write"] + h.counted["send"] == sum(model.msn for model in h.models) >= 40
    assert h.delivered


@cocotb.test()
async def messages_arrive_once_and_in_order_through_loss_repetition_and_reordering(dut):
    h = await Harness(dut, seed()).start(lambda rng: rng.randrange(100), stall=0.2, eligible=0.7)
    senders = senders_of(h, 60 // h.n_qp)
    await send_through_network(h, senders, loss=0.04, repeat=0.05, late=0.1)
    await h.check()
    assert sum(sender.retries for sender in senders) > 2
    assert h.counted["nak_sequence"] > 0 and h.counted["repeated"] > 0


@cocotb.test()
async def any_packet_is_answered_as_the_model_does_and_writes_only_the_window(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(60), stall=0.1)
    for _ in range(60):
        for qp in range(h.n_qp):
            if not h.ready >> qp & 1 or rng.random() < 0.05:
                h.close(qp)
                await ClockCycles(dut.clk, rng.choice([1, 10, 100]))
                length = 64 * rng.randrange(1, 40)
                base = rng.choice([0, SIZE - length, 64 * rng.randrange((SIZE - length) // 64 + 1)])
                h.windows[qp] = WriteWindow(
                    rng.getrandbits(32), base, length, rng.choice([0, 1, 2, 16]), rng.getrandbits(24),
                    rng.random() < 0.9, rng.randrange(32),
                )  # fmt: skip
                await ClockCycles(dut.clk, 2)  # the table is written before the command
                h.open(qp)
        for _ in range(rng.randrange(1, 12)):
            qp = rng.randrange(h.n_qp)
            if h.models[qp]:
                h.post(*wild_packets(rng, qp, h.models[qp]))
        await h.settle(rng.choice([1, 40]))
    await h.check()
    naks = {reply.aeth[0] for reply in h.replies if reply.aeth and reply.opcode == ACK}
    assert naks >= {NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, 0x1F}, naks
    assert h.counted["write"] and h.counted["send"] and h.counted["read"]


def wild_packets(rng: random.Random, qp: int, model: Receiver) -> list[Packet | Request]:
    """A message, with a fault or without one, or a single packet near what is permitted."""
    window, mtu = model.window, model.mtu
    psn = model.expected
    if rng.random() < 0.15:
        psn += rng.choice([1, -1, -3, 1 << 23, (1 << 23) - 1, rng.getrandbits(24)])
    rkey = window.rkey if rng.random() < 0.95 else rng.getrandbits(32)
    if rng.random() < 0.2:
        return [Request(qp, psn & MASK, window.base, rkey, rng.randrange(min(600, window.length)))]
    length = rng.choice([0, 1, mtu, 2 * mtu, window.length, window.length + 1, rng.randrange(3000)])
    length = min(length, 3 * mtu)
    va = window.base + rng.choice([0, 1, -1, window.length - length, window.length - length + 1, rng.randrange(2000)])
    lies = rng.choice([length + 1, length - 1, 0, (1 << 31) + 1, rng.getrandbits(32)])
    message = Message(
        rng.randbytes(length), rng.choice([None, va % (1 << 64)]), rng.choice([None, rng.getrandbits(32)]),
        lies % (1 << 32) if rng.random() < 0.05 else None,
    )  # fmt: skip
    packets = packets_of(message, qp, psn & MASK, rkey, mtu, rng.random() < 0.5)
    if rng.random() < 0.15:
        at = rng.randrange(len(packets))
        packets[at] = replace(
            packets[at],
            **rng.choice([{"opcode": rng.randrange(12)}, {"payload": rng.randbytes(rng.randrange(mtu + 9))}]),
        )
    if rng.random() < 0.1:
        packets.pop(rng.randrange(len(packets)))
    return packets


async def one_queue_pair(dut, **settings: int) -> tuple[Harness, WriteWindow]:
    h = await Harness(dut, seed(), [1024] * int(dut.N_QP.value)).start()
    window = h.windows[0]
    for name, value in settings.items():
        setattr(window, name, value)
    h.open(0)
    return h, window


@cocotb.test()
async def a_read_after_a_write_returns_what_was_written(dut):
    h, window = await one_queue_pair(dut)
    h.memory.write_latency = lambda rng: rng.randrange(200)
    psn, written = window.psn, []
    for turn in range(30):
        # A WRITE over bytes that are still being read may be in the answer: each has a place of its own.
        data, va = h.rng.randbytes(h.rng.randrange(1, 2500)), 3000 * turn + h.rng.randrange(400)
        packets = packets_of(Message(data, va), 0, psn, window.rkey, 1024, turn % 2 == 0)
        psn = (psn + len(packets)) & MASK
        request = Request(0, psn, va, window.rkey, len(data))
        psn = (psn + request.packets(1024)) & MASK
        h.post(*packets, request)
        written.append(data)
        await h.settle(h.rng.choice([1, 300]))
    await h.until(lambda: sum(map(len, h.answers)) >= sum(map(len, written)))
    await h.settle()
    assert not h.dropped
    got = b"".join(h.answers)
    for turn, data in enumerate(written):
        assert got[: len(data)] == data, f"answer {turn} differs"
        got = got[len(data) :]
    assert not got
    await h.check()


@cocotb.test()
async def a_stream_without_room_answers_rnr_once_and_takes_the_rest_later(dut):
    h, window = await one_queue_pair(dut, rnr_timer=9)
    h.stream_ready = lambda: False
    message = Message(h.rng.randbytes(60_000))
    packets = packets_of(message, 0, window.psn, window.rkey, 1024)
    h.post(*packets)
    await h.settle()
    [nak] = h.replies
    accepted = (nak.psn - window.psn) & MASK
    assert nak.aeth == (RNR | 9, 0) and 4 <= accepted < len(packets) and not h.faults
    assert h.counted["out_of_buffer"] == 1 and not h.beats
    h.stream_ready = lambda: True
    while accepted < len(packets):
        h.post(*packets[accepted:])
        await h.settle()
        accepted = (h.models[0].expected - window.psn) & MASK
    await h.until(lambda: len(h.beats) == 60_000 // h.lanes + (60_000 % h.lanes > 0))
    await h.check()
    assert h.replies[-1].aeth == (0x1F, 1)


@cocotb.test()
async def a_notice_of_a_write_comes_after_its_bytes_are_in_the_memory(dut):
    h, window = await one_queue_pair(dut)
    h.memory.write_latency = lambda rng: 300
    data = h.rng.randbytes(3000)
    h.post(*packets_of(Message(data, 777, imm=0xCAFE), 0, window.psn, window.rkey, 1024))
    h.post(*packets_of(Message(b"after"), 0, (window.psn + 3) & MASK, window.rkey, 1024))
    await h.until(lambda: h.beats)
    assert bytes(h.memory.mem[777:3777]) == data and h.beats[0].is_write
    await h.settle()
    await h.check()


@cocotb.test()
async def memory_that_fails_a_write_ends_the_queue_pair_with_one_nak(dut):
    h, window = await one_queue_pair(dut)
    h.is_exact = False
    h.memory.fault = lambda address, is_write: is_write and address // 64 == 5000 // 64
    packets = packets_of(Message(h.rng.randbytes(9000), 9, imm=7), 0, window.psn, window.rkey, 1024)
    later = packets_of(Message(b"later"), 0, (window.psn + len(packets)) & MASK, window.rkey, 1024)
    h.post(*packets, *later, *later)
    await h.until(lambda: h.faults == [0])
    await ClockCycles(dut.clk, 3000)
    [nak] = h.replies
    assert nak.aeth[0] == NAK_OPERATIONAL and nak.psn == (window.psn + 4) & MASK
    assert not any(beat.is_write for beat in h.beats), "a notice of a WRITE that failed"
    # The next connection begins without a fault.
    h.memory.fault = lambda address, is_write: False
    window.psn = h.rng.getrandbits(24)
    await ClockCycles(dut.clk, 3)
    h.open(0)
    h.post(*packets_of(Message(b"again", 100), 0, window.psn, window.rkey, 1024))
    await h.until(lambda: len(h.replies) == 2)
    assert h.replies[1].aeth == (0x1F, 1) and h.replies[1].psn == window.psn


@cocotb.test()
async def frames_that_are_no_whole_requests_leave_no_trace(dut):
    h, window = await one_queue_pair(dut)
    before = bytes(h.memory.mem)
    psn = window.psn
    good = packets_of(Message(h.rng.randbytes(700), 64, imm=3), 0, psn, window.rkey, 1024)[0]
    raw = frame(good, BASE)
    bad = [frame(good, BASE, icrc=False), frame(replace(good, payload=b""), BASE, pad=3), raw[:200], raw[:60]]
    short = frame(Packet(0, psn, 0x07, b"abcd"), BASE)  # as a WRITE it would have a RETH
    bad.append(short)
    for number, one in enumerate(bad[:-1] * 8):
        await h.source.send(AxiStreamFrame(one))
        if number % 3 == 0:
            await ClockCycles(dut.clk, h.rng.randrange(20))
    await h.source.wait()
    await ClockCycles(dut.clk, 200)
    assert bytes(h.memory.mem) == before and not h.executed and not h.replies and not h.beats
    h.post(good)
    await h.settle()
    await h.check()
    assert h.replies[-1].aeth == (0x1F, 1)


@cocotb.test()
async def what_finds_no_place_in_the_store_is_lost_whole(dut):
    """The memory takes nothing for a while: requests beyond the store are lost, all others are carried out."""
    h, window = await one_queue_pair(dut)
    packets = packets_of(Message(h.rng.randbytes(100_000), 5), 0, window.psn, window.rkey, 1024)
    h.memory.hold(True)
    h.post(*packets)
    await h.until(lambda: not h.packets)
    await ClockCycles(dut.clk, 2000)
    h.memory.hold(False)
    await h.settle()
    accepted = (h.models[0].expected - window.psn) & MASK
    assert 8 <= accepted < len(packets) and h.counted["dropped"]
    while accepted < len(packets):
        h.post(*packets[accepted:])
        await h.settle()
        accepted = (h.models[0].expected - window.psn) & MASK
    await h.check()


@cocotb.test()
async def a_connection_gets_no_reply_of_the_one_before_it(dut):
    h, window = await one_queue_pair(dut)
    h.memory.write_latency = lambda rng: 150
    for _ in range(12):
        first = len(h.replies)
        h.post(*packets_of(Message(h.rng.randbytes(5000), 0), 0, window.psn, window.rkey, 1024))
        await h.until(lambda: not h.packets and not h.sent)
        await ClockCycles(dut.clk, h.rng.randrange(200))
        psn, window.psn = window.psn, h.rng.getrandbits(24)
        await ClockCycles(dut.clk, 3)
        h.close(0)
        await ClockCycles(dut.clk, h.rng.randrange(1, 4))
        h.open(0)
        h.post(*packets_of(Message(b"new", 9), 0, window.psn, window.rkey, 1024))
        await h.until(lambda: h.replies and h.replies[-1].psn == window.psn)
        assert all(reply.psn == (psn + 4) & MASK for reply in h.replies[first:-1])
        assert h.replies[-1].aeth == (0x1F, 1)
        window.psn = h.rng.getrandbits(24)
        await ClockCycles(dut.clk, 3)
        h.close(0)
        await ClockCycles(dut.clk, 30)
        h.open(0)
    await h.check()
