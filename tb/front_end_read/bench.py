# SPDX-License-Identifier: Apache-2.0
"""A front end whose peer READs windows of its memory: bytes, rate, the first byte, and what is refused."""

import os
import random

import cocotb
from cocotb.triggers import RisingEdge, Timer
from lib.axi_memory import AxiMemory
from lib.board import ERR, RTS, SUCCESS, Board, start
from lib.cable import line
from lib.front_end import goodput_gbps, physical_limit_gbps
from lib.rates import QCN
from lib.rc_peer import QPN_BASE, Flow, Peer, Seen, without_cn_tag
from lib.read_model import ACK, MASK, NAK_ACCESS, NAK_INVALID, ONLY, POSITIVE, Reader, Reply, Request, Window
from lib.runner import Bench, seed
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.packet import Raw

# At 25 Gb/s the same gateware has another clock.
BENCHES = [
    Bench(
        top="penstock_xgmii",
        configs=[
            {"CLK_KHZ": 156_250, "N_QP": 2, "RING_BYTES": 16_384, "SLOTS": 16, "WITH_READ": 1, "WITH_CN_TAG": 1},
            {"CLK_KHZ": 156_250, "N_QP": 2, "WITH_READ": 1, "WITH_RECEIVE": 1, "WITH_REQUESTER": 0, "WITH_SOURCE": 0},
        ],
    ),
    Bench(
        top="penstock_100g",
        configs=[{"CLK_KHZ": 322_266, "N_QP": 2, "RING_BYTES": 16_384, "SLOTS": 16, "WITH_READ": 1, "WITH_CN_TAG": 1}],
    ),
]
REQUESTS = os.environ.get("PARAM_WITH_REQUESTER") != "0"  # the board sends messages, too
SIZE, BASE, KEY = 1 << 17, 0x4000, 0xFEED0001
WITH_AETH = (0x0D, 0x0F, ONLY, ACK)
FIRST_PSN = (0xFFFFF0, 1234)  # of the peer's requests, by queue pair
MTUS = {1024: 3, 4096: 5}


class ReadingPeer(Peer):
    """A peer that also sends READ requests; what it gets in answer is not a request to it."""

    def __init__(self, dut, expected: dict[int, int]):
        super().__init__(dut, expected)
        self.answers: list[tuple[Seen, Reply, bytes]] = []
        self.loses = lambda: False

    async def handle(self, raw: bytes, start) -> None:
        whole = raw
        raw, flow = without_cn_tag(whole)
        bth = Ether(raw)[BTH]
        if bth.opcode not in (*WITH_AETH, 0x0E):
            await super().handle(whole, start)
            return
        assert flow == (bth.dqpn if bth.dqpn in self.cn_tagged else None), f"answer of {bth.dqpn} for flow {flow}"
        bth.icrc = None
        assert bytes(bth.underlayer.underlayer.underlayer) == raw, "ICRC or a length is wrong"
        body = bytes(bth.payload)
        skip = 4 * (bth.opcode in WITH_AETH)
        payload = body[skip : len(body) - bth.padcount]
        aeth = (body[0], int.from_bytes(body[1:4], "big")) if skip else None
        seen = Seen(start / 1000, bth.dqpn, bth.psn, bth.opcode, payload, len(whole) + 24)
        self.answers.append((seen, Reply(bth.dqpn, bth.opcode, bth.psn, aeth), payload))

    async def read(self, request: Request) -> None:
        reth = request.va.to_bytes(8, "big") + request.rkey.to_bytes(4, "big") + request.length.to_bytes(4, "big")
        bth = BTH(opcode=0x0C, dqpn=QPN_BASE + request.qp, psn=request.psn, ackreq=1)
        await self.send(bytes(self.lower() / bth / Raw(reth)))


async def open_windows(dut, rng: random.Random, latency: int = 40, mtu: int = 4096) -> tuple[Board, list[Window]]:
    # Its port carries more than the line.
    memory = AxiMemory(dut, rng, SIZE, lambda rng: latency, clock_ns=6 if line().gbps < 100 else 3)
    board = await start(dut, {}, ReadingPeer)
    board.memory = memory
    windows = []
    for qp in range(2):
        window = Window(KEY + qp, BASE * (qp + 1), 64_000, psn=FIRST_PSN[qp])
        board.first_psn[qp] = 10 * qp
        write = board.registers.write
        for name, value in (
            ("psn", window.psn), ("rkey", window.rkey), ("base_lo", window.base), ("base_hi", 0),
            ("length_lo", window.length), ("length_hi", 0), ("depth", window.resources),
        ):  # fmt: skip
            await write(f"qp.read_{name}", value, qp)
        windows.append(window)
        board.peer.flows[qp] = Flow(10 * qp)
        await board.open(qp, mtu=MTUS[mtu])
    return board, windows


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reads_return_the_bytes_of_their_windows_through_loss_while_messages_leave(dut):
    rng = seed()
    board, windows = await open_windows(dut, rng, mtu=1024)
    assert await board.field("options", "read", 0) == 1
    if REQUESTS:
        await board.registers.write_fields("qp.congestion", 1, law=QCN)
        board.peer.cn_tagged = {1}
    readers = []
    for qp, window in enumerate(windows):
        lengths = [0, 1, 1024, 1025, *(rng.randrange(6000) for _ in range(6))]
        reads = [(window.base + rng.randrange(window.length - n), n) for n in rng.sample(lengths, len(lengths))]
        readers.append(Reader(qp, 1024, window, reads, 6, rng, patience=2500))
    messages = [rng.randbytes(rng.randrange(1, 8000)) for _ in range(6 * REQUESTS)]
    for tag, payload in enumerate(messages):
        await board.post(tag % 2, payload, tag, tag * 0x4000, tag)
    taken = 0
    while not all(reader.done for reader in readers):
        await RisingEdge(dut.clk)
        for reader in readers:
            reader.tick()
            while reader.out:
                request = reader.out.pop(0)
                if rng.random() >= 0.05:
                    cocotb.start_soon(board.peer.read(request))
        while taken < len(board.peer.answers):
            _, reply, data = board.peer.answers[taken]
            taken += 1
            if rng.random() >= 0.03:
                readers[reply.qp].receive(reply, data)
    for reader in readers:
        assert reader.results == [bytes(board.memory.mem[va : va + n]) for va, n in reader.reads]
    assert [await board.completion() for _ in messages].count((0, 0, SUCCESS)) == REQUESTS
    for tag, payload in enumerate(messages):
        assert board.peer.memory[tag * 0x4000 : tag * 0x4000 + len(payload)] == payload
    assert [await board.state(qp) for qp in range(2)] == [RTS, RTS]
    assert await board.count("rx_read_requests") == sum(len(reader.reads) for reader in readers)


async def fills_the_line(dut, mtu: int) -> None:
    board, windows = await open_windows(dut, seed(), latency=100, mtu=mtu)
    window, size = windows[0], 16 * 1024
    for turn in range(3):
        await board.peer.read(Request(0, window.psn + turn * size // mtu & MASK, window.base + 3, window.rkey, size))
    while len(board.peer.answers) < 3 * size // mtu:
        await RisingEdge(dut.clk)
    packets = [seen for seen, _, _ in board.peer.answers]
    rate, limit = goodput_gbps(packets), physical_limit_gbps(packets, board.line.gbps)
    dut._log.info(f"READ at MTU {mtu}: {rate:.4f} Gb/s of {limit:.4f}, {100 * rate / limit:.3f} %")
    assert rate >= 0.999 * limit


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def answers_fill_the_line_at_mtu_1024(dut):
    await fills_the_line(dut, 1024)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def answers_fill_the_line_at_mtu_4096(dut):
    await fills_the_line(dut, 4096)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_request_keeps_its_length_when_a_shorter_frame_follows_at_once(dut):
    board, windows = await open_windows(dut, seed())
    window, count = windows[0], windows[0].resources
    for turn in range(count):
        await board.peer.read(Request(0, window.psn + turn & MASK, window.base + turn, window.rkey, 4))
        await board.peer.answer(1, 9, POSITIVE, 0)
    while len(board.peer.answers) < count:
        await RisingEdge(dut.clk)
    assert [reply.opcode for _, reply, _ in board.peer.answers] == [ONLY] * count
    assert await board.count("rx_read_requests") == count and await board.state(0) == RTS


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_first_byte_of_an_answer_leaves_within_40_cycles(dut):
    board, windows = await open_windows(dut, seed(), latency=1)
    psn = windows[0].psn
    for turn in range(4):
        await board.peer.read(Request(0, psn + turn & MASK, windows[0].base + turn, windows[0].rkey, 8))
        while not board.peer.cable.ends():
            await RisingEdge(dut.clk)
        cycles = memory = waits = 0
        while not board.peer.cable.starts():
            await RisingEdge(dut.clk)
            cycles += 1
            memory += waits
            requested = dut.m_axi_arvalid.value == 1 and dut.m_axi_arready.value == 1
            waits = (waits or requested) and dut.m_axi_rvalid.value == 0
        dut._log.info(f"request's end to the first byte of its answer: {cycles} cycles, {memory} of the memory")
        assert cycles - memory < 40 and memory < 8
        await Timer(500, "ns")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_the_window_does_not_permit_is_refused_and_ends_the_queue_pair_alone(dut):
    board, windows = await open_windows(dut, seed())
    for qp, (change, syndrome) in enumerate((({"rkey": 1}, NAK_ACCESS), ({"length": (1 << 31) + 1}, NAK_INVALID))):
        window = windows[qp]
        request = {"va": window.base, "rkey": window.rkey, "length": 100} | change
        await board.peer.read(Request(qp, window.psn, **request))
        while len(board.peer.answers) <= qp:
            await RisingEdge(dut.clk)
        _, reply, _ = board.peer.answers[qp]
        assert (reply.opcode, reply.psn, reply.aeth) == (ACK, window.psn, (syndrome, 0))
        await Timer(1000, "ns")
        assert await board.state(qp) == ERR and await board.state(1 - qp) == (ERR if qp else RTS)
    assert await board.count("qp_errors") == 2
    assert [await board.count(f"resp_{name}") for name in ("remote_access_errors", "invalid_requests")] == [1, 1]
