# SPDX-License-Identifier: Apache-2.0
"""Data written into a slot leaves whole and without a gap, with any memory latency; errors are reported."""

import itertools
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from lib.axi_memory import AxiMemory
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed

BENCH = Bench(
    top="packet_store_axi_bench",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parent / "packet_store_axi_bench.sv"],
)

CLOCK_NS = 10
N_QP, RING, BASE = 4, 32768, 0x10000


class Harness:
    def __init__(self, dut, rng: random.Random):
        self.dut, self.rng = dut, rng
        self.lanes = len(dut.m_axis_tkeep)
        self.slots: dict[tuple[int, int, int], bytes] = {}  # (qp, mtu code, slot modulo ring)
        self.answers: list[bool] = []  # of the memory, slot by slot: is it bad?
        self.requested: list[bytes] = []
        self.headers: list[bool] = []
        self.sent: list[bytes] = []
        self.read_errors = self.write_errors = self.done = 0

    async def start(self, latency=lambda rng: 20, stall: float = 0.0) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.rst.value = 1
        self.memory = AxiMemory(dut, self.rng, BASE + N_QP * RING, latency, CLOCK_NS)
        self.slot = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_slot"), dut.clk, dut.rst)
        self.job = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_job"), dut.clk, dut.rst)
        self.header = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_header"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        if stall:
            self.memory.stall(self.rng, stall)
            for stream in (self.slot, self.job, self.header, self.sink):
                stream.set_pause_generator(self.rng.random() < stall for _ in itertools.count())
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        for task in (self._watch, self._headers, self._payloads):
            cocotb.start_soon(task())
        return self

    async def _watch(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if self.dut.written.value == 1:
                self.answers.append(self.dut.written_bad.value == 1)
            self.done += self.dut.job_done.value == 1
            self.read_errors += self.dut.stat_read_error.value == 1
            self.write_errors += self.dut.stat_write_error.value == 1

    async def _headers(self) -> None:
        while True:
            self.headers.append(bool((await self.header.recv()).tdata[0]))

    async def _payloads(self) -> None:
        while True:
            self.sent.append(bytes((await self.sink.recv()).tdata))

    def write(self, qp: int, mtu: int, slot: int, data: bytes, empty: bool = False) -> None:
        user = int(empty) << 31 | mtu << 28 | slot << 8 | qp
        self.slot.send_nowait(AxiStreamFrame(data, tuser=user))
        if not empty:
            self.slots[qp, mtu, slot % (RING >> (7 + mtu))] = data

    def read(self, qp: int, mtu: int, slot: int) -> None:
        data = self.slots[qp, mtu, slot % (RING >> (7 + mtu))]
        self.job.send_nowait(AxiStreamFrame((len(data) << 32 | mtu << 28 | slot << 8 | qp).to_bytes(6, "little")))
        self.requested.append(data)

    async def until(self, condition, cycles: int = 100_000) -> None:
        async def wait():
            while not condition():
                await RisingEdge(self.dut.clk)

        await with_timeout(wait(), cycles * CLOCK_NS, "ns")


async def random_traffic(dut, latency, stall: float, rounds: int) -> Harness:
    rng = seed()
    h = await Harness(dut, rng).start(latency, stall)
    written = 0
    for _ in range(rounds):
        mtu = rng.randrange(1, 6)
        count = RING >> (7 + mtu)
        places = [(qp, rng.randrange(128)) for qp in range(N_QP) for _ in range(2)]
        places = list({(qp, slot % count): (qp, slot) for qp, slot in places}.values())
        h.slots.clear()  # another MTU divides the rings otherwise
        for qp, slot in places:
            h.write(qp, mtu, slot, rng.randbytes(rng.choice([128 << mtu, rng.randrange(1, (128 << mtu) + 1)])))
        written += len(places)
        await h.until(lambda n=written: len(h.answers) == n)
        for qp, slot in rng.choices(places, k=12):
            h.read(qp, mtu, slot)
        await h.until(lambda: h.done == len(h.requested))  # now the slots may be filled again
    await h.until(lambda: len(h.sent) == len(h.requested) == len(h.headers))
    assert h.sent == h.requested and not any(h.headers) and not any(h.answers)
    assert min(h.memory.touched) >= BASE >> 12
    assert h.memory.most_writes <= 16
    return h


@cocotb.test()
async def what_was_written_is_read_from_a_quick_memory(dut):
    await random_traffic(dut, lambda rng: 2, stall=0.0, rounds=6)


@cocotb.test()
async def what_was_written_is_read_from_a_slow_memory_with_random_stalls_everywhere(dut):
    await random_traffic(dut, lambda rng: rng.randrange(300), stall=0.3, rounds=6)


@cocotb.test()
async def packets_leave_back_to_back_from_a_memory_of_latency_100(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 100)
    for slot in range(8):
        h.write(0, 5, slot, rng.randbytes(4096))
    await h.until(lambda: len(h.answers) == 8)
    for slot in range(30 if h.lanes == 64 else 10):
        h.read(0, 5, slot)
    beats, idle, last_seen = 0, 0, 0
    while len(h.sent) < len(h.requested):
        await RisingEdge(dut.clk)
        taken = dut.m_axis_tvalid.value == 1
        idle += beats > 0 and not taken
        last_seen = 0 if taken else last_seen + 1
        beats += taken
    assert h.sent == h.requested
    dut._log.info("%d beats, %d cycles without one in between", beats, idle - last_seen)
    # 4096 bytes a packet, 100 cycles of latency: the buffer of the wide store holds half of that in flight
    assert idle - last_seen <= beats * (0.02 if h.lanes == 8 else 0.1)


@cocotb.test()
async def writes_stream_into_a_memory_of_latency_100(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 100)
    packets = 60 if h.lanes == 64 else 16
    for slot in range(packets):
        h.write(slot % 4, 4, slot, rng.randbytes(2048))
    begin = 0
    await h.until(lambda: len(h.answers) == 1)
    beats = 0
    while len(h.answers) < packets:
        await RisingEdge(dut.clk)
        begin += 1
        beats += dut.m_axi_wvalid.value == 1 and dut.m_axi_wready.value == 1
    dut._log.info("%.2f beats a cycle", (packets - 1) * 2048 / h.lanes / begin)
    assert (packets - 1) * 2048 / h.lanes / begin > 0.8


@cocotb.test()
async def a_memory_that_stops_stops_everything_and_loses_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 10)
    h.memory.hold(True)
    for slot in range(40):
        h.write(slot % 4, 5, slot // 4, rng.randbytes(4096))
    await ClockCycles(dut.clk, 6000)
    assert not h.answers and dut.s_axis_slot_tready.value == 0
    h.memory.hold(False)
    await h.until(lambda: len(h.answers) == 40)
    h.memory.hold(True)
    for slot in range(8, 40):
        h.read(slot % 4, 5, slot // 4)
    await ClockCycles(dut.clk, 500)
    assert dut.s_axis_job_tready.value == 0 and not h.sent
    h.memory.hold(False)
    await h.until(lambda: len(h.sent) == len(h.requested))
    assert h.sent == h.requested


@cocotb.test()
async def a_memory_that_takes_an_address_only_with_its_data_gets_both(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 10)
    cocotb.start_soon(h.memory.take_data_first(dut.clk))
    for slot in range(8):
        h.write(slot % 4, 4, slot // 4, rng.randbytes(rng.choice([2048, rng.randrange(1, 2048)])))
        await h.until(lambda n=slot: len(h.answers) > n, cycles=5000)
        h.read(slot % 4, 4, slot // 4)
    await h.until(lambda: len(h.sent) == len(h.requested) == 8)
    assert h.sent == h.requested and not any(h.answers)


@cocotb.test()
async def a_slot_that_was_not_written_is_reported_in_its_turn(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(40))
    page = BASE + RING + 3 * 4096  # slot 3 of queue pair 1
    h.memory.fault = lambda address, is_write: is_write and page + 2048 <= address < page + 4096
    for slot in range(8):
        h.write(1, 5, slot, rng.randbytes(4096))
    h.write(2, 5, 0, b"\0", empty=True)
    h.write(1, 5, 3, rng.randbytes(1000))  # ends before the bad half
    await h.until(lambda: len(h.answers) == 10)
    assert h.answers == [slot == 3 for slot in range(10)]
    assert h.write_errors == 1


@cocotb.test()
async def a_packet_that_could_not_be_read_vanishes_with_its_header(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(40), stall=0.1)
    for slot in range(16):
        h.write(0, 4, slot, rng.randbytes(rng.randrange(1, 2049)))
    await h.until(lambda: len(h.answers) == 16)
    bad = set(rng.sample(range(16), 5))
    h.memory.fault = lambda address, is_write: not is_write and (address - BASE) // 2048 in bad
    order = [rng.randrange(16) for _ in range(40)]
    for slot in order:
        h.read(0, 4, slot)
    await h.until(lambda: len(h.headers) == 40)
    assert h.headers == [slot in bad for slot in order]
    await h.until(lambda: len(h.sent) == sum(slot not in bad for slot in order))
    assert h.sent == [h.slots[0, 4, slot] for slot in order if slot not in bad]
    await ClockCycles(dut.clk, 2)
    assert h.read_errors == sum(h.headers)


@cocotb.test()
async def no_more_than_16_reads_are_outstanding(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 2000)
    for slot in range(16):
        h.write(0, 1, slot, rng.randbytes(256))
    await h.until(lambda: len(h.answers) == 16)
    for slot in range(40):
        h.read(0, 1, slot % 16)
    outstanding = most = 0
    while len(h.sent) < 40:
        await RisingEdge(dut.clk)
        outstanding += dut.m_axi_arvalid.value == 1 and dut.m_axi_arready.value == 1
        outstanding -= dut.m_axi_rvalid.value == 1 and dut.m_axi_rready.value == 1 and dut.m_axi_rlast.value == 1
        most = max(most, outstanding)
    assert most == 16 and h.sent == h.requested
