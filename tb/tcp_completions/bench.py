# SPDX-License-Identifier: Apache-2.0
"""Each message completes once, those of a stream in their order, with its own tag and the status of its outcome."""

import os
import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib.runner import Bench, seed
from lib.structs import pack, unpack

BENCH = Bench(top="tcp_completions", configs=[{"N_STREAMS": n} for n in (1, 4)])
N = int(os.environ.get("PARAM_N_STREAMS", "4"))
MESSAGES = 3000
GOOD, CUT, BAD, NOWHERE = range(4)
SUCCESS, LEN_ERR, FLUSH_ERR, REM_ABORT = 0, 1, 5, 16
CLOSED, ESTABLISHED = 0, 2
RESET = 2  # why a stream ended
WRAP = 1 << 32


class Stream:
    """One stream of the bench: its bytes, and what has to complete."""

    def __init__(self, rng: random.Random) -> None:
        self.una = self.end = rng.randrange(WRAP - 100_000, WRAP)
        self.live = True
        self.quiet = 0  # cycles until something may happen to it again
        self.waits: deque[tuple[int, int, int | None]] = deque()  # tag, verdict, end in the stream; None: dropped

    def status(self, verdict: int, end: int | None) -> int | None:
        """Of a message that completes now; None: it must not."""
        if verdict == BAD:
            return LEN_ERR
        if end is None:
            return FLUSH_ERR
        if (self.una - end) % WRAP < WRAP // 2:
            return LEN_ERR if verdict == CUT else SUCCESS
        return None if self.live else REM_ABORT


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(busy=[False, True], load=[0.4, 0.1])
async def each_message_completes_once_in_order_by_its_own_outcome(dut, busy, load):
    """Messages, their places in the rings, acknowledgements and ends of streams at random; `busy`: completions wait.

    At a small load a message often comes while its stream, which has no other one, is looked at.
    """
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for name in ("message", "message_valid", "laid", "laid_valid", "done", "done_valid", "m_axis_cpl_tready"):
        getattr(dut, name).value = 0
    dut.live.value, dut.ended.value, dut.rst.value = (1 << N) - 1, 0, 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    streams = [Stream(rng) for _ in range(N)]
    for number, stream in enumerate(streams):
        dut.done.value, dut.done_valid.value = pack("tcp_done_t", stream=number, state=ESTABLISHED, una=stream.una), 1
        await RisingEdge(dut.clk)
    dut.done_valid.value = 0
    to_lay: deque[tuple[int, int, int]] = deque()  # stream, tag, verdict of messages that go to the rings
    nowhere: deque[int] = deque()
    offered: tuple[int, int, int] | None = None  # stream, tag, verdict
    held: list[deque] = [deque() for _ in range(N)]  # tags in the order of their messages
    tag = completed = 0
    while completed < MESSAGES:
        await RisingEdge(dut.clk)
        if offered and dut.message_ready.value:
            offered = None
        if dut.m_axis_cpl_tvalid.value and dut.m_axis_cpl_tready.value:
            cpl = unpack("cpl_t", int(dut.m_axis_cpl_tdata.value))
            completed += 1
            if cpl["qp"] >= N:
                assert (cpl["tag"], cpl["status"]) == (nowhere.popleft(), FLUSH_ERR)
            else:
                stream = streams[cpl["qp"]]
                assert stream.waits, f"tag {cpl['tag']} of stream {cpl['qp']} completes without a message"
                first, verdict, end = stream.waits.popleft()
                assert cpl["tag"] == first == held[cpl["qp"]].popleft()
                assert cpl["status"] == stream.status(verdict, end)
        dut.m_axis_cpl_tready.value = not busy or rng.random() < 0.3

        # A message, and its place in the ring some cycles later: both are known here before the module reports them.
        room = int(dut.room.value)
        if offered is None and tag < MESSAGES and rng.random() < load:
            to = rng.randrange(N + 1) if rng.random() < 0.5 else rng.randrange(N)
            verdict = NOWHERE if to == N else rng.choices((GOOD, CUT, BAD), (4, 1, 3))[0]
            ahead = to < N and sum(one[0] == to for one in to_lay)
            if to == N or (room >> to & 1 and len(to_lay) < 8 and not (verdict == BAD and ahead)):
                offered = to, tag, verdict
                tag += 1
                if to == N:
                    nowhere.append(offered[1])
                else:
                    held[to].append(offered[1])
                    if verdict == BAD:
                        streams[to].waits.append((offered[1], BAD, None))
                    else:
                        to_lay.append(offered)
        dut.message_valid.value = offered is not None
        if offered:
            dut.message.value = pack("tcp_message_t", verdict=offered[2], tag=offered[1], qp=offered[0])

        lays = bool(to_lay) and to_lay[0] != offered and rng.random() < 0.4
        dut.laid_valid.value = lays
        if lays:
            at, number, verdict = to_lay.popleft()
            stream = streams[at]
            if stream.live:
                stream.end = (stream.end + rng.randrange(1, 3000)) % WRAP
            stream.waits.append((number, verdict, stream.end if stream.live else None))
            dut.laid.value = pack("tcp_laid_t", dropped=not stream.live, end_seq=stream.end)

        # Of one stream, an event in eight cycles: the engine's pipeline.
        dut.done_valid.value = 0
        for stream in streams:
            stream.quiet = max(0, stream.quiet - 1)
        at = rng.randrange(N)
        stream = streams[at]
        if stream.quiet == 0 and rng.random() < 0.4:
            stream.quiet = 8
            if not stream.live:
                if not stream.waits and dut.clean.value[at]:
                    stream.live = True
                    dut.live.value = sum(one.live << i for i, one in enumerate(streams))
                    stream.una = stream.end
                    done = pack("tcp_done_t", stream=at, state=ESTABLISHED, una=stream.una)
                    dut.done.value, dut.done_valid.value = done, 1
            elif rng.random() < 0.03:
                stream.live = False
                dut.live.value = sum(one.live << i for i, one in enumerate(streams))
                dut.ended.value = sum(RESET << 3 * i for i, one in enumerate(streams) if not one.live)
                done = pack("tcp_done_t", stream=at, state=CLOSED, una=0, actions__ended=RESET)
                dut.done.value, dut.done_valid.value = done, 1
            elif bytes_due := (stream.end - stream.una) % WRAP:
                acked = bytes_due if rng.random() < 0.5 else rng.randrange(1, bytes_due + 1)
                stream.una = (stream.una + acked) % WRAP
                done = pack("tcp_done_t", stream=at, state=ESTABLISHED, una=stream.una, actions__acknowledged=acked)
                dut.done.value, dut.done_valid.value = done, 1
    await ClockCycles(dut.clk, 100)
    assert not dut.m_axis_cpl_tvalid.value
    assert int(dut.clean.value) == (1 << N) - 1
