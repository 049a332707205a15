# SPDX-License-Identifier: Apache-2.0
"""A shallow FIFO shows a word the cycle after its push, loses nothing, and reports its level."""

from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib.runner import Bench, seed

BENCH = Bench(top="sync_fifo", configs=[{"W": 32, "DEPTH": 4}])


@cocotb.test()
async def it_agrees_with_a_queue_in_every_cycle(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value, dut.s_valid.value, dut.m_ready.value = 1, 0, 0
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    model: deque[int] = deque()
    for cycle in range(2000):
        eager = cycle // 500 % 2  # two phases each: mostly filling, mostly draining
        push, pop, word = rng.random() < 0.3 + 0.5 * eager, rng.random() < 0.8 - 0.5 * eager, rng.getrandbits(32)
        dut.s_valid.value, dut.s_data.value, dut.m_ready.value = push, word, pop
        await ReadOnly()
        assert int(dut.level.value) == len(model)
        assert int(dut.s_ready.value) == (len(model) < 4)
        assert int(dut.m_valid.value) == bool(model)
        if model:
            assert int(dut.m_data.value) == model[0]
        room = len(model) < 4
        if pop and model:
            model.popleft()
        if push and room:
            model.append(word)
        await RisingEdge(dut.clk)
