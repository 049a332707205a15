# SPDX-License-Identifier: Apache-2.0
"""Framer and ICRC in series fill the line: a beat every cycle, back-to-back frames."""

from pathlib import Path

import cocotb
from cocotbext.axi import AxiStreamFrame
from lib.frames_tx import every_mtu, packet, random_packets, send_all, stalls, start, watch_frames
from lib.roce import SEND_OPCODES, WRITE_OPCODES, drive_headers
from lib.runner import Bench, seed

BENCH = Bench(
    top="roce_frame_chain",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parent / "roce_frame_chain.sv"],
)


async def send_flat_out(dut, packets) -> None:
    """Asserts that the packets leave in as many cycles as they have beats, and as scapy's frames."""
    source, sink = await start(dut)
    watch = cocotb.start_soon(watch_frames(dut, len(packets)))
    await send_all(dut, source, packets)
    frames = [bytes((await sink.recv()).tdata) for _ in packets]
    assert frames == [header.frame(payload) for header, payload in packets]
    seen = await watch
    width = len(dut.s_axis_tdata) // 8
    assert [beats for _, _, beats in seen] == [-(-len(frame) // width) for frame in frames]
    idle = seen[-1][1] + 1 - seen[0][0] - sum(beats for _, _, beats in seen)
    assert idle == 0, f"{idle} idle cycles in {len(frames)} frames"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def mtu_4096_packets_leave_without_an_idle_cycle(dut):
    rng = seed()
    await send_flat_out(dut, [packet(rng, WRITE_OPCODES["MIDDLE"], 4096) for _ in range(12)])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def empty_packets_leave_without_an_idle_cycle(dut):
    rng = seed()
    await send_flat_out(dut, [packet(rng, SEND_OPCODES["ONLY"], 0) for _ in range(40)])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def mixed_packets_leave_without_an_idle_cycle(dut):
    rng = seed()
    await send_flat_out(dut, every_mtu(rng) + random_packets(rng, 60))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_frame_once_begun_never_pauses_while_its_payload_does_not(dut):
    """What the MAC needs: payloads come late and apart, but each whole; no hole inside a frame."""
    rng = seed()
    source, sink = await start(dut)
    packets = random_packets(rng, 40)
    watch = cocotb.start_soon(watch_frames(dut, len(packets)))
    cocotb.start_soon(drive_headers(dut, [header for header, _ in packets], stalls(rng, 0.9)))
    for header, payload in packets:
        if payload:
            await source.send(AxiStreamFrame(payload))
        assert bytes((await sink.recv()).tdata) == header.frame(payload)
    for first, last, beats in await watch:
        assert last + 1 - first == beats, f"{last + 1 - first - beats} idle cycles in a frame of {beats} beats"
