# SPDX-License-Identifier: Apache-2.0
"""States of a queue pair follow the verbs, and an idle connection is supervised."""

import itertools

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from lib.requester_bench import ERR, FLUSH, INIT, RESET, RETRY_EXC, RTR, RTS, SQD, SUCCESS, Harness
from lib.responder import Ack, Faults
from lib.runner import seed


@cocotb.test()
async def states_follow_the_verbs_and_messages_before_ready_to_send_are_flushed(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1)
    await h.command(0, RESET)
    flushed = []
    for state in (INIT, RTR):
        await h.command(0, state)
        await h.wait_state(0, state)
        flushed.append(h.submit(h.request(0, 700)))
        await h.completed(len(flushed))
    assert peer.completions == [(r.tag, FLUSH) for r in flushed] and not peer.headers
    await h.command(0, SQD)  # the verbs define no transition from RTR to SQD
    await ClockCycles(dut.clk, 40)
    assert (await h.status(0))["state"] == RTR
    await h.command(0, RTS)
    await h.wait_state(0, RTS)
    for state in (INIT, RTR):  # nor back
        await h.command(0, state)
        await ClockCycles(dut.clk, 40)
        assert (await h.status(0))["state"] == RTS
    request = h.submit(h.request(0, 700))
    await h.completed(3)
    assert peer.completions[2:] == [(request.tag, SUCCESS)]
    await h.command(0, ERR)
    await h.command(0, RTS)  # only through RESET
    await ClockCycles(dut.clk, 40)
    assert (await h.status(0))["state"] == ERR


@cocotb.test()
async def a_draining_queue_pair_finishes_what_it_began_reports_it_and_resumes(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    for attempt in range(6):
        peer = await h.open(0, mtu_code=1, ack_timeout=4)
        requests = [h.submit(h.request(0, 256 * 6)) for _ in range(4)]
        loses = iter([True] * (attempt % 3))
        peer.responder.refuse = lambda packet, loses=loses: Ack.RNR if next(loses, False) else None
        while len(peer.headers) < 1 + 3 * attempt:
            await RisingEdge(dut.clk)
        await h.command(0, SQD)
        for _ in range(400):
            status = await h.status(0)
            if status["drained"]:
                break
            await ClockCycles(dut.clk, 20)
        assert (status["state"], status["drained"]) == (SQD, 1)
        assert status["una"] == status["nxt"] != status["wr"]
        begun = len(peer.responder.messages)
        assert 1 <= begun < 4 and status["nxt"] == (peer.row["init_psn"] + 6 * begun) & 0xFFFFFF
        await ClockCycles(dut.clk, 300)
        assert len(peer.responder.messages) == len(peer.completions) == begun, "a message began while draining"
        await h.command(0, RTS)
        await h.completed(4 * (attempt + 1))
        h.verify(requests)
        assert (await h.status(0))["drained"] == 0
        await h.command(0, RESET)
        await h.wait_state(0, RESET)


@cocotb.test()
async def a_row_without_a_source_port_gets_one_of_its_queue_pair_numbers(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    ports = set()
    for qp in range(4):
        peer = await h.open(qp, mtu_code=1, udp_sport=0, dest_qpn=0x123450 + qp)
        h.submit(h.request(qp, 300))
        await h.completed(qp + 1)
        ports |= {p["udp_sport"] for p in peer.headers}
    h.check()  # the harness has its own hash
    assert len(ports) == 4 and all(port >= 0xC000 for port in ports)


@cocotb.test()
async def a_silent_connection_gets_keep_alives_at_its_interval_and_messages_go_on_as_if_nothing_were(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    dut.keep_alive_ticks.value = 40
    peer = await h.open(0, mtu_code=1)
    idle = await h.open(1, mtu_code=1)
    requests = []
    for _ in range(4):
        requests.append(h.submit(h.request(0, 700)))
        await h.completed(len(requests))
        await ClockCycles(dut.clk, rng.randrange(40, 2 * 40) * 8)
    await ClockCycles(dut.clk, 400)
    h.verify(requests)
    assert 3 <= peer.responder.keep_alives <= 9 and idle.responder.keep_alives >= 5
    empty = idle.headers
    assert all(p["opcode"] == 0x0A and p["payload_len"] == p["dma_len"] == 0 and p["ack_req"] for p in empty)
    for earlier, later in itertools.pairwise(p["cycle"] for p in empty):
        assert 40 * 8 <= later - earlier <= 40 * 8 + 200
    assert (await h.status(1))["messages_ok"] == 0


@cocotb.test()
async def a_keep_alive_without_an_answer_fails_the_queue_pair_as_data_do(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    dut.keep_alive_ticks.value = 40
    dead = await h.open(1, mtu_code=1, retry_cnt=2, ack_timeout=2)
    alive = await h.open(2, mtu_code=1)
    dead.silent = True
    await h.wait_state(1, ERR)
    assert len(dead.headers) == 3 and h.failed == [1] and not h.completions
    request = h.submit(h.request(1, 300))
    later = h.submit(h.request(1, 300))
    await h.completed(2)
    assert dead.completions == [(request.tag, RETRY_EXC), (later.tag, FLUSH)]
    assert (await h.status(2))["state"] == RTS and alive.responder.keep_alives
    dut.keep_alive_ticks.value = 0
    await ClockCycles(dut.clk, 100)
    before = len(alive.headers)
    await ClockCycles(dut.clk, 1000)
    assert len(alive.headers) == before
