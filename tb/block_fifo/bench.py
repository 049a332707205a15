# SPDX-License-Identifier: Apache-2.0
"""A FIFO in block RAM loses nothing, keeps the order, and passes a word every cycle."""

from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib.runner import Bench, seed

DEPTH = 4
BENCH = Bench(top="block_fifo", configs=[{"W": 32, "DEPTH": DEPTH}])


@cocotb.test()
async def it_agrees_with_a_queue_whose_words_show_after_two_cycles(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value, dut.s_valid.value, dut.m_ready.value = 1, 0, 0
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    stored: deque[int] = deque()  # in RAM
    shown: int | None = None  # at the output
    for cycle in range(2000):
        eager = cycle // 500 % 2  # two phases each: mostly filling, mostly draining
        push, pop, word = rng.random() < 0.3 + 0.5 * eager, rng.random() < 0.8 - 0.5 * eager, rng.getrandbits(32)
        if cycle >= 1500:  # a word every cycle
            push = pop = True
        dut.s_valid.value, dut.s_data.value, dut.m_ready.value = push, word, pop
        await ReadOnly()
        room = len(stored) < DEPTH
        assert int(dut.level.value) == len(stored)
        assert int(dut.s_ready.value) == room
        assert int(dut.m_valid.value) == (shown is not None)
        if shown is not None:
            assert int(dut.m_data.value) == shown
        if pop or shown is None:
            shown = stored.popleft() if stored else None
        if push and room:
            stored.append(word)
        await RisingEdge(dut.clk)
