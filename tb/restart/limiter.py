# SPDX-License-Identifier: Apache-2.0
"""The limiter by itself, between an engine and a line that go on while it is reset."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import seed


@cocotb.test(timeout_time=2, timeout_unit="ms", skip="PARAM_DATA_W" not in os.environ)
async def resets_of_the_limiter_change_no_byte_that_passes(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 4, "ns").start())
    dut.cnp_valid.value = dut.paused.value = 0
    dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = dut.s_axil_arvalid.value = 0
    dut.rst.value = 1
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    frames = [rng.randbytes(rng.randrange(64, 4000)) for _ in range(60)]
    for frame in frames:
        await source.send(AxiStreamFrame(frame))
    resets = 0
    while not source.idle():
        await ClockCycles(dut.clk, rng.randrange(600))
        dut.rst.value = 1
        await ClockCycles(dut.clk, rng.randrange(1, 6))
        dut.rst.value = 0
        resets += 1
    assert [bytes((await sink.recv()).tdata) for _ in frames] == frames
    assert resets > 10
