# SPDX-License-Identifier: Apache-2.0
"""A program over librdmacm at a front end: it connects to a window, fills it, and leaves; from wire to wire."""

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from lib import mads
from lib.axi_memory import AxiMemory
from lib.board import RESET, RTS, start
from lib.mads import DREP, DREQ, REJ, REP, REQ, RTU, Answer, dreq, ids, req
from lib.rc_peer import QPN_BASE, Peer
from lib.receive_model import Message, frame, packets_of
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int
from lib.runner import Bench, seed
from lib.services_peer import arp_reply
from scapy.contrib.roce import BTH
from scapy.layers.l2 import ARP, Ether

BUILD = {"N_QP": 2, "WITH_READ": 1, "WITH_RECEIVE": 1, "WITH_REQUESTER": 0, "WITH_SOURCE": 0, "WITH_RDMA_CM": 1}
BENCHES = [
    Bench(top="penstock_xgmii", configs=[{"CLK_KHZ": 156_250, **BUILD}]),
    Bench(top="penstock_100g", configs=[{"CLK_KHZ": 322_266, **BUILD}]),
]
SIZE, BASE, KEY, PORT = 1 << 18, 0x4000, 0xFEED0001, 17185
ACK = 0x11
OURS, THEIRS = ip_int(PEER_IP), ip_int(LOCAL_IP)
ID = 0x51


class Program(Peer):
    """Answers ARP; keeps messages of the connection manager, and acknowledgements."""

    def __init__(self, dut, expected: dict[int, int]):
        super().__init__(dut, expected)
        self.answers: list[Answer] = []
        self.acks: list[tuple[int, int]] = []

    async def handle(self, raw: bytes, start) -> None:
        packet = Ether(raw)
        if ARP in packet:
            if packet[ARP].op == 1 and packet[ARP].pdst == PEER_IP:
                await self.send(bytes(arp_reply(PEER_MAC, PEER_IP)))
        elif packet[BTH].opcode == mads.UD_SEND_ONLY:
            payload = raw[mads.HEADS :][: mads.BYTES]
            answer = Answer(OURS, payload)
            assert payload == mads.payload(THEIRS, OURS, answer.mad), "the ICRC"
            self.answers.append(answer)
        elif packet[BTH].opcode == ACK:
            self.acks.append((packet[BTH].dqpn, packet[BTH].psn))

    async def post(self, attribute: int, data: bytes, transaction: int = 1) -> None:
        heads = bytes(Ether(src=PEER_MAC, dst=LOCAL_MAC, type=0x0800))
        await self.send(heads + mads.frame(OURS, THEIRS, mads.mad(attribute, data, transaction))[14:])


async def until(dut, condition) -> None:
    async def wait():
        while not condition():
            await RisingEdge(dut.clk)

    await with_timeout(wait(), 400, "us")


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def a_program_connects_fills_the_window_and_leaves_again_and_again(dut):
    rng = seed()
    memory = AxiMemory(dut, rng, SIZE, lambda rng: 40, clock_ns=6)
    board = await start(dut, {}, Program)
    peer, write = board.peer, board.registers.write
    assert await board.field("options", "rdma_cm", 0) == 1
    await write("services.netmask", 0)
    await write("rdma_cm.listen", PORT)
    for name, value in (
        ("read_rkey", KEY),
        ("read_base_lo", BASE),
        ("read_length_lo", 0x8000),
        ("read_depth", 4),
        ("receive", 1),
    ):
        await write(f"qp.{name}", value, 1)
    for turn in range(3):
        peer.answers.clear()
        await peer.post(REQ, req(OURS, THEIRS, ID + turn, mtu=3, psn=77))
        await until(dut, lambda: peer.answers)
        (rep,) = peer.answers
        assert (rep.attribute, rep.remote, rep.qpn) == (REP, ID + turn, QPN_BASE + 1), "the one with a window"
        assert rep.data[44:64] == BASE.to_bytes(8) + KEY.to_bytes(4) + (1).to_bytes(4) + (0x8000).to_bytes(4)
        await peer.post(RTU, ids(ID + turn, rep.local))
        data = rng.randbytes(3000)
        packets = packets_of(Message(data, BASE + 64 * turn, None), 1, rep.psn, KEY, 1024)
        for packet in packets:
            await peer.send(frame(packet, QPN_BASE))
        last = (0x77, packets[-1].psn)
        await until(dut, lambda last=last: last in peer.acks)
        peer.acks.clear()
        assert bytes(memory.mem[BASE + 64 * turn :][: len(data)]) == data
        assert await board.state(1) == RTS
        peer.answers.clear()
        await peer.post(DREQ, dreq(ID + turn, rep.local, rep.qpn), transaction=5)
        await until(dut, lambda: peer.answers)
        (end,) = peer.answers
        assert (end.attribute, end.transaction, end.local, end.remote) == (DREP, 5, rep.local, ID + turn)
        await peer.post(REQ, req(OURS, THEIRS, 0x99, port=1))
        await until(dut, lambda: len(peer.answers) == 2)
        assert (peer.answers[1].attribute, peer.answers[1].reason) == (REJ, 8)
        assert await board.state(1) == RESET
    counts = {name: await board.field(f"counters.rdma_cm_{name}", "count", 0) for name in (
        "requests", "established", "disconnected", "refused", "malformed", "unknown")}  # fmt: skip
    assert counts == {"requests": 3, "established": 3, "disconnected": 3, "refused": 3, "malformed": 0, "unknown": 0}
