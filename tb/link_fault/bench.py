# SPDX-License-Identifier: Apache-2.0
"""A link fault is raised after four equal ordered sets, and cleared 128 columns after the last (IEEE 802.3 46.3.4)."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from lib.runner import Bench, seed
from lib.xgmii import drive_line, idle, line_frame, with_fcs

BENCH = Bench(top="link_fault")
SEQUENCE, LOCAL, REMOTE = 0x9C, 1, 2
LATENCY = 3  # words from the column to the verdict


def ordered_set(kind: int) -> list[tuple[int, int]]:
    return [(SEQUENCE, 1), (0, 0), (0, 0), (kind, 0)]


class Model:
    """The state diagram, column by column."""

    def __init__(self):
        self.fault = self.last = self.count = 0
        self.columns = 128

    def column(self, octets: list[tuple[int, int]]) -> None:
        kind = next((k for k in (LOCAL, REMOTE) if octets == ordered_set(k)), 0)
        if not kind:
            if self.columns < 128:
                self.columns += 1
            else:
                self.fault = 0
            return
        self.count = self.count + 1 if kind == self.last and self.columns < 128 else 1
        self.columns, self.last = 0, kind
        if self.count >= 4:
            self.fault = kind


async def verdicts(dut, octets: list[tuple[int, int]]) -> list[int]:
    """The fault after each word of the line."""
    seen = []
    driver = cocotb.start_soon(drive_line(dut.clk, dut.xgmii_rxd, dut.xgmii_rxc, octets + idle(8 * LATENCY)))
    for _ in range(len(octets) // 8 + LATENCY):
        await FallingEdge(dut.clk)
        seen.append(int(dut.local_fault.value) * LOCAL | int(dut.remote_fault.value) * REMOTE)
    await driver
    return seen[LATENCY - 1 : len(octets) // 8 + LATENCY - 1]


async def start(dut) -> None:
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    dut.rst.value = 1
    await drive_line(dut.clk, dut.xgmii_rxd, dut.xgmii_rxc, idle(32))
    dut.rst.value = 0
    await RisingEdge(dut.clk)


def expected(octets: list[tuple[int, int]]) -> list[int]:
    model, faults = Model(), []
    for at in range(0, len(octets), 8):
        model.column(octets[at : at + 4])
        model.column(octets[at + 4 : at + 8])
        faults.append(model.fault)
    return faults


@cocotb.test()
async def four_sets_raise_and_128_silent_columns_clear(dut):
    for kind in (LOCAL, REMOTE):
        for first in (0, 4):
            await start(dut)
            line = idle(first) + 3 * (ordered_set(kind) + idle(4 * 126)) + ordered_set(kind)
            line += idle(-len(line) % 8)
            faults = await verdicts(dut, line + idle(4 * 200))
            words = len(line) // 8
            assert set(faults[: words - 1]) == {0}
            held = faults[words - 1 :]
            assert held[0] == kind and held.count(kind) in (64, 65) and held[-1] == 0


@cocotb.test()
async def any_mixture_of_sets_idle_and_frames_follows_the_state_diagram(dut):
    rng = seed()
    await start(dut)
    line = []
    for _ in range(400):
        choice = rng.random()
        if choice < 0.25:
            kind = rng.choice([LOCAL, REMOTE])
            for _ in range(rng.randint(1, 8)):
                line += ordered_set(kind) + idle(4 * rng.choice([0, 0, 1, 2, 126, 127, 128, 129]))
        elif choice < 0.5:
            line += rng.choice([ordered_set(0), ordered_set(3), [(SEQUENCE, 0), (0, 0), (0, 0), (1, 0)]])
        elif choice < 0.75:
            line += line_frame(with_fcs(rng.randbytes(60)))
            line += idle(-len(line) % 4)
        else:
            line += idle(4 * rng.randint(1, 140))
    line += idle(-len(line) % 8)
    faults = await verdicts(dut, line)
    model = expected(line)
    assert faults == model
    assert {0, LOCAL, REMOTE} == set(model)
