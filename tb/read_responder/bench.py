# SPDX-License-Identifier: Apache-2.0
"""READs are answered with the memory's bytes, once and in order, whatever the network does; nothing else is read.

Each packet is compared with the model (tb/lib/read_model.py), which sees requests and grants in the order in which the
gateware takes them.
"""

import itertools
import random
from collections import Counter, deque
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib import structs
from lib.axi_memory import AxiMemory
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.read_model import (
    ACK,
    MASK,
    NAK_ACCESS,
    NAK_INVALID,
    NAK_OPERATIONAL,
    NAK_SEQUENCE,
    Reader,
    Reply,
    Request,
    Responder,
    Window,
)
from lib.responder_bed import CLOCK_NS, ResponderBed
from lib.runner import Bench, seed

BENCH = Bench(
    top="read_responder_bench",
    configs=[{"DATA_W": 64, "N_QP": 8}, {"DATA_W": 512, "N_QP": 1}],
    sources=[Path(__file__).parent / "read_responder_bench.sv"],
)

SIZE, BASE = 1 << 17, 0xABC100
CREDITS = 0x1F
REFUSALS = {
    NAK_SEQUENCE: "nak_sequence",
    NAK_INVALID: "nak_invalid",
    NAK_ACCESS: "nak_access",
    NAK_OPERATIONAL: "nak_operational",
}


class Harness(ResponderBed):
    def __init__(self, dut, rng: random.Random, mtu: list[int] | None = None):
        super().__init__(dut)
        self.rng = rng
        self.lanes, self.n_qp = len(dut.m_axis_tkeep), int(dut.N_QP.value)
        self.mtu = mtu or [128 << rng.randrange(1, 6) for _ in range(self.n_qp)]
        self.windows = [Window(rng.getrandbits(32), 0, SIZE, psn=rng.getrandbits(24)) for _ in range(self.n_qp)]
        self.models: list[Responder | None] = [None] * self.n_qp
        self.requests: deque[Request] = deque()
        self.expected: deque[Reply] = deque()  # packets that were chosen
        self.packets: list[tuple[Reply, bytes]] = []
        self.faults: list[int] = []
        self.read_words: set[int] = set()  # addresses
        self.permitted: set[int] = set()  # ... of packets that were chosen
        self.counted: Counter[str] = Counter()  # read_stat_t
        self.refused: Counter[str] = Counter()  # NAKs that left, by their counter
        self.executed = self.cycle = self.charged = 0
        self.gap = lambda: 12 if self.lanes == 8 else 2  # cycles from a request to the next one

    async def start(self, latency=lambda rng: 20, stall: float = 0.0, eligible: float = 1.0) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.rst.value = 1
        self.stall, self.eligible = stall, eligible
        for name in ("request_valid", "ready", "tx_paused", "hdr_ready", "cfg", "window"):
            getattr(dut, name).value = 0
        dut.qpn_base.value = BASE
        dut.eligible.value = (1 << self.n_qp) - 1
        dut.sent_ready.value = 1
        self.memory = AxiMemory(dut, self.rng, SIZE, latency, CLOCK_NS)
        self.memory.fault = self.note_read
        self.bad = lambda address: False
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        if stall:
            self.memory.stall(self.rng, stall)
            self.sink.set_pause_generator(self.rng.random() < stall for _ in itertools.count())
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        for task in (self._drive, self.table, self._watch, self._packets):
            cocotb.start_soon(task())
        return self

    def note_read(self, address: int, is_write: bool) -> bool:
        self.read_words.add(address)
        return self.bad(address)

    def open(self, qp: int) -> None:
        self.open_with(qp, Responder(qp, self.mtu[qp], self.windows[qp]))

    async def _drive(self) -> None:
        dut = self.dut
        while True:
            if not self.requests:
                await RisingEdge(dut.clk)
                continue
            dut.request.value = packed(self.requests.popleft())
            dut.request_valid.value = 1
            await RisingEdge(dut.clk)
            dut.request_valid.value = 0
            await ClockCycles(dut.clk, self.gap())

    async def _watch(self) -> None:
        dut, rng, closing = self.dut, self.rng, None
        while True:
            await RisingEdge(dut.clk)
            if closing is not None:  # as the table does after a fault
                self.close(closing)
            dut.hdr_ready.value = rng.random() >= self.stall
            if self.stall:
                dut.sent_ready.value = rng.random() >= 0.2
                dut.tx_paused.value = rng.random() < 0.1
            if self.eligible < 1:
                dut.eligible.value = sum((rng.random() < self.eligible) << qp for qp in range(self.n_qp))
            await ReadOnly()
            self.cycle += 1
            self.counted.update(structs.unpack("read_stat_t", int(dut.stat_bits.value)))
            if dut.executed.value == 1:
                self.executed += 1
                if dut.ignored.value == 0:
                    request = unpacked(int(dut.executed_request.value))
                    self.model(request.qp).receive(request)
            if dut.sent_valid.value == 1:
                model = self.model(int(dut.sent_qp.value))
                model.window_closed(self.window)
                reply = model.send()
                self.expected.append(reply)
                self.permitted.update(self.words(reply))
                assert int(dut.sent_bytes.value) == 82 + 4 * (reply.aeth is not None) + (reply.length + 3) // 4 * 4
            closing = int(dut.fault_qp.value) if dut.fault_valid.value == 1 else None
            if closing is not None:
                self.faults.append(closing)
            if dut.hdr_valid.value == 1 and dut.hdr_ready.value == 1:
                self.leaves(structs.unpack("tx_hdr_t", int(dut.hdr.value)))

    def words(self, reply: Reply) -> range:
        """Addresses of the memory's words that hold its bytes."""
        return range(reply.va // self.lanes * self.lanes, reply.va + reply.length, self.lanes)

    def model(self, qp: int) -> Responder:
        model = self.models[qp]
        assert model is not None, f"queue pair {qp} is closed"
        return model

    def leaves(self, hdr: dict[str, int]) -> None:
        reply = self.expected.popleft()
        aeth = (hdr["imm"] >> 24, hdr["imm"] & MASK) if hdr["has_imm"] else None
        if reply.length and aeth and hdr["opcode"] == ACK:  # the memory has failed
            assert any(
                self.bad(a) for a in range(reply.va // self.lanes * self.lanes, reply.va + reply.length, self.lanes)
            )
            assert aeth[0] == NAK_OPERATIONAL
            reply = Reply(reply.qp, ACK, reply.psn, aeth)
        seen = Reply(reply.qp, hdr["opcode"], hdr["psn"], aeth, reply.va, hdr["payload_len"])
        assert seen == reply, f"{seen} in place of {reply}"
        assert (hdr["dst_ip"], hdr["dst_mac"], hdr["dest_qpn"]) == (reply.qp + 1, reply.qp + 2, self.dest_qpn(reply.qp))
        assert hdr["udp_sport"] == 0xC000 + reply.qp and not hdr["has_reth"] and not hdr["ack_req"]
        if reply.opcode == ACK:
            self.refused[REFUSALS[reply.aeth[0]]] += 1
        self.packets.append((reply, b""))

    async def _packets(self) -> None:
        """Payloads, in the order of the headers that have one."""
        number = 0
        while True:
            data = bytes((await self.sink.recv()).tdata)
            while number >= len(self.packets) or not self.packets[number][0].length:
                if number < len(self.packets):
                    number += 1
                else:
                    await RisingEdge(self.dut.clk)
            reply = self.packets[number][0]
            assert data == bytes(self.memory.mem[reply.va : reply.va + reply.length]), f"bytes of {reply}"
            self.packets[number] = (reply, data)
            number += 1

    async def settle(self, cycles: int = 400) -> None:
        await self.until(lambda: not self.requests)
        await ClockCycles(self.dut.clk, cycles)
        await self.until(lambda: not self.expected and int(self.dut.backlog.value) == 0)
        await ClockCycles(self.dut.clk, cycles)
        assert {name: self.counted[name] for name in REFUSALS.values()} == {
            n: self.refused[n] for n in REFUSALS.values()
        }


def packed(request: Request) -> int:
    return structs.pack(
        "read_request_t", qp=request.qp, is_read=request.is_read, is_whole=request.is_whole, psn=request.psn,
        reth__va=request.va, reth__rkey=request.rkey, reth__dma_len=request.length,
    )  # fmt: skip


def unpacked(word: int) -> Request:
    f = structs.unpack("read_request_t", word)
    return Request(
        f["qp"], f["psn"], f["reth.va"], f["reth.rkey"], f["reth.dma_len"], bool(f["is_read"]), bool(f["is_whole"])
    )


def random_reads(rng: random.Random, window: Window, mtu: int, count: int) -> list[tuple[int, int]]:
    reads = []
    for _ in range(count):
        most = min(window.length, 4 * mtu)
        length = rng.choice([0, 1, mtu, mtu + 1, 2 * mtu - 1, rng.randrange(200), rng.randrange(most + 1)])
        length = min(length, window.length)
        start = window.base + rng.randrange(window.length - length + 1)
        reads.append((rng.choice([start, window.base, window.base + window.length - length]), length))
    return reads


async def read_through_network(h: Harness, readers: list[Reader], loss: float, repeat: float, late: float) -> None:
    """Runs the readers; requests and packets are lost, repeated and delayed at random."""
    rng, taken = h.rng, 0
    arriving: list[tuple[int, Request]] = []
    returning: list[tuple[int, Reply, bytes]] = []

    def delay() -> int:
        return h.cycle + (rng.randrange(400) if rng.random() < late else 20)

    while not all(reader.done for reader in readers):
        await RisingEdge(h.dut.clk)
        for reader in readers:
            reader.tick()
            while reader.out:
                request = reader.out.pop(0)
                for _ in range(int(rng.random() >= loss) + int(rng.random() < repeat)):
                    arriving.append((delay(), request))
        h.requests.extend(request for due, request in arriving if due <= h.cycle)
        arriving = [one for one in arriving if one[0] > h.cycle]
        while taken < len(h.packets) and (h.packets[taken][1] or not h.packets[taken][0].length):
            reply, data = h.packets[taken]
            taken += 1
            for _ in range(int(rng.random() >= loss) + int(rng.random() < repeat)):
                returning.append((delay(), reply, data))
        for _, reply, data in [one for one in returning if one[0] <= h.cycle]:
            readers[reply.qp].receive(reply, data)
        returning = [one for one in returning if one[0] > h.cycle]
        assert h.cycle < 2_000_000, [(len(r.results), len(r.reads), r.retries) for r in readers]


async def reads_of_all(h: Harness, count: int, depth: int, **network: float) -> list[Reader]:
    rng = h.rng
    readers = []
    for qp in range(h.n_qp):
        window = h.windows[qp]
        window.base = 64 * rng.randrange(SIZE // 128)
        window.length = 64 * rng.randrange(1, (SIZE - window.base) // 64 + 1)
        h.open(qp)
        reads = random_reads(rng, window, h.mtu[qp], count)
        readers.append(Reader(qp, h.mtu[qp], window, reads, rng.randrange(1, depth + 1), rng))
    await read_through_network(h, readers, **network)
    for reader in readers:
        assert reader.results == [bytes(h.memory.mem[va : va + length]) for va, length in reader.reads]
    for address in h.read_words:
        assert any(w.base <= address and address + h.lanes <= w.base + w.length for w in h.windows), hex(address)
    assert not h.faults
    return readers


@cocotb.test()
async def reads_of_all_lengths_return_the_bytes_of_the_memory(dut):
    h = await Harness(dut, seed()).start()
    await reads_of_all(h, 48 // h.n_qp, 16, loss=0, repeat=0, late=0)


@cocotb.test()
async def reads_return_their_bytes_through_loss_repetition_and_reordering(dut):
    h = await Harness(dut, seed()).start(lambda rng: rng.randrange(100), stall=0.2, eligible=0.7)
    readers = await reads_of_all(h, 60 // h.n_qp, 16, loss=0.04, repeat=0.05, late=0.1)
    assert sum(reader.retries for reader in readers) > 2
    naks = [reply for reply, _ in h.packets if reply.aeth and reply.aeth[0] == NAK_SEQUENCE]
    assert naks, "no gap was found"


@cocotb.test()
async def any_request_is_answered_as_the_model_does_and_reads_only_the_window(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(60), stall=0.1)
    for _ in range(50):
        for qp in range(h.n_qp):
            if not h.ready >> qp & 1 or rng.random() < 0.05:
                h.close(qp)
                await ClockCycles(dut.clk, rng.choice([1, 10, 100]))
                length = 64 * rng.randrange(1, 40)
                base = rng.choice([0, SIZE - length, 64 * rng.randrange((SIZE - length) // 64 + 1)])
                resources = rng.choice([0, 1, 2, 3, 16, 16, 31])
                h.windows[qp] = Window(rng.getrandbits(32), base, length, resources, rng.getrandbits(24))
                await ClockCycles(dut.clk, 2)  # the table is written before the command
                h.open(qp)
        for _ in range(rng.randrange(1, 12)):
            qp = rng.randrange(h.n_qp)
            h.requests.append(wild_request(rng, qp, h.models[qp]))
        await h.settle(rng.choice([1, 40]))
    assert h.read_words and h.read_words <= h.permitted
    naks = {reply.aeth[0] for reply, _ in h.packets if reply.aeth and reply.opcode == ACK}
    assert naks == {NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS}, naks


def wild_request(rng: random.Random, qp: int, model: Responder | None) -> Request:
    """Near what is permitted, on both sides of it."""
    window = model.window if model else Window(0, 0, 64)
    expected = model.expected if model else 0
    length = rng.choice(
        [0, 1, window.length, window.length + 1, rng.randrange(3000), 1 << 31, (1 << 31) + 1, 1 << 32 - 1]
    )
    va = window.base + rng.choice([0, 1, -1, window.length - length, window.length - length + 1, rng.randrange(2000)])
    is_read, is_whole = rng.random() < 0.97, rng.random() < 0.97
    if model and model.reads and rng.random() < 0.4:  # near a repetition
        _, whole = rng.choice(model.reads)
        packet = rng.choice([0, 0, rng.randrange(whole.packets(model.mtu) + 1)])
        offset = min(packet * model.mtu, whole.length)
        left = whole.length - offset
        length = max(0, rng.choice([left, left, left + 1, rng.randrange(left + 1)]))
        va = whole.va + offset + rng.choice([0] * 8 + [1, model.mtu])
        return Request(
            qp, (whole.psn + packet) & MASK, va % (1 << 64), whole.rkey ^ (rng.random() < 0.1), length, is_read
        )
    psn = (
        expected
        if rng.random() < 0.85
        else (expected + rng.choice([1, -1, 1 << 23, (1 << 23) - 1, rng.getrandbits(24)]))
    )
    rkey = window.rkey if rng.random() < 0.95 else rng.getrandbits(32)
    return Request(qp, psn & MASK, va % (1 << 64), rkey, length, is_read, is_whole)


async def one_queue_pair(dut, **settings: int) -> tuple[Harness, Window]:
    h = await Harness(dut, seed(), [1024] * int(dut.N_QP.value)).start()
    window = h.windows[0]
    for name, value in settings.items():
        setattr(window, name, value)
    h.open(0)
    return h, window


@cocotb.test()
async def more_reads_than_agreed_are_refused_after_the_answers_to_the_others(dut):
    resources = 16
    h, window = await one_queue_pair(dut, resources=resources)
    dut.eligible.value = 0
    for i in range(resources + 1):
        h.requests.append(Request(0, (window.psn + 2 * i) & MASK, 64 * i, window.rkey, 2000))
    await h.until(lambda: h.executed == resources + 1)
    assert not h.packets
    dut.eligible.value = 1
    await h.until(lambda: h.faults == [0])
    *answers, nak = [reply for reply, _ in h.packets]
    assert [reply.psn for reply in answers] == [(window.psn + i) & MASK for i in range(2 * resources)]
    assert nak.aeth == (NAK_INVALID, resources) and nak.psn == (window.psn + 2 * resources) & MASK


@cocotb.test()
async def a_window_that_closes_amid_an_answer_ends_it_with_a_nak(dut):
    h, window = await one_queue_pair(dut)
    h.requests.append(Request(0, window.psn, 3, window.rkey, 20_000))
    await h.until(lambda: len(h.packets) >= 5)
    closed = window.length = 64 * (3000 // 64)
    await h.until(lambda: h.faults == [0])
    *answers, nak = [reply for reply, _ in h.packets]
    assert nak.aeth[0] == NAK_ACCESS and nak.psn == (window.psn + len(answers)) & MASK
    assert len(answers) < 20 and closed < 20_000


@cocotb.test()
async def memory_that_fails_ends_the_queue_pair_with_one_nak(dut):
    h, window = await one_queue_pair(dut)
    h.bad = lambda address: address // 64 == 5000 // 64
    h.requests.append(Request(0, window.psn, 9, window.rkey, 9000))
    await h.until(lambda: h.faults == [0])
    await ClockCycles(dut.clk, 3000)
    replies = [reply for reply, _ in h.packets]
    naks = [reply for reply in replies if reply.opcode == ACK]
    assert len(naks) == 1 and naks[0].psn == (window.psn + 4) & MASK and replies.index(naks[0]) == 4


@cocotb.test()
async def the_longest_read_takes_half_of_all_psns_and_a_longer_one_is_invalid(dut):
    h = await Harness(dut, seed(), [256] * int(dut.N_QP.value)).start()
    window = h.windows[0]
    window.length = 1 << 33
    h.open(0)
    h.requests.append(Request(0, window.psn, 0, window.rkey, 1 << 31))
    await h.until(lambda: len(h.packets) > 3)
    assert h.model(0).expected == (window.psn + (1 << 23)) & MASK
    h.requests.append(Request(0, (window.psn + (1 << 23)) & MASK, 0, window.rkey, (1 << 31) + 1))
    await ClockCycles(dut.clk, 200)
    assert h.model(0).failed
    h.close(0)
    await h.settle()


@cocotb.test()
async def a_connection_gets_no_packet_of_the_one_before_it(dut):
    h, window = await one_queue_pair(dut)
    for turn in range(8):
        first = len(h.packets) + len(h.expected)
        h.requests.append(Request(0, window.psn, turn, window.rkey, 30_000))
        await ClockCycles(dut.clk, h.rng.randrange(20, 300))
        psn, window.psn = window.psn, h.rng.getrandbits(24)
        await ClockCycles(dut.clk, 3)
        h.close(0)
        await ClockCycles(dut.clk, h.rng.randrange(1, 4))
        h.open(0)
        later = len(h.packets) + len(h.expected)
        h.requests.append(Request(0, window.psn, 64, window.rkey, 500))
        await h.until(lambda n=later: len(h.packets) > n)
        replies = [reply for reply, _ in h.packets[first:]]
        assert [reply.psn for reply in replies] == [*(psn + i & MASK for i in range(later - first)), window.psn]
        psn, window.psn = window.psn, h.rng.getrandbits(24)
        await ClockCycles(dut.clk, 3)
        h.close(0)
        await ClockCycles(dut.clk, 30)
        h.open(0)


@cocotb.test()
async def answers_leave_without_a_pause_from_a_memory_of_latency_100(dut):
    h = await Harness(dut, seed(), [1024] * int(dut.N_QP.value)).start(lambda rng: 100)
    pauses = {}
    for qp, mtu in enumerate([1024, 4096][: h.n_qp]):
        h.mtu[qp] = mtu
        window = h.windows[qp]
        h.open(qp)
        h.requests.append(Request(qp, window.psn, 5, window.rkey, 20 * mtu))
        await h.until(lambda: dut.m_axis_tvalid.value == 1)
        start, left = h.cycle, 20 * mtu // h.lanes - 1  # beats after this one
        while left:
            await RisingEdge(dut.clk)
            left -= dut.m_axis_tvalid.value == 1
        pauses[mtu] = (h.cycle - start - 20 * mtu // h.lanes + 1) / 20
        await h.settle()
    dut._log.info("cycles without payload for each packet: %s", pauses)
    # A packet's headers, ICRC, FCS, preamble and gap take as long as 82 bytes.
    assert h.lanes == 64 or max(pauses.values()) < 82 / h.lanes


@cocotb.test()
async def the_first_byte_comes_within_20_cycles_of_the_request(dut):
    h = await Harness(dut, seed(), [1024] * int(dut.N_QP.value)).start(lambda rng: 1)
    window = h.windows[0]
    h.open(0)
    await ClockCycles(dut.clk, 20)
    cycles = []
    for turn in range(5):
        h.requests.append(Request(0, (window.psn + turn) & MASK, 64 * turn + turn, window.rkey, 8))
        await h.until(lambda: dut.request_valid.value == 1)
        start = h.cycle
        await h.until(lambda: dut.m_axis_tvalid.value == 1)
        cycles.append(h.cycle - start)
        await h.settle(40)
    dut._log.info("request to payload: %s cycles", cycles)
    assert max(cycles) <= 20  # a cycle of it is the memory's
