"""A register slice loses nothing, keeps the order, and passes one beat a cycle."""

import itertools

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed

BENCH = Bench(top="axis_register", configs=[{"W": 64}, {"W": 512}])


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    return source, sink


@cocotb.test()
async def every_beat_arrives_in_order_under_random_stalls(dut):
    rng = seed()
    source, sink = await start(dut)
    source.set_pause_generator(rng.random() < 0.4 for _ in itertools.count())
    sink.set_pause_generator(rng.random() < 0.4 for _ in itertools.count())
    width = len(dut.s_axis_tdata) // 8
    beats = [rng.randbytes(width) for _ in range(300)]
    for beat in beats:
        await source.send(AxiStreamFrame(beat))
    received = b""
    while len(received) < width * len(beats):
        received += bytes((await sink.recv()).tdata)
    assert received == b"".join(beats)
