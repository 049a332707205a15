# SPDX-License-Identifier: Apache-2.0
"""Every front end keeps every promise of `lib/front_end.py`; cut-through, draining and keep-alive on the wire."""

import cocotb
from cocotb.triggers import RisingEdge, Timer
from lib.board import ERR, RTS, SQD, SUCCESS, start
from lib.front_end import ALL, US
from lib.register_map import unpack
from lib.runner import seed
from lib.tops import TOPS

BENCHES = TOPS

globals().update({test.name: test for test in ALL})


def long_stalls(rng, beats: int):
    """A pause generator: at random, at most this number of beats apart, a gap that no buffer on the path can hide."""
    while True:
        yield from [False] * rng.randrange(beats)
        yield from [True] * rng.randrange(50, 200)


async def first_byte(dut, board, size: int, tag: int) -> int:
    """Cycles from the first payload beat in to the first of its frame at the MAC's far side, on an idle link."""
    waiting = cocotb.start_soon(board.post(0, bytes(size), tag, 0))
    while not (dut.s_axis_data_tvalid.value and dut.s_axis_data_tready.value):
        await RisingEdge(dut.clk)
    cycles = 0
    while not board.peer.cable.starts():
        await RisingEdge(dut.clk)
        cycles += 1
    await waiting
    assert await board.completion() == (0, tag, SUCCESS)
    return cycles


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cut_through_puts_the_first_byte_on_the_wire_within_100_cycles(dut):
    board = await start(dut, {0: 0})
    for cut_through in (0, 1):
        await board.registers.write_fields("requester", cut_through=cut_through)
        for tag, size in enumerate((64, 1024, 4096, 9000)):
            cycles = await first_byte(dut, board, size, tag)
            dut._log.info(f"cut_through {cut_through}, {size} B: first payload beat to first byte in {cycles} cycles")
            assert cycles < 100 + (0 if cut_through else min(size, 4096) // len(dut.s_axis_data_tkeep))


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_source_that_stalls_under_cut_through_spoils_frames_but_no_data(dut):
    rng = seed()
    board = await start(dut, {0: 3, 1: 0xFFFFF8})
    await board.registers.write_fields("requester", cut_through=1)
    board.peer.cable.forgives_damage = True
    board.data.set_pause_generator(long_stalls(rng, 16_000 // len(dut.s_axis_data_tkeep)))
    payloads = [rng.randbytes(rng.randrange(1, 20_000)) for _ in range(12)]
    for tag, payload in enumerate(payloads):
        await board.post(rng.choice([0, 1]), payload, tag, tag * 0x8000, tag)
    done = [await board.completion() for _ in payloads]
    assert sorted(tag for _, tag, _ in done) == list(range(12)) and all(status == SUCCESS for _, _, status in done)
    for tag, payload in enumerate(payloads):
        assert board.peer.memory[tag * 0x8000 : tag * 0x8000 + len(payload)] == payload, f"message {tag}"
    assert sorted(imm for _, _, imm in board.peer.received) == list(range(12))
    underruns = await board.count("tx_underruns")
    dut._log.info(f"{underruns} frames ran dry, {await board.count('packets_retransmitted')} packets sent again")
    assert underruns == board.peer.cable.damaged > 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_draining_queue_pair_reports_when_it_is_done_and_a_keep_alive_finds_a_dead_peer(dut):
    board = await start(dut, {0: 0, 1: 0})
    await board.post(0, bytes(20_000), 1, 0)
    await Timer(6 * US, "ns")
    await board.registers.write("qp.state", SQD, 0)
    await board.post(0, bytes(100), 2, 0)
    assert await board.completion() == (0, 1, SUCCESS)
    while not await board.field("qp.state", "drained", 0):
        await Timer(1 * US, "ns")
    assert await board.state(0) == SQD
    await board.registers.write("qp.state", RTS, 0)
    assert await board.completion() == (0, 2, SUCCESS)
    await board.registers.write("keep_alive", 20)
    await Timer(60 * US, "ns")
    assert {p.qp for p in board.peer.seen if p.opcode == 0x0A and not p.payload} == {0, 1}
    board.peer.verdict = lambda packet: "drop" if packet.qp == 1 else None
    await board.open(1, ack_timeout=1, retry_cnt=1)
    while await board.state(1) != ERR:
        await Timer(10 * US, "ns")
    assert await board.state(0) == RTS
    assert await board.count("qp_errors") == 1


async def meters(board, qp: int) -> dict[str, int]:
    read = board.registers.read
    long = {n: await read(f"meter.{n}_lo", qp) | await read(f"meter.{n}_hi", qp) << 32 for n in LONG_METERS}
    short = {n: await read(f"meter.{n}", qp) for n in ("latency_first_packet", "latency_last_packet")}
    return long | short | unpack("meter.status", await read("meter.status", qp))


LONG_METERS = ("transfer_time_tot", "bytes", "packets", "latency_sum")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def meters_of_a_series_are_those_of_its_packets(dut):
    board = await start(dut, {0: 0, 1: 0xFFFFFE})
    await board.post(1, bytes(3000), 0, 0)
    assert await board.completion() == (1, 0, SUCCESS)
    sizes = [9000, 100, 4096, 5000]
    for tag, size in enumerate(sizes):
        await board.post(1, bytes(size), tag, 0, series=tag == 0)
    await RisingEdge(board.descriptors.bus.tvalid)
    cycles = 0
    waiting = cocotb.start_soon(take(board, len(sizes)))
    while not waiting.done():
        await RisingEdge(dut.clk)
        cycles += 1
    found = await meters(board, 1)
    dut._log.info(f"{found}, {cycles} cycles from the first descriptor to the last completion")
    assert found["bytes"] == sum(sizes) and found["packets"] == 3 + 1 + 1 + 2 and found["resent"] == 0
    assert 0 < found["latency_first_packet"] <= found["transfer_time_tot"] < cycles
    assert 0 < found["latency_last_packet"] < found["transfer_time_tot"]
    assert found["latency_last_packet"] < found["latency_sum"] < 7 * found["transfer_time_tot"]
    assert found["transfer_time_tot"] > sum(sizes) // len(dut.s_axis_data_tkeep)
    assert not any((await meters(board, 0)).values())

    # A run of the source with a warm-up: that is sent and completed, and not in the series.
    for name, value in {"warm_up": 64, "length_min": 5000, "count": 5, "raddr_lo": 0}.items():
        await board.registers.write(f"source.{name}", value)
    await board.registers.write_fields("source.command", start=1)
    await take(board, 5)
    found = await meters(board, 0)
    assert found["bytes"] == 4 * 5000 and found["packets"] == 4 * 2
    await board.registers.write_fields("command", clear=1)
    for qp in (0, 1):
        assert not any((await meters(board, qp)).values())


async def take(board, count: int) -> None:
    for _ in range(count):
        assert (await board.completion())[2] == SUCCESS
