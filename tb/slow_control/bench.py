# SPDX-License-Identifier: Apache-2.0
"""A server that has only a board's address finds it, opens a queue pair and receives its data, all over
one cable: ARP, ping, IPbus by uHAL, the connection manager, RDMA."""

import os
from collections import Counter
from dataclasses import replace

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, Timer, with_timeout
from lib import connection as cm
from lib.board import ERR, RESET, RTS, start
from lib.cable import time_limit
from lib.connection import Info, Message, Transmit
from lib.rc_peer import Flow
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int
from lib.runner import seed
from lib.services_peer import HOST_IP, arp_request, checked, ping, wire
from lib.tops import WIDTHS
from lib.uhal_bridge import UhalBridge
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

BENCHES = WIDTHS

BASE = 0x2000
PEER = Info(qpn=0, psn=0x123, rkey=0xBEEF, base=BASE, ip=ip_int(PEER_IP))


class Server:
    """The services of the host at the far end; RDMA is the peer's affair (`lib/rc_peer.py`)."""

    def __init__(self, board):
        self.board, self.peer = board, board.peer
        self.sink = self  # as UhalBridge looks at it
        self.answers: Queue[bytes] = Queue()
        self.arp: Counter[str] = Counter()
        cocotb.start_soon(self.resolve())

    async def resolve(self) -> None:
        """Answers ARP for our address; other frames wait for `receive`."""
        while True:
            packet = Ether(await self.peer.other_frames.get())
            if ARP in packet and packet[ARP].op == 1 and packet[ARP].pdst == PEER_IP:
                self.arp["asked"] += 1
                answer = ARP(op=2, hwsrc=PEER_MAC, psrc=PEER_IP, hwdst=LOCAL_MAC, pdst=LOCAL_IP)
                await self.send(Ether(src=PEER_MAC, dst=LOCAL_MAC) / answer)
            elif ARP in packet and packet[ARP].op == 1:
                self.arp["announced"] += 1
            else:
                self.answers.put_nowait(bytes(packet))

    def empty(self) -> bool:
        return self.answers.empty()

    async def send(self, packet) -> None:
        await self.peer.send(wire(packet))

    async def receive(self):
        return checked(await with_timeout(self.answers.get(), 500, "us"))

    async def send_message(self, message: Message) -> None:
        udp = UDP(sport=40000, dport=cm.REQUEST_PORT) / Raw(message.pack())
        await self.send(Ether(src=PEER_MAC, dst=LOCAL_MAC) / IP(src=PEER_IP, dst=LOCAL_IP) / udp)

    async def exchange(self, message: Message) -> Message:
        await self.send_message(message)
        reply = await self.receive()
        assert (reply[UDP].sport, reply[UDP].dport) == (cm.REQUEST_PORT, cm.REPLY_PORT)
        return Message.unpack(bytes(reply[UDP].payload)[:64])

    async def open(self, psn: int = PEER.psn) -> tuple[Info, Info]:
        """Both sides of a queue pair that is ready to send."""
        peer = Info(0, psn, PEER.rkey, BASE, PEER.ip)
        local = (await self.exchange(Message(cm.OPEN_QP, peer))).sender
        self.peer.flows[0].expected = local.psn
        return peer, local


@cocotb.test(**time_limit(4))
async def a_board_is_found_and_pinged_while_it_sends_at_full_rate(dut):
    rng = seed()
    board = await start(dut, {0: 0})
    server = Server(board)
    for tag in range(4):
        await board.post(0, rng.randbytes(50_000), tag, 0)
    await server.send(arp_request())
    reply = await server.receive()
    assert (reply[ARP].op, reply[ARP].hwsrc, reply[ARP].psrc) == (2, LOCAL_MAC, LOCAL_IP)
    for size in (0, 1, 56, 1472, 8972):
        payload = rng.randbytes(size)
        await server.send(ping(payload))
        answer = await server.receive()
        assert answer[ICMP].type == 0 and answer[IP].dst == HOST_IP
        assert bytes(answer[ICMP].payload)[:size] == payload
    for _ in range(4):
        await board.completion()
    assert await board.count("icmp_echo_replies") == 5
    assert await board.count("tx_underruns") == 0


@cocotb.test(**time_limit(20))
async def uhal_reads_and_writes_the_register_map_of_the_gateware(dut):
    board = await start(dut, {0: 0})
    printed = await UhalBridge(dut, Server(board)).run("front_end")
    assert printed == [  # a dispatch is a packet at least
        "id 5053544b",
        f"data_w {len(dut.s_axis_data_tdata)}",
        f"n_qp {os.environ['PARAM_N_QP']}",
        "replay ok",
        "rkey 00001234",
        "field 5",
        "refused bus error on read",
        "ipbus_packets counted",
    ]
    assert await board.field("flow_control", "traffic_class", 0) == 5


@cocotb.test(**time_limit(8))
async def a_server_opens_a_queue_pair_starts_the_source_and_takes_its_messages(dut):
    board = await start(dut, {})
    board.peer.flows[0] = Flow(0)
    server = Server(board)
    peer, local = await server.open()
    assert server.arp["asked"] == 1, "the next hop of the queue pair comes by ARP"
    assert await board.state(0) == RTS
    assert await board.registers.read("qp.rkey", 0) == PEER.rkey

    size, count = 3000, 12
    transmit = Transmit(with_imm=True, is_write=True, length=size, count=count, interval=1000)
    assert (await server.exchange(Message(cm.NONE, peer, local, transmit=transmit))).answer == cm.ACK
    while len(board.peer.received) < count:
        await ClockCycles(dut.clk, 100)
    assert [imm for _, _, imm in board.peer.received] == list(range(count))
    starts = [packet.start_ns for packet in board.peer.seen]
    cycles = (starts[-1] - starts[0]) * 1000 / board.line.clock_ps / (count - 1)
    assert 990 <= cycles <= 1010, "1000 cycles from one message to the next"
    # Each message lies at the end of the one before: pieces of one PRBS-31.
    stream = prbs31(count * size)
    assert bytes(board.peer.memory[BASE : BASE + len(stream)]) == stream

    assert (await server.exchange(Message(cm.CLOSE_QP, peer, local))).answer == cm.ACK
    assert await board.state(0) == RESET


@cocotb.test(**time_limit(8))
async def strangers_neither_write_registers_nor_open_queue_pairs(dut):
    """A list in force: what a stranger sends changes nothing and gets no answer; a server on the list is served."""
    board = await start(dut, {})
    board.peer.flows[0] = Flow(0)
    server = Server(board)
    await board.registers.write("access_entry.ip", ip_int(PEER_IP))
    await board.registers.write("access.control", 0b11)
    registers = bytes.fromhex("200000f0 2000011f")  # IPbus 2.0, packet 0: write one word
    scratch = registers + (0x18 // 4).to_bytes(4, "big") + bytes.fromhex("deadbeef")
    opening = Message(cm.OPEN_QP, Info(0, 1, 2, BASE, ip_int(HOST_IP))).pack()
    for payload, port in ((scratch, 50001), (opening, cm.REQUEST_PORT), (opening, cm.REPLY_PORT)):
        udp = UDP(sport=40000, dport=port) / Raw(payload)
        await server.send(Ether(src=PEER_MAC, dst=LOCAL_MAC) / IP(src=HOST_IP, dst=LOCAL_IP) / udp)
    _, local = await server.open()  # answered after the three
    assert await board.count("udp_strangers") == 3
    assert await board.registers.read("scratch") == 0
    assert await board.state(0) == RTS and await board.registers.read("qp.rkey", 0) == PEER.rkey
    assert (await server.exchange(Message(cm.CLOSE_QP, PEER, local))).answer == cm.ACK
    assert server.empty() and await board.count("ipbus_packets") == 0


def prbs31(count: int) -> bytes:
    """ITU-T O.150, complemented, from all ones, bit by bit: the least significant bit of a byte first."""
    state, out = 0x7FFFFFFF, bytearray()
    for _ in range(count):
        byte = 0
        for place in range(8):
            bit = (state >> 30 ^ state >> 27) & 1
            state = (state << 1 | bit) & 0x7FFFFFFF
            byte |= (bit ^ 1) << place
        out.append(byte)
    return bytes(out)


@cocotb.test(**time_limit(8))
async def a_server_that_dies_is_found_by_keep_alive_and_opens_again(dut):
    board = await start(dut, {})
    board.peer.flows[0] = Flow(0)
    server = Server(board)
    # Impatient: 2 retries after 16 us each; a sign of life every 50 us.
    await board.registers.write_fields("connection.transport", mtu=5, ack_timeout=2, retry_cnt=2, rnr_retry=7)
    await board.registers.write("keep_alive", 50)
    await server.open()
    await Timer(256, "us")
    alive = len(board.peer.seen)
    assert alive >= 3 and await board.state(0) == RTS
    assert all(packet.payload == b"" for packet in board.peer.seen)

    board.peer.verdict = lambda packet: "drop"
    for _ in range(60):
        await Timer(6.4, "us")
        if await board.state(0) == ERR:
            break
    assert await board.state(0) == ERR
    assert await board.count("qp_errors") == 1

    board.peer.verdict = lambda packet: None
    await server.open(psn=0x777)
    assert await board.state(0) == RTS
    await board.post(0, b"alive again", 1, BASE)
    assert (await board.completion())[1:] == (1, 0)
    assert bytes(board.peer.memory[BASE : BASE + 11]) == b"alive again"


@cocotb.test(**time_limit(8))
async def a_forged_opening_takes_nothing_from_a_server_that_lives(dut):
    """It is probed by an empty message, and continues."""
    board = await start(dut, {})
    board.peer.flows[0] = Flow(0)
    server = Server(board)
    await board.registers.write_fields("connection.control", listen=1, offered=1)
    peer, local = await server.open()
    await Timer(64, "us")
    assert not board.peer.seen, "the keep-alive comes after seconds"
    for forged in (replace(peer, psn=7), replace(peer, ip=ip_int(HOST_IP))):
        await server.send_message(Message(cm.OPEN_QP, forged))
    assert (await server.exchange(Message(cm.OPEN_QP, replace(peer, qpn=0x666)))).answer == cm.NO_QP
    await Timer(64, "us")
    requested = len(board.peer.seen)
    assert 1 <= requested <= 64 and all(packet.payload == b"" for packet in board.peer.seen)
    assert server.empty() and await board.state(0) == RTS
    await board.post(0, b"as before", 1, BASE)
    assert (await board.completion())[1:] == (1, 0)
    assert bytes(board.peer.memory[BASE : BASE + 9]) == b"as before"
    assert (await server.exchange(Message(cm.CLOSE_QP, peer, local))).answer == cm.ACK


@cocotb.test(**time_limit(8))
async def a_forged_connection_gives_way_to_the_server_whose_address_it_has(dut):
    """The server does not answer for a queue pair that it does not have: its retries are spent within its timers."""
    board = await start(dut, {})
    board.peer.flows[0] = Flow(0)
    server = Server(board)
    await board.registers.write_fields("connection.control", listen=1, offered=1)
    await board.registers.write_fields("connection.transport", mtu=5, ack_timeout=2, retry_cnt=2, rnr_retry=7)
    board.peer.verdict = lambda packet: "drop"
    forged = replace(PEER, qpn=0x666)
    assert (await server.exchange(Message(cm.OPEN_QP, forged))).answer == cm.ACK
    assert (await server.exchange(Message(cm.OPEN_QP, PEER))).answer == cm.NO_QP
    for _ in range(60):
        await Timer(6.4, "us")
        if await board.state(0) == ERR:
            break
    assert await board.state(0) == ERR and server.empty()
    board.peer.verdict = lambda packet: None
    await server.open()
    assert await board.state(0) == RTS
    await board.post(0, b"ours", 1, BASE)
    assert (await board.completion())[1:] == (1, 0)
