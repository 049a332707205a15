# SPDX-License-Identifier: Apache-2.0
"""Commands of software reach the streams of TCP: an abort waits for no opening and for no answer of ARP, an opening of
an aborted stream is not made, and every other one is, once, to its receiver. A receiver that does not answer is looked
for again."""

import os
import random
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib.runner import Bench, seed
from lib.structs import pack

BENCH = Bench(top="tcp_opener", configs=[{"N_STREAMS": n, "CLK_KHZ": 4} for n in (1, 4)])
N = int(os.environ.get("PARAM_N_STREAMS", "4"))
ALONE = N == 1
# From a pulse on until its abort is offered, and an opening of the stream is not any more.
SOON = 3


@dataclass
class Receiver:
    """Where a stream goes; software has left its MAC address to ARP, or not."""

    mac: int
    ip: int
    port: int
    by_arp: bool

    def words(self) -> list[int]:
        mac = 0 if self.by_arp else self.mac
        return [mac >> 32, mac & 0xFFFF_FFFF, self.ip, self.port]


class Bed:
    """The table, ARP and the streams around the module. Each side waits as long as the test says."""

    def __init__(self, dut, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.receivers = [
            Receiver(rng.getrandbits(48) | 1, rng.getrandbits(32), rng.getrandbits(16), rng.random() < 0.3)
            for _ in range(N)
        ]
        self.takes = {"open": True, "abort": True}  # commands
        self.finds = True
        self.cycle = 0
        self.live = [False] * N
        self.opened: list[int] = []
        self.aborted: list[int] = []
        self.lookups: list[tuple[int, bool]] = []  # address, and whether it is to be fresh
        self.moved: list[int] = []
        self.aborted_at = [None] * N  # cycle of the last pulse, if it was an abort
        self.in_flight: tuple[int, int, bool] | None = None  # cycle of its end, stream, state

    async def start(self) -> "Bed":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("reopen_interval", "opens", "aborts", "reopen", "live", "peer_data", "lookup_ready", "found_valid",
                     "unanswered", "found", "found_mac", "open_ready", "abort_ready"):  # fmt: skip
            getattr(dut, name).value = 0
        dut.secret.value, dut.clean.value, dut.rst.value = self.rng.getrandbits(32), (1 << N) - 1, 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self._run())
        return self

    async def _run(self) -> None:
        dut = self.dut
        requested = None  # the address that ARP looks for
        while True:
            await RisingEdge(dut.clk)
            self.cycle += 1
            if dut.peer_rd.value:
                words = self.receivers[int(dut.peer_stream.value)].words()
                dut.peer_data.value = words[int(dut.peer_word.value)]
            self._commands()
            if dut.lookup_valid.value and dut.lookup_ready.value:
                requested = int(dut.lookup_ip.value)
                self.lookups.append((requested, bool(dut.lookup_fresh.value)))
            dut.lookup_ready.value = requested is None
            dut.found_valid.value = 0
            if requested is not None and self.finds and self.rng.random() < 0.2:
                mac = next(receiver.mac for receiver in self.receivers if receiver.ip == requested)
                dut.found_valid.value, dut.found.value, dut.found_mac.value = 1, 1, mac
                requested = None

    def _commands(self) -> None:
        """What the streams take: one command at a time, the next when its event is over (tcp_sender)."""
        dut = self.dut
        if dut.moved.value:
            stream = int(dut.open_command.value) >> 32
            where = self.receivers[stream]
            assert int(dut.peer.value) == pack("tcp_peer_t", mac=where.mac, ip=where.ip, port=where.port)
            self.moved.append(stream)
        if dut.open_valid.value and dut.open_ready.value:
            stream = int(dut.open_command.value) >> 32
            where = self.receivers[stream]
            assert int(dut.peer.value) == pack("tcp_peer_t", mac=where.mac, ip=where.ip, port=where.port)
            last = self.aborted_at[stream]
            assert last is None or self.cycle - last <= SOON, f"stream {stream} opens after its abort"
            assert not self.live[stream]
            self.opened.append(stream)
            self.in_flight = (self.cycle + 3, stream, True)
        elif dut.abort_valid.value and dut.abort_ready.value:
            self.aborted.append(int(dut.abort_stream.value))
            self.in_flight = (self.cycle + 3, self.aborted[-1], False)
        elif self.in_flight and self.in_flight[0] == self.cycle:
            _, stream, self.live[stream] = self.in_flight
            self.in_flight = None
        dut.live.value = sum(live << stream for stream, live in enumerate(self.live))
        turn = "open" if self.rng.random() < 0.5 else "abort"
        for name in ("open", "abort"):
            ready = self.in_flight is None and self.takes[name] and name == turn
            getattr(dut, f"{name}_ready").value = ready

    async def pulse(self, opens: int = 0, aborts: int = 0) -> None:
        """Software's commands of one cycle, a bit for each stream."""
        dut = self.dut
        dut.opens.value, dut.aborts.value = opens, aborts
        await RisingEdge(dut.clk)
        dut.opens.value = dut.aborts.value = 0
        for stream in range(N):
            if (opens | aborts) >> stream & 1:
                self.aborted_at[stream] = self.cycle if aborts >> stream & 1 else None

    async def until(self, condition, cycles: int = 300) -> None:
        for _ in range(cycles):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"not within {cycles} cycles: {self.opened}, {self.aborted}, {self.live}")


@cocotb.test(skip=ALONE)
async def aborts_pass_an_opening_that_waits(dut):
    bed = await Bed(dut, seed()).start()
    await bed.pulse(opens=0b1110)
    await bed.until(lambda: all(bed.live[1:]))
    bed.takes["open"] = False  # segments of its last connection wait for the line (tcp_ring_guard)
    await bed.pulse(opens=1)
    await bed.until(lambda: bool(dut.open_valid.value))
    command = int(dut.open_command.value)
    await bed.pulse(aborts=0b1110)
    await bed.until(lambda: not any(bed.live))
    assert sorted(bed.aborted) == [1, 2, 3]
    assert dut.open_valid.value and int(dut.open_command.value) == command, "the opening goes on waiting"
    bed.takes["open"] = True
    await bed.until(lambda: bed.live[0])
    assert sorted(bed.opened) == [0, 1, 2, 3]


@cocotb.test()
async def an_abort_withdraws_the_opening_of_its_stream(dut):
    bed = await Bed(dut, seed()).start()
    bed.takes["open"] = False
    await bed.pulse(opens=(1 << N) - 1)
    await bed.until(lambda: bool(dut.open_valid.value))
    await bed.pulse(aborts=1)
    await bed.until(lambda: bed.aborted == [0])
    bed.takes["open"] = True
    await bed.until(lambda: all(bed.live[1:]))
    await ClockCycles(dut.clk, 100)
    assert not bed.live[0] and sorted(bed.opened) == list(range(1, N)) and dut.opening.value == 0
    await bed.pulse(opens=1)
    await bed.until(lambda: bed.live[0])


@cocotb.test()
async def aborts_wait_for_no_answer_of_arp(dut):
    bed = await Bed(dut, seed()).start()
    bed.receivers[0].by_arp, bed.finds = True, False
    await bed.pulse(opens=1)
    await bed.until(lambda: bool(dut.lookup_valid.value))
    await ClockCycles(dut.clk, 20)
    await bed.pulse(aborts=(1 << N) - 1)
    await bed.until(lambda: sorted(bed.aborted) == list(range(N)))
    bed.finds = True
    await ClockCycles(dut.clk, 200)
    assert bed.opened == [] and dut.opening.value == 0


@cocotb.test()
async def a_receiver_that_does_not_answer_is_looked_for_again_if_arp_has_found_it(dut):
    bed = await Bed(dut, seed()).start()
    for stream, where in enumerate(bed.receivers):
        where.by_arp = stream % 2 == 0
    await bed.pulse(opens=(1 << N) - 1)
    await bed.until(lambda: all(bed.live))
    by_arp = list(range(0, N, 2))
    before = len(bed.lookups)
    assert [fresh for _, fresh in bed.lookups] == [False] * len(by_arp)

    async def time_out() -> None:
        dut.unanswered.value = (1 << N) - 1
        await RisingEdge(dut.clk)
        dut.unanswered.value = 0

    for where in bed.receivers:
        where.mac = bed.rng.getrandbits(48) | 1
    await time_out()
    await bed.until(lambda: sorted(bed.moved) == by_arp)
    assert bed.lookups[before:] == [(bed.receivers[stream].ip, True) for stream in by_arp]
    # Not more often than once a second, and not what is closed.
    for _ in range(5):
        await time_out()
        await ClockCycles(dut.clk, 100)
    assert len(bed.lookups) == before + len(by_arp)
    await bed.pulse(aborts=1)
    await bed.until(lambda: not bed.live[0])
    await ClockCycles(dut.clk, 1000 * int(dut.CLK_KHZ.value) + 1000)
    assert sorted(bed.moved) == sorted(2 * by_arp[1:] + by_arp[:1])
    # An opening goes before, and an abort does not wait for the answer.
    bed.finds = False
    await time_out()
    await bed.pulse(opens=1)
    await ClockCycles(dut.clk, 100)
    await bed.pulse(aborts=(1 << N) - 1)
    await bed.until(lambda: not any(bed.live))
    bed.finds = True
    await ClockCycles(dut.clk, 100)
    await bed.pulse(opens=(1 << N) - 1)
    await bed.until(lambda: all(bed.live))


@cocotb.test()
async def commands_at_random_have_their_effect(dut):
    bed = await Bed(dut, seed()).start()
    rng, opened, aborts = bed.rng, 0, 0
    for _ in range(2000):
        bed.takes = {name: rng.random() < 0.7 for name in bed.takes}
        stream = rng.randrange(N)
        if rng.random() < 0.6:
            opened += 1
            await bed.pulse(opens=1 << stream)
        else:
            aborts += 1
            await bed.pulse(aborts=1 << stream)
        await ClockCycles(dut.clk, rng.choice([1, 2, 5, 20, 60]))
    bed.takes = {name: True for name in bed.takes}
    await ClockCycles(dut.clk, 200 * N)
    for stream in range(N):
        if bed.aborted_at[stream] is not None:
            assert not bed.live[stream]
    assert dut.opening.value == 0 and not dut.abort_valid.value
    # One that is closed opens whatever was before.
    await bed.pulse(opens=(1 << N) - 1)
    await bed.until(lambda: all(bed.live), 200 * N)
    assert len(bed.opened) > opened // 10 and len(bed.aborted) > aborts // 2
