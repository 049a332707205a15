# SPDX-License-Identifier: Apache-2.0
"""Negotiation with a scripted peer: the PHY of an SGMII, whose link goes and comes, and peers that break the rules."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib.runner import Bench

LINK, SGMII = 40, 16  # microseconds, and cycles
BENCH = Bench(top="auto_negotiation", configs=[{"CLK_KHZ": 1000, "LINK_TIMER_US": LINK, "SGMII_TIMER_US": SGMII}])

CONFIG, IDLE, DATA = 0, 1, 2
ACK, FULL_DUPLEX, PAUSE = 0x4000, 0x0020, 0x0080
PHY_UP, PHY_FULL_DUPLEX, PHY_SPEED = 0x8000, 0x1000, {10: 0x0000, 100: 0x0400, 1000: 0x0800}
OURS = {0: FULL_DUPLEX | PAUSE, 1: 0x0001}
PHY = PHY_UP | PHY_FULL_DUPLEX | PHY_SPEED[1000] | 0x0001


async def start(dut, sgmii: int) -> None:
    cocotb.start_soon(Clock(dut.clk, 1, "us").start())
    dut.rst.value, dut.enable.value, dut.sgmii.value = 1, 1, sgmii
    dut.synced.value, dut.ordered_set_valid.value = 0, 0
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 3)
    dut.synced.value = 1


async def send_config(dut, config: int | None) -> None:
    """The peer sends this Config_Reg from now on, or idle."""
    dut.ordered_set.value = 0 if config is None else 1 << 16 | config
    dut.ordered_set_valid.value = 1
    await RisingEdge(dut.clk)
    dut.ordered_set_valid.value = 0
    await ClockCycles(dut.clk, 4)


def sent(dut) -> tuple[int, int]:
    """What we send, and the Config_Reg if it is that."""
    xmit = int(dut.xmit.value)
    return xmit, int(dut.config_reg.value) if xmit == CONFIG else 0


async def cycles_until(dut, condition) -> int:
    for cycle in range(4 * LINK):
        if condition():
            return cycle
        await RisingEdge(dut.clk)
    raise AssertionError(f"still {sent(dut)}")


async def negotiate(dut, sgmii: int, peer: int) -> None:
    """From our zeros to the link."""
    wait = SGMII if sgmii else LINK
    assert sent(dut) == (CONFIG, 0)
    await send_config(dut, 0)
    await cycles_until(dut, lambda: sent(dut) == (CONFIG, OURS[sgmii]))
    await send_config(dut, peer)
    assert sent(dut) == (CONFIG, OURS[sgmii] | ACK)
    await send_config(dut, peer | ACK)
    assert await cycles_until(dut, lambda: sent(dut)[0] == IDLE) >= wait - 6
    await send_config(dut, None)
    assert await cycles_until(dut, lambda: sent(dut)[0] == DATA) >= wait - 6
    await ClockCycles(dut.clk, 2)
    assert int(dut.partner.value) == peer


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def the_link_of_a_phy_is_ours(dut):
    await start(dut, sgmii=1)
    await ClockCycles(dut.clk, SGMII - 10)
    await negotiate(dut, 1, PHY)
    assert dut.link_up.value == 1
    # The cable is pulled, and put into a slower port, and a half-duplex one, and back: no link but the last.
    slow, half = PHY & ~PHY_SPEED[1000] | PHY_SPEED[100], PHY & ~PHY_FULL_DUPLEX
    for peer, is_link in ((PHY & ~PHY_UP, 0), (slow, 0), (half, 0), (PHY, 1)):
        await send_config(dut, peer)
        assert dut.link_up.value == 0 and sent(dut) == (CONFIG, 0)
        await negotiate(dut, 1, peer)
        assert dut.link_up.value == is_link, hex(peer)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_peer_of_half_duplex_is_no_link(dut):
    await start(dut, sgmii=0)
    await negotiate(dut, 0, 0x0040)
    assert dut.link_up.value == 0
    await send_config(dut, 0)
    await negotiate(dut, 0, FULL_DUPLEX)
    assert dut.link_up.value == 1


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_peer_that_begins_anew_or_changes_its_mind_is_followed(dut):
    await start(dut, sgmii=0)
    # Zeros at every stage, and another offer with the acknowledge bit.
    for after, breaks in ((1, 0), (2, 0), (3, 0), (1, PAUSE | ACK)):
        await send_config(dut, 0)
        await cycles_until(dut, lambda: sent(dut) == (CONFIG, OURS[0]))
        for stage in range(after):
            if stage == 0:
                await send_config(dut, FULL_DUPLEX)
            elif stage == 1:
                await send_config(dut, FULL_DUPLEX | ACK)
            else:
                await cycles_until(dut, lambda: sent(dut)[0] == IDLE)
        await send_config(dut, breaks)
        assert sent(dut) == (CONFIG, 0), (after, breaks)
    await negotiate(dut, 0, FULL_DUPLEX)
    assert dut.link_up.value == 1


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_short_loss_of_the_signal_is_no_new_negotiation_and_a_long_one_is(dut):
    await start(dut, sgmii=0)
    await negotiate(dut, 0, FULL_DUPLEX)
    dut.synced.value = 0
    await ClockCycles(dut.clk, LINK - 4)
    assert dut.link_up.value == 0 and sent(dut)[0] == DATA
    dut.synced.value = 1
    await ClockCycles(dut.clk, 3)
    assert dut.link_up.value == 1
    dut.synced.value = 0
    await ClockCycles(dut.clk, LINK + 4)
    assert dut.link_up.value == 0 and sent(dut) == (CONFIG, 0)
    dut.synced.value = 1
    await negotiate(dut, 0, FULL_DUPLEX)
    assert dut.link_up.value == 1


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def without_negotiation_the_link_is_the_signal(dut):
    await start(dut, sgmii=0)
    dut.enable.value = 0
    await ClockCycles(dut.clk, 4)
    assert sent(dut)[0] == DATA and dut.link_up.value == 1
    dut.synced.value = 0
    await ClockCycles(dut.clk, 4)
    assert dut.link_up.value == 0
