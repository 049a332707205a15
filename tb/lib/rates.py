# SPDX-License-Identifier: Apache-2.0
"""The rates of a queue pair as the gateware streams them, and the registers that set its law.

Source: AdvCam section VI (R_C and R_T sampled while the front end sends).
"""

from dataclasses import dataclass
from itertools import pairwise

import cocotb
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time

from lib import structs
from lib.board import Board

DCQCN, QCN = 1, 2


@dataclass
class Sample:
    """One word of the sampling port."""

    time_ns: float
    rate_current: int
    rate_target: int
    alpha: float


async def collect_samples(dut, samples: list[Sample]) -> None:
    dut.m_axis_sample_tready.value = 1
    while True:
        await RisingEdge(dut.m_axis_sample_tvalid)
        found = structs.unpack("cc_sample_t", int(dut.m_axis_sample_tdata.value))
        rates = found["rate_current"], found["rate_target"]
        samples.append(Sample(get_sim_time("ns"), *rates, found["alpha"] / 65536))


async def sample_rates(board: Board, qp: int, octets: int) -> list[Sample]:
    """Lets the sampling port stream one queue pair's rates, once per this number of line octets; the list grows."""
    samples: list[Sample] = []
    cocotb.start_soon(collect_samples(board.dut, samples))
    await board.registers.write_fields("sampling.range", first=qp, last=qp)
    await board.registers.write("sampling.interval", board.line.cycles(octets))
    return samples


async def set_dcqcn(
    board: Board, group: int = 0, law: int = DCQCN, g_shift: int = 8, rate_min: int | None = None, **intervals: int
) -> None:
    """Intervals are given in octets of the line; `rate_min` is in Q8.24 bytes a cycle."""
    control = {"law": law, "clamp_target": 1, "restart_timer": 1, "g_shift": g_shift}
    control |= {"stage_threshold": 5, "hyper_threshold": 10}
    await board.registers.write_fields("cc.control", group, **control)
    for name, octets in intervals.items():
        await board.registers.write(f"cc.{name}", board.line.cycles(octets), group)
    if rate_min is not None:
        await board.registers.write("cc.rate_min", rate_min, group)


def cuts_of(samples: list[Sample]) -> list[tuple[Sample, Sample]]:
    """The samples before and after each fall of R_C."""
    return [(a, b) for a, b in pairwise(samples) if b.rate_current < a.rate_current]
