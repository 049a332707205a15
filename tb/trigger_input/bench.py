# SPDX-License-Identifier: Apache-2.0
"""Each trigger is accepted or refused for the reason that the rules give, and the event buffer never overflows."""

import itertools
from collections import Counter, deque
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly
from lib import structs
from lib.runner import Bench, seed

BENCH = Bench(top="trigger_input")
KINDS = ("received", "accepted", "vetoed", "busy", "dead", "jumped")
DEPTH = 1000  # units of the event buffer
SIZE = 60  # most of an event
CFG = {
    "veto": 0, "own_numbers": 0, "ring_high": 900, "ring_low": 500, "event_high": DEPTH - SIZE + 1, "event_low": 600,
    "event_size": SIZE, "dead_time": 0, "gate": 0,
}  # fmt: skip


@dataclass
class Inputs:
    """Of one cycle."""

    valid: int = 0
    number: int = 0
    type: int = 0
    veto: int = 0
    ring: int = 0
    fill: int = 0
    done: int = 0
    ready: int = 1


class Model:
    """The rules, a cycle at a time."""

    def __init__(self, cfg: dict[str, int]):
        self.cfg = cfg
        self.pending = self.dead = self.gate = self.next_number = 0
        self.ring_busy = self.event_busy = False
        self.last: int | None = None
        self.queue: deque[int] = deque()
        self.counts: Counter[str] = Counter()

    def cycle(self, i: Inputs, tai: int) -> str | None:
        """What becomes of the trigger of this cycle."""
        c = self.cfg
        done = i.done and self.pending
        owed = i.fill + self.pending * c["event_size"]
        self.ring_busy = i.ring >= c["ring_high"] or (self.ring_busy and i.ring > c["ring_low"])
        self.event_busy = owed >= c["event_high"] or (self.event_busy and owed > c["event_low"])
        full = self.ring_busy or self.event_busy or len(self.queue) == 16
        if self.queue and i.ready:
            self.queue.popleft()
        verdict = None
        if i.valid:
            dead = self.dead or self.gate
            verdict = "vetoed" if i.veto or c["veto"] else "busy" if full else "dead" if dead else "accepted"
            self.counts["received"] += 1
            self.counts[verdict] += 1
            self.counts["jumped"] += self.last is not None and i.number != (self.last + 1) % 2**64
            self.last = i.number
        self.dead, self.gate = max(self.dead - 1, 0), max(self.gate - 1, 0)
        if verdict == "accepted":
            number = self.next_number if c["own_numbers"] else i.number
            self.next_number += 1
            self.queue.append(structs.pack("fragment_t", event_number=number, timestamp_ns=tai, trigger_type=i.type))
            self.dead, self.gate = c["dead_time"], c["gate"]
        self.pending += (verdict == "accepted") - bool(done)
        return verdict


class Harness:
    def __init__(self, dut, rng, **cfg: int):
        self.dut, self.rng = dut, rng
        self.cfg = CFG | cfg
        self.model = Model(self.cfg)
        self.counts: Counter[str] = Counter()
        self.left: list[int] = []
        self.tai = 1000
        self.busy_cycles = 0

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.restart.value = 0
        dut.cfg.value = structs.pack("trigger_cfg_t", **self.cfg)
        dut.rst.value = 1
        self.show(Inputs())
        for _ in range(3):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        return self

    def show(self, i: Inputs) -> None:
        dut = self.dut
        dut.trigger_valid.value, dut.trigger_number.value, dut.trigger_type.value = i.valid, i.number, i.type
        dut.veto.value, dut.ring_fill.value, dut.event_fill.value = i.veto, i.ring, i.fill
        dut.event_done.value, dut.m_axis_tready.value, dut.tai_ns.value = i.done, i.ready, self.tai

    async def cycle(self, i: Inputs) -> str | None:
        """One clock edge with these inputs; the outputs of before are compared with the model's."""
        dut, model = self.dut, self.model
        self.show(i)
        await ReadOnly()
        assert bool(dut.gate.value) == bool(model.gate) and int(dut.pending.value) == model.pending
        assert bool(dut.m_axis_tvalid.value) == bool(model.queue)
        if model.queue:
            assert int(dut.m_axis_tdata.value) == model.queue[0]
            if i.ready:
                self.left.append(model.queue[0])
        verdict = model.cycle(i, self.tai)
        self.tai += 6
        await FallingEdge(dut.clk)
        for name, bit in structs.unpack("trigger_stat_t", int(dut.stat.value)).items():
            self.counts[name] += bit
        assert self.counts == Counter({k: model.counts[k] for k in KINDS}), f"{self.counts}, not {model.counts}"
        return verdict


@cocotb.test()
async def every_trigger_has_the_verdict_of_the_rules(dut):
    rng = seed()
    h = await Harness(dut, rng, dead_time=5, gate=9).start()
    number = 2**64 - 40
    for n in range(6000):
        number += rng.choice([1, 1, 1, 1, 2, -3])
        await h.cycle(
            Inputs(
                valid=int(rng.random() < 0.3),
                number=number % 2**64,
                type=rng.getrandbits(16),
                veto=int(n // 200 % 5 == 3 and rng.random() < 0.7),
                ring=rng.choice([0, 499, 500, 501, 899, 900, 1200]) if n // 300 % 2 else 0,
                fill=rng.choice([0, 300, 600, 601, 900, 940, 941, 5000]) if n // 500 % 2 else 0,
                done=int(rng.random() < 0.2),
                ready=int(n // 250 % 3 != 1 or rng.random() < 0.1),
            )
        )
    assert min(h.counts[kind] for kind in KINDS) > 20, h.counts
    assert h.counts["received"] == sum(h.counts[kind] for kind in KINDS[1:5])


@cocotb.test()
async def a_buffer_never_overflows_whatever_the_trigger_system_does(dut):
    """A trigger in every cycle, busy or not; events of every size up to the longest; a reader that comes and goes."""
    rng = seed()
    h = await Harness(dut, rng, event_low=DEPTH - SIZE).start()
    fill, worst, building = 0, 0, deque()
    for n in range(8000):
        done = 0
        if building and rng.random() < 0.5:
            grown = min(rng.choice([1, 7, SIZE]), building[0])
            building[0] -= grown
            fill += grown
        if building and building[0] == 0:
            building.popleft()
            done = 1
        if n // 1000 % 2 == 0:
            fill = max(fill - rng.choice([0, 0, 30]), 0)
        worst = max(worst, fill)
        if await h.cycle(Inputs(valid=1, number=n, fill=fill, done=done)) == "accepted":
            building.append(rng.choice([0, 1, SIZE, SIZE, rng.randrange(SIZE + 1)]))
    dut._log.info(f"highest fill {worst} of {DEPTH}, {h.counts['accepted']} triggers accepted, {h.counts['busy']} not")
    assert DEPTH - SIZE < worst <= DEPTH
    assert h.counts["accepted"] > 50 and h.counts["jumped"] == 0


@cocotb.test()
async def a_veto_in_an_open_gate_ends_at_the_event_and_not_within_it(dut):
    h = await Harness(dut, seed(), gate=30, dead_time=10).start()
    assert await h.cycle(Inputs(valid=1, number=1)) == "accepted"
    opened = 0
    for n in itertools.count():
        verdict = await h.cycle(Inputs(valid=int(n == 4), number=2, veto=1))
        assert verdict in (None, "vetoed")
        if not h.model.gate:
            break
        opened += 1
    assert opened == 29 and not dut.gate.value
    assert await h.cycle(Inputs(valid=1, number=3, veto=1)) == "vetoed"
    assert await h.cycle(Inputs(valid=1, number=4)) == "accepted"


@cocotb.test()
async def own_numbers_have_no_gap_and_begin_again_on_restart(dut):
    h = await Harness(dut, seed(), own_numbers=1).start()
    for n in (5, 9, 9, 2):
        await h.cycle(Inputs(valid=1, number=n, done=1))
    for _ in range(6):
        await h.cycle(Inputs(done=1))
    numbers = [structs.unpack("fragment_t", about)["event_number"] for about in h.left]
    assert numbers == [0, 1, 2, 3] and h.counts["jumped"] == 3
    dut.restart.value = 1
    await FallingEdge(dut.clk)
    dut.restart.value = 0
    h.model.next_number, h.model.last = 0, None
    await h.cycle(Inputs(valid=1, number=77))
    await h.cycle(Inputs())
    assert structs.unpack("fragment_t", h.left[-1])["event_number"] == 0 and h.counts["jumped"] == 3
