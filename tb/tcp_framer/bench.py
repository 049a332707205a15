# SPDX-License-Identifier: Apache-2.0
"""The framer's segments are scapy's, byte for byte, both checksums included."""

from dataclasses import dataclass
from itertools import pairwise

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiStreamFrame
from lib.frames_tx import stalls, start, watch_frames
from lib.roce import LOCAL_IP, LOCAL_MAC, TTL, ip_str, mac_str
from lib.runner import Bench, seed
from lib.structs import pack
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

BENCH = Bench(top="tcp_framer", configs=[{"DATA_W": 64}, {"DATA_W": 512}])
TOS = 0x68
SYN, RST, PSH, ACK = 2, 4, 8, 16
FLAGS = ("fin", "syn", "rst", "psh", "ack")  # by bit


def payload_sum(payload: bytes) -> int:
    """RFC 1071, without the complement."""
    padded = payload + bytes(len(payload) % 2)
    total = sum(int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass
class Segment:
    """A header to be framed, and its payload."""

    fields: dict[str, int]
    payload: bytes = b""

    def word(self) -> int:
        f = self.fields
        flags = {f"segment__flags__{name}": f["flags"] >> bit & 1 for bit, name in enumerate(FLAGS)}
        return pack("tcp_tx_hdr_t", peer__mac=f["mac"], peer__ip=f["ip"], peer__port=f["dport"], port=f["sport"],
                    window=f["window"], mss=f["mss"], payload_sum=payload_sum(self.payload), segment__valid=1,
                    segment__seq=f["seq"], segment__ack=f["ack"], segment__len=len(self.payload), **flags)  # fmt: skip

    def frame(self) -> bytes:
        f = self.fields
        options = [("MSS", f["mss"]), ("NOP", None), ("WScale", 0)] if f["flags"] & SYN else []
        ip = IP(src=LOCAL_IP, dst=ip_str(f["ip"]), tos=TOS, ttl=TTL, id=0, flags="DF")
        tcp = TCP(sport=f["sport"], dport=f["dport"], seq=f["seq"], ack=f["ack"], flags=f["flags"],
                  window=f["window"], options=options)  # fmt: skip
        return bytes(Ether(dst=mac_str(f["mac"]), src=LOCAL_MAC, type=0x0800) / ip / tcp / Raw(self.payload))


def segment(rng, length: int = 0, flags: int = ACK, payload: bytes | None = None) -> Segment:
    """Random fields; every other one is at an end of its range, where sums carry."""

    def field(bits: int) -> int:
        return rng.choice([rng.getrandbits(bits), rng.getrandbits(bits), 0, (1 << bits) - 1])

    bits = {"mac": 48, "ip": 32, "dport": 16, "sport": 16, "window": 16, "seq": 32, "ack": 32}
    fields = {name: field(width) for name, width in bits.items()} | {"mss": rng.randrange(64, 8961), "flags": flags}
    return Segment(fields, rng.randbytes(length) if payload is None else payload)


async def drive(dut, segments: list[Segment], pause=None) -> None:
    """Offers each header until it is taken."""
    for one in segments:
        while pause is not None and next(pause):
            await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.hdr.value, dut.hdr_valid.value = one.word(), 1
        await RisingEdge(dut.clk)
        while not dut.hdr_ready.value:
            await RisingEdge(dut.clk)
        dut.hdr_valid.value = 0


async def run(dut, segments: list[Segment], rng=None) -> None:
    dut.hdr.value, dut.tos.value = 0, TOS
    source, sink = await start(dut)
    pause = None
    if rng is not None:
        source.set_pause_generator(stalls(rng, 0.3))
        sink.set_pause_generator(stalls(rng, 0.3))
        pause = stalls(rng, 0.5)
    for one in segments:
        if one.payload:
            await source.send(AxiStreamFrame(one.payload))
    cocotb.start_soon(drive(dut, segments, pause))
    for one in segments:
        got, expected = bytes((await sink.recv()).tdata), one.frame()
        assert got == expected, f"{one.fields}\n got {got.hex()}\nwant {expected.hex()}"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_length_residue_and_kind_is_framed_as_scapy_does(dut):
    rng = seed()
    lengths = [*range(80), 127, 128, 129, 536, 1459, 1460, 8959, 8960]
    kinds = [segment(rng, 0, flags) for flags in (SYN, SYN | ACK, RST, RST | ACK, ACK) for _ in range(4)]
    await run(dut, kinds + [segment(rng, length, rng.choice([ACK, ACK | PSH])) for length in lengths])


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def sums_that_carry_and_sums_of_nothing_are_right(dut):
    rng = seed()
    payloads = [bytes(64), b"\xff" * 64, b"\xff" * 65, b"\0\1" * 8, bytes(1), b"\xff", b"\xff\xfe" + bytes(7)]
    await run(dut, [segment(rng, payload=payload) for payload in payloads for _ in range(8)])


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def random_segments_survive_random_stalls_of_every_stream(dut):
    rng = seed()
    flags = (ACK, ACK, ACK | PSH, SYN)
    kinds = [rng.choice(flags) for _ in range(150)]
    await run(dut, [segment(rng, 0 if kind == SYN else rng.randrange(400), kind) for kind in kinds], rng)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def full_segments_leave_without_a_gap_inside_and_three_cycles_apart_at_most(dut):
    rng = seed()
    segments = [segment(rng, 1460) for _ in range(12)]
    watch = cocotb.start_soon(watch_after_reset(dut, len(segments)))
    await run(dut, segments)
    frames = await watch
    assert all(last - first + 1 == beats for first, last, beats in frames), "a gap inside a frame"
    gaps = [later[0] - earlier[1] - 1 for earlier, later in pairwise(frames[1:])]
    assert max(gaps) <= 3, f"gaps of {gaps} cycles"


async def watch_after_reset(dut, count: int):
    await FallingEdge(dut.rst)
    return await watch_frames(dut, count)
