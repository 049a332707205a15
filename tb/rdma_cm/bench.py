# SPDX-License-Identifier: Apache-2.0
"""Peers get queue pairs with windows by the standard connection manager, and only they end what they have."""

import itertools
import subprocess
from collections import Counter
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import ClockCycles, with_timeout
from lib import connection as cm
from lib import mads
from lib.connection import Message
from lib.connection_bench import FLOW, LOCAL_IP, MAC, OTHER_IP, PEER, QPN_BASE, RESET, RTS, SERVER_IP
from lib.mads import DREP, DREQ, MRA, REJ, REP, REQ, RTU, Answer, dreq, ids, mra, rej, req
from lib.rdma_cm_bench import BENCH, GUID, PORT, STATS, RdmaBoard, queue_pair
from lib.register_map import pack
from lib.rust_model import model

__all__ = ["BENCH"]

ID = 0x51  # of the peer's connection


@cocotb.test()
async def a_request_opens_a_queue_pair_with_the_peer_s_parameters_and_its_end_resets_it(dut):
    board = await RdmaBoard.start(dut)
    rep = await board.agreed(ID, qpn=0x123456, psn=0xABCDEF, mtu=3, ack_timeout=17, retry=5, rnr=6, depth=3)
    qp = queue_pair(rep)
    assert qp == 0 and board.state(qp) == RTS
    expected = {
        "dst_mac_hi": MAC >> 32,
        "dst_mac_lo": MAC & 0xFFFFFFFF,
        "dst_ip": SERVER_IP,
        "flow": FLOW,
        "dest_qpn": 0x123456,
        "transport": pack("qp.transport", mtu=3, ack_timeout=17, retry_cnt=5, rnr_retry=6),
        "init_psn": 0xABCDEF,
        "read_psn": rep.psn,
    }
    assert {name: board.registers.qp(name, qp) for name in expected} == expected
    assert rep.data[24:28] == bytes([1, 0, 0x03, 0xE0]), "one READ: no more than the window's"
    assert rep.data[28:36] == GUID.to_bytes(8)
    window = bytes(8) + (0x1000).to_bytes(4) + (1).to_bytes(4) + (1 << 12).to_bytes(4)
    assert rep.data[36:64] == b"PNSK\x01\0\0\0" + window and not any(rep.data[64:])
    assert await board.exchange_mad(RTU, ids(ID, rep.local)) == []
    end = await board.exchange_mad(DREQ, dreq(ID, rep.local, rep.qpn), transaction=0x1122334455667788)
    assert [(a.attribute, a.transaction, a.local, a.remote) for a in end] == [(DREP, 0x1122334455667788, rep.local, ID)]
    assert board.state(qp) == RESET
    assert board.counts == {"request": 1, "established": 1, "disconnected": 1, "unknown": 0}


@cocotb.test()
async def a_repeated_message_gets_the_same_answer_and_changes_nothing(dut):
    board = await RdmaBoard.start(dut)
    rep = await board.agreed(ID)
    writes = len(board.registers.writes)
    for _ in range(3):
        again = await board.agreed(ID)
        assert again.payload == rep.payload
    (other,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, ID, psn=6))
    assert (other.attribute, other.reason) == (REJ, 30), "the identifier is in use"
    for _ in range(2):
        assert await board.exchange_mad(RTU, ids(ID, rep.local)) == []
    assert await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, ID)) == [], "it is established"
    assert len(board.registers.writes) == writes
    for _ in range(3):
        (end,) = await board.exchange_mad(DREQ, dreq(ID, rep.local, rep.qpn))
        assert (end.attribute, end.local, end.remote) == (DREP, rep.local, ID)
    closed = [word for where, word in board.registers.writes[writes:]]
    assert closed == [RESET], "once"
    (stale,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, ID))
    assert (stale.attribute, stale.reason) == (REJ, 10)
    assert (board.counts["repeated"], board.counts["refused"], board.counts["ignored"]) == (5, 2, 2)


@cocotb.test()
async def nobody_but_the_peer_with_both_identifiers_ends_a_connection(dut):
    board = await RdmaBoard.start(dut)
    rep = await board.agreed(ID)
    writes = len(board.registers.writes)
    for wrong in (ids(ID + 1, rep.local), ids(ID, rep.local ^ 1), ids(ID, rep.local ^ 1 << 31)):
        assert await board.exchange_mad(RTU, wrong) == []
        assert await board.exchange_mad(REJ, wrong + rej(0, 0, 1)[8:]) == []
        (answer,) = await board.exchange_mad(DREQ, wrong + dreq(0, 0, rep.qpn)[8:])
        assert (answer.attribute, mads.ids(answer.remote, answer.local)) == (DREP, wrong), "its peer waits for it"
        assert await board.exchange_mad(DREP, wrong) == []
    for attribute, data in ((RTU, ids(ID, rep.local)), (REJ, rej(ID, rep.local)), (DREQ, dreq(ID, rep.local, rep.qpn))):
        await board.exchange_mad(attribute, data, OTHER_IP)
    assert await board.exchange_mad(DREQ, dreq(ID, rep.local, rep.qpn ^ 1)) == [], "not this queue pair's"
    assert await board.exchange_mad(REJ, rej(ID, 0, 0, 4, guid=0xABCE)) == []
    assert len(board.registers.writes) == writes and board.state(0) == RTS
    assert board.counts["established"] == board.counts["disconnected"] == 0
    assert board.counts["unknown"] == 3 * 4 + 3 + 1


@cocotb.test()
async def a_request_that_cannot_be_met_is_rejected_with_its_reason(dut):
    board = await RdmaBoard.start(dut)
    writes = len(board.registers.writes)
    cases = [
        ({"port": 1}, 8),
        ({"space": 0x0111}, 8),
        ({"service": 1}, 9),
        ({"service": 3}, 9),
        ({"ip": 6}, 5),
        ({"version": 1}, 5),
        ({"from": OTHER_IP}, 12),
        ({"from": SERVER_IP ^ 1 << 31}, 12),
        ({"to": OTHER_IP}, 12),
        ({"to": LOCAL_IP ^ 1 << 16}, 12),
        ({"qpn": 1}, 5),
        ({"pkey": 0x8001}, 5),
        ({"mtu": 0}, 26),
        ({"mtu": 6}, 26),
        ({"mtu": 0, "port": 1}, 8),
    ]
    for changed, reason in cases:
        (answer,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, ID, **changed), transaction=reason << 40)
        found = answer.attribute, answer.transaction, answer.local, answer.remote, answer.reason
        assert found == (REJ, reason << 40, 0, ID, reason), changed
        information = b"\x01\x05" if reason == 26 else b"\0\0"
        assert bytes([answer.data[9] >> 1, answer.data[12]]) == information, "the largest path MTU"
    (answer,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, 0))
    assert (answer.attribute, answer.reason) == (REJ, 5)
    dut.rdma_port.value = 0
    (answer,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, ID, port=0))
    assert (answer.attribute, answer.reason) == (REJ, 8), "it does not listen"
    (answer,) = await board.exchange_mad(REP, ids(7, 8))
    assert (answer.attribute, answer.data[8] >> 6, answer.reason, answer.local, answer.remote) == (REJ, 1, 6, 8, 7)
    assert len(board.registers.writes) == writes
    assert board.counts["refused"] == len(cases) + 3 and board.counts["request"] == 0


@cocotb.test()
async def what_is_no_message_is_counted_and_has_no_answer(dut):
    board = await RdmaBoard.start(dut)
    good = mads.mad(REQ, req(SERVER_IP, LOCAL_IP, ID))
    wrong = [mads.payload(SERVER_IP, LOCAL_IP, good, **{field: value}) for field, value in (
        ("qkey", 0x80010001), ("qkey", 0x00010000), ("source_qpn", 2), ("source_qpn", 0x10001), ("opcode", 0x04),
        ("opcode", 0x65), ("qpn", 2), ("qpn", 0x10001), ("pkey", 0x8001))]  # fmt: skip
    for at in (0, 1, 2, 3):
        header = bytearray(b"\x01\x07\x02\x03")
        header[at] ^= 1 << board.rng.randrange(8)
        wrong.append(mads.payload(SERVER_IP, LOCAL_IP, mads.mad(REQ, good[24:], header=bytes(header))))
    for attribute in (0x0F, 0x17, 0x18, 0x19, 0x1A, 0x20, 0x110, 0x1010):
        wrong.append(mads.payload(SERVER_IP, LOCAL_IP, mads.mad(attribute, good[24:])))
    for payload in wrong:
        await board.deliver_mad(payload)
    assert await board.settled_mads() == []
    assert board.counts == {"malformed": len(wrong), "unknown": 0}
    await board.agreed(ID)


@cocotb.test()
async def each_peer_gets_a_queue_pair_in_reset_with_a_window_until_none_is_left(dut):
    board = await RdmaBoard.start(dut)
    n = min(board.n_qp, 6)
    for qp in range(n, board.n_qp):
        board.window(qp, 0)
    board.window(n - 1, 5 << 32)
    reps = [await board.agreed(0x100 + k, SERVER_IP + k, qpn=0x200 + k) for k in range(n)]
    assert [queue_pair(rep) for rep in reps] == list(range(n))
    assert len({rep.local for rep in reps}) == n
    assert reps[-1].data[60:64] == b"\xff\xff\xff\xff", "longer than the field"
    late = req(OTHER_IP, LOCAL_IP, ID)
    (answer,) = await board.exchange_mad(REQ, late, OTHER_IP)
    assert (answer.attribute, answer.reason) == (REJ, 1)
    k = board.rng.randrange(n)
    await board.exchange_mad(DREQ, dreq(0x100 + k, reps[k].local, reps[k].qpn), SERVER_IP + k)
    board.configure(engaged=1)
    (answer,) = await board.exchange_mad(REQ, late, OTHER_IP)
    assert (answer.attribute, answer.reason) == (REJ, 1), "no queue pair is given"
    board.configure(keep=1)
    (answer,) = await board.exchange_mad(REQ, late, OTHER_IP)
    assert (answer.attribute, answer.reason) == (REJ, 1), "it is kept for its last peer"
    board.configure()
    assert queue_pair(await board.agreed(ID, OTHER_IP)) == k


@cocotb.test()
async def limits_of_an_address_and_of_queue_pairs_hold_for_both_managers(dut):
    board = await RdmaBoard.start(dut)
    if board.n_qp < 4:
        return
    board.configure(per_address=2)
    for k in range(2):
        await board.agreed(0x100 + k, qpn=0x200 + k)
    (answer,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, 0x102, qpn=0x202))
    assert (answer.attribute, answer.reason) == (REJ, 1)
    assert board.state(2) == RESET
    board.configure(offered=2)
    (answer,) = await board.exchange_mad(REQ, req(OTHER_IP, LOCAL_IP, 0x102, qpn=0x202), OTHER_IP)
    assert (answer.attribute, answer.reason) == (REJ, 1)
    board.configure(listen=0)
    assert queue_pair(await board.agreed(0x103, OTHER_IP, qpn=0x203)) == 2, "FEROCE's alone does not listen"
    board.configure()
    reply = await board.exchange(Message(cm.OPEN_QP, PEER, port=cm.REQUEST_PORT))
    assert (reply.answer, reply.sender.qpn & 0xFF) == (cm.ACK, 3)


@cocotb.test()
async def a_peer_that_has_forgotten_its_connection_gets_another_after_the_end_of_that(dut):
    board = await RdmaBoard.start(dut)
    rep = await board.agreed(ID, qpn=0x77)
    await board.exchange_mad(RTU, ids(ID, rep.local))
    end, stale = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, 0x52, qpn=0x77), transaction=9)
    assert (end.attribute, end.local, end.remote, end.data[8:12]) == (DREQ, rep.local, ID, (0x77 << 8).to_bytes(4))
    assert (stale.attribute, stale.reason, stale.remote, stale.transaction) == (REJ, 10, 0x52, 9)
    assert board.state(0) == RTS, "until it has answered"
    assert await board.exchange_mad(DREP, ids(ID, rep.local)) == []
    assert board.state(0) == RESET
    assert queue_pair(await board.agreed(0x53, qpn=0x77)) == 0


@cocotb.test()
async def a_peer_rejects_a_rep_or_an_established_connection(dut):
    board = await RdmaBoard.start(dut)
    for established, data in (
        (False, lambda rep: rej(ID, rep.local, 1, 28)),
        (False, lambda rep: rej(ID, 0, 0, 4, guid=0xABCD)),
        (True, lambda rep: rej(ID, rep.local, 1, 10)),
    ):
        rep = await board.agreed(ID)
        if established:
            await board.exchange_mad(RTU, ids(ID, rep.local))
        assert await board.exchange_mad(REJ, data(rep)) == []
        assert board.state(queue_pair(rep)) == RESET
    assert (board.counts["disconnected"], board.counts["unknown"]) == (1, 0)


@cocotb.test()
async def a_peer_without_an_arp_answer_or_whose_queue_pair_does_not_follow_is_rejected(dut):
    board = await RdmaBoard.start(dut)
    board.arp_answers = False
    (answer,) = await board.exchange_mad(REQ, req(SERVER_IP, LOCAL_IP, ID))
    assert (answer.attribute, answer.reason, answer.remote) == (REJ, 3, ID)
    assert board.state(0) == RESET
    board.arp_answers = True
    await board.agreed(ID)


@cocotb.test()
async def a_rep_is_repeated_until_rtu_and_given_up_after_the_retries(dut):
    board = await RdmaBoard.start(dut)
    if int(dut.CLK_KHZ.value) != 100:
        return
    ticks = 1 << 14 - 8
    await board.post(REQ, req(SERVER_IP, LOCAL_IP, ID, timeout=14, retries=3))
    rep = await board.answers.get()
    for _ in range(3):
        assert (await board.answer_after(ticks)).payload == rep.payload
    assert board.state(0) == RTS
    answer = await board.answer_after(ticks)
    assert (answer.attribute, answer.reason, answer.local, answer.remote) == (REJ, 4, rep.local, ID)
    assert (answer.data[8] >> 6, answer.data[9] >> 1, answer.data[12:20]) == (1, 8, GUID.to_bytes(8))
    await board.no_answer(2 * ticks)
    assert board.state(0) == RESET
    assert (board.counts["silent"], board.counts["refused"]) == (1, 1)


@cocotb.test()
async def rtu_and_mra_stop_the_repetitions(dut):
    board = await RdmaBoard.start(dut)
    if int(dut.CLK_KHZ.value) != 100:
        return
    await board.post(REQ, req(SERVER_IP, LOCAL_IP, ID, timeout=14, retries=2))
    rep = await board.answers.get()
    await board.post(MRA, mra(ID, rep.local, timeout=16))
    assert (await board.answer_after(1 << 16 - 8)).payload == rep.payload
    await board.post(MRA, mra(ID, rep.local, timeout=16))  # no repetition is left
    await board.post(RTU, ids(ID, rep.local))
    await board.no_answer(200)
    assert (board.state(0), board.counts["silent"], board.counts["ignored"]) == (RTS, 0, 0)
    assert await board.exchange_mad(MRA, mra(ID, rep.local)) == []
    assert board.counts["ignored"] == 1


@cocotb.test()
async def dreq_is_repeated_until_it_is_answered_or_given_up(dut):
    board = await RdmaBoard.start(dut)
    if int(dut.CLK_KHZ.value) != 100:
        return
    await board.agreed(ID, qpn=0x77)
    await board.post(REQ, req(SERVER_IP, LOCAL_IP, 0x52, qpn=0x77))
    first = await board.answers.get()
    assert (first.attribute, (await board.answers.get()).attribute) == (DREQ, REJ)
    for _ in range(15):
        assert board.state(0) == RTS
        assert (await board.answer_after((1 << 16 - 8) - 8)).payload == first.payload
    await board.no_answer(280)
    assert (board.state(0), board.counts["disconnected"]) == (RESET, 1)


@cocotb.test()
async def connections_end_where_it_no_longer_listens(dut):
    board = await RdmaBoard.start(dut)
    n = min(board.n_qp, 3)
    reps = [await board.agreed(0x100 + k, SERVER_IP + k, qpn=0x200 + k) for k in range(n)]
    await board.exchange_mad(RTU, ids(0x100, reps[0].local))
    dut.rdma_port.value = 0
    ends = [await with_timeout(board.answers.get(), 1, "ms") for _ in range(n)]
    for k, (rep, end) in enumerate(zip(reps, ends, strict=True)):
        assert (end.attribute, end.ip, end.local, end.remote) == (DREQ, SERVER_IP + k, rep.local, 0x100 + k)
        assert end.data[8:12] == (0x200 + k << 8).to_bytes(4) and board.state(k) == RTS
        assert await board.exchange_mad(DREP, ids(0x100 + k, rep.local), SERVER_IP + k) == []
        assert board.state(k) == RESET
    assert board.counts["disconnected"] == n


@cocotb.test()
async def connections_come_and_go_although_messages_are_lost(dut):
    board = await RdmaBoard.start(dut)
    if int(dut.CLK_KHZ.value) != 100:
        return
    board.mad_loss = 0.3
    rng = board.rng

    async def post(attribute: int, data: bytes):
        if rng.random() >= 0.3:
            await board.post(attribute, data)

    async def until_answered(attribute: int, data: bytes, *attributes: int):
        while True:
            await post(attribute, data)
            await ClockCycles(dut.clk, 3000)
            while not board.answers.empty():
                answer = board.answers.get_nowait()
                if answer.attribute in attributes and answer.remote == int.from_bytes(data[:4]):
                    return answer

    for k in range(20):
        local = 0x1000 + k
        rep = await until_answered(REQ, req(SERVER_IP, LOCAL_IP, local, qpn=0x200 + k, timeout=14), REP)
        await post(RTU, ids(local, rep.local))
        end = await until_answered(DREQ, dreq(local, rep.local, rep.qpn), DREP)
        assert (end.local, end.remote) == (rep.local, local)
        assert board.state(queue_pair(rep)) == RESET
    assert board.counts["request"] == board.counts["disconnected"] == 20
    assert board.counts["repeated"] > 0 and board.counts["silent"] == 0


class Model:
    """`RdmaCm` of crates/transport with the owner of `penstock board`: the program rdma_cm_board."""

    def __init__(self, board: RdmaBoard):
        words = (LOCAL_IP, GUID, QPN_BASE, PORT, 4096, board.n_qp)
        command = [model("rdma_cm_board"), *map(str, words)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def exchange(self, attribute: int, data: bytes, ip: int, transaction: int) -> tuple[list[Answer], str, list[int]]:
        """Answers; of each queue pair 1 if it is open; counts."""
        self.process.stdin.write(f"{ip} {mads.mad(attribute, data, transaction).hex()}\n")
        self.process.stdin.flush()
        answers = []
        while not (line := self.process.stdout.readline()).startswith("."):
            to, mad = line.split()
            answers.append(Answer(int(to), mads.payload(LOCAL_IP, int(to), bytes.fromhex(mad))))
        _, states, *counts = line.split()
        return answers, states, [int(count) for count in counts]

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait() == 0


@dataclass
class Peer:
    """One connection as its peer has it, and what either board calls it."""

    ip: int
    local: int
    qpn: int
    psn: int = 5
    names: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0)])  # identifier and queue pair of each


def comparable(answer: Answer, name: int) -> tuple:
    """All but what either board draws: identifiers (`name` is the last one), first PSNs, the transaction of a DREQ."""
    data = bytearray(answer.data)
    if answer.local:
        data[:4] = b"last" if answer.local == name else b"mine"
    if answer.attribute == REJ and answer.reason == 1:
        data[:4] = b"none"  # software has one already, gateware none
    if answer.attribute == REP:
        data[:4], data[20:23] = b"mine", b"psn"
    return answer.ip, answer.attribute, answer.attribute != DREQ and answer.transaction, bytes(data)


@cocotb.test()
async def random_messages_have_the_answers_of_the_manager_in_software(dut):
    board = await RdmaBoard.start(dut)
    if (board.n_qp, int(dut.CLK_KHZ.value)) != (4, 100_000):
        return
    software, rng = Model(board), board.rng
    peers = [Peer(SERVER_IP + rng.randrange(3), 1 + k, 0x200 + rng.randrange(5)) for k in range(7)]
    numbers = itertools.count(100)
    kinds = Counter()
    for n in range(600):
        peer = rng.choice(peers)
        attribute = rng.choices((REQ, RTU, DREQ, DREP, REJ, MRA, REP), (40, 25, 20, 10, 5, 5, 3))[0]
        ip = rng.choice((peer.ip, peer.ip, peer.ip, peer.ip, OTHER_IP))
        wrong = rng.choices(("", "local", "remote", "qpn"), (9, 1, 1, 1))[0]
        changed = rng.choice(
            [{}, {}, {}, {}, {"port": 1}, {"service": 1}, {"mtu": 0}, {"ip": 6}, {"to": 7}, {"psn": 6}]
        )
        depth, reason = rng.randrange(4), rng.choice((4, 10, 28))
        found = []
        for side in range(2):
            name, qpn = peer.names[side]
            local = peer.local ^ (wrong == "local") << 20
            name ^= wrong == "remote"
            match attribute:
                case mads.REQ:
                    data = req(ip, LOCAL_IP, peer.local, peer.qpn, **{"psn": peer.psn, "depth": depth} | changed)
                case mads.DREQ:
                    data = dreq(local, name, qpn ^ (wrong == "qpn"))
                case mads.REJ:
                    data = rej(local, 0 if reason == 4 else name, 1, reason, guid=0xABCD if reason == 4 else None)
                case mads.MRA:
                    data = mra(local, name)
                case _:
                    data = ids(local, name)
            if side == 0:
                found.append(await board.exchange_mad(attribute, data, ip, transaction=n))
            else:
                answers, states, counts = software.exchange(attribute, data, ip, n)
                found.append(answers)
        case = f"message {n}: {attribute:#x} {peer} from {ip:#x}, wrong {wrong}, {changed}"
        seen = [[comparable(answer, peer.names[side][0]) for answer in found[side]] for side in range(2)]
        assert seen[0] == seen[1], case
        ours = found[0]
        kinds.update((answer.attribute, answer.reason if answer.attribute == REJ else 0) for answer in ours)
        assert "".join("01"[board.state(qp) == RTS] for qp in range(4)) == states, case
        assert [board.counts[name] for name in STATS[:7]] == counts, case
        if ours and ours[0].attribute == REP:
            peer.names = [(reps[0].local, reps[0].qpn) for reps in found]
            # The gateware forgets the queue pair's last connection.
            for late in (other for other in peers if other is not peer and other.names[0][1] == ours[0].qpn):
                late.local, late.names = next(numbers), [(0, 0), (0, 0)]
        if attribute == REQ and ours and ours[-1].attribute == REJ and ours[-1].reason in (10, 30):
            peer.local = next(numbers)  # identifiers are used once
    software.end()
    assert {(REP, 0), (DREP, 0), (DREQ, 0), *((REJ, r) for r in (1, 5, 6, 8, 9, 10, 12, 26, 30))} <= set(kinds), kinds
