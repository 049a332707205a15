# SPDX-License-Identifier: Apache-2.0
"""Samples on detector clocks become messages with their descriptors, as the front end's user ports take them."""

import itertools
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.fragment import CUT, MISSING, Fragment, Part
from lib.runner import Bench, seed

EVENT_BYTES = 2048
BENCH = Bench(
    top="event_path_bench",
    configs=[{"DATA_W": 64, "N_IN": 4}, {"DATA_W": 512, "N_IN": 3}, {"DATA_W": 64, "N_IN": 1}],
    sources=[Path(__file__).parent / "event_path_bench.sv"],
)
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
INPUTS = int(os.environ.get("PARAM_N_IN", "4"))
SOURCE, PREFIX, QP = 5, 0xAB, 2
TIMEOUT, LIMIT = 2000, 1024
BITS = {"tdata": 8 * LANES, "tkeep": LANES, "tuser": 144, "tlast": 1, "tvalid": 1}


class Port:
    """What all inputs drive: each its own bits of wide ports."""

    def __init__(self, dut) -> None:
        self.dut, self.values = dut, dict.fromkeys(BITS, 0)

    def put(self, number: int, **values: int) -> None:
        for name, value in values.items():
            low = BITS[name] * number
            mask = ((1 << BITS[name]) - 1) << low
            self.values[name] = self.values[name] & ~mask | value << low
            getattr(self.dut, f"s_axis_{name}").value = self.values[name]


async def feed(dut, rng, port: Port, number: int, fragments: list[tuple[int, bytes]], stall: float) -> None:
    """One detector, on its own clock."""
    clock = (dut.even_clk, dut.odd_clk)[number % 2]
    await FallingEdge(clock)
    for event, data in fragments:
        user = structs.pack("fragment_t", event_number=event, timestamp_ns=event * 100, trigger_type=1)
        pieces = [data[at : at + LANES] for at in range(0, len(data), LANES)] or [b""]
        for at, piece in enumerate(pieces):
            while rng.random() < stall:
                await FallingEdge(clock)
            word, keep = int.from_bytes(piece, "little"), (1 << len(piece)) - 1
            port.put(
                number, tdata=word, tkeep=keep, tuser=0 if at else user, tlast=int(at == len(pieces) - 1), tvalid=1
            )
            while True:
                await ReadOnly()
                taken = int(dut.s_axis_tready.value) >> number & 1
                await FallingEdge(clock)
                if taken:
                    break
            port.put(number, tvalid=0)


async def start(dut, rng, periods: tuple[int, int], stall: float):
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    for clock, period in zip((dut.even_clk, dut.odd_clk), periods, strict=True):
        cocotb.start_soon(Clock(clock, period, "ps").start())
    dut.rst.value = dut.in_rst.value = 1
    dut.s_axis_tvalid.value = 0
    merger = {"enable": (1 << INPUTS) - 1, "timeout": TIMEOUT, "limit": LIMIT}
    dut.cfg.value = structs.pack(
        "event_cfg_t",
        source_id=SOURCE,
        tag_prefix=PREFIX,
        qp=QP,
        **{f"merger__{name}": value for name, value in merger.items()},
    )
    sinks = [AxiStreamSink(AxiStreamBus.from_prefix(dut, f"m_axis_{n}"), dut.clk, dut.rst) for n in ("desc", "data")]
    for sink in sinks if stall else ():
        sink.set_pause_generator(rng.random() < stall for _ in itertools.count())
    await ClockCycles(dut.clk, 20)
    await FallingEdge(dut.clk)
    dut.rst.value = dut.in_rst.value = 0
    await ClockCycles(dut.clk, 20)
    return sinks


async def check(sinks, expected: list[Fragment]) -> None:
    desc, data = sinks
    for event in expected:
        message = event.message(SOURCE)
        found = structs.unpack("desc_t", int.from_bytes(bytes((await desc.recv()).tdata), "little"))
        assert (found["length"], found["imm"], found["raddr"]) == (len(message), event.event, event.event)
        assert (found["qp"], found["in_ring"], found["with_imm"], found["by_event"]) == (QP, 1, 1, 0)
        assert found["tag"] == PREFIX << 24 | event.event
        assert bytes((await data.recv()).tdata) == message, f"event {event.event}"


def event_of(number: int, parts: dict[int, Part]) -> Fragment:
    whole = [parts.get(i, Part(i, b"", MISSING)) for i in range(INPUTS)]
    return Fragment(number, number * 100, 1, parts=whole)


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(periods=[(6400, 6400), (6410, 4000), (3000, 20000)], stall=[0.0, 0.2])
async def samples_on_other_clocks_become_messages_with_descriptors(dut, periods, stall):
    rng = seed()
    sinks = await start(dut, rng, periods, stall)
    sizes = [0, 1, 8, 63, 64, 65, 300]
    events = [{i: Part(i, rng.randbytes(rng.choice(sizes))) for i in range(INPUTS)} for _ in range(30)]
    port = Port(dut)
    for i in range(INPUTS):
        fragments = [(number, parts[i].data) for number, parts in enumerate(events)]
        cocotb.start_soon(feed(dut, rng, port, i, fragments, stall))
    await check(sinks, [event_of(number, parts) for number, parts in enumerate(events)])


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def an_event_that_the_store_cannot_hold_is_cut_and_the_next_one_is_whole(dut):
    """A message that is longer than the store would wait for its own end for good."""
    rng = seed()
    sinks = await start(dut, rng, (6400, 6400), 0.0)
    long = [rng.randbytes(LIMIT + 100) for _ in range(INPUTS)]
    port = Port(dut)
    for i in range(INPUTS):
        cocotb.start_soon(feed(dut, rng, port, i, [(1, long[i]), (2, b"whole")], 0.0))
    parts, begin = {}, 0
    for i in range(INPUTS):
        room = max(min(LIMIT, EVENT_BYTES - begin), LANES)
        parts[i] = Part(i, long[i][:room], CUT)
        begin += room
    await check(sinks, [event_of(1, parts), event_of(2, {i: Part(i, b"whole") for i in range(INPUTS)})])
