# SPDX-License-Identifier: Apache-2.0
"""Shared by the benches of the transmit framing: start-up, packets to send, and a beat counter."""

import itertools
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.roce import LOCAL_IP, LOCAL_MAC, OPCODES, TTL, TxHeader, drive_headers, ip_int, mac_int, random_len

Packets = list[tuple[TxHeader, bytes]]


async def start(dut) -> tuple[AxiStreamSource, AxiStreamSink]:
    """Clock, reset and the two streams; the framer's inputs too where the DUT has them."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    if hasattr(dut, "hdr"):
        dut.hdr_valid.value = 0
        dut.local_mac.value = mac_int(LOCAL_MAC)
        dut.local_ip.value = ip_int(LOCAL_IP)
        dut.ttl.value = TTL
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return source, sink


def packet(rng: random.Random, opcode: int, payload_len: int) -> tuple[TxHeader, bytes]:
    return TxHeader.random(rng, opcode, payload_len), rng.randbytes(payload_len)


def every_short_packet(rng: random.Random) -> Packets:
    """Each opcode with each payload residue, beyond two words of the narrow stream."""
    return [packet(rng, opcode, length) for opcode in OPCODES for length in range(18)]


def every_mtu(rng: random.Random) -> Packets:
    return [packet(rng, rng.choice(OPCODES), mtu + d) for mtu in (256, 512, 1024, 2048, 4096) for d in (-1, 0)]


def random_packets(rng: random.Random, count: int) -> Packets:
    return [packet(rng, rng.choice(OPCODES), random_len(rng)) for _ in range(count)]


def stalls(rng: random.Random, likelihood: float):
    return (rng.random() < likelihood for _ in itertools.count())


async def send_all(dut, source: AxiStreamSource, packets: Packets, header_pause=None) -> None:
    """Payloads are queued at once, headers are driven in the background."""
    for _, payload in packets:
        if payload:
            await source.send(AxiStreamFrame(payload))
    cocotb.start_soon(drive_headers(dut, [header for header, _ in packets], header_pause))


async def watch_frames(dut, count: int) -> list[tuple[int, int, int]]:
    """(first cycle, last cycle, beats) of each of the next `count` frames on m_axis."""
    frames = []
    first = beats = 0
    for cycle in itertools.count():
        if len(frames) == count:
            return frames
        await RisingEdge(dut.clk)
        if dut.m_axis_tvalid.value == 1 and dut.m_axis_tready.value == 1:
            first = first if beats else cycle
            beats += 1
            if dut.m_axis_tlast.value == 1:
                frames.append((first, cycle, beats))
                beats = 0
