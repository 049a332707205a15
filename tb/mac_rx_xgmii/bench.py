# SPDX-License-Identifier: Apache-2.0
"""The receive MAC passes on every good frame, marks every bad one, and stays synchronised after both."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.eth import XgmiiFrame, XgmiiSource
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.runner import Bench, seed
from lib.xgmii import ERROR, IDLE, LANES, START, drive_line, idle, line_frame, with_fcs

BENCH = Bench(top="mac_rx_xgmii")
MAX_BYTES = 9022
SEQUENCE = 0x9C  # ordered set: local and remote fault


class Rx:
    def __init__(self, dut):
        self.dut = dut
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.sink.log.setLevel("WARNING")
        self.good = self.bad_fcs = self.bad_frame = self.undersize = self.oversize = 0

    async def count(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.good += int(self.dut.stat_good.value)
            self.bad_fcs += int(self.dut.stat_bad_fcs.value)
            self.bad_frame += int(self.dut.stat_bad_frame.value)
            self.undersize += int(self.dut.stat_undersize.value)
            self.oversize += int(self.dut.stat_oversize.value)

    async def settle(self) -> None:
        for _ in range(10):
            await RisingEdge(self.dut.clk)

    def good_frames(self) -> list[bytes]:
        """Everything received so far that was not marked bad; `errors` counts the others."""
        frames = []
        self.errors = 0
        while not self.sink.empty():
            frame = self.sink.recv_nowait(compact=False)
            if frame.tuser[-1]:
                self.errors += 1
            else:
                frames.append(bytes(octet for octet, keep in zip(frame.tdata, frame.tkeep, strict=True) if keep))
        return frames

    async def line(self, octets: list[tuple[int, int]]) -> None:
        await drive_line(self.dut.clk, self.dut.xgmii_rxd, self.dut.xgmii_rxc, octets)
        await self.settle()

    def counts(self) -> tuple[int, int, int]:
        return self.good, self.bad_fcs, self.bad_frame


async def start(dut) -> Rx:
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    dut.rst.value = 1
    dut.xgmii_rxd.value = int.from_bytes(bytes([IDLE] * LANES), "little")
    dut.xgmii_rxc.value = 0xFF
    rx = Rx(dut)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    cocotb.start_soon(rx.count())
    return rx


@cocotb.test()
async def good_frames_of_every_length_arrive_from_both_start_lanes(dut):
    rng = seed()
    rx = await start(dut)
    source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk)
    source.log.setLevel("WARNING")
    frames = [
        rng.randbytes(n) for n in [*range(60, 130), *(rng.randint(60, MAX_BYTES - 4) for _ in range(6)), MAX_BYTES - 4]
    ]
    rng.shuffle(frames)
    lanes = set()
    for forced in (False, True):
        source.force_offset_start = forced
        for frame in frames:
            await source.send(XgmiiFrame.from_payload(frame, tx_complete=lambda f: lanes.add(f.start_lane)))
        await source.wait()
        await rx.settle()
        assert rx.good_frames() == frames
        assert rx.errors == 0
    assert rx.counts() == (2 * len(frames), 0, 0)
    assert lanes == {0, 4}


@cocotb.test()
async def every_single_bit_error_of_a_frame_is_seen(dut):
    rng = seed()
    rx = await start(dut)
    frame = rng.randbytes(rng.randint(60, 70))
    whole = with_fcs(frame)
    line = []
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        line += line_frame(bytes(flipped)) + idle(11)
        line += idle(-len(line) % 4)
    await rx.line(line)
    assert rx.good_frames() == []
    assert rx.errors == 8 * len(whole)
    assert rx.counts() == (0, 8 * len(whole), 0)


@cocotb.test()
async def runts_and_oversize_frames_are_marked_or_gone(dut):
    rng = seed()
    rx = await start(dut)
    good = rng.randbytes(60)
    lengths = [*range(0, 64), *range(MAX_BYTES + 1, MAX_BYTES + 10), 12000]
    line = []
    for length in lengths:  # each with a right FCS where it has room for one
        line += line_frame(with_fcs(rng.randbytes(length - 4)) if length > 4 else rng.randbytes(length)) + idle(12)
        line += idle(-len(line) % 4)
        line += line_frame(with_fcs(good)) + idle(12)
        line += idle(-len(line) % 4)
    await rx.line(line)
    assert rx.good_frames() == [good] * len(lengths)
    assert rx.counts() == (len(lengths), 0, len(lengths))
    assert (rx.undersize, rx.oversize) == (64, len(lengths) - 64)


@cocotb.test()
async def a_character_inside_a_frame_spoils_that_frame_only(dut):
    rng = seed()
    rx = await start(dut)
    good = [rng.randbytes(rng.randint(60, 90)) for _ in range(120)]
    line = []
    for frame in good:
        broken = line_frame(with_fcs(rng.randbytes(rng.randint(60, 90))))
        at = rng.randrange(1, len(broken) - 1)
        broken[at] = (rng.choice([ERROR, IDLE, SEQUENCE, START]), 1)
        if broken[at][0] == START and (len(line) + at) % 4 == 0:
            broken[at] = (ERROR, 1)  # a start in a legal lane is another matter, tested below
        line += broken + idle(12)
        line += idle(-len(line) % 4)
        line += line_frame(with_fcs(frame)) + idle(12)
        line += idle(-len(line) % 4)
    await rx.line(line)
    assert rx.good_frames() == good
    assert rx.counts() == (len(good), 0, len(good))


@cocotb.test()
async def a_start_inside_a_frame_ends_it_and_begins_the_next(dut):
    rng = seed()
    rx = await start(dut)
    good = [rng.randbytes(rng.randint(60, 90)) for _ in range(60)]
    line = []
    for frame in good:
        cut = 4 * rng.randint(2, 15)
        line += line_frame(with_fcs(rng.randbytes(60)))[:cut]
        line += line_frame(with_fcs(frame)) + idle(12)
        line += idle(-len(line) % 4)
    await rx.line(line)
    assert rx.good_frames() == good
    assert rx.counts() == (len(good), 0, len(good))


@cocotb.test()
async def frames_with_the_smallest_legal_gap_are_all_received(dut):
    """IEEE 802.3 46.2.1: a receiver may see the gap shrunk to 5 octets, /T/ counted."""
    rng = seed()
    rx = await start(dut)
    good = [rng.randbytes(rng.randint(60, 100)) for _ in range(200)]
    line = []
    for frame in good:
        line += line_frame(with_fcs(frame)) + idle(4)
        line += idle(-len(line) % 4)
    await rx.line(line)
    assert rx.good_frames() == good
    assert rx.counts() == (len(good), 0, 0)


@cocotb.test()
async def noise_never_makes_a_good_frame_nor_stops_the_next(dut):
    rng = seed()
    rx = await start(dut)
    good = [rng.randbytes(rng.randint(60, 90)) for _ in range(40)]
    line = []
    for frame in good:
        for _ in range(8 * rng.randint(1, 12)):
            line.append((rng.choice([IDLE, START, ERROR, SEQUENCE, 0xFD, 0x55, 0xD5]), rng.randint(0, 1)))
        line += idle(8) + line_frame(with_fcs(frame)) + idle(12)
        line += idle(-len(line) % 4)
    await rx.line(line)
    assert rx.good_frames() == good
    assert rx.good == len(good)
