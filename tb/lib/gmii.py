# SPDX-License-Identifier: Apache-2.0
"""A MAC on GMII or RGMII in a bench: line clocks at each speed, streams, and the counts of its status."""

from collections import Counter
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from cocotbext.eth import GmiiFrame

from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

TX_CLOCK_PS = 8000
MIN_PAYLOAD = 60
LEVELS = ("line_share", "local_fault", "remote_fault")  # of mac_status_t; all others are pulses


@dataclass(frozen=True)
class Speed:
    """One speed of the line: its code in gmii_pkg, its clock, and how many cycles of 125 MHz that is."""

    code: int
    share: int
    clock_ps: int
    divider: int

    @property
    def octet_ps(self) -> int:
        return self.clock_ps if self.code == 2 else 2 * self.clock_ps


SPEEDS = {1000: Speed(2, 0, 8000, 1), 100: Speed(1, 1, 40_000, 5), 10: Speed(0, 2, 400_000, 50)}


def with_filler(rng, frame: bytes) -> AxiStreamFrame:
    """The frame with noise where tkeep is low: none of it may reach the wire."""
    filler = -len(frame) % 8
    return AxiStreamFrame(frame + rng.randbytes(filler), tkeep=[1] * len(frame) + [0] * filler)


class GmiiMac:
    """The MAC's streams and counts; `wire_in` and `wire_out` are the models of its line."""

    def __init__(self, dut, mbps: int):
        self.dut, self.speed = dut, SPEEDS[mbps]
        self.tx = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.rx = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.counts: Counter[str] = Counter()
        self.wire_in = self.wire_out = None

    def quiet(self) -> None:
        for model in (self.tx, self.rx, self.wire_in, self.wire_out):
            model.log.setLevel("WARNING")

    async def count(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            if word := int(self.dut.status.value):
                for name, pulse in structs.unpack("mac_status_t", word).items():
                    if pulse and name not in LEVELS:
                        self.counts[name] += 1

    def level(self, name: str) -> int:
        return structs.unpack("mac_status_t", int(self.dut.status.value))[name]

    async def octets(self, count: int) -> None:
        """Waits while the line carries this number of octets."""
        await Timer(count * self.speed.octet_ps, "ps")

    async def settle(self) -> None:
        """Until what the line has carried is through both crossings."""
        await self.octets(16)
        for _ in range(12):
            await RisingEdge(self.dut.clk)

    async def peer_sends(self, *frames: bytes) -> None:
        for frame in frames:
            await self.wire_in.send(GmiiFrame.from_payload(frame))
        await self.wire_in.wait()
        await self.settle()

    def received(self) -> list[tuple[bytes, int]]:
        """Each frame that has come since, and whether it is bad."""
        found = []
        while not self.rx.empty():
            frame = self.rx.recv_nowait(compact=False)
            octets = bytes(o for o, keep in zip(frame.tdata, frame.tkeep, strict=True) if keep)
            found.append((octets, int(frame.tuser[-1])))
        return found

    async def expect(self, frame: bytes) -> GmiiFrame:
        """The next frame on the line is this one, padded and sealed."""
        got = await self.wire_out.recv()
        assert got.error is None, f"TX_ER inside a frame of {len(frame)} bytes"
        # The GMII model leaves out the octet, on MII the nibble, with which a frame begins, and tells when it was.
        assert bytes(got.get_preamble())[-7:] == b"\x55" * 6 + b"\xd5"
        assert got.sim_time_sfd - got.sim_time_start == 8 * self.speed.octet_ps
        assert got.check_fcs(), f"wrong FCS on a frame of {len(frame)} bytes"
        assert bytes(got.get_payload()) == frame.ljust(MIN_PAYLOAD, b"\0"), f"frame of {len(frame)} bytes"
        return got


async def reset(dut, clock_ps: int) -> None:
    """Starts the core's clock, and holds the reset for some cycles."""
    cocotb.start_soon(Clock(dut.clk, clock_ps, "ps").start())
    dut.rst.value = 1
    for _ in range(8):
        await RisingEdge(dut.clk)
    dut.rst.value = 0


async def wait_up(mac: GmiiMac) -> None:
    """Both sides of the line have left reset, and the link is up."""
    while mac.level("local_fault"):
        await RisingEdge(mac.dut.clk)
    await mac.settle()
    mac.counts.clear()
