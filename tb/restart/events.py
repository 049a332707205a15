# SPDX-License-Identifier: Apache-2.0
"""A front end with detector inputs: resets of each input with its digitiser, and of the front end alone.

Inputs make the events, with the rings in an AXI4 memory that is not reset; or triggers make them.
"""

import os
import random
import struct

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from lib import structs
from lib.board import Board, start
from lib.detector import Detector, Raw
from lib.event_board import SLOT_BYTES, base_of, configure
from lib.fragment import crc32c
from lib.rc_peer import Flow, Peer
from lib.runner import seed

INPUTS = 4
PARAMETERS = {"N_QP": 4, "RING_BYTES": 65536, "SLOTS": 64, "N_IN": INPUTS, "EVENT_BYTES": 4096, "HOOK": 1, "STORE": 1}
TIMED = "PARAM_TIMING" in os.environ
CLEAN = 3  # events without a reset
TABLES = 300  # cycles in which tables clear themselves
HEAD, ENTRY, TAIL = "<4sHHQQH6x", "<BxHII4x", "<IBxH4sI"


def samples(number: int, event: int) -> bytes:
    """What the digitiser at this input gives for this event."""
    rng = random.Random(f"{number}, {event}")
    return rng.randbytes(rng.choice([1, 8, 63, 64, 300, 900]))


class Witness(Peer):
    """A peer that is not reset. It compares all samples of each event with those of its number."""

    def __init__(self, dut, expected: dict[int, int]):
        super().__init__(dut, expected)
        self.cable.forgives_damage = True  # of frames that a reset cuts
        self.flags: dict[int, int] = {}  # of each event that has come

    def accept(self, flow: Flow, packet, extended: bytes) -> None:
        before = len(self.received)
        super().accept(flow, packet, extended)
        if len(self.received) > before:
            begin = base_of(0) + self.received[-1][2] * SLOT_BYTES
            self.compare(bytes(self.memory[begin : flow.cursor]))

    def compare(self, message: bytes) -> None:
        size, parts, flags, magic, crc = struct.unpack(TAIL, message[-struct.calcsize(TAIL) :])
        event = struct.unpack(HEAD, message[: struct.calcsize(HEAD)])[3]
        assert magic == b"PSTE" and crc == crc32c(message[:-4]), f"event {event} is damaged"
        table = message[-struct.calcsize(TAIL) - parts * struct.calcsize(ENTRY) : -struct.calcsize(TAIL)]
        payload = message[struct.calcsize(HEAD) :][:size]
        for number, part_flags, offset, length in struct.iter_unpack(ENTRY, table):
            found, given = payload[offset : offset + length], samples(number, event)
            right = given.startswith(found) if part_flags else given == found
            assert right, f"event {event}: the part of input {number}, flags {part_flags}, has other samples"
        self.flags[event] = flags


class Source:
    """Numbers of events, and the fragments of their inputs. Where triggers make events, those of the accepted ones."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.number, self.resets = dut, rng, 0, 0.0
        self.detector = Detector(dut, INPUTS, rng, 0.1)
        self.detector.start([rng.randrange(2000, 12000) for _ in range(INPUTS)])
        self.accepted: list[int] = []
        if TIMED:
            for name in ("trigger_valid", "trigger_number", "trigger_type", "trigger_veto", "pps", "clk_10mhz"):
                getattr(dut, name).value = 0
            dut.m_axis_trigger_tready.value = 1
            cocotb.start_soon(self.answer())

    async def begin(self, board: Board) -> None:
        """What software sets after each reset."""
        await configure(board, INPUTS)
        if TIMED:
            await board.registers.write_fields("timing.control", veto=0, own_numbers=0, discipline=1, ten_mhz=0)

    async def answer(self) -> None:
        """Each accepted trigger reaches the digitisers."""
        while True:
            await RisingEdge(self.dut.clk)
            if self.dut.m_axis_trigger_tvalid.value and not self.dut.rst.value:
                self.give(structs.unpack("fragment_t", int(self.dut.m_axis_trigger_tdata.value))["event_number"])

    def give(self, number: int) -> None:
        """This event at all inputs; this share of the fragments ends with a reset of its input, after any beat."""
        self.accepted.append(number)
        for i in range(INPUTS):
            data = samples(i, number)
            beats = None
            if self.rng.random() < self.resets:
                beats = self.rng.randrange(-(-len(data) // self.detector.lanes) + 1)
            self.detector.send(i, Raw(number, data, reset_after=beats))

    async def send(self, count: int, resets: float) -> list[int]:
        """So many events; which of them are made."""
        self.resets, before = resets, len(self.accepted)
        for _ in range(count):
            if TIMED:
                await FallingEdge(self.dut.clk)
                self.dut.trigger_valid.value, self.dut.trigger_number.value = 1, self.number
                await FallingEdge(self.dut.clk)
                self.dut.trigger_valid.value = 0
                await ClockCycles(self.dut.clk, self.rng.randrange(20, 400))
            else:
                self.give(self.number)
            self.number += 1
        return self.accepted[before:]


@cocotb.test(timeout_time=3, timeout_unit="ms", skip="PARAM_N_IN" not in os.environ)
async def resets_of_inputs_and_front_end_give_no_event_the_samples_of_another(dut):
    rng = seed()
    source = Source(dut, rng)
    board = await start(dut, {0: 0}, Witness)
    flags = board.peer.flags
    for _ in range(6):
        await source.begin(board)
        await source.send(12, resets=0.15)
        clean = await source.send(CLEAN, resets=0)
        while len(clean) < CLEAN:  # not while it is busy
            clean += await source.send(1, resets=0)
        while clean[-1] not in flags:
            await ClockCycles(dut.clk, 100)
        assert [flags.get(number) for number in clean] == [0] * len(clean), "an event after the resets is not whole"
        await source.send(12, resets=0.15)
        await ClockCycles(dut.clk, rng.randrange(3000))
        dut.rst.value = 1
        await ClockCycles(dut.clk, rng.randrange(1, 8))
        dut.rst.value = 0
        board.completions.clear()
        await ClockCycles(dut.clk, TABLES)
        board.first_psn[0] = rng.getrandbits(24)
        board.peer.flows[0] = Flow(board.first_psn[0])
        await board.set_up()
    dut._log.info(f"{len(flags)} events, {sum(map(bool, flags.values()))} of them not whole")
    assert any(flags.values())
