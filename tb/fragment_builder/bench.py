# SPDX-License-Identifier: Apache-2.0
"""Every fragment leaves as a message of the documented format, for any length, gaps and back-pressure."""

import itertools
import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.fragment import CUT, Fragment, Part
from lib.runner import Bench, seed

BENCH = Bench(
    top="fragment_builder",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}, {"DATA_W": 64, "TABLE": 1}, {"DATA_W": 512, "TABLE": 1}],
)
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
TABLE = bool(int(os.environ.get("PARAM_TABLE", "0")))
SOURCE = 0xBEEF
LIMIT = 4096
FIRST_BYTE_CYCLES = 60


class Driver:
    """The detector: beats of fragments, and entries of tables after their payloads."""

    def __init__(self, dut, rng, stall: float) -> None:
        self.dut, self.rng, self.stall = dut, rng, stall

    async def beat(self, valid, ready) -> None:
        valid.value = 1
        while True:
            await ReadOnly()
            taken = ready.value
            await FallingEdge(self.dut.clk)
            if taken:
                break
        valid.value = 0
        while self.rng.random() < self.stall:
            await FallingEdge(self.dut.clk)

    async def send(self, about: Fragment, data: bytes, lanes: int = LANES) -> None:
        dut = self.dut
        user = structs.pack(
            "fragment_t",
            event_number=about.event,
            timestamp_ns=about.timestamp_ns,
            trigger_type=about.trigger_type,
        )
        pieces = [data[at : at + lanes] for at in range(0, len(data), lanes)] or [b""]
        for number, piece in enumerate(pieces):
            dut.s_axis_tdata.value = int.from_bytes(piece + self.rng.randbytes(lanes - len(piece)), "little")
            dut.s_axis_tkeep.value = (1 << len(piece)) - 1
            dut.s_axis_tlast.value = number == len(pieces) - 1
            dut.s_axis_tuser.value = user if number == 0 else self.rng.getrandbits(144)
            await self.beat(dut.s_axis_tvalid, dut.s_axis_tready)
        if TABLE:
            await self.table(about.parts)

    async def table(self, parts: list[Part]) -> None:
        dut, offset = self.dut, 0
        for number, part in enumerate(parts):
            offset += -offset % 8
            flags = {name: bool(part.flags >> bit & 1) for bit, name in enumerate(FLAGS)}
            flags = {f"flags__{name}": int(value) for name, value in flags.items()}
            dut.s_axis_part_tdata.value = structs.pack(
                "part_t", number=part.number, offset=offset, length=len(part.data), **flags
            )
            dut.s_axis_part_tlast.value = number == len(parts) - 1
            offset += len(part.data)
            await self.beat(dut.s_axis_part_tvalid, dut.s_axis_part_tready)


FLAGS = ["missing", "cut", "stopped", "dropped", "trigger_differs"]


async def start(dut, rng, stall: float = 0.0):
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    dut.rst.value = 1
    dut.s_axis_tvalid.value = dut.s_axis_part_tvalid.value = 0
    dut.source_id.value, dut.limit.value = SOURCE, LIMIT
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    if stall:
        sink.set_pause_generator(rng.random() < stall for _ in itertools.count())
    await ClockCycles(dut.clk, 4)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    return Driver(dut, rng, stall), sink


def some(rng, event: int, length: int) -> tuple[Fragment, bytes]:
    """A fragment of about this number of payload bytes, with parts if there is a table."""
    about = Fragment(event, rng.getrandbits(64), rng.getrandbits(16))
    if not TABLE:
        about.payload = rng.randbytes(length)
        return about, about.payload
    numbers = sorted(rng.sample(range(16), rng.randint(1, 16)))
    data = b""
    for number in numbers:
        part = Part(number, rng.randbytes(rng.randint(0, max(length // len(numbers), 1))), rng.getrandbits(5))
        data += bytes(-len(data) % 8) + part.data if part.data else b""
        about.parts.append(part)
    return about, data


async def compare(dut, sink, sent: list[Fragment]) -> None:
    for about in sent:
        got = bytes((await sink.recv()).tdata)
        expected = about.message(SOURCE)
        assert got == expected, f"event {about.event}\n got {got.hex()}\nwant {expected.hex()}"
    await ClockCycles(dut.clk, 30)
    assert sink.empty()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def every_length_makes_the_message_of_the_format(dut):
    rng = seed()
    driver, sink = await start(dut, rng)
    sent = []
    for length in range(3 * LANES + 2):
        about, data = some(rng, length, length)
        sent.append(about)
        await driver.send(about, data)
    await compare(dut, sink, sent)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def random_fragments_survive_gaps_and_back_pressure(dut):
    rng = seed()
    driver, sink = await start(dut, rng, 0.3)
    sent = []
    for _ in range(120):
        about, data = some(rng, rng.getrandbits(64), rng.choice([0, 1, 7, 64, 65, 300, 2000]))
        sent.append(about)
        await driver.send(about, data)
    await compare(dut, sink, sent)


async def counted(dut, counts: dict[str, int]) -> None:
    while True:
        await RisingEdge(dut.clk)
        for name in counts:
            counts[name] += int(getattr(dut, f"stat_{name}").value)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def length_and_event_leave_with_the_last_beat_and_messages_are_counted(dut):
    rng = seed()
    driver, sink = await start(dut, rng, 0.2)
    counts = {"message": 0, "cut": 0, "empty": 0}
    cocotb.start_soon(counted(dut, counts))
    sent, ends = [], []

    async def watch():
        while True:
            await RisingEdge(dut.clk)
            if dut.m_axis_tvalid.value and dut.m_axis_tready.value and dut.m_axis_tlast.value:
                ends.append((int(dut.event_number.value), int(dut.length.value)))

    cocotb.start_soon(watch())
    for event in range(40):
        about, data = some(rng, event, rng.randint(1, 200))
        sent.append(about)
        await driver.send(about, data)
    await compare(dut, sink, sent)
    assert ends == [(about.event, len(about.message(SOURCE))) for about in sent]
    assert counts["message"] == 40 and counts["cut"] == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_empty_fragment_is_a_message_without_payload_and_is_counted(dut):
    rng = seed()
    driver, sink = await start(dut, rng)
    counts = {"empty": 0}
    cocotb.start_soon(counted(dut, counts))
    sent = [Fragment(event, parts=[Part(3, b"")] if TABLE else []) for event in range(3)]
    for about in sent:
        await driver.send(about, b"")
    await compare(dut, sink, sent)
    assert counts == {"empty": 3}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_stream_that_does_not_end_is_cut_at_the_limit_and_the_next_fragment_is_whole(dut):
    rng = seed()
    driver, sink = await start(dut, rng)
    counts = {"cut": 0}
    cocotb.start_soon(counted(dut, counts))
    data = rng.randbytes(3 * LIMIT)
    cut = Fragment(1, payload=data[:LIMIT], flags=CUT)
    whole = Fragment(2, payload=rng.randbytes(LIMIT))
    if TABLE:
        cut = Fragment(1, parts=[Part(0, data[:LIMIT])], flags=CUT)
        whole = Fragment(2, parts=[Part(0, whole.payload)])
        cocotb.start_soon(driver.table(cut.parts))  # it comes when the payload has ended, whatever else the stream does
        cut.parts, table = [], cut.parts
    driver_task = cocotb.start_soon(send_alone(driver, cut, data))
    await driver_task
    cut.parts = table if TABLE else []
    await driver.send(whole, whole.payload or whole.parts[0].data)
    await compare(dut, sink, [cut, whole])
    assert counts == {"cut": 1}


async def send_alone(driver, about: Fragment, data: bytes) -> None:
    """Without its table, which comes by itself."""
    global TABLE
    table, TABLE = TABLE, False
    await driver.send(about, data)
    TABLE = table


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_first_byte_leaves_while_the_fragment_still_comes_and_no_cycle_is_lost(dut):
    rng = seed()
    driver, sink = await start(dut, rng)
    beats = LIMIT // LANES
    cycles = {}

    async def watch():
        cycle = busy = 0
        while "end" not in cycles:
            await RisingEdge(dut.clk)
            cycle += 1
            if dut.s_axis_tvalid.value:
                cycles.setdefault("in", cycle)
            if dut.m_axis_tvalid.value:
                cycles.setdefault("out", cycle)
                busy += 1
                if dut.m_axis_tlast.value:
                    cycles["end"], cycles["busy"] = cycle, busy

    task = cocotb.start_soon(watch())
    about = Fragment(9, payload=rng.randbytes(LIMIT))
    if TABLE:
        about = Fragment(9, parts=[Part(0, about.payload)])
    await driver.send(about, about.payload or about.parts[0].data)
    await task
    latency = cycles["out"] - cycles["in"]
    dut._log.info("first sample in to first byte out: %d cycles", latency)
    assert latency < FIRST_BYTE_CYCLES and latency < beats
    # The last beat waits for its CRC, and the input for header, table and trailer.
    assert cycles["end"] - cycles["out"] + 1 - cycles["busy"] <= 8
    await compare(dut, sink, [about])
