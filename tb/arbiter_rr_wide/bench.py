# SPDX-License-Identifier: Apache-2.0
"""Round robin in two cycles: the next requester above the last one served, however the requests change meanwhile."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib.runner import Bench, seed

BENCH = Bench(top="arbiter_rr_wide", configs=[{"N": 40}, {"N": 256}])


@cocotb.test()
async def the_turn_goes_to_the_next_requester_above_the_last_served(dut):
    rng = seed()
    n = int(os.environ["PARAM_N"])
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value, dut.req.value, dut.start.value = 1, 0, 0
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    last, requested = n - 1, None
    for _ in range(1500):
        sparse = (1 << rng.randrange(n)) | (1 << rng.randrange(n)) | (1 << rng.randrange(n))
        req = rng.choice([0, sparse, sparse, rng.getrandbits(n) & rng.getrandbits(n), (1 << n) - 1])
        start = requested is None and rng.random() < 0.8
        dut.req.value, dut.start.value = req, start
        await ReadOnly()
        assert int(dut.started.value) == (requested is not None)
        assert int(dut.valid.value) == bool(requested)
        if requested:
            last = next(i for k in range(1, n + 1) if requested >> (i := (last + k) % n) & 1)
            assert int(dut.index.value) == last
        requested = req if start else None
        await RisingEdge(dut.clk)
