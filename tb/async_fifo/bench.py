# SPDX-License-Identifier: Apache-2.0
"""Words cross from one clock to another whole and in order, at every ratio and phase of the two.

A Gray pointer changes in one bit per cycle: a first synchroniser flip-flop that resolves late sees the pointer of the
previous cycle. Clocks with jitter, whose edges overtake each other, produce both cases.
"""

from collections import deque

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge, Timer
from lib.runner import Bench, seed

DEPTH = 8
BENCH = Bench(top="async_fifo", configs=[{"W": 32, "DEPTH": DEPTH}])


async def clock(signal, rng, period_ps: int, phase_ps: int, jitter_ps: int) -> None:
    """Edges wander by up to the jitter, and never pass one another."""
    await Timer(max(phase_ps, 1), "ps")
    while True:
        for level in (1, 0):
            signal.value = level
            await Timer(max(period_ps // 2 + rng.randint(-jitter_ps, jitter_ps), 1), "ps")


class Crossing:
    """Pushes numbers on one side, and compares what comes on the other."""

    def __init__(self, dut, rng, push: float, pop: float) -> None:
        self.dut, self.rng, self.push_p, self.pop_p = dut, rng, push, pop
        self.inside: deque[int] = deque()
        self.pushed = self.popped = self.most = 0

    async def write(self, words: int) -> None:
        dut = self.dut
        while self.pushed < words:
            dut.s_valid.value = self.rng.random() < self.push_p
            dut.s_data.value = self.pushed
            await ReadOnly()
            taken = dut.s_valid.value and dut.s_ready.value
            await RisingEdge(dut.s_clk)
            if taken:
                self.inside.append(self.pushed)
                self.pushed += 1
                self.most = max(self.most, len(self.inside))
            await FallingEdge(dut.s_clk)
        dut.s_valid.value = 0

    async def read(self, words: int) -> None:
        dut = self.dut
        while self.popped < words:
            dut.m_ready.value = self.rng.random() < self.pop_p
            await ReadOnly()
            taken, word = dut.m_valid.value and dut.m_ready.value, dut.m_data.value
            await RisingEdge(dut.m_clk)
            if taken:
                assert self.inside, "a word that was never pushed"
                expected = self.inside.popleft()
                assert int(word) == expected, f"word {int(word)} where {expected} was due"
                self.popped += 1
            await FallingEdge(dut.m_clk)
        dut.m_ready.value = 0


async def cross(dut, rng, periods: tuple[int, int], phase_ps: int, words: int, push: float, pop: float) -> Crossing:
    clocks = [
        cocotb.start_soon(clock(signal, rng, period, phase, period // 20))
        for signal, period, phase in zip((dut.s_clk, dut.m_clk), periods, (0, phase_ps), strict=True)
    ]
    dut.s_rst.value = dut.m_rst.value = 1
    dut.s_valid.value = dut.m_ready.value = 0
    for edge in (dut.s_clk, dut.m_clk) * 4:
        await FallingEdge(edge)
    dut.s_rst.value = dut.m_rst.value = 0
    for edge in (dut.s_clk, dut.m_clk) * 4:
        await FallingEdge(edge)
    crossing = Crossing(dut, rng, push, pop)
    await FallingEdge(dut.s_clk)
    writer = cocotb.start_soon(crossing.write(words))
    await FallingEdge(dut.m_clk)
    await crossing.read(words)
    await writer
    assert dut.m_valid.value == 0 and not crossing.inside
    for task in clocks:
        task.cancel()
    await Timer(1, "ps")
    return crossing


@cocotb.test()
@cocotb.parametrize(periods=[(1000, 1000), (1000, 1010), (1010, 1000), (640, 2560), (2560, 640), (1000, 3100)])
async def words_cross_in_order_at_every_phase(dut, periods):
    rng = seed()
    for step in range(8):
        await cross(dut, rng, periods, periods[1] * step // 8 + rng.randint(0, 9), 60, 0.7, 0.7)


@cocotb.test()
async def random_ratios_and_phases_lose_nothing(dut):
    rng = seed()
    for _ in range(60):
        periods = rng.randint(500, 5000), rng.randint(500, 5000)
        await cross(
            dut, rng, periods, rng.randint(0, 5000), 60, rng.choice([0.2, 0.6, 1.0]), rng.choice([0.2, 0.6, 1.0])
        )


@cocotb.test()
async def it_fills_to_its_depth_and_not_over_it(dut):
    rng = seed()
    crossing = await cross(dut, rng, (600, 4000), 0, 200, 1.0, 0.3)
    assert crossing.most == DEPTH + 1  # and the word that waits at the output


@cocotb.test()
async def a_word_a_cycle_passes_between_equal_clocks(dut):
    rng = seed()
    crossing = cross(dut, rng, (1000, 1000), 300, 400, 1.0, 1.0)
    begun = cocotb.utils.get_sim_time("ps")
    await crossing
    cycles = (cocotb.utils.get_sim_time("ps") - begun) / 1000
    assert cycles < 400 * 1.05 + 60, f"{cycles} cycles for 400 words"
