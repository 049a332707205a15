# SPDX-License-Identifier: Apache-2.0
"""The transmitter with its send rings in a slow AXI4 memory keeps all its promises, and the line rate."""

import os
from pathlib import Path

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from lib.axi_memory import AxiMemory
from lib.requester_bench import ERR, FLUSH, LOC_LEN, RESET, RETRY_EXC, SUCCESS, WRITE, Harness
from lib.responder import Faults
from lib.runner import Bench, seed

BENCH = Bench(
    top="roce_tx_bench",
    configs=[
        {"DATA_W": 64, "N_QP": 4, "STORE": 1, "RING_BYTES": 524288, "SLOTS": 256},
        {"DATA_W": 512, "N_QP": 4, "STORE": 1, "RING_BYTES": 4194304, "SLOTS": 1024},
    ],
    sources=[Path(__file__).parents[1] / "roce_tx" / "roce_tx_bench.sv"],
)

BASE = 0x100000
MEMORY = BASE + (1 << 24)


async def start(dut, faults: Faults | None = None, latency=lambda rng: 40, stall: float = 0.0) -> Harness:
    rng = seed()
    dut.rst.value = 1
    memory = AxiMemory(dut, rng, MEMORY, latency)
    h = await Harness(dut, rng, faults or Faults()).start()
    h.memory = memory
    if stall:
        h.stall(stall)
        memory.stall(rng, stall)
    return h


def some_length(rng, mtu: int) -> int:
    return max(1, rng.choice([1, 1, 2, 3, 5]) * mtu + rng.choice([0, 1, -1, -rng.randrange(mtu)]))


async def random_traffic(h: Harness, messages: int) -> None:
    rng = h.rng
    for qp in range(4):
        near_wrap = (1 << 24) - 1 - rng.randrange(20)
        await h.open(qp, mtu_code=rng.choice([1, 1, 2, 3]), ack_timeout=7, init_psn=near_wrap)
    requests = []
    for _ in range(messages):
        qp = rng.randrange(4)
        requests.append(h.submit(h.request(qp, some_length(rng, h.peers[qp].mtu))))
    await h.completed(messages, cycles=400000)
    h.verify(requests)


@cocotb.test()
async def messages_arrive_from_a_slow_memory_under_random_stalls(dut):
    h = await start(dut, latency=lambda rng: rng.randrange(150), stall=0.2)
    await random_traffic(h, 25)


@cocotb.test()
async def messages_arrive_over_loss_copies_and_reordering(dut):
    h = await start(dut, Faults(loss=0.05, duplicate=0.05, reorder=0.05), latency=lambda rng: rng.randrange(80))
    await random_traffic(h, 40)


@cocotb.test()
async def queue_pairs_die_and_open_again_while_their_commits_are_on_their_way(dut):
    h = await start(dut, Faults(loss=0.03), latency=lambda rng: rng.randrange(100, 300))
    rng = h.rng
    requests = []
    for qp in range(4):
        await h.open(qp, mtu_code=1)
    for _ in range(50):
        qp = rng.randrange(4)
        requests.append(h.submit(h.request(qp, some_length(rng, 512))))
        await ClockCycles(dut.clk, rng.randrange(200))
        if rng.random() < 0.3:
            qp = rng.randrange(4)
            await h.command(qp, RESET)
            await h.open(qp, mtu_code=rng.choice([1, 2]))
    await h.completed(len(requests), cycles=200000)
    delivered = [m.data for peer in h.of_qpn.values() for m in peer.responder.messages]
    statuses = {tag: status for _, tag, status in h.completions}
    for qp in range(4):
        assert [t for q, t, _ in h.completions if q == qp] == [r.tag for r in requests if r.qp == qp]
    for r in requests:
        assert statuses[r.tag] in (SUCCESS, FLUSH)
        assert statuses[r.tag] != SUCCESS or r.data in delivered, f"message {r.tag} completed, but never arrived"
    dut._log.info("%d of %d messages succeeded", list(statuses.values()).count(SUCCESS), len(requests))


@cocotb.test()
async def a_slot_that_cannot_be_written_fails_its_message_and_nothing_wrong_is_sent(dut):
    h = await start(dut)
    peer = await h.open(0, mtu_code=1, init_psn=0)
    bad = BASE + 256 * 7  # inside the second message
    h.memory.fault = lambda address, is_write: is_write and bad <= address < bad + 256
    requests = [h.submit(h.request(0, 256 * 5)) for _ in range(3)]
    await h.completed(3)
    assert peer.completions == [(r.tag, s) for r, s in zip(requests, (SUCCESS, LOC_LEN, FLUSH), strict=True)]
    assert [m.data for m in peer.responder.messages] == [requests[0].data]
    assert (await h.status(0))["state"] == ERR


@cocotb.test()
async def a_packet_that_cannot_be_read_is_not_sent_and_goes_when_it_can_be_read_again(dut):
    h = await start(dut)
    peer = await h.open(0, mtu_code=1, init_psn=0, ack_timeout=5)
    failures = iter([True, True])
    bad = BASE + 256 * 3
    h.memory.fault = lambda address, is_write: not is_write and address == bad and next(failures, False)
    request = h.submit(h.request(0, 256 * 5))
    await h.completed(1)
    h.verify([request])
    assert len([p for p in peer.headers if p["psn"] == 3]) == 1
    assert (await h.status(0))["packets_retransmitted"] >= 2
    # never again: given up after the retries
    h.memory.fault = lambda address, is_write: not is_write
    other = await h.open(1, mtu_code=1, retry_cnt=2, ack_timeout=3)
    lost = h.submit(h.request(1, 100))
    await h.completed(2)
    assert other.completions == [(lost.tag, RETRY_EXC)] and not other.headers


@cocotb.test()
async def the_line_is_kept_busy_with_a_window_of_late_acknowledgements_in_flight(dut):
    """160 us with PENSTOCK_LONG=1 (minutes), else 10 us. 64 bits at 156.25 MHz are 10G, 512 at 322.266 MHz 100G."""
    wide = len(dut.m_axis_tkeep) == 64
    window_us = 160 if os.environ.get("PENSTOCK_LONG") else 10
    delay = round(window_us * (322.266 if wide else 156.25))
    line = 12_500 / 322.266 if wide else 8  # bytes a cycle
    h = await start(dut, Faults(delay=delay // 2), latency=lambda rng: rng.randrange(60, 100))
    await h.open(0, mtu_code=5, ack_timeout=20)  # one queue pair, whose ring holds it all
    size, messages = round(line * delay / 2 / 4096) * 4096, 6  # three times what is in flight
    data = h.rng.randbytes(size)
    requests = []
    for _ in range(messages):
        request = h.request(0, 1, verb=WRITE, imm=None)
        request.data = data
        requests.append(h.submit(request))
    total, sent, cycles = messages * size, 0, 0
    while sent < total:
        await RisingEdge(dut.clk)
        if dut.m_axis_tvalid.value == 1:
            sent += len(dut.m_axis_tkeep)
        cycles += sent > 0
    dut._log.info("%d us: %d bytes in %d cycles: %.3f bytes a cycle", window_us, total, cycles, total / cycles)
    await h.completed(messages, cycles=4 * delay)
    h.verify(requests)
    assert (await h.status(0))["packets_retransmitted"] == 0
    # Payload alone, no header between: more than the line ever takes.
    assert total / cycles > (line if wide else 0.995 * line)
