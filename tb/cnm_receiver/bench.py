# SPDX-License-Identifier: Apache-2.0
"""Only congestion notification messages for our queue pairs become feedback, each once."""

import itertools
import os
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from lib.cnm import CN_TAG, CNM, cnm
from lib.roce import LOCAL_MAC, TxHeader, mac_int
from lib.runner import Bench, seed

# Each width and each number of queue pairs; all pairs of both in `make soak`.
SIZES = [(64, 1), (64, 256), (512, 4)]
if os.environ.get("PENSTOCK_ALL_SIZES"):
    SIZES = list(itertools.product((64, 512), (1, 4, 256)))
BENCH = Bench(top="cnm_receiver", configs=[{"DATA_W": width, "N_QP": number} for width, number in SIZES])

LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
N_QP = int(os.environ.get("PARAM_N_QP", "4"))
DELAY = 2  # cycles from tlast to the pulse


@dataclass
class Frame:
    """A frame, whether the MAC calls it bad, and what shall come of it: feedback, `counted`, or `stranger`."""

    octets: bytes
    bad: bool = False
    feedback: tuple[int, int] | None = None
    counted: bool = False
    stranger: bool = False


class Receiver:
    def __init__(self, dut, ready: int):
        self.dut, self.cycle = dut, 0
        self.feedbacks: list[tuple[int, int, int]] = []  # cycle, queue pair, |F_b|
        self.counted: list[int] = []
        self.strangers: list[int] = []
        dut.ready.value = ready

    async def watch(self) -> None:
        dut = self.dut
        while True:
            await FallingEdge(dut.clk)
            if dut.cnm_valid.value == 1:
                self.feedbacks.append((self.cycle, int(dut.cnm_qp.value), int(dut.cnm_feedback.value)))
            if dut.stat_rx_cnm.value == 1:
                self.counted.append(self.cycle)
            if dut.stat_not_ready.value == 1:
                self.strangers.append(self.cycle)
            self.cycle += 1

    async def send(self, frame: Frame, stalled=lambda: False) -> int:
        """Returns the cycle of tlast; nothing can hold this stream up but its source."""
        dut = self.dut
        for at in range(0, len(frame.octets), LANES):
            while stalled():
                dut.s_axis_tvalid.value = 0
                await RisingEdge(dut.clk)
            beat = frame.octets[at : at + LANES]
            last = at + LANES >= len(frame.octets)
            dut.s_axis_tdata.value = int.from_bytes(beat, "little")
            dut.s_axis_tkeep.value = (1 << len(beat)) - 1
            dut.s_axis_tlast.value = last
            dut.s_axis_tuser.value = last and frame.bad
            dut.s_axis_tvalid.value = 1
            await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0
        return self.cycle - 1

    async def check(self, frames: list[Frame], stalled=lambda: False) -> None:
        """Sends the frames; exactly the pulse required by each must come, in its cycle."""
        feedbacks, counted, strangers = [], [], []
        for frame in frames:
            at = DELAY + await self.send(frame, stalled)
            feedbacks += [(at, *frame.feedback)] if frame.feedback else []
            counted += [at] if frame.counted else []
            strangers += [at] if frame.stranger else []
        for _ in range(2 * DELAY):
            await RisingEdge(self.dut.clk)
        assert self.feedbacks == feedbacks
        assert self.counted == counted
        assert self.strangers == strangers


async def start(dut, ready: int) -> Receiver:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    receiver = Receiver(dut, ready)
    dut.local_mac.value = mac_int(LOCAL_MAC)
    dut.s_axis_tvalid.value = 0
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    cocotb.start_soon(receiver.watch())
    await RisingEdge(dut.clk)
    return receiver


def good(flow: int, feedback: int, ready: int, **other) -> Frame:
    """A sound message, and what must come of it."""
    ours = flow < N_QP and bool(ready >> flow & 1)
    answer = (flow, feedback) if ours and feedback else None
    return Frame(cnm(flow, feedback, **other), feedback=answer, counted=ours, stranger=not ours)


def ignored(rng) -> Frame:
    """A frame that is no message for this board, by one fault."""
    flow, feedback = rng.randrange(N_QP), rng.randrange(1, 64)
    other_mac = bytearray(bytes.fromhex(LOCAL_MAC.replace(":", "")))
    other_mac[rng.randrange(6)] ^= 1 << rng.randrange(8)
    faults = [
        {"dst": other_mac.hex(":")},
        {"dst": "ff:ff:ff:ff:ff:ff"},
        {"tag": CN_TAG ^ 1 << rng.randrange(16)},
        {"ethertype": CNM ^ 1 << rng.randrange(16)},
        {"version": rng.randrange(1, 16)},
    ]
    kind = rng.randrange(len(faults) + 3)
    if kind < len(faults):
        return Frame(cnm(flow, feedback, **faults[kind]))
    if kind == len(faults):
        return Frame(cnm(flow, feedback), bad=True)
    if kind == len(faults) + 1:  # too short for any field; the MAC lets none below 60 octets pass
        return Frame(cnm(flow, feedback)[: rng.randrange(1, 17)])
    header = TxHeader.random(rng, 0x0A, rng.randrange(300))
    return Frame(header.frame(rng.randbytes(header.payload_len)))


@cocotb.test()
async def a_message_gives_its_queue_pair_and_feedback(dut):
    ready = (1 << N_QP) - 1
    receiver = await start(dut, ready)
    await receiver.check([good(flow, fb, ready) for flow, fb in [(0, 1), (N_QP - 1, 63), (N_QP // 2, 32)]])


@cocotb.test()
async def a_message_without_feedback_is_counted_and_cuts_nothing(dut):
    receiver = await start(dut, 1)
    await receiver.check([good(0, 0, 1), good(0, 5, 1, reserved=63), good(0, 0, 1, reserved=63)])


@cocotb.test()
async def one_for_no_queue_pair_that_is_ready_is_counted_apart(dut):
    ready = ((1 << N_QP) - 1) & ~1  # all but queue pair 0
    receiver = await start(dut, ready)
    flows = [0, N_QP, N_QP + 1, 256, 256 + N_QP - 1, 0x8000, 0xFFFF]
    await receiver.check([good(flow, 9, ready) for flow in flows])
    assert len(receiver.strangers) == len(flows)


@cocotb.test()
async def a_short_frame_behind_a_message_does_not_repeat_it(dut):
    receiver = await start(dut, 1)
    message, short = cnm(0, 40), range(1, 17)
    await receiver.check([f for n in short for f in (good(0, 40, 1), Frame(message[:n]))])
    assert len(receiver.feedbacks) == len(short)


@cocotb.test()
async def among_any_frames_with_and_without_gaps_each_message_counts_once(dut):
    rng = seed()
    ready = rng.getrandbits(N_QP) | 1
    receiver = await start(dut, ready)
    frames = []
    for _ in range(400):
        length = 60 + rng.choice([0, 0, 1, 4, 8, 64, 200])
        if rng.random() < 0.5:
            frame = good(rng.randrange(N_QP + 1), rng.randrange(64), ready, reserved=rng.randrange(64))
            frame.octets = frame.octets.ljust(length, b"\x5a")
        else:
            frame = ignored(rng)
        frames.append(frame)
    chance = rng.choice([0.2, 0.6])
    await receiver.check(frames[:200])
    for seen in (receiver.feedbacks, receiver.counted, receiver.strangers):
        seen.clear()
    await receiver.check(frames[200:], lambda: rng.random() < chance)


@cocotb.test()
async def a_queue_pair_that_leaves_rts_is_no_longer_served(dut):
    receiver = await start(dut, 1)
    await receiver.check([good(0, 7, 1)])
    dut.ready.value = 0
    receiver.feedbacks.clear()
    receiver.counted.clear()
    await receiver.check([good(0, 7, 0)])
