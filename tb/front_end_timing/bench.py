# SPDX-License-Identifier: Apache-2.0
"""Triggers make events in a whole front end, with number, type and time of its clock, while there is room.

A second is 100 us here. The detector's modules give no time of their own: they show a wrong one. At 10 Gb/s; with
`PENSTOCK_ALL_SIZES=1` (`make soak`) at 25 Gb/s, with one input, and at 100 Gb/s, too.
"""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge, Timer
from cocotb.utils import get_sim_time
from lib import cable, event_board, structs
from lib.detector import Raw
from lib.event_board import SECOND_NS, TIMED, Setup
from lib.fragment import DROPPED, MISSING, Fragment, Part
from lib.runner import Bench, seed
from lib.tai_model import TaiModel
from lib.tops import TOPS

EVENT_BYTES = TIMED["EVENT_BYTES"]
FRONT_ENDS = [(TOPS[0], 4)]  # and their inputs
if os.environ.get("PENSTOCK_ALL_SIZES"):
    FRONT_ENDS += [(TOPS[1], 1), (TOPS[2], 3)]
BENCHES = [
    Bench(
        bench.top,
        [{**bench.configs[0], "N_QP": 4, **TIMED, "N_IN": inputs}],
    )
    for bench, inputs in FRONT_ENDS
]
INPUTS = int(os.environ.get("PARAM_N_IN", "4"))
PART = 2400 // INPUTS  # bytes of an event from each input, unless a test sets another
COUNTS = ("received", "accepted", "vetoed", "rejected_busy", "rejected_dead")


class Harness:
    """Triggers, and modules that send a fragment for each one that is accepted."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.line = cable.line()
        self.model = TaiModel(self.line.clock_khz, SECOND_NS)
        self.second_ps = SECOND_NS * self.line.clock_khz * self.line.clock_ps / 1_000_000  # by the clock's own cycles
        self.accepted: Queue[Fragment] = Queue()  # events to come
        self.numbers: list[int] = []
        self.found = 0  # of their events have come
        self.shown: dict[int, tuple[int, int]] = {}  # cycle and type of each trigger
        self.part_of = lambda number, i: rng.randbytes(PART)  # None: the module misses it
        self.dropped: set[tuple[int, int]] = set()  # event and input before which fragments were dropped
        for name in ("trigger_valid", "trigger_number", "trigger_type", "trigger_veto", "pps", "clk_10mhz"):
            getattr(dut, name).value = 0
        dut.m_axis_trigger_tready.value = 1

    async def start(self, **control: int) -> "Harness":
        cocotb.start_soon(self.reset_ends())
        self.setup: Setup = await event_board.prepare(self.dut, self.rng, INPUTS, **control)
        self.registers = self.setup.board.registers
        await self.registers.write("events.limit", EVENT_BYTES)
        await self.registers.write("timing.window", 5000)
        await self.registers.write("timing.jitter", 20)
        cocotb.start_soon(self.digitise())
        cocotb.start_soon(self.events())
        return self

    async def expect_parts_of(self, size: int) -> None:
        """Sets the thresholds of the store for events with this number of bytes from each input."""
        lanes = self.setup.detector.lanes
        beats = INPUTS * -(-size // lanes) + -(-(32 + 16 + 16 * INPUTS) // lanes) + 1
        store = await self.registers.read("timing.event_high") + await self.registers.read("timing.event_size") - 1
        step = max(beats, store // 16)
        for name, word in (("event_size", step), ("event_high", store - step + 1), ("event_low", store // 2)):
            await self.registers.write(f"timing.{name}", word)

    async def reset_ends(self) -> None:
        await RisingEdge(self.dut.rst)
        await FallingEdge(self.dut.rst)
        self.first_ps = round(get_sim_time("ps"))

    def cycle(self) -> int:
        """Number of the next rising edge of the clock."""
        return (round(get_sim_time("ps")) - self.first_ps) // self.line.clock_ps + 1

    async def go(self, veto: int = 0, **fields: int) -> None:
        """Sets `timing.control`: the veto of software ends."""
        values = {"own_numbers": 0, "discipline": 1, "ten_mhz": 0} | fields
        await self.registers.write_fields("timing.control", veto=veto, **values)

    async def digitise(self) -> None:
        """For each accepted trigger what its event must become, and the fragments of the modules."""
        dut = self.dut
        while True:
            await RisingEdge(dut.m_axis_trigger_tvalid)
            await FallingEdge(dut.clk)
            while dut.m_axis_trigger_tvalid.value:
                about = structs.unpack("fragment_t", int(dut.m_axis_trigger_tdata.value))
                self.take(about["event_number"])
                await FallingEdge(dut.clk)

    def take(self, number: int) -> None:
        at, kind = self.shown.get(number, (None, None))
        parts = []
        for i in range(INPUTS):
            data = self.part_of(number, i)
            if data is None:
                parts.append(Part(i, b"", MISSING))
            else:
                parts.append(Part(i, data, DROPPED if (number, i) in self.dropped else 0))
                self.setup.detector.send(i, Raw(number, data, trigger_type=77, timestamp_ns=77))
        self.numbers.append(number)
        self.accepted.put_nowait(Fragment(number, at, kind, parts=parts))

    async def trigger(self, number: int, kind: int = 3) -> None:
        """One trigger in the next cycle, ignoring busy."""
        dut = self.dut
        await FallingEdge(dut.clk)
        dut.trigger_valid.value, dut.trigger_number.value, dut.trigger_type.value = 1, number, kind
        self.shown[number] = self.cycle(), kind
        await FallingEdge(dut.clk)
        dut.trigger_valid.value = 0

    async def events(self) -> None:
        """Each accepted trigger's event comes, in order, and is what it must be."""
        while True:
            expected = await self.accepted.get()
            expected.timestamp_ns = self.model.ns(expected.timestamp_ns)
            await self.setup.expect(expected)
            self.found += 1

    async def done(self, slices: int = 0) -> None:
        """Waits until no accepted trigger is without its event; there was one for each, and these slices."""
        while (await self.status())["pending"] or self.found < len(self.numbers):
            await Timer(1, "us")
        assert await self.setup.board.count("event_messages") == len(self.numbers) + slices

    async def status(self) -> dict[str, int]:
        return {name: await self.setup.board.field("timing.status", name, 0) for name in ("present", "busy", "pending")}

    async def counts(self) -> dict[str, int]:
        found = {name: await self.registers.read(f"timing.{name}") for name in COUNTS}
        assert found["received"] == sum(found[name] for name in COUNTS[1:])
        assert found["accepted"] == len(self.numbers)
        return {name: count for name, count in found.items() if count}

    async def set_time(self, ns: int) -> None:
        await self.registers.write("timing.set_hi", ns >> 32)
        await self.registers.write("timing.set_lo", ns & 0xFFFFFFFF)
        await self.registers.write_fields("timing.command", set=1)
        await FallingEdge(self.dut.clk)
        shown = int(self.dut.tai_ns.value)
        assert ns < shown < ns + 1000
        self.model.set_at(self.cycle(), shown)

    async def pulses(self, count: int, ppm: float) -> None:
        """One after each second, whose oscillator is slow by `ppm`; the third is missing, the fifth is doubled."""
        first = SECOND_NS - self.model.ns(self.cycle()) % SECOND_NS + 20  # the clock is as much ahead
        first_ps, second_ps = get_sim_time("ps") + 1000 * first, self.second_ps * (1 - ppm * 1e-6)
        for n in range(count):
            await Timer(round(first_ps + n * second_ps - get_sim_time("ps")), "ps")
            if n == 2:
                continue
            await self.pulse(counts=True)
            if n == 4:
                await Timer(20, "us")
                await self.pulse(counts=False)

    async def pulse(self, counts: bool) -> None:
        await ReadOnly()  # of two edges at one instant, the clock's is first
        await Timer(1, "ps")
        if counts:
            self.model.pulse(self.cycle())
        self.dut.pps.value = 1
        await Timer(200, "ns")
        self.dut.pps.value = 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_time_of_each_event_is_that_of_the_clock_on_paper_with_a_pulse_missing_and_one_doubled(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.part_of = lambda number, i: rng.randbytes(rng.choice([0, 7, 200]))
    assert (await h.status())["present"]
    await h.set_time(17_000_000_000 * SECOND_NS + 350)
    await h.go()
    pulses = cocotb.start_soon(h.pulses(9, ppm=rng.choice([-90, 80])))
    number = rng.getrandbits(40)
    while not pulses.done():
        number += rng.choice([1, 1, 1, 3])
        await h.trigger(number, rng.getrandbits(16))
        await Timer(rng.randrange(2000, 9000), "ns")
    await h.done()
    dut._log.info(f"{len(h.numbers)} events; offsets at the pulses {h.model.offsets} ns")
    assert h.numbers == list(h.shown), "a trigger was refused"
    read = h.registers.read
    steps = {step for *_, step in h.model.steps}
    assert len(steps) > 3 and h.model.learnt, "the pulses have not steered the clock"
    offset = await read("timing.pps_offset")
    assert offset - (offset >> 31 << 32) == h.model.offsets[-1]
    drift = await read("timing.drift")
    assert drift - (drift >> 31 << 32) == h.model.learnt >> 5
    found = {name: await read(f"timing.pps_{name}") for name in ("good", "missing", "extra")}
    assert found == {"good": 8, "missing": 1, "extra": 1}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def edges_of_the_10_mhz_input_are_counted_between_pulses_and_missing_ones_reported(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.go(ten_mhz=1)
    reference = Clock(dut.clk_10mhz, 100, "ns")
    reference.start()
    begun = get_sim_time("ps")
    for n, wrong in enumerate((0, 0, 1)):
        await Timer(round(begun + (n + 1) * h.second_ps - get_sim_time("ps")), "ps")
        await h.pulse(counts=False)
        edges = await h.registers.read("timing.ten_mhz_edges")
        assert n == 0 or abs(edges - (SECOND_NS // 100, SECOND_NS // 200)[wrong]) <= 5, f"{edges} edges"
        assert await h.registers.read("timing.ten_mhz_wrong") == wrong
        if n == 1:
            await Timer(SECOND_NS // 2, "ns")
            reference.stop()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def triggers_above_the_rate_raise_busy_and_no_event_is_cut_or_lost_without_a_count(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.expect_parts_of(PART)
    await h.go()
    interval = 2400 * h.line.octet_ns / 4  # a quarter of what an event takes on the line
    number = busy = 0
    while h.found < 60:
        await h.trigger(number, 5)
        await Timer(round(interval * 1000), "ps")
        number, busy = number + 1, busy + int(dut.trigger_busy.value)
    await h.go(veto=1)
    await h.done()
    counts = await h.counts()
    dut._log.info(f"{counts}, busy at {busy} of {number} triggers")
    assert counts["rejected_busy"] > counts["accepted"] >= 60 and busy > 60
    assert counts["received"] == number and not (await h.status())["busy"]
    for i in range(INPUTS):
        assert await h.setup.counts(i) == {"merged": len(h.numbers)}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def busy_follows_the_fill_of_the_send_ring(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.part_of = lambda number, i: rng.randbytes(100)
    peer = h.setup.board.peer
    peer.verdict = lambda packet: "drop"
    await h.registers.write("timing.ring_high", 4)
    await h.registers.write("timing.ring_low", 1)
    await h.go()

    async def fill() -> int:
        """Packets in the ring by the queue pair's own registers, which the fill must be equal to."""
        una, wr = [await h.registers.read(f"qp.{name}", 0) for name in ("una_psn", "wr_psn")]
        return (wr - una) % (1 << 24)

    for number in range(1, 5):
        assert not dut.trigger_busy.value
        await h.trigger(number)
        while (await h.status())["pending"]:
            pass
        while await fill() != number:
            pass
        assert await h.registers.read("timing.ring_fill") == number
    assert dut.trigger_busy.value and (await h.status())["busy"]
    await h.trigger(5)
    assert await h.counts() == {"received": 5, "accepted": 4, "rejected_busy": 1}
    peer.verdict = lambda packet: None
    await h.done()
    while await fill():
        pass
    while dut.trigger_busy.value:
        await RisingEdge(dut.clk)
    assert await h.registers.read("timing.ring_fill") == 0
    await h.trigger(6)
    await h.done()
    assert h.numbers == [1, 2, 3, 4, 6]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_accepted_trigger_is_an_event_even_if_modules_miss_it_and_fragments_of_others_are_dropped(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    last = INPUTS - 1
    await h.go()
    h.part_of = lambda number, i: None if number == 11 or (number == 12 and i == last) else rng.randbytes(64)
    for number in (10, 11, 12, 13):
        await h.trigger(number)
        await h.done()
    # Of a trigger that was not accepted, and one that comes too late: both numbers have gone by.
    h.setup.detector.send(last, Raw(9, b"never accepted"), Raw(12, b"too late"))
    assert await h.setup.counts(last) == {"merged": 2, "missing": 2}
    h.dropped = {(14, last)}
    await h.trigger(14)
    await h.done()
    assert await h.setup.counts(last) == {"merged": 3, "missing": 2, "late": 2}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def vetoes_dead_time_and_own_numbers_count_each_trigger_once_and_cut_no_event(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.registers.write("timing.dead_time", 100)
    await h.registers.write("timing.gate", 150)
    await h.trigger(1)
    assert await h.counts() == {"received": 1, "vetoed": 1}, "software's veto holds after reset"
    h.part_of = lambda number, i: rng.randbytes(64)
    await h.expect_parts_of(64)
    await h.go()
    number, vetoed = 1, 1
    for _ in range(60):
        number += 1
        dut.trigger_veto.value = veto = rng.randrange(2)
        vetoed += veto
        await h.trigger(number)
        dut.trigger_veto.value = 0
        if rng.random() < 0.7:
            await Timer(round(h.line.cycle_ns * rng.randrange(1, 800)), "ns")
    await h.done()
    counts = await h.counts()
    assert counts["vetoed"] == vetoed and counts["rejected_dead"] > 0 and counts["accepted"] > 10
    # Own numbers, from 0 on, independent of the pins.
    await h.go(own_numbers=1)
    await h.registers.write_fields("events.command", resync=1)
    await h.registers.write_fields("timing.command", restart=1)
    for index in range(3):
        await FallingEdge(dut.clk)
        dut.trigger_valid.value, dut.trigger_number.value, dut.trigger_type.value = 1, 999, 4
        h.shown[index] = h.cycle(), 4
        await FallingEdge(dut.clk)
        dut.trigger_valid.value = 0
        await Timer(round(h.line.cycle_ns * 400), "ns")
    await h.done()
    assert h.numbers[-3:] == [0, 1, 2]


async def stream(h: Harness, data: list[bytes]) -> None:
    """Whole beats to all inputs, until they are in slices."""
    for i, piece in enumerate(data):
        if piece:
            h.setup.detector.send(i, Raw(0, piece))
    while h.setup.detector.unsent:
        await Timer(100, "ns")
    await Timer(round(h.line.cycle_ns * 40), "ns")


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def streams_without_end_are_cut_by_marks_and_by_size_between_runs_with_triggers(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    lanes = h.setup.detector.lanes
    await h.go()
    await h.trigger(7)
    await h.done()
    await h.go(veto=1)

    # At each mark of the trigger pin, which is no trigger now.
    await h.registers.write_fields("events.streaming", enable=1, trigger_type=9)
    await h.registers.write_fields("events.streaming", enable=1, run=1, trigger_type=9)
    begins, counts = None, await h.counts()
    for number in range(5):
        data = [rng.randbytes(lanes * rng.randrange(6)) for _ in range(INPUTS)]
        await stream(h, data)
        await h.trigger(999)
        cycle = h.shown[999][0]
        expected = Fragment(number, 0, 9, parts=[Part(i, piece) for i, piece in enumerate(data)])
        if begins is None:
            *_, message = await h.setup.message()
            expected.timestamp_ns = int.from_bytes(message[16:24], "little")
            assert expected.timestamp_ns < h.model.ns(cycle)
            whole = expected.message(event_board.SOURCE)
            assert message[: len(whole)] == whole
        else:
            expected.timestamp_ns = h.model.ns(begins)
            await h.setup.expect(expected)
        begins = cycle
    assert await h.counts() == counts

    # By size: whatever the input is, each slice has as many bytes, and all are there.
    await h.registers.write_fields("events.streaming", enable=1)
    await Timer(round(h.line.cycle_ns * 100), "ns")
    size, slices = 4 * lanes, 6
    await h.registers.write("events.slice_size", size)
    await h.registers.write_fields("events.streaming", enable=1, mode=2)
    await h.registers.write_fields("events.streaming", enable=1, run=1, mode=2)
    sent = [rng.randbytes(size * slices) for _ in range(INPUTS)]
    await stream(h, sent)
    for number in range(slices):
        *_, message = await h.setup.message()
        time_ns = int.from_bytes(message[16:24], "little")
        parts = [Part(i, data[size * number :][:size]) for i, data in enumerate(sent)]
        whole = Fragment(number, time_ns, 0, parts=parts).message(event_board.SOURCE)
        assert message[: len(whole)] == whole, f"slice {number}"

    # And triggers again.
    await h.registers.write_fields("events.streaming", enable=1, mode=2)
    await Timer(round(h.line.cycle_ns * 100), "ns")
    await h.registers.write_fields("events.streaming", enable=0)
    await h.registers.write_fields("events.command", resync=1)
    await h.go()
    await h.trigger(8)
    await h.done(slices=5 + slices)
