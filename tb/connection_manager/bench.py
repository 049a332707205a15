# SPDX-License-Identifier: Apache-2.0
"""Queue pairs open and close over the network as the FEROCE connection manager does it, and only for their peer."""

from dataclasses import dataclass, replace

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ReadOnly, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteSlave, Region
from lib import connection as cm
from lib.connection import Info, Message, Transmit
from lib.register_map import address, generated, pack
from lib.runner import Bench, seed

BENCH = Bench(
    top="connection_manager",
    configs=[{"N_QP": n, "CLK_KHZ": 100} for n in (1, 4, 256)],
)

CYCLES_PER_MS = 100
TIMEOUT_MS, RETRIES = 3, 2
LOCAL_IP, QPN_BASE = 0x0A000002, 0xBEEF00
SERVER_IP, OTHER_IP = 0x0A000001, 0x0A000063
MAC = 0x021122334455
FLOW, TRANSPORT = 0x6A0000, 0x7775
RESET, INIT, RTR, RTS, ERR = 0, 1, 2, 3, 6
PEER = Info(qpn=0x123456, psn=0xABCDEF, rkey=0xC0FFEE01, base=0x7F0012345000, ip=SERVER_IP)
STEP_OPEN, STEP_INFO, STEP_DONE, STEP_NONE = 1, 2, 4, 0
FAIL_SILENT, FAIL_NO_QP, FAIL_NAK, FAIL_SERVER, FAIL_ADDRESS, FAIL_STATE = range(1, 7)


class RegisterBlock(Region):
    """Memory in the place of the register block; `stuck` queue pairs never become ready to send."""

    def __init__(self):
        super().__init__(1 << 18)
        self.bytes = bytearray(1 << 18)
        self.writes: list[tuple[int, int]] = []
        self.stuck = False

    async def _read(self, where, length, **kwargs):
        return bytes(self.bytes[where : where + length])

    async def _write(self, where, data, **kwargs):
        word = int.from_bytes(data, "little")
        self.writes.append((where, word))
        state = where >= address("qp.state") and where % 0x100 == address("qp.state") % 0x100
        if not (self.stuck and state and word == RTS):
            self.bytes[where : where + len(data)] = data

    def word(self, name: str, index: int = 0) -> int:
        where = address(name, index)
        return int.from_bytes(self.bytes[where : where + 4], "little")

    def qp(self, name: str, index: int) -> int:
        return self.word(f"qp.{name}", index)


@dataclass
class Sent:
    message: Message
    ip: int
    dport: int
    sport: int


class Board:
    """The manager with its surroundings: register block, address resolution, the network."""

    def __init__(self, dut):
        self.dut = dut
        self.registers = RegisterBlock()
        self.arp_answers = True
        self.sent: Queue[Sent] = Queue()
        self.loss, self.rng = 0.0, seed()
        self.emitted = 0  # messages, those that are lost on their way too

    @classmethod
    async def start(cls, dut, listen: int = 1, reopen: int = 0) -> "Board":
        board = cls(dut)
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        slave = AxiLiteSlave(AxiLiteBus.from_prefix(dut, "m_axil"), dut.clk, dut.rst, target=board.registers)
        pauses = board.rng.choices([0, 1], k=97)
        slave.write_if.b_channel.set_pause_generator(iter(pauses * 10000))
        dut.rst.value = 1
        dut.local_ip.value, dut.qpn_base.value = LOCAL_IP, QPN_BASE
        dut.s_axis_cm_tvalid.value = dut.found_valid.value = dut.qp_err_valid.value = dut.lookup_ready.value = 0
        dut.m_axis_cm_tready.value = 0
        board.configure(listen=listen, reopen=reopen)
        for _ in range(4):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        cocotb.start_soon(board.resolve())
        cocotb.start_soon(board.take())
        return board

    def configure(self, open_qp=None, close_qp=None, listen=1, reopen=0):
        """cm_cfg_t, highest member first."""
        qp = open_qp if open_qp is not None else close_qp or 0
        members = [(listen, 1), (reopen, 1), (SERVER_IP, 32), (cm.REQUEST_PORT, 16), (TIMEOUT_MS, 16), (RETRIES, 4)]
        members += [(FLOW, 32), (TRANSPORT, 32), (open_qp is not None, 1), (close_qp is not None, 1), (qp, 8)]
        word = 0
        for value, width in members:
            word = word << width | int(value)
        self.dut.cfg.value = word

    async def command(self, reopen=0, **what):
        """Pulses cm_cfg_t.open or .close."""
        self.configure(reopen=reopen, **what)
        await RisingEdge(self.dut.clk)
        self.configure(reopen=reopen)

    async def resolve(self):
        """Answers lookups after a while."""
        while True:
            await RisingEdge(self.dut.lookup_valid)
            await RisingEdge(self.dut.clk)
            self.dut.lookup_ready.value = 1
            await RisingEdge(self.dut.clk)
            self.dut.lookup_ready.value = 0
            for _ in range(self.rng.randrange(1, 9)):
                await RisingEdge(self.dut.clk)
            self.dut.found_valid.value = 1
            self.dut.found.value = self.arp_answers
            self.dut.found_mac.value = MAC
            await RisingEdge(self.dut.clk)
            self.dut.found_valid.value = 0

    async def take(self):
        """What the manager sends, after random stalls."""
        data, ways = b"", set()
        while True:
            if not self.dut.m_axis_cm_tvalid.value:
                await RisingEdge(self.dut.m_axis_cm_tvalid)
            self.dut.m_axis_cm_tready.value = self.rng.random() < 0.6
            await ReadOnly()
            sent = None
            if self.dut.m_axis_cm_tvalid.value and self.dut.m_axis_cm_tready.value:
                data += self.dut.m_axis_cm_tdata.value.to_unsigned().to_bytes(2, "little")
                ways.add(tuple(int(getattr(self.dut, f"cm_tx_{way}").value) for way in ("ip", "dport", "sport")))
                if self.dut.m_axis_cm_tlast.value:
                    assert len(data) == 64 and len(ways) == 1, "the way holds for all beats of a message"
                    sent = Sent(Message.unpack(data), *ways.pop())
                    data = b""
            await RisingEdge(self.dut.clk)
            self.emitted += sent is not None
            if sent and self.rng.random() >= self.loss:
                self.sent.put_nowait(sent)

    async def deliver(self, message: Message | bytes, ip: int = SERVER_IP):
        if self.rng.random() < self.loss:
            return
        data = message if isinstance(message, bytes) else message.pack()
        self.dut.cm_rx_ip.value = ip
        for at in range(0, 64, 2):
            while self.rng.random() < 0.2:
                await RisingEdge(self.dut.clk)
            self.dut.s_axis_cm_tdata.value = int.from_bytes(data[at : at + 2], "little")
            self.dut.s_axis_cm_tlast.value = at == 62
            self.dut.s_axis_cm_tvalid.value = 1
            ready = False
            while not ready:
                await ReadOnly()
                ready = bool(self.dut.s_axis_cm_tready.value)
                await RisingEdge(self.dut.clk)
            self.dut.s_axis_cm_tvalid.value = 0

    async def answer(self) -> Sent:
        return await with_timeout(self.sent.get(), 200, "us")

    async def ask(self, message: Message, ip: int = SERVER_IP) -> Message:
        """A request and its answer, which must go where it says."""
        await self.deliver(message, ip)
        sent = await self.answer()
        assert (sent.ip, sent.sport) == (ip, cm.REQUEST_PORT)
        assert sent.dport == (message.port or cm.REPLY_PORT)
        assert sent.message.request == message.request
        assert sent.message.other == message.sender
        return sent.message

    async def opened(self, peer: Info = PEER) -> Info:
        """A queue pair ready to send to `peer`, opened as FEROCE's host software does; our side of it."""
        first = await self.ask(Message(cm.OPEN_QP, peer, info_valid=False), peer.ip)
        assert first.answer == cm.ACK
        for request in (cm.SEND_QP_INFO, cm.MODIFY_QP_RTS):
            reply = await self.ask(Message(request, peer, first.sender), peer.ip)
            assert (reply.answer, reply.sender) == (cm.ACK, first.sender)
        return first.sender

    def status(self) -> dict[str, int]:
        word = int(self.dut.status.value)
        return {"busy": word >> 15, "step": word >> 12 & 7, "fail": word >> 8 & 15, "qp": word & 255}

    async def settled(self, limit_ms: int = 100) -> dict[str, int]:
        for _ in range(limit_ms * CYCLES_PER_MS):
            await RisingEdge(self.dut.clk)
            if not self.status()["busy"]:
                return self.status()
        raise AssertionError(f"still busy after {limit_ms} ms: {self.status()}")

    async def fail_qp(self, qp: int):
        self.dut.qp_err_qp.value = qp
        self.dut.qp_err_valid.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.qp_err_valid.value = 0
        self.registers.bytes[address("qp.state", qp)] = ERR


def index(info: Info) -> int:
    assert info.qpn & ~0xFF == QPN_BASE
    return info.qpn & 0xFF


# ---- listening ------------------------------------------------------------------------------------------


@cocotb.test()
async def a_server_opens_a_queue_pair_step_by_step(dut):
    board = await Board.start(dut)
    reply = await board.ask(Message(cm.OPEN_QP, PEER, info_valid=False))
    own, qp = reply.sender, index(reply.sender)
    assert (reply.answer, own.ip) == (cm.ACK, LOCAL_IP)
    assert board.registers.qp("state", qp) == INIT
    assert (await board.ask(Message(cm.SEND_QP_INFO, PEER, own))).answer == cm.ACK
    assert board.registers.qp("state", qp) == RTR
    expected = {
        "dst_mac_hi": MAC >> 32,
        "dst_mac_lo": MAC & 0xFFFFFFFF,
        "dst_ip": SERVER_IP,
        "flow": FLOW,
        "dest_qpn": PEER.qpn,
        "rkey": PEER.rkey,
        "transport": TRANSPORT,
        "init_psn": own.psn,
    }
    assert {name: board.registers.qp(name, qp) for name in expected} == expected
    word = board.registers.word
    assert word("ring.base_lo", qp) | word("ring.base_hi", qp) << 32 == PEER.base
    assert (address("ring.next_slot", qp), 0) in board.registers.writes
    assert (await board.ask(Message(cm.MODIFY_QP_RTS, PEER, own))).answer == cm.ACK
    assert board.registers.qp("state", qp) == RTS
    assert (await board.ask(Message(cm.CLOSE_QP, PEER, own))).answer == cm.ACK
    assert board.registers.qp("state", qp) == RESET


@cocotb.test()
async def a_repeated_request_gets_the_same_answer_and_changes_nothing(dut):
    board = await Board.start(dut)
    own = (await board.ask(Message(cm.OPEN_QP, PEER, info_valid=False))).sender
    for request in (cm.OPEN_QP, cm.SEND_QP_INFO, cm.MODIFY_QP_RTS, cm.CLOSE_QP):
        message = Message(request, PEER, own, port=0x5000)
        first = await board.ask(message)
        before = len(board.registers.writes)
        for _ in range(3):
            assert await board.ask(message) == first
        assert first.answer == cm.ACK
        assert len(board.registers.writes) == before


@cocotb.test()
async def nobody_but_the_peer_can_touch_a_queue_pair(dut):
    board = await Board.start(dut)
    own = await board.opened()
    before = len(board.registers.writes)
    stranger = replace(PEER, ip=OTHER_IP)
    for request in (cm.SEND_QP_INFO, cm.MODIFY_QP_RTS, cm.CLOSE_QP, cm.ERROR, cm.NONE):
        message = Message(request, stranger, own, transmit=Transmit(length=64))
        assert (await board.ask(message, OTHER_IP)).answer == cm.NAK, request
        # Who lies about its address in the message is still told from its UDP source.
        assert (await board.ask(replace(message, sender=PEER), OTHER_IP)).answer == cm.NAK, request
    assert len(board.registers.writes) == before


@cocotb.test()
async def each_server_gets_a_queue_pair_of_its_own_until_none_is_left(dut):
    board = await Board.start(dut)
    n_qp = min(int(dut.N_QP.value), 5)
    peers = [replace(PEER, qpn=100 + i, psn=i) for i in range(n_qp)]
    owned = [await board.opened(peer) for peer in peers]
    assert sorted(index(own) for own in owned) == list(range(n_qp))
    if n_qp == int(dut.N_QP.value):
        refused = await board.ask(Message(cm.OPEN_QP, replace(PEER, qpn=99)))
        assert (refused.answer, refused.sender) == (cm.NO_QP, Info())
        assert (await board.ask(Message(cm.CLOSE_QP, peers[-1], owned[-1]))).answer == cm.ACK
        assert index(await board.opened(replace(PEER, qpn=99))) == index(owned[-1])


@cocotb.test()
async def a_number_that_no_queue_pair_has_is_answered_no_qp(dut):
    board = await Board.start(dut)
    n_qp = int(dut.N_QP.value)
    for qpn in (0, QPN_BASE, 0x123400, *([QPN_BASE + n_qp] if n_qp < 256 else [])):
        for request in (cm.SEND_QP_INFO, cm.MODIFY_QP_RTS, cm.CLOSE_QP, cm.ERROR):
            assert (await board.ask(Message(request, PEER, Info(qpn=qpn)))).answer == cm.NO_QP
    assert board.registers.writes == []


@cocotb.test()
async def steps_out_of_order_and_requests_without_meaning_are_refused(dut):
    board = await Board.start(dut)
    own = (await board.ask(Message(cm.OPEN_QP, PEER, info_valid=False))).sender
    assert (await board.ask(Message(cm.MODIFY_QP_RTS, PEER, own))).answer == cm.NAK
    assert (await board.ask(Message(cm.SEND_QP_INFO, PEER, own, info_valid=False))).answer == cm.NAK
    for request in (5, 6):
        assert (await board.ask(Message(request, PEER, own))).answer == cm.ACK_ERROR
    start = Message(cm.NONE, PEER, own, transmit=Transmit(length=64))
    assert (await board.ask(start)).answer == cm.NAK
    assert board.registers.qp("state", index(own)) == INIT


@cocotb.test()
async def a_queue_pair_that_cannot_open_is_closed_and_answered_error(dut):
    board = await Board.start(dut)
    own = (await board.ask(Message(cm.OPEN_QP, PEER, info_valid=False))).sender
    board.arp_answers = False
    assert (await board.ask(Message(cm.SEND_QP_INFO, PEER, own))).answer == cm.ACK_ERROR
    assert board.registers.qp("state", index(own)) == RESET
    board.arp_answers = True
    board.registers.stuck = True
    own = (await board.ask(Message(cm.OPEN_QP, PEER))).sender
    await board.deliver(Message(cm.MODIFY_QP_RTS, PEER, own))
    reply = await with_timeout(board.sent.get(), 2, "ms")
    assert reply.message.answer == cm.ACK_ERROR
    assert board.registers.qp("state", index(own)) == RESET
    board.registers.stuck = False
    await board.opened()


@cocotb.test()
async def a_server_that_comes_back_takes_its_queue_pair_again(dut):
    board = await Board.start(dut)
    own = await board.opened()
    # A new life of the server: the same queue pair number, another PSN and key.
    again = replace(PEER, psn=7, rkey=8)
    assert index(await board.opened(again)) == index(own)
    assert board.registers.qp("rkey", index(own)) == 8
    # Ours has failed: even the same request opens it afresh.
    await board.fail_qp(index(own))
    assert (await board.ask(Message(cm.MODIFY_QP_RTS, again, own))).answer == cm.NAK
    assert index(await board.opened(again)) == index(own)
    assert board.registers.qp("state", index(own)) == RTS


@cocotb.test()
async def a_peer_that_reports_an_error_stops_the_queue_pair(dut):
    board = await Board.start(dut)
    own = await board.opened()
    assert (await board.ask(Message(cm.ERROR, PEER, own))).answer == cm.ACK
    assert board.registers.qp("state", index(own)) == ERR
    await board.opened()


@cocotb.test()
async def a_transmit_request_sets_up_the_source(dut):
    board = await Board.start(dut)
    own = await board.opened()
    transmit = Transmit(with_imm=True, length=4096, count=1000, rate=250)
    assert (await board.ask(Message(cm.NONE, PEER, own, transmit=transmit))).answer == cm.ACK
    word = board.registers.word
    assert word("source.length_min") == 4096
    assert word("source.raddr_lo") | word("source.raddr_hi") << 32 == PEER.base
    assert word("source.count") == 1000
    assert word("source.interval") == CYCLES_PER_MS * 1000 // 250
    assert word("source.control") == pack("source.control", with_imm=1)
    assert board.registers.writes[-1] == (address("source.command"), pack("source.command", start=1))
    assert (await board.ask(Message(cm.NONE, PEER, own, transmit=Transmit(start=False)))).answer == cm.ACK
    assert board.registers.writes[-1] == (address("source.command"), pack("source.command", stop=1))


@cocotb.test()
async def it_listens_only_where_it_is_told_to(dut):
    board = await Board.start(dut, listen=0)
    await board.deliver(Message(cm.OPEN_QP, PEER))
    for _ in range(2000):
        await RisingEdge(dut.clk)
    assert board.sent.empty() and board.registers.writes == []


@cocotb.test()
async def no_message_whatever_makes_it_hang_or_act_for_a_stranger(dut):
    board = await Board.start(dut)
    own = await board.opened()
    before = len(board.registers.writes)
    for _ in range(300):
        data = bytearray(board.rng.randbytes(64))
        if board.rng.random() < 0.7:  # close to a real one
            request = Message(board.rng.randrange(8), PEER, own)
            data = bytearray(request.pack())
            data[board.rng.randrange(64)] ^= 1 << board.rng.randrange(8)
        if data[0] >> 1 & 7 == cm.OPEN_QP:
            data[0] ^= 0x0C  # a stranger may open a queue pair of its own
        await board.deliver(bytes(data), OTHER_IP)
        if not data[0] & 0x10:
            assert (await board.answer()).message.answer != cm.ACK
    assert len(board.registers.writes) == before
    assert (await board.ask(Message(cm.CLOSE_QP, PEER, own))).answer == cm.ACK


# ---- opening ----------------------------------------------------------------------------------------------


class Server:
    """A server with a listening connection manager; every answer is written from the table of messages."""

    def __init__(self, board: Board, answers: dict[int, int] | None = None):
        self.board, self.answers = board, answers or {}
        self.seen: list[int] = []
        self.client = Info()

    async def run(self):
        while True:
            sent = await self.board.sent.get()
            assert (sent.ip, sent.dport, sent.sport) == (SERVER_IP, cm.REQUEST_PORT, cm.REPLY_PORT)
            request = sent.message
            assert request.answer is None and request.info_valid
            self.seen.append(request.request)
            self.client = request.sender
            if request.request != cm.OPEN_QP:
                assert request.other.qpn == PEER.qpn
            answer = self.answers.get(request.request, cm.ACK)
            await self.board.deliver(request.answered(answer, PEER if answer == cm.ACK else None))


@cocotb.test()
async def the_board_opens_and_closes_a_queue_pair_with_a_server(dut):
    board = await Board.start(dut)
    server = Server(board)
    cocotb.start_soon(server.run())
    qp = int(dut.N_QP.value) - 1
    await board.command(open_qp=qp)
    assert await board.settled() == {"busy": 0, "step": STEP_DONE, "fail": 0, "qp": qp}
    assert server.seen == [cm.OPEN_QP, cm.SEND_QP_INFO, cm.MODIFY_QP_RTS]
    assert board.registers.qp("state", qp) == RTS
    assert board.registers.qp("dest_qpn", qp) == PEER.qpn
    assert board.registers.qp("init_psn", qp) == server.client.psn
    assert server.client.qpn == QPN_BASE + qp
    await board.command(close_qp=qp)
    assert await board.settled() == {"busy": 0, "step": STEP_NONE, "fail": 0, "qp": qp}
    assert server.seen[-1] == cm.CLOSE_QP
    assert board.registers.qp("state", qp) == RESET


@cocotb.test()
async def lost_messages_are_sent_again(dut):
    board = await Board.start(dut)
    server = Server(board)
    cocotb.start_soon(server.run())
    opened = 0
    board.loss = 0.2
    for _ in range(10):
        await board.command(open_qp=0)
        opened += (await board.settled())["fail"] == 0
        await board.command(close_qp=0)
        await board.settled()
    assert opened >= 7 and board.emitted > 40, "of each round four messages at most go out but for resends"


@cocotb.test()
async def a_server_that_is_silent_or_refuses_is_reported_with_the_step(dut):
    board = await Board.start(dut)
    await board.command(open_qp=0)
    status = await board.settled()
    assert (status["step"], status["fail"]) == (STEP_OPEN, FAIL_SILENT)
    assert board.sent.qsize() == 1 + RETRIES
    while not board.sent.empty():
        board.sent.get_nowait()
    server = Server(board)
    cocotb.start_soon(server.run())
    for answer, fail in ((cm.NO_QP, FAIL_NO_QP), (cm.NAK, FAIL_NAK), (cm.ACK_ERROR, FAIL_SERVER)):
        for request, step in ((cm.OPEN_QP, STEP_OPEN), (cm.SEND_QP_INFO, STEP_INFO)):
            server.answers = {request: answer}
            await board.command(open_qp=0)
            status = await board.settled()
            assert (status["step"], status["fail"]) == (step, fail)
            assert board.registers.qp("state", 0) == RESET
    server.answers = {}
    board.arp_answers = False
    await board.command(open_qp=0)
    assert (await board.settled())["fail"] == FAIL_ADDRESS
    board.arp_answers = True
    board.registers.stuck = True
    await board.command(open_qp=0)
    assert (await board.settled(1000))["fail"] == FAIL_STATE
    board.registers.stuck = False
    await board.command(open_qp=0)
    assert (await board.settled())["step"] == STEP_DONE


@cocotb.test()
async def a_queue_pair_of_ours_that_failed_is_opened_again_until_the_server_is_back(dut):
    board = await Board.start(dut, reopen=1)
    server = Server(board)
    running = cocotb.start_soon(server.run())
    await board.command(open_qp=0, reopen=1)
    assert (await board.settled())["step"] == STEP_DONE
    running.cancel()
    await board.fail_qp(0)
    for _ in range(30 * CYCLES_PER_MS):  # nobody answers for a while
        await RisingEdge(dut.clk)
    while not board.sent.empty():
        board.sent.get_nowait()
    cocotb.start_soon(server.run())
    for _ in range(60 * CYCLES_PER_MS):
        await RisingEdge(dut.clk)
        if board.status()["step"] == STEP_DONE:
            break
    await board.settled()
    assert board.registers.qp("state", 0) == RTS


@cocotb.test()
async def an_answer_that_nobody_waits_for_changes_nothing(dut):
    board = await Board.start(dut)
    own = await board.opened()
    before = len(board.registers.writes)
    for request in range(8):
        for ip in (SERVER_IP, OTHER_IP):
            await board.deliver(Message(request, PEER, own, answer=cm.ACK), ip)
    for _ in range(500):
        await RisingEdge(dut.clk)
    assert board.sent.empty() and len(board.registers.writes) == before


@cocotb.test()
async def only_the_server_that_was_asked_can_answer(dut):
    board = await Board.start(dut)
    await board.command(open_qp=0)
    answer = (await board.answer()).message.answered(cm.ACK, PEER)
    before = len(board.registers.writes)
    await board.deliver(answer, OTHER_IP)
    for _ in range(600):
        await RisingEdge(dut.clk)
    assert board.status()["step"] == STEP_OPEN and len(board.registers.writes) == before
    await board.deliver(answer)
    while (sent := await board.answer()).message.request == cm.OPEN_QP:  # said again meanwhile
        pass
    assert sent.message.request == cm.SEND_QP_INFO


@cocotb.test()
async def the_map_names_every_register_that_it_writes(dut):
    board = await Board.start(dut)
    own = await board.opened()
    await board.ask(Message(cm.NONE, PEER, own, transmit=Transmit(length=64)))
    known = set()
    for name, (where, _) in generated().REGISTERS.items():
        stride = getattr(generated(), f"{name.split('.')[0].upper()}_STRIDE", 0)
        known |= {where + i * stride for i in range(256 if stride else 1)}
    assert {where & ~3 for where, _ in board.registers.writes} <= known
