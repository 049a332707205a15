# SPDX-License-Identifier: Apache-2.0
"""Fragments of one event from all inputs become one message; what goes wrong at an input is flagged and counted."""

import itertools
import os
from collections import Counter
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.fragment import CUT, DROPPED, MISSING, STOPPED, TRIGGER_DIFFERS, Fragment, Part
from lib.runner import Bench, seed

BENCH = Bench(
    top="event_merger_bench",
    configs=[
        {"DATA_W": 64, "N_IN": 1},
        {"DATA_W": 64, "N_IN": 4},
        {"DATA_W": 512, "N_IN": 4},
        {"DATA_W": 64, "N_IN": 16},
    ],
    sources=[Path(__file__).parent / "event_merger_bench.sv"],
)
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
INPUTS = int(os.environ.get("PARAM_N_IN", "4"))
SOURCE = 7
TIMEOUT = 300
LIMIT = 1024
TIME_NS, TYPE = 10_000, 3


class Inputs:
    """The detector's side: each input has a queue of beats; one process drives all."""

    def __init__(self, dut, rng, stall: float) -> None:
        self.dut, self.rng, self.stall = dut, rng, stall
        self.queues: list[list[tuple[int, int, int, int, int]]] = [[] for _ in range(INPUTS)]
        self.pushed = 0

    def push(
        self, number: int, event: int, data: bytes, trigger_type: int = TYPE, ends: bool = True, broken: bool = False
    ) -> None:
        time_ns = event % 2**64 * TIME_NS % 2**64
        user = structs.pack("fragment_t", event_number=event % 2**64, timestamp_ns=time_ns, trigger_type=trigger_type)
        self.pushed += 1
        pieces = [data[at : at + LANES] for at in range(0, len(data), LANES)] or [b""]
        for at, piece in enumerate(pieces):
            word = int.from_bytes(piece + self.rng.randbytes(LANES - len(piece)), "little")
            last = ends and at == len(pieces) - 1
            self.queues[number].append((word, (1 << len(piece)) - 1, user if at == 0 else 0, int(last), 0))
        if broken:
            *beat, _, _ = self.queues[number][-1]
            self.queues[number][-1] = (*beat, 0, 0)
            self.queues[number].append((self.rng.getrandbits(8 * LANES), 0, 0, 1, 1))

    async def drive(self) -> None:
        dut = self.dut
        shown = [False] * INPUTS
        while True:
            values = [0, 0, 0, 0, 0, 0]
            for i, queue in enumerate(self.queues):
                shown[i] = bool(queue) and (shown[i] or self.rng.random() >= self.stall)
                if shown[i]:
                    widths = (8 * LANES, LANES, 144, 1, 1)
                    for k, (value, bits) in enumerate(zip(queue[0], widths, strict=True)):
                        values[k] |= value << bits * i
                    values[5] |= 1 << i
            for name, value in zip(("tdata", "tkeep", "tuser", "tlast", "tbroken", "tvalid"), values, strict=True):
                getattr(dut, f"s_axis_{name}").value = value
            await ReadOnly()
            taken = int(dut.s_axis_tready.value) & values[5]
            await FallingEdge(dut.clk)
            for i, queue in enumerate(self.queues):
                if taken >> i & 1:
                    queue.pop(0)
                    shown[i] = False


class Counts(Counter):
    """What the merger counts, by input and kind."""

    async def watch(self, dut) -> None:
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            if dut.stat_valid.value:
                kinds = structs.unpack("merger_stat_t", int(dut.stat.value))
                self.update((int(dut.stat_input.value), kind) for kind, is_set in kinds.items() if is_set)

    def of(self, kind: str) -> list[int]:
        return [self[i, kind] for i in range(INPUTS)]


async def start(dut, rng, stall: float = 0.0, enable: int = (1 << INPUTS) - 1, jump: int = 0):
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    dut.rst.value, dut.resync.value, dut.source_id.value = 1, 0, SOURCE
    dut.cfg.value = structs.pack("merger_cfg_t", enable=enable, timeout=TIMEOUT, limit=LIMIT, jump=jump)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    if stall:
        sink.set_pause_generator(rng.random() < stall for _ in itertools.count())
    inputs, counts = Inputs(dut, rng, stall), Counts()
    await ClockCycles(dut.clk, 4)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    cocotb.start_soon(inputs.drive())
    cocotb.start_soon(counts.watch(dut))
    return inputs, sink, counts


def event_of(number: int, parts: dict[int, Part], enabled=range(INPUTS)) -> Fragment:
    """The message of an event: inputs that are enabled and have no part are missing in it."""
    whole = [parts.get(i, Part(i, b"", MISSING)) for i in enabled]
    return Fragment(number % 2**64, number % 2**64 * TIME_NS % 2**64, TYPE, parts=whole)


async def expect(sink, expected: list[Fragment]) -> None:
    for event in expected:
        got, whole = bytes((await sink.recv()).tdata), event.message(SOURCE)
        assert got == whole, f"event {event.event}\n got {got.hex()}\nwant {whole.hex()}"


async def silent(dut, sink) -> None:
    await ClockCycles(dut.clk, 3 * TIMEOUT)
    assert sink.empty()


def lengths(rng) -> int:
    return rng.choice([0, 1, 7, 8, 9, LANES, LANES + 1, 100, 300])


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def whole_events_come_out_in_order_with_the_parts_of_all_inputs(dut, stall):
    rng = seed()
    inputs, sink, counts = await start(dut, rng, stall)
    expected = []
    for number in range(2**64 - 10, 2**64 + 20):  # over the end of the numbers, too
        parts = {i: Part(i, rng.randbytes(lengths(rng))) for i in range(INPUTS)}
        for i, part in parts.items():
            inputs.push(i, number, part.data)
        expected.append(event_of(number, parts))
    await expect(sink, expected)
    await silent(dut, sink)
    assert counts.of("merged") == [30] * INPUTS and not any(counts.of("missing"))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_missing_input_is_waited_for_once_and_blocks_nobody(dut):
    rng = seed()
    inputs, sink, counts = await start(dut, rng)
    quiet, expected = INPUTS - 1, []
    for number in range(1, 6):
        parts = {i: Part(i, rng.randbytes(lengths(rng))) for i in range(INPUTS) if i != quiet}
        for i, part in parts.items():
            inputs.push(i, number, part.data)
        if parts:
            expected.append(event_of(number, parts))
    await expect(sink, expected)
    # Its fragments come when their events have gone: late, and one a duplicate of the last; then it is back.
    last = 5 if expected else 0
    for number in range(1, 7):
        inputs.push(quiet, number, b"after all")
    for i in range(INPUTS):
        if i != quiet:
            inputs.push(i, 6, b"in time")
    parts = {i: Part(i, b"in time") for i in range(INPUTS)}
    parts[quiet] = Part(quiet, b"after all", DROPPED if expected else 0)
    if expected:
        await expect(sink, [event_of(6, parts)])
        assert (counts[quiet, "late"], counts[quiet, "duplicate"], counts[quiet, "missing"]) == (4, 1, last)
    else:
        await expect(sink, [event_of(number, {0: Part(0, b"after all")}) for number in range(1, 7)])
    await silent(dut, sink)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_input_that_skips_numbers_is_missing_without_a_wait(dut):
    rng = seed()
    inputs, sink, counts = await start(dut, rng)
    for number in range(1, 9):
        for i in range(INPUTS):
            if i or INPUTS == 1 or number in (1, 2, 7, 8):
                inputs.push(i, number, bytes([number, i]))
    expected = [
        event_of(
            number,
            {i: Part(i, bytes([number, i])) for i in range(INPUTS) if i or INPUTS == 1 or number in (1, 2, 7, 8)},
        )
        for number in range(1, 9)
    ]
    begun = cocotb.utils.get_sim_time("ns")
    await expect(sink, expected)
    assert cocotb.utils.get_sim_time("ns") - begun < 2 * 8 * (4 * INPUTS + 40), "it was waited for"
    assert counts[0, "missing"] == (4 if INPUTS > 1 else 0)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def duplicates_and_numbers_that_jump_back_are_dropped_counted_and_flagged(dut):
    rng = seed()
    inputs, sink, counts = await start(dut, rng)
    for number in (10, 11):
        for i in range(INPUTS):
            inputs.push(i, number, bytes([i]))
            if i == 0 and number == 10:
                inputs.push(0, 10, b"again")  # a duplicate
                inputs.push(0, 3, b"back, and longer than a beat or two of it" * 3)
    flags = {0: DROPPED}
    await expect(
        sink,
        [
            event_of(10, {i: Part(i, bytes([i])) for i in range(INPUTS)}),
            event_of(11, {i: Part(i, bytes([i]), flags.get(i, 0)) for i in range(INPUTS)}),
        ],
    )
    await silent(dut, sink)
    assert (counts[0, "duplicate"], counts[0, "late"]) == (1, 1)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def resync_takes_numbers_that_begin_again(dut):
    rng = seed()
    inputs, sink, counts = await start(dut, rng)
    for i in range(INPUTS):
        inputs.push(i, 1000, b"before")
    await expect(sink, [event_of(1000, {i: Part(i, b"before") for i in range(INPUTS)})])
    await ClockCycles(dut.clk, 10)
    await FallingEdge(dut.clk)
    dut.resync.value = 1
    await FallingEdge(dut.clk)
    dut.resync.value = 0
    for i in range(INPUTS):
        inputs.push(i, 0, b"after")
    await expect(sink, [event_of(0, {i: Part(i, b"after") for i in range(INPUTS)})])
    assert not any(counts.of("late"))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_stream_that_does_not_end_is_cut_and_one_that_stops_is_closed(dut):
    rng = seed()
    inputs, sink, counts = await start(dut, rng)
    long, short = rng.randbytes(3 * LIMIT), rng.randbytes(4 * LANES)
    first, last = 0, INPUTS - 1
    for i in range(INPUTS):
        inputs.push(i, 1, long if i == first else b"x")
        inputs.push(i, 2, short if i == last else b"y", ends=i != last)
    cut = {i: Part(i, b"x") for i in range(INPUTS)} | {first: Part(first, long[:LIMIT], CUT)}
    stopped = {i: Part(i, b"y") for i in range(INPUTS)} | {last: Part(last, short, STOPPED)}
    await expect(sink, [event_of(1, cut), event_of(2, stopped)])
    # The rest of the one that stopped comes after all: it is no fragment of its own.
    inputs.push(last, 0, b"the rest")
    for i in range(INPUTS):
        inputs.push(i, 3, b"z")
    await expect(sink, [event_of(3, {i: Part(i, b"z") for i in range(INPUTS)})])
    await silent(dut, sink)
    assert (counts[first, "cut"], counts[last, "stopped"]) == (1, 1)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_fragment_that_a_reset_broke_off_is_a_part_up_to_there_and_marked(dut):
    rng = seed()
    inputs, sink, counts = await start(dut, rng)
    begun = cocotb.utils.get_sim_time("ns")
    data = rng.randbytes(3 * LANES)
    for number in (1, 2):
        for i in range(INPUTS):
            inputs.push(i, number, data, broken=number == 1 and i == INPUTS - 1)
    whole = {i: Part(i, data) for i in range(INPUTS)}
    await expect(sink, [event_of(1, {**whole, INPUTS - 1: Part(INPUTS - 1, data, STOPPED)}), event_of(2, whole)])
    assert cocotb.utils.get_sim_time("ns") - begun < 2 * TIMEOUT, "its end was waited for"
    await silent(dut, sink)
    assert counts.of("stopped") == [0] * (INPUTS - 1) + [1] and counts.of("merged") == [2] * INPUTS


JUMP = 8  # numbers 2^8 ahead are out of range
CONSECUTIVE = 1  # all but the next


def number_all(inputs: Inputs, number: int, shown: dict[int, int] | None = None) -> None:
    """One fragment of each input; some show another number."""
    for i in range(INPUTS):
        inputs.push(i, (shown or {}).get(i, number), bytes([number & 0xFF, i]))


def numbered(number: int, without: tuple[int, ...] = (), flagged: tuple[int, ...] = ()) -> Fragment:
    """The event of these fragments: `without` are missing, `flagged` have dropped one before."""
    parts = {i: Part(i, bytes([number & 0xFF, i]), DROPPED * (i in flagged)) for i in range(INPUTS) if i not in without}
    missing = {i: Part(i, b"", MISSING | DROPPED * (i in flagged)) for i in without}
    return event_of(number, {**parts, **missing})


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize((("jump", "bit"), [(JUMP, 8), (JUMP, 40), (JUMP, 63), (CONSECUTIVE, 1), (CONSECUTIVE, 3)]))
async def a_flipped_bit_of_a_number_costs_its_own_fragment_and_no_later_one(dut, jump, bit):
    rng = seed()
    inputs, sink, counts = await start(dut, rng, jump=jump)
    last = INPUTS - 1
    number_all(inputs, 100)
    number_all(inputs, 101, {last: 101 ^ 1 << bit})
    for number in (102, 103):
        number_all(inputs, number)
    if INPUTS == 1:
        expected = [numbered(100), numbered(102, flagged=(last,)), numbered(103)]
    else:
        expected = [numbered(100), numbered(101, without=(last,)), numbered(102, flagged=(last,)), numbered(103)]
    begun = cocotb.utils.get_sim_time("ns")
    await expect(sink, expected)
    assert cocotb.utils.get_sim_time("ns") - begun < 2 * (4 * (8 * INPUTS + 60) + TIMEOUT // 2), "it was waited for"
    await silent(dut, sink)
    assert counts.of("jumped") == [0] * last + [1] and not any(counts.of("late"))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(to=[5, 1 << 50])
async def numbers_that_have_moved_are_taken_from_the_second_on(dut, to):
    rng = seed()
    inputs, sink, counts = await start(dut, rng, jump=JUMP)
    every = tuple(range(INPUTS))
    for number in (1000, to, to + 1, to + 2):
        number_all(inputs, number)
    await expect(sink, [numbered(1000), numbered(to + 1, flagged=every), numbered(to + 2)])
    await silent(dut, sink)
    assert counts.of("jumped") == [1] * INPUTS and not any(counts.of("late"))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_input_whose_numbers_are_out_of_range_for_good_costs_the_others_nothing(dut):
    rng = seed()
    if INPUTS == 1:
        return
    inputs, sink, counts = await start(dut, rng, jump=JUMP)
    last, numbers = INPUTS - 1, range(10, 22)
    number_all(inputs, 9)
    for number in numbers:
        number_all(inputs, number, {last: number + (1 << 33)})
    number_all(inputs, 22)  # it is right again
    await expect(sink, [numbered(9), numbered(10, without=(last,))])
    await expect(sink, [numbered(number, without=(last,), flagged=(last,)) for number in numbers[1:]])
    await expect(sink, [numbered(22, flagged=(last,))])
    await silent(dut, sink)
    assert counts.of("jumped") == [0] * last + [len(numbers)] and counts.of("merged")[:last] == [14] * last


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_wait_for_the_others_begins_with_a_number_within_the_range(dut):
    rng = seed()
    if INPUTS == 1:
        return
    inputs, sink, counts = await start(dut, rng, jump=JUMP)
    number_all(inputs, 50)
    await expect(sink, [numbered(50)])
    inputs.push(0, 1 << 20, b"far")
    await ClockCycles(dut.clk, TIMEOUT * 2 // 3)
    for i in range(1, INPUTS - 1):
        inputs.push(i, 51, bytes([51, i]))
    await ClockCycles(dut.clk, TIMEOUT * 2 // 3)
    inputs.push(INPUTS - 1, 51, bytes([51, INPUTS - 1]))
    absent = (0,) if INPUTS > 2 else ()
    await expect(sink, [numbered(51, without=absent)])
    assert counts[0, "jumped"] <= 1 and counts[INPUTS - 1, "missing"] == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_trigger_type_that_differs_is_flagged_and_the_first_one_holds(dut):
    rng = seed()
    inputs, sink, _ = await start(dut, rng)
    for i in range(INPUTS):
        inputs.push(i, 5, b"w", trigger_type=TYPE if i != 1 else 9)
    await expect(sink, [event_of(5, {i: Part(i, b"w", TRIGGER_DIFFERS if i == 1 else 0) for i in range(INPUTS)})])


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_input_that_is_not_enabled_has_no_entry_is_not_waited_for_and_not_taken(dut):
    if INPUTS == 1:
        return
    rng = seed()
    enabled = sorted(rng.sample(range(INPUTS), rng.randrange(1, INPUTS)))
    inputs, sink, counts = await start(dut, rng, enable=sum(1 << i for i in enabled))
    events = [{i: Part(i, rng.randbytes(lengths(rng))) for i in enabled} for _ in range(5)]
    for i in range(INPUTS):
        for number, parts in enumerate(events):
            inputs.push(i, number, parts[i].data if i in parts else b"not asked for")
    begun = cocotb.utils.get_sim_time("ns")
    await expect(sink, [event_of(number, parts, enabled) for number, parts in enumerate(events)])
    assert cocotb.utils.get_sim_time("ns") - begun < 2 * 5 * (INPUTS * 120 + 60), "one was waited for"
    assert not any(counts.of("missing"))
    assert all(len(inputs.queues[i]) >= 5 for i in range(INPUTS) if i not in enabled)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def random_faults_of_all_inputs_leave_every_good_fragment_in_its_event(dut):
    """Inputs lose, repeat and turn numbers back at random; the model is what each input's own numbers give."""
    rng = seed()
    inputs, sink, counts = await start(dut, rng, 0.1)
    expected = []
    for number in range(1, 60):
        parts, seen = {}, [False] * INPUTS
        for i in range(INPUTS):
            if INPUTS > 1 and i and rng.random() < 0.2:
                continue  # lost; input 0 always has one, so that the event is there
            data = rng.randbytes(lengths(rng))
            inputs.push(i, number, data)
            parts[i] = Part(i, data)
            seen[i] = True
        for i in range(INPUTS):
            if seen[i] and rng.random() < 0.15:
                inputs.push(i, number - rng.randint(0, number), rng.randbytes(lengths(rng)))
        expected.append(event_of(number, parts))
    for event in expected:
        got = bytes((await sink.recv()).tdata)
        shown = int.from_bytes(got[8:16], "little")
        assert shown == event.event
        for entry, part in enumerate(event.parts):
            at = len(got) - 16 - 16 * (INPUTS - entry)
            flags = int.from_bytes(got[at + 2 : at + 4], "little") & ~DROPPED
            offset, length = (int.from_bytes(got[at + k : at + k + 4], "little") for k in (4, 8))
            assert (got[at], flags, got[32 + offset : 32 + offset + length]) == (part.number, part.flags, part.data)
    await silent(dut, sink)
    taken = sum(counts.of("merged")) + sum(counts.of("late")) + sum(counts.of("duplicate"))
    assert taken == inputs.pushed, "a fragment was lost without a count"
