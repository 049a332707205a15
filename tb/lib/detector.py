# SPDX-License-Identifier: Apache-2.0
"""A detector at the inputs of a front end: several streams of fragments, each on its own clock.

The inputs' ports are wide: input i has bit i of the single-bit ones. Each stream is a task that drives its bits of all
ports. The clocks run in the simulator; a task computes the edges of its clock from its start, and wakes while it has
to send.
"""

import random
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import Event, Timer
from cocotb.utils import get_sim_time

from lib import structs


@dataclass
class Raw:
    """A fragment as a detector gives it."""

    event: int
    data: bytes
    trigger_type: int = 1
    timestamp_ns: int | None = None  # event * 100, if nothing else is said
    stops_after: int | None = None  # beats, then the stream is silent until `Detector.go_on`
    reset_after: int | None = None  # beats, then the input is reset for a cycle, and the rest is never sent

    def user(self) -> int:
        time = self.event * 100 if self.timestamp_ns is None else self.timestamp_ns
        return structs.pack("fragment_t", event_number=self.event, timestamp_ns=time, trigger_type=self.trigger_type)


@dataclass
class Detector:
    """`queues[i]` are the fragments that input i still has to send."""

    dut: object
    inputs: int
    rng: random.Random
    stall: float = 0.0
    queues: list[Queue[Raw]] = field(default_factory=list)
    stopped: dict[int, Event] = field(default_factory=dict)  # streams that are silent within a fragment
    begun_ps: dict[int, int] = field(default_factory=dict)  # when each clock did, at a falling edge
    unsent: int = 0  # fragments of which not every beat has been taken

    def __post_init__(self) -> None:
        self.lanes = len(self.dut.s_axis_event_tkeep) // self.inputs
        self.widths = {"tdata": 8 * self.lanes, "tkeep": self.lanes, "tuser": structs.width("fragment_t")}
        self.queues = [Queue() for _ in range(self.inputs)]
        self.words = dict.fromkeys(("rst", "tdata", "tkeep", "tuser", "tlast", "tvalid"), 0)
        self.dut.s_event_clk.value = 0
        for number in range(self.inputs):
            self.put(number, rst=1, tvalid=0, tdata=0, tkeep=0, tuser=0, tlast=0)

    def start(self, periods_ps: list[int]) -> None:
        for number, period in enumerate(periods_ps):
            cocotb.start_soon(self.run(number, period // 2 * 2))

    def send(self, number: int, *fragments: Raw) -> None:
        for fragment in fragments:
            self.queues[number].put_nowait(fragment)
            self.unsent += 1

    def go_on(self, number: int) -> None:
        """Ends the silence of a stream that has stopped within a fragment."""
        self.stopped.pop(number).set()

    def put(self, number: int, **values: int) -> None:
        for name, value in values.items():
            bits = self.widths.get(name, 1)
            mask = ((1 << bits) - 1) << bits * number
            self.words[name] = self.words[name] & ~mask | value << bits * number
            port = "s_event_rst" if name == "rst" else f"s_axis_event_{name}"
            getattr(self.dut, port).value = self.words[name]

    async def run(self, number: int, period: int) -> None:
        await Timer(self.rng.randrange(1, period), "ps")
        self.begun_ps[number] = round(get_sim_time("ps"))
        Clock(self.dut.s_event_clk[number], period, "ps").start(start_high=False)
        await Timer(20 * period, "ps")  # in reset, longer than the front end is
        self.put(number, rst=0)
        while True:
            raw = await self.queues[number].get()
            await self.falling_edge(number, period)
            await self.fragment(number, raw, period)
            self.unsent -= 1

    async def falling_edge(self, number: int, period: int) -> None:
        """Waits until the clock falls: that is when beats change."""
        since = round(get_sim_time("ps")) - self.begun_ps[number]
        if since % period:
            await Timer(period - since % period, "ps")

    async def fragment(self, number: int, raw: Raw, period: int) -> None:
        """Sends one from a falling edge on, up to another."""
        pieces = [raw.data[at : at + self.lanes] for at in range(0, len(raw.data), self.lanes)] or [b""]
        for at, piece in enumerate(pieces):
            if at == raw.reset_after:
                break
            if at == raw.stops_after:
                self.stopped[number] = Event()
                await self.stopped[number].wait()
                await self.falling_edge(number, period)
            while self.rng.random() < self.stall:
                await Timer(period, "ps")
            word, keep = int.from_bytes(piece, "little"), (1 << len(piece)) - 1
            user, last = 0 if at else raw.user(), int(at == len(pieces) - 1)
            self.put(number, tdata=word, tkeep=keep, tuser=user, tlast=last, tvalid=1)
            while not await self.taken(number, period):
                pass
            self.put(number, tvalid=0)
        if raw.reset_after is not None:
            self.put(number, rst=1)
            await Timer(period, "ps")
            self.put(number, rst=0)

    async def taken(self, number: int, period: int) -> bool:
        """Whether the next rising edge takes the present beat; ends with the following falling edge."""
        before = period // 2 - 1  # ready as it is when the clock rises
        await Timer(before, "ps")
        ready = int(self.dut.s_axis_event_tready.value) >> number & 1
        await Timer(period - before, "ps")
        return bool(ready)
