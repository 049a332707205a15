# SPDX-License-Identifier: Apache-2.0
"""The QCN switch by its registers: every one reads what was written, refuses what it should, and acts on the switch."""

import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from lib.mac_control import pause
from lib.runner import Bench, seed
from lib.switch_registers import SLVERR, SwitchRegisters, address, generated
from scapy.layers.l2 import Ether

BENCH = Bench(
    top="penstock_switch_lines",
    sources=[Path(__file__).parent / "penstock_switch_lines.sv"],
    configs=[{"MANAGEMENT": 1}, {"MANAGEMENT": 0}],
)
PORTS, QUEUES, ENTRIES = 2, 2, 16
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]
READ_ONLY = ("map_hash", "build", "queue.", "port.")
MANAGEMENT = int(os.environ.get("PARAM_MANAGEMENT", 1))


class Switch(SwitchRegisters):
    """Its registers by name, and a station at each port."""

    def __init__(self, dut):
        super().__init__(dut)
        self.dut = dut
        ports = range(PORTS)
        signal = {name: [getattr(dut, f"{name}_{port}") for port in ports] for name in ("rxd", "rxc", "txd", "txc")}
        self.stations = [XgmiiSource(signal["rxd"][p], signal["rxc"][p], dut.clk, dut.rst) for p in ports]
        self.sinks = [XgmiiSink(signal["txd"][p], signal["txc"][p], dut.clk, dut.rst) for p in ports]
        for model in (*self.stations, *self.sinks):
            model.log.setLevel("WARNING")

    async def start(self) -> None:
        cocotb.start_soon(Clock(self.dut.clk, 10, "ns").start())
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 4)

    async def send(self, port: int, frame: bytes) -> None:
        await self.stations[port].send(XgmiiFrame.from_payload(frame))

    async def received(self, port: int) -> bytes:
        return bytes((await self.sinks[port].recv()).get_payload())


def is_writable(name: str) -> bool:
    counted = address("management.rx_frame") <= address(name) < address("access.control")
    return not name.startswith(READ_ONLY) and not counted


def frame(rng, source: int, to: int, size: int = 200) -> bytes:
    return bytes(Ether(src=STATIONS[source], dst=STATIONS[to], type=0x88B5)) + rng.randbytes(size - 14)


@cocotb.test()
async def every_register_reads_what_was_written_and_refuses_what_it_should(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    made = generated()
    assert await switch.read("map_hash") == made.MAP_HASH
    assert await switch.read("build") == PORTS | QUEUES << 4 | ENTRIES << 8 | MANAGEMENT << 16
    assert await switch.read("q_eq") == 33_000 and await switch.read("xoff") == 130_000
    samples = [await switch.read(f"sample.octets_{eighth}") for eighth in range(8)]
    assert samples == [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500]
    written = {}
    for name, (at, fields) in made.REGISTERS.items():
        if not MANAGEMENT and at >= address("management.mac_hi"):
            assert await switch.read_at(at) == (0, SLVERR) and await switch.write_at(at, 1) == SLVERR, name
        elif not is_writable(name):
            before = await switch.read(name)
            assert await switch.write_at(at, 0x5A5A5A5A) == SLVERR
            assert await switch.read(name) == before
        elif name != "entry_write":
            word = rng.getrandbits(32)
            if name == "access.control":
                word &= ~0b10  # a locked list is another test's
            await switch.write(name, word)
            written[name] = word & sum((1 << width) - 1 << low for low, width in fields.values())
            assert await switch.write_at(at, ~word & 0xFFFF_FFFF, octets=2) == SLVERR
    for name, word in written.items():
        assert await switch.read(name) == word, name
    assert await switch.write_at(address("entry_write"), ENTRIES) == SLVERR
    assert await switch.read("entry_write") == 0
    last_queue, last_port = address("queue.octets", PORTS * QUEUES), address("port.rx_frame", PORTS)
    beyond = [0x60, 0x7C, last_queue, last_port - 16, last_port, 0x244, 0x2C0, 0xFFC]
    for at in beyond:
        assert await switch.read_at(at) == (0, SLVERR), hex(at)
        assert await switch.write_at(at, 1) == SLVERR


@cocotb.test()
async def settings_and_entries_act_on_the_switch_and_its_counters_count(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    await switch.write_fields("control", learn=0)
    for port, mac in enumerate(STATIONS):
        await switch.enter(port, mac, port)
    to_1 = [frame(rng, 0, 1) for _ in range(5)]
    for one in to_1:
        await switch.send(0, one)
    await switch.send(0, frame(rng, 1, 0))  # to the port that it comes from
    spoilt = XgmiiFrame.from_payload(frame(rng, 0, 1))
    spoilt.data[-1] ^= 1
    await switch.stations[0].send(spoilt)
    assert [await switch.received(1) for _ in to_1] == to_1
    await ClockCycles(dut.clk, 100)
    assert await switch.counters(0) == {"rx_frame": 6, "rx_filtered": 1, "rx_bad": 1}
    assert await switch.counters(1) == {"tx_frame": 5}
    # a pause at port 1 holds its frames, whose lengths the queue shows; with a limit the rest is dropped
    await switch.write("limit", 700)
    await switch.send(1, pause(0xFFFF))
    await ClockCycles(dut.clk, 60)
    for one in to_1:
        await switch.send(0, one)
    await ClockCycles(dut.clk, 400)
    assert await switch.read("queue.octets", 2) == 600
    assert [await switch.read("queue.octets", queue) for queue in (0, 1, 3)] == [0, 0, 0]
    assert await switch.counters(1) == {"tx_frame": 5, "rx_pause": 1, "tx_dropped": 2}
    await switch.write_fields("pause", obey_pause=0)
    assert [await switch.received(1) for _ in range(3)] == to_1[:3]


@cocotb.test()
async def congestion_points_and_pauses_follow_their_registers(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    for port, mac in enumerate(STATIONS):
        await switch.enter(port, mac, port)
    for eighth in range(8):
        await switch.write(f"sample.octets_{eighth}", 1000)
    await switch.write("q_eq", 300)
    await switch.write("xoff", 1000)
    await switch.write("xon", 400)
    await switch.write("mac_hi", 0x0250)
    await switch.write("mac_lo", 0x5400_0042)
    await switch.write_fields("pause", pause_en=1, quanta=77)
    await switch.send(1, pause(200))
    await ClockCycles(dut.clk, 60)
    for _ in range(10):
        await switch.send(0, frame(rng, 0, 1))
    for _ in range(10):
        await switch.received(1)
    await ClockCycles(dut.clk, 500)
    output = await switch.counters(0)
    assert output["tx_cnm"] >= 1 and output["tx_pause"] >= 2, output
    got = [await switch.received(0) for _ in range(output["tx_cnm"] + output["tx_pause"])]
    assert {one[6:12] for one in got} == {bytes.fromhex("025054000042")}
    pauses = [one for one in got if one[12:14] == b"\x88\x08"]
    assert len(pauses) == output["tx_pause"] and {int.from_bytes(one[16:18], "big") for one in pauses} == {77, 0}
    await switch.write_fields("control", qcn_queues=0)
    for _ in range(20):
        await switch.send(0, frame(rng, 0, 1))
        await switch.received(1)
    assert (await switch.counters(0))["tx_cnm"] == output["tx_cnm"]
