# SPDX-License-Identifier: Apache-2.0
"""A board gets its address before any other master reaches the registers; then the module passes accesses through."""

import itertools
import sys
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from lib import rtl
from lib.axil_slave import RegisterSlave
from lib.runner import Bench, seed

BENCH = Bench(top="board_address_bench", sources=[Path(__file__).parent / "board_address_bench.sv"])

MAC, IP = 0x02_01_02_03_04_05, 0xC0A80180


def offsets() -> dict[str, int]:
    """Where the three registers are, from the map."""
    sys.path.insert(0, str(rtl.GENERATED))
    from penstock_regs import REGISTERS

    return {name: REGISTERS[name][0] for name in ("local_mac_hi", "local_mac_lo", "local_ip")}


async def start(dut) -> tuple[AxiLiteMaster, RegisterSlave]:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value, dut.mac.value, dut.ip.value = 1, MAC, IP
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    slave = RegisterSlave(dut, "m_axil", allowed=lambda where: where < 0x30000)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    return master, slave


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_address_is_written_first_and_then_every_access_passes(dut):
    rng = seed()
    master, slave = await start(dut)
    for port in (slave.slave.write_if, slave.slave.read_if):
        for channel in vars(port).values():
            if hasattr(channel, "set_pause_generator"):
                channel.set_pause_generator(rng.random() < 0.5 for _ in itertools.count())
    at = offsets()
    first = await master.write(
        at["local_ip"], (0x0A000001).to_bytes(4, "little")
    )  # requested during the board's own writes
    assert int(first.resp) == 0
    assert slave.writes == 4
    assert slave.words == {
        at["local_mac_hi"]: MAC >> 32,
        at["local_mac_lo"]: MAC & 0xFFFFFFFF,
        at["local_ip"]: 0x0A000001,
    }
    for _ in range(50):
        where, word = 4 * rng.randrange(0xC000), rng.getrandbits(32)
        await master.write(where, word.to_bytes(4, "little"))
        assert int.from_bytes((await master.read(where, 4)).data, "little") == word
    assert int((await master.read(0x30000, 4)).resp) == 2
    assert dut.done.value == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_sets_the_address_again(dut):
    _, slave = await start(dut)
    await RisingEdge(dut.done)
    slave.words.clear()
    dut.rst.value, dut.ip.value = 1, IP + 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.done)
    assert slave.words[offsets()["local_ip"]] == IP + 1
