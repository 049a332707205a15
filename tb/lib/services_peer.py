# SPDX-License-Identifier: Apache-2.0
"""A host on the link of the network services: its addresses, its frames by scapy, and the pins of the bench.

The device under test is `LOCAL_MAC`, `LOCAL_IP` of `lib.roce`; the host on the same link is `PEER_MAC`, `HOST_IP`:

    host = Host(dut)
    await host.send(arp_request())            # any scapy packet or bytes
    reply = await host.receive()              # an Ether packet whose checksums scapy has verified
"""

import ipaddress
import itertools
import logging

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, with_timeout
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC, ip_int, mac_int

HOST_IP = "10.0.1.9"
GATEWAY_IP = "10.0.1.1"
NETMASK = "255.255.255.0"
ACCESS_ENTRIES = 8
BROADCAST = "ff:ff:ff:ff:ff:ff"
MIN_FRAME = 60
PERIOD_NS = 10

CFG = {
    "netmask": ip_int(NETMASK),
    "gateway": ip_int(GATEWAY_IP),
    "arp_age": 300,
    "arp_retry": 100,
    "arp_tries": 3,
    "gratuitous": 0,
    "echo": 1,
}


def cfg_word(**changed: int) -> int:
    """services_pkg::services_cfg_t."""
    return structs.pack("services_cfg_t", **(CFG | changed))


def only_for(*networks: str) -> dict[str, int]:
    """Settings of an active access list with these entries, as in "10.0.1.0/24"; its other entries match no host."""
    entries = [ipaddress.ip_network(network) for network in networks]
    pairs = [(int(entry.network_address), int(entry.netmask)) for entry in entries]
    pairs += [(0, 0xFFFFFFFF)] * (ACCESS_ENTRIES - len(pairs))
    ip, netmask = (sum(word << 32 * i for i, word in enumerate(words)) for words in zip(*pairs, strict=True))
    return {"access__enable": 1, "access__ip": ip, "access__netmask": netmask}


def arp_request(src_mac: str = PEER_MAC, src_ip: str = HOST_IP, target: str = LOCAL_IP, **fields) -> Packet:
    return Ether(src=src_mac, dst=BROADCAST) / ARP(op=1, hwsrc=src_mac, psrc=src_ip, pdst=target, **fields)


def arp_reply(src_mac: str = PEER_MAC, src_ip: str = HOST_IP, target: str = LOCAL_IP) -> Packet:
    ether = Ether(src=src_mac, dst=LOCAL_MAC)
    return ether / ARP(op=2, hwsrc=src_mac, psrc=src_ip, hwdst=LOCAL_MAC, pdst=target)


def ip_to_us(dst_mac: str = LOCAL_MAC, src_mac: str = PEER_MAC, **ip) -> Packet:
    return Ether(src=src_mac, dst=dst_mac) / IP(**{"src": HOST_IP, "dst": LOCAL_IP} | ip)


def ping(payload: bytes, ident: int = 7, seq: int = 1, **ip) -> Packet:
    return ip_to_us(**ip) / ICMP(type=8, id=ident, seq=seq) / Raw(payload)


def datagram(payload: bytes, dport: int, sport: int = 40000, **ip) -> Packet:
    return ip_to_us(**ip) / UDP(sport=sport, dport=dport) / Raw(payload)


def wire(packet) -> bytes:
    """The frame's bytes, padded to Ethernet's minimum."""
    return bytes(packet).ljust(MIN_FRAME, b"\0")


def checked(frame: bytes) -> Packet:
    """The frame dissected; its lengths and checksums must be those that scapy itself computes."""
    packet = Ether(frame)
    if IP in packet:
        length = 14 + packet[IP].len
        assert len(frame) == max(MIN_FRAME, length) and not any(frame[length:]), "padding"
        again = packet.copy()
        for layer in (IP, UDP, ICMP):
            if layer in again:
                del again[layer].chksum
                if layer is not ICMP:
                    del again[layer].len
        again = Ether(bytes(again))
        for layer in (IP, UDP, ICMP):
            if layer in packet:
                # FFFF, the other zero, serves wherever scapy writes 0
                same = packet[layer].chksum == (again[layer].chksum or 0xFFFF if layer is ICMP else again[layer].chksum)
                assert same, f"checksum of {layer.__name__}: {packet[layer].chksum:#06x}, {again[layer].chksum:#06x}"
                assert layer is ICMP or packet[layer].len == again[layer].len, f"length of {layer.__name__}"
    return packet


class Host:
    """Frames in and out of a bench with `s_axis_rx`, `m_axis_tx`, and counts of its `stat`, `stat_rx` pulses."""

    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_rx"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_tx"), dut.clk, dut.rst)
        self.width = len(dut.s_axis_rx_tdata) // 8
        self.counts = dict.fromkeys([*structs.fields("services_stat_t"), *structs.fields("service_rx_stat_t")], 0)

    async def count(self) -> None:
        groups = [(self.dut.stat, "services_stat_t"), (self.dut.stat_rx, "service_rx_stat_t")]
        while True:
            await RisingEdge(self.dut.clk)
            for signal, struct in groups:
                word = int(signal.value)
                if word:
                    for name, pulse in structs.unpack(struct, word).items():
                        self.counts[name] += pulse

    async def send(self, *packets, bad: bool = False) -> None:
        """Frames in their order, as fast as the link takes them; `bad`: as if their FCS were wrong."""
        for packet in packets:
            frame = packet if isinstance(packet, bytes) else wire(packet)
            last = (len(frame) - 1) // self.width * self.width
            await self.source.send(AxiStreamFrame(frame, tuser=[0] * last + [int(bad)] * (len(frame) - last)))

    async def receive(self, timeout_us: int = 200) -> Packet:
        frame = await with_timeout(self.sink.recv(), timeout_us, "us")
        return checked(bytes(frame.tdata))

    async def silence(self, cycles: int = 600) -> None:
        """Nothing may arrive, neither now nor for this number of cycles."""
        await self.source.wait()
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
        assert self.sink.empty(), f"an answer that nobody asked for: {checked(bytes(self.sink.recv_nowait().tdata))!r}"

    def stall(self, rng, share: float) -> None:
        """Pauses of the MAC, and gaps inside of received frames."""
        self.source.set_pause_generator(rng.random() < share for _ in itertools.count())
        self.sink.set_pause_generator(rng.random() < share for _ in itertools.count())


async def start(dut, **cfg: int) -> Host:
    """Clock, reset, addresses; the link is up."""
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    dut.rst.value = 1
    dut.local_mac.value = mac_int(LOCAL_MAC)
    dut.local_ip.value = ip_int(LOCAL_IP)
    dut.ttl.value = 64
    dut.cfg.value = cfg_word(**cfg)
    dut.link_up.value = 1
    host = Host(dut)
    for name in ("s_axis_rx", "m_axis_tx", "m_axis_ipbus", "s_axis_ipbus"):
        logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)  # a line per frame is too many
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(4):
        await RisingEdge(dut.clk)
    cocotb.start_soon(host.count())
    return host


async def settled(host: Host, cycles: int = 6000) -> None:
    """Until nothing has been counted for longer than the longest frame takes through the services."""
    before = None
    while before != host.counts:
        before = dict(host.counts)
        for _ in range(cycles):
            await RisingEdge(host.dut.clk)
