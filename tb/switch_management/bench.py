# SPDX-License-Identifier: Apache-2.0
"""The management port of the QCN switch on GMII, at both tops: ARP, ping and IPbus while the lines are full, the list
of hosts, and that nothing passes between this port and the others."""

from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource, XgmiiFrame, XgmiiSink, XgmiiSource
from lib import ipbus
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC, ip_int
from lib.runner import Bench, seed
from lib.services_peer import HOST_IP, arp_request, checked, datagram, ping, wire
from lib.switch_registers import SLVERR, SwitchRegisters, address, generated
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

FOLDER = Path(__file__).parent
BENCHES = [
    Bench(
        top="penstock_switch_lines",
        sources=[FOLDER.parent / "penstock_switch" / "penstock_switch_lines.sv"],
        configs=[{"MANAGEMENT": 1}],
    ),
    Bench(top="penstock_switch_1g_lines", sources=[FOLDER / "penstock_switch_1g_lines.sv"]),
]
PORTS = 2
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]
STRANGER_IP = "10.0.1.77"
IPBUS_PORT = 50001
OCTET_PS = 8_000
HOST_CLOCK_PS = 8_002  # the PHY of the management port is 250 ppm off


class Switch:
    """A host at the management port, and a station at each other port."""

    def __init__(self, dut):
        self.dut, self.registers = dut, SwitchRegisters(dut)
        self.is_gmii = hasattr(dut, "gmii_tx_clk")
        self.frame = GmiiFrame if self.is_gmii else XgmiiFrame
        ports, pin = range(PORTS), lambda name: [getattr(dut, f"{name}_{port}") for port in range(PORTS)]
        if self.is_gmii:
            into = zip(pin("rxd"), pin("rx_er"), pin("rx_dv"), pin("rx_clk"), strict=True)
            out = zip(pin("txd"), pin("tx_er"), pin("tx_en"), strict=True)
            self.stations = [GmiiSource(*pins) for pins in into]
            self.sinks = [GmiiSink(*pins, dut.gmii_tx_clk) for pins in out]
        else:
            self.stations = [XgmiiSource(pin("rxd")[p], pin("rxc")[p], dut.clk, dut.rst) for p in ports]
            self.sinks = [XgmiiSink(pin("txd")[p], pin("txc")[p], dut.clk, dut.rst) for p in ports]
        into = (dut.mgmt_gmii_rxd, dut.mgmt_gmii_rx_er, dut.mgmt_gmii_rx_dv, dut.mgmt_gmii_rx_clk)
        out = (dut.mgmt_gmii_txd, dut.mgmt_gmii_tx_er, dut.mgmt_gmii_tx_en, dut.mgmt_gmii_tx_clk)
        self.host, self.host_sink = GmiiSource(*into), GmiiSink(*out)
        for model in (*self.stations, *self.sinks, self.host, self.host_sink):
            model.log.setLevel("WARNING")

    async def start(self, ip: str = LOCAL_IP) -> None:
        dut = self.dut
        clocks = [(dut.clk, 16_000 if self.is_gmii else 6_400), (dut.mgmt_gmii_tx_clk, OCTET_PS)]
        clocks += [(dut.mgmt_gmii_rx_clk, HOST_CLOCK_PS)]
        if self.is_gmii:
            clocks += [(clock, OCTET_PS) for clock in (dut.gmii_tx_clk, dut.rx_clk_0, dut.rx_clk_1)]
        for clock, period in clocks:
            cocotb.start_soon(Clock(clock, period, "ps").start())
        dut.mgmt_link_up.value = 1
        dut.rst.value = 1
        await ClockCycles(dut.clk, 8)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 100)  # the resets of all clocks are over
        await self.registers.write_fields("management.control", gratuitous=0)
        await self.registers.write_mac("management.mac", LOCAL_MAC)
        await self.registers.write("management.ip", ip_int(ip))
        await self.registers.write_fields("control", learn=0)
        for port, mac in enumerate(STATIONS):
            await self.registers.enter(port, mac, port)

    async def send(self, port: int, frame: bytes) -> None:
        await self.stations[port].send(self.frame.from_payload(frame))

    async def send_from_host(self, packet) -> None:
        await self.host.send(GmiiFrame.from_payload(wire(packet)))

    async def answer(self):
        frame = await with_timeout(self.host_sink.recv(), 300, "us")
        assert frame.check_fcs()
        return checked(bytes(frame.get_payload()))

    async def ipbus(self, *transactions: list[int], src: str = HOST_IP) -> list[int]:
        """The words of the reply to a packet, without its header."""
        await self.send_from_host(datagram(ipbus.control(*transactions), IPBUS_PORT, src=src))
        reply = await self.answer()
        assert (reply[Ether].dst, reply[IP].dst, reply[UDP].sport) == (PEER_MAC, src, IPBUS_PORT)
        header, *words = ipbus.bytes_to_words(bytes(reply[UDP].payload)[: reply[UDP].len - 8])
        assert header == ipbus.packet_header()
        return words

    async def silence(self) -> None:
        """The host receives nothing."""
        await self.host.wait()
        await ClockCycles(self.dut.clk, 1500)
        assert self.host_sink.empty()


def word_of(name: str, copy: int = 0) -> int:
    """The IPbus address of a register."""
    return address(name, copy) // 4


def station_frame(rng, source: int, to: int, size: int) -> bytes:
    return bytes(Ether(src=STATIONS[source], dst=STATIONS[to], type=0x88B5)) + rng.randbytes(size - 14)


@cocotb.test()
async def an_operator_is_served_while_the_lines_are_full_and_every_frame_arrives(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    count, expected = 40, [[] for _ in range(PORTS)]
    for _ in range(count):
        for source in range(PORTS):
            one = station_frame(rng, source, 1 - source, rng.choice([60, 64, 65, 900, 1514]))
            expected[1 - source].append(one)
            await switch.send(source, one)

    await switch.send_from_host(arp_request())
    reply = await switch.answer()
    assert (reply[ARP].op, reply[ARP].hwsrc, reply[ARP].psrc) == (2, LOCAL_MAC, LOCAL_IP)
    sizes = (0, 1, 56, 1472)
    for size in sizes:
        payload = rng.randbytes(size)
        await switch.send_from_host(ping(payload))
        reply = await switch.answer()
        assert reply[ICMP].type == 0 and (reply[IP].dst, reply[IP].ttl) == (HOST_IP, 64)
        assert bytes(reply[ICMP].payload)[:size] == payload

    read, write, bits = ipbus.READ, ipbus.WRITE, ipbus.RMW_BITS
    build = PORTS | 2 << 4 | 16 << 8 | 1 << 16
    done = ipbus.transaction(read, 2, info=ipbus.SUCCESS)[0]
    assert await switch.ipbus(ipbus.transaction(read, 2, word_of("map_hash"))) == [done, generated().MAP_HASH, build]
    requested = [
        ipbus.transaction(write, 1, word_of("q_eq"), 40_000),
        ipbus.transaction(bits, 1, word_of("control"), 0xFFFF_00FF, 0x0300, ident=1),
        ipbus.transaction(read, 1, word_of("q_eq"), ident=2),
    ]
    output = await switch.ipbus(*requested)
    assert output[-1] == 40_000 and output[2] == await switch.registers.read("control") & 0xFFFF_00FF | 0x0100
    assert await switch.registers.read("q_eq") == 40_000
    assert await switch.registers.read("control") >> 8 & 0xFF == 3
    # what the registers refuse: a counter, a hole of the map, an entry that the table has not
    for at, word in ((word_of("port.tx_frame"), 0), (0x60 // 4, 0), (word_of("entry_write"), 16)):
        (refused,) = await switch.ipbus(ipbus.transaction(write, 1, at, word))
        assert refused & 0xF == ipbus.WRITE_ERROR
    # the counters of a port and what waits there, over IPbus as over the pins
    words = await switch.ipbus(ipbus.transaction(read, 12, word_of("port.rx_frame", 1)))
    assert len(words) == 13 and words[1] > 0

    for port in range(PORTS):
        got = [bytes((await switch.sinks[port].recv()).get_payload()) for _ in expected[port]]
        assert got == expected[port]
    await ClockCycles(dut.clk, 200)
    for port in range(PORTS):
        assert switch.sinks[port].empty()
        assert await switch.registers.counters(port) == {"rx_frame": count, "tx_frame": count}
    assert await switch.registers.management_counters() == {
        "rx_frame": 1 + len(sizes) + 6,
        "arp_requests": 1,
        "icmp_echo_replies": len(sizes),
        "ipbus_packets": 6,
        "ipbus_bus_errors": 3,
    }


@cocotb.test()
async def an_entry_that_ipbus_writes_directs_frames_and_both_masters_share_the_registers(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    mac = "02:00:00:00:07:07"
    octets = bytes.fromhex(mac.replace(":", ""))
    high = 1 << 31 | 1 << 30 | 1 << 16 | int.from_bytes(octets[:2], "big")
    entry = [high, int.from_bytes(octets[2:], "big"), 5]

    async def by_the_pins() -> None:
        for number in range(200):
            await switch.registers.write("limit", number)
            assert await switch.registers.read("limit") == number

    pins = cocotb.start_soon(by_the_pins())
    await switch.ipbus(ipbus.transaction(ipbus.WRITE, 3, word_of("entry_hi"), *entry))
    for number in range(20):
        words = await switch.ipbus(
            ipbus.transaction(ipbus.WRITE, 1, word_of("xoff"), number),
            ipbus.transaction(ipbus.READ, 1, word_of("xoff"), ident=1),
        )
        assert words[-1] == number
    await pins
    await switch.registers.write("limit", 0xFFFFFF)
    frame = bytes(Ether(src=STATIONS[0], dst=mac, type=0x88B5)) + rng.randbytes(100)
    await switch.send(0, frame)
    assert bytes((await with_timeout(switch.sinks[1].recv(), 50, "us")).get_payload()) == frame
    assert switch.sinks[0].empty()


@cocotb.test()
async def strangers_are_refused_counted_and_a_locked_list_stays(dut):
    switch = Switch(dut)
    await switch.start()
    at_hash = ipbus.transaction(ipbus.READ, 1, word_of("map_hash"))
    assert len(await switch.ipbus(at_hash, src=STRANGER_IP)) == 2, "without a list everybody is served"
    await switch.ipbus(ipbus.transaction(ipbus.WRITE, 1, word_of("access_entry.ip", 3), ip_int(HOST_IP)))
    await switch.ipbus(ipbus.transaction(ipbus.WRITE, 1, word_of("access.control"), 0b11))
    stranger = ipbus.control(ipbus.transaction(ipbus.WRITE, 1, word_of("q_eq"), 1))
    await switch.send_from_host(datagram(stranger, IPBUS_PORT, src=STRANGER_IP))
    await switch.silence()
    assert len(await switch.ipbus(at_hash)) == 2
    assert await switch.registers.read("q_eq") == 33_000
    assert (await switch.registers.management_counters())["udp_strangers"] == 1
    # locked, for the pins, too; settings that are no part of the list are not
    for name, copy in (("access.control", 0), ("access_entry.ip", 3), ("access_entry.netmask", 7)):
        (refused,) = await switch.ipbus(ipbus.transaction(ipbus.WRITE, 1, word_of(name, copy), 0))
        assert refused & 0xF == ipbus.WRITE_ERROR
        assert await switch.registers.write_at(address(name, copy), 0) == SLVERR
    assert await switch.registers.read("access_entry.ip", 3) == ip_int(HOST_IP)
    await switch.registers.write("q_eq", 50_000)


@cocotb.test()
async def no_frame_passes_between_the_management_port_and_the_others(dut):
    rng, switch = seed(), Switch(dut)
    await switch.start()
    for port in range(PORTS):  # unknown and group addresses leave by all other ports
        await switch.send(port, wire(arp_request()))
        await switch.send(port, wire(ping(b"in-band")))
    for sink in switch.sinks:
        for _ in range(2):
            await with_timeout(sink.recv(), 50, "us")
    await switch.send_from_host(Ether(dst=STATIONS[0], src=PEER_MAC, type=0x88B5) / rng.randbytes(100))
    await switch.send_from_host(Ether(dst="ff:ff:ff:ff:ff:ff", src=PEER_MAC, type=0x88B5) / rng.randbytes(100))
    await switch.silence()
    spoilt = GmiiFrame.from_payload(wire(arp_request()))
    spoilt.data[-1] ^= 1
    await switch.host.send(spoilt)
    await switch.silence()
    assert all(sink.empty() for sink in switch.sinks)
    assert await switch.registers.management_counters() == {"rx_bad": 1}
    await switch.send_from_host(arp_request())
    assert (await switch.answer())[ARP].psrc == LOCAL_IP


@cocotb.test()
async def a_switch_without_an_address_is_silent_and_announces_the_one_it_gets(dut):
    switch = Switch(dut)
    await switch.start(ip="0.0.0.0")
    await switch.send_from_host(arp_request(target="0.0.0.0"))
    await switch.send_from_host(ping(b"who"))
    await switch.silence()
    await switch.registers.write_fields("management.control", gratuitous=1)
    await switch.registers.write("management.ip", ip_int(LOCAL_IP))
    begun = cocotb.utils.get_sim_time("us")
    frame = await with_timeout(switch.host_sink.recv(), 4, "ms")
    waited = cocotb.utils.get_sim_time("us") - begun
    reported = checked(bytes(frame.get_payload()))
    assert (reported[ARP].psrc, reported[ARP].pdst, reported[ARP].hwsrc) == (LOCAL_IP, LOCAL_IP, LOCAL_MAC)
    assert 900 < waited < 2_200, "one to two milliseconds of its own clock"
    dut.mgmt_link_up.value = 0
    await ClockCycles(dut.clk, 20)
    await RisingEdge(dut.mgmt_gmii_tx_clk)
    await switch.send_from_host(arp_request())
    await switch.silence()
