# SPDX-License-Identifier: Apache-2.0
"""Promises of every front end to a peer on the cable and to software on its registers, at any rate and width.

The benches of the tops select these tests by name: `ALL`, or `SHORT` for one more number of queue pairs.
"""

import itertools
import os

import cocotb
from cocotb.triggers import ClockCycles, Timer
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP
from scapy.layers.l2 import ARP, Ether

from lib.board import ERR, FLUSH_ERR, REM_ACCESS, RETRY_EXC, RTS, SUCCESS, start
from lib.cable import time_limit
from lib.frames_tx import stalls
from lib.mac_control import pause, pfc
from lib.rc_peer import NAK, RNR
from lib.roce import PEER_IP
from lib.runner import seed

US = 1000  # ns
LAST_QP = int(os.environ.get("PARAM_N_QP", 4)) - 1


def goodput_gbps(packets) -> float:
    """Payload bits per ns over whole packets: from the first start to the last start."""
    span = packets[-1].start_ns - packets[0].start_ns
    return 8 * sum(len(p.payload) for p in packets[:-1]) / span


def physical_limit_gbps(packets, line: float) -> float:
    """What the line carries of these packets: their payload by all that they take on the wire."""
    return line * sum(len(p.payload) for p in packets[:-1]) / sum(p.wire_bytes for p in packets[:-1])


@cocotb.test(**time_limit(2))
async def messages_of_every_kind_arrive_whole_and_complete_in_order(dut):
    rng = seed()
    qps = sorted({0, LAST_QP})
    board = await start(dut, dict(zip(qps, (0xFFFFFE, 77), strict=False)))  # one PSN wraps
    sent, posted = {qp: [] for qp in qps}, []
    for tag, size in enumerate([1, 2, 3, 4, 60, 255, 4095, 4096, 4097, 9000, 12288, 20001]):
        qp, payload = rng.choice(qps), rng.randbytes(size)
        imm = rng.choice([None, rng.getrandbits(32)])
        if rng.random() < 0.6:
            raddr = 0x8000 * tag + rng.randrange(64)
            await board.post(qp, payload, tag, raddr, imm)
            posted.append((raddr, payload))
            sent[qp] += [(qp, b"", imm)] if imm is not None else []
        else:
            await board.post(qp, payload, tag, None, imm)
            sent[qp].append((qp, payload, imm))
    done = [await board.completion() for _ in range(12)]
    assert sorted(tag for _, tag, _ in done) == list(range(12))
    assert all(status == SUCCESS for _, _, status in done)
    for qp in qps:
        tags = [tag for at, tag, _ in done if at == qp]
        assert tags == sorted(tags)
        assert [r for r in board.peer.received if r[0] == qp] == sent[qp]
    for raddr, payload in posted:
        assert board.peer.memory[raddr : raddr + len(payload)] == payload
    assert await board.count("messages_done") == 12
    assert await board.count("packets_sent") == len(board.peer.seen)
    assert await board.count("tx_frames") == len(board.peer.seen)
    assert await board.count("packets_retransmitted") == 0
    assert await board.count("tx_underruns") == 0


@cocotb.test(**time_limit(2))
async def random_sizes_and_stalls_change_no_byte(dut):
    """Every MTU, a source and a completion reader that stall at will."""
    rng = seed()
    qps = sorted({0, LAST_QP // 2, LAST_QP})
    board = await start(dut, {qp: rng.getrandbits(24) for qp in qps})
    for qp in qps:
        await board.open(qp, mtu=rng.randint(1, 5))
    board.data.set_pause_generator(stalls(rng, 0.3))
    board.completions.set_pause_generator(stalls(rng, 0.5))
    payloads = [rng.randbytes(int(2 ** rng.uniform(0, 14))) for _ in range(24)]
    for tag, payload in enumerate(payloads):
        await board.post(rng.choice(qps), payload, tag, tag * 0x4000, rng.choice([None, tag]))
    done = [await board.completion() for _ in payloads]
    assert sorted(tag for _, tag, _ in done) == list(range(24))
    assert all(status == SUCCESS for _, _, status in done)
    for tag, payload in enumerate(payloads):
        assert board.peer.memory[tag * 0x4000 : tag * 0x4000 + len(payload)] == payload, f"message {tag}"
    assert await board.count("packets_retransmitted") == 0
    assert await board.count("tx_underruns") == 0


@cocotb.test(**time_limit(3))
async def one_queue_pair_fills_the_line_with_64_kb_messages(dut):
    rng = seed()
    board = await start(dut, {1: 0})
    payload = rng.randbytes(65536)
    # A hard MAC's start times jitter by a few beats.
    count = {1: 3, 100: 8}.get(board.line.gbps, 6)
    for tag in range(count):
        await board.post(1, payload, tag, 0, tag)
    done = [await board.completion() for _ in range(count)]
    assert done == [(1, tag, SUCCESS) for tag in range(count)]
    assert board.peer.memory[:65536] == payload
    rate, limit = goodput_gbps(board.peer.seen), physical_limit_gbps(board.peer.seen, board.line.gbps)
    dut._log.info(f"goodput {rate:.4f} Gb/s of {limit:.4f} possible, {100 * rate / limit:.3f} %")
    assert rate >= 0.999 * limit
    assert await board.count("packets_retransmitted") == 0
    assert await board.count("tx_underruns") == 0


@cocotb.test(**time_limit(4))
async def lost_packets_are_sent_again_until_every_byte_is_there(dut):
    rng = seed()
    board = await start(dut, {0: 5, 2: 0xFFFFF0})
    board.peer.verdict = lambda packet: "drop" if rng.random() < 0.08 else None
    payloads = [rng.randbytes(rng.randrange(1, 30_000)) for _ in range(10)]
    for tag, payload in enumerate(payloads):
        await board.post(rng.choice([0, 2]), payload, tag, tag * 0x8000, tag)
    done = [await board.completion() for _ in payloads]
    assert all(status == SUCCESS for _, _, status in done)
    for tag, payload in enumerate(payloads):
        assert board.peer.memory[tag * 0x8000 : tag * 0x8000 + len(payload)] == payload, f"message {tag}"
    assert sorted(imm for _, _, imm in board.peer.received) == list(range(10))
    assert board.peer.counts["dropped"] > 0
    assert await board.count("packets_retransmitted") >= board.peer.counts["dropped"]
    assert await board.count("packet_seq_err") == board.peer.counts["out_of_sequence"]


@cocotb.test(**time_limit(2))
async def a_congestion_notification_halves_the_rate_at_once(dut):
    rng = seed()
    board = await start(dut, {0: 0})
    line, size = board.line.gbps, 180_000
    whole_ns = 8 * size / line
    full = await board.registers.read("qp.rate_current", 0)
    assert full == board.line.rate
    assert await board.field("qp.alpha", "value", 0) == 65536
    await board.post(0, rng.randbytes(size), 1, 0, 1)
    await Timer(0.3 * whole_ns, "ns", round_mode="round")
    await board.peer.notify(0)
    await Timer(max(0.07 * whole_ns, 1 * US), "ns", round_mode="round")
    cut = len(board.peer.seen)
    assert abs(await board.registers.read("qp.rate_current", 0) - full // 2) <= 1
    assert await board.registers.read("qp.rate_target", 0) == full
    assert await board.registers.read("qp.rp_cnp_handled", 0) == 1
    assert await board.count("rx_cnp_packets") == 1
    await board.completion()
    after = board.peer.seen[cut + 8 :]  # after the pacer's credit and the packets in flight
    wire = 8 * sum(p.wire_bytes for p in after[:-1]) / (after[-1].start_ns - after[0].start_ns)
    assert 0.49 * line <= wire <= 0.51 * line, f"{wire:.3f} Gb/s on the wire after the cut"
    assert goodput_gbps(board.peer.seen[: cut - 4]) > 0.96 * line


def longest_gap_ns(packets) -> float:
    return max(b.start_ns - a.start_ns for a, b in itertools.pairwise(packets))


@cocotb.test(**time_limit(2))
async def pause_and_pfc_of_our_class_hold_the_data_and_another_class_does_not(dut):
    rng = seed()
    board = await start(dut, {0: 0})
    line = board.line.gbps
    quantum_ns = 512 / line
    for frame, held in [(pause(400), True), (pfc({3: 400}), True), (pfc({4: 400}), False)]:
        board.peer.seen.clear()
        await board.post(0, rng.randbytes(80_000), 7, 0, 7)
        await Timer(8 * 25_000 / line, "ns", round_mode="round")
        await board.peer.send(frame)
        assert await board.completion() == (0, 7, SUCCESS)
        gap = longest_gap_ns(board.peer.seen)
        assert (gap >= 400 * quantum_ns) == held, f"longest gap {gap:.0f} ns"
        assert gap < 401 * quantum_ns + 2 * 34_000 / line, "held longer than asked for"
    assert await board.count("rx_pause") == 1
    assert await board.count("rx_pfc") == 2
    assert await board.count("tx_pause_cycles") >= 2 * 400 * quantum_ns / board.line.cycle_ns - 2


@cocotb.test(**time_limit(2))
async def a_receiver_that_is_not_ready_is_waited_for(dut):
    board = await start(dut, {0: 0})
    refusals = iter([RNR | 1, RNR | 2])  # 10 us, 20 us
    board.peer.verdict = lambda packet: next(refusals, None)
    await board.post(0, bytes(range(200)), 1, 0, 9)
    assert await board.completion() == (0, 1, SUCCESS)
    starts = [p.start_ns for p in board.peer.seen]
    assert len(starts) == 3
    assert starts[1] - starts[0] >= 10 * US and starts[2] - starts[1] >= 20 * US
    assert await board.count("rnr_nak") == 2


@cocotb.test(**time_limit(2))
async def a_failed_queue_pair_flushes_and_opens_again_while_others_go_on(dut):
    board = await start(dut, {0: 10, 1: 20})
    board.peer.verdict = lambda packet: NAK | 2 if packet.qp == 0 else None
    for tag in range(3):
        await board.post(0, bytes(5000), tag, 0, tag)
    await board.post(1, bytes(5000), 100, 0, 100)
    done = [await board.completion() for _ in range(4)]
    assert [d for d in done if d[0] == 0] == [(0, 0, REM_ACCESS), (0, 1, FLUSH_ERR), (0, 2, FLUSH_ERR)]
    assert (1, 100, SUCCESS) in done
    assert await board.state(0) == ERR
    assert await board.count("qp_errors") == 1

    board.peer.verdict = lambda packet: None
    board.peer.flows[0].expected = board.first_psn[0]
    await board.open(0)
    assert await board.state(0) == RTS
    await board.post(0, b"again", 5, 64, 5)
    assert await board.completion() == (0, 5, SUCCESS)
    assert board.peer.memory[64:69] == b"again"


@cocotb.test(**time_limit(2))
async def a_vanished_peer_ends_in_an_error_completion(dut):
    board = await start(dut, {0: 0})
    await board.open(0, ack_timeout=2, retry_cnt=2)
    board.peer.verdict = lambda packet: "drop"
    await board.post(0, bytes(100), 1, 0, 1)
    assert await board.completion() == (0, 1, RETRY_EXC)
    assert len(board.peer.seen) == 3  # once, and two retries
    assert await board.count("local_ack_timeout_err") == 3


@cocotb.test(**time_limit(1))
async def what_does_not_concern_us_is_dropped_and_counted(dut):
    board = await start(dut, {0: 0})
    peer, ack = board.peer, BTH(opcode=0x11, dqpn=0xABC100, psn=0) / AETH(syndrome=0x1F)
    await peer.send(bytes(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(psrc=PEER_IP)).ljust(60, b"\0"))
    await peer.answer(LAST_QP + 1, 0, 0x1F, 0)  # no such queue pair
    await peer.answer(1, 0, 0x1F, 0)  # not ready
    stranger = peer.lower()
    stranger[IP].src = "10.0.9.8"
    await peer.send(bytes(stranger / ack))
    damaged = bytearray(bytes(peer.lower() / ack))
    damaged[-1] ^= 1
    await peer.send(bytes(damaged))
    await ClockCycles(dut.clk, 400)
    for name in ("rx_other", "rx_unknown_qp", "rx_not_ready", "rx_wrong_peer", "rx_icrc_encapsulated"):
        assert await board.count(name) == 1, name
    assert await board.count("rx_frames") == 5


@cocotb.test(**time_limit(2))
async def a_vlan_carries_all_packets_and_nothing_from_outside_comes_in(dut):
    rng = seed()
    board = await start(dut, {0: 7})
    await board.registers.write_fields("port.vlan", vid=1234, pcp_data=5, enable=1)
    board.peer.vlan = None  # an answer without a tag, then one of another VLAN
    await board.peer.answer(0, 7, 0x1F, 0)
    board.peer.vlan = (1235, 5)
    await board.peer.answer(0, 7, 0x1F, 0)
    board.peer.vlan = (1234, 5)
    for tag, size in enumerate((1, 5000, 4095)):
        payload = rng.randbytes(size)
        await board.post(0, payload, tag, tag * 0x4000, tag)
        assert await board.completion() == (0, tag, SUCCESS)
        assert board.peer.memory[tag * 0x4000 : tag * 0x4000 + size] == payload
    assert await board.count("rx_vlan_drop") == 2
    assert await board.count("stale_acks") == 0


ALL = [
    messages_of_every_kind_arrive_whole_and_complete_in_order,
    random_sizes_and_stalls_change_no_byte,
    one_queue_pair_fills_the_line_with_64_kb_messages,
    lost_packets_are_sent_again_until_every_byte_is_there,
    a_congestion_notification_halves_the_rate_at_once,
    pause_and_pfc_of_our_class_hold_the_data_and_another_class_does_not,
    a_receiver_that_is_not_ready_is_waited_for,
    a_failed_queue_pair_flushes_and_opens_again_while_others_go_on,
    a_vanished_peer_ends_in_an_error_completion,
    what_does_not_concern_us_is_dropped_and_counted,
    a_vlan_carries_all_packets_and_nothing_from_outside_comes_in,
]
SHORT = [
    messages_of_every_kind_arrive_whole_and_complete_in_order,
    random_sizes_and_stalls_change_no_byte,
]
