# SPDX-License-Identifier: Apache-2.0
"""The clock follows a pulse per second like a model of oscillator and pulses, and never runs backwards.

A second is 400 us here, so a nanosecond a second is 2500 ppb. The simulator's time is the oscillator's, 6.4 ns a cycle;
the true time of the pulses runs faster or slower by some ppm.
"""

from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, Timer
from cocotb.utils import get_sim_time
from lib import structs
from lib.runner import Bench, seed

SECOND = 400_000  # ns
TEN = 4_000  # edges of the 10 MHz in it
BENCH = Bench(top="tai_clock", configs=[{"SECOND_NS": SECOND, "TEN_MHZ": TEN}])
NAMES = ("good", "missing", "extra", "jittered", "ten_mhz")
WINDOW, JITTER = 1000, 60  # ns


class Harness:
    """`ppm` is what the oscillator is too slow by."""

    def __init__(self, dut, ppm: float):
        self.dut = dut
        self.slow = 1 - ppm * 1e-6  # the oscillator's ns in a true one
        self.counts: Counter[str] = Counter()
        self.pulses = 0
        self.start_ps = round(get_sim_time("ps"))

    async def start(self, **cfg: int) -> "Harness":
        dut = self.dut
        for name in ("set", "set_ns", "pps", "ten_mhz"):
            getattr(dut, name).value = 0
        self.configure(**cfg)
        dut.rst.value = 1
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self.count())
        return self

    def configure(self, **cfg: int) -> None:
        values = {"discipline": 1, "ten_mhz": 0, "window_ns": WINDOW, "jitter_ns": JITTER} | cfg
        self.dut.cfg.value = structs.pack("tai_cfg_t", **values)

    async def count(self) -> None:
        """Counts reported changes."""
        while True:
            await self.dut.stat.value_change
            await ReadOnly()
            for name, bit in structs.unpack("tai_stat_t", int(self.dut.stat.value)).items():
                self.counts[name] += bit

    async def pulse(self, late_ns: float = 0.0) -> None:
        """Waits for the next true second and `late_ns`, then gives a pulse of 1 us."""
        self.pulses += 1
        await self.at(self.pulses * SECOND + late_ns)
        self.dut.pps.value = 1
        await Timer(1, "us")
        self.dut.pps.value = 0

    async def at(self, ns: float) -> None:
        """Waits until this true time."""
        left = round(ns * self.slow * 1000) - (round(get_sim_time("ps")) - self.start_ps)
        assert left > 0
        await Timer(left, "ps")

    async def ten_mhz(self) -> None:
        await self.at(round(self.true_ns()) + 100)
        period = 100_000 * self.slow
        assert abs(period - round(period)) < 1e-6, "no whole number of ps"
        cocotb.start_soon(Clock(self.dut.ten_mhz, round(period), "ps").start())

    async def set_time(self, ns: int) -> None:
        await RisingEdge(self.dut.clk)
        self.dut.set.value, self.dut.set_ns.value = 1, ns
        await RisingEdge(self.dut.clk)
        self.dut.set.value = 0

    def error(self) -> int:
        """Clock minus true time, ns."""
        return int(self.dut.tai_ns.value) - self.base - round(self.true_ns())

    def true_ns(self) -> float:
        """Since the start of the test."""
        return (get_sim_time("ps") - self.start_ps) / 1000 / self.slow

    async def align(self) -> None:
        """Sets the clock to true time, whole seconds ahead."""
        self.base = 1_700_000_000 * SECOND
        await self.set_time(self.base + round(self.true_ns()) + 10)

    def status(self) -> dict[str, int]:
        found = structs.unpack("tai_status_t", int(self.dut.status.value))
        for name in ("offset_ns", "drift_ns"):
            found[name] -= (found[name] >> 31) << 32
        return found


def loop_model(ppm: float, offset: float, seconds: int) -> list[float]:
    """The loop on paper: offsets at the pulses, in ns, from its gains and an oscillator slow by `ppm`."""
    learnt = adjust = 0.0
    slip = -ppm * 1e-6 * SECOND
    offsets = []
    for _ in range(seconds):
        offsets.append(offset)
        learnt = max(min(learnt - offset / 32, SECOND / 8192), -SECOND / 8192)
        adjust = max(min(learnt - offset / 4, SECOND / 8192), -SECOND / 8192)
        offset += slip + adjust
    return offsets


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def the_clock_follows_the_pulses_as_the_loop_on_paper_does(dut):
    rng = seed()
    ppm = rng.choice([-60, 45])
    h = await Harness(dut, ppm).start()
    await h.align()
    seen = []
    for _ in range(60):
        await h.pulse()
        await ClockCycles(dut.clk, 100)
        seen.append(h.status()["offset_ns"])
    model = loop_model(ppm, seen[0], 60)
    worst = max(abs(a - b) for a, b in zip(seen, model, strict=True))
    dut._log.info(f"offsets {seen}; at most {worst:.1f} ns from the model's")
    assert worst < 25, [round(m) for m in model]
    assert max(abs(offset) for offset in seen[50:]) <= 10
    assert abs(h.status()["drift_ns"] - ppm * 1e-6 * SECOND) <= 5
    assert h.status()["locked"] and h.counts == {"good": 60, **dict.fromkeys(NAMES[1:], 0)}
    assert abs(h.error()) < 40


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def missing_doubled_and_jittering_pulses_are_counted_and_act_as_documented(dut):
    rng = seed()
    h = await Harness(dut, 20).start()
    await h.align()
    for _ in range(40):
        await h.pulse()
    await ClockCycles(dut.clk, 100)
    before = h.status()
    assert before["locked"] and not before["holdover"]

    # One is missing: the clock continues at its rate.
    h.pulses += 1
    await h.at(h.pulses * SECOND + 2 * WINDOW)
    assert h.counts["missing"] == 1 and h.status()["holdover"] and not h.status()["locked"]
    await h.pulse()
    await ClockCycles(dut.clk, 100)
    assert not h.status()["holdover"] and h.counts["good"] == 41 and abs(h.status()["offset_ns"]) < 25

    # Doubled, and out of place: nothing follows from them.
    await h.pulse()
    await ClockCycles(dut.clk, 100)
    steady = h.status()
    for late in (5_000, 100_000, SECOND - 5 * WINDOW):
        await h.at(h.pulses * SECOND + late)
        dut.pps.value = 1
        await Timer(1, "us")
        dut.pps.value = 0
        await ClockCycles(dut.clk, 100)
        assert h.status() == steady
    assert h.counts["extra"] == 3 and h.counts["good"] == 42

    # Jitter beyond jitter_ns: counted, and the clock moves by what the loop's gains let through.
    for n in range(12):
        await h.pulse(rng.choice([-1, 1]) * rng.uniform(150, 250) if n % 2 else 0.0)
        await ClockCycles(dut.clk, 100)
    assert h.counts["jittered"] == 12 - 1 and h.counts["missing"] == 1
    assert abs(h.error()) < 300

    # No pulses for long: the next one is good wherever it comes.
    h.pulses += 6
    await h.at(h.pulses * SECOND + 30_000)
    missing = h.counts["missing"]
    assert missing == 1 + 4
    await h.pulse(90_000.0)
    await ClockCycles(dut.clk, 100)
    assert h.counts["good"] == 42 + 12 + 1 and h.counts["extra"] == 3 and h.counts["missing"] == missing


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def ten_megahertz_stands_in_for_missing_pulses_and_is_checked(dut):
    seed()
    h = await Harness(dut, 80).start(ten_mhz=1)
    await h.ten_mhz()
    await h.align()
    for _ in range(30):
        await h.pulse()
    await ClockCycles(dut.clk, 100)
    assert abs(h.status()["ten_mhz_count"] - TEN) <= 1 and h.counts["ten_mhz"] == 0
    # 30 seconds without pulses: the clock follows the 10 MHz.
    await h.at((h.pulses + 30) * SECOND + 2 * WINDOW)
    h.pulses += 30
    assert h.counts["missing"] == 30 and abs(h.error()) < 40
    h.configure(ten_mhz=0)
    await h.pulse()
    await h.pulse()
    assert h.counts["ten_mhz"] == 0


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def pulses_without_discipline_are_measured_alone_and_time_never_runs_backwards(dut):
    rng = seed()
    h = await Harness(dut, 100).start(discipline=0)
    await h.align()
    for _ in range(6):
        await h.pulse()
    await ClockCycles(dut.clk, 100)
    status = h.status()
    assert abs(status["offset_ns"] + 5 * 40) <= 60 and status["drift_ns"] == 0
    h.configure()
    last = int(dut.tai_ns.value)
    for n in range(5000):  # in the steepest correction there is
        if n % 500 == 0:
            dut.pps.value = 1 - int(dut.pps.value)
        await RisingEdge(dut.clk)
        now = int(dut.tai_ns.value)
        assert 5 <= now - last <= 8
        last = now
    await h.set_time(12345)
    await RisingEdge(dut.clk)
    assert rng and int(dut.tai_ns.value) - 12345 <= 14
