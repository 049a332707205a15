# SPDX-License-Identifier: Apache-2.0
"""A front end reacts to congestion as in the papers: AdvCam figure 9, and QCN's messages, from wire to wire.

Times are given in octets of the line, so that at 25 and 100 Gb/s as much data passes between two events as at 10.

Figure 14 spans milliseconds: `crates/board/tests/figure_14.rs` takes it on the same verilated top.
"""

import cocotb
from cocotb.triggers import ClockCycles, Timer
from lib.board import SUCCESS, Board, start
from lib.cable import time_limit
from lib.cnm import cnm
from lib.emulated_switch import EmulatedSwitch
from lib.rates import QCN, Sample, cuts_of, sample_rates, set_dcqcn
from lib.roce import PEER_MAC
from lib.runner import seed
from lib.tops import WIDTHS

BENCHES = WIDTHS

MTU_1024, MTU_4096 = 3, 5
PACKET = 4096 + 90  # a middle packet of figure 9 with everything around it
US = 1000  # ns
ACTED = 300  # cycles within which a notification has surely been acted upon


async def write_memory(board: Board, qp: int, payload: bytes, size: int) -> None:
    """The payload as WRITE messages of `size`; returns when all have completed, without an error."""
    count = -(-len(payload) // size)
    for tag in range(count):
        await board.post(qp, payload[tag * size :][:size], tag, tag * size)
    assert [await board.completion() for _ in range(count)] == [(qp, tag, SUCCESS) for tag in range(count)]
    assert board.peer.memory[: len(payload)] == payload
    assert await board.count("packets_retransmitted") == 0 and not board.peer.counts


def steady(samples: list[Sample], begin: float, end: float) -> int | None:
    """R_C over a span in which it did not change."""
    rates = {s.rate_current for s in samples if begin <= s.time_ns <= end}
    return rates.pop() if len(rates) == 1 else None


@cocotb.test(**time_limit(2))
async def figure_9_the_first_cut_halves_and_later_ones_shrink_with_alpha(dut):
    """AdvCam VI B, figure 9: threshold half the line, window 5000 words of 8 octets; alpha = 1, about 0.8, about 0.3.

    The figure does not give its parameters; these are those of scenarios/advcam-9.toml, which describes their effects.
    """
    qp, rng = 2, seed()
    board = await start(dut, {qp: 0xFFFF80})
    await board.open(qp, mtu=MTU_4096)
    line = board.line
    await set_dcqcn(board, g_shift=4, alpha_interval=22_400, increase_interval=115_000, decrease_interval=4_000)
    switch = EmulatedSwitch(board.peer, line, qp, threshold=0.5, cooldown=81_250)
    samples = await sample_rates(board, qp, octets=512)
    await write_memory(board, qp, rng.randbytes(320_000), 60_000)

    cuts, seen = cuts_of(samples), board.peer.seen
    for (before, after), notified in zip(cuts, switch.notified_ns, strict=True):
        depth = 1 - after.rate_current / before.rate_current
        dut._log.info(f"alpha {before.alpha:.3f}: R_C {line.gbps_of(before.rate_current):.3f} Gb/s, cut by {depth:.4f}")
        assert abs(depth - before.alpha / 2) < 1e-4
        assert after.rate_target == before.rate_current, "ClampTargetRate is on"
        assert 0 < after.time_ns - notified < ACTED * line.cycle_ns
    first, second, third = (before.alpha for before, _ in cuts)
    assert (first, cuts[0][0].rate_current, cuts[0][1].rate_current) == (1, line.rate, line.rate - line.rate // 2)
    assert 0.7 < second < 0.9 and 0.2 < third < 0.4
    for name in ("rx_cnp_packets", "rp_cnp_ignored"):
        assert await board.count(name) == (3 if name == "rx_cnp_packets" else 0), name

    # The throughput tracks R_C: to a packet in windows in which R_C stood still, and over the whole run.
    lag = 5 * PACKET * line.octet_ns + 100 * line.cycle_ns  # packets that were chosen before, and the pipeline
    window, compared = switch.window * line.octet_ns, 0
    for end, _ in switch.measured:
        rate = steady(samples, end - window - lag, end)
        if rate is not None and end - window > seen[0].start_ns:
            compared += 1
            assert abs(switch.throughput_gbps(end) - line.gbps_of(rate)) <= 8 * PACKET / window, f"at {end:.0f} ns"
    assert compared > 20
    begin = next(p.start_ns for p in seen if p.start_ns >= cuts[0][1].time_ns + lag)
    end = seen[-8].start_ns
    sent = sum(p.wire_bytes for p in seen if begin <= p.start_ns < end)
    inside = [s.rate_current for s in samples if begin <= s.time_ns + lag < end]
    allowed = line.gbps_of(sum(inside) / len(inside)) * (end - begin) / 8
    dut._log.info(f"sent {sent} of {allowed:.0f} bytes that R_C allowed; {compared} windows compared")
    assert abs(sent / allowed - 1) < 0.01


@cocotb.test(**time_limit(2))
async def many_cnps_in_quick_succession_lose_no_work_request(dut):
    """AdvCam VI B: no work request lost "even when the threshold was lowered aggressively"."""
    qp, rng = 0, seed()
    board = await start(dut, {qp: 1})
    await board.open(qp, mtu=MTU_1024)
    line, lowest = board.line, board.line.rate // 10
    await set_dcqcn(board, increase_interval=5_600, decrease_interval=1_600, rate_min=lowest)
    switch = EmulatedSwitch(board.peer, line, qp, threshold=0.05, cooldown=3_200, window=8_000)
    samples = await sample_rates(board, qp, octets=512)
    await write_memory(board, qp, rng.randbytes(50_000), 5_000)
    await ClockCycles(dut.clk, ACTED)
    assert len(switch.notified_ns) > 20
    assert await board.registers.read("qp.rp_cnp_handled", qp) == len(switch.notified_ns)
    assert min(s.rate_current for s in samples) == lowest


@cocotb.test(**time_limit(2))
async def a_qcn_message_cuts_the_rate_of_its_queue_pair_on_the_wire(dut):
    """IEEE 802.1Qau: R_C falls by G_d |F_b|; the switch's message comes in as an Ethernet frame."""
    qp, feedback, rng = 1, 48, seed()
    board = await start(dut, {qp: 0, 3: 0})
    read, count, line = board.registers.read, board.count, board.line
    await board.registers.write_fields("qp.congestion", qp, law=QCN, group=2)
    await board.registers.write("qcn.timer_period", 0, 2)
    await board.registers.write("qcn.byte_limit", 0, 2)  # so that the rate stays where the message puts it

    await board.peer.send(cnm(2, feedback))  # a queue pair that is not ready
    await board.peer.send(cnm(qp, feedback, dst=PEER_MAC))
    await board.peer.cable.send(cnm(qp, feedback), damaged=True)
    await ClockCycles(dut.clk, ACTED)
    assert await read("qp.rate_current", qp) == line.rate
    assert [await count(name) for name in ("rx_cnm_packets", "rx_cnm_not_ready")] == [0, 1]
    bad = await count("rx_fcs_errors") + await count("rx_bad_frames")  # a hard MAC does not report why
    assert bad == 1

    await board.peer.send(cnm(qp, feedback))
    await ClockCycles(dut.clk, ACTED)
    cut = line.rate - line.rate * feedback // 128
    assert await read("qp.rate_current", qp) == cut
    assert await read("qp.rate_target", qp) == line.rate
    assert await read("qp.rp_cnp_handled", qp) == await count("rx_cnm_packets") == 1
    assert await read("qp.rate_current", 3) == line.rate, "a message for one queue pair touched another"

    await board.peer.notify(qp)
    await Timer(2 * US, "ns")
    assert await read("qp.rate_current", qp) == cut and await count("rp_cnp_ignored") == 1, "a CNP is DCQCN's"

    rate_min = await board.registers.read("qcn.rate_min", 2)
    await board.registers.write("qcn.rate_min", line.rate + 1, 2)
    assert await count("rp_cnp_clamped") == 0
    await board.peer.send(cnm(qp, feedback))
    await ClockCycles(dut.clk, ACTED)
    assert await read("qp.rate_current", qp) == line.rate, "R_min above the line counts as the line"
    assert await count("rp_cnp_clamped") == 1
    await board.registers.write("qcn.rate_min", rate_min, 2)
    await board.peer.send(cnm(qp, feedback))
    await ClockCycles(dut.clk, ACTED)
    assert await read("qp.rate_current", qp) == cut and await count("rp_cnp_clamped") == 1

    await write_memory(board, qp, rng.randbytes(80_000), 80_000)
    packets = board.peer.seen[10:-1]  # after the credit saved at the line rate
    wire = 8 * sum(p.wire_bytes for p in packets[:-1]) / (packets[-1].start_ns - packets[0].start_ns)
    dut._log.info(f"{wire:.3f} Gb/s on the wire, R_C {line.gbps_of(cut):.3f}")
    assert abs(wire / line.gbps_of(cut) - 1) < 0.02
