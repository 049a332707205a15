# SPDX-License-Identifier: Apache-2.0
"""A slot keeps its packet until it is filled again, and packets leave back to back, at every MTU."""

import itertools
import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, with_timeout
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.runner import Bench, seed

BENCH = Bench(
    top="packet_store",
    configs=[{"DATA_W": 64, "RING_BYTES": 32768}, {"DATA_W": 512, "RING_BYTES": 32768}],
)

CLOCK_NS = 10
N_QP, RING, JOBS = 4, 32768, 4


class Harness:
    def __init__(self, dut, rng: random.Random):
        self.dut, self.rng = dut, rng
        self.lanes = len(dut.m_axis_tkeep)
        self.jobs: deque[tuple[int, int, int, int]] = deque()
        self.requested: list[bytes] = []
        self.unfinished = self.done = 0

    async def start(self, stall: float = 0.0) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.wr_en.value = 0
        dut.job_valid.value = 0
        dut.rst.value = 1
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        if stall:
            self.sink.set_pause_generator(self.rng.random() < stall for _ in itertools.count())
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self._request())
        cocotb.start_soon(self._count())
        return self

    async def write(self, qp: int, mtu: int, slot: int, data: bytes) -> None:
        dut = self.dut
        dut.wr_qp.value, dut.wr_mtu.value, dut.wr_slot.value = qp, mtu, slot
        for beat, at in enumerate(range(0, len(data), self.lanes)):
            dut.wr_en.value, dut.wr_beat.value = 1, beat
            dut.wr_data.value = int.from_bytes(data[at : at + self.lanes], "little")
            await RisingEdge(dut.clk)
        dut.wr_en.value = 0

    def read(self, qp: int, mtu: int, slot: int, data: bytes) -> None:
        self.jobs.append((qp, mtu, slot, len(data)))
        self.requested.append(data)

    async def _request(self) -> None:
        """Hands in jobs as the requester does: at most four unfinished ones."""
        dut = self.dut
        while True:
            give = bool(self.jobs) and self.unfinished < JOBS
            dut.job_valid.value = int(give)
            if give:
                job = self.jobs.popleft()
                dut.job_qp.value, dut.job_mtu.value, dut.job_slot.value, dut.job_len.value = job
                self.unfinished += 1
            await RisingEdge(dut.clk)

    async def _count(self) -> None:
        while True:
            await ReadOnly()
            done = self.dut.rst.value == 0 and self.dut.job_done.value == 1
            await RisingEdge(self.dut.clk)
            self.unfinished -= done
            self.done += done

    async def check(self) -> None:
        for n, data in enumerate(self.requested):
            frame = await with_timeout(self.sink.recv(), 20_000 * CLOCK_NS, "ns")
            assert bytes(frame.tdata) == data, f"packet {n}"
        self.requested.clear()


def some_packet(rng: random.Random, mtu: int) -> bytes:
    size = 128 << mtu
    return rng.randbytes(rng.choice([size, size, 1, size - 1, rng.randrange(1, size + 1)]))


async def fill_and_read(dut, stall: float) -> Harness:
    rng = seed()
    h = await Harness(dut, rng).start(stall)
    for mtu in (5, 1, 3, 2, 4):
        count = RING >> (7 + mtu)
        # every slot of every ring where there are few, some of them where there are many
        near = rng.randrange(128)
        places = [(qp, (near + n) % 128) for qp in range(N_QP) for n in range(min(count, 8))]
        rng.shuffle(places)
        packets = {place: some_packet(rng, mtu) for place in places}
        for (qp, slot), data in packets.items():
            await h.write(qp, mtu, slot, data)
        for qp, slot in [*places, *rng.choices(places, k=8)]:  # some are sent again
            h.read(qp, mtu, (slot + count * rng.randrange(128 // count)) % 128, packets[qp, slot])
        await h.check()
    await ClockCycles(dut.clk, 3)
    assert h.unfinished == 0
    return h


@cocotb.test()
async def every_slot_of_every_ring_keeps_its_own_packet(dut):
    await fill_and_read(dut, stall=0.0)


@cocotb.test()
async def packets_leave_whole_under_random_stalls(dut):
    await fill_and_read(dut, stall=0.4)


@cocotb.test()
async def packets_leave_without_a_bubble_while_other_slots_are_filled(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    packets = [some_packet(rng, 2) for _ in range(24)]
    for slot, data in enumerate(packets):
        await h.write(0, 2, slot, data)
    for slot, data in enumerate(packets):
        h.read(0, 2, slot, data)

    async def fill() -> None:
        for slot in range(8):
            await h.write(1, 5, slot, rng.randbytes(4096))

    filling = cocotb.start_soon(fill())
    # A packet of one beat ends before the next job can be there: the requester has jobs waiting, this bench not yet.
    beats = sum(-(-len(data) // h.lanes) for data in packets)
    valid = gaps = 0
    while valid < beats:
        await RisingEdge(dut.clk)
        taken = dut.m_axis_tvalid.value == 1
        gaps += valid > 0 and not taken
        valid += taken
    await h.check()
    filling.cancel()
    assert gaps == 0


@cocotb.test()
async def a_job_is_done_when_its_last_word_has_been_read_and_not_before(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.write(2, 5, 1, data := rng.randbytes(4096))
    h.sink.pause = True
    h.read(2, 5, 1, data)
    await ClockCycles(dut.clk, 100)
    assert h.done == 0
    h.sink.pause = False
    await h.check()
    assert h.done == 1
