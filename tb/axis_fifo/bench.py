# SPDX-License-Identifier: Apache-2.0
"""A block-RAM FIFO loses nothing, keeps frames apart, stalls when full, and passes one beat a cycle."""

import itertools

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed

BENCH = Bench(top="axis_fifo", configs=[{"DATA_W": 64, "DEPTH": 16}, {"DATA_W": 512, "DEPTH": 16}])


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    return source, sink


@cocotb.test()
async def every_frame_arrives_in_order_under_random_stalls(dut):
    rng = seed()
    source, sink = await start(dut)
    source.set_pause_generator(rng.random() < 0.4 for _ in itertools.count())
    sink.set_pause_generator(rng.random() < 0.4 for _ in itertools.count())
    frames = [rng.randbytes(rng.randrange(1, 600)) for _ in range(60)]
    for frame in frames:
        await source.send(AxiStreamFrame(frame, tuser=rng.getrandbits(1)))
    for frame in frames:
        assert bytes((await sink.recv()).tdata) == frame


@cocotb.test()
async def a_full_fifo_stalls_and_then_drains_without_a_gap(dut):
    rng = seed()
    source, sink = await start(dut)
    sink.pause = True
    data = rng.randbytes(40 * len(dut.s_axis_tkeep))
    await source.send(AxiStreamFrame(data))
    await ClockCycles(dut.clk, 60)
    assert (int(dut.level.value), int(dut.s_axis_tready.value)) == (16, 0)
    sink.pause = False
    while dut.m_axis_tready.value != 1:
        await RisingEdge(dut.clk)
    for _ in range(39):
        await RisingEdge(dut.clk)
        assert dut.m_axis_tvalid.value == 1
    assert bytes((await sink.recv()).tdata) == data
