# SPDX-License-Identifier: Apache-2.0
"""Every unambiguous packet-to-acknowledgement time is in its bin, nothing else is; software can read at any time."""

import math
import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from lib.runner import Bench, seed

BENCH = Bench(
    top="latency_histogram_bench",
    configs=[{"N_QP": 1}, {"N_QP": 4}, {"N_QP": 256}],
    sources=[Path(__file__).parent / "latency_histogram_bench.sv"],
    inside=["latency_histogram.now_q"],
)

RESET, RTS, ERR = 0, 3, 6  # enum ibv_qp_state

PSNS = 1 << 24


def bin_of(cycles: int) -> int:
    """The definition, in floating point: octaves from 32 cycles on, each cut in the middle."""
    octave = math.floor(math.log2(max(cycles, 32)))
    return min(2 * (octave - 5) + (cycles >= 1.5 * 2**octave), 31)


@dataclass
class Expected:
    """What the registers of one queue pair must show."""

    bins: list[int] = field(default_factory=lambda: [0] * 32)
    samples: list[int] = field(default_factory=list)
    discarded: int = 0

    def add(self, cycles: int) -> None:
        self.bins[bin_of(cycles)] += 1
        self.samples.append(cycles)

    def summary(self) -> list[int]:
        s = self.samples
        total = sum(s)
        return [
            *((s[-1], min(s), max(s)) if s else (0, 0, 0)), self.discarded, total & 0xFFFFFFFF, total >> 32, 0, 0
        ]  # fmt: skip


@dataclass
class QueuePair:
    """A go-back-N sender, reduced to its pointers; PSNs without a wrap."""

    base: int
    una: int = 0
    nxt: int = 0
    end: int = 0  # after the highest ever sent
    measured: tuple[int, int] | None = None  # PSN, cycle
    expected: Expected = field(default_factory=Expected)


class Harness:
    def __init__(self, dut, rng):
        self.dut = dut
        self.rng = rng
        self.n_qp = int(os.environ["PARAM_N_QP"])
        self.qps = [QueuePair(rng.choice([rng.randrange(PSNS), PSNS - rng.randrange(8)])) for _ in range(self.n_qp)]

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("clear", "stat_valid", "stat_init", "req_valid"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        for qp in range(self.n_qp):
            await self.operation(qp, state=RESET, stat_init=1)
        await self.tick(33 * self.n_qp + 2)  # the memories are cleared
        return self

    async def tick(self, cycles: int = 1) -> None:
        await ClockCycles(self.dut.clk, cycles)

    @property
    def cycle(self) -> int:
        return int(get_sim_time("ns")) // 10

    async def operation(self, qp: int, state: int = RTS, psn: int = 0, **values: int) -> None:
        q, dut = self.qps[qp], self.dut
        values = {"send": 0, "ack_req": 0, "retransmit": 0} | values
        values |= {"una": (q.base + q.una) % PSNS, "nxt": (q.base + q.nxt) % PSNS, "stat_psn": (q.base + psn) % PSNS}
        for name, value in (values | {"stat_qp": qp, "state": state, "stat_valid": 1}).items():
            getattr(dut, name).value = value
        await self.tick()
        dut.stat_valid.value = 0
        dut.stat_init.value = 0

    # ---- what a requester does; the model follows the rule, not the gateware ------------------------

    async def send(self, qp: int, ack_req: bool) -> None:
        q = self.qps[qp]
        psn, again = q.nxt, q.nxt < q.end
        if ack_req and not again and q.measured is None:
            q.measured = psn, self.cycle
        q.nxt += 1
        q.end = max(q.end, q.nxt)
        await self.operation(qp, psn=psn, send=1, ack_req=int(ack_req), retransmit=int(again))

    async def acknowledge(self, qp: int, upto: int, rewind: bool) -> None:
        """All before `upto` has arrived; a rewind makes it the next to be sent."""
        q = self.qps[qp]
        q.una = upto
        q.nxt = upto if rewind else max(q.nxt, upto)
        if q.measured and q.measured[0] < upto:
            q.expected.add(self.cycle - q.measured[1])
            q.measured = None
        elif q.measured and rewind:
            q.expected.discarded += 1
            q.measured = None
        await self.operation(qp)

    async def fail(self, qp: int, state: int) -> None:
        q = self.qps[qp]
        if q.measured:
            q.expected.discarded += 1
            q.measured = None
        q.una = q.nxt = q.end
        await self.operation(qp, state=state)

    async def random_operation(self, qp: int) -> None:
        q, rng = self.qps[qp], self.rng
        outstanding = q.end - q.una
        choice = rng.random()
        if (choice < 0.5 and outstanding < 12) or not outstanding:
            await self.send(qp, rng.random() < 0.5)
        elif choice < 0.98:
            await self.acknowledge(qp, q.una + rng.randint(0, outstanding), rng.random() < 0.15)
        else:
            await self.fail(qp, rng.choice([RESET, ERR]))

    # ---- software ---------------------------------------------------------------------------------------

    async def access(self, address: int, write: bool = False, patience: int = 400) -> int:
        dut = self.dut
        dut.req_valid.value, dut.req_is_wr.value, dut.req_addr.value = 1, int(write), address
        await RisingEdge(dut.clk)
        dut.req_valid.value = 0
        for _ in range(patience):
            await RisingEdge(dut.clk)
            if dut.rd_ack.value == 1 or dut.wr_ack.value == 1:
                assert dut.wr_ack.value == int(write)
                return int(dut.rd_data.value)
        raise AssertionError(f"no answer at {address:#x} within {patience} cycles")

    async def check(self, qp: int) -> None:
        expected = self.qps[qp].expected
        assert [await self.access(0x80 * qp + 4 * i, patience=9000) for i in range(32)] == expected.bins
        assert [await self.access(0x8000 + 0x20 * qp + 4 * i) for i in range(8)] == expected.summary()


def some(h: Harness) -> list[int]:
    """A few queue pairs to look at, the first and the last among them."""
    return sorted({0, h.n_qp - 1, *(h.rng.randrange(h.n_qp) for _ in range(4))})


async def traffic(h: Harness, operations: int, busy: list[int]) -> None:
    """Operations as fast as the requester makes them: each cycle one, a queue pair every second at most."""
    recent = deque(maxlen=1)
    await h.tick()
    for _ in range(operations):
        free = [qp for qp in busy if qp not in recent]
        if not free or h.rng.random() < 0.1:
            recent.append(None)
            await h.tick(h.rng.choice([1, 1, 2, 30, 90]))
            continue
        recent.append(h.rng.choice(free))
        await h.random_operation(recent[-1])


@cocotb.test()
async def each_measurement_is_in_its_bin_and_rewinds_discard(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    busy = some(h)
    await traffic(h, 4000, busy)
    await h.tick(10)
    for qp in busy:
        assert len(h.qps[qp].expected.samples) > 20 and h.qps[qp].expected.discarded > 2
        await h.check(qp)
    idle = [qp for qp in range(h.n_qp) if qp not in busy]
    for qp in idle[:2]:
        await h.check(qp)


@cocotb.test()
async def bins_begin_where_they_are_specified(dut):
    h = await Harness(dut, seed()).start()
    edges = [n for k in range(5, 13) for n in (2**k, 3 * 2 ** (k - 1))]
    for cycles in sorted({2, *edges, *(e - 1 for e in edges)}):
        await h.send(0, ack_req=True)
        await h.tick(cycles - 1)
        await h.acknowledge(0, h.qps[0].end, rewind=False)
        await h.tick(2)
    assert h.qps[0].expected.bins[:16] == [4, *[2] * 14, 1]
    await h.tick(10)
    await h.check(0)


@cocotb.test()
async def the_longest_times_have_the_last_bins(dut):
    """2^20 cycles and more: the cycle counter is moved, not waited for."""
    h = await Harness(dut, seed()).start()
    now = dut.u_dut.now_q
    expected = h.qps[0].expected
    for cycles in (2**20 - 1, 2**20, 3 * 2**19 - 1, 3 * 2**19, 2**21, 2**31, 2**32 - 1):
        await h.send(0, ack_req=True)
        await h.tick(1)
        now.value = (int(now.value) + cycles - 3) % 2**32
        await h.tick(2)
        h.qps[0].measured = (h.qps[0].measured[0], h.cycle - cycles)
        before = await sample_seen(h)
        assert before == cycles, f"the bench moved the counter wrongly: {before}, not {cycles}"
    assert expected.bins[29:] == [1, 2, 4]
    await h.check(0)


async def sample_seen(h: Harness) -> int:
    """Acknowledges everything and returns the time that the gateware took."""
    await h.acknowledge(0, h.qps[0].end, rewind=False)
    await h.tick(10)
    return await h.access(0x8000)


@cocotb.test()
async def software_reads_live_and_clears_one_queue_pair_or_all(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    busy = some(h)
    await traffic(h, 600, busy)
    working = cocotb.start_soon(traffic(h, 3000, busy))
    seen = 0
    while not working.done():  # live, while measurements come in
        count = sum([await h.access(4 * i) for i in range(16)])
        assert count >= seen
        seen = count
    await h.tick(10)
    for victim, address in ((busy[0], 0x80 * busy[0] + 0x44), (busy[-1], 0x8000 + 0x20 * busy[-1])):
        await h.access(address, write=True)
        h.qps[victim].expected = Expected()
        for qp in busy:
            await h.check(qp)
    await traffic(h, 500, busy)
    await h.tick(5)
    dut.clear.value = 1
    await h.tick()
    dut.clear.value = 0
    for qp in h.qps:
        qp.expected = Expected()
    for qp in busy:
        await h.check(qp)
    await traffic(h, 300, busy)
    await h.tick(5)
    for qp in busy:
        await h.check(qp)


@cocotb.test()
async def a_measurement_counts_once_before_or_after_a_clear_at_any_moment(dut):
    """A clear between reading and writing a count must not be undone by the write."""
    h = await Harness(dut, seed()).start()
    for delay in range(45):
        await h.send(0, ack_req=True)
        clearing = cocotb.start_soon(h.access(0, write=True))
        await h.tick(1 + delay)
        await h.acknowledge(0, h.qps[0].end, rewind=False)
        await clearing
        await h.tick(5)
        counts = [await h.access(4 * i) for i in range(2)]
        assert sum(counts) <= 1
        await h.access(0, write=True)


@cocotb.test()
async def rows_that_do_not_exist_read_nothing_and_answer(dut):
    h = await Harness(dut, seed()).start()
    if h.n_qp == 256:
        return
    await h.send(0, ack_req=True)
    await h.tick()
    await h.acknowledge(0, 1, rewind=False)
    await h.tick(5)
    for address in (0x80 * h.n_qp, 0x8000 + 0x20 * h.n_qp):
        await h.access(address, write=True)
        assert await h.access(address) == 0
    await h.check(0)
