# SPDX-License-Identifier: Apache-2.0
"""Busy stops triggers before the event buffer is full while a server is slow, and nothing is lost without a count."""

import itertools
from collections import Counter
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.fragment import Fragment, Part
from lib.runner import Bench, seed

BEATS = 16
BENCH = Bench(
    top="trigger_busy_bench",
    configs=[{"BEATS": BEATS}],
    sources=[Path(__file__).parent / "trigger_busy_bench.sv"],
)
SIZE = 4 + 2 * BEATS + 2 * 2 + 2  # beats of a message: header, payload, two entries of the table, trailer
STORE = 1024  # beats
STEP = max(SIZE, STORE // 16)  # by which an event fills it
CFG = {
    "ring_high": 900, "ring_low": 500, "event_high": STORE - STEP, "event_low": STORE // 2, "event_size": STEP,
    "veto": 0, "own_numbers": 0, "dead_time": 0, "gate": 0,
}  # fmt: skip


def samples(event: int, number: int) -> bytes:
    """What the digitiser of input `number` sends."""
    return b"".join((event << 32 | number << 16 | left).to_bytes(8, "little") for left in range(BEATS, 0, -1))


class Harness:
    def __init__(self, dut, **cfg: int):
        self.dut = dut
        self.cfg = CFG | cfg
        self.triggers: Counter[str] = Counter()
        self.inputs: Counter[str] = Counter()
        self.accepted: list[int] = []
        self.shown: list[int] = []
        self.held = self.highest = 0

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("trigger_valid", "trigger_number", "ring_fill", "tai_ns"):
            getattr(dut, name).value = 0
        dut.trigger_cfg.value = structs.pack("trigger_cfg_t", **self.cfg)
        dut.rst.value = 1
        self.desc = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_desc"), dut.clk, dut.rst)
        self.data = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_data"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 5)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 5)
        cocotb.start_soon(self.watch())
        return self

    async def watch(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            stat = structs.unpack("trigger_stat_t", int(self.dut.trigger_stat.value))
            self.triggers.update({name: bit for name, bit in stat.items() if bit})
            if stat["received"]:
                number = self.shown.pop(0)
                if stat["accepted"]:
                    self.accepted.append(number)
            if self.dut.stat_valid.value:
                self.inputs.update(
                    {k: b for k, b in structs.unpack("merger_stat_t", int(self.dut.stat.value)).items() if b}
                )
            self.held += int(self.dut.held.value)
            self.highest = max(self.highest, int(self.dut.event_fill.value))

    async def trigger(self, numbers, every: int) -> None:
        """Triggers that pay no attention to busy."""
        dut = self.dut
        for number in numbers:
            await FallingEdge(dut.clk)
            dut.trigger_valid.value, dut.trigger_number.value = 1, number
            dut.tai_ns.value = 100 * number
            self.shown.append(number)
            await FallingEdge(dut.clk)
            dut.trigger_valid.value = 0
            await ClockCycles(dut.clk, every - 2)

    async def events(self) -> list[int]:
        """Numbers of the messages that have left, each of them whole."""
        found = []
        while not self.desc.empty():
            desc = structs.unpack("desc_t", int.from_bytes((await self.desc.recv()).tdata, "little"))
            message = bytes((await self.data.recv()).tdata)
            assert desc["length"] == len(message) == 8 * SIZE
            number = int.from_bytes(message[8:16], "little")
            parts = [Part(i, samples(number, i)) for i in range(2)]
            assert message == Fragment(number, 100 * number, 3, parts=parts).message(0), f"event {number}"
            found.append(number)
        return found


@cocotb.test()
async def busy_stops_triggers_before_the_store_is_full_while_the_server_is_slow(dut):
    rng = seed()
    h = await Harness(dut).start()
    h.desc.pause = h.data.pause = True  # stands
    await h.trigger(range(150), 40)
    assert dut.busy.value == 1 and h.triggers["busy"] > 50
    h.desc.pause = h.data.pause = False  # slow, then fast
    for sink in (h.desc, h.data):
        sink.set_pause_generator(rng.random() < 0.6 for _ in itertools.count())
    await h.trigger(range(150, 300), 40)
    for sink in (h.desc, h.data):
        sink.clear_pause_generator()
        sink.pause = False
    await ClockCycles(dut.clk, 3000)
    await h.trigger(range(300, 330), 100)
    await ClockCycles(dut.clk, 3000)
    dut._log.info(f"{dict(h.triggers)}, at most {h.highest} of {STORE} beats in the store")
    assert h.held == 0 and STORE - 3 * STEP < h.highest < STORE
    assert h.triggers["received"] == 330 == h.triggers["accepted"] + h.triggers["busy"]
    assert await h.events() == h.accepted and len(h.accepted) == h.triggers["accepted"]
    assert h.inputs == {"merged": 2 * len(h.accepted)}


@cocotb.test()
async def without_busy_the_store_is_full_and_digitisers_are_held(dut):
    """What the thresholds are for: the same triggers with thresholds that are never reached."""
    h = await Harness(dut, event_high=2**31).start()
    h.desc.pause = h.data.pause = True
    await h.trigger(range(60), 60)
    assert h.held > 0 and h.highest >= STORE


@cocotb.test()
async def a_full_ring_is_busy_too_until_it_has_drained(dut):
    h = await Harness(dut).start()
    numbers = itertools.count()
    for fill, accepted in ((0, 1), (899, 1), (900, 0), (700, 0), (501, 0), (500, 1), (800, 1)):
        dut.ring_fill.value = fill
        await ClockCycles(dut.clk, 2)
        before = h.triggers["accepted"]
        await h.trigger([next(numbers)], 100)
        assert h.triggers["accepted"] - before == accepted, f"at a fill of {fill}"
    await ClockCycles(dut.clk, 500)
    assert await h.events() == h.accepted == [0, 1, 5, 6]
