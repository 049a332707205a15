# SPDX-License-Identifier: Apache-2.0
"""Masters that share the registers get their own answers, in turn, with cocotbext-axi on both sides."""

import itertools
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Combine, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from lib.axil_slave import RegisterSlave
from lib.runner import Bench, seed

BENCH = Bench(top="axil_mux_bench", sources=[Path(__file__).parent / "axil_mux_bench.sv"])

MASTERS = 3
REFUSED = 0x30000


async def start(dut) -> tuple[list[AxiLiteMaster], RegisterSlave]:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    masters = [AxiLiteMaster(AxiLiteBus.from_prefix(dut, f"s{i}_axil"), dut.clk, dut.rst) for i in range(MASTERS)]
    slave = RegisterSlave(dut, "m_axil", allowed=lambda where: where < REFUSED)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    return masters, slave


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def every_master_gets_the_answers_to_its_own_accesses(dut):
    rng = seed()
    masters, slave = await start(dut)
    for port in (slave.slave.write_if, slave.slave.read_if):
        for channel in vars(port).values():
            if hasattr(channel, "set_pause_generator"):
                channel.set_pause_generator(rng.random() < 0.4 for _ in itertools.count())

    async def work(number: int, master: AxiLiteMaster) -> None:
        mine: dict[int, int] = {}
        for _ in range(60):
            where = number * 0x1000 + 4 * rng.randrange(16)
            if rng.random() < 0.1:
                answer = await (master.read(REFUSED, 4) if rng.random() < 0.5 else master.write(REFUSED, bytes(4)))
                assert int(answer.resp) == 2
            elif rng.random() < 0.5:
                mine[where] = rng.getrandbits(32)
                answer = await master.write(where, mine[where].to_bytes(4, "little"))
                assert int(answer.resp) == 0
            else:
                answer = await master.read(where, 4)
                assert int.from_bytes(answer.data, "little") == mine.get(where, 0)

    await Combine(*(cocotb.start_soon(work(i, m)) for i, m in enumerate(masters)))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_busy_master_does_not_starve_the_others(dut):
    masters, _ = await start(dut)
    done = [0] * MASTERS

    async def hurry(number: int) -> None:
        while True:
            await masters[number].read(number * 0x1000, 4)
            done[number] += 1

    for number in (0, 0, 0, 1, 2):  # master 0 makes three times as many requests
        cocotb.start_soon(hurry(number))
    for _ in range(3000):
        await RisingEdge(dut.clk)
    assert min(done) > 0.25 * sum(done), done
