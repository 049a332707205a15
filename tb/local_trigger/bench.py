# SPDX-License-Identifier: Apache-2.0
"""Each trigger is the one that the rules give for the samples, with its number, its inputs and its delay."""

import math
import os
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from lib.runner import Bench, seed

BENCH = Bench(
    top="local_trigger",
    configs=[{"N_IN": 1, "CHANNELS": 4}, {"N_IN": 4, "CHANNELS": 8, "SAMPLE_W": 12}, {"N_IN": 16, "CHANNELS": 1}],
)
N_IN, CHANNELS, SAMPLE_W = (
    int(os.environ.get(f"PARAM_{name}", default)) for name, default in (("N_IN", 1), ("CHANNELS", 4), ("SAMPLE_W", 16))
)
LATENCY = int(math.log2(CHANNELS)) + 4
PEDESTAL = 300


@dataclass
class Settings:
    """Those of the ports, by their names."""

    mask: list[int] = field(default_factory=lambda: [(1 << CHANNELS) - 1] * N_IN)
    threshold: int = 1000
    width: int = 0
    multiplicity: int = 0
    sum_threshold: int = 0
    window: int = 0
    coincidence: int = 1

    def apply(self, dut) -> None:
        dut.mask.value = sum(mask << i * CHANNELS for i, mask in enumerate(self.mask))
        for name in ("threshold", "width", "multiplicity", "sum_threshold", "window", "coincidence"):
            getattr(dut, name).value = getattr(self, name)


Samples = list[list[int] | None]  # of each input; None: not valid


class Model:
    """The rules, a cycle at a time, by when each channel and input was last above."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cycle = -1
        never = -(1 << 20)
        self.above = [[never] * CHANNELS for _ in range(N_IN)]
        self.fired = [never] * N_IN
        self.coincided = False
        self.number = 0

    def step(self, samples: Samples) -> tuple[int, int] | None:
        """The number and the inputs of a trigger that these samples complete."""
        s, self.cycle = self.settings, self.cycle + 1
        for i, values in enumerate(samples):
            taken = [v if s.mask[i] >> c & 1 else None for c, v in enumerate(values or [None] * CHANNELS)]
            for c, value in enumerate(taken):
                if value is not None and value >= s.threshold:
                    self.above[i][c] = self.cycle
            up = sum(self.cycle - last <= s.width for last in self.above[i])
            total = sum(value or 0 for value in taken)
            if (s.multiplicity and up >= s.multiplicity) or (s.sum_threshold and total >= s.sum_threshold):
                self.fired[i] = self.cycle
        counts = [self.cycle - last <= s.window for last in self.fired]
        before, self.coincided = self.coincided, bool(s.coincidence) and sum(counts) >= s.coincidence
        if before or not self.coincided:
            return None
        self.number += 1
        return self.number - 1, sum(one << i for i, one in enumerate(counts))


async def start(dut, settings: Settings) -> None:
    cocotb.start_soon(Clock(dut.clk, 4, "ns").start())
    dut.valid.value = 0
    dut.samples.value = 0
    settings.apply(dut)
    dut.rst.value = 1
    for _ in range(4):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


async def triggers_of(dut, history: list[Samples]) -> list[tuple[int, int] | None]:
    """What comes with each of these samples, the delay taken off."""
    found = []
    for samples in [*history, *[[None] * N_IN] * LATENCY]:
        word = 0
        for i, values in enumerate(samples):
            for c, value in enumerate(values or []):
                word |= value << (i * CHANNELS + c) * SAMPLE_W
        dut.samples.value = word
        dut.valid.value = sum((values is not None) << i for i, values in enumerate(samples))
        await FallingEdge(dut.clk)
        one = (int(dut.trigger_number.value), int(dut.trigger_type.value)) if dut.trigger_valid.value else None
        found.append(one)
    return found[LATENCY - 1 : LATENCY - 1 + len(history)]


def drawn(rng, cycles: int) -> list[Samples]:
    """Pedestals with noise, pulses of some cycles in some channels, and gaps in the streams."""
    history: list[Samples] = [
        [[PEDESTAL + rng.randrange(20) for _ in range(CHANNELS)] for _ in range(N_IN)] for _ in range(cycles)
    ]
    for _ in range(cycles // 8):
        at, i, height = rng.randrange(cycles), rng.randrange(N_IN), rng.choice([800, 999, 1000, 2000, 4000])
        for c in rng.sample(range(CHANNELS), rng.randint(1, CHANNELS)):
            for later in range(rng.randint(1, 4)):
                if at + later < cycles:
                    history[at + later][i][c] = height
    return [[values if rng.random() < 0.95 else None for values in samples] for samples in history]


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def triggers_are_those_of_the_rules(dut):
    rng = seed()
    found = 0
    for round_ in range(12):
        settings = Settings(
            mask=[rng.getrandbits(CHANNELS) | 1 for _ in range(N_IN)],
            threshold=1000,
            width=rng.choice([0, 1, 5]),
            multiplicity=rng.choice([0, 1, CHANNELS // 2 or 1, CHANNELS]),
            sum_threshold=rng.choice([0, PEDESTAL * CHANNELS + 700, PEDESTAL * CHANNELS + 2000]),
            window=rng.choice([0, 2, 12]),
            coincidence=rng.choice([1, 1, 2, N_IN, 0] if round_ else [1]),
        )
        settings.multiplicity = settings.multiplicity or (0 if settings.sum_threshold else 1)
        await start(dut, settings)
        history = drawn(rng, 400)
        model = Model(settings)
        expected = [model.step(samples) for samples in history]
        given = await triggers_of(dut, history)
        for cycle, (ours, theirs) in enumerate(zip(given, expected, strict=True)):
            assert ours == theirs, f"{settings}: cycle {cycle}: {ours}, the rules give {theirs}"
        found += model.number
    assert found > 50, "too few triggers to compare"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_threshold_a_sum_and_a_coincidence_are_met_by_the_least_value_that_is_enough(dut):
    quiet = [[0] * CHANNELS for _ in range(N_IN)]

    def pulse(inputs: int, channels: int, height: int) -> Samples:
        return [[height if i < inputs and c < channels else 0 for c in range(CHANNELS)] for i in range(N_IN)]

    for settings, enough, too_little in (
        (Settings(threshold=1000, multiplicity=1), pulse(1, 1, 1000), pulse(1, 1, 999)),
        (Settings(threshold=1000, multiplicity=CHANNELS), pulse(1, CHANNELS, 1000), pulse(1, CHANNELS - 1, 1000)),
        (Settings(sum_threshold=100 * CHANNELS), pulse(1, CHANNELS, 100), pulse(1, CHANNELS, 99)),
        (Settings(multiplicity=1, coincidence=N_IN), pulse(N_IN, 1, 4000), pulse(N_IN - 1, 1, 4000)),
    ):
        await start(dut, settings)
        given = await triggers_of(dut, [quiet, too_little, quiet, enough, enough, quiet])
        assert [one is not None for one in given] == [False, False, False, True, False, False], settings
