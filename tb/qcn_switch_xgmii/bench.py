# SPDX-License-Identifier: Apache-2.0
"""The QCN switch with its MACs: frames on the wire at line rate, bad FCS, and pause frames that stations understand."""

from collections import Counter
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from lib import structs
from lib.mac_control import PEER_MAC, pause
from lib.roce import mac_int
from lib.runner import Bench, seed
from lib.xgmii import LineMonitor
from scapy.layers.l2 import Ether

BENCH = Bench(top="qcn_switch_lines", sources=[Path(__file__).parent / "qcn_switch_lines.sv"])
PORTS = 3
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]


class Lines:
    """The switch between three lines."""

    def __init__(self, dut):
        self.dut = dut
        ports = range(PORTS)
        signal = {name: [getattr(dut, f"{name}_{port}") for port in ports] for name in ("rxd", "rxc", "txd", "txc")}
        self.stations = [XgmiiSource(signal["rxd"][p], signal["rxc"][p], dut.clk, dut.rst) for p in ports]
        self.sinks = [XgmiiSink(signal["txd"][p], signal["txc"][p], dut.clk, dut.rst) for p in ports]
        self.monitors = [LineMonitor(dut.clk, signal["txd"][p], signal["txc"][p]) for p in ports]
        self.counts = [Counter() for _ in ports]
        for model in (*self.stations, *self.sinks):
            model.log.setLevel("WARNING")

    async def start(self, **settings: int) -> None:
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        defaults = {"mac": mac_int(PEER_MAC), "limit_bytes": 200_000, "pause__obey_pause": 1, "cnm_priority": 6}
        dut.cfg.value = structs.pack("switch_cfg_t", **defaults, **settings)
        dut.rst.value, dut.table_valid.value = 1, 0
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        for port, mac in enumerate(STATIONS):
            entry = structs.pack("mac_entry_t", valid=1, is_static=1, mac=mac_int(mac), port_index=port)
            dut.table_index.value, dut.table_entry.value, dut.table_valid.value = port, entry, 1
            await RisingEdge(dut.clk)
        dut.table_valid.value = 0
        await ClockCycles(dut.clk, 200)  # the link faults of the reset are over
        cocotb.start_soon(self.count())

    async def count(self) -> None:
        bits = structs.width("switch_stat_t")
        while True:
            await FallingEdge(self.dut.clk)
            if word := int(self.dut.stat.value):
                for port in range(PORTS):
                    pulses = structs.unpack("switch_stat_t", word >> bits * port & (1 << bits) - 1)
                    self.counts[port].update({name: pulse for name, pulse in pulses.items() if pulse})

    async def received(self, port: int, count: int) -> list[bytes]:
        return [bytes((await self.sinks[port].recv()).get_payload()) for _ in range(count)]


def frame(rng, source: int, to: int, size: int) -> bytes:
    return bytes(Ether(src=STATIONS[source], dst=STATIONS[to], type=0x88B5)) + rng.randbytes(size - 14)


@cocotb.test()
async def full_lines_of_random_frames_arrive_and_bad_ones_do_not(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start()
    for monitor in lines.monitors:
        cocotb.start_soon(monitor.run())
    count, expected = 60, [[] for _ in range(PORTS)]
    for number in range(count):
        for source in range(PORTS):
            to, size = (source + 1) % PORTS, rng.choice([60, 61, 64, 65, rng.randint(60, 1514)])
            one = frame(rng, source, to, size)
            sent = XgmiiFrame.from_payload(one)
            if number % 10 == 5:
                sent.data[-1] ^= 1  # FCS
            else:
                expected[to].append(one)
            await lines.stations[source].send(sent)
    for port in range(PORTS):
        assert await lines.received(port, len(expected[port])) == expected[port]
    for port, counts in enumerate(lines.counts):
        assert counts["rx_bad"] == count // 10
        assert counts["tx_frame"] == len(expected[port])
        assert not counts["rx_lost"] and not counts["tx_dropped"]
        # as the stations send without a pause, a gap is long only where a bad frame was
        long = [gap for gap in lines.monitors[port].gaps() if gap > 200]
        assert len(long) <= 2 * count // 10


@cocotb.test()
async def two_stations_into_one_line_are_stopped_by_pause_frames_on_the_wire(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start(
        pause__pause_en=1, pause__classes=0xFF, pause__quanta=500, pause__xoff_bytes=20_000, pause__xon_bytes=15_000
    )
    for _ in range(30):
        for source in (0, 1):
            await lines.stations[source].send(XgmiiFrame.from_payload(frame(rng, source, 2, 1514)))
    assert len(await lines.received(2, 60)) == 60
    for port in (0, 1):
        output = await lines.received(port, 2)  # these stations do not obey, so a pause is repeated
        while output[-1] == pause(500):
            output += await lines.received(port, 1)
        assert set(output[:-1]) == {pause(500)} and output[-1] == pause(0)
    assert lines.counts[2]["tx_pause"] == 0


@cocotb.test()
async def a_pause_frame_on_the_wire_holds_the_line(dut):
    rng, lines = seed(), Lines(dut)
    await lines.start()
    quanta = 100
    await lines.stations[1].send(XgmiiFrame.from_payload(pause(quanta)))
    while not lines.counts[1]["rx_pause"]:
        await RisingEdge(dut.clk)
    await lines.stations[0].send(XgmiiFrame.from_payload(frame(rng, 0, 1, 100)))
    cycles = 0
    while lines.sinks[1].empty():
        await RisingEdge(dut.clk)
        cycles += 1
    assert quanta * 8 <= cycles < quanta * 8 * 1.01 + 60
