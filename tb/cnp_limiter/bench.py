# SPDX-License-Identifier: Apache-2.0
"""Notifications pass at their bounded rate, none below it is lost, and every refusal is counted."""

from bisect import bisect_left

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from lib.runner import Bench, seed

BENCH = Bench(top="cnp_limiter")


class Limiter:
    """Offers notifications; `arrived` and `passed` hold the cycles at which they came and were let in."""

    def __init__(self, dut):
        self.dut, self.cycle = dut, 0
        self.arrived: list[int] = []
        self.passed: list[int] = []
        self.refused = 0

    async def offer(self, cnp: int | None, cnm: tuple[int, int] | None) -> None:
        """One cycle with at most one notification of each kind; what passes is what came, one cycle later."""
        dut = self.dut
        dut.in_cnp_valid.value = cnp is not None
        dut.in_cnp_qp.value = cnp or 0
        dut.in_cnm_valid.value = cnm is not None
        dut.in_cnm_qp.value, dut.in_cnm_feedback.value = cnm or (0, 0)
        await RisingEdge(dut.clk)
        dut.in_cnp_valid.value = dut.in_cnm_valid.value = 0
        await FallingEdge(dut.clk)
        came = (cnp is not None) + (cnm is not None)
        self.arrived += [self.cycle] * came
        self.refused += int(dut.stat_refused.value)
        if dut.cnp_valid.value == 1:
            assert int(dut.cnp_qp.value) == cnp
            self.passed.append(self.cycle)
        if dut.cnm_valid.value == 1:
            assert (int(dut.cnm_qp.value), int(dut.cnm_feedback.value)) == cnm
            self.passed.append(self.cycle)
        self.cycle += 1

    async def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            await self.offer(None, None)

    def check_bound(self, interval: int, burst: int) -> None:
        """In any window of t cycles at most burst + t / interval + 1 pass: each pair of them bounds one."""
        for i, first in enumerate(self.passed):
            for j in range(i, len(self.passed)):
                span = self.passed[j] - first
                assert j - i + 1 <= burst + span // interval + 1, f"{j - i + 1} passed within {span} cycles"

    def check_no_needless_refusal(self, interval: int, burst: int) -> None:
        """Every refused notification came when the bound, up to the phase of the refill, was used up."""
        arrivals = sorted(set(self.arrived))
        for at in arrivals:
            came, let_in = self.arrived.count(at), self.passed.count(at)
            if came == let_in:
                continue
            before = self.passed[: bisect_left(self.passed, at)] + [at] * let_in
            used_up = any(len(before) - i >= burst + (at - first) // interval for i, first in enumerate(before))
            assert burst == 0 or used_up, f"refused in cycle {at}, behind {before[-burst - 2 :]}"


async def start(dut, interval: int, burst: int) -> Limiter:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.in_cnp_valid.value = dut.in_cnm_valid.value = 0
    dut.interval.value, dut.burst.value = interval, burst
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    limiter = Limiter(dut)
    await FallingEdge(dut.clk)
    return limiter


def draw(rng, chance: float) -> tuple[int | None, tuple[int, int] | None]:
    cnp = rng.randrange(256) if rng.random() < chance else None
    cnm = (rng.randrange(256), rng.randrange(1, 64)) if rng.random() < chance / 3 else None
    return cnp, cnm


@cocotb.test()
async def over_any_window_no_more_than_the_bound_passes_and_nothing_below_it_is_lost(dut):
    rng = seed()
    for interval, burst in [(1, 1), (2, 1), (7, 4), (16, 16), (100, 8), (5, 255), (64, 1)]:
        limiter = await start(dut, interval, burst)
        for _ in range(12):
            chance = rng.choice([0, 0.5 / interval, 2 / interval, 1])
            for _ in range(rng.randrange(10, 200)):
                await limiter.offer(*draw(rng, chance))
        limiter.check_bound(interval, burst)
        limiter.check_no_needless_refusal(interval, burst)


@cocotb.test()
async def at_the_allowed_rate_everything_passes(dut):
    rng = seed()
    for interval in (1, 2, 13, 50):
        limiter = await start(dut, interval, 1)
        await limiter.idle(rng.randrange(2 * interval))
        for i in range(40):
            await limiter.offer(i, None) if rng.random() < 0.5 else await limiter.offer(None, (i, 33))
            await limiter.idle(interval - 1)
        assert len(limiter.passed) == 40 and limiter.refused == 0


@cocotb.test()
async def a_burst_passes_at_once_and_the_rest_is_counted(dut):
    limiter = await start(dut, 1000, 16)
    for i in range(50):
        await limiter.offer(i, None)
    await limiter.idle(4)
    assert limiter.passed == list(range(16)) and limiter.refused == 50 - 16
    await limiter.idle(1000)
    await limiter.offer(1, None)
    assert len(limiter.passed) == 17, "an interval later, one more"


@cocotb.test()
async def every_notification_passes_or_is_counted_as_refused(dut):
    rng = seed()
    limiter = await start(dut, 9, 3)
    for _ in range(3000):
        await limiter.offer(*draw(rng, 0.3))
    await limiter.idle(8)
    assert limiter.refused > 100
    assert len(limiter.passed) + limiter.refused == len(limiter.arrived)


@cocotb.test()
async def interval_zero_lets_all_in(dut):
    rng = seed()
    limiter = await start(dut, 0, rng.choice([0, 5]))
    for _ in range(500):
        await limiter.offer(*draw(rng, 1))
    assert limiter.passed == limiter.arrived and limiter.refused == 0


@cocotb.test()
async def a_change_of_the_bound_acts_at_once(dut):
    limiter = await start(dut, 0, 2)
    for i in range(20):
        await limiter.offer(i, None)
    dut.interval.value = 500
    for i in range(20):
        await limiter.offer(i, None)
    assert len(limiter.passed) == 22 and limiter.refused == 18
