# SPDX-License-Identifier: Apache-2.0
"""A front end of one queue pair without what can be left out: the rest works, and what is not there is reported so."""

import cocotb
from cocotb.triggers import ClockCycles
from lib.board import ERR, FLUSH_ERR, MTU_4096, RETRY_EXC, RTS, SUCCESS, start
from lib.cnm import cnm
from lib.rates import QCN
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC
from lib.runner import Bench, seed
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether

LEFT_OUT = {"WITH_QCN": 0, "WITH_SOURCE": 0, "WITH_SERVICES": 0, "RETRANSMIT": 0}
BENCH = Bench(
    top="penstock_xgmii",
    configs=[{"CLK_KHZ": 156_250, "N_QP": 1, "RING_BYTES": 16_384, "SLOTS": 16, **LEFT_OUT}],
)
DCQCN = 1
ACTED = 300  # cycles within which a frame has surely been acted upon


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def messages_arrive_and_the_first_loss_ends_the_queue_pair_which_opens_again(dut):
    rng = seed()
    board = await start(dut, {0: 0xFFFFF8})
    assert await board.field("options", "retransmit", 0) == 0
    transport = [await board.field("qp.transport", name, 0) for name in ("mtu", "retry_cnt", "rnr_retry")]
    assert transport == [MTU_4096, 0, 0], "retries were asked for, and there are none"
    payloads = [rng.randbytes(rng.randrange(1, 20_000)) for _ in range(12)]
    for tag, payload in enumerate(payloads):
        await board.post(0, payload, tag, tag * 0x8000, tag)
    assert [await board.completion() for _ in payloads] == [(0, tag, SUCCESS) for tag in range(12)]
    for tag, payload in enumerate(payloads):
        assert board.peer.memory[tag * 0x8000 : tag * 0x8000 + len(payload)] == payload, f"message {tag}"

    sent = await board.registers.read("qp.nxt_psn", 0)
    lost = (sent + 3) % (1 << 24)  # the second packet of the second message
    board.peer.verdict = lambda packet: "drop" if packet.psn == lost else None
    arrived = len(board.peer.received)
    for tag in range(20, 24):
        await board.post(0, rng.randbytes(8192), tag, 0, tag)
    expected = [(0, 20, SUCCESS), (0, 21, RETRY_EXC), (0, 22, FLUSH_ERR), (0, 23, FLUSH_ERR)]
    assert [await board.completion() for _ in range(4)] == expected
    assert await board.state(0) == ERR and await board.count("packets_retransmitted") == 0
    assert [immediate for *_, immediate in board.peer.received[arrived:]] == [20], "no other was reported to the peer"

    flow = board.peer.flows[0]
    flow.expected, flow.nak_sent = board.first_psn[0], False
    board.peer.verdict = lambda packet: None
    await board.open(0)
    assert await board.state(0) == RTS
    await board.post(0, b"again", 30, 64, 30)
    assert await board.completion() == (0, 30, SUCCESS)
    assert board.peer.memory[64:69] == b"again"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_cnp_cuts_and_a_request_for_qcn_gives_dcqcn(dut):
    board = await start(dut, {0: 0})
    read, line = board.registers.read, board.line.rate
    assert [await board.field("options", name, 0) for name in ("qcn", "source", "services")] == [0, 0, 0]
    await board.registers.write_fields("qp.congestion", 0, law=QCN)
    await ClockCycles(dut.clk, ACTED)
    assert await board.field("qp.congestion", "law", 0) == DCQCN

    await board.peer.send(cnm(0, 48))
    await ClockCycles(dut.clk, ACTED)
    assert await read("qp.rate_current", 0) == line and await board.count("rx_cnm_packets") == 0
    await board.peer.notify(0)
    await ClockCycles(dut.clk, ACTED)
    assert await read("qp.rate_current", 0) == line - line // 2, "alpha is 1 at the first CNP"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_law_of_a_group_cannot_be_qcn_either(dut):
    board = await start(dut, {0: 0})
    await board.registers.write_fields("cc.control", 0, law=QCN)
    await board.peer.notify(0)
    await ClockCycles(dut.clk, ACTED)
    line = board.line.rate
    assert await board.registers.read("qp.rate_current", 0) == line - line // 2


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_network_gets_no_answer_and_the_source_does_not_start(dut):
    board = await start(dut, {0: 0})
    requested = ARP(op="who-has", hwsrc=PEER_MAC, psrc=PEER_IP, pdst=LOCAL_IP)
    await board.peer.send(bytes(Ether(dst="ff:ff:ff:ff:ff:ff", src=PEER_MAC) / requested).ljust(60, b"\0"))
    ping = IP(src=PEER_IP, dst=LOCAL_IP) / ICMP() / bytes(32)
    await board.peer.send(bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / ping))
    await board.registers.write_fields("source.command", start=1)
    await ClockCycles(dut.clk, 3000)
    assert board.peer.other_frames.empty(), "something was sent"
    assert await board.field("source.status", "running", 0) == 0
    assert await board.count("rx_fcs_errors") == 0
