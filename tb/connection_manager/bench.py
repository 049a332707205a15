# SPDX-License-Identifier: Apache-2.0
"""Queue pairs open and close over the network as with the FEROCE connection manager, and only for their peer."""

from dataclasses import replace

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from lib import connection as cm
from lib.connection import Info, Message, Transmit
from lib.connection_bench import (
    BENCH,
    DATA_IP,
    ERR,
    FLOW,
    INIT,
    LOCAL_IP,
    MAC,
    OTHER_IP,
    PEER,
    QPN_BASE,
    RESET,
    RTR,
    RTS,
    SERVER_IP,
    TRANSPORT,
    Board,
    Sent,
    index,
)
from lib.register_map import address, generated, pack

__all__ = ["BENCH"]


@cocotb.test()
async def feroce_s_own_bytes_open_start_and_close_a_queue_pair(dut):
    board = await Board.start(dut)
    dut.local_ip.value, dut.qpn_base.value = cm.FEROCE_BOARD.ip, cm.FEROCE_BOARD.qpn

    async def exchange(name: str) -> Sent:
        await board.deliver(cm.GOLDEN[name][1], cm.FEROCE_HOST.ip)
        return await board.answer()

    async def answers(name: str, answer: str) -> None:
        sent = await exchange(name)
        assert (sent.ip, sent.dport, sent.sport) == (cm.FEROCE_HOST.ip, cm.REQUEST_PORT, cm.REQUEST_PORT)
        expected = bytearray(cm.GOLDEN[answer][1])
        expected[6:9] = sent.message.sender.psn.to_bytes(3)  # FEROCE's first PSN is 0, ours is drawn
        assert sent.data == bytes(expected)

    word = board.registers.word
    await answers("host opens", "board agrees")
    assert board.registers.qp("state", 0) == RTS
    assert board.registers.qp("dest_qpn", 0) == cm.FEROCE_HOST.qpn
    await answers("host opens", "board agrees")
    for name, (message, _) in cm.GOLDEN.items():
        if "tx-meta" in name:
            assert (await exchange(name)).message.answer == cm.ACK
            what = message.transmit
            verb = pack("source.control", verb=not what.is_write, with_imm=what.with_imm, running_sum=1)
            assert word("source.control") & 0xFF00 == verb, name
            assert (word("source.count"), word("source.length_min")) == (16, 4096)
            assert word("source.interval") == what.interval, "as it is: clock cycles"
            assert word("source.raddr_lo") | word("source.raddr_hi") << 32 == cm.FEROCE_HOST.base
            assert board.registers.writes[-1] == (address("source.command"), pack("source.command", start=1))
    await answers("host closes", "board has closed")
    assert board.registers.qp("state", 0) == RESET
    await answers("host opens", "board agrees")
    sent = await exchange("close-qp")
    assert (sent.message.answer, sent.dport) == (cm.ACK, 0xBEEF)
    assert board.registers.qp("state", 0) == RESET


@cocotb.test()
async def a_message_opens_a_queue_pair_completely_or_step_by_step(dut):
    board = await Board.start(dut)
    reply = await board.exchange(Message(cm.OPEN_QP, PEER, info_valid=False))
    local, qp = reply.sender, index(reply.sender)
    assert (reply.answer, local.ip) == (cm.ACK, LOCAL_IP)
    assert board.registers.qp("state", qp) == INIT
    assert (await board.exchange(Message(cm.SEND_QP_INFO, PEER, local))).answer == cm.ACK
    assert board.registers.qp("state", qp) == RTR
    opened = [where for where, _ in board.registers.writes]
    assert (await board.exchange(Message(cm.MODIFY_QP_RTS, PEER, local))).answer == cm.ACK
    assert (await board.exchange(Message(cm.CLOSE_QP, PEER, local))).answer == cm.ACK
    before = len(board.registers.writes)
    local = await board.opened()
    assert index(local) == qp
    assert set(opened) == {where for where, _ in board.registers.writes[before:]}
    expected = {
        "dst_mac_hi": MAC >> 32,
        "dst_mac_lo": MAC & 0xFFFFFFFF,
        "dst_ip": SERVER_IP,
        "flow": FLOW,
        "dest_qpn": PEER.qpn,
        "rkey": PEER.rkey,
        "transport": TRANSPORT,
        "init_psn": local.psn,
    }
    assert {name: board.registers.qp(name, qp) for name in expected} == expected
    word = board.registers.word
    assert word("ring.base_lo", qp) | word("ring.base_hi", qp) << 32 == PEER.base
    assert (address("ring.next_slot", qp), 0) in board.registers.writes[before:]
    assert (await board.exchange(Message(cm.CLOSE_QP, PEER, local))).answer == cm.ACK
    assert board.registers.qp("state", qp) == RESET


@cocotb.test()
async def a_repeated_request_gets_the_same_answer_and_changes_nothing(dut):
    board = await Board.start(dut)
    local = (await board.exchange(Message(cm.OPEN_QP, PEER, info_valid=False))).sender
    for request in (cm.OPEN_QP, cm.SEND_QP_INFO, cm.MODIFY_QP_RTS, cm.CLOSE_QP):
        message = Message(request, PEER, local, port=0x5000)
        first = await board.exchange(message)
        before = len(board.registers.writes)
        for _ in range(3):
            assert await board.exchange(message) == first
        assert first.answer == cm.ACK
        assert len(board.registers.writes) == before


@cocotb.test()
async def nobody_but_the_peer_can_touch_a_queue_pair(dut):
    board = await Board.start(dut)
    local = await board.opened()
    before = len(board.registers.writes)
    stranger = replace(PEER, ip=OTHER_IP)
    for request in (cm.SEND_QP_INFO, cm.MODIFY_QP_RTS, cm.CLOSE_QP, cm.ERROR, cm.NONE):
        message = Message(request, stranger, local, transmit=Transmit(length=64))
        assert (await board.exchange(message, OTHER_IP)).answer == cm.NAK, request
        # A false address in the message is still detected by its UDP source.
        assert (await board.exchange(replace(message, sender=PEER), OTHER_IP)).answer == cm.NAK, request
    assert len(board.registers.writes) == before


def server_at(k: int) -> Info:
    return replace(PEER, qpn=100 + k, psn=k, ip=SERVER_IP + 0x100 + k)


@cocotb.test()
async def each_server_gets_a_queue_pair_of_its_own_until_none_is_left(dut):
    board = await Board.start(dut)
    n_qp = min(int(dut.N_QP.value), 5)
    peers = [server_at(k) for k in range(n_qp)]
    owned = [await board.opened(peer) for peer in peers]
    assert sorted(index(local) for local in owned) == list(range(n_qp))
    if n_qp == int(dut.N_QP.value):
        late = server_at(99)
        refused = await board.exchange(Message(cm.OPEN_QP, late), late.ip)
        assert (refused.answer, refused.info_valid) == (cm.NO_QP, False)
        held = {(local.qpn, peer.ip) for local, peer in zip(owned, peers, strict=True)}
        assert (refused.sender.qpn, refused.sender.ip) in held, "it says who holds one"
        assert (await board.exchange(Message(cm.CLOSE_QP, peers[-1], owned[-1]), peers[-1].ip)).answer == cm.ACK
        assert index(await board.opened(late)) == index(owned[-1])


@cocotb.test()
async def a_dead_or_half_open_queue_pair_gives_way_and_a_living_one_of_another_server_does_not(dut):
    n_qp = int(dut.N_QP.value)
    if n_qp > 4:
        return
    board = await Board.start(dut)
    owned = [await board.opened(server_at(k)) for k in range(n_qp)]
    late = server_at(99)
    assert (await board.exchange(Message(cm.OPEN_QP, late), late.ip)).answer == cm.NO_QP
    # The server of the last one was killed: its queue pair spends its retries.
    await board.fail_qp(index(owned[-1]))
    local = await board.opened(late)
    assert index(local) == index(owned[-1])
    assert (
        await board.exchange(Message(cm.CLOSE_QP, server_at(n_qp - 1), owned[-1]), server_at(n_qp - 1).ip)
    ).answer == cm.NAK
    # A stranger sends one request, without its parameters, and no more.
    assert (await board.exchange(Message(cm.CLOSE_QP, late, local), late.ip)).answer == cm.ACK
    stranger = replace(PEER, ip=OTHER_IP)
    half = await board.exchange(Message(cm.OPEN_QP, stranger, info_valid=False), OTHER_IP)
    assert (half.answer, index(half.sender)) == (cm.ACK, index(local))
    assert index(await board.opened(late)) == index(local)
    for k, mine in enumerate(owned[:-1]):
        ready = Message(cm.MODIFY_QP_RTS, server_at(k), mine)
        assert (await board.exchange(ready, server_at(k).ip)).answer == cm.ACK, "a living one stays"


async def unanswered(board: Board, message: Message, ip: int = SERVER_IP) -> None:
    """OPEN_QP of another life of a peer: not answered, since the one that is open may live."""
    writes, emitted = len(board.registers.writes), board.emitted
    await board.deliver(message, ip)
    # The next message is answered after this one.
    reply = await board.exchange(Message(cm.CLOSE_QP, Info(qpn=0xABCDE, ip=OTHER_IP), Info()), OTHER_IP)
    assert (reply.answer, board.emitted) == (cm.NO_QP, emitted + 1)
    assert len(board.registers.writes) == writes


@cocotb.test()
async def no_opening_takes_a_living_queue_pair_even_from_its_peer_s_own_address(dut):
    """Any host can forge it. The peer's own request, repeated, is still answered."""
    board = await Board.start(dut)
    board.configure(offered=1)
    opening = Message(cm.OPEN_QP, PEER, port=cm.REQUEST_PORT)
    local = await board.opened()
    assert not board.probes_idle()
    await unanswered(board, Message(cm.OPEN_QP, replace(PEER, psn=7)))
    assert board.probes_idle()
    for forged in (replace(PEER, psn=7), replace(PEER, rkey=8), replace(PEER, ip=OTHER_IP)):
        for info_valid in (True, False):
            await unanswered(board, Message(cm.OPEN_QP, forged, info_valid=info_valid))
        assert (await board.exchange(opening)).sender == local
    another = Message(cm.OPEN_QP, replace(PEER, qpn=99))
    assert (await board.exchange(another)).answer == cm.NO_QP
    assert (await board.exchange(opening)).sender == local
    assert (await board.exchange(Message(cm.MODIFY_QP_RTS, PEER, local))).answer == cm.ACK
    # One that came before its peer's: it gets no answer, and gives way.
    assert (await board.exchange(Message(cm.CLOSE_QP, PEER, local))).answer == cm.ACK
    await board.opened(another.sender)
    assert (await board.exchange(opening)).answer == cm.NO_QP
    await board.fail_qp(index(local))
    assert index(await board.opened()) == index(local)


@cocotb.test()
async def a_server_that_comes_back_with_other_numbers_takes_its_own_queue_pairs_once_they_have_failed(dut):
    board = await Board.start(dut)
    n_qp = int(dut.N_QP.value)
    if n_qp > 4:
        return
    for life in range(3):
        peers = [replace(PEER, qpn=1000 * life + k) for k in range(n_qp)]
        if life:
            assert (await board.exchange(Message(cm.OPEN_QP, peers[0]))).answer == cm.NO_QP
            assert life > 1 or board.probes_idle(), "those that hold them are asked whether they live"
            for qp in range(n_qp):
                await board.fail_qp(qp)
        owned = [await board.opened(peer) for peer in peers]
        assert sorted(map(index, owned)) == list(range(n_qp)), "each of the old ones once"
    assert {board.registers.qp("dest_qpn", qp) for qp in range(n_qp)} == {peer.qpn for peer in peers}


@cocotb.test()
async def an_address_holds_no_more_queue_pairs_than_it_may(dut):
    board = await Board.start(dut)
    n_qp = int(dut.N_QP.value)
    if n_qp < 4:
        return
    board.configure(per_address=2)
    owned = [await board.opened(replace(PEER, qpn=k)) for k in range(2)]
    for k in range(2, 6):
        assert (await board.exchange(Message(cm.OPEN_QP, replace(PEER, qpn=k)))).answer == cm.NO_QP
        await board.fail_qp(index(owned[k % 2]))
        assert index(await board.opened(replace(PEER, qpn=k))) == index(owned[k % 2]), "in the place of its own"
    other = [await board.opened(server_at(k)) for k in range(2)]
    assert not {*map(index, other)} & {*map(index, owned)}


@cocotb.test()
async def a_queue_pair_that_software_stops_is_free_for_the_next_server(dut):
    n_qp = int(dut.N_QP.value)
    if n_qp > 4:
        return
    board = await Board.start(dut)
    owned = [await board.opened(server_at(k)) for k in range(n_qp)]
    late = server_at(99)
    assert (await board.exchange(Message(cm.OPEN_QP, late), late.ip)).answer == cm.NO_QP
    await board.stop_qp(index(owned[0]))
    left = Message(cm.MODIFY_QP_RTS, server_at(0), owned[0])
    assert (await board.exchange(left, server_at(0).ip)).answer == cm.NAK, "its holder gets a NAK for it"
    assert index(await board.opened(late)) == index(owned[0])
    assert (await board.exchange(Message(cm.OPEN_QP, server_at(98)), server_at(98).ip)).answer == cm.NO_QP, (
        "it is held again"
    )


@cocotb.test()
async def a_kept_queue_pair_that_was_closed_or_has_failed_is_for_its_last_peer_alone(dut):
    board = await Board.start(dut)
    n_qp = int(dut.N_QP.value)
    if n_qp != 4:
        return
    board.configure(keep=1)
    closed, failed, half = [server_at(k) for k in range(3)]
    owned = {peer.ip: index(await board.opened(peer)) for peer in (closed, failed)}
    opening = Message(cm.OPEN_QP, half, info_valid=False)
    owned[half.ip] = index((await board.exchange(opening, half.ip)).sender)
    await board.exchange(Message(cm.CLOSE_QP, closed, Info(qpn=QPN_BASE + owned[closed.ip])), closed.ip)
    await board.fail_qp(owned[failed.ip])
    # Two strangers: one gets what no address has had, the other nothing, in any order of what is there to take.
    stranger, late = server_at(3), server_at(4)
    assert index(await board.opened(stranger)) == 3 not in owned.values()
    assert (await board.exchange(Message(cm.OPEN_QP, late), late.ip)).answer == cm.NO_QP
    # Each gets its own again, under other numbers, also while another one is missing.
    for peer in (half, failed, closed, failed):
        again = replace(peer, qpn=peer.qpn + 1000)
        assert index(await board.opened(again)) == owned[peer.ip], peer
        await board.fail_qp(owned[peer.ip])
        assert (await board.exchange(Message(cm.OPEN_QP, late), late.ip)).answer == cm.NO_QP
    # One whose address was never found is its opener's, too, and names where it was to go.
    await board.fail_qp(3)
    board.arp_answers = False
    lost = Message(cm.OPEN_QP, replace(stranger, ip=DATA_IP))
    assert (await board.exchange(lost, stranger.ip)).answer == cm.ACK_ERROR
    assert board.registers.qp("dst_ip", 3) == DATA_IP
    board.arp_answers = True
    assert (await board.exchange(Message(cm.OPEN_QP, late), late.ip)).answer == cm.NO_QP
    # Software gives all of them away.
    board.configure()
    assert index(await board.opened(late)) in range(n_qp)


@cocotb.test()
@cocotb.parametrize(offered=[1, 2, 4])
async def servers_get_the_queue_pairs_that_are_offered_and_no_others(dut, offered):
    if offered > int(dut.N_QP.value):
        return
    board = await Board.start(dut)
    board.configure(offered=offered)
    owned = [await board.opened(server_at(k)) for k in range(offered)]
    assert sorted(map(index, owned)) == list(range(offered))
    late = server_at(99)
    assert (await board.exchange(Message(cm.OPEN_QP, late), late.ip)).answer == cm.NO_QP
    await board.fail_qp(index(owned[-1]))
    assert index(await board.opened(late)) == index(owned[-1]), "the successor gets what messages go to"


@cocotb.test()
async def an_engaged_board_gives_no_queue_pair_and_serves_those_that_are_open(dut):
    """Otherwise the messages that it has would go to the next server before what software has to send again."""
    board = await Board.start(dut)
    n_qp = int(dut.N_QP.value)
    opening = Message(cm.OPEN_QP, PEER, port=cm.REQUEST_PORT)
    local = await board.opened()
    board.configure(engaged=1, per_address=1)
    before = len(board.registers.writes)
    assert (await board.exchange(opening)).answer == cm.ACK, "its answer was lost"
    assert (await board.exchange(Message(cm.MODIFY_QP_RTS, PEER, local))).answer == cm.ACK
    await board.fail_qp(index(local))
    # Its own server, that server's next life, another queue pair of it, another server.
    for peer in (PEER, replace(PEER, psn=7), replace(PEER, qpn=99), server_at(1)):
        assert (await board.exchange(Message(cm.OPEN_QP, peer), peer.ip)).answer == cm.NO_QP, peer
    assert len(board.registers.writes) == before
    assert (await board.exchange(Message(cm.CLOSE_QP, PEER, local))).answer == cm.ACK
    assert board.registers.qp("state", index(local)) == RESET
    assert (await board.exchange(opening)).answer == cm.NO_QP, "nor one that is closed"
    board.configure()
    assert index(await board.opened(server_at(1))) < n_qp


@cocotb.test()
async def a_number_that_no_queue_pair_has_is_answered_no_qp(dut):
    board = await Board.start(dut)
    n_qp = int(dut.N_QP.value)
    for qpn in (0, QPN_BASE, 0x123400, *([QPN_BASE + n_qp] if n_qp < 256 else [])):
        for request in (cm.SEND_QP_INFO, cm.MODIFY_QP_RTS, cm.CLOSE_QP, cm.ERROR):
            assert (await board.exchange(Message(request, PEER, Info(qpn=qpn)))).answer == cm.NO_QP
    assert board.registers.writes == []


@cocotb.test()
async def steps_out_of_order_and_requests_without_meaning_are_refused(dut):
    board = await Board.start(dut)
    local = (await board.exchange(Message(cm.OPEN_QP, PEER, info_valid=False))).sender
    assert (await board.exchange(Message(cm.MODIFY_QP_RTS, PEER, local))).answer == cm.NAK
    assert (await board.exchange(Message(cm.SEND_QP_INFO, PEER, local, info_valid=False))).answer == cm.NAK
    for request in (5, 6):
        assert (await board.exchange(Message(request, PEER, local))).answer == cm.ACK_ERROR
    start = Message(cm.NONE, PEER, local, transmit=Transmit(length=64))
    assert (await board.exchange(start)).answer == cm.NAK
    assert board.registers.qp("state", index(local)) == INIT


@cocotb.test()
async def a_queue_pair_that_cannot_open_is_closed_and_answered_error(dut):
    board = await Board.start(dut)
    local = (await board.exchange(Message(cm.OPEN_QP, PEER, info_valid=False))).sender
    board.arp_answers = False
    assert (await board.exchange(Message(cm.SEND_QP_INFO, PEER, local))).answer == cm.ACK_ERROR
    assert board.registers.qp("state", index(local)) == RESET
    board.arp_answers = True
    board.registers.stuck = True
    await board.deliver(Message(cm.OPEN_QP, PEER))
    reply = await with_timeout(board.sent.get(), 2, "ms")
    assert reply.message.answer == cm.ACK_ERROR
    assert board.registers.qp("state", index(local)) == RESET
    board.registers.stuck = False
    await board.opened()


@cocotb.test()
async def a_server_that_comes_back_takes_its_queue_pair_again(dut):
    board = await Board.start(dut)
    local = await board.opened()
    # A new life of the server: the same queue pair number, another PSN and key.
    again = replace(PEER, psn=7, rkey=8)
    await unanswered(board, Message(cm.OPEN_QP, again))
    await board.fail_qp(index(local))
    assert index(await board.opened(again)) == index(local)
    assert board.registers.qp("rkey", index(local)) == 8
    # Ours has failed: even the same request opens it afresh.
    await board.fail_qp(index(local))
    assert (await board.exchange(Message(cm.MODIFY_QP_RTS, again, local))).answer == cm.NAK
    assert index(await board.opened(again)) == index(local)
    assert board.registers.qp("state", index(local)) == RTS


@cocotb.test()
async def a_peer_that_reports_an_error_stops_the_queue_pair(dut):
    board = await Board.start(dut)
    local = await board.opened()
    assert (await board.exchange(Message(cm.ERROR, PEER, local))).answer == cm.ACK
    assert board.registers.qp("state", index(local)) == ERR
    await board.opened()


@cocotb.test()
async def a_transmit_request_sets_up_the_source(dut):
    board = await Board.start(dut)
    local = await board.opened()
    transmit = Transmit(with_imm=True, length=4096, count=1000, interval=0xFEDCBA98)
    assert (await board.exchange(Message(cm.NONE, PEER, local, transmit=transmit))).answer == cm.ACK
    word = board.registers.word
    assert word("source.length_min") == 4096
    assert word("source.raddr_lo") | word("source.raddr_hi") << 32 == PEER.base
    assert word("source.count") == 1000
    assert word("source.interval") == 0xFEDCBA98
    assert word("source.control") & 0xFF00 == pack("source.control", with_imm=1, verb=1, running_sum=1)
    assert board.registers.writes[-1] == (address("source.command"), pack("source.command", start=1))
    assert (await board.exchange(Message(cm.NONE, PEER, local, transmit=Transmit(start=False)))).answer == cm.ACK
    assert board.registers.writes[-1] == (address("source.command"), pack("source.command", stop=1))
    before = len(board.registers.writes)
    none = replace(transmit, count=0)
    assert (await board.exchange(Message(cm.NONE, PEER, local, transmit=none))).answer == cm.ACK
    assert len(board.registers.writes) == before, "a count of 0 asks for no message"


@cocotb.test()
async def data_go_to_the_address_in_the_message_and_messages_to_where_they_come_from(dut):
    board = await Board.start(dut)
    peer = replace(PEER, ip=DATA_IP)
    request = Message(cm.OPEN_QP, peer, port=0x5000)
    local = (await board.exchange(request, SERVER_IP)).sender
    assert board.registers.qp("dst_ip", index(local)) == DATA_IP
    assert board.looked_up == [DATA_IP], "the next hop is that of the data"
    # The data's address has no effect; without one the data go to the sender.
    assert (await board.exchange(Message(cm.CLOSE_QP, peer, local), DATA_IP)).answer == cm.NAK
    await board.fail_qp(index(local))
    assert index((await board.exchange(replace(request, sender=replace(peer, ip=0)), SERVER_IP)).sender) == index(local)
    assert board.registers.qp("dst_ip", index(local)) == SERVER_IP
    # Requests of the board go there, too, to the port that was named.
    await board.command(close_qp=index(local))
    sent = await board.answer()
    assert (sent.ip, sent.dport, sent.sport) == (SERVER_IP, 0x5000, cm.REQUEST_PORT)
    assert (sent.message.request, sent.message.other.qpn) == (cm.CLOSE_QP, PEER.qpn)
    await board.deliver(sent.message.answered(cm.ACK, replace(peer, ip=0)))
    assert (await board.settled())["fail"] == 0


@cocotb.test()
async def messages_are_ignored_unless_it_listens(dut):
    board = await Board.start(dut, listen=0)
    await board.deliver(Message(cm.OPEN_QP, PEER))
    for _ in range(2000):
        await RisingEdge(dut.clk)
    assert board.sent.empty() and board.registers.writes == []


@cocotb.test()
async def no_message_whatever_makes_it_hang_or_act_for_a_stranger(dut):
    board = await Board.start(dut)
    local = await board.opened()
    before = len(board.registers.writes)
    for _ in range(300):
        data = bytearray(board.rng.randbytes(64))
        if board.rng.random() < 0.7:  # close to a real one
            request = Message(board.rng.randrange(8), PEER, local)
            data = bytearray(request.pack())
            data[board.rng.randrange(64)] ^= 1 << board.rng.randrange(8)
        if data[0] >> 1 & 7 == cm.OPEN_QP:
            data[0] ^= 0x0C  # a stranger may open a queue pair of its own
        await board.deliver(bytes(data), OTHER_IP)
        if not data[0] & 0x10:
            assert (await board.answer()).message.answer != cm.ACK
    assert len(board.registers.writes) == before
    assert (await board.exchange(Message(cm.CLOSE_QP, PEER, local))).answer == cm.ACK


@cocotb.test()
async def the_map_names_every_register_that_it_writes(dut):
    board = await Board.start(dut)
    local = await board.opened()
    await board.exchange(Message(cm.NONE, PEER, local, transmit=Transmit(length=64)))
    mapped = set()
    for name, (where, _) in generated().REGISTERS.items():
        stride = getattr(generated(), f"{name.split('.')[0].upper()}_STRIDE", 0)
        mapped |= {where + i * stride for i in range(256 if stride else 1)}
    assert {where & ~3 for where, _ in board.registers.writes} <= mapped
