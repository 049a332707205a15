# SPDX-License-Identifier: Apache-2.0
"""Good frames return unchanged, in order and without bubbles; bad frames, and frames without room, do not."""

import itertools

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.board import FLUSH_ERR, SUCCESS
from lib.frames_tx import stalls
from lib.runner import Bench, seed

WORDS = 64
BENCH = Bench(top="line_echo", configs=[{"WORDS": WORDS}])


class Echo:
    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for model in (self.source, self.sink):
            model.log.setLevel("WARNING")
        self.holes = 0
        self.lamps: list[int] = []  # status of each completion for them

    async def watch(self) -> None:
        inside = False
        while True:
            await FallingEdge(self.dut.clk)
            if int(self.dut.m_axis_cpl_tvalid.value):
                self.lamps.append(structs.unpack("cpl_t", int(self.dut.m_axis_cpl_tdata.value))["status"])
            if int(self.dut.m_axis_tready.value):
                valid = int(self.dut.m_axis_tvalid.value)
                self.holes += inside and not valid
                inside = not int(self.dut.m_axis_tlast.value) if valid else inside

    async def receive(self, frame: bytes, bad: bool = False) -> None:
        await self.source.send(AxiStreamFrame(frame, tuser=[0] * (len(frame) - 1) + [int(bad)]))

    async def returned(self) -> list[bytes]:
        await self.source.wait()
        await ClockCycles(self.dut.clk, 4 * WORDS)
        return [bytes(self.sink.recv_nowait().tdata) for _ in range(self.sink.count())]


async def start(dut) -> Echo:
    cocotb.start_soon(Clock(dut.clk, 16, "ns").start())
    dut.damaged.value = 0
    dut.rst.value = 1
    echo = Echo(dut)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 1)
    cocotb.start_soon(echo.watch())
    return echo


@cocotb.test()
async def good_frames_come_back_and_bad_ones_do_not(dut):
    rng = seed()
    echo = await start(dut)
    echo.source.set_pause_generator(itertools.cycle([True, True, True, False]))  # the line is slower than the core
    echo.sink.set_pause_generator(stalls(rng, 0.2))
    frames = [(rng.randbytes(rng.randint(1, 200)), rng.random() < 0.3) for _ in range(200)]
    for frame, bad in frames:
        await echo.receive(frame, bad)
    good = [frame for frame, bad in frames if not bad]
    assert await echo.returned() == good
    assert echo.lamps == [SUCCESS] * len(good) and echo.holes == 0


@cocotb.test()
async def a_frame_without_room_is_forgotten_whole_and_the_next_comes_back(dut):
    rng = seed()
    echo = await start(dut)
    echo.sink.pause = True
    kept = [rng.randbytes(200) for _ in range(2)]
    lost = [rng.randbytes(8 * WORDS), rng.randbytes(8 * WORDS)]
    for frame in (kept[0], lost[0], kept[1], lost[1]):
        await echo.receive(frame)
    await echo.source.wait()
    echo.sink.pause = False
    assert await echo.returned() == kept
    after = rng.randbytes(100)
    await echo.receive(after)
    assert await echo.returned() == [after] and echo.holes == 0


@cocotb.test()
async def damaged_frames_light_the_lamp_of_failures_even_while_a_good_one_leaves(dut):
    echo = await start(dut)
    dut.damaged.value = 1
    await ClockCycles(dut.clk, 1)
    dut.damaged.value = 0
    await ClockCycles(dut.clk, 4)
    assert echo.lamps == [FLUSH_ERR]
    dut.damaged.value = 1
    await echo.receive(bytes(8))
    assert await echo.returned() == [bytes(8)]
    assert set(echo.lamps) == {FLUSH_ERR}
