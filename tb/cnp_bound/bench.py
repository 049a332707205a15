# SPDX-License-Identifier: Apache-2.0
"""Notifications alone hold a rate down for some periods only, and for longer if anything else indicates congestion.

Each step is equal to the model in `crates/cc` to the bit. A period is 8192 cycles here.
"""

import json
import os
import subprocess
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from lib import structs
from lib.runner import Bench, seed
from lib.rust_model import model

BENCHES = [
    Bench("cnp_bound_bench", [{"N_QP": n} for n in (1, 4)], [Path(__file__).parent / "cnp_bound_bench.sv"]),
    Bench("cnp_bound_step"),
]
N_QP = int(os.environ.get("PARAM_N_QP", "0"))
EVENTS = 20_000
PERIOD = 128 * 64  # cycles
LINE, LEAST = 8 << 24, 134_218  # 10 Gb/s and 10 Mb/s, at 156.25 MHz
PARAMS = {
    "law": 1,
    "restart_timer": 1,
    "clamp_target": 1,
    "stage_threshold": 5,
    "hyper_threshold": 10,
    "rate_ai": 644_245,
    "rate_hai": 1_288_490,
    "rate_min": LEAST,
    "rate_line": LINE,
    "rate_start": 0xFFFF_FFFF,
    "decrease_interval": 469,
    "alpha_interval": 6_250,
    "increase_interval": 312_500,
}
FLOORS = [LINE >> shift for shift in range(9, 1, -1)]


@cocotb.test(skip=N_QP != 0)
async def each_step_is_that_of_the_model(dut):
    number = seed().getrandbits(30)
    played = subprocess.run(
        [model("cnp_looks"), str(number), str(EVENTS)], stdout=subprocess.PIPE, text=True, check=True
    )
    row, raises = structs.pack("cnp_row_t", shortest=(1 << 24) - 1, shortest_now=(1 << 24) - 1, next_wait=1), 0
    fresh_row = row
    for line in played.stdout.splitlines():
        flags, rest = line[: line.index("]") + 1], line[line.index("]") + 1 :]
        cycles, _, words = rest.strip().partition(" ")
        fresh, is_trip, held, cnp, congested, ends, raised = json.loads(flags)
        word, shortest, shortest_now = json.loads(words)
        look = {"is_trip": is_trip, "held": held, "cnp": cnp, "congested": congested, "ends": ends}
        dut.row.value = fresh_row if fresh else row
        dut.look.value = structs.pack("cnp_look_t", trip=int(cycles), **look)
        await Timer(1, "ns")
        row = int(dut.next.value)
        expected = word | shortest << 27 | shortest_now << 51
        where = {"level": word & 15, "held": word >> 4 & 255, "cnp": word >> 12 & 1, "waits": word >> 13 & 127}
        where |= {"next_wait": word >> 20, "shortest": shortest, "shortest_now": shortest_now}
        assert row == structs.pack("cnp_row_t", **where), (line, structs.unpack("cnp_row_t", row), expected)
        assert int(dut.raised.value) == raised, line
        raises += raised
    assert raises > 20


class Bed:
    """The engine with a forger that notifies one queue pair as often as it acts."""

    def __init__(self, dut, rng) -> None:
        self.dut, self.rng, self.raises = dut, rng, 0
        self.qp = rng.randrange(N_QP)

    async def start(self) -> "Bed":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
        for name in ("init_valid", "cnp_valid", "backlog", "paused", "stat_valid", "stat", "stat_psn", "st_qp"):
            getattr(dut, name).value = 0
        dut.params.value = structs.pack("cc_params_t", **PARAMS)
        dut.init_qp.value = dut.cnp_qp.value = dut.stat_qp.value = dut.st_qp.value = self.qp
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        dut.backlog.value = (1 << N_QP) - 1
        cocotb.start_soon(self.count())
        return self

    async def count(self) -> None:
        while True:
            await RisingEdge(self.dut.overruled)
            self.raises += 1

    async def rate(self) -> int:
        await ClockCycles(self.dut.clk, 40)
        await FallingEdge(self.dut.clk)
        return structs.unpack("cc_status_t", int(self.dut.st.value))["rate_current"]

    async def operation(self, psn: int, **what: int) -> None:
        """One of the requester."""
        dut = self.dut
        dut.stat.value, dut.stat_psn.value = structs.pack("outcome_t", **what), psn
        dut.stat_valid.value = 1
        await RisingEdge(dut.clk)
        dut.stat_valid.value = 0
        await ClockCycles(dut.clk, 3)

    async def round_trip(self, psn: int, cycles: int) -> None:
        await self.operation(psn, send=1, ack_req=1)
        await ClockCycles(self.dut.clk, cycles - 4)
        await self.operation(psn, freed=1)

    async def floors(self, count: int) -> list[int]:
        """The rate shortly before the end of each period."""
        found = []
        for _ in range(count):
            await ClockCycles(self.dut.clk, PERIOD - 41)
            found.append(await self.rate())
        return found


async def forged(dut) -> Bed:
    """Notifications without end; the rate has fallen, and a period has begun."""
    bed = await Bed(dut, seed()).start()
    dut.cnp_valid.value = 1
    await ClockCycles(dut.clk, 3 * PERIOD // 4)
    return bed


@cocotb.test(skip=N_QP == 0)
async def forged_notifications_hold_a_rate_for_eight_periods_and_their_end_frees_it(dut):
    bed = await forged(dut)
    assert await bed.rate() == LEAST
    found = await bed.floors(10)
    assert found[:8] == FLOORS and found[8:] == [LINE >> 2] * 2, found
    assert bed.raises == 8
    if N_QP > 1:
        dut.st_qp.value = (bed.qp + 1) % N_QP
        assert await bed.rate() == LINE, "no other one is changed"
        dut.st_qp.value = bed.qp
    # A queue pair's next life has no floor.
    dut.init_valid.value = 1
    await RisingEdge(dut.clk)
    dut.init_valid.value = 0
    await ClockCycles(dut.clk, 3 * PERIOD // 4)
    assert await bed.rate() == LEAST
    await bed.floors(3)
    assert await bed.rate() > 2 * LEAST
    # Nor has one that no notification has reached for a period.
    dut.cnp_valid.value = 0
    await bed.floors(2)
    dut.cnp_valid.value = 1
    await ClockCycles(dut.clk, 2800)
    assert await bed.rate() == LEAST


@cocotb.test(skip=N_QP == 0)
@cocotb.parametrize(sign=["packet_seq_err", "rnr_nak", "timeout", "paused", "idle", "queue"])
async def a_sign_of_congestion_takes_the_floor_away_and_without_data_there_is_none(dut, sign):
    bed = await forged(dut)
    if sign == "idle":
        dut.backlog.value = 0
        await bed.floors(1)
        raises = bed.raises
        await bed.floors(3)
        assert bed.raises == raises <= 1
        return
    await bed.round_trip(1, 300)
    found = await bed.floors(2)
    assert found[0] > LEAST and found[1] == 2 * found[0]
    if sign == "paused":
        dut.paused.value = 1
        await RisingEdge(dut.clk)
        dut.paused.value = 0
    elif sign == "queue":
        # The shortest one of the period counts; one that was sent again does not.
        await bed.operation(2, send=1, ack_req=1)
        await bed.operation(2, timeout=0, retransmit=0, freed=0)
        await ClockCycles(dut.clk, 2 * 300 + 1000 + 100)
        await bed.operation(2, freed=1)
        await ClockCycles(dut.clk, PERIOD)
    else:
        await bed.operation(2, **{sign: 1})
    await ClockCycles(dut.clk, 1500)
    assert await bed.rate() == LEAST
    # The next one comes a period later than the first did.
    raises = bed.raises
    await bed.floors(1)
    assert bed.raises == raises
    await bed.floors(1)
    assert bed.raises == raises + 1
