# SPDX-License-Identifier: Apache-2.0
"""A reset reaches the other clock, and both sides are held until it has, however often and when it comes again."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge, Timer
from lib.runner import Bench, seed

BENCH = Bench(top="reset_bridge")


class Watch:
    """What both sides see at each edge of either clock."""

    def __init__(self, dut) -> None:
        self.dut, self.owed, self.length = dut, False, 4  # begun in a reset

    async def here(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.s_clk)
            await ReadOnly()
            self.owed |= bool(dut.s_rst.value)
            assert dut.s_hold.value or not self.owed, "released before the other side was reset"

    async def there(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.m_clk)
            await ReadOnly()
            if dut.m_rst.value:
                assert dut.s_hold.value, "the other side is reset alone"
                self.owed = False
                self.length += 1
            else:
                assert self.length == 0 or self.length >= 4, f"a reset of {self.length} cycles"
                self.length = 0


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(periods=[(1000, 1000), (1000, 9700), (9700, 1000), (1000, 1020)])
async def no_side_is_reset_without_the_other_at_whatever_moments_resets_come(dut, periods):
    rng = seed()
    dut.s_rst.value = 1
    for signal, period in zip((dut.s_clk, dut.m_clk), periods, strict=True):
        cocotb.start_soon(Clock(signal, period, "ps").start())
    while not dut.m_rst.value.is_resolvable or not dut.m_rst.value:
        await RisingEdge(dut.m_clk)
    watch = Watch(dut)
    cocotb.start_soon(watch.here())
    cocotb.start_soon(watch.there())
    for _ in range(150):
        await FallingEdge(dut.s_clk)
        dut.s_rst.value = 1
        for _ in range(rng.choice([1, 1, 2, 30])):
            await FallingEdge(dut.s_clk)
        dut.s_rst.value = 0
        await Timer(rng.randrange(1, 24 * max(periods)), "ps")
    while dut.s_hold.value:
        await FallingEdge(dut.s_clk)
    await Timer(20 * max(periods), "ps")
    assert not dut.m_rst.value and not dut.s_hold.value


@cocotb.test()
async def both_sides_are_held_while_the_other_clock_stands_still(dut):
    seed()
    cocotb.start_soon(Clock(dut.s_clk, 1000, "ps").start())
    dut.m_clk.value = 0
    dut.s_rst.value = 1
    await Timer(20, "ns")
    dut.s_rst.value = 0
    for _ in range(50):
        await FallingEdge(dut.s_clk)
        assert dut.s_hold.value
    clock = cocotb.start_soon(Clock(dut.m_clk, 3000, "ps").start())
    while dut.s_hold.value:
        await FallingEdge(dut.s_clk)
    assert not dut.m_rst.value
    clock.cancel()
