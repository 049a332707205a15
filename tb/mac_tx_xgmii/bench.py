# SPDX-License-Identifier: Apache-2.0
"""The transmit MAC sends every frame whole, padded, with FCS, at the full line rate."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, with_timeout
from cocotbext.eth import XgmiiSink
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSource
from lib.runner import Bench, seed
from lib.xgmii import IDLE, LANES, LineMonitor

BENCH = Bench(top="mac_tx_xgmii")
MIN_PAYLOAD = 60


def with_filler(rng, frame: bytes) -> AxiStreamFrame:
    """The frame with noise where tkeep is low: none of it may reach the wire."""
    filler = -len(frame) % LANES
    return AxiStreamFrame(frame + rng.randbytes(filler), tkeep=[1] * len(frame) + [0] * filler)


class Tx:
    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
        self.line = LineMonitor(dut.clk, dut.xgmii_txd, dut.xgmii_txc)
        for log in (self.source.log, self.sink.log):
            log.setLevel("WARNING")
        self.frames = self.bytes = self.underruns = self.dropped = 0

    async def count(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.underruns += int(self.dut.stat_underrun.value)
            self.dropped += int(self.dut.stat_dropped.value)
            if int(self.dut.stat_frame.value):
                self.frames += 1
                self.bytes += int(self.dut.stat_bytes.value)

    async def expect(self, frame: bytes) -> None:
        got = await with_timeout(self.sink.recv(), 20, "us")
        assert got.ctrl is None, f"control characters inside a frame of {len(frame)} bytes"
        assert bytes(got.get_preamble()) == b"\x55" * 7 + b"\xd5"
        assert got.check_fcs(), f"wrong FCS on a frame of {len(frame)} bytes"
        assert bytes(got.get_payload()) == frame.ljust(MIN_PAYLOAD, b"\0"), f"frame of {len(frame)} bytes"


async def start(dut) -> Tx:
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    dut.rst.value = 1
    dut.local_fault.value = 0
    dut.remote_fault.value = 0
    tx = Tx(dut)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    tx.line.task = cocotb.start_soon(tx.line.run())
    cocotb.start_soon(tx.count())
    return tx


def assert_average_gap(gaps: list[int]) -> None:
    """Deficit idle count: no gap below 9, and never more than 3 octets in debt or one column ahead."""
    assert min(gaps) >= 9, f"gap of {min(gaps)} octets"
    balance = 0
    for gap in gaps:
        balance += gap - 12
        assert -3 <= balance <= 0, f"gaps run away by {balance} octets: {gaps}"


@cocotb.test()
async def every_length_leaves_padded_with_its_fcs_and_an_average_gap_of_12(dut):
    rng = seed()
    tx = await start(dut)
    lengths = [*range(14, 140), *(rng.randint(60, 9014) for _ in range(12))]
    rng.shuffle(lengths)
    frames = [rng.randbytes(length) for length in lengths]
    for frame in frames:
        await tx.source.send(with_filler(rng, frame))
    for frame in frames:
        await tx.expect(frame)
    assert_average_gap(tx.line.gaps())
    assert {start % LANES for start in tx.line.starts} == {0, 4}
    assert tx.frames == len(frames) and tx.underruns == 0 and tx.line.errors == 0
    assert tx.bytes == sum(max(length, MIN_PAYLOAD) + 4 for length in lengths)


@cocotb.test()
async def a_frame_after_any_pause_of_the_stream_keeps_the_minimum_gap(dut):
    rng = seed()
    tx = await start(dut)
    frames = [rng.randbytes(rng.randint(14, 90)) for _ in range(200)]
    for frame in frames:
        await tx.source.send(frame)
        if rng.random() < 0.7:
            await tx.source.wait()
            for _ in range(rng.randint(0, 6)):
                await RisingEdge(dut.clk)
    for frame in frames:
        await tx.expect(frame)
    assert min(tx.line.gaps()) >= 9


@cocotb.test()
async def mtu_4096_packets_fill_the_wire(dut):
    rng = seed()
    tx = await start(dut)
    frames = [rng.randbytes(4154) for _ in range(24)]  # 4158 octets with FCS
    for frame in frames:
        await tx.source.send(frame)
    for frame in frames:
        await tx.expect(frame)
    octets = tx.line.starts[-1] - tx.line.starts[0]
    goodput = 10 * 4096 * (len(frames) - 1) / octets
    dut._log.info("goodput of MTU 4096 packets: %.4f Gb/s of 9.8040 possible", goodput)
    assert goodput >= 9.79, f"{goodput:.4f} Gb/s"


@cocotb.test()
async def an_underrun_ends_the_frame_with_an_error_and_spares_the_next(dut):
    rng = seed()
    tx = await start(dut)
    for _ in range(10):
        broken, whole = rng.randbytes(rng.randint(200, 400)), rng.randbytes(rng.randint(60, 200))
        underruns = tx.underruns
        await tx.source.send(broken)
        for _ in range(rng.randint(5, 20)):
            await RisingEdge(dut.clk)
        tx.source.pause = True
        for _ in range(rng.randint(1, 5)):
            await RisingEdge(dut.clk)
        tx.source.pause = False
        await tx.source.send(whole)
        got = await with_timeout(tx.sink.recv(), 20, "us")
        assert got.data[-1] == 0xFE and got.ctrl[-1] == 1, "the broken frame does not end with /E/"
        sent = bytes(got.get_payload(strip_fcs=False))[:-1]
        assert broken.startswith(sent)
        # The model takes each further /E/ for nothing; the next frame must be intact.
        await tx.expect(whole)
        assert tx.underruns == underruns + 1


@cocotb.test()
@cocotb.parametrize(fault=["local_fault", "remote_fault"])
async def a_link_fault_swallows_frames_and_the_first_behind_it_is_whole(dut, fault):
    """IEEE 802.3 46.3.4: remote fault sets on a local fault, idle on a remote one, no data on either."""
    rng = seed()
    tx = await start(dut)
    tx.line.task.cancel()  # the fault cuts frames
    word = 0x0200009C_0200009C if fault == "local_fault" else int.from_bytes([IDLE] * LANES, "little")
    control = 0x11 if fault == "local_fault" else 0xFF
    for _ in range(12):
        before = tx.frames + tx.dropped
        count = rng.randint(4, 12)
        for _ in range(count):
            await tx.source.send(rng.randbytes(rng.randint(20, 300)))
        await ClockCycles(dut.clk, rng.randint(1, 60))
        getattr(dut, fault).value = 1
        await ClockCycles(dut.clk, 2)
        for _ in range(400):
            await FallingEdge(dut.clk)
            assert (int(dut.xgmii_txd.value), int(dut.xgmii_txc.value)) == (word, control)
        assert tx.source.idle() and tx.frames + tx.dropped == before + count
        getattr(dut, fault).value = 0
        await ClockCycles(dut.clk, 2)
        while not tx.sink.empty():
            tx.sink.recv_nowait()
        after = [rng.randbytes(rng.randint(60, 200)) for _ in range(3)]
        for frame in after:
            await tx.source.send(frame)
        if tx.sink.active:  # the model waits for the end of the frame that was cut
            assert (await with_timeout(tx.sink.recv(), 20, "us")).ctrl is not None
        for frame in after:
            await tx.expect(frame)
    assert tx.underruns == 0
