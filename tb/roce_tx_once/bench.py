# SPDX-License-Identifier: Apache-2.0
"""Without retransmission: rings of a few packets keep a long line full, and the first loss ends its queue pair alone.

The queue pairs are set to seven retries and endless RNR retries (`Harness.open`), and get none.
"""

import os
from pathlib import Path

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from lib.requester_bench import (
    ERR,
    FLUSH,
    RESET,
    RETRY_EXC,
    RNR_EXC,
    RTS,
    SUCCESS,
    WRITE,
    Harness,
    Peer,
    random_traffic,
    some_length,
    statuses_of,
)
from lib.responder import Ack, Faults
from lib.runner import Bench, seed

# What does not depend on retries: the rest of the life of a ring.
from roce_tx.bench import (  # noqa: F401 (more tests of this bench)
    a_fatal_nak_fails_its_message_and_flushes_the_rest_of_its_queue_pair_alone,
    a_stream_that_disagrees_with_its_descriptor_fails_that_message_only_after_the_earlier_ones,
    reset_inside_a_message_flushes_it_and_the_queue_pair_opens_again,
)
from roce_tx.connections import (  # noqa: F401
    a_message_that_waits_while_its_queue_pair_is_opened_at_another_server_is_flushed_and_counted,
)
from roce_tx.cut_through import (  # noqa: F401
    a_stream_that_ends_early_inside_a_packet_on_its_way_is_filled_and_fails_its_message_once,
)
from roce_tx.states import (  # noqa: F401
    a_silent_connection_gets_keep_alives_at_its_interval_and_messages_go_on_as_if_nothing_were,
)

BENCH = Bench(
    top="roce_tx_bench",
    configs=[
        {"DATA_W": 64, "N_QP": 4, "RETRANSMIT": 0, "RING_BYTES": 8192, "SLOTS": 64},
        {"DATA_W": 512, "N_QP": 4, "RETRANSMIT": 0, "RING_BYTES": 16384, "SLOTS": 64},
    ],
    sources=[Path(__file__).parents[1] / "roce_tx" / "roce_tx_bench.sv"],
)
SLOTS = 64
PATIENT = 14  # ack_timeout that no wait for other queue pairs reaches


def ring_bytes() -> int:
    return int(os.environ["PARAM_RING_BYTES"])


def lose(peer: Peer, psn: int) -> None:
    """The packet of this PSN does not arrive."""
    receive, psn = peer.responder.receive, psn & 0xFFFFFF
    peer.responder.receive = lambda packet: [] if packet.psn == psn else receive(packet)


def sent_once(peer: Peer) -> bool:
    psns = [p["psn"] for p in peer.headers]
    return psns == [(peer.row["init_psn"] + n) & 0xFFFFFF for n in range(len(psns))]


@cocotb.test()
async def a_line_to_a_far_peer_is_full_though_the_ring_holds_four_packets(dut):
    rng = seed()
    lanes = len(dut.m_axis_tkeep)
    mtu = ring_bytes() // 4
    flight = 20 * mtu // lanes  # cycles there and back: twenty packets
    h = await Harness(dut, rng, Faults(delay=flight // 2)).start()
    await h.open(0, mtu_code=mtu.bit_length() - 8, ack_timeout=PATIENT)
    requests = [h.submit(h.request(0, mtu * 15, verb=WRITE)) for _ in range(4)]
    dut.st_qp.value = 0
    beats, idle, most, cycle = 0, 0, 0, 0
    while beats < 60 * mtu // lanes:
        await RisingEdge(dut.clk)
        taken = dut.m_axis_tvalid.value == 1 and dut.m_axis_tready.value == 1
        beats += taken
        idle += beats > 0 and not taken
        cycle += 1
        if cycle % 32 == 0:
            most = max(most, (int(dut.st_nxt.value) - int(dut.st_una.value)) & 0xFFFFFF)
    await h.completed(4)
    h.verify(requests)
    dut._log.info("%d beats with %d idle cycles between them, %d packets in flight", beats, idle, most)
    assert 20 <= most <= SLOTS
    assert idle <= 4 * 5, "more than the few cycles in which a message begins"


@cocotb.test()
async def packets_in_flight_are_bounded_by_slots_alone_and_complete_by_their_acknowledgement(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=0, init_psn=0xFFFFF0)
    peer.silent = True
    base = peer.row["init_psn"]
    requests = [h.submit(h.request(0, 256 * 10 - 3, verb=WRITE, imm=None)) for _ in range(10)]
    for acknowledged in (0, 31, 32, 40):
        if acknowledged:
            h.acknowledge(0, Ack.OK, base + acknowledged - 1)
        while len(peer.headers) < min(100, acknowledged + SLOTS):
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, 400)
        assert len(peer.headers) == min(100, acknowledged + SLOTS)
        assert peer.completions == [(r.tag, SUCCESS) for r in requests[: acknowledged // 10]]
        assert (await h.status(0))["bytes_acked"] == 256 * acknowledged - 3 * (acknowledged // 10)
    h.acknowledge(0, Ack.OK, base + 99)
    await h.completed(10)
    assert peer.completions == [(r.tag, SUCCESS) for r in requests] and sent_once(peer)
    assert (await h.status(0))["bytes_acked"] == sum(len(r.data) for r in requests)


async def messages_arrive(dut, cut_through: int) -> None:
    codes = (1, 1, 2, 3, 4, 5)
    h = await random_traffic(dut, Faults(), 24, 0.2, codes, cut_through=cut_through, ack_timeouts=(PATIENT,))
    assert all(sent_once(h.peers[qp]) for qp in range(4))


@cocotb.test()
async def messages_of_every_mtu_arrive_under_stalls(dut):
    await messages_arrive(dut, 0)


@cocotb.test()
async def messages_of_every_mtu_arrive_under_stalls_with_cut_through(dut):
    await messages_arrive(dut, 1)


@cocotb.test()
async def a_slot_acknowledged_before_it_has_left_keeps_its_bytes(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=5, ack_timeout=0)
    h.payload.pause = True
    requests = [h.submit(h.request(0, peer.mtu * 3)) for _ in range(3)]
    while (await h.status(0))["packets_sent"] < 2:
        pass
    h.acknowledge(0, Ack.OK, peer.row["init_psn"] + 1)  # who does that has not seen it
    await ClockCycles(dut.clk, 4 * peer.mtu // len(dut.m_axis_tkeep))
    h.payload.pause = False
    await h.completed(3)
    h.verify(requests)
    assert sent_once(peer)


@cocotb.test()
async def a_lost_packet_ends_its_queue_pair_with_the_right_completions_and_it_opens_again(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    for round_ in range(3):
        before = len(h.completions)
        bad = await h.open(1, mtu_code=1, ack_timeout=PATIENT)
        good = await h.open(3, mtu_code=2, ack_timeout=PATIENT)
        lose(bad, bad.row["init_psn"] + 5 + round_)  # of the second message
        bads = [h.submit(h.request(1, 1280)) for _ in range(3)]
        goods = [h.submit(h.request(3, 3000)) for _ in range(2)]
        bads.append(h.submit(h.request(1, 100 * 256)))  # more packets than ring and slots hold
        await h.completed(before + 6)
        bads.append(h.submit(h.request(1, 100)))
        await h.completed(before + 7)
        assert bad.completions == list(zip([r.tag for r in bads], [SUCCESS, RETRY_EXC, *[FLUSH] * 3], strict=True))
        assert good.completions == [(r.tag, SUCCESS) for r in goods] and len(good.responder.messages) == 2
        assert [m.data for m in bad.responder.messages] == [bads[0].data]
        status = await h.status(1)
        assert (status["state"], status["packet_seq_err"], status["packets_retransmitted"]) == (ERR, round_ + 1, 0)
        assert sent_once(bad) and h.failed == [1] * (round_ + 1)
        for qp in (1, 3):
            await h.command(qp, RESET)
            await h.wait_state(qp, RESET)


@cocotb.test()
async def a_lost_last_packet_ends_its_queue_pair_when_the_acknowledgement_is_due(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(2, mtu_code=1, ack_timeout=4)
    lose(peer, peer.row["init_psn"] + 5)
    requests = [h.submit(h.request(2, 700)) for _ in range(2)]
    await h.completed(2)
    assert peer.completions == [(requests[0].tag, SUCCESS), (requests[1].tag, RETRY_EXC)] and sent_once(peer)
    status = await h.status(2)
    assert (status["state"], status["local_ack_timeout_err"], status["messages_err"]) == (ERR, 1, 1)


@cocotb.test()
async def a_receiver_that_is_not_ready_ends_its_queue_pair_at_once(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=PATIENT)
    victim = (peer.row["init_psn"] + 2) & 0xFFFFFF
    peer.responder.refuse = lambda packet: Ack.RNR if packet.psn == victim else None
    requests = [h.submit(h.request(0, 400)) for _ in range(3)]
    await h.completed(3)
    assert peer.completions == list(zip([r.tag for r in requests], [SUCCESS, RNR_EXC, FLUSH], strict=True))
    assert (await h.status(0))["rnr_nak"] == 1 and sent_once(peer)


@cocotb.test()
async def every_message_completes_once_and_in_order_while_a_lossy_line_ends_queue_pairs(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults(loss=0.02, duplicate=0.04, reorder=0.02)).start()
    h.stall(0.05)
    requests = []
    for qp in range(4):
        await h.open(qp, mtu_code=rng.choice([1, 2]), ack_timeout=6)
    for _ in range(80):
        qp = rng.randrange(4)
        requests.append(h.submit(h.request(qp, some_length(rng, 512))))
        await ClockCycles(dut.clk, rng.randrange(1000 // len(dut.m_axis_tkeep)))
        if (await h.status(qp))["state"] == ERR:
            await h.command(qp, RESET)
            await h.open(qp, mtu_code=rng.choice([1, 2]), ack_timeout=6)
    await h.completed(len(requests), cycles=200000)
    await ClockCycles(dut.clk, 300)
    statuses = statuses_of(h, requests)
    for qp in range(4):
        assert (await h.status(qp))["state"] in (RTS, ERR)
    assert all(sent_once(peer) for peer in h.of_qpn.values())
    assert set(statuses.values()) <= {SUCCESS, RETRY_EXC, FLUSH} and len(set(statuses.values())) == 3
    dut._log.info("%d of %d messages succeeded", list(statuses.values()).count(SUCCESS), len(requests))
