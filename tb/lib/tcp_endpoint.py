# SPDX-License-Identifier: Apache-2.0
"""The promises of `tcp_endpoint`, with rings on chip and in an AXI4 memory: messages of many streams reach TCP
receivers byte for byte, as frames that scapy accepts, despite losses.

The benches select these tests by name (`ALL`). With `STORE` = 1 the rings are in `Bed.memory`.
"""

import os
from collections import deque

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamFrame
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.axi_memory import AxiMemory
from lib.frames_tx import stalls
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC, ip_int
from lib.runner import seed
from lib.structs import pack, unpack
from lib.tcp_bed import PORT_BASE, TcpBed
from lib.tcp_receiver import ACK, RST, SYN, WRAP, KeepingReceiver, Segment, segment_of, tcp_of

RING_BASE = 0x10000  # of the memory, as in tb/tcp_endpoint_axi


class Peer(KeepingReceiver):
    """The receiver of a stream, at its own address."""

    def __init__(self, stream: int, iss: int, **settings):
        super().__init__(iss, **settings)
        self.ip, self.port = f"10.1.{stream}.9", 10_000 + 7 * stream


class Bed(TcpBed):
    """The endpoint between messages and a network that delays, and may lose or spoil."""

    def __init__(self, dut, rng, delay: int = 200):
        self.n = int(os.environ["PARAM_N_STREAMS"])
        super().__init__(dut, rng, self.n)
        self.delay, self.damage = delay, 0.0
        self.holds = False  # frames of the peers wait
        self.path_mtu = 1 << 16  # of a router on the way
        self.forged_mtu = 1 << 16  # somebody names this limit for longer segments
        self.peers = [Peer(stream, rng.getrandbits(32), buffer=1 << 15) for stream in range(self.n)]
        self.cycle = 0
        self.flight: deque = deque()  # (cycle, frame) from the peers
        self.frames = 0
        self.dropped = 0
        self.moved: list[Segment] = []  # to peers beyond the streams' first ones
        self.memory: AxiMemory | None = None
        self.latency = lambda rng: rng.randrange(10, 60)  # of the memory, cycles

    async def start(self, **changes: int) -> "Bed":
        if os.environ.get("PARAM_STORE") == "1":
            self.dut.rst.value = 1
            size = RING_BASE + self.n * int(os.environ["PARAM_RING_BYTES"])
            self.memory = AxiMemory(self.dut, self.rng, size, lambda rng: self.latency(rng))
        await self.connect([(peer.ip, peer.port) for peer in self.peers], **changes)
        for task in (self._count(), self._transmit(), self._receive()):
            cocotb.start_soon(task)
        return self

    async def open_all(self) -> None:
        """The answers to all SYNs come back to back."""
        self.holds = True
        for stream in range(self.n):
            await self.open_stream(stream, iss=self.rng.choice([self.rng.getrandbits(32), WRAP - 3000]))
        await self.until(lambda: len(self.flight) == self.n)
        self.holds = False
        await self.until(lambda: self.state == [2] * self.n)
        assert self.counts["timeout"] == 0 and set(self.kinds) == {"segment"}, f"{self.counts}, {self.kinds}"

    async def until(self, condition, cycles: int = 400_000) -> None:
        await super().until(condition, cycles)

    async def finish(self, cycles: int = 400_000) -> None:
        """Every byte is acknowledged and is what was written."""
        await self.until(lambda: self.acked == [len(message) for message in self.written], cycles)
        for stream, peer in enumerate(self.peers):
            assert bytes(peer.content) == bytes(self.written[stream]), f"stream {stream} got other bytes"

    # ---- tasks -----------------------------------------------------------------------------------------------------
    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            if self.dut.laid_valid.value:
                self.dropped += unpack("tcp_laid_t", int(self.dut.laid.value))["dropped"]

    async def _receive(self) -> None:
        """Frames of ours: scapy finds both checksums right, and the peer answers."""
        while True:
            frame = Ether(bytes((await self.sink.recv()).tdata))
            self.frames += 1
            again = frame.copy()
            del again[IP].chksum, again[TCP].chksum
            assert bytes(again) == bytes(frame), f"a checksum is wrong: {bytes(frame).hex()}"
            ip, tcp = frame[IP], frame[TCP]
            stream = tcp.sport - PORT_BASE
            peer = next(peer for peer in (self.peers[stream], *self.peers[self.n :]) if peer.ip == ip.dst)
            assert (frame.src, frame.dst) == (LOCAL_MAC, PEER_MAC)
            assert (ip.src, ip.dst, tcp.dport) == (LOCAL_IP, peer.ip, peer.port)
            payload = bytes(tcp.payload)
            assert len(payload) <= peer.mss
            if int(tcp.flags) & SYN:
                assert tcp.options == [("MSS", 1460), ("NOP", None), ("WScale", 0)]
            if peer in self.peers[self.n :]:
                self.moved.append(segment_of(tcp, len(payload)))
            if ip.len > self.path_mtu:
                self.flight.append((self.cycle + self.delay, self.too_long(bytes(ip)[:28], self.path_mtu)))
                continue
            if ip.len > self.forged_mtu:
                self.flight.append((self.cycle, self.too_long(bytes(ip)[:28], self.forged_mtu)))
            if self.rng.random() < self.loss:
                continue
            for answer in peer.take(segment_of(tcp, len(payload)), payload):
                if self.rng.random() >= self.loss:
                    self.flight.append((self.cycle + self.delay, self.frame(stream, answer, peer)))

    def frame(self, stream: int, segment: Segment, peer: Peer | None = None) -> bytes:
        peer = peer or self.peers[stream]
        tcp = tcp_of(segment, sport=peer.port, dport=PORT_BASE + stream)
        whole = bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / IP(src=peer.ip, dst=LOCAL_IP) / tcp).ljust(60, b"\0")
        if self.rng.random() < self.damage:
            at = self.rng.randrange(34, 54)
            whole = whole[:at] + bytes([whole[at] ^ 1 << self.rng.randrange(8)]) + whole[at + 1 :]
        return whole

    def too_long(self, returned: bytes, mtu: int) -> bytes:
        """A router's answer to a datagram that no link of its takes (RFC 1191 section 4)."""
        word = ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(returned)
        return bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / IP(src="10.9.9.9", dst=LOCAL_IP) / word)

    async def _transmit(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            while self.flight and self.flight[0][0] <= self.cycle and not self.holds:
                await self.source.send(AxiStreamFrame(self.flight.popleft()[1]))


def random_message(rng, most: int) -> bytes:
    return rng.randbytes(rng.choice([1, 7, 8, 9, 63, 64, 65, rng.randrange(1, most), rng.randrange(1, most)]))


@cocotb.test()
async def every_byte_of_every_stream_arrives_in_frames_with_right_checksums(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    for _ in range(60):
        bed.write(rng.randrange(bed.n), random_message(rng, 3000))
    await bed.finish()
    assert bed.counts["retransmitted"] == 0 and set(bed.kinds) == {"segment"}, f"{bed.counts}, {bed.kinds}"


@cocotb.test()
async def messages_longer_than_the_ring_pass_through_it(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    ring = int(os.environ["PARAM_RING_BYTES"])
    bed.write(0, rng.randbytes(5 * ring + 13))
    bed.write(bed.n - 1, rng.randbytes(2 * ring + 1))
    await bed.finish()


@cocotb.test()
async def without_nagle_short_segments_go_at_once_from_any_byte_to_any_byte(dut):
    rng = seed()
    bed = await Bed(dut, rng).start(nagle=0)
    await bed.open_all()
    for _ in range(150):
        bed.write(rng.randrange(bed.n), rng.randbytes(rng.randrange(1, 40)))
    await bed.finish()
    assert bed.frames > 100


@cocotb.test()
async def loss_damage_and_stalls_cost_time_and_no_byte(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    bed.loss = bed.damage = 0.05
    bed.sink.set_pause_generator(stalls(rng, 0.2))
    bed.msg.set_pause_generator(stalls(rng, 0.2))
    if bed.memory:
        bed.memory.stall(rng, 0.2)
    rounds = 0
    while bed.counts["retransmitted"] < 5 or bed.kinds["bad_checksum"] == 0:
        rounds += 1
        assert rounds < 50, f"nothing is lost or spoiled: {bed.counts}, {bed.kinds}"
        for _ in range(20):
            bed.write(rng.randrange(bed.n), random_message(rng, 4000))
        await bed.finish(3_000_000)


@cocotb.test()
async def a_router_whose_link_takes_less_shortens_the_segments_of_the_stream_it_names(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    bed.path_mtu = 700
    bed.write(0, rng.randbytes(6000))
    await bed.finish(3_000_000)
    assert bed.counts["path_mtu"] == 1 and bed.kinds["other"] >= 1, f"{bed.counts}, {bed.kinds}"
    output = bed.kinds["other"]
    bed.write(0, rng.randbytes(6000))
    await bed.finish()
    assert bed.kinds["other"] == output, "a segment was too long again"
    returned = bytes(IP(src=LOCAL_IP, dst=bed.peers[0].ip) / TCP(sport=PORT_BASE, dport=10_000, seq=7))[:28]
    forged = bed.too_long(returned, 600)
    bed.flight.append((0, forged))
    bed.write(0, rng.randbytes(3000))
    await bed.finish()
    assert bed.counts["path_mtu"] == 1, "a word about a segment that is not under way"
    # One about data under way, which arrives all the same.
    ignored, bed.forged_mtu = bed.counts["ignored"], 600
    bed.write(0, rng.randbytes(6000))
    await bed.finish()
    assert bed.counts["path_mtu"] == 1 and bed.counts["ignored"] > ignored, bed.counts


@cocotb.test()
async def a_stream_that_ends_drops_its_messages_and_opens_again_with_a_clean_ring(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    bed.write(0, rng.randbytes(777))
    await bed.finish()
    for round_ in range(3):
        bed.flight.append((0, bed.frame(0, bed.peers[0].end(RST | ACK))))
        await bed.until(lambda: bed.state[0] == 0)
        bed.write(0, rng.randbytes(300))
        await bed.until(lambda round_=round_: bed.dropped == round_ + 1)
        bed.written[0].clear()
        bed.acked[0] = 0
        await bed.open_stream(0, iss=rng.getrandbits(32))
        await bed.until(lambda: bed.state[0] == 2)
        bed.write(0, rng.randbytes(1 + 501 * round_))
        await bed.finish()


@cocotb.test()
async def streams_that_end_between_short_messages_mix_nothing_of_two_connections(dut):
    """Messages follow one another without a gap, of the same stream and of others, while connections come and go."""
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    for _ in range(12):
        for _ in range(rng.randrange(20, 60)):
            bed.write(rng.choice([0, rng.randrange(bed.n)]), rng.randbytes(rng.randrange(1, 90)))
        ends = rng.randrange(len(bed.queue))  # messages that still wait when the first stream ends
        await bed.until(lambda ends=ends: len(bed.queue) <= ends)
        bed.flight.append((0, bed.frame(0, bed.peers[0].end(RST | ACK))))
        await bed.until(lambda: bed.state[0] == 0)
        sent = bytes(bed.written[0])
        assert sent.startswith(bytes(bed.peers[0].content)), "other bytes than those that were written"
        await bed.until(lambda: not bed.queue and bed.msg.idle())
        bed.written[0].clear()
        bed.acked[0] = 0
        await bed.open_stream(0, iss=rng.getrandbits(32))
        await bed.until(lambda: bed.state[0] == 2)
        bed.write(0, rng.randbytes(rng.randrange(1, 200)))
        await bed.finish()


@cocotb.test()
async def segments_that_wait_for_the_line_keep_their_bytes_when_their_stream_is_aborted_and_opened_again(dut):
    """The line stands still while a message of the next connection comes for the places of those segments."""
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    ring, peer = int(os.environ["PARAM_RING_BYTES"]), bed.peers[0]
    segments = min(4, ring * 3 // 4 // peer.mss)
    before = 2 * bed.n  # SYN and ACK of each
    await bed.until(lambda: bed.frames == before)
    bed.sink.pause = True
    bed.write(0, rng.randbytes(segments * peer.mss))
    await bed.until(lambda: bed.counts["segment"] == before + segments)
    await bed.abort_stream(0)
    await bed.until(lambda: bed.state[0] == 0 and not bed.queue and bed.msg.idle())
    old = bytes(bed.written[0])
    bed.written[0].clear()
    bed.acked[0] = 0
    cocotb.start_soon(bed.open_stream(0, iss=rng.getrandbits(32)))
    # As long as a message needs to fill the ring, if it can enter.
    for _ in range(2 * ring * 8 // int(os.environ["PARAM_DATA_W"]) + 500):
        await RisingEdge(dut.clk)
        if bed.state[0] != 0 and not bed.written[0]:
            bed.write(0, rng.randbytes(ring))
    bed.sink.pause = False
    await bed.until(lambda: peer.resets == 1)
    same = peer.bytes > peer.mss and old.startswith(bytes(peer.content))
    assert same, "a segment of the first connection has bytes of the second"
    await bed.until(lambda: bed.state[0] == 2)
    if not bed.written[0]:
        bed.write(0, rng.randbytes(ring))
    await bed.finish()


@cocotb.test()
async def a_stream_opens_to_another_peer_only_when_the_earlier_one_has_all_of_its_own(dut):
    """The line stands still meanwhile, and the earlier peer goes on sending: nothing of it reaches the next one."""
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.open_all()
    first = bed.peers[0]
    await bed.until(lambda: bed.frames == 2 * bed.n)  # SYN and ACK of each
    bed.sink.pause = True
    bed.write(0, rng.randbytes(3 * first.mss))
    await bed.until(lambda: bed.counts["segment"] >= 2 * bed.n + 2)
    late = [bed.frame(0, first.acknowledgement()) for _ in range(40)]
    await bed.abort_stream(0)
    await bed.until(lambda: bed.state[0] == 0 and not bed.queue and bed.msg.idle())
    bed.written[0].clear()
    bed.acked[0] = 0
    bed.peers.append(Peer(bed.n, rng.getrandbits(32), buffer=1 << 15))
    bed.homes[0] = bed.homes[0] ^ pack("tcp_peer_t", ip=ip_int(first.ip) ^ ip_int(bed.peers[-1].ip),
                                       port=first.port ^ bed.peers[-1].port)  # fmt: skip
    opening = cocotb.start_soon(bed.open_stream(0, iss=rng.getrandbits(32)))
    for frame in late[:20]:
        bed.flight.append((0, frame))
    await ClockCycles(dut.clk, 600)
    assert not opening.done(), "it opens before its last connection's segments and RST have left"
    if bed.n > 1:  # another stream is aborted meanwhile
        cocotb.start_soon(bed.abort_stream(1))
        await bed.until(lambda: bed.state[1] == 0)
        assert not opening.done()
    for frame in late[20:]:
        bed.flight.append((0, frame))
    bed.sink.pause = False
    await bed.until(lambda: bed.state[0] == 2)
    assert first.resets == 1 and bed.moved[0].flags == SYN
    bed.write(0, rng.randbytes(5000))
    await bed.until(lambda: bed.acked[0] == 5000)
    assert bytes(bed.peers[-1].content) == bytes(bed.written[0])
    assert not any(segment.flags & RST for segment in bed.moved), bed.moved


@cocotb.test()
async def a_full_ring_holds_the_next_message_back_until_there_is_room(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    for peer in bed.peers:
        peer.buffer = 0
    await bed.open_all()
    ring = int(os.environ["PARAM_RING_BYTES"])
    bed.write(0, rng.randbytes(ring + 100))
    await bed.until(lambda: bed.counts["probe"] >= 2)
    assert bed.msg.active or not bed.msg.idle(), "the whole message was taken into a ring that is shorter"
    bed.peers[0].buffer = 1 << 15
    await bed.finish()


async def line(dut, frames: int) -> tuple[int, int]:
    """(beats, cycles) from the first beat of one frame to the last of the one `frames` later."""
    beats = cycles = seen = 0
    while seen < frames:
        await RisingEdge(dut.clk)
        taken = dut.m_axis_tvalid.value == 1 and dut.m_axis_tready.value == 1
        cycles += 1 if taken or beats else 0
        beats += int(taken)
        seen += int(taken and dut.m_axis_tlast.value == 1)
    return beats, cycles


@cocotb.test(skip=int(os.environ.get("PARAM_RING_BYTES", "0")) < 8192)
async def a_line_is_filled(dut):
    """At 64 bits a frame, its FCS, preamble and gap leave no cycle unused; at 512 bits it is more than 100 Gb/s.

    So too where a memory answers 100 cycles later.
    """
    rng = seed()
    bed = await Bed(dut, rng, delay=60).start()
    bed.latency = lambda rng: 100
    for peer in bed.peers:
        peer.buffer = 60_000
    await bed.open_all()
    for _ in range(2):
        for stream in range(bed.n):
            bed.write(stream, rng.randbytes(80_000 // bed.n))
    await bed.until(lambda: bed.frames > bed.n * 2 + 20)
    frames = 60
    beats, cycles = await line(dut, frames)
    await bed.finish()
    if int(os.environ["PARAM_DATA_W"]) == 64:
        used = (beats + 3 * frames) / cycles  # FCS 4, preamble 8, gap 12 bytes
        assert used >= 0.995, f"{used:.4f} of the line"
    else:
        gbps = (1460 + 78) * 8 * frames / cycles * 0.322266
        assert gbps >= 100, f"{gbps:.1f} Gb/s at 322.266 MHz"


ALL = [
    every_byte_of_every_stream_arrives_in_frames_with_right_checksums,
    messages_longer_than_the_ring_pass_through_it,
    without_nagle_short_segments_go_at_once_from_any_byte_to_any_byte,
    loss_damage_and_stalls_cost_time_and_no_byte,
    a_router_whose_link_takes_less_shortens_the_segments_of_the_stream_it_names,
    a_stream_that_ends_drops_its_messages_and_opens_again_with_a_clean_ring,
    streams_that_end_between_short_messages_mix_nothing_of_two_connections,
    segments_that_wait_for_the_line_keep_their_bytes_when_their_stream_is_aborted_and_opened_again,
    a_stream_opens_to_another_peer_only_when_the_earlier_one_has_all_of_its_own,
    a_full_ring_holds_the_next_message_back_until_there_is_room,
    a_line_is_filled,
]
