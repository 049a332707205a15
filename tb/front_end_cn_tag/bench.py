# SPDX-License-Identifier: Apache-2.0
"""Frames of queue pairs under QCN carry a CN-TAG (WITH_CN_TAG = 1), by which a switch's notification finds them."""

import cocotb
from cocotb.triggers import ClockCycles
from lib.board import SUCCESS, start
from lib.cable import time_limit
from lib.cnm import cnm
from lib.frames_tx import stalls
from lib.front_end import SHORT
from lib.rates import DCQCN, QCN
from lib.runner import Bench, seed
from lib.tops import WIDTHS

BENCHES = [Bench(bench.top, [{**bench.configs[0], "WITH_CN_TAG": 1}]) for bench in WIDTHS]
ACTED = 300  # cycles within which a notification has surely been acted upon

globals().update({test.name: test for test in SHORT})


async def write_at_random(board, rng, qps: list[int], count: int) -> None:
    """Messages of any length and queue pair; the peer compares each frame's tag with its queue pair."""
    sent = {}
    for tag in range(count):
        payload, at = rng.randbytes(rng.choice([rng.randrange(1, 200), rng.randrange(1, 9000)])), tag * 0x4000
        await board.post(rng.choice(qps), payload, tag, at)
        sent[at] = payload
    assert all([(await board.completion())[2] == SUCCESS for _ in range(count)])
    for at, payload in sent.items():
        assert board.peer.memory[at : at + len(payload)] == payload, f"message {at // 0x4000}"


@cocotb.test(**time_limit(4))
async def frames_of_queue_pairs_under_qcn_carry_their_number_and_no_others(dut):
    rng = seed()
    board = await start(dut, {0: 0, 1: 7, 2: 0xFFFFF8, 3: 9})
    for qp, law in ((1, QCN), (2, DCQCN), (3, QCN)):
        await board.registers.write_fields("qp.congestion", qp, law=law)
    board.peer.cn_tagged = {1, 3}
    board.data.set_pause_generator(stalls(rng, 0.2))
    await write_at_random(board, rng, [0, 1, 2, 3], 24)
    assert {packet.qp for packet in board.peer.seen} == {0, 1, 2, 3}

    lost = {rng.randrange(len(board.peer.seen), len(board.peer.seen) + 20)}  # sent again with its tag
    board.peer.verdict = lambda packet: "drop" if len(board.peer.seen) in lost else None
    await write_at_random(board, rng, [1, 2], 16)
    assert await board.count("packets_retransmitted") > 0

    await board.registers.write_fields("qp.congestion", 1, law=DCQCN)
    await board.registers.write_fields("port.vlan", vid=1234, pcp_data=5, enable=1)
    board.peer.cn_tagged, board.peer.vlan = {3}, (1234, 5)
    await write_at_random(board, rng, [1, 3], 16)


@cocotb.test(**time_limit(2))
async def a_notification_with_the_flow_id_of_a_frame_cuts_the_queue_pair_of_that_frame(dut):
    qp, feedback, rng = 3, 48, seed()
    board = await start(dut, {1: 0, qp: 0})
    for at in (1, qp):
        await board.registers.write_fields("qp.congestion", at, law=QCN)
    await board.registers.write("qcn.timer_period", 0)
    await board.registers.write("qcn.byte_limit", 0)  # so that the rate stays where the message puts it
    board.peer.cn_tagged = {1, qp}
    await write_at_random(board, rng, [qp], 1)
    await board.peer.send(cnm(board.peer.seen[0].flow, feedback))
    await ClockCycles(dut.clk, ACTED)
    rate = board.line.rate
    assert await board.registers.read("qp.rate_current", qp) == rate - rate * feedback // 128
    assert await board.registers.read("qp.rate_current", 1) == rate
