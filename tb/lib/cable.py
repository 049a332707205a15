# SPDX-License-Identifier: Apache-2.0
"""The cable of a top: XGMII, or the AXI-Streams of a hard MAC; frames go in and out without FCS either way."""

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource

# cocotb wants an even period: 3104 ps is 322.165 MHz, a little harder than 322.266.
CLOCK_PS = {"penstock_10g": 6400, "penstock_25g": 2560, "penstock_100g": 3104}
LINE_GBPS = {"penstock_10g": 10, "penstock_25g": 25, "penstock_100g": 100}
WIRE_OVERHEAD = 8 + 4 + 12  # preamble, FCS, gap
MIN_FRAME = 60


class XgmiiCable:
    """The PHY side of an XGMII; checks each FCS."""

    def __init__(self, dut):
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

    async def send(self, frame: bytes) -> None:
        await self.source.send(XgmiiFrame.from_payload(frame))


class HardMac:
    """A hard MAC: takes no more than the line carries, preamble, FCS and gap counted, and no frame with a hole."""

    FIFO_BYTES = 256  # how far the stream may run ahead of the line

    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_rx"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_tx"), dut.clk, dut.rst)
        dut.rx_local_fault.value = 0
        dut.rx_remote_fault.value = 0
        self.bytes_per_cycle = LINE_GBPS[dut._name] / 8 * CLOCK_PS[dut._name] / 1000
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
        assert len(frame.tdata) >= MIN_FRAME, f"a frame of {len(frame.tdata)} octets, which a hard MAC does not pad"
        return bytes(frame.tdata), frame.sim_time_start

    async def send(self, frame: bytes) -> None:
        await self.source.send(AxiStreamFrame(frame))


def plug(dut) -> XgmiiCable | HardMac:
    return XgmiiCable(dut) if hasattr(dut, "xgmii_txd") else HardMac(dut)
