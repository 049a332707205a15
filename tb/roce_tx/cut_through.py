# SPDX-License-Identifier: Apache-2.0
"""With cut-through a packet leaves while it arrives, and no input stream causes a hang or a double completion."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from lib.requester_bench import FLUSH, LOC_LEN, RESET, SUCCESS, WRITE, Harness, random_traffic
from lib.responder import Faults
from lib.runner import seed


@cocotb.test()
async def a_packet_leaves_while_it_comes_and_whole_messages_arrive(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    lanes = len(dut.m_axis_tkeep)
    for cut_through in (0, 1):
        dut.cut_through.value = cut_through
        await h.open(0, mtu_code=5)
        requests = [h.submit(h.request(0, 4096, verb=WRITE, imm=None))]
        while dut.s_axis_data_tvalid.value != 1:
            await RisingEdge(dut.clk)
        waited = 0
        while dut.m_axis_tvalid.value != 1:
            await RisingEdge(dut.clk)
            waited += 1
        dut._log.info("cut_through %d: first beat offered to first beat out in %d cycles", cut_through, waited)
        assert waited < 30 if cut_through else waited >= 4096 // lanes
        await h.completed(cut_through + 1)
        h.verify(requests)
        await h.command(0, RESET)
        await h.wait_state(0, RESET)


@cocotb.test()
async def cut_through_delivers_under_faults_and_a_source_that_stalls(dut):
    await random_traffic(dut, Faults(loss=0.05, duplicate=0.05, reorder=0.05), 40, stall=0.2, cut_through=1)


@cocotb.test()
async def a_stream_that_ends_early_inside_a_packet_on_its_way_is_filled_and_fails_its_message_once(dut):
    rng = seed()
    h = await Harness(dut, rng, Faults()).start()
    dut.cut_through.value = 1
    cases = [
        (1000, 999), (1000, 1001), (1000, 100), (600, 1500), (1500, 600), (512, 513), (512, 256), (512, 1024),
        (256 * 8, 256 * 7 + 100), (1, 2), (0, 0), ((1 << 31) + 1, 300),
    ]  # fmt: skip
    for end in ("acknowledged", "reset"):
        for announced, arriving in cases:
            peer = await h.open(2, mtu_code=1)
            before = h.request(2, 700)
            wrong = h.request(2, arriving, length=announced, verb=WRITE, imm=None)
            after = h.request(2, 700)
            for r in (before, wrong, after):
                h.submit(r)
            if end == "reset":
                await ClockCycles(dut.clk, 700 // len(dut.m_axis_tkeep) + rng.randrange(400))
                await h.command(2, RESET)
            while len(peer.completions) < 3:
                h.check()
                await ClockCycles(dut.clk, 10)
            await ClockCycles(dut.clk, 60)
            where = f"{announced} announced, {arriving} arriving, {end}"
            assert [tag for tag, _ in peer.completions] == [before.tag, wrong.tag, after.tag], where
            if end == "acknowledged":
                assert [status for _, status in peer.completions] == [SUCCESS, LOC_LEN, FLUSH], where
                for m in peer.responder.messages[1:]:  # whole packets: what came, then zeros
                    assert m.data == wrong.data.ljust(len(m.data), b"\0")[: len(m.data)], where
            else:
                assert all(status in (SUCCESS, FLUSH, LOC_LEN) for _, status in peer.completions), where
            await h.command(2, RESET)
            await h.wait_state(2, RESET)
