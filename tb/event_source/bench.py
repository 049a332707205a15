# SPDX-License-Identifier: Apache-2.0
"""Continuous streams become events slice by slice, the hook changes them as defined, triggers alternate with them."""

import itertools
import os
import struct
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, Timer
from cocotbext.axi import AxiStreamBus, AxiStreamSink
from lib import structs
from lib.detector import Detector, Raw
from lib.fragment import MISSING, STOPPED, Fragment, Part
from lib.runner import Bench, seed
from zero_suppression.make_vectors import drawn_payload, drawn_table, suppressed

EVENT_BYTES = 8192
PARAMETERS = {"EVENT_BYTES": EVENT_BYTES, "TIMING": 1, "HOOK": 1, "STREAMING": 1}
BENCH = Bench(
    top="event_source", configs=[{"DATA_W": 64, "N_IN": 2, **PARAMETERS}, {"DATA_W": 512, "N_IN": 3, **PARAMETERS}]
)
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
INPUTS = int(os.environ.get("PARAM_N_IN", "2"))
SOURCE, KIND, CLOCK_PS = 5, 9, 6400
MARK, PERIOD, SIZE = range(3)
EVERY_INPUT = (1 << INPUTS) - 1


@dataclass
class Slice:
    """An event as it came: its number, time, type and the bytes of each part."""

    number: int
    time_ns: int
    trigger_type: int
    parts: list[bytes]
    flags: list[int] = field(default_factory=list, compare=False)  # of each part


class Harness:
    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.settings: dict[str, int] = {}
        self.flags: set[int] = {0}  # that a part may have

    async def start(self, **stages: int) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_PS, "ps").start())
        self.detector = Detector(dut, INPUTS, self.rng)
        self.detector.start([self.rng.randrange(3000, 9000) for _ in range(INPUTS)])
        for name in ("resync", "clear", "timing_in", "ring_fill", "req", "hooks_req", "hooks_fill"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        merger = {"merger__enable": EVERY_INPUT, "merger__timeout": 3000, "merger__limit": EVENT_BYTES}
        dut.cfg.value = structs.pack("event_cfg_t", source_id=SOURCE, **merger)
        high = {f"trigger__{name}": 0xFFFFFFFF for name in ("ring_high", "ring_low", "event_high", "event_low")}
        dut.timing_cfg.value = structs.pack("timing_cfg_t", **high)
        self.configure(**stages)
        bus = {n: AxiStreamBus.from_prefix(dut, f"m_axis_{n}") for n in ("desc", "data")}
        self.descriptors, self.messages = [AxiStreamSink(b, dut.clk, dut.rst) for b in bus.values()]
        self.pins()
        await ClockCycles(dut.clk, 20)
        await FallingEdge(dut.clk)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 30)
        return self

    def configure(self, **stages: int) -> None:
        """Changes some of the settings of slices and hook."""
        self.settings |= stages
        self.dut.stages.value = structs.pack("stages_cfg_t", **self.settings)

    def pins(self, **pins: int) -> None:
        self.dut.timing_in.value = structs.pack("timing_in_t", accepted_ready=1, **pins)

    async def pulse(self, **pins: int) -> int:
        """One mark or trigger; the clock's time in its cycle."""
        await FallingEdge(self.dut.clk)
        self.pins(trigger_valid=1, **pins)
        await Timer(1, "ps")
        now = structs.unpack("timing_out_t", int(self.dut.timing_out.value))["tai_ns"]
        await FallingEdge(self.dut.clk)
        self.pins()
        return now

    async def load(self, number: int, table: list[tuple[int, int]]) -> None:
        for index, (pedestal, threshold) in enumerate(table):
            await self.access("hooks", 2048 * number + 4 * index, pedestal | (threshold & 0xFFFF) << 16)

    async def access(self, block: str, address: int, value: int | None = None) -> int:
        """A read, or a write if a value is given, over the bus of registers."""
        request, answer = ("hooks_req", "hooks_rsp") if block == "hooks" else ("req", "rsp")
        word = {"is_wr": value is not None, "addr": address, "wr_data": value or 0, "wr_biten": 0xFFFFFFFF}
        await FallingEdge(self.dut.clk)
        getattr(self.dut, request).value = structs.pack("reg_req_t", valid=1, **word)
        await FallingEdge(self.dut.clk)
        getattr(self.dut, request).value = structs.pack("reg_req_t", **word)
        for _ in range(20):
            found = structs.unpack("reg_rsp_t", int(getattr(self.dut, answer).value))
            if found["rd_ack"] or found["wr_ack"]:
                return found["rd_data"]
            await FallingEdge(self.dut.clk)
        raise AssertionError(f"no answer of {block} at {address:#x}")

    async def count(self, number: int, word: int) -> int:
        """Word of `event_input` of this input."""
        return await self.access("inputs", 0x40 * number + 4 * word)

    async def taken(self) -> None:
        """Until the inputs have sent everything, and it has passed the crossing."""
        while self.detector.unsent:
            await ClockCycles(self.dut.clk, 1)
        await ClockCycles(self.dut.clk, 30)

    async def slice(self) -> Slice:
        """The next event. Its message is what these parts make, to the bit."""
        await self.descriptors.recv()
        message = bytes((await self.messages.recv()).tdata)
        number, time_ns, kind = struct.unpack_from("<QQH", message, 8)
        length, entries = struct.unpack_from("<IB", message, len(message) - 16)
        table = len(message) - 16 - 16 * entries
        places = [struct.unpack_from("<BxHII", message, table + 16 * k) for k in range(entries)]
        payload = message[32 : 32 + length]
        parts = [Part(source, payload[at : at + size], flags) for source, flags, at, size in places]
        assert message == Fragment(number, time_ns, kind, parts=parts).message(SOURCE)
        assert {part.flags for part in parts} <= self.flags
        return Slice(number, time_ns, kind, [part.data for part in parts], [part.flags for part in parts])

    def beats(self, most: int) -> bytes:
        return drawn_payload(self.rng, LANES * self.rng.randrange(most + 1))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(hook=[0, 1])
async def each_mark_ends_a_slice_of_all_inputs_with_its_number_and_time(dut, hook):
    rng = seed()
    h = await Harness(dut, rng).start(streaming=1, slicer__mode=MARK, slicer__trigger_type=KIND)
    hold, rows = 2, 3
    tables = [drawn_table(rng, LANES // 2, rows, 0.1) for _ in range(INPUTS)]
    for number, table in enumerate(tables):
        await h.load(number, table)
    h.configure(hook_enable=EVERY_INPUT * hook, hold=hold, rows=rows)
    for _ in range(2):  # each run is numbered from 0
        h.configure(run=1)
        begins, expected = None, []
        for number in range(12):
            data = [h.beats(20) if number % 4 else b"" for _ in range(INPUTS)]
            for source, piece in enumerate(data):
                h.detector.send(source, *([Raw(0, piece)] if piece else []))
            await h.taken()
            if hook:
                data = [suppressed(piece, tables[i], LANES // 2, hold) for i, piece in enumerate(data)]
            expected.append((number, begins, data))
            begins = await h.pulse()
        for number, time_ns, data in expected:
            found = await h.slice()
            assert (found.number, found.trigger_type) == (number, KIND)
            assert found.time_ns == (time_ns or found.time_ns)
            assert found.parts == data, f"slice {number}"
        h.configure(run=0)
        await ClockCycles(dut.clk, 50)
    assert await h.count(0, 8) >= await h.count(0, 9) >= (1 if hook else 0)
    assert not hook or await h.count(INPUTS - 1, 9) > 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(mode=[PERIOD, SIZE])
async def no_beat_of_streams_at_full_rate_is_lost_or_moved_between_slices(dut, mode):
    rng = seed()
    cycles, size = 40, 16 * LANES
    cut = {"slicer__period": cycles, "slicer__limit": size - 1}  # rounded up to a beat
    h = await Harness(dut, rng).start(streaming=1, slicer__mode=mode, **cut)
    h.configure(run=1)
    sent = [rng.randbytes(LANES * 16 * 30) for _ in range(INPUTS)]
    for source, data in enumerate(sent):
        h.detector.send(source, Raw(0, data))
    slices, got = [], [b""] * INPUTS
    while any(len(a) < len(b) for a, b in zip(got, sent, strict=True)):
        slices.append(await h.slice())
        got = [so_far + part for so_far, part in zip(got, slices[-1].parts, strict=True)]
    assert got == sent
    assert [s.number for s in slices] == list(range(len(slices)))
    if mode == SIZE:
        assert {len(part) for s in slices for part in s.parts} == {size}
    else:
        steps = {b.time_ns - a.time_ns for a, b in itertools.pairwise(slices[1:])}
        period = cycles * CLOCK_PS // 1000
        assert steps <= {period, period + 1} and len(slices) > 3


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def marks_beyond_what_can_wait_are_counted_and_later_numbers_are_right(dut):
    h = await Harness(dut, seed()).start(streaming=1, slicer__mode=MARK)
    h.configure(run=1)
    for sink in (h.descriptors, h.messages):
        sink.pause = True
    h.flags.add(MISSING)  # of an input that has lost another mark than the others
    marks = 100
    for _ in range(marks):
        await h.pulse()
    lost = [await h.count(source, 10) for source in range(INPUTS)]
    assert all(0 < count < marks for count in lost)
    for sink in (h.descriptors, h.messages):
        sink.pause = False
    await ClockCycles(dut.clk, 3000)
    for _ in range(2):  # one slice more, which all inputs have
        await h.pulse()
    numbers = [(await h.slice()).number]
    while numbers[-1] < marks + 1:
        numbers.append((await h.slice()).number)
    assert numbers == sorted(set(numbers)) and len(numbers) >= marks - max(lost)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_same_build_takes_triggers_while_no_slices_are_made(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for run in range(2):
        for number in range(4):
            data = [rng.randbytes(rng.randrange(100)) for _ in range(INPUTS)]
            time_ns = await h.pulse(trigger_number=number + 10 * run + 1, trigger_type=3)
            for source, piece in enumerate(data):
                h.detector.send(source, Raw(number + 10 * run + 1, piece))
            assert await h.slice() == Slice(number + 10 * run + 1, time_ns, 3, data)
        h.configure(streaming=1, run=1, slicer__trigger_type=KIND)
        data = [h.beats(8) or bytes(LANES) for _ in range(INPUTS)]
        for source, piece in enumerate(data):
            h.detector.send(source, Raw(0, piece))
        await h.taken()
        await h.pulse(trigger_number=77)
        found = await h.slice()
        assert (found.number, found.trigger_type, found.parts) == (0, KIND, data)
        h.configure(run=0)
        await ClockCycles(dut.clk, 50)
        h.configure(streaming=0)
        dut.resync.value = 1
        await ClockCycles(dut.clk, 1)
        dut.resync.value = 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(hook=[0, 1])
async def a_reset_of_an_input_costs_the_rest_of_its_fragment_and_no_later_event(dut, hook):
    rng = seed()
    h = await Harness(dut, rng).start(hook_enable=EVERY_INPUT * hook, hold=1, rows=1)
    tables = [drawn_table(rng, LANES // 2, 1, 0.1) for _ in range(INPUTS)]
    for source, table in enumerate(tables):
        await h.load(source, table)
    h.flags |= {MISSING, STOPPED}
    events, broken = 12, [0] * INPUTS
    times = [await h.pulse(trigger_number=number, trigger_type=3) for number in range(events)]
    expected = []
    for number in range(events):
        parts = []
        for source in range(INPUTS):
            piece, beats = drawn_payload(rng, 6 * LANES), 6
            if number < events - 1 and rng.random() < 0.5:
                beats = rng.randrange(7)
                h.detector.send(source, Raw(number, piece, reset_after=beats))
                broken[source] += 0 < beats < 6
            else:
                h.detector.send(source, Raw(number, piece))
            piece = piece[: beats * LANES]
            if hook and beats:
                piece = suppressed(piece, tables[source], LANES // 2, 1)
            parts.append((piece, 0 if beats == 6 else STOPPED if beats else MISSING))
        expected.append(parts)
    for number, time_ns, parts in zip(range(events), times, expected, strict=True):
        found = await h.slice()
        assert found == Slice(number, time_ns, 3, [piece for piece, _ in parts]), f"event {number}"
        assert found.flags == [flags for _, flags in parts], f"event {number}"
    assert [await h.count(source, 11) for source in range(INPUTS)] == broken and sum(broken) > 2


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_tables_of_all_inputs_are_read_back_while_nothing_moves(dut):
    rng = seed()
    h = await Harness(dut, rng).start(hook_enable=EVERY_INPUT, rows=1)
    words = 512
    for source in range(INPUTS):  # more than the hook takes without the merger, which waits for a trigger
        h.detector.send(source, Raw(1, bytes(64 * LANES)))
    await ClockCycles(dut.clk, 300)
    where = [(rng.randrange(INPUTS), rng.randrange(words)) for _ in range(20)]
    written = {place: rng.getrandbits(32) for place in where}
    for (source, word), value in written.items():
        await h.access("hooks", 2048 * source + 4 * word, value)
    for (source, word), value in written.items():
        assert await h.access("hooks", 2048 * source + 4 * word) == value
    assert await h.access("hooks", 2048 * INPUTS) == 0, "an input that the build does not have"
    assert await h.count(INPUTS, 8) == 0
