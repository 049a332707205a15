# SPDX-License-Identifier: Apache-2.0
"""End-to-end credits are obeyed, and their loss does not stop the transfer (IBTA 9.7.7.2)."""

import cocotb
from cocotb.triggers import ClockCycles
from lib.requester_bench import SEND, SUCCESS, WRITE, Harness, some_length
from lib.responder import CREDITS, OPCODES, Ack, Faults
from lib.runner import seed


@cocotb.test()
async def credits_let_exactly_their_number_of_messages_go_and_more_credits_more(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=0)
    peer.silent = True
    base = peer.row["init_psn"]

    async def sent(count: int) -> None:
        await ClockCycles(dut.clk, 1200)
        h.check()
        assert len(peer.headers) == count

    requests = [h.submit(h.request(0, 200, verb=SEND)) for _ in range(1)]
    await sent(1)
    h.acknowledge(0, Ack.OK, base, value=2, msn=1)  # numbers 2 and 3 may go
    requests += [h.submit(h.request(0, 200, verb=rng.choice([SEND, WRITE]), imm=5)) for _ in range(11)]
    await sent(3)
    h.acknowledge(0, Ack.OK, base + 1, value=3, msn=2)
    await sent(5)
    h.acknowledge(0, Ack.OK, base + 1, value=5, msn=2)  # unsolicited: six buffers after the second message
    await sent(8)
    h.acknowledge(0, Ack.OK, base + 1, value=1, msn=2)  # an old one takes nothing back
    h.acknowledge(0, Ack.OK, base + 7, value=0, msn=8)  # all there, no buffers: one probe
    await sent(9)
    assert peer.headers[-1]["ack_req"] and peer.check.probes == 1
    h.acknowledge(0, Ack.OK, base + 8, value=31, msn=9)  # no limit any more
    await sent(12)
    h.acknowledge(0, Ack.OK, base + 11, value=31, msn=12)
    await h.completed(12)
    assert peer.completions == [(r.tag, SUCCESS) for r in requests]


@cocotb.test()
async def a_write_needs_no_credit(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=0)
    peer.silent = True
    h.submit(h.request(0, 100, verb=SEND))
    await ClockCycles(dut.clk, 300)
    h.acknowledge(0, Ack.OK, peer.row["init_psn"], value=0, msn=1)
    for _ in range(5):
        h.submit(h.request(0, 256 * 3, verb=WRITE, imm=None))
    await ClockCycles(dut.clk, 1500)
    h.check()
    assert len(peer.headers) == 16


@cocotb.test()
async def a_peer_that_grants_nothing_is_probed_message_by_message(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults(loss=0.05)).start()
    peer = await h.open(0, mtu_code=1, ack_timeout=4)
    peer.responder.credits = lambda: 0
    requests = [h.submit(h.request(0, some_length(rng, 256), verb=SEND)) for _ in range(20)]
    await h.completed(20, cycles=200000)
    h.verify(requests)
    assert peer.check.probes >= 4  # those that began before the first answer were not limited


@cocotb.test()
async def credits_are_kept_to_whatever_the_network_loses(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults(loss=0.06, duplicate=0.05, reorder=0.05)).start()
    buffers = dict.fromkeys(range(4), 2)
    for qp in range(4):
        responder = (await h.open(qp, mtu_code=1, ack_timeout=5)).responder

        def take(packet, qp=qp, responder=responder):
            verb, first, _, imm = OPCODES[packet.opcode]
            if not (first if verb == "send" else imm):
                return None
            if not buffers[qp]:
                return Ack.RNR
            buffers[qp] -= 1
            return None

        responder.refuse = take
        responder.credits = lambda qp=qp: max(code for code, n in enumerate(CREDITS) if n <= buffers[qp])

    async def post_buffers():
        while True:
            await ClockCycles(dut.clk, rng.randrange(40, 600))
            qp = rng.randrange(4)
            buffers[qp] += rng.choice([1, 2, 5])
            if rng.random() < 0.5 and h.peers[qp].responder.messages:
                await h._reply(h.peers[qp], h.peers[qp].responder.positive(), 10)

    cocotb.start_soon(post_buffers())
    requests = [h.submit(h.request(rng.randrange(4), some_length(rng, 256))) for _ in range(60)]
    await h.completed(60, cycles=400000)
    h.verify(requests)
    dut._log.info("%d probes", sum(p.check.probes for p in h.peers.values()))


@cocotb.test()
async def nothing_starves_without_timers_on_a_perfect_network(dut):
    """AckReq and credits alone keep everything moving: no packet may wait for an answer that was not requested."""
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    h.stall(0.1)
    for qp in range(4):
        peer = await h.open(qp, mtu_code=rng.choice([1, 2]), ack_timeout=0)
        peer.responder.credits = lambda: rng.choice([0, 0, 1, 2, 5, 31])

    async def disturb():
        while True:
            await ClockCycles(dut.clk, rng.randrange(1, 200))
            dut.cc_eligible.value = rng.getrandbits(4)
            dut.cut_through.value = rng.getrandbits(1)

    cocotb.start_soon(disturb())
    requests = [h.submit(h.request(rng.randrange(4), some_length(rng, 512))) for _ in range(60)]
    await h.completed(60, cycles=200000)
    h.verify(requests)
    assert not any([(await h.status(qp))["packets_retransmitted"] for qp in range(4)])
