# SPDX-License-Identifier: Apache-2.0
"""The board opens and closes queue pairs with a server's connection manager, and reports the step that failed."""

import cocotb
from cocotb.triggers import RisingEdge
from lib import connection as cm
from lib.connection import Info, Message
from lib.connection_bench import (
    BENCH,
    CYCLES_PER_MS,
    FAIL_ADDRESS,
    FAIL_NAK,
    FAIL_NO_QP,
    FAIL_SERVER,
    FAIL_SILENT,
    FAIL_STATE,
    OTHER_IP,
    PEER,
    QPN_BASE,
    RESET,
    RETRIES,
    RTS,
    SERVER_IP,
    STEP_DONE,
    STEP_NONE,
    STEP_OPEN,
    Board,
)

__all__ = ["BENCH"]


class Server:
    """A server with a listening connection manager; every answer is written from the table of messages."""

    def __init__(self, board: Board, answers: dict[int, int] | None = None):
        self.board, self.answers = board, answers or {}
        self.seen: list[int] = []
        self.client = Info()

    async def run(self):
        while True:
            sent = await self.board.sent.get()
            assert (sent.ip, sent.dport, sent.sport) == (SERVER_IP, cm.REQUEST_PORT, cm.REQUEST_PORT)
            request = sent.message
            assert request.answer is None and request.info_valid and request.port == cm.REQUEST_PORT
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
    assert server.seen == [cm.OPEN_QP]
    assert board.registers.qp("state", qp) == RTS
    assert board.registers.qp("dest_qpn", qp) == PEER.qpn
    assert board.registers.qp("init_psn", qp) == server.client.psn
    assert server.client.qpn == QPN_BASE + qp
    await board.command(close_qp=qp)
    assert await board.settled() == {"busy": 0, "step": STEP_NONE, "fail": 0, "qp": qp}
    assert server.seen[-1] == cm.CLOSE_QP
    assert board.registers.qp("state", qp) == RESET


@cocotb.test()
async def feroce_s_own_bytes_open_a_queue_pair_of_a_board_and_either_side_closes_it(dut):
    board = await Board.start(dut)
    board.server_ip = cm.FEROCE_HOST.ip
    dut.local_ip.value, dut.qpn_base.value = cm.FEROCE_BOARD.ip, cm.FEROCE_BOARD.qpn

    async def expect(name: str) -> None:
        """The board's messages are equal to FEROCE's, except for the first PSN: FEROCE's is 0, ours is drawn."""
        sent = await board.answer()
        assert (sent.ip, sent.dport, sent.sport) == (cm.FEROCE_HOST.ip, cm.REQUEST_PORT, cm.REQUEST_PORT)
        expected = bytearray(cm.GOLDEN[name][1])
        expected[6:9] = sent.message.sender.psn.to_bytes(3)
        assert sent.data == bytes(expected), name

    async def deliver(name: str) -> None:
        await board.deliver(cm.GOLDEN[name][1], cm.FEROCE_HOST.ip)

    async def opens() -> None:
        await board.command(open_qp=0)
        await expect("board opens")
        await deliver("host agrees")
        assert (await board.settled())["step"] == STEP_DONE
        assert board.registers.qp("state", 0) == RTS
        assert board.registers.qp("dest_qpn", 0) == cm.FEROCE_HOST.qpn

    await opens()
    await board.command(close_qp=0)
    await expect("board closes")
    await deliver("host has closed")
    assert (await board.settled())["fail"] == 0
    assert board.registers.qp("state", 0) == RESET
    await opens()
    await deliver("host closes")
    await expect("board has closed")
    assert board.registers.qp("state", 0) == RESET


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
    assert opened >= 7 and board.emitted > 20, "of each round two messages at most go out but for resends"


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
        server.answers = {cm.OPEN_QP: answer}
        await board.command(open_qp=0)
        status = await board.settled()
        assert (status["step"], status["fail"]) == (STEP_OPEN, fail)
        assert board.registers.qp("state", 0) == RESET


@cocotb.test()
async def a_server_that_has_agreed_gets_an_error_when_the_board_cannot_follow(dut):
    board = await Board.start(dut)
    server = Server(board)
    cocotb.start_soon(server.run())
    for answer in (cm.ACK, cm.NO_QP):
        server.answers, server.seen = {cm.CLOSE_QP: answer}, []
        board.arp_answers = False
        await board.command(open_qp=0)
        assert (await board.settled())["fail"] == FAIL_ADDRESS
        assert server.seen == [cm.OPEN_QP, cm.CLOSE_QP]
        board.arp_answers = True
        board.registers.stuck = True
        await board.command(open_qp=0)
        assert (await board.settled(1000))["fail"] == FAIL_STATE
        assert server.seen == [cm.OPEN_QP, cm.CLOSE_QP] * 2
        assert board.registers.qp("state", 0) == RESET
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
    for _ in range(30 * CYCLES_PER_MS):  # no answer for a while
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
    local = await board.opened()
    before = len(board.registers.writes)
    for request in range(8):
        for ip in (SERVER_IP, OTHER_IP):
            await board.deliver(Message(request, PEER, local, answer=cm.ACK), ip)
    for _ in range(500):
        await RisingEdge(dut.clk)
    assert board.sent.empty() and len(board.registers.writes) == before


@cocotb.test()
async def only_the_server_that_got_the_request_can_answer(dut):
    board = await Board.start(dut)
    await board.command(open_qp=0)
    answer = (await board.answer()).message.answered(cm.ACK, PEER)
    before = len(board.registers.writes)
    await board.deliver(answer, OTHER_IP)
    for _ in range(600):
        await RisingEdge(dut.clk)
    assert board.status()["step"] == STEP_OPEN and len(board.registers.writes) == before
    await board.deliver(answer)
    assert (await board.settled())["step"] == STEP_DONE
