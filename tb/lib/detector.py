# SPDX-License-Identifier: Apache-2.0
"""A detector at the inputs of a front end: several streams of fragments, each on its own clock.

The inputs' ports are wide: input i has bit i of the single ones. Each stream is one task that moves its bits of all.
"""

import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import Timer

from lib import structs


@dataclass
class Raw:
    """A fragment as a detector gives it."""

    event: int
    data: bytes
    trigger_type: int = 1
    timestamp_ns: int | None = None  # event * 100, if nothing else is said
    stops_after: int | None = None  # beats, then the stream is silent until `Detector.go_on`

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
    queues: list[deque[Raw]] = field(default_factory=list)
    stopped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lanes = len(self.dut.s_axis_event_tkeep) // self.inputs
        self.queues = [deque() for _ in range(self.inputs)]
        self.words = dict.fromkeys(("clk", "rst", "tdata", "tkeep", "tuser", "tlast", "tvalid"), 0)
        for number in range(self.inputs):
            self.put(number, clk=0, rst=1, tvalid=0, tdata=0, tkeep=0, tuser=0, tlast=0)

    def start(self, periods_ps: list[int]) -> None:
        for number, period in enumerate(periods_ps):
            cocotb.start_soon(self.run(number, period))

    def send(self, number: int, *fragments: Raw) -> None:
        self.queues[number].extend(fragments)

    def go_on(self, number: int) -> None:
        """Ends the silence of a stream that has stopped within a fragment."""
        self.stopped.discard(number)

    def put(self, number: int, **values: int) -> None:
        for name, value in values.items():
            bits = {"tdata": 8 * self.lanes, "tkeep": self.lanes, "tuser": structs.width("fragment_t")}.get(name, 1)
            mask = ((1 << bits) - 1) << bits * number
            self.words[name] = self.words[name] & ~mask | value << bits * number
            port = f"s_event_{name}" if name in ("clk", "rst") else f"s_axis_event_{name}"
            getattr(self.dut, port).value = self.words[name]

    async def run(self, number: int, period_ps: int) -> None:
        half = period_ps // 2
        await Timer(self.rng.randrange(1, period_ps), "ps")
        for _ in range(20):  # in reset, longer than the front end is
            await self.cycle(number, half)
        self.put(number, rst=0)
        while True:
            if self.queues[number]:
                await self.fragment(number, self.queues[number].popleft(), half)
            else:
                await self.cycle(number, half)

    async def fragment(self, number: int, raw: Raw, half: int) -> None:
        pieces = [raw.data[at : at + self.lanes] for at in range(0, len(raw.data), self.lanes)] or [b""]
        for at, piece in enumerate(pieces):
            if at == raw.stops_after:
                self.stopped.add(number)
            while number in self.stopped or self.rng.random() < self.stall:
                await self.cycle(number, half)
            word, keep = int.from_bytes(piece, "little"), (1 << len(piece)) - 1
            user, last = 0 if at else raw.user(), int(at == len(pieces) - 1)
            self.put(number, tdata=word, tkeep=keep, tuser=user, tlast=last, tvalid=1)
            while not await self.cycle(number, half):
                pass
            self.put(number, tvalid=0)

    async def cycle(self, number: int, half: int) -> bool:
        """One clock cycle up to the falling edge; whether the beat that was shown has been taken."""
        await Timer(half, "ps")
        ready = int(self.dut.s_axis_event_tready.value) >> number & 1
        self.put(number, clk=1)
        await Timer(half, "ps")
        self.put(number, clk=0)
        return bool(ready)
