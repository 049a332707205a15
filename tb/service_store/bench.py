# SPDX-License-Identifier: Apache-2.0
"""Frames for the services pass whole and in order at either width; other frames, and frames without room, do not."""

import itertools
import logging
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.roce import LOCAL_MAC, PEER_MAC, mac_int
from lib.runner import Bench, seed
from lib.services_peer import BROADCAST, datagram, wire
from scapy.layers.l2 import Ether
from scapy.packet import Raw

BENCH = Bench(
    top="service_store_bench",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parent / "service_store_bench.sv"],
)

STORE = 32768
JUMBO = 9018
OTHER_MAC = "02:00:00:00:00:77"


class Link:
    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.counts = dict.fromkeys(structs.fields("service_rx_stat_t"), 0)
        for name in ("s_axis", "m_axis"):
            logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)

    async def count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            for name, pulse in structs.unpack("service_rx_stat_t", int(self.dut.stat.value)).items():
                self.counts[name] += pulse

    async def send(self, frame: bytes, bad: bool = False) -> None:
        width = len(self.dut.s_axis_tdata) // 8
        last = (len(frame) - 1) // width * width
        await self.source.send(AxiStreamFrame(frame, tuser=[0] * last + [int(bad)] * (len(frame) - last)))


async def start(dut) -> Link:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.hold.value = 0
    dut.local_mac.value = mac_int(LOCAL_MAC)
    link = Link(dut)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 2)
    cocotb.start_soon(link.count())
    return link


def ours(rng, length: int) -> bytes:
    kind = rng.choice([0x0806, 0x0800])
    head = Ether(dst=rng.choice([LOCAL_MAC, BROADCAST]), src=PEER_MAC, type=kind)
    return bytes(head / Raw(rng.randbytes(23) + b"\x06" + rng.randbytes(length - 38)))  # not UDP


def foreign(rng, length: int) -> bytes:
    head = rng.choice(
        [
            Ether(dst=OTHER_MAC, src=PEER_MAC, type=0x0800),
            Ether(dst=LOCAL_MAC, src=PEER_MAC, type=0x8100),
            Ether(dst="01:00:5e:00:00:01", src=PEER_MAC, type=0x0806),
        ]
    )
    return bytes(head / Raw(rng.randbytes(length - 14)))


def random_length(rng) -> int:
    return min(JUMBO, int(2 ** rng.uniform(5.91, 11.0)))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def whole_frames_of_ours_pass_in_order_and_no_others(dut):
    rng = seed()
    link = await start(dut)
    link.source.set_pause_generator(rng.random() < 0.2 for _ in itertools.count())
    link.sink.set_pause_generator(rng.random() < 0.2 for _ in itertools.count())
    expected, strangers = [], 0
    for length in [60, 61, 63, 64, 65, 127, 128, 129, JUMBO, *(random_length(rng) for _ in range(100))]:
        match rng.randrange(6):
            case 0:
                await link.send(foreign(rng, length))
                strangers += 1
            case 1:
                await link.send(ours(rng, length), bad=True)
            case 2:
                await link.send(wire(datagram(rng.randbytes(length - 42), 4791)))
            case _:
                expected.append(ours(rng, length))
                await link.send(expected[-1])
        await link.source.wait()
        while len(expected) > 20 and not link.sink.empty():
            assert bytes((await link.sink.recv()).tdata) == expected.pop(0)
    for frame in expected:
        assert bytes((await link.sink.recv()).tdata) == frame
    await ClockCycles(dut.clk, 100)
    assert link.sink.empty()
    assert link.counts["rx_foreign"] == strangers and link.counts["rx_overflow"] == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_full_store_drops_whole_frames_and_reports_its_level(dut):
    rng = seed()
    link = await start(dut)
    dut.hold.value = 1
    frames = [ours(rng, length) for length in [JUMBO] * 3 + [1500] * 8 + [60] * 4]
    frames.append(ours(rng, 64)[:-4] + rng.randbytes(JUMBO))  # longer than a frame can be
    for frame in frames:
        await link.send(frame)
    await link.source.wait()
    await ClockCycles(dut.clk, 20)
    lost = link.counts["rx_overflow"]
    assert lost > 1 and lost + link.counts["rx_frames"] == len(frames)
    level = int(dut.level_bytes.value)
    assert STORE - 1600 < level + 64 <= STORE
    await ClockCycles(dut.clk, 50)
    dut.hold.value = 0
    kept = [bytes((await link.sink.recv()).tdata) for _ in range(link.counts["rx_frames"])]
    remaining = iter(frames)
    assert all(frame in remaining for frame in kept), "in their order, unchanged"
    assert kept[:3] == frames[:3]
    again = ours(rng, 300)
    await link.send(again)
    assert bytes((await link.sink.recv()).tdata) == again


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_frame_once_begun_has_no_gap(dut):
    rng = seed()
    link = await start(dut)
    gaps = 0

    async def watch() -> None:
        nonlocal gaps
        inside = False
        while True:
            await RisingEdge(dut.clk)
            if dut.m_axis_tvalid.value == 1:
                inside = dut.m_axis_tlast.value == 0
            elif inside:
                gaps += 1

    cocotb.start_soon(watch())
    link.source.set_pause_generator(rng.random() < 0.7 for _ in itertools.count())
    frames = [ours(rng, random_length(rng)) for _ in range(20)] + [ours(rng, JUMBO)]
    for frame in frames:
        await link.send(frame)
    for frame in frames:
        assert bytes((await link.sink.recv()).tdata) == frame
    assert gaps == 0
