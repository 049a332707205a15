# SPDX-License-Identifier: Apache-2.0
"""Slices contain the beats accepted between two marks, none lost, and have the number and time of their mark."""

import itertools
import os
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSource
from lib.runner import Bench, seed

BENCH = Bench(top="stream_slicer", configs=[{"DATA_W": 64}, {"DATA_W": 512}])
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
MARK, PERIOD, SIZE = range(3)


@dataclass
class Slice:
    number: int
    time: int
    data: bytearray = field(default_factory=bytearray)


class Harness:
    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.slices: list[Slice] = []  # the last is the one at hand
        self.left: list[tuple[int, int, bytes]] = []  # number, time and data of those that have left
        self.lost = self.empty = self.fragments = 0
        self.stall = 0.0

    async def start(self, mode: int, period: int = 0, limit: int = 0) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("run", "mark", "tai_ns"):
            getattr(dut, name).value = 0
        dut.cfg.value = structs.pack("slicer_cfg_t", mode=mode, period=period, limit=limit, trigger_type=9)
        dut.rst.value = 1
        self.mode, self.limit = mode, limit
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        cocotb.start_soon(self.time())
        cocotb.start_soon(self.watch())
        return self

    async def time(self) -> None:
        for ns in itertools.count(1000, 6):
            self.dut.tai_ns.value = ns
            self.dut.m_axis_tready.value = int(self.rng.random() >= self.stall)
            await FallingEdge(self.dut.clk)

    async def watch(self) -> None:
        """The inputs: beats, then the mark of the same cycle; the period counts from the start of the run."""
        dut = self.dut
        left, running, lost, before = 0, False, 0, 0
        leaving = bytearray()  # of the fragment that is on its way out
        while True:
            await FallingEdge(dut.clk)
            await ReadOnly()
            if dut.m_axis_tvalid.value and dut.m_axis_tready.value:
                user = structs.unpack("fragment_t", int(dut.m_axis_tuser.value))
                assert user["trigger_type"] == 9 and int(dut.m_axis_tkeep.value) in (0, (1 << LANES) - 1)
                if dut.m_axis_tkeep.value:
                    leaving += int(dut.m_axis_tdata.value).to_bytes(LANES, "little")
                if dut.m_axis_tlast.value:
                    self.left.append((user["event_number"], user["timestamp_ns"], bytes(leaving)))
                    leaving.clear()
            now, run = int(dut.tai_ns.value), int(dut.run.value)
            if run and not running:
                self.slices.append(Slice(0, before))
                left, lost = self.period(), 0
            before = now
            running = bool(run)
            self.lost += int(dut.stat_lost.value)
            self.empty += int(dut.stat_empty.value)
            self.fragments += int(dut.stat_fragment.value)
            if not run:
                continue
            taken = int(dut.s_axis_tvalid.value) and int(dut.s_axis_tready.value)
            if taken:
                self.slices[-1].data += int(dut.s_axis_tdata.value).to_bytes(LANES, "little")
            marks = self.mode == MARK and int(dut.mark.value)
            if self.mode == PERIOD:
                left -= 1
                marks = left == 0
                left = left or self.period()
            if marks:
                if dut.room.value == 1:
                    self.slices.append(Slice(self.slices[-1].number + 1 + lost, now))
                    lost = 0
                else:
                    lost += 1

    def period(self) -> int:
        return structs.unpack("slicer_cfg_t", int(self.dut.cfg.value))["period"]


async def stream(h: Harness, beats: int) -> bytes:
    data = h.rng.randbytes(LANES * beats)
    await h.source.send(data)
    await h.source.wait()
    return data


async def marks(h: Harness, gaps) -> None:
    for gap in gaps:
        await ClockCycles(h.dut.clk, gap - 1)
        h.dut.mark.value = 1
        await RisingEdge(h.dut.clk)
        h.dut.mark.value = 0


async def ends(h: Harness) -> None:
    """Stops, and compares everything that has left with what went in."""
    h.dut.run.value = 0
    h.stall = 0.0
    await ClockCycles(h.dut.clk, 80)
    expected = h.slices if h.slices[-1].data else h.slices[:-1]
    for (number, time, data), fragment in zip(h.left, expected, strict=True):
        assert (number, time, data) == (fragment.number, fragment.time, bytes(fragment.data)), (
            f"slice {fragment.number}"
        )
    assert h.fragments == len(expected) and h.empty == sum(not s.data for s in expected)


@cocotb.test()
async def every_beat_is_in_the_slice_of_its_mark_under_stalls(dut):
    h = await Harness(dut, seed()).start(MARK)
    rng = h.rng
    for _ in range(2):
        h.slices.clear()
        h.left.clear()
        h.stall = 0.4
        h.fragments = h.empty = 0
        h.source.set_pause_generator(rng.random() < 0.4 for _ in itertools.count())
        dut.run.value = 1
        marking = cocotb.start_soon(marks(h, [rng.choice([1, 2, 3, 20, 20, 60, 60]) for _ in range(60)]))
        await stream(h, 500)
        await marking
        await ends(h)
    assert h.lost == 0


@cocotb.test()
async def beats_and_cuts_pass_without_a_bubble(dut):
    h = await Harness(dut, seed()).start(PERIOD, period=20)
    dut.run.value = 1
    sending = cocotb.start_soon(stream(h, 400))
    await RisingEdge(dut.s_axis_tvalid)
    await ClockCycles(dut.clk, 2)
    for _ in range(390):
        await FallingEdge(dut.clk)
        assert dut.s_axis_tready.value == 1
    await sending
    await ends(h)
    assert all(len(s.data) == 20 * LANES for s in h.slices[1:18])


@cocotb.test()
async def slices_by_size_have_that_size_and_numbers_without_a_gap(dut):
    h = await Harness(dut, seed()).start(SIZE, limit=6 * LANES)
    h.stall = 0.3
    dut.run.value = 1
    data = await stream(h, 6 * 10 + 4)
    await ClockCycles(dut.clk, 100)
    dut.run.value = 0
    await ClockCycles(dut.clk, 20)
    found = h.left
    assert [number for number, _, _ in found] == list(range(11))
    assert [len(piece) // LANES for _, _, piece in found] == [6] * 10 + [4]
    assert b"".join(piece for _, _, piece in found) == data
    times = [time for _, time, _ in found]
    assert times == sorted(set(times))


@cocotb.test()
async def marks_without_room_are_counted_and_numbers_stay_right(dut):
    h = await Harness(dut, seed()).start(MARK)
    h.stall = 1.0
    dut.run.value = 1
    await marks(h, [2] * 30)
    await ClockCycles(dut.clk, 3)
    assert h.lost == 30 - 16 - 1 or h.lost == 30 - 16
    h.stall = 0.0
    await ClockCycles(dut.clk, 40)
    sending = cocotb.start_soon(stream(h, 30))
    await marks(h, [12, 12, 12])
    await sending
    await ends(h)
    assert h.slices[-1].number == 33
