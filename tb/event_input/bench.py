# SPDX-License-Identifier: Apache-2.0
"""Whatever reset comes, of either side and when: a fragment arrives as sent, or is marked as broken and counted."""

import os
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, Timer
from lib import structs
from lib.runner import Bench, seed

BENCH = Bench(top="event_input", configs=[{"DATA_W": 64}, {"DATA_W": 512}])
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
FULL = (1 << LANES) - 1
Beat = tuple[int, int]  # data, which identify fragment and place, and keep


def beats_of(number: int, length: int) -> list[Beat]:
    """The beats of a fragment of this many bytes."""
    keeps = [FULL] * (length // LANES)
    if length % LANES or not length:
        keeps.append((1 << length % LANES) - 1)
    return [(number << 32 | at, keep) for at, keep in enumerate(keeps)]


@dataclass
class Input:
    """Both sides of the input. Each is a task that drives its side at random, and resets it with some probability."""

    dut: object
    rng: object
    s_resets: float = 0.0  # in a cycle
    m_resets: float = 0.0
    eager: float = 0.9  # how often the reader takes a beat
    stream: bool = False
    sent: dict[int, list[Beat]] = field(default_factory=dict)
    accepted: dict[int, int] = field(default_factory=dict)  # beats of each, of which one was
    arrived: list[tuple[int, list[Beat], bool]] = field(default_factory=list)
    beats: list[int] = field(default_factory=list)  # data of all that arrived
    counted: int = 0  # by the input, as broken
    clocks: list = field(default_factory=list)

    async def start(self, s_period: int, m_period: int) -> "Input":
        dut = self.dut
        dut.s_axis_tvalid.value = dut.m_axis_tready.value = 0
        dut.streaming.value = self.stream
        dut.s_rst.value = dut.m_rst.value = 1
        for signal, period in ((dut.s_clk, s_period), (dut.m_clk, m_period)):
            self.clocks.append(cocotb.start_soon(Clock(signal, period // 2 * 2, "ps").start()))
        await Timer(30 * max(s_period, m_period), "ps")
        dut.s_rst.value = dut.m_rst.value = 0
        await Timer(30 * max(s_period, m_period), "ps")
        self.clocks.append(cocotb.start_soon(self.read()))
        return self

    def stop(self) -> None:
        for task in self.clocks:
            task.cancel()

    async def send(self, number: int, length: int, stops_after: int | None = None) -> None:
        """One fragment; a reset of this side ends it, and so does `stops_after` beats."""
        dut, rng = self.dut, self.rng
        self.sent[number] = beats = beats_of(number, length)
        user = structs.pack("fragment_t", event_number=number, timestamp_ns=7 * number, trigger_type=number & 0xFFFF)
        await FallingEdge(dut.s_clk)
        for at, (data, keep) in enumerate(beats):
            if at == stops_after:
                return
            dut.s_axis_tdata.value, dut.s_axis_tkeep.value = data, keep
            dut.s_axis_tuser.value = user if at == 0 else rng.getrandbits(144)
            dut.s_axis_tlast.value = at == len(beats) - 1 and not self.stream
            taken = False
            while not taken:
                resets = rng.random() < self.s_resets
                dut.s_rst.value, dut.s_axis_tvalid.value = resets, rng.random() < 0.8
                await ReadOnly()
                taken = bool(dut.s_axis_tvalid.value and dut.s_axis_tready.value)
                await FallingEdge(dut.s_clk)
                dut.s_axis_tvalid.value = 0
                if resets:
                    assert not taken, "accepted in reset"
                    for _ in range(rng.choice([0, 0, 1, 9])):
                        await FallingEdge(dut.s_clk)
                    dut.s_rst.value = 0
                    return
            self.accepted[number] = at + 1

    async def read(self) -> None:
        dut, rng = self.dut, self.rng
        beats: list[Beat] = []
        number = 0
        while True:
            await FallingEdge(dut.m_clk)
            resets = rng.random() < self.m_resets
            dut.m_rst.value, dut.m_axis_tready.value = resets, rng.random() < self.eager
            await ReadOnly()
            self.counted += int(dut.stat_broken.value) and not resets
            if resets:
                beats = []
            elif dut.m_axis_tvalid.value and dut.m_axis_tready.value:
                self.beats.append(int(dut.m_axis_tdata.value))
                if not beats:
                    about = structs.unpack("fragment_t", int(dut.m_axis_tuser.value))
                    number = about["event_number"]
                    assert self.stream or (about["timestamp_ns"], about["trigger_type"]) == (
                        7 * number,
                        number & 0xFFFF,
                    )
                broken = bool(dut.m_axis_tbroken.value)
                if broken:
                    assert dut.m_axis_tlast.value and not dut.m_axis_tkeep.value, "what a broken fragment ends with"
                else:
                    beats.append((int(dut.m_axis_tdata.value), int(dut.m_axis_tkeep.value)))
                if dut.m_axis_tlast.value:
                    self.arrived.append((number, beats, broken))
                    beats = []

    async def until(self, number: int) -> None:
        """Until this fragment has arrived; the input is locked if it does not."""
        for _ in range(4000):
            if self.arrived and self.arrived[-1][0] == number:
                return
            await FallingEdge(self.dut.m_clk)
        raise AssertionError(f"fragment {number} has not arrived; the last was {self.arrived[-1:]}")

    def check(self) -> None:
        """That every fragment is what was sent, in order, and every one that is not whole is marked."""
        numbers = [number for number, *_ in self.arrived]
        assert numbers == sorted(set(numbers)), f"order of {numbers}"
        for number, beats, broken in self.arrived:
            sent = self.sent.get(number)
            assert sent is not None, f"fragment {number} that nobody sent"
            expected = sent[: len(beats)] if broken else sent
            assert beats == expected, f"fragment {number}, broken {broken}: {beats} where {expected} was sent"
            assert len(beats) < len(sent) or not broken


def lengths(rng) -> int:
    return rng.choice([0, 1, LANES, LANES + 3, 5 * LANES, 9 * LANES + 1, 40 * LANES])


async def history(dut, rng, **resets: float) -> Input:
    """Fragments amid resets, and three more when those are over, which arrive whole."""
    way = await Input(dut, rng, eager=rng.choice([0.2, 0.6, 1.0]), **resets).start(
        rng.randrange(800, 9000), rng.randrange(800, 9000)
    )
    last = rng.randrange(20, 40)
    for number in range(1, last):
        await way.send(number, lengths(rng))
    way.s_resets = way.m_resets = 0.0
    for _ in range(40):  # the last reset has been seen on both sides
        await FallingEdge(dut.m_clk)
        await FallingEdge(dut.s_clk)
    for number in range(last, last + 3):
        await way.send(number, lengths(rng))
    await way.until(last + 2)
    for _ in range(3):
        await FallingEdge(dut.m_clk)
    way.stop()
    way.check()
    assert [(number, broken) for number, _, broken in way.arrived[-2:]] == [(last + 1, False), (last + 2, False)]
    return way


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def a_reset_of_the_detector_alone_breaks_the_fragment_under_way_and_no_other(dut):
    rng = seed()
    broken = 0
    for _ in range(12):
        way = await history(dut, rng, s_resets=0.02)
        for number, beats, is_broken in way.arrived:
            assert len(beats) == way.accepted[number], f"fragment {number}: beats lost"
            assert is_broken == (way.accepted[number] < len(way.sent[number]))
        assert [number for number, *_ in way.arrived] == list(way.accepted), "fragments lost"
        assert way.counted == sum(is_broken for *_, is_broken in way.arrived)
        broken += way.counted
    assert broken > 20


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def a_reset_of_the_front_end_alone_drops_the_rest_of_the_fragment_under_way(dut):
    rng = seed()
    counted = arrived = 0
    for _ in range(12):
        way = await history(dut, rng, m_resets=0.004)
        assert not any(broken for *_, broken in way.arrived), "the detector was not reset"
        counted += way.counted
        arrived += len(way.arrived)
    assert counted > 5 and arrived > 100


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def resets_of_both_sides_at_any_moments_make_up_nothing_and_lock_nothing(dut):
    rng = seed()
    for _ in range(20):
        await history(dut, rng, s_resets=rng.choice([0.01, 0.05]), m_resets=rng.choice([0.002, 0.02]))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_rest_of_a_fragment_is_counted_once_after_a_reset_of_the_front_end(dut):
    rng = seed()
    way = await Input(dut, rng, eager=0.0).start(4000, 3000)
    sending = cocotb.start_soon(way.send(1, 60 * LANES))
    while dut.m_axis_tvalid.value == 0:
        await FallingEdge(dut.m_clk)
    way.m_resets = 1.0
    await FallingEdge(dut.m_clk)
    way.m_resets, way.eager = 0.0, 1.0
    await sending
    await way.send(2, 3 * LANES)
    await way.until(2)
    await FallingEdge(dut.m_clk)
    way.stop()
    way.check()
    assert [number for number, *_ in way.arrived] == [2] and way.counted == 1


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def an_endless_stream_passes_beat_by_beat_through_resets_of_its_source(dut):
    rng = seed()
    way = await Input(dut, rng, s_resets=0.02, stream=True).start(4000, 3000)
    for number in range(1, 20):
        await way.send(number, 10 * LANES)
    while len(way.beats) < sum(way.accepted.values()):
        await FallingEdge(dut.m_clk)
    way.stop()
    assert way.beats == [number << 32 | at for number, beats in way.accepted.items() for at in range(beats)]
    assert not way.counted
