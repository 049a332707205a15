# SPDX-License-Identifier: Apache-2.0
"""The framer's frames are scapy's, byte for byte, with zeros in place of the ICRC."""

import cocotb
from lib.frames_tx import every_mtu, every_short_packet, random_packets, send_all, stalls, start
from lib.roce import ICRC_BYTES
from lib.runner import Bench, seed

BENCH = Bench(top="roce_framer", configs=[{"DATA_W": 64}, {"DATA_W": 512}])


async def check(sink, packets) -> None:
    for header, payload in packets:
        expected = header.frame(payload)[:-ICRC_BYTES] + bytes(ICRC_BYTES)
        received = bytes((await sink.recv()).tdata)
        assert received == expected, f"{header}\n got {received.hex()}\nwant {expected.hex()}"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_opcode_and_payload_residue_is_framed_as_scapy_does(dut):
    rng = seed()
    source, sink = await start(dut)
    packets = every_short_packet(rng) + every_mtu(rng)
    await send_all(dut, source, packets)
    await check(sink, packets)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_frames_survive_random_stalls_of_every_stream(dut):
    rng = seed()
    source, sink = await start(dut)
    source.set_pause_generator(stalls(rng, 0.3))
    sink.set_pause_generator(stalls(rng, 0.3))
    packets = random_packets(rng, 150)
    await send_all(dut, source, packets, header_pause=stalls(rng, 0.5))
    await check(sink, packets)
