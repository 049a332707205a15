# SPDX-License-Identifier: Apache-2.0
"""The cable of a top: XGMII, or the AXI-Streams of a hard MAC; frames go in and out without FCS either way."""

import os
from dataclasses import dataclass

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource

WIRE_OVERHEAD = 8 + 4 + 12  # preamble, FCS, gap
MIN_FRAME = 60


@dataclass(frozen=True)
class Line:
    """The rate of a top's line, and its clock: as the simulation has it, and as the gateware takes it to be."""

    gbps: int
    clock_ps: int
    clock_khz: int

    @property
    def cycle_ns(self) -> float:
        return self.clock_ps / 1000

    @property
    def octet_ns(self) -> float:
        return 8 / self.gbps

    @property
    def rate(self) -> int:
        """What the line carries in a cycle, as the gateware counts it: Q8.24 bytes."""
        return round((self.gbps * 125_000 << 24) / self.clock_khz)

    def cycles(self, octets: float) -> int:
        """In which the line carries so many octets."""
        return round(octets * self.octet_ns / self.cycle_ns)

    def gbps_of(self, rate: int) -> float:
        """Of a rate in Q8.24 bytes a cycle."""
        return 8 * rate / (1 << 24) / self.cycle_ns


# cocotb wants an even period: 3104 ps is 322.165 MHz, a little harder than 322.266.
LINES = [Line(10, 6400, 156_250), Line(25, 2560, 390_625), Line(100, 3104, 322_266)]


def line() -> Line:
    """Of the front end under test, by its parameter CLK_KHZ."""
    return next(line for line in LINES if line.clock_khz == int(os.environ["PARAM_CLK_KHZ"]))


class XgmiiCable:
    """The PHY side of an XGMII; checks each FCS."""

    def __init__(self, dut):
        self.dut = dut
        self.source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk, dut.rst)
        self.sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
        self.forgives_damage = False  # of a sender that ran dry
        self.damaged = 0

    async def receive(self) -> tuple[bytes, int]:
        """The next frame and when its first octet came, in ps."""
        frame = await self.sink.recv()
        while self.forgives_damage and not frame.check_fcs():
            self.damaged += 1
            frame = await self.sink.recv()
        assert frame.check_fcs(), "frame with a wrong FCS"
        return bytes(frame.get_payload()), frame.sim_time_start

    async def send(self, frame: bytes, damaged: bool = False) -> None:
        on_line = XgmiiFrame.from_payload(frame)
        on_line.data[-1] ^= damaged  # of the FCS
        await self.source.send(on_line)

    def starts(self) -> bool:
        """Whether a frame of ours starts in this cycle: /S/ in lane 0 or 4."""
        control, data = int(self.dut.xgmii_txc.value), int(self.dut.xgmii_txd.value)
        return any(control >> lane & 1 and data >> 8 * lane & 0xFF == 0xFB for lane in (0, 4))


class HardMac:
    """A hard MAC: takes no more than the line carries, preamble, FCS and gap counted, and no frame with a hole.

    It makes the FCS of a frame wrong that ends with `tuser`.
    """

    FIFO_BYTES = 256  # how far the stream may run ahead of the line

    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_rx"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_tx"), dut.clk, dut.rst)
        dut.rx_local_fault.value = 0
        dut.rx_remote_fault.value = 0
        self.forgives_damage = False  # of a sender that ran dry
        self.damaged = 0
        self.bytes_per_cycle = line().cycle_ns / line().octet_ns
        cocotb.start_soon(self.pace())

    async def pace(self) -> None:
        dut, beat_bytes = self.dut, len(self.dut.m_axis_tx_tkeep)
        credit, inside = 0.0, False
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            credit = min(credit + self.bytes_per_cycle, self.FIFO_BYTES)
            if dut.m_axis_tx_tready.value == 1:
                if dut.m_axis_tx_tvalid.value == 1:
                    last = dut.m_axis_tx_tlast.value == 1
                    credit -= int(dut.m_axis_tx_tkeep.value).bit_count() if last else beat_bytes
                    credit -= 0 if inside else WIRE_OVERHEAD
                    inside = not last
                else:
                    assert not inside, "a hole inside a frame"
            self.sink.pause = credit < beat_bytes

    async def receive(self) -> tuple[bytes, int]:
        frame = await self.sink.recv()
        while self.forgives_damage and frame.tuser:
            self.damaged += 1
            frame = await self.sink.recv()
        assert not frame.tuser, "a spoilt frame"
        assert len(frame.tdata) >= MIN_FRAME, f"a frame of {len(frame.tdata)} octets, which a hard MAC does not pad"
        return bytes(frame.tdata), frame.sim_time_start

    async def send(self, frame: bytes, damaged: bool = False) -> None:
        await self.source.send(AxiStreamFrame(frame, tuser=int(damaged)))

    def starts(self) -> bool:
        """Whether the first beat of a frame of ours is there in this cycle."""
        return self.dut.m_axis_tx_tvalid.value == 1


def plug(dut) -> XgmiiCable | HardMac:
    return XgmiiCable(dut) if hasattr(dut, "xgmii_txd") else HardMac(dut)
