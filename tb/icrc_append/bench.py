# SPDX-License-Identifier: Apache-2.0
"""The ICRC written into a frame is scapy's, for any previous bytes in its place."""

import cocotb
from cocotbext.axi import AxiStreamFrame
from lib.frames_tx import every_mtu, every_short_packet, random_packets, stalls, start
from lib.roce import ICRC_BYTES
from lib.runner import Bench, seed

BENCH = Bench(top="icrc_append", configs=[{"DATA_W": 64}, {"DATA_W": 512}])


async def send_and_check(source, sink, rng, packets) -> None:
    frames = [header.frame(payload) for header, payload in packets]
    for frame in frames:
        await source.send(AxiStreamFrame(frame[:-ICRC_BYTES] + rng.randbytes(ICRC_BYTES)))
    for frame in frames:
        received = bytes((await sink.recv()).tdata)
        assert received == frame, f"\n got {received.hex()}\nwant {frame.hex()}"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_frame_length_gets_the_icrc_that_scapy_computes(dut):
    rng = seed()
    source, sink = await start(dut)
    await send_and_check(source, sink, rng, every_short_packet(rng) + every_mtu(rng))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_frames_survive_random_stalls_on_both_sides(dut):
    rng = seed()
    source, sink = await start(dut)
    source.set_pause_generator(stalls(rng, 0.3))
    sink.set_pause_generator(stalls(rng, 0.3))
    await send_and_check(source, sink, rng, random_packets(rng, 150))
