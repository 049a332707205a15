# SPDX-License-Identifier: Apache-2.0
"""Every message arrives byte for byte and completes once and in order, under all faults of the network and the peer."""

import itertools
from pathlib import Path

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamFrame
from lib.requester_bench import (
    CLOCK_NS,
    ERR,
    FLUSH,
    LOC_LEN,
    REM_ACCESS,
    REM_INV,
    REM_OP,
    RESET,
    RETRY_EXC,
    RNR_EXC,
    RTS,
    SUCCESS,
    WRITE,
    Harness,
    Request,
    random_traffic,
    some_length,
    statuses_of,
)
from lib.responder import Ack, Faults
from lib.runner import Bench, seed
from roce_tx.connections import *  # noqa: F403 (more tests of this bench)
from roce_tx.cut_through import *  # noqa: F403
from roce_tx.peer_credits import *  # noqa: F403
from roce_tx.states import *  # noqa: F403

BENCH = Bench(
    top="roce_tx_bench",
    configs=[{"DATA_W": 64, "N_QP": 4}, {"DATA_W": 512, "N_QP": 4}],
    sources=[Path(__file__).parent / "roce_tx_bench.sv"],
)


@cocotb.test()
async def messages_arrive_on_a_perfect_network_with_no_packet_twice(dut):
    h = await random_traffic(dut, Faults(), 40, stall=0.0, mtu_codes=(1, 2, 3, 4, 5))
    for qp in range(4):
        assert (await h.status(qp))["packets_retransmitted"] == 0


@cocotb.test()
async def messages_arrive_under_random_stalls(dut):
    await random_traffic(dut, Faults(), 25, stall=0.4)


@cocotb.test()
async def messages_arrive_over_loss_copies_and_reordering(dut):
    await random_traffic(dut, Faults(loss=0.05, duplicate=0.05, reorder=0.05), 50, stall=0.1)


@cocotb.test()
async def messages_arrive_when_receivers_are_often_not_ready(dut):
    await random_traffic(dut, Faults(loss=0.02, duplicate=0.03, reorder=0.05), 25, stall=0.0, rnr=0.15)


@cocotb.test()
async def full_packets_leave_without_a_bubble(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    await h.open(0, mtu_code=5)
    lanes = len(dut.m_axis_tkeep)
    requests = [h.submit(h.request(0, 4096 * 6, verb=WRITE)) for _ in range(4)]
    beats, idle, started = 0, 0, False
    while beats < 24 * 4096 // lanes:
        await RisingEdge(dut.clk)
        taken = dut.m_axis_tvalid.value == 1 and dut.m_axis_tready.value == 1
        started |= taken
        beats += taken
        idle += started and not taken
    await h.completed(4)
    h.verify(requests)
    dut._log.info("%d beats with %d idle cycles between them", beats, idle)
    assert idle <= 4 * 4, "more than the few cycles in which a message begins"


@cocotb.test()
async def the_latency_of_a_packet_is_measured_unless_it_was_sent_again(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(3, mtu_code=1, ack_timeout=0)
    peer.silent = True
    base, times = peer.row["init_psn"], []
    last, discarded = 0x8000 + 0x20 * 3, 0x8000 + 0x20 * 3 + 12
    for n, wait in enumerate((100, 700, 45)):
        h.submit(h.request(3, 200))
        while len(peer.headers) <= n:
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, wait)
        h.acknowledge(3, Ack.OK, base + n)
        await h.completed(n + 1)
        times.append(await h.latency(last))
        assert wait < times[-1] < wait + 40, f"{times[-1]} cycles, the acknowledgement came after {wait}"
    h.submit(h.request(3, 200))
    while len(peer.headers) < 4:
        await RisingEdge(dut.clk)
    h.acknowledge(3, Ack.NAK_SEQ, base + 3)
    while len(peer.headers) < 5:
        await RisingEdge(dut.clk)
    h.acknowledge(3, Ack.OK, base + 3)
    await h.completed(4)
    assert await h.latency(last) == times[-1] and await h.latency(discarded) == 1
    assert sum([await h.latency(0x80 * 3 + 4 * i) for i in range(32)]) == len(times)


@cocotb.test()
async def counters_clear_at_once_and_count_on_from_zero(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    await h.open(2, mtu_code=1)
    h.submit(h.request(2, 1000))
    await h.completed(1)
    assert (await h.status(2))["packets_sent"] == 4 and (await h.status(2))["bytes_acked"] == 1000
    dut.clear_counters.value = 1
    await RisingEdge(dut.clk)
    dut.clear_counters.value = 0
    counts = await h.status(2)
    assert counts["una"] == counts["nxt"] != 0
    assert not any(counts[name] for name in ("packets_sent", "messages_ok", "bytes_acked"))
    h.submit(h.request(2, 300))
    await h.completed(2)
    counts = await h.status(2)
    assert [counts[name] for name in ("packets_sent", "messages_ok", "bytes_acked")] == [2, 1, 300]


@cocotb.test()
async def a_fatal_nak_fails_its_message_and_flushes_the_rest_of_its_queue_pair_alone(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    for qp, (nak, status) in enumerate([(Ack.INV_REQ, REM_INV), (Ack.ACCESS, REM_ACCESS), (Ack.REM_OP, REM_OP)]):
        before = len(h.completions)
        bad = await h.open(qp, mtu_code=1)
        good = await h.open(3, mtu_code=2)
        victim = (bad.row["init_psn"] + 7) & 0xFFFFFF  # inside the second message of five packets
        bad.responder.refuse = lambda p, v=victim, n=nak: n if p.psn == v else None
        bads = [h.submit(h.request(qp, 1280)) for _ in range(2)]
        bads.append(h.submit(h.request(qp, 40 * 256)))  # longer than the ring
        goods = [h.submit(h.request(3, 3000)) for _ in range(2)]
        bads.append(h.submit(h.request(qp, 100)))
        await h.completed(before + 6)
        await ClockCycles(dut.clk, 50)
        assert bad.completions == list(zip([r.tag for r in bads], [SUCCESS, status, FLUSH, FLUSH], strict=True))
        assert good.completions == [(r.tag, SUCCESS) for r in goods]
        assert [m.data for m in bad.responder.messages] == [bads[0].data]
        assert (await h.status(qp))["state"] == ERR
        assert h.failed == list(range(qp + 1))
        await h.command(3, RESET)
        await h.wait_state(3, RESET)


@cocotb.test()
async def a_silent_peer_gets_retry_cnt_retries_and_is_then_given_up(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    dead = await h.open(1, mtu_code=1, retry_cnt=3, ack_timeout=4)
    await h.open(2, mtu_code=1)
    dead.silent = True
    first = h.submit(h.request(1, 700))
    long = h.submit(h.request(1, 50 * 256))  # the ring is full when the queue pair dies
    alive = h.submit(h.request(2, 5000))
    await h.completed(3)
    assert dead.completions == [(first.tag, RETRY_EXC), (long.tag, FLUSH)]
    assert h.peers[2].completions == [(alive.tag, SUCCESS)]
    status = await h.status(1)
    assert status["local_ack_timeout_err"] == 4
    tries = [p["cycle"] for p in dead.headers if p["psn"] == dead.row["init_psn"]]
    assert len(tries) == 4
    timeout = 4 * 2**4 * 8  # cycles: 4.096 us * 2^4, a tick of 1.024 us being 8 cycles here
    for earlier, later in itertools.pairwise(tries):
        assert timeout <= later - earlier <= 2 * timeout


@cocotb.test()
async def a_receiver_that_is_never_ready_is_given_up_after_rnr_retry(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, rnr_retry=2)
    peer.responder.refuse = lambda packet: Ack.RNR
    peer.responder.rnr_code = 2
    request = h.submit(h.request(0, 200))
    await h.completed(1)
    assert peer.completions == [(request.tag, RNR_EXC)]
    assert (await h.status(0))["rnr_nak"] == 3
    assert len(peer.headers) == 3


@cocotb.test()
async def the_rnr_wait_lasts_as_long_as_requested_and_then_the_ack_timer_guards(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=5)
    refusals = iter([Ack.RNR])
    peer.responder.refuse = lambda packet: next(refusals, None)
    peer.responder.rnr_code = 5  # 60 us = 59 ticks of 8 cycles
    times = []
    request = h.submit(h.request(0, 100))
    for attempt in range(3):
        while len(peer.headers) <= attempt:
            await RisingEdge(dut.clk)
        times.append(get_sim_time("ns") / CLOCK_NS)
        peer.silent = attempt == 1  # the packet after the wait is lost
        await ClockCycles(dut.clk, 30)
    await h.completed(1)
    h.verify([request])
    assert 59 * 8 <= times[1] - times[0] <= 59 * 8 + 120
    assert 4 * 32 * 8 <= times[2] - times[1] <= 4 * 32 * 8 + 120
    assert (await h.status(0))["local_ack_timeout_err"] == 1


@cocotb.test()
async def acknowledgements_outside_the_window_change_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=0, init_psn=0xFFFFFE)
    peer.silent = True
    request = h.submit(h.request(0, 256 * 6))
    while len(peer.headers) < 6:
        await RisingEdge(dut.clk)
    for kind in Ack:
        for psn in (peer.row["init_psn"] - 1, peer.row["init_psn"] + 6, 0x800000):
            h.acknowledge(0, kind, psn)
    await ClockCycles(dut.clk, 100)
    assert len(peer.headers) == 6 and not peer.completions
    status = await h.status(0)
    assert (status["state"], status["una"], status["stale_acks"]) == (RTS, 0xFFFFFE, 18)
    h.acknowledge(0, Ack.OK, peer.row["init_psn"] + 5)
    await h.completed(1)
    assert peer.completions == [(request.tag, SUCCESS)]


@cocotb.test()
async def an_acknowledgement_beyond_the_rewound_pointer_moves_it_forward(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=0, init_psn=0xFFFFFC)
    peer.silent = True
    base = peer.row["init_psn"]
    request = h.submit(h.request(0, 256 * 8))
    while len(peer.headers) < 8:
        await RisingEdge(dut.clk)
    dut.cc_eligible.value = 0  # nothing can be resent while both arrive
    await ClockCycles(dut.clk, 200)
    h.acknowledge(0, Ack.NAK_SEQ, base + 2)
    await ClockCycles(dut.clk, 20)
    assert (await h.status(0))["nxt"] == (base + 2) & 0xFFFFFF
    h.acknowledge(0, Ack.OK, base + 5)
    await ClockCycles(dut.clk, 20)
    assert (await h.status(0))["nxt"] == (base + 6) & 0xFFFFFF
    dut.cc_eligible.value = 0xF
    await ClockCycles(dut.clk, 400)
    assert [p["psn"] for p in peer.headers[8:]] == [(base + n) & 0xFFFFFF for n in (6, 7)]
    assert peer.headers[-1]["ack_req"] == 1
    h.acknowledge(0, Ack.OK, base + 7)
    await h.completed(1)
    assert peer.completions == [(request.tag, SUCCESS)]


@cocotb.test()
async def a_slot_acknowledged_while_it_is_resent_keeps_its_bytes_until_it_has_left(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=5, ack_timeout=0)  # a ring of eight packets
    peer.silent = True
    base = peer.row["init_psn"]
    requests = [h.submit(h.request(0, 4096 * 8)), h.submit(h.request(0, 4096 * 8))]
    while len(peer.headers) < 8:
        await RisingEdge(dut.clk)
    h.payload.pause = True
    h.acknowledge(0, Ack.NAK_SEQ, base)
    while (await h.status(0))["packets_retransmitted"] < 2:
        await RisingEdge(dut.clk)
    h.acknowledge(0, Ack.OK, base + 7)  # both slots are done with, but still being read
    await ClockCycles(dut.clk, 8 * 4096 // len(dut.m_axis_tkeep))
    h.payload.pause = False
    peer.silent = False
    # The responder has seen nothing yet: it takes the resent packets as new and checks every byte.
    while len(peer.headers) < 10:
        await RisingEdge(dut.clk)
    await ClockCycles(dut.clk, 100)
    taken = peer.responder._open.data
    assert len(taken) >= 2 * 4096 and taken == requests[0].data[: len(taken)]


@cocotb.test()
async def reset_inside_a_message_flushes_it_and_the_queue_pair_opens_again(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    for round_ in range(4):
        old = await h.open(0, mtu_code=1, init_psn=100)
        old.silent = True
        requests = [h.request(0, 600), h.request(0, 256 * 60), h.request(0, 300)]
        h.submit(requests[0])
        h.desc.send_nowait(AxiStreamFrame(requests[1].descriptor()))
        data = requests[1].data
        if round_ % 2:
            h.data.send_nowait(AxiStreamFrame(data))
        await ClockCycles(dut.clk, 120 + rng.randrange(500))  # the second message has begun
        await h.command(0, RESET)
        # RTS at once: it must wait until the old message has drained
        new = await h.open(0, mtu_code=2, init_psn=0xFFFFFF)
        if not round_ % 2:
            await ClockCycles(dut.clk, 300)
            assert (await h.status(0))["state"] == RESET
            h.data.send_nowait(AxiStreamFrame(data))
        await h.wait_state(0, RTS)
        assert old.completions + new.completions == [(r.tag, FLUSH) for r in requests[:2]]
        new.completions.clear()
        h.submit(requests[2])
        while not new.completions:
            h.check()
            await ClockCycles(dut.clk, 10)
        assert new.completions == [(requests[2].tag, SUCCESS)]
        assert [m.data for m in new.responder.messages] == [requests[2].data]
        await h.command(0, RESET)
        await h.wait_state(0, RESET)


@cocotb.test()
async def every_message_completes_once_and_in_order_while_queue_pairs_die_and_open_again(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults(loss=0.04, duplicate=0.04, reorder=0.04)).start()
    h.stall(0.05)

    async def reopen(qp: int) -> None:
        fatal = rng.choice([Ack.INV_REQ, Ack.ACCESS, Ack.REM_OP])
        peer = await h.open(qp, mtu_code=rng.choice([1, 2]), retry_cnt=rng.choice([1, 7]), ack_timeout=5)
        peer.responder.refuse = lambda packet: fatal if rng.random() < 0.02 else None
        peer.silent = rng.random() < 0.1

    requests = []
    for qp in range(4):
        await reopen(qp)
    for _ in range(80):
        qp = rng.randrange(4)
        requests.append(h.submit(h.request(qp, some_length(rng, 512))))
        await ClockCycles(dut.clk, rng.randrange(1000 // len(dut.m_axis_tkeep)))
        if rng.random() < 0.2:
            qp = rng.randrange(4)
            await h.command(qp, RESET)
            await reopen(qp)
    await h.completed(len(requests), cycles=200000)
    await ClockCycles(dut.clk, 200)
    statuses = statuses_of(h, requests)
    dut._log.info("%d of %d messages succeeded", list(statuses.values()).count(SUCCESS), len(requests))


@cocotb.test()
async def messages_for_a_queue_pair_that_is_not_open_are_flushed(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    await h.open(1, mtu_code=1)
    for qp in (0, 200):  # never opened; does not exist
        await h.open(qp, mtu_code=1)
        await h.command(qp, RESET)
    await ClockCycles(dut.clk, 100)
    requests = [h.submit(h.request(qp, 900)) for qp in (0, 200, 1, 200, 0, 1)]
    requests.append(h.submit(Request(200, b"", tag=77)))
    await h.completed(7)
    for qp, status in ((0, FLUSH), (200, FLUSH), (1, SUCCESS)):
        assert h.peers[qp].completions == [(r.tag, status) for r in requests if r.qp == qp]


@cocotb.test()
async def a_stream_that_disagrees_with_its_descriptor_fails_that_message_only_after_the_earlier_ones(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    cases = [
        (1000, 999), (1000, 1001), (600, 1500), (1500, 600), (512, 513), (512, 256), (512, 1024),
        (0, 0), ((1 << 31) + 1, 300), (1, 2),
    ]  # fmt: skip
    for announced, arriving in cases:
        peer = await h.open(2, mtu_code=1)
        before = h.request(2, 700)
        wrong = h.request(2, arriving, length=announced)
        after = h.request(2, 700)
        for r in (before, wrong, after):
            h.submit(r)
        while len(peer.completions) < 3:
            h.check()
            await ClockCycles(dut.clk, 10)
        expected = [(before.tag, SUCCESS), (wrong.tag, LOC_LEN), (after.tag, FLUSH)]
        assert peer.completions == expected, f"{announced} announced, {arriving} arriving"
        assert [m.data for m in peer.responder.messages] == [before.data]
        assert (await h.status(2))["state"] == ERR
        await h.command(2, RESET)


@cocotb.test()
async def pause_stops_the_clocks_of_the_timers(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=4)
    peer.silent = True
    h.submit(h.request(0, 100))
    while not peer.headers:
        await RisingEdge(dut.clk)
    dut.tx_paused.value = 1
    await ClockCycles(dut.clk, 3000)
    assert (await h.status(0))["local_ack_timeout_err"] == 0
    dut.tx_paused.value = 0
    peer.silent = False
    await ClockCycles(dut.clk, 700)
    assert (await h.status(0))["local_ack_timeout_err"] == 1
    await h.completed(1)


@cocotb.test()
async def only_eligible_queue_pairs_send_and_they_take_turns(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    for qp in range(4):
        await h.open(qp, mtu_code=1)
    dut.cc_eligible.value = 0
    order = []
    requests = [h.submit(h.request(qp, 256 * 8)) for qp in range(4)]
    await ClockCycles(dut.clk, 8 * 4 * 256 // len(dut.m_axis_tkeep) + 200)
    assert not any(p.headers for p in h.peers.values())
    dut.cc_eligible.value = 0b1011
    while len(order) < 24:
        await RisingEdge(dut.sent_valid)
        await RisingEdge(dut.clk)
        order.append(int(dut.sent_qp.value))
    assert 2 not in order
    assert all(set(order[i : i + 3]) == {0, 1, 3} for i in range(0, 21, 3)), order
    dut.cc_eligible.value = 0xF
    await h.completed(4)
    h.verify(requests)
