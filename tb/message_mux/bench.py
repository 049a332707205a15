# SPDX-License-Identifier: Apache-2.0
"""The messages of several sides share the output, whole and in turn, each with its own payload."""

import itertools
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed

BENCH = Bench(
    top="message_mux_bench",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parent / "message_mux_bench.sv"],
)
SIDES = 3


async def start(dut, rng, stall: float):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    names = [f"s_axis_{side}_{kind}" for side, kind in itertools.product("abc", ("desc", "data"))]
    sources = [AxiStreamSource(AxiStreamBus.from_prefix(dut, name), dut.clk, dut.rst) for name in names]
    sinks = [AxiStreamSink(AxiStreamBus.from_prefix(dut, f"m_axis_{n}"), dut.clk, dut.rst) for n in ("desc", "data")]
    for stream in (*sources, *sinks) if stall else ():
        stream.set_pause_generator(rng.random() < stall for _ in itertools.count())
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    return sources, sinks


def message(rng, side: int, number: int, size: int) -> tuple[bytes, bytes]:
    descriptor = side | number << 2 | size << 16 | rng.getrandbits(100) << 48
    return descriptor.to_bytes(22, "little"), rng.randbytes(size)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3])
async def each_message_keeps_its_payload_and_each_side_its_order(dut, stall):
    rng = seed()
    sources, (desc, data) = await start(dut, rng, stall)
    sent = ([], [], [])
    for side, number in itertools.product(range(SIDES), range(60)):
        d, payload = message(rng, side, number, rng.choice([0, 1, 8, 64, 65, 300]))
        sources[2 * side].send_nowait(AxiStreamFrame(d))
        if payload:  # a message of length 0 has no beats: it completes with an error
            sources[2 * side + 1].send_nowait(AxiStreamFrame(payload))
        sent[side].append((d, payload))
    for _ in range(60 * SIDES):
        d = bytes((await desc.recv()).tdata)
        expected, payload = sent[d[0] & 3].pop(0)
        assert d == expected
        if payload:
            assert bytes((await data.recv()).tdata) == payload
    await ClockCycles(dut.clk, 20)
    assert desc.empty() and data.empty()


@cocotb.test()
async def every_side_gets_its_turn_and_no_cycle_is_lost(dut):
    rng = seed()
    sources, (desc, _) = await start(dut, rng, 0.0)
    lanes = len(dut.m_axis_data_tkeep)
    for side, number in itertools.product(range(SIDES), range(20)):
        d, payload = message(rng, side, number, 4 * lanes)
        sources[2 * side].send_nowait(AxiStreamFrame(d))
        sources[2 * side + 1].send_nowait(AxiStreamFrame(payload))
    await RisingEdge(dut.m_axis_data_tvalid)
    for _ in range(20 * SIDES * 4):
        await RisingEdge(dut.clk)
        assert dut.m_axis_data_tvalid.value == 1
    await ClockCycles(dut.clk, 5)
    order = []
    while not desc.empty():
        order.append((await desc.recv()).tdata[0] & 3)
    assert order == [0, 1, 2] * 20


@cocotb.test()
async def a_descriptor_shown_stays_until_it_is_taken(dut):
    rng = seed()
    sources, (desc, _) = await start(dut, rng, 0.0)
    desc.pause = True
    for side in (1, 0, 2):  # the second side's waits already when the others' come
        sources[2 * side].send_nowait(AxiStreamFrame(message(rng, side, 0, 0)[0]))
        await ClockCycles(dut.clk, 5)
    shown = int(dut.m_axis_desc_tdata.value)
    assert dut.m_axis_desc_tvalid.value == 1 and shown & 3 == 1
    desc.pause = False
    assert [(await desc.recv()).tdata[0] & 3 for _ in range(3)] == [1, 2, 0]
