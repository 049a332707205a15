# SPDX-License-Identifier: Apache-2.0
"""The other end of the cable of a front end with TCP: a host that listens, stores received data, and answers ARP.

It replaces `lib/rc_peer.Peer`, which is for RoCE: `start(dut, {}, TcpHost)`.
"""

from collections import defaultdict
from collections.abc import Callable

import cocotb
from cocotb.queue import Queue
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import ARP, Ether

from lib.cable import plug
from lib.rc_peer import Peer
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC
from lib.services_peer import wire
from lib.tcp_receiver import KeepingReceiver, Segment, segment_of, tcp_of

PORT_BASE = 40_000  # of the front end, after reset
PORT = 10_000


class TcpHost:
    """One receiver for each stream, by its number; `verdict(segment)` says whether a segment of ours gets lost."""

    def __init__(self, dut, _first_psn: dict[int, int], cable=None):
        self.cable = cable or plug(dut)
        self.receivers: dict[int, KeepingReceiver] = defaultdict(lambda: KeepingReceiver(iss=0xFFFF_FF00))
        self.other_frames: Queue[bytes] = Queue()  # frames that are neither TCP nor ARP
        self.resolves, self.mac = True, PEER_MAC
        self.strays = 0  # segments to another MAC address: a switch would not bring them here
        self.arp_requests = 0  # by ARP for our address
        self.segments: list[tuple[int, Segment]] = []
        self.loses: Callable[[Segment], bool] = lambda segment: False
        self.task = None if cable else cocotb.start_soon(self.run())

    async def run(self) -> None:
        while True:
            raw, _ = await self.cable.receive()
            if not await self.handle(Ether(raw)):
                self.other_frames.put_nowait(raw)

    async def handle(self, frame) -> bool:
        """Whether the frame was one for the host's kernel: TCP or ARP."""
        if TCP in frame:
            await self.take(frame)
        elif ARP in frame:
            await self.resolve(frame[ARP])
        return TCP in frame or ARP in frame

    async def resolve(self, arp) -> None:
        if arp.op == 1 and arp.pdst == PEER_IP:
            self.arp_requests += 1
            if self.resolves:
                answer = ARP(op=2, hwsrc=self.mac, psrc=PEER_IP, hwdst=LOCAL_MAC, pdst=LOCAL_IP)
                await self.send(Ether(src=self.mac, dst=LOCAL_MAC) / answer)

    async def take(self, frame) -> None:
        again = frame.copy()
        del again[IP].chksum, again[TCP].chksum
        assert bytes(again) == bytes(frame), f"a checksum is wrong: {bytes(frame).hex()}"
        ip, tcp = frame[IP], frame[TCP]
        assert (frame.src, ip.src, ip.dst) == (LOCAL_MAC, LOCAL_IP, PEER_IP) and frame.dst in (PEER_MAC, self.mac)
        if frame.dst != self.mac:
            self.strays += 1
            return
        stream = tcp.sport - PORT_BASE
        assert tcp.dport == PORT + stream
        payload = bytes(tcp)[4 * tcp.dataofs :][: ip.len - 20 - 4 * tcp.dataofs]
        segment = segment_of(tcp, len(payload))
        self.segments.append((stream, segment))
        if not self.loses(segment):
            for answer in self.receivers[stream].take(segment, payload):
                await self.answer(stream, answer)

    async def answer(self, stream: int, segment: Segment) -> None:
        tcp = tcp_of(segment, sport=PORT + stream, dport=PORT_BASE + stream)
        await self.send(Ether(src=self.mac, dst=LOCAL_MAC) / IP(src=PEER_IP, dst=LOCAL_IP) / tcp)

    async def end(self, stream: int, flags: int) -> None:
        """RST or FIN of a receiver."""
        await self.answer(stream, self.receivers[stream].end(flags))

    async def send(self, packet) -> None:
        await self.cable.send(wire(packet))


class TcpAndRoceHost(Peer):
    """A host with an RDMA network card, too; `tcp` is its kernel."""

    def __init__(self, dut, expected: dict[int, int]):
        super().__init__(dut, expected)
        self.tcp = TcpHost(dut, {}, self.cable)

    async def handle(self, raw: bytes, start) -> None:
        if not await self.tcp.handle(Ether(raw)):
            await super().handle(raw, start)
