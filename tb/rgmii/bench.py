# SPDX-License-Identifier: Apache-2.0
"""Frames cross the pins of an RGMII both ways at each speed, its clock has that speed's period, high for half, and
the MAC follows the link state that the PHY reports between frames."""

from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Edge, FallingEdge, RisingEdge, Timer
from cocotb.utils import get_sim_time
from cocotbext.eth import RgmiiSink, RgmiiSource
from lib.gmii import SPEEDS, TX_CLOCK_PS, GmiiMac, reset, wait_up, with_filler
from lib.runner import Bench, seed

BENCH = Bench(top="rgmii_port", sources=[Path(__file__).parent / "rgmii_port.sv"])


class Phy(RgmiiSource):
    """The model's source, which sends the state of the link (in-band status) while it has nothing to send."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.status = 0
        cocotb.start_soon(self.between())

    async def between(self) -> None:
        while True:
            await FallingEdge(self.clock)
            await Timer(1, "ps")  # after the model, which writes zeros in its gaps
            if not self.active:
                self.data.value = self.status

    async def send_status(self, up: int, code: int, full_duplex: int, cycles: int = 40) -> None:
        """From now on; returns when the text has appeared this number of times."""
        self.status = full_duplex << 3 | code << 1 | up
        for _ in range(cycles):
            await FallingEdge(self.clock)


async def late(pin, name: str, dut, delay_ps: int = 2000) -> None:
    """Copies the line's clock to `name`, as late as a PHY takes it so that its data are steady."""
    copy = getattr(dut, name)
    while True:
        await Edge(pin)
        level = int(pin.value)
        await Timer(delay_ps, "ps")
        copy.value = level


async def start(dut, mbps: int) -> GmiiMac:
    mac = GmiiMac(dut, mbps)
    cocotb.start_soon(Clock(dut.tx_clk, TX_CLOCK_PS, "ps").start())
    cocotb.start_soon(Clock(dut.rgmii_rxc, mac.speed.clock_ps, "ps").start())
    mac.wire_in = Phy(dut.rgmii_rxd, dut.rgmii_rx_ctl, dut.rgmii_rxc, mii_select=dut.mii)
    mac.wire_out = RgmiiSink(dut.rgmii_txd, dut.rgmii_tx_ctl, dut.phy_txc, mii_select=dut.mii)
    cocotb.start_soon(late(dut.rgmii_txc, "phy_txc", dut))
    mac.quiet()
    await reset(dut, 16_000)
    cocotb.start_soon(mac.count())
    for _ in range(30):
        await RisingEdge(dut.rgmii_rxc)
    assert mac.level("local_fault"), "a link without a status so far"
    await mac.wire_in.send_status(1, mac.speed.code, 1)
    await wait_up(mac)
    while not mac.wire_out.empty():  # what the pins did before the reset
        mac.wire_out.recv_nowait()
    return mac


@cocotb.test()
@cocotb.parametrize(mbps=[1000, 100, 10])
async def frames_cross_the_pins_both_ways(dut, mbps):
    rng = seed()
    mac = await start(dut, mbps)
    count = 30 if mbps > 10 else 5
    there = [rng.randbytes(rng.randint(60, 200)) for _ in range(count)]
    back = [rng.randbytes(rng.randint(60, 200)) for _ in range(count)]
    for frame in there:
        await mac.tx.send(with_filler(rng, frame))
    await mac.peer_sends(*back)
    for frame in there:
        await mac.expect(frame)
    await mac.settle()
    assert mac.received() == [(frame, 0) for frame in back]
    assert mac.counts == {"tx_frame": count, "rx_frame": count}
    assert mac.level("line_share") == mac.speed.share


@cocotb.test()
@cocotb.parametrize(mbps=[1000, 100, 10])
async def the_clock_that_leaves_has_the_period_of_the_speed_and_is_high_for_half(dut, mbps):
    mac = await start(dut, mbps)
    for _ in range(3):
        await RisingEdge(dut.rgmii_txc)
        rise = get_sim_time("ps")
        await FallingEdge(dut.rgmii_txc)
        fall = get_sim_time("ps")
        await RisingEdge(dut.rgmii_txc)
        assert (fall - rise, get_sim_time("ps") - rise) == (mac.speed.clock_ps // 2, mac.speed.clock_ps)


@cocotb.test()
async def the_mac_follows_the_link_as_the_phy_reports_it_and_no_glitch(dut):
    rng = seed()
    mac = await start(dut, 1000)
    send_status = mac.wire_in.send_status
    await send_status(0, 2, 1, cycles=12)  # too short to count
    await send_status(1, 2, 1)
    assert mac.counts["link_fault"] == 0
    for word in ((0, 2, 1), (1, 2, 0)):  # down; half duplex
        await send_status(*word)
        await mac.settle()
        assert mac.level("local_fault")
        await send_status(1, 2, 1)
        await wait_up(mac)
    await send_status(1, SPEEDS[100].code, 1)
    await mac.settle()
    assert mac.level("line_share") == SPEEDS[100].share
    await send_status(1, 2, 1)
    await wait_up(mac)
    frame = rng.randbytes(100)
    await mac.tx.send(with_filler(rng, frame))
    await mac.expect(frame)
