# SPDX-License-Identifier: Apache-2.0
"""The closed loop of QCN in gateware: reaction points and congestion point hold the queue at Q_eq, and without loss."""

from pathlib import Path
from statistics import mean

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from lib import structs
from lib.runner import Bench

HERE = Path(__file__).parent
BENCH = Bench(
    top="qcn_loop_bench",
    sources=[HERE / "reaction_point.sv", HERE / "qcn_loop_bench.sv"],
)
LINE = 8 << 24  # 10 Gb/s at 156.25 MHz, in Q8.24 octets a cycle
OFF, QCN = 0, 2
Q_EQ = 33_000
LIMIT = 200_000
FRAME, OVERHEAD = 1512, 24
SAMPLE_BYTES = [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500]
# IEEE 802.1Qau's defaults at 10 Gb/s: steps of 5 and 50 Mb/s, a timer of 15 ms, 150 kB.
REACTION_POINT = {
    "gd_shift": 7,
    "stage_threshold": 5,
    "jitter": 77,
    "rate_ai": LINE // 2000,
    "rate_hai": LINE // 200,
    "rate_min": LINE // 1000,
    "rate_line": LINE,
    "timer_period": 2_343_750,
    "byte_limit": 150_000,
    "seed": 1,
}


class Loop:
    def __init__(self, dut):
        self.dut = dut

    async def start(self, law: int) -> None:
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.rst.value, dut.run.value, dut.law.value, dut.table_valid.value = 1, 0, law, 0
        dut.params.value = structs.pack("qcn_params_t", **REACTION_POINT)
        dut.cfg.value = structs.pack(
            "switch_cfg_t",
            mac=0x0200_0000_5A01,
            limit_bytes=LIMIT,
            qcn_queues=1,
            cnm_priority=6,
            point__q_eq=Q_EQ,
            point__w=2,
            point__jitter=77,
            point__seed=1,
            point__sample_bytes=sum(length << 24 * at for at, length in enumerate(SAMPLE_BYTES)),
        )
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        dut.table_entry.value = structs.pack("mac_entry_t", valid=1, is_static=1, mac=0x0200_0000_0200, port_index=2)
        dut.table_index.value, dut.table_valid.value = 0, 1
        await ClockCycles(dut.clk, 1)
        dut.table_valid.value = 0
        await ClockCycles(dut.clk, 40)

    async def watch(self, cycles: int, step: int = 500) -> tuple[list[int], float, list[list[int]]]:
        """Queue lengths, the share of the line that was used, and each station's rates, over this time."""
        before, levels, rates = int(self.dut.delivered.value), [], []
        for _ in range(cycles // step):
            await ClockCycles(self.dut.clk, step)
            levels.append(int(self.dut.level.value))
            rates.append(self.rates())
        used = (int(self.dut.delivered.value) - before) * (FRAME + OVERHEAD) / FRAME / cycles / 8
        return levels, used, rates

    def rates(self) -> list[int]:
        """R_C of both stations; the line's while the limiter is not at work."""
        bits = structs.width("cc_status_t")
        words = [int(self.dut.status.value) >> bits * station & (1 << bits) - 1 for station in range(2)]
        return [min(structs.unpack("cc_status_t", word)["rate_current"], LINE) for word in words]


@cocotb.test()
async def two_reaction_points_share_the_line_and_the_queue_stays_near_q_eq(dut):
    loop = Loop(dut)
    await loop.start(QCN)
    dut.run.value = 0b11
    start, _, _ = await loop.watch(200_000)
    levels, used, rates = await loop.watch(500_000)
    shares = [mean(both[station] for both in rates) / LINE for station in range(2)]
    output = [int(dut.notified.value) >> 32 * station & 0xFFFF_FFFF for station in range(2)]
    print(f"queue: at first up to {max(start)}, then {min(levels)} to {max(levels)}, mean {mean(levels):.0f}")
    print(
        f"line used {used:.3f}, shares {shares[0]:.3f} and {shares[1]:.3f}, notified {output[0]} and {output[1]} times"
    )
    assert int(dut.dropped.value) == 0
    assert 0.5 * Q_EQ < mean(levels) < 1.5 * Q_EQ
    assert max(levels) < 4 * Q_EQ
    assert used > 0.95
    assert 0.9 < sum(shares) < 1.1 and min(shares) > 0.25
    assert min(output) > 5


@cocotb.test()
async def without_the_law_the_queue_is_full_and_drops(dut):
    loop = Loop(dut)
    await loop.start(OFF)
    dut.run.value = 0b11
    await loop.watch(60_000)
    levels, used, _ = await loop.watch(20_000)
    assert min(levels) > LIMIT - 3 * FRAME and used > 0.99
    assert int(dut.dropped.value) > 20
    assert int(dut.notified.value) > 0, "the congestion point sends its messages all the same"
