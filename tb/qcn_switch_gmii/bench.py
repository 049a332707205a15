# SPDX-License-Identifier: Apache-2.0
"""The QCN switch with its MACs at 1 Gb/s: full lines, bad FCS, pause both ways in the line's own time, a link that is
down. Each line has its own receive clock."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from cocotb.utils import get_sim_time
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource
from lib import structs
from lib.mac_control import PEER_MAC, pause
from lib.roce import mac_int
from lib.runner import Bench, seed
from scapy.layers.l2 import Ether

BENCH = Bench(top="qcn_switch_gmii_lines", sources=[Path(__file__).parent / "qcn_switch_gmii_lines.sv"])
PORTS = 3
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]
CORE_PS, OCTET_PS = 16_000, 8_000
RECEIVE_PS = (7_998, 8_000, 8_002)  # PHYs 250 ppm off
GAP = 12


class Lines:
    """The switch between three lines."""

    def __init__(self, dut):
        self.dut, ports = dut, range(PORTS)
        pin = {
            name: [getattr(dut, f"{name}_{port}") for port in ports]
            for name in ("rxd", "rx_er", "rx_dv", "rx_clk", "txd", "tx_er", "tx_en")
        }
        self.clocks = pin["rx_clk"]
        self.stations = [GmiiSource(pin["rxd"][p], pin["rx_er"][p], pin["rx_dv"][p], pin["rx_clk"][p]) for p in ports]
        self.sinks = [GmiiSink(pin["txd"][p], pin["tx_er"][p], pin["tx_en"][p], dut.gmii_tx_clk) for p in ports]
        self.counts = [Counter() for _ in ports]
        for model in (*self.stations, *self.sinks):
            model.log.setLevel("WARNING")

    async def start(self, links: int = 0b111, **settings: int) -> None:
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CORE_PS, "ps").start())
        cocotb.start_soon(Clock(dut.gmii_tx_clk, OCTET_PS, "ps").start())
        for clock, period in zip(self.clocks, RECEIVE_PS, strict=True):
            cocotb.start_soon(Clock(clock, period, "ps").start())
        defaults = {"mac": mac_int(PEER_MAC), "limit_bytes": 200_000, "pause__obey_pause": 1, "cnm_priority": 6}
        dut.cfg.value = structs.pack("switch_cfg_t", **defaults, **settings)
        dut.rst.value, dut.table_valid.value, dut.link_up.value = 1, 0, links
        await ClockCycles(dut.clk, 8)
        dut.rst.value = 0
        for port, mac in enumerate(STATIONS):
            entry = structs.pack("mac_entry_t", valid=1, is_static=1, mac=mac_int(mac), port_index=port)
            dut.table_index.value, dut.table_entry.value, dut.table_valid.value = port, entry, 1
            await RisingEdge(dut.clk)
        dut.table_valid.value = 0
        await ClockCycles(dut.clk, 100)  # the resets of all clocks are over
        cocotb.start_soon(self.count())

    async def count(self) -> None:
        bits = structs.width("switch_stat_t")
        while True:
            await FallingEdge(self.dut.clk)
            if word := int(self.dut.stat.value):
                for port in range(PORTS):
                    pulses = structs.unpack("switch_stat_t", word >> bits * port & (1 << bits) - 1)
                    self.counts[port].update({name: pulse for name, pulse in pulses.items() if pulse})

    async def received(self, port: int, count: int) -> list[GmiiFrame]:
        return [await self.sinks[port].recv() for _ in range(count)]


def payloads(frames: list[GmiiFrame]) -> list[bytes]:
    assert all(frame.check_fcs() for frame in frames)
    return [bytes(frame.get_payload()) for frame in frames]


def frame(rng, source: int, to: int, size: int) -> bytes:
    return bytes(Ether(src=STATIONS[source], dst=STATIONS[to], type=0x88B5)) + rng.randbytes(size - 14)


@cocotb.test()
async def full_lines_of_random_frames_arrive_and_bad_ones_do_not(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start()
    count, expected = 40, [[] for _ in range(PORTS)]
    for number in range(count):
        for source in range(PORTS):
            to, size = (source + 1) % PORTS, rng.choice([60, 61, 64, 65, rng.randint(60, 1514)])
            one = frame(rng, source, to, size)
            sent = GmiiFrame.from_payload(one)
            if number % 10 == 5:
                sent.data[-1] ^= 1  # FCS
            else:
                expected[to].append(one)
            await lines.stations[source].send(sent)
    for port in range(PORTS):
        got = await lines.received(port, len(expected[port]))
        assert payloads(got) == expected[port]
        gaps = [round((b.sim_time_start - a.sim_time_end) / OCTET_PS) for a, b in pairwise(got)]
        assert min(gaps) >= GAP
        # a gap is long only where a bad frame was, and after it
        assert len([gap for gap in gaps if gap > 100]) <= 2 * count // 10
    for port, counts in enumerate(lines.counts):
        assert counts["rx_bad"] == count // 10
        assert counts["tx_frame"] == len(expected[port])
        assert not counts["rx_lost"] and not counts["tx_dropped"]


@cocotb.test()
async def two_stations_into_one_line_are_stopped_by_pause_frames_on_the_wire(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start(
        pause__pause_en=1, pause__classes=0xFF, pause__quanta=500, pause__xoff_bytes=20_000, pause__xon_bytes=15_000
    )
    for _ in range(25):
        for source in (0, 1):
            await lines.stations[source].send(GmiiFrame.from_payload(frame(rng, source, 2, 1514)))
    payloads(await lines.received(2, 50))
    for port in (0, 1):
        output = payloads(await lines.received(port, 2))  # these stations do not obey, so a pause is repeated
        while output[-1] == pause(500):
            output += payloads(await lines.received(port, 1))
        assert set(output[:-1]) == {pause(500)} and output[-1] == pause(0)


@cocotb.test()
async def a_pause_frame_holds_the_line_for_its_quanta_of_1_gbps(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start()
    quanta = 40
    await lines.stations[1].send(GmiiFrame.from_payload(pause(quanta)))
    while not lines.counts[1]["rx_pause"]:
        await RisingEdge(dut.clk)
    begun = get_sim_time("ps")
    await lines.stations[0].send(GmiiFrame.from_payload(frame(rng, 0, 1, 100)))
    (got,) = await lines.received(1, 1)
    octets = (got.sim_time_start - begun) / OCTET_PS
    assert quanta * 64 <= octets < quanta * 64 * 1.01 + 60


@cocotb.test()
async def a_port_whose_link_is_down_drops_and_the_others_go_on(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start(links=0b101)
    sent = [frame(rng, 0, 2, 300) for _ in range(6)]
    for one in sent:
        await lines.stations[0].send(GmiiFrame.from_payload(frame(rng, 0, 1, 300)))
        await lines.stations[0].send(GmiiFrame.from_payload(one))
    assert payloads(await lines.received(2, len(sent))) == sent
    await Timer(20, "us")
    assert lines.sinks[1].empty()
    dut.link_up.value = 0b111
    await ClockCycles(dut.clk, 20)
    back = frame(rng, 0, 1, 300)
    await lines.stations[0].send(GmiiFrame.from_payload(back))
    assert payloads(await lines.received(1, 1)) == [back]
