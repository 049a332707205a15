# SPDX-License-Identifier: Apache-2.0
"""Fragments at the detector's inputs arrive at the peer as version 2 messages, independent of other message sources."""

import os

import cocotb
from cocotb.triggers import Timer
from lib import event_board
from lib.board import SUCCESS
from lib.detector import Raw
from lib.event_board import PREFIX, SLOT_BYTES, SOURCE, Setup, base_of
from lib.fragment import CUT, DROPPED, MISSING, STOPPED, TRIGGER_DIFFERS, Fragment, Part, padded
from lib.runner import Bench, seed
from lib.tops import TOPS, WIDTHS
from zero_suppression.make_vectors import drawn_payload, drawn_table, suppressed

EVENT_BYTES = 4096
BENCHES = [
    Bench(bench.top, [{**bench.configs[0], "N_QP": 4, "N_IN": inputs, "EVENT_BYTES": EVENT_BYTES, "HOOK": 1}])
    for bench, inputs in zip(TOPS, (4, 1, 3), strict=True)
    if bench in WIDTHS
]
INPUTS = int(os.environ.get("PARAM_N_IN", "4"))
SIZES = [0, 1, 7, 8, 63, 64, 65, 300, 900]


async def prepare(dut, rng, **options) -> Setup:
    return await event_board.prepare(dut, rng, INPUTS, **options)


def event(number: int, parts: dict[int, Part], enabled=range(INPUTS)) -> Fragment:
    return Fragment(number, number * 100, 1, parts=[parts.get(i, Part(i, b"", MISSING)) for i in enabled])


def random_event(rng, number: int) -> Fragment:
    return event(number, {i: Part(i, rng.randbytes(rng.choice(SIZES))) for i in range(INPUTS)})


def feed(setup: Setup, fragment: Fragment) -> None:
    for part in fragment.parts:
        setup.detector.send(part.number, Raw(fragment.event, part.data))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.2])
async def events_of_all_inputs_arrive_whole_between_messages_of_the_user_and_the_source(dut, stall):
    rng = seed()
    setup = await prepare(dut, rng, qps=(0, 1, 2), stall=stall)
    board, registers = setup.board, setup.board.registers
    assert await registers.read("events.build") == EVENT_BYTES << 8 | INPUTS
    await registers.write("events.jump", 0)  # the gaps between these numbers are wide
    events = [random_event(rng, rng.getrandbits(40) << 8 | n) for n in range(0, 40, 2)]
    events.sort(key=lambda e: e.event)
    users = [rng.randbytes(rng.randrange(1, 3000)) for _ in range(12)]
    for fragment in events:
        feed(setup, fragment)
    await registers.write_fields("source.control", generator=1, verb=1, tag_prefix=0xFF, restart=1)
    await registers.write_fields("source.qp_range", qp_first=2, qp_last=2)
    await registers.write("source.length_min", 777)
    await registers.write("source.count", 8)
    await registers.write_fields("source.command", start=1)
    for tag, payload in enumerate(users):
        await board.post(1, payload, tag)
    done = [await board.completion() for _ in range(len(events) + len(users) + 8)]
    assert all(status == SUCCESS for *_, status in done)
    tags = {qp: [tag for at, tag, _ in done if at == qp] for qp in (0, 1, 2)}
    assert tags[0] == [PREFIX << 24 | e.event & 0xFFFFFF for e in events]
    assert tags[1] == list(range(len(users)))
    assert len(tags[2]) == 8
    assert [data for qp, data, _ in board.peer.received if qp == 1] == users
    words = b"".join(data for qp, data, _ in board.peer.received if qp == 2)
    assert len(words) == 8 * 777
    slots = [imm for qp, _, imm in board.peer.received if qp == 0]
    assert slots == list(range(len(events)))
    for slot, fragment in enumerate(events):
        whole, at = fragment.message(SOURCE), base_of(0) + slot * SLOT_BYTES
        assert board.peer.memory[at : at + len(whole)] == whole, f"event {fragment.event}"
    assert await board.count("event_messages") == len(events)
    for i in range(INPUTS):
        empty = sum(not e.parts[i].data for e in events)
        assert await setup.counts(i) == {"merged": len(events)} | ({"empty": empty} if empty else {})
    assert await setup.counts(15) == {}, "an input that the build does not have"


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def each_event_goes_to_the_live_server_that_its_number_names(dut):
    rng = seed()
    setup = await prepare(dut, rng, qps=(1, 3), by_event=1)
    for row, qp in enumerate((3, 1)):
        await setup.board.registers.write("server.entry", 1 << 8 | qp, row)
    await setup.board.registers.write_fields("destination.control", commit=1)
    while await setup.board.field("destination.status", "busy", 0):
        pass
    events = [random_event(rng, number) for number in range(100, 124)]
    for fragment in events:
        feed(setup, fragment)
    found = [await setup.message() for _ in events]
    by_tag = {tag & 0xFFFFFF: (qp, data) for qp, tag, data in found}
    for fragment in events:
        qp, data = by_tag[fragment.event]
        whole = fragment.message(SOURCE)
        assert qp == (3, 1)[fragment.event % 2]
        assert data[: len(whole)] == whole


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def what_goes_wrong_at_one_input_is_marked_and_counted_and_the_rest_is_whole(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    send, last = setup.detector.send, INPUTS - 1
    rest = range(last)
    long, beat = rng.randbytes(1500), setup.detector.lanes
    whole = {i: Part(i, rng.randbytes(200)) for i in range(INPUTS)}

    def all_but_last(number: int, **raw: int) -> None:
        for i in rest:
            send(i, Raw(number, whole[i].data, **raw))

    feed(setup, event(10, whole))
    await setup.expect(event(10, whole))
    if rest:
        all_but_last(11)
        await setup.expect(event(11, {i: whole[i] for i in rest}))
        send(last, Raw(11, b"too late"), Raw(12, b"in time", trigger_type=9))
        all_but_last(12)
        marked = {**whole, last: Part(last, b"in time", DROPPED | TRIGGER_DIFFERS)}
        await setup.expect(event(12, marked))
        assert await setup.counts(last) == {"merged": 2, "missing": 1, "duplicate": 1}
    else:
        send(last, Raw(10, b"again"), Raw(12, b"next"))
        await setup.expect(event(12, {last: Part(last, b"next", DROPPED)}))
        assert await setup.counts(last) == {"merged": 2, "duplicate": 1}
    await setup.board.registers.write_fields("command", clear=1)
    assert await setup.counts(last) == {}

    send(last, Raw(13, long))  # longer than the limit
    all_but_last(13)
    await setup.expect(event(13, {**whole, last: Part(last, long[:1024], CUT)}))
    send(last, Raw(14, long[:400], stops_after=2))
    all_but_last(14)
    await setup.expect(event(14, {**whole, last: Part(last, long[: 2 * beat], STOPPED)}))
    setup.detector.go_on(last)
    send(last, Raw(9, b"gone by"), Raw(15, b""))
    all_but_last(15)
    await setup.expect(event(15, {**whole, last: Part(last, b"", DROPPED)}))
    assert await setup.counts(last) == {"merged": 3, "cut": 1, "stopped": 1, "empty": 1, "late": 1}
    for i in rest:
        assert await setup.counts(i) == {"merged": 3}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_reset_of_one_input_costs_the_rest_of_its_fragment_and_no_later_event(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    last, beats = INPUTS - 1, 5
    whole = {i: Part(i, rng.randbytes(beats * setup.detector.lanes)) for i in range(INPUTS)}
    cuts = [beats, 0, 1, beats, 4, None]  # beats of the last input before its reset, of each event
    for number, cut in enumerate(cuts, 20):
        for i in range(last):
            setup.detector.send(i, Raw(number, whole[i].data))
        setup.detector.send(last, Raw(number, whole[last].data, reset_after=cut))
    for number, cut in enumerate(cuts, 20):
        parts = dict(whole)
        if cut == 0:
            if not last:
                continue  # no input has seen this event
            del parts[last]
        elif cut is not None and cut < beats:
            parts[last] = Part(last, whole[last].data[: cut * setup.detector.lanes], STOPPED)
        await setup.expect(event(number, parts))
    missing = {"missing": 1} if last else {}
    assert await setup.counts(last) == {"merged": 5, "stopped": 2, "broken": 2} | missing
    for i in range(last):
        assert await setup.counts(i) == {"merged": 6}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_wrong_number_costs_its_own_fragment_and_no_later_one(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    last = INPUTS - 1
    assert await setup.board.registers.read("events.jump") == 16
    whole = {i: Part(i, rng.randbytes(50)) for i in range(INPUTS)}
    for number in (1000, 1001, 1002, 1003):
        for i in range(INPUTS):
            setup.detector.send(i, Raw(number ^ (number == 1001 and i == last) << 16, whole[i].data))
    await setup.expect(event(1000, whole))
    if last:
        await setup.expect(event(1001, {i: whole[i] for i in range(last)}))
    await setup.expect(event(1002, {**whole, last: Part(last, whole[last].data, DROPPED)}))
    await setup.expect(event(1003, whole))
    missing = {"missing": 1} if last else {}
    assert await setup.counts(last) == {"merged": 3, "jumped": 1} | missing


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def numbers_begin_again_after_resync_and_not_before(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    first, again = random_event(rng, 1000), random_event(rng, 3)
    feed(setup, first)
    await setup.expect(first)
    feed(setup, random_event(rng, 2))
    while (await setup.counts(INPUTS - 1)).get("late") != 1:
        await Timer(1, "us")
    await setup.board.registers.write_fields("events.command", resync=1)
    for i, part in enumerate(again.parts):
        part.flags = DROPPED
        setup.detector.send(i, Raw(3, part.data))
    await setup.expect(again)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_input_that_is_not_enabled_has_no_part_is_not_waited_for_and_not_taken(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    await setup.board.registers.write("events.enable", 1)
    await setup.board.registers.write("events.timeout", 0xFFFFFFFF)
    data = rng.randbytes(500)
    for i in range(INPUTS):
        setup.detector.send(i, Raw(5, data))
    await setup.expect(event(5, {0: Part(0, data)}, enabled=[0]))
    assert await setup.counts(0) == {"merged": 1}
    for i in range(1, INPUTS):
        assert await setup.counts(i) == {}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_event_longer_than_the_build_holds_is_cut_and_the_next_is_whole(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    await setup.board.registers.write("events.limit", 0x80000000)
    long = rng.randbytes(EVENT_BYTES + 900)
    parts = {0: Part(0, long[:EVENT_BYTES], CUT)}
    lanes = setup.detector.lanes
    for i in range(1, INPUTS):
        parts[i] = Part(i, long[:lanes], CUT)  # a beat of each other one still fits
    for i in range(INPUTS):
        setup.detector.send(i, Raw(1, long))
    await setup.expect(event(1, parts))
    after = random_event(rng, 2)
    feed(setup, after)
    await setup.expect(after)
    assert len(padded(long[:lanes])) == lanes


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def with_the_hook_on_an_input_has_what_the_model_of_zero_suppression_makes_of_its_samples(dut):
    rng = seed()
    setup = await prepare(dut, rng)
    registers, columns, rows, hold = setup.board.registers, setup.detector.lanes // 2, 2, 3
    assert await registers.read("events.stages") == 1
    table = drawn_table(rng, columns, rows, 0.1)
    last = INPUTS - 1
    for index, (pedestal, threshold) in enumerate(table):
        word = pedestal | (threshold & 0xFFFF) << 16
        block, place = divmod(512 * last + index, 32)
        await registers.write(f"hook_block.word{place}", word, block)
    await registers.write_fields("events.hook_rows", hold=hold, rows=rows)
    await registers.write_fields("events.hook", enable=1 << last)  # the others pass unchanged
    words = kept = 0
    for number in range(6):
        payload = drawn_payload(rng, rng.choice([0, 40, 513, 900]))
        short = suppressed(payload, table, columns, hold)
        words += -(-len(payload) // 8)
        kept += (len(short) - 8) // 8 - -(-len(payload) // 512)
        parts = {i: Part(i, rng.randbytes(100)) for i in range(last)}
        feed(setup, event(number, {**parts, last: Part(last, payload)}))
        await setup.expect(event(number, {**parts, last: Part(last, short)}))
    found = [await registers.read(f"event_input.{name}", last) for name in ("words", "words_kept")]
    assert found == [words, kept] and 0 < kept < words
