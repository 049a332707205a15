# SPDX-License-Identifier: Apache-2.0
"""A front end whose peer WRITEs to windows of its memory and SENDs to its stream: bytes, rate, and what is refused."""

import os
import random

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer
from lib import structs
from lib.axi_memory import AxiMemory
from lib.board import ERR, RESET, RTS, SQD, SUCCESS, Board, start
from lib.rc_peer import QPN_BASE, Flow, Peer
from lib.read_model import ACK, MASK, NAK_ACCESS, NAK_INVALID, NAK_OPERATIONAL, Reply
from lib.receive_model import Message, Packet, Sender, WriteWindow, frame, packets_of
from lib.runner import Bench, seed
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

BENCH = Bench(
    top="penstock_xgmii",
    configs=[
        {"CLK_KHZ": 156_250, "N_QP": 2, "RING_BYTES": 16_384, "SLOTS": 16, "WITH_READ": 1, "WITH_RECEIVE": 1},
        {"CLK_KHZ": 156_250, "N_QP": 2, "WITH_READ": 1, "WITH_RECEIVE": 1, "WITH_REQUESTER": 0, "WITH_SOURCE": 0},
    ],
)
REQUESTS = os.environ.get("PARAM_WITH_REQUESTER") != "0"  # the board sends messages, too
SIZE, BASE, KEY = 1 << 18, 0x4000, 0xFEED0001
FIRST_PSN = (0xFFFFF0, 1234)  # of the peer's requests, by queue pair
MTUS = {256: 1, 1024: 3, 4096: 5}
ACKED = 0x1F
# First addresses of what comes with messages.
BLOCKS = {
    "servers": 0x800, "rings": 0x4000, "replay_memory": 0x8000, "latency_histogram": 0x20000, "transfer_meter": 0x30000,
}  # fmt: skip


class SendingPeer(Peer):
    """A peer that also sends requests; what it gets in answer is not a request to it."""

    def __init__(self, dut, expected: dict[int, int]):
        super().__init__(dut, expected)
        self.replies: list[Reply] = []

    async def handle(self, raw: bytes, start) -> None:
        bth = Ether(raw)[BTH]
        if bth.opcode != ACK:
            await super().handle(raw, start)
            return
        bth.icrc = None
        assert bytes(bth.underlayer.underlayer.underlayer) == raw, "ICRC or a length is wrong"
        body = bytes(bth.payload)
        self.replies.append(Reply(bth.dqpn, bth.opcode, bth.psn, (body[0], int.from_bytes(body[1:4], "big"))))


class Stream:
    """The messages of m_axis_receive."""

    def __init__(self, dut):
        self.dut, self.messages = dut, []
        self.parts: dict[int, bytearray] = {}
        dut.m_axis_receive_tready.value = 1
        cocotb.start_soon(self.run())

    async def run(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            if dut.m_axis_receive_tvalid.value != 1 or dut.m_axis_receive_tready.value != 1:
                continue
            user = structs.unpack("receive_user_t", int(dut.m_axis_receive_tuser.value))
            if user["starts"]:
                self.parts[user["qp"]] = bytearray()
            count = int(dut.m_axis_receive_tkeep.value).bit_count()
            lanes = len(dut.m_axis_receive_tkeep)
            data = int(dut.m_axis_receive_tdata.value).to_bytes(lanes, "little")[:count]
            self.parts[user["qp"]] += data
            if dut.m_axis_receive_tlast.value == 1:
                imm = user["imm"] if user["has_imm"] else None
                self.messages.append((user["qp"], bytes(self.parts.pop(user["qp"])), imm, bool(user["is_write"])))


async def open_windows(dut, rng: random.Random, latency: int = 40, mtu: int = 4096):
    memory = AxiMemory(dut, rng, SIZE, lambda rng: latency, clock_ns=6)
    board = await start(dut, {}, SendingPeer)
    board.memory, board.stream = memory, Stream(dut)
    windows = []
    for qp in range(2):
        window = WriteWindow(KEY + qp, BASE + qp * (SIZE // 2), SIZE // 4, psn=FIRST_PSN[qp])
        board.first_psn[qp] = 10 * qp
        write = board.registers.write
        for name, value in (
            ("read_psn", window.psn), ("read_rkey", window.rkey), ("read_base_lo", window.base), ("read_base_hi", 0),
            ("read_length_lo", window.length), ("read_length_hi", 0), ("read_depth", 0), ("receive", 0x101),
        ):  # fmt: skip
            await write(f"qp.{name}", value, qp)
        windows.append(window)
        board.peer.flows[qp] = Flow(10 * qp)
        await board.open(qp, mtu=MTUS[mtu])
    return board, windows


async def send_all(board: Board, packets: list[Packet]) -> None:
    for packet in packets:
        await board.peer.send(frame(packet, QPN_BASE))


def messages_of(board: Board, window: WriteWindow, qp: int, messages: list[Message], mtu: int) -> list[Packet]:
    packets, psn = [], window.psn
    for message in messages:
        packets += packets_of(message, qp, psn, window.rkey, mtu)
        psn = (window.psn + len(packets)) & MASK
    return packets


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def messages_reach_memory_and_stream_through_loss_while_the_board_sends(dut):
    rng = seed()
    board, windows = await open_windows(dut, rng, mtu=1024)
    assert await board.field("options", "receive", 0) == 1
    senders, sent, image = [], [], bytearray(board.memory.mem)
    for qp, window in enumerate(windows):
        messages = []
        for _ in range(12):
            data = rng.randbytes(rng.choice([0, 1, 1024, 1025, rng.randrange(4000)]))
            va = rng.choice([None, window.base + rng.randrange(window.length - len(data))])
            messages.append(Message(data, va, rng.choice([None, rng.getrandbits(32)])))
            if va is not None:
                image[va : va + len(data)] = data
        sent.append(messages)
        senders.append(Sender(qp, window.psn, messages_of(board, window, qp, messages, 1024), rng, patience=2500))
    posted = [rng.randbytes(rng.randrange(1, 8000)) for _ in range(6 * REQUESTS)]
    for tag, payload in enumerate(posted):
        await board.post(tag % 2, payload, tag, tag * 0x4000, tag)
    taken = 0
    while not all(sender.done for sender in senders):
        await RisingEdge(dut.clk)
        for sender in senders:
            sender.tick()
            while sender.out:
                packet = sender.out.pop(0)
                if rng.random() >= 0.05:
                    await board.peer.send(frame(packet, QPN_BASE))
        while taken < len(board.peer.replies):
            reply = board.peer.replies[taken]
            taken += 1
            if rng.random() >= 0.03:
                senders[reply.qp].receive(reply)
    await Timer(2, "us")
    assert board.memory.mem == image
    for qp, messages in enumerate(sent):
        expected = [
            (qp, message.data, message.imm, False)
            if message.va is None
            else (qp, message.va.to_bytes(8, "little") + len(message.data).to_bytes(4, "little"), message.imm, True)
            for message in messages
            if message.va is None or message.imm is not None
        ]
        assert [one for one in board.stream.messages if one[0] == qp] == expected
    assert [await board.completion() for _ in posted].count((0, 0, SUCCESS)) == REQUESTS
    for tag, payload in enumerate(posted):
        assert board.peer.memory[tag * 0x4000 : tag * 0x4000 + len(payload)] == payload
    assert [await board.state(qp) for qp in range(2)] == [RTS, RTS]
    everything = [message for messages in sent for message in messages]
    assert await board.count("rx_send_requests") == sum(message.va is None for message in everything)
    assert await board.count("rx_write_requests") == sum(message.va is not None for message in everything)


async def takes_the_full_line(dut, mtu: int, messages: list[Message]) -> None:
    """Frames one after the other, with the least gap: none is lost."""
    board, windows = await open_windows(dut, seed(), latency=100, mtu=mtu)
    packets = messages_of(board, windows[0], 0, messages, mtu)
    await send_all(board, packets)
    last = packets[-1].psn
    while not board.peer.replies or board.peer.replies[-1].psn != last:
        await RisingEdge(dut.clk)
    assert board.peer.replies[-1].aeth == (ACKED, len(messages))
    assert await board.count("read_dropped") == 0 and await board.count("nak_sequence_sent") == 0
    for message in messages:
        if message.va is not None:
            assert bytes(board.memory.mem[message.va : message.va + len(message.data)]) == message.data
    assert [one[1] for one in board.stream.messages if not one[3]] == [m.data for m in messages if m.va is None]
    dut._log.info(f"{len(packets)} packets at MTU {mtu}, {len(board.peer.replies)} acknowledgements")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def writes_of_the_full_line_are_taken_at_mtu_4096(dut):
    rng = random.Random(1)
    await takes_the_full_line(dut, 4096, [Message(rng.randbytes(16_384), BASE + 5 + 16_384 * i) for i in range(3)])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def writes_of_the_full_line_are_taken_at_mtu_256(dut):
    rng = random.Random(2)
    await takes_the_full_line(dut, 256, [Message(rng.randbytes(256), BASE + 3 + 256 * i, imm=i) for i in range(100)])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_shortest_sends_of_the_full_line_are_taken(dut):
    rng = random.Random(3)
    await takes_the_full_line(dut, 1024, [Message(rng.randbytes(1 + i % 4)) for i in range(200)])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_the_window_does_not_permit_is_refused_and_ends_the_queue_pair_alone(dut):
    board, windows = await open_windows(dut, seed())
    image = bytes(board.memory.mem)
    for qp, (change, syndrome) in enumerate((({"rkey": 1}, NAK_ACCESS), ({"length": 99}, NAK_INVALID))):
        window = windows[qp]
        [packet] = packets_of(Message(bytes(100), window.base), qp, window.psn, window.rkey, 4096)
        await send_all(board, [Packet(**{**packet.__dict__, **change})])
        while len(board.peer.replies) <= qp:
            await RisingEdge(dut.clk)
        reply = board.peer.replies[qp]
        assert (reply.opcode, reply.psn, reply.aeth) == (ACK, window.psn, (syndrome, 0))
        await Timer(1000, "ns")
        assert await board.state(qp) == ERR and await board.state(1 - qp) == (ERR if qp else RTS)
    assert bytes(board.memory.mem) == image
    assert [await board.count(f"resp_{name}") for name in ("remote_access_errors", "invalid_requests")] == [1, 1]


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=not REQUESTS)
async def writes_of_the_full_line_fill_the_replay_memory_and_end_with_it(dut):
    rng = random.Random(4)
    board, windows = await open_windows(dut, rng, mtu=256)
    size, base, image = 16384, (1 << 63) + BLOCKS["replay_memory"], bytes(board.memory.mem)
    window = {"read_base_hi": base >> 32, "read_base_lo": base & 0xFFFFFFFF, "read_length_lo": 2 * size}
    for name, value in window.items():
        await board.registers.write(f"qp.{name}", value, 0)
    messages = [Message(rng.randbytes(256), base + at) for at in range(0, size, 256)]
    beyond = Message(bytes(256), base + size)
    await send_all(board, messages_of(board, windows[0], 0, [*messages, beyond], 256))
    while not board.peer.replies or board.peer.replies[-1].aeth[0] == ACKED:
        await RisingEdge(dut.clk)
    refused = board.peer.replies[-1]
    assert (refused.psn, refused.aeth[0]) == ((windows[0].psn + len(messages)) & MASK, NAK_OPERATIONAL)
    assert await board.count("read_dropped") == 0 and await board.count("nak_sequence_sent") == 0
    data = b"".join(message.data for message in messages)
    for at in (0, size - 4, *rng.sample(range(0, size, 4), 20)):
        word = await board.registers.read_address(BLOCKS["replay_memory"] + at)
        assert word == int.from_bytes(data[at : at + 4], "little")
    assert bytes(board.memory.mem) == image


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=REQUESTS)
async def without_a_requester_no_message_is_taken_and_its_registers_read_zero(dut):
    board, windows = await open_windows(dut, seed())
    assert await board.registers.read("ring") == await board.registers.read("slots") == 0
    assert await board.field("options", "retransmit", 0) == 0
    dut.s_axis_desc_tvalid.value = dut.s_axis_data_tvalid.value = 1
    await Timer(1, "us")
    assert dut.s_axis_desc_tready.value == dut.s_axis_data_tready.value == 0
    for name in ("una_psn", "nxt_psn", "wr_psn", "packets_sent", "bytes_acked_lo", "messages_err"):
        assert await board.registers.read(f"qp.{name}", 0) == 0
    for block in ("servers", "rings", "replay_memory", "latency_histogram", "transfer_meter"):
        assert await board.registers.read_address(BLOCKS[block]) == 0
    # A queue pair that is stopped answers as one of a requester: SQD does, ERR and RESET do not.
    window = windows[1]
    packets = messages_of(board, window, 1, [Message(b"abc", window.base + 7 * i) for i in range(3)], 4096)
    for state, packet, replies in ((SQD, packets[0], 1), (ERR, packets[1], 1), (RESET, packets[1], 1)):
        await board.registers.write("qp.state", state, 1)
        await Timer(200, "ns")
        assert await board.state(1) == state
        assert await board.field("qp.state", "drained", 1) == 1
        await send_all(board, [packet])
        await Timer(2, "us")
        assert len(board.peer.replies) == replies
    assert await board.count("qp_errors") == 1 and await board.count("rx_not_ready") == 2
    await board.open(1)
    await send_all(board, packets[:1])
    while len(board.peer.replies) == 1:
        await RisingEdge(dut.clk)
    assert board.peer.replies[1].aeth == (ACKED, 1)
