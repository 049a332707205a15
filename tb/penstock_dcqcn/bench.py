# SPDX-License-Identifier: Apache-2.0
"""The limiter by itself, between a stack that is not ours and a line: cocotbext-axi's streams and AXI-Lite, frames and
CNPs by scapy. It changes no byte, follows each notification of its law, and paces what passes at its R_C."""

import itertools
import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.register_map import pack
from lib.runner import Bench, seed
from scapy.contrib.roce import BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

BENCH = Bench(
    top="penstock_dcqcn",
    configs=[
        {"DATA_W": 64},
        {"DATA_W": 64, "WITH_QCN": 1},
        {"DATA_W": 512, "CLK_KHZ": 322_266, "LINE_MBPS": 100_000},
    ],
)
WITH_QCN = os.environ.get("PARAM_WITH_QCN") == "1"
BYTES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
KHZ, MBPS = int(os.environ.get("PARAM_CLK_KHZ", "156250")), int(os.environ.get("PARAM_LINE_MBPS", "10000"))
LINE = round(MBPS * 125 / KHZ * 2**24)  # bytes per cycle, Q8.24
CONTROL, RATE_MIN, RATE_LINE, DECREASE, DECAY, INCREASE, OVERHEAD = 0x00, 0x0C, 0x10, 0x14, 0x18, 0x1C, 0x28
R_C, R_T, STAGES, CUTS, FRAMES, NOTIFIED = 0x40, 0x44, 0x4C, 0x50, 0x54, 0x58
QCN_CONTROL, QCN_RATE_MIN, QCN_RATE_LINE, QCN_TIMER, QCN_BYTES, QCN_SEED = 0x60, 0x6C, 0x70, 0x74, 0x78, 0x7C
NEVER = 0xFFFF_FFFF
ACTED = 60  # cycles within which a CNP has surely been acted upon
SLVERR = 2


class Stack:
    """The engine in front of the limiter and the line behind it."""

    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)

    async def write(self, at: int, word: int) -> int:
        return int((await self.registers.write(at, word.to_bytes(4, "little"))).resp)

    async def read(self, at: int) -> int:
        return int.from_bytes((await self.registers.read(at, 4)).data, "little")

    async def receive(self, frame: bytes) -> None:
        """What the stack's receiver does with a frame: a CNP becomes a pulse."""
        if BTH in (packet := Ether(frame)) and packet[BTH].opcode == 0x81:
            self.dut.cnp_valid.value = 1
            await RisingEdge(self.dut.clk)
            self.dut.cnp_valid.value = 0

    async def notify_by_qcn(self, feedback: int) -> None:
        self.dut.cnm_valid.value, self.dut.cnm_feedback.value = 1, feedback
        await RisingEdge(self.dut.clk)
        self.dut.cnm_valid.value = 0
        await ClockCycles(self.dut.clk, ACTED)

    async def notify(self) -> None:
        await self.receive(bytes(Ether() / IP(src="10.0.0.2", dst="10.0.0.1") / UDP(dport=4791) / cnp(7)))
        await ClockCycles(self.dut.clk, ACTED)


async def start(dut) -> Stack:
    cocotb.start_soon(Clock(dut.clk, 4, "ns").start())
    dut.cnp_valid.value = 0
    dut.cnm_valid.value = 0
    dut.paused.value = 0
    dut.rst.value = 1
    stack = Stack(dut)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 40)
    cocotb.start_soon(beats_stay(dut))
    return stack


async def beats_stay(dut) -> None:
    """AMBA AXI-Stream: what is shown stays as it is until it is taken."""
    shown = None
    while True:
        await RisingEdge(dut.clk)
        now = (
            (dut.m_axis_tdata.value, dut.m_axis_tkeep.value, dut.m_axis_tlast.value)
            if dut.m_axis_tvalid.value
            else None
        )
        assert shown is None or now == shown, "a beat was taken back"
        shown = None if dut.m_axis_tready.value else now


async def passage(dut, frames: int) -> list[tuple[int, int]]:
    """Of each frame, the cycle of its last beat and its bytes."""
    found, size = [], 0
    for cycle in itertools.count():
        await RisingEdge(dut.clk)
        if dut.m_axis_tvalid.value and dut.m_axis_tready.value:
            size += dut.m_axis_tkeep.value.to_unsigned().bit_count()
            if dut.m_axis_tlast.value:
                found.append((cycle, size))
                size = 0
            if len(found) == frames:
                return found


def roce(rng, size: int) -> bytes:
    header = Ether() / IP(src="10.0.0.1", dst="10.0.0.2", tos=2) / UDP(sport=49_152, dport=4791)
    return bytes(header / BTH(opcode=0x07, dqpn=7, psn=1) / rng.randbytes(size))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def frames_pass_unchanged_and_without_a_gap_until_a_cnp_comes(dut):
    rng = seed()
    stack = await start(dut)
    frames = [roce(rng, rng.randrange(1, 3000)) for _ in range(30)]
    watched = cocotb.start_soon(passage(dut, len(frames)))
    for frame in frames:
        stack.source.send_nowait(AxiStreamFrame(frame))
    assert [bytes((await stack.sink.recv()).tdata) for _ in frames] == frames
    beats = [-(-len(frame) // BYTES) for frame in frames]
    ends = [cycle for cycle, _ in await watched]
    assert [b - a for a, b in itertools.pairwise(ends)] == beats[1:], "a gap between frames"
    assert [await stack.read(at) for at in (R_C, CUTS, FRAMES, NOTIFIED)] == [LINE, 0, len(frames), 0]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def stalls_on_both_sides_lose_nothing_while_the_limiter_is_at_work(dut):
    rng = seed()
    stack = await start(dut)
    stack.source.set_pause_generator(rng.random() < 0.3 for _ in itertools.count())
    stack.sink.set_pause_generator(rng.random() < 0.3 for _ in itertools.count())
    frames = [roce(rng, rng.randrange(1, 2000)) for _ in range(30)]
    for number, frame in enumerate(frames):
        await stack.source.send(AxiStreamFrame(frame))
        if number % 10 == 5:
            await stack.notify()
    assert [bytes((await stack.sink.recv()).tdata) for _ in frames] == frames
    assert await stack.read(FRAMES) == len(frames) and await stack.read(NOTIFIED) == 3


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def each_cnp_cuts_and_what_passes_is_what_r_c_allows(dut):
    rng = seed()
    stack = await start(dut)
    overhead = 40
    assert await stack.write(OVERHEAD, overhead) == 0
    for at, word in ((DECREASE, 1), (DECAY, NEVER), (INCREASE, NEVER)):
        assert await stack.write(at, word) == 0
    for cuts in (1, 2):
        await stack.notify()
        rate = await stack.read(R_C)
        assert await stack.read(CUTS) == cuts
        assert abs(rate / (LINE / 2**cuts) - 1) < 1e-6, "alpha is 1"
        await passes_at(stack, rng, rate, overhead)


async def passes_at(stack: Stack, rng, rate: int, overhead: int) -> None:
    """Frames pass at this R_C, but for the longest frame and a round of the engine."""
    frames = [roce(rng, rng.choice([200, 1024, 4096])) for _ in range(40)]
    watched = cocotb.start_soon(passage(stack.dut, len(frames)))
    for frame in frames:
        stack.source.send_nowait(AxiStreamFrame(frame))
    passed = await watched
    (begin, _), (end, _) = passed[4], passed[-1]
    took = sum(size + overhead for _, size in passed[5:])
    longest = 4096 + 54 + overhead
    allowed = rate / 2**24 * (end - begin)
    stack.dut._log.info(
        f"R_C {rate / 2**24:.3f} bytes a cycle: {took} bytes in {end - begin} cycles, {allowed:.0f} allowed"
    )
    assert abs(took - allowed) <= longest + 2 * 16 * rate / 2**24


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def the_rate_recovers_and_without_the_law_nothing_is_limited(dut):
    stack = await start(dut)
    await stack.write(INCREASE, 200)
    await stack.notify()
    assert await stack.read(R_C) < LINE
    await stack.write(0x08, LINE // 4)  # R_HAI
    await stack.write(0x04, LINE // 8)  # R_AI
    while await stack.read(R_C) < LINE:
        pass
    assert await stack.read(STAGES) >> 8 & 0xFF > 5, "stages of the timer"
    await stack.write(CONTROL, pack("cc.control", law=0, g_shift=8))
    await stack.notify()
    assert await stack.read(R_C) == LINE and await stack.read(CUTS) == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def registers_keep_what_is_written_and_refuse_what_is_not_there(dut):
    rng = seed()
    stack = await start(dut)
    assert await stack.read(RATE_LINE) == LINE and await stack.read(OVERHEAD) == 24
    assert await stack.read(CONTROL) == pack(
        "cc.control", law=1, clamp_target=1, restart_timer=1, g_shift=8, stage_threshold=5, hyper_threshold=10
    )
    words = {at: rng.getrandbits(32) for at in range(4, 0x2C, 4)}
    for at, word in words.items():
        assert await stack.write(at, word) == 0
    assert {at: await stack.read(at) for at in words} == words
    absent = [] if WITH_QCN else [QCN_CONTROL, QCN_SEED]
    for at in (0x2C, 0x3C, R_C, *absent):
        assert await stack.write(at, 1) == SLVERR, f"{at:#x}"
    for at in (0x2C, 0x5C, *absent):
        assert int((await stack.registers.read(at, 4)).resp) == SLVERR, f"{at:#x}"
    assert int((await stack.registers.write(RATE_MIN, b"\1\2")).resp) == SLVERR
    assert await stack.read(RATE_MIN) == words[RATE_MIN]


@cocotb.test(timeout_time=4, timeout_unit="ms", skip=not WITH_QCN)
async def under_qcn_feedback_cuts_in_its_proportion_and_the_timer_recovers(dut):
    """IEEE 802.1Qau: a cut by G_d |F_b|, G_d = 1/128; a stage of fast recovery goes half the way back to R_T."""
    rng = seed()
    stack = await start(dut)
    assert await stack.read(QCN_RATE_LINE) == LINE and await stack.read(QCN_CONTROL) == 0x4D57
    await stack.notify_by_qcn(32)
    assert [await stack.read(at) for at in (R_C, CUTS, NOTIFIED)] == [LINE, 0, 1], "under DCQCN it is another law's"
    for at, word in (
        (QCN_CONTROL, pack("qcn.control", gd_shift=7, stage_threshold=5)),
        (QCN_TIMER, 0),
        (QCN_BYTES, 0),
        (CONTROL, pack("cc.control", law=2, g_shift=8)),
    ):
        assert await stack.write(at, word) == 0
    await stack.notify()
    assert await stack.read(R_C) == LINE, "a CNP is another law's"
    rate = LINE
    for feedback in (32, 63, 1):
        await stack.notify_by_qcn(feedback)
        rate *= 1 - feedback / 128
        assert abs(await stack.read(R_C) / rate - 1) < 1e-5, feedback
    await passes_at(stack, rng, await stack.read(R_C), 24)
    target = await stack.read(R_T)
    await stack.write(QCN_TIMER, 2000)
    while (recovered := await stack.read(R_C)) <= rate + 2:
        pass
    assert abs(recovered / ((rate + target) / 2) - 1) < 1e-4
    assert await stack.read(NOTIFIED) == 5 and await stack.read(CUTS) == 3
