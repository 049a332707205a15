# SPDX-License-Identifier: Apache-2.0
"""Round robin: the next requester above the last one served, and no requester waits longer than one round."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib.runner import Bench, seed

BENCH = Bench(top="arbiter_rr", configs=[{"N": 1}, {"N": 4}, {"N": 256}])


@cocotb.test()
async def the_turn_goes_to_the_next_requester_above_the_last_served(dut):
    rng = seed()
    n = int(os.environ["PARAM_N"])
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value, dut.req.value, dut.take.value = 1, 0, 0
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    last = n - 1
    for _ in range(600):
        req = rng.getrandbits(n) & rng.getrandbits(n) if rng.random() < 0.9 else 0
        take = rng.random() < 0.7
        dut.req.value, dut.take.value = req, take
        await ReadOnly()
        assert int(dut.valid.value) == bool(req)
        if req:
            expected = next(i for k in range(1, n + 1) if req >> (i := (last + k) % n) & 1)
            assert int(dut.index.value) == expected
            if take:
                last = expected
        await RisingEdge(dut.clk)
