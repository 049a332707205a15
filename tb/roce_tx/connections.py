# SPDX-License-Identifier: Apache-2.0
"""A message is sent over the connection for which it was posted, or it completes with a flush error."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamFrame
from lib.requester_bench import FLUSH, INIT, RESET, RTR, RTS, SQD, SUCCESS, WRITE, Harness, Request
from lib.responder import Faults
from lib.runner import seed


def count_stale(dut) -> list[int]:
    """Has one entry for each message that was counted."""
    seen: list[int] = []

    async def look():
        while True:
            await RisingEdge(dut.clk)
            if dut.stale.value == 1:
                seen.append(1)

    cocotb.start_soon(look())
    return seen


def post(h: Harness, qp: int, size: int) -> Request:
    """A descriptor alone: while its payload does not come, all that are posted after it wait."""
    request = h.request(qp, size, verb=WRITE, imm=None)
    h.desc.send_nowait(AxiStreamFrame(request.descriptor()))
    return request


def pay(h: Harness, *requests: Request) -> None:
    for request in requests:
        h.data.send_nowait(AxiStreamFrame(request.data))


async def open_again(h: Harness, qp: int, *states: int):
    for state in states:
        await h.command(qp, state)
        await ClockCycles(h.dut.clk, h.rng.randrange(30))
    return await h.open(qp, mtu_code=1)


@cocotb.test()
async def a_message_that_waits_while_its_queue_pair_is_opened_at_another_server_is_flushed_and_counted(dut):
    """After a message of another queue pair, and after one of its own that began over the old connection."""
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    stale = count_stale(dut)
    for attempt in range(16):
        peers = [await open_again(h, qp, RESET) for qp in (0, 1)]
        await ClockCycles(dut.clk, 60)
        done, counted = len(h.completions), len(stale)
        blocker = attempt % 2
        first = post(h, blocker, 900)
        waiting = [post(h, 0, rng.choice([1, 256, 257, 2000])) for _ in range(1 + attempt // 2 % 2)]
        await ClockCycles(dut.clk, rng.randrange(40, 90))
        again = await open_again(h, 0, *((RESET, INIT, RTR) if attempt % 3 else (RESET,)))
        await ClockCycles(dut.clk, rng.randrange(60))
        pay(h, first, *waiting)
        await h.completed(done + 1 + len(waiting))
        fresh = h.submit(h.request(0, 700))
        await h.completed(done + 2 + len(waiting))
        # Of those that wait, one alone stands at the input: the next ones come when the new connection is open.
        outcome = {tag: status for _, tag, status in h.completions[done:]}
        order = [tag for qp, tag, _ in h.completions[done:] if qp == 0]
        head = [first] if blocker == 0 else []
        assert order == [r.tag for r in (*head, *waiting, fresh)], "in order"
        assert outcome[first.tag] == (FLUSH if blocker == 0 else SUCCESS)
        assert outcome[waiting[0].tag] == FLUSH and len(stale) == counted + 1
        sent = [r for r in (*waiting[1:], fresh)]
        assert all(outcome[r.tag] == SUCCESS for r in sent)
        assert [m.data for m in again.responder.messages] == [r.data for r in sent]
        assert not peers[0].responder.messages and (await h.status(0))["state"] == RTS


@cocotb.test()
async def a_message_that_waits_while_its_queue_pair_drains_and_resumes_is_sent(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    stale = count_stale(dut)
    peer, other = await h.open(0, mtu_code=1), await h.open(1, mtu_code=1)
    first = post(h, 1, 900)
    waiting = post(h, 0, 600)
    await ClockCycles(dut.clk, 50)
    await h.command(0, SQD)
    await h.wait_state(0, SQD)
    await h.command(0, RTS)
    pay(h, first, waiting)
    await h.completed(2)
    assert peer.completions == [(waiting.tag, SUCCESS)] and other.completions == [(first.tag, SUCCESS)]
    assert [m.data for m in peer.responder.messages] == [waiting.data] and not stale
