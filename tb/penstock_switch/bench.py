# SPDX-License-Identifier: Apache-2.0
"""The QCN switch by its registers: every one reads what was written, refuses what it should, and acts on the switch."""

import importlib.util
from functools import cache
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from lib.mac_control import pause
from lib.rtl import GENERATED
from lib.runner import Bench, seed
from scapy.layers.l2 import Ether

BENCH = Bench(top="penstock_switch_lines", sources=[Path(__file__).parent / "penstock_switch_lines.sv"])
PORTS, QUEUES, ENTRIES = 2, 2, 16
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]
READ_ONLY = ("map_hash", "build", "queue.", "port.")
SLVERR = 2


@cache
def generated():
    """The module that regs/generate.py wrote; loaded late, as benches are collected before it exists."""
    spec = importlib.util.spec_from_file_location("qcn_switch_regs", GENERATED / "qcn_switch_regs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Switch:
    """Its registers by name, and a station at each port."""

    def __init__(self, dut):
        self.dut = dut
        ports = range(PORTS)
        signal = {name: [getattr(dut, f"{name}_{port}") for port in ports] for name in ("rxd", "rxc", "txd", "txc")}
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
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

    async def read_at(self, at: int) -> tuple[int, int]:
        answer = await self.registers.read(at, 4)
        return int.from_bytes(answer.data, "little"), int(answer.resp)

    async def write_at(self, at: int, word: int, octets: int = 4) -> int:
        return int((await self.registers.write(at, word.to_bytes(4, "little")[:octets])).resp)

    async def read(self, name: str, copy: int = 0) -> int:
        word, resp = await self.read_at(address(name, copy))
        assert resp == 0, f"{name} answers {resp}"
        return word

    async def write(self, name: str, word: int) -> None:
        resp = await self.write_at(address(name), word)
        assert resp == 0, f"{name} answers {resp}"

    async def write_fields(self, name: str, **values: int) -> None:
        """The register with these fields changed."""
        word, fields = await self.read(name), generated().REGISTERS[name][1]
        for field, value in values.items():
            low, width = fields[field]
            word = word & ~((1 << width) - 1 << low) | value << low
        await self.write(name, word)

    async def enter(self, index: int, mac: str, port: int) -> None:
        octets = bytes.fromhex(mac.replace(":", ""))
        await self.write_fields("entry_hi", mac=int.from_bytes(octets[:2], "big"), port=port, is_static=1, valid=1)
        await self.write("entry_lo", int.from_bytes(octets[2:], "big"))
        await self.write("entry_write", index)

    async def counters(self, port: int) -> dict[str, int]:
        names = [name for name in generated().REGISTERS if name.startswith("port.")]
        counts = {name.removeprefix("port."): await self.read(name, port) for name in names}
        return {name: count for name, count in counts.items() if count}

    async def send(self, port: int, frame: bytes) -> None:
        await self.stations[port].send(XgmiiFrame.from_payload(frame))

    async def received(self, port: int) -> bytes:
        return bytes((await self.sinks[port].recv()).get_payload())


def address(name: str, copy: int = 0) -> int:
    stride = getattr(generated(), f"{name.split('.')[0].upper()}_STRIDE", 0)
    return generated().REGISTERS[name][0] + copy * stride


def frame(rng, source: int, to: int, size: int = 200) -> bytes:
    return bytes(Ether(src=STATIONS[source], dst=STATIONS[to], type=0x88B5)) + rng.randbytes(size - 14)


@cocotb.test()
async def every_register_reads_what_was_written_and_refuses_what_it_should(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    made = generated()
    assert await switch.read("map_hash") == made.MAP_HASH
    assert await switch.read("build") == PORTS | QUEUES << 4 | ENTRIES << 8
    assert await switch.read("q_eq") == 33_000 and await switch.read("xoff") == 130_000
    samples = [await switch.read(f"sample.octets_{eighth}") for eighth in range(8)]
    assert samples == [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500]
    written = {}
    for name, (at, fields) in made.REGISTERS.items():
        if name.startswith(READ_ONLY):
            before = await switch.read(name)
            assert await switch.write_at(at, 0x5A5A5A5A) == SLVERR
            assert await switch.read(name) == before
        elif name != "entry_write":
            word = rng.getrandbits(32)
            await switch.write(name, word)
            written[name] = word & sum((1 << width) - 1 << low for low, width in fields.values())
            assert await switch.write_at(at, ~word & 0xFFFF_FFFF, octets=2) == SLVERR
    for name, word in written.items():
        assert await switch.read(name) == word, name
    assert await switch.write_at(address("entry_write"), ENTRIES) == SLVERR
    assert await switch.read("entry_write") == 0
    last_queue, last_port = address("queue.octets", PORTS * QUEUES), address("port.rx_frame", PORTS)
    beyond = [0x60, 0x7C, last_queue, last_port - 16, last_port, 0xFFC]
    for at in beyond:
        assert await switch.read_at(at) == (0, SLVERR), hex(at)
        assert await switch.write_at(at, 1) == SLVERR


@cocotb.test()
async def settings_and_entries_act_on_the_switch_and_its_counters_tell(dut):
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
    told = await switch.counters(0)
    assert told["tx_cnm"] >= 1 and told["tx_pause"] >= 2, told
    got = [await switch.received(0) for _ in range(told["tx_cnm"] + told["tx_pause"])]
    assert {one[6:12] for one in got} == {bytes.fromhex("025054000042")}
    pauses = [one for one in got if one[12:14] == b"\x88\x08"]
    assert len(pauses) == told["tx_pause"] and {int.from_bytes(one[16:18], "big") for one in pauses} == {77, 0}
    await switch.write_fields("control", qcn_queues=0)
    for _ in range(20):
        await switch.send(0, frame(rng, 0, 1))
        await switch.received(1)
    assert (await switch.counters(0))["tx_cnm"] == told["tx_cnm"]
