# SPDX-License-Identifier: Apache-2.0
"""A front end with RoCE and TCP: one message input feeds queue pairs and streams over one MAC.

Neither changes a byte of the other, and the end of one does not affect the other; so too with the rings of both in
one AXI4 memory.
"""

import os

import cocotb
from lib.board import RTS, SUCCESS, start
from lib.both_board import N_QP, N_STREAMS, SIZES, TARGETS, open_streams
from lib.runner import Bench, seed
from lib.tcp_host import TcpAndRoceHost
from lib.tcp_receiver import RST

BENCH = Bench(top="penstock_xgmii", configs=[{"CLK_KHZ": 156_250, "WITH_TCP": 1, **SIZES, "STORE": s} for s in (0, 1)])
FLUSH_ERR, BAD_MEMORY = 5, 7


async def prepare(dut):
    board = await start(dut, {0: 5, 1: 0xFFFFFE}, TcpAndRoceHost)
    await open_streams(board)
    return board


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def messages_of_queue_pairs_and_streams_share_input_line_and_completions(dut):
    rng = seed()
    board = await prepare(dut)
    assert await board.field("build", "n_qp", 0) == N_QP
    assert await board.field("tcp.build", "n_streams", 0) == N_STREAMS
    sent = {target: [] for target in TARGETS}
    if os.environ.get("PARAM_STORE") == "1":
        board.memory.stall(rng, 0.2)
    for tag in range(40):
        target = rng.choice(TARGETS)
        payload = rng.randbytes(rng.choice([1, 8, 1460, 4096, rng.randrange(1, 6000)]))
        sent[target].append((tag, payload))
        await board.post(target, payload, tag, tag * 0x2000 if target < N_QP else None)
    done = [await board.completion() for _ in range(40)]
    assert all(status == SUCCESS for *_, status in done)
    for target, messages in sent.items():
        assert [tag for at, tag, _ in done if at == target] == [tag for tag, _ in messages], f"target {target}"
        if target >= N_QP:
            content = board.peer.tcp.receivers[target - N_QP].content
            assert bytes(content) == b"".join(payload for _, payload in messages), f"stream {target - N_QP}"
        for tag, payload in messages if target < N_QP else []:
            assert board.peer.memory[tag * 0x2000 : tag * 0x2000 + len(payload)] == payload, f"message {tag}"
        size = sum(len(payload) for _, payload in messages)
        assert await board.registers.read("meter.bytes_lo", target) == size, f"meter of target {target}"
        latencies = await board.registers.read("latency.last", target)
        assert bool(latencies) == bool(size), f"latency of target {target}: {latencies}"
    assert await board.registers.read("meter.bytes_lo", N_QP + N_STREAMS) == 0
    assert await board.count("messages_done") == 40
    assert await board.count("tx_underruns") == 0


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def a_stream_that_is_reset_leaves_queue_pairs_and_other_streams_alone(dut):
    rng = seed()
    board = await prepare(dut)
    await board.peer.tcp.end(1, RST)
    while await board.field("stream.state", "state", 1):
        pass
    payloads = [rng.randbytes(3000) for _ in range(4)]
    for tag, (target, payload) in enumerate(zip((0, N_QP + 1, 1, N_QP + 2), payloads, strict=True)):
        await board.post(target, payload, tag, 0x2000 * tag if target < N_QP else None)
    done = {await board.completion() for _ in range(4)}
    assert done == {(0, 0, SUCCESS), (N_QP + 1, 1, 5), (1, 2, SUCCESS), (N_QP + 2, 3, SUCCESS)}
    assert bytes(board.peer.tcp.receivers[2].content) == payloads[3]
    assert await board.state(0) == await board.state(1) == RTS


@cocotb.test(timeout_time=3, timeout_unit="ms", skip=os.environ.get("PARAM_STORE") != "1")
async def in_one_memory_rings_of_streams_follow_those_of_queue_pairs_and_a_fault_ends_its_stream_alone(dut):
    rng = seed()
    board = await prepare(dut)
    payload = rng.randbytes(4000)
    await board.post(N_QP + 2, payload, 0, None)
    assert await board.completion() == (N_QP + 2, 0, SUCCESS)
    size = SIZES["RING_BYTES"]
    ring = range((N_QP + 2) * size, (N_QP + 3) * size)
    end = await board.registers.read("stream.written", 2)
    assert bytes(board.memory.mem[ring[(end - len(payload) + i) % size]] for i in range(len(payload))) == payload
    board.memory.fault = lambda address, is_write: is_write and address in ring
    for tag, target in enumerate((N_QP + 2, 0, N_QP + 1)):
        await board.post(target, rng.randbytes(3000), tag, 0x2000 if target < N_QP else None)
    done = {await board.completion() for _ in range(3)}
    assert done == {(N_QP + 2, 0, FLUSH_ERR), (0, 1, SUCCESS), (N_QP + 1, 2, SUCCESS)}
    assert await board.field("stream.state", "ended", 2) == BAD_MEMORY
    assert await board.count("store_write_errors") > 0 and await board.count("store_read_errors") == 0
    assert await board.state(0) == RTS
