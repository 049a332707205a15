# SPDX-License-Identifier: Apache-2.0
"""The cable of a top: XGMII, GMII, or the AXI-Streams of a hard MAC; frames go in and out without FCS in all cases."""

import os
import zlib
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.eth import GmiiFrame, GmiiSource, XgmiiFrame, XgmiiSource

from lib import xgmii
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

FCS_RESIDUE = 0x2144DF1C  # zlib.crc32 over any frame and its FCS
WIRE_OVERHEAD = 8 + 4 + 12  # preamble, FCS, gap
MIN_FRAME = 60
IDLE_WORD = bytes([xgmii.IDLE]) * xgmii.LANES


@dataclass(frozen=True)
class Line:
    """The rate of a top's line, and its clock: as the simulation has it, and as the gateware takes it to be."""

    gbps: float
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
        return round(self.gbps * 125_000 * (1 << 24) / self.clock_khz)

    def cycles(self, octets: float) -> int:
        """The time in which the line carries this number of octets."""
        return round(octets * self.octet_ns / self.cycle_ns)

    def gbps_of(self, rate: int) -> float:
        """Of a rate in Q8.24 bytes a cycle."""
        return 8 * rate / (1 << 24) / self.cycle_ns


# cocotb wants an even period: 3104 ps is 322.165 MHz, a little harder than 322.266.
LINES = [
    Line(1, 16000, 62_500),
    Line(2.5, 25600, 39_062),
    Line(10, 6400, 156_250),
    Line(25, 2560, 390_625),
    Line(100, 3104, 322_266),
]


def line() -> Line:
    """Of the front end under test, by its parameter CLK_KHZ."""
    return next(line for line in LINES if line.clock_khz == int(os.environ["PARAM_CLK_KHZ"]))


def time_limit(ms: float) -> dict:
    """The time limit of a test that takes this many milliseconds at 10 Gb/s or more, scaled up for slower lines."""
    slow = os.environ.get("PARAM_CLK_KHZ") and 10 // line().gbps  # the runner reads a bench before it is run
    return {"timeout_time": ms * max(1, slow or 1), "timeout_unit": "ms"}


class XgmiiCable:
    """The PHY side of an XGMII; checks each FCS.

    Reads whole words, since the library's model takes each octet by itself: a quarter of a bench's time.
    """

    def __init__(self, dut):
        self.dut = dut
        self.source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk, dut.rst)
        self.source.log.setLevel("WARNING")  # else it writes down every frame
        self.sink: Queue[tuple[bytes, int, bool]] = Queue()
        self.forgives_damage = False  # of a sender that ran dry
        self.damaged = 0
        self.octets: bytearray | None = None  # of the frame that is coming
        cocotb.start_soon(self.read())
        cocotb.start_soon(self.forget())

    async def read(self) -> None:
        """Frames as they leave: octets after the SFD, when /S/ came in ps, and whether another character ended it."""
        ctrl, data, edge = self.dut.xgmii_txc, self.dut.xgmii_txd, RisingEdge(self.dut.clk)
        changes, start, octet_ps = ctrl.value_change, 0, line().clock_ps / xgmii.LANES
        await edge
        while self.dut.rst.value == 1:  # nothing is known of its outputs before its reset
            await edge
        while True:
            await edge
            control = int(ctrl.value)
            if self.octets is not None and control == 0:
                self.octets += int(data.value).to_bytes(xgmii.LANES, "little")
                continue
            word = int(data.value).to_bytes(xgmii.LANES, "little")
            for lane, octet in enumerate(word):
                character = control >> lane & 1
                if self.octets is None:
                    if character and octet == xgmii.START:
                        start, self.octets = round(get_sim_time("ps") + lane * octet_ps), bytearray([0x55])
                elif character:
                    self.end(start, error=octet != xgmii.TERM)
                else:
                    self.octets.append(octet)
            if word == IDLE_WORD and control == 0xFF:
                await changes

    def end(self, start: int, error: bool) -> None:
        octets, self.octets = bytes(self.octets or b""), None
        assert error or octets[:8] == b"\x55" * 7 + b"\xd5", f"preamble {octets[:8].hex()}"
        self.sink.put_nowait((octets[8:], start, error))

    async def forget(self) -> None:
        """What a reset cuts."""
        while True:
            await RisingEdge(self.dut.rst)
            self.octets = None

    async def receive(self) -> tuple[bytes, int]:
        """The next frame and when its first octet came, in ps."""
        octets, start, error = await self.sink.get()
        while self.forgives_damage and (error or zlib.crc32(octets) != FCS_RESIDUE):
            self.damaged += 1
            octets, start, error = await self.sink.get()
        assert not error and zlib.crc32(octets) == FCS_RESIDUE, "frame with a wrong FCS"
        return octets[:-4], start

    async def send(self, frame: bytes, damaged: bool = False) -> None:
        on_line = XgmiiFrame.from_payload(frame)
        on_line.data[-1] ^= damaged  # of the FCS
        await self.source.send(on_line)

    def starts(self) -> bool:
        """Whether a frame of ours starts in this cycle: /S/ in lane 0 or 4."""
        control, data = int(self.dut.xgmii_txc.value), int(self.dut.xgmii_txd.value)
        return any(control >> lane & 1 and data >> 8 * lane & 0xFF == 0xFB for lane in (0, 4))

    def ends(self) -> bool:
        """Whether a frame to the board ends in this cycle: /T/."""
        control, data = int(self.dut.xgmii_rxc.value), int(self.dut.xgmii_rxd.value)
        return any(control >> lane & 1 and data >> 8 * lane & 0xFF == 0xFD for lane in range(8))


class GmiiCable:
    """The PHY side of a GMII at 1 Gb/s, and its clocks; checks each FCS. Reads what leaves in the middle of a cycle."""

    OCTET_PS = 8000

    def __init__(self, dut):
        self.dut = dut
        dut.gmii_tx_enable.value = 1
        dut.link_up.value = dut.link_full_duplex.value = 1
        dut.link_speed.value = 2
        cocotb.start_soon(Clock(dut.gmii_tx_clk, self.OCTET_PS, "ps").start())
        cocotb.start_soon(Clock(dut.gmii_rx_clk, self.OCTET_PS - 2, "ps").start())
        self.source = GmiiSource(dut.gmii_rxd, dut.gmii_rx_er, dut.gmii_rx_dv, dut.gmii_rx_clk)
        self.source.log.setLevel("WARNING")
        self.sink: Queue[tuple[bytes, int, bool]] = Queue()
        self.forgives_damage = False  # of a sender that ran dry
        self.damaged = 0
        cocotb.start_soon(self.read())

    async def read(self) -> None:
        """Frames as they leave: octets after the SFD, when the preamble began in ps, and whether TX_ER was among them.

        The library's model leaves the first octet of each frame out.
        """
        enable, data, middle = self.dut.gmii_tx_en, self.dut.gmii_txd, FallingEdge(self.dut.gmii_tx_clk)
        cocotb.start_soon(self.note_errors())
        while True:
            await RisingEdge(enable)
            start, octets, self.error = int(get_sim_time("ps")), bytearray(), self.dut.gmii_tx_er.value == 1
            await middle
            while enable.value == 1:
                octets.append(int(data.value))
                await middle
            assert (b"\x55" * 7 + b"\xd5").startswith(octets[:8]), f"preamble {octets[:8].hex()}"
            self.sink.put_nowait((bytes(octets[8:]), start, self.error))

    async def note_errors(self) -> None:
        while True:
            await RisingEdge(self.dut.gmii_tx_er)
            self.error = True

    async def receive(self) -> tuple[bytes, int]:
        """The next frame and when its first octet came, in ps."""
        octets, start, error = await self.sink.get()
        while self.forgives_damage and (error or zlib.crc32(octets) != FCS_RESIDUE):
            self.damaged += 1
            octets, start, error = await self.sink.get()
        assert not error, "TX_ER inside a frame"
        assert zlib.crc32(octets) == FCS_RESIDUE, "frame with a wrong FCS"
        return octets[:-4], start

    async def send(self, frame: bytes, damaged: bool = False) -> None:
        on_line = GmiiFrame.from_payload(frame)
        on_line.data[-1] ^= damaged  # of the FCS
        await self.source.send(on_line)

    def starts(self) -> bool:
        """Whether a frame of ours is on the line in this cycle."""
        return self.dut.gmii_tx_en.value == 1


class HardMac:
    """A hard MAC: takes no more than the line carries, preamble, FCS and gap counted, and no frame with a hole.

    It makes the FCS of a frame wrong that ends with `tuser`. It is reset with the front end; where `m_axi_rst` alone
    does that, the bench resets its streams.
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
            if dut.rst.value == 1 or dut.m_axi_rst.value == 1:
                inside = False  # it is reset with the front end
            elif dut.m_axis_tx_tready.value == 1:
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

    def ends(self) -> bool:
        """Whether the last beat of a frame to the board is there in this cycle."""
        return self.dut.s_axis_rx_tvalid.value == 1 and self.dut.s_axis_rx_tlast.value == 1


def plug(dut) -> XgmiiCable | GmiiCable | HardMac:
    if hasattr(dut, "gmii_txd"):
        return GmiiCable(dut)
    return XgmiiCable(dut) if hasattr(dut, "xgmii_txd") else HardMac(dut)
