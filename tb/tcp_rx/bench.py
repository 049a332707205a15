# SPDX-License-Identifier: Apache-2.0
"""The receiver keeps scapy's segments of the streams' peers and routers' errors about segments that were too long, and
names the reason for every other frame."""

import itertools
import os
from collections import deque
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSource
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int, mac_int
from lib.runner import Bench, seed
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, in4_chksum
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

BENCH = Bench(top="tcp_rx", configs=[{"DATA_W": 64, "N_STREAMS": 4}, {"DATA_W": 512, "N_STREAMS": 64}])

PORT_BASE, DEPTH = 40_000, 17  # segments that wait, the one at the output of their queue included
FLAGS = ("fin", "syn", "rst", "psh", "ack")  # by bit
KINDS = ("segment", "bad_checksum", "unknown", "dropped", "malformed", "not_for_us", "other")


def peer_ip(stream: int) -> str:
    return f"10.1.{stream}.9"


def peer_port(stream: int) -> int:
    return 10_000 + 7 * stream


@dataclass
class Case:
    """A frame, the one count it must raise (None: silence), and the arrival it must bring."""

    frame: bytes
    stat: str | None
    fields: dict[str, int] | None = None
    mac_error: bool = False


def lower(stream: int, mac: str = LOCAL_MAC, dst: str = LOCAL_IP, **ip) -> Packet:
    ip = {"src": peer_ip(stream), "id": 0, "flags": "DF"} | ip
    return Ether(dst=mac, src=PEER_MAC, type=0x0800) / IP(dst=dst, **ip)


def segment(rng, stream: int, payload: int = 0, **changes) -> Case:
    """A segment of a stream's peer with random fields."""
    tcp = {
        "sport": peer_port(stream),
        "dport": PORT_BASE + stream,
        "seq": rng.getrandbits(32),
        "ack": rng.getrandbits(32),
        "flags": rng.choice([0x10, 0x18, 0x11, 0x14, 0x04, 0xD0]),
        "window": rng.getrandbits(16),
    } | changes
    frame = bytes(lower(stream) / TCP(**tcp) / Raw(rng.randbytes(payload)))
    fields = {"stream": stream, "epoch": stream & 1}
    fields |= {"what.seq": tcp["seq"], "what.ack": tcp["ack"], "what.window": tcp["window"]}
    fields |= {"what.kind": 3, "what.len": payload}
    fields |= {f"what.flags.{name}": tcp["flags"] >> bit & 1 for bit, name in enumerate(FLAGS)}
    options = ("has_mss", "mss", "has_scale", "scale", "malformed")
    return Case(frame.ljust(60, b"\0"), "segment", fields | {f"what.options.{name}": 0 for name in options})


def syn(rng, stream: int, options, payload: int = 0, **expected: int) -> Case:
    """A SYN with ACK and options, of which these fields are read."""
    case = segment(rng, stream, payload, flags=0x12, options=options)
    case.fields |= {f"what.options.{name}": value for name, value in expected.items()}
    return case


def needs_fragmentation(
    rng, stream: int, mtu: int, icmp: dict | None = None, ip: dict | None = None, **tcp: int
) -> Case:
    """A router's "fragmentation needed" about a segment of a stream; changes to its ICMP, and to what it returns."""
    seq = tcp.get("seq", rng.getrandbits(32))
    ports = {"sport": PORT_BASE + stream, "dport": peer_port(stream)} | tcp | {"seq": seq}
    head = IP(**({"src": LOCAL_IP, "dst": peer_ip(stream), "flags": "DF", "len": 9000, "ttl": 3} | (ip or {})))
    returned = bytes(head / TCP(**ports))[: 4 * (head.ihl or 5) + 8]
    router = ICMP(**({"type": 3, "code": 4, "nexthopmtu": mtu} | (icmp or {})))
    frame = bytes(lower(stream, src="10.9.9.9") / router / Raw(returned))
    fields = {"stream": stream, "epoch": stream & 1, "what.kind": 4, "what.ack": seq}
    fields |= {"what.options.mss": max(mtu - 40, 0)}
    return Case(frame, "other", fields)


def path_mtu_cases(rng) -> list[Case]:
    """Words that are believed, then those that are not."""
    accepted = [
        needs_fragmentation(rng, stream, mtu) for stream in streams() for mtu in (0, 39, 40, 576, 1500, 9000, 65535)
    ]
    good = needs_fragmentation(rng, 1, 1300)
    strange = [
        needs_fragmentation(rng, 1, 1300, {"code": 1}),
        needs_fragmentation(rng, 1, 1300, {"type": 11}),
        needs_fragmentation(rng, 1, 1300, {"chksum": 0x1234}),
        needs_fragmentation(rng, 1, 1300, ip={"src": "10.0.1.3"}),
        needs_fragmentation(rng, 1, 1300, ip={"dst": peer_ip(0)}),
        needs_fragmentation(rng, 1, 1300, ip={"proto": 17}),
        needs_fragmentation(rng, 1, 1300, ip={"options": [IPOption(b"\x94\x04\x00\x00")], "ihl": 6}),
        needs_fragmentation(rng, 1, 1300, sport=PORT_BASE + int(os.environ["PARAM_N_STREAMS"])),
        needs_fragmentation(rng, 1, 1300, sport=PORT_BASE - 1),
        needs_fragmentation(rng, 1, 1300, dport=peer_port(0)),
        patched(good, "other", {24: good.frame[24] ^ 1}),  # IP checksum
        patched(good, "other", {20: 0x20}, True),  # more fragments
        patched(good, "other", {67: good.frame[67] ^ 1}),  # of the sequence number: the checksum is wrong
        patched(good, "other", {17: 55}, True),  # a byte of it is not there
    ]
    return accepted + [Case(case.frame, "other") for case in strange]


def streams() -> list[int]:
    n = int(os.environ["PARAM_N_STREAMS"])
    return [0, 1, n // 2, n - 1]


def good_cases(rng) -> list[Case]:
    cases = [segment(rng, stream) for stream in streams()]
    cases += [segment(rng, rng.choice(streams()), payload) for payload in (1, 2, 5, 6, 7, 9, 10, 11, 64, 65, 536, 8960)]
    timestamps = [("NOP", None), ("NOP", None), ("Timestamp", (rng.getrandbits(32), 0))]
    cases += [segment(rng, 0, payload, options=timestamps) for payload in (0, 3)]
    cases += [segment(rng, 0, 4, options=[("SAck", (1, 2, 3, 4, 5, 6))])]
    padded = segment(rng, 1, 9)
    padded.frame += rng.randbytes(77)  # Ethernet padding is not part of the segment
    return [*cases, padded]


def with_ip_checksum(frame: bytearray) -> bytes:
    frame[24:26] = bytes(2)
    words = sum(int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2))
    words = (words & 0xFFFF) + (words >> 16)
    frame[24:26] = (0xFFFF - ((words & 0xFFFF) + (words >> 16))).to_bytes(2, "big")
    return bytes(frame)


def patched(case: Case, stat: str, patches: dict[int, int], fix_ip_checksum: bool = False) -> Case:
    """The case with some bytes of the frame replaced."""
    frame = bytearray(case.frame)
    for at, value in patches.items():
        frame[at] = value
    return Case(with_ip_checksum(frame) if fix_ip_checksum else bytes(frame), stat)


def bad_checksums(rng) -> list[Case]:
    """One bit turned over in each byte that the checksum covers, except those that make another error."""
    cases = []
    for at in [*range(34, 46), *range(47, 54), *range(54, 75)]:
        case = segment(rng, 1, 21, flags=0x10)
        cases.append(patched(case, "bad_checksum", {at: case.frame[at] ^ 1 << rng.randrange(8)}))
    long = segment(rng, 1, 8960, flags=0x10)
    cases += [patched(long, "bad_checksum", {at: long.frame[at] ^ 0x10}) for at in (54, 4000, 9013)]
    shorter = patched(long, "bad_checksum", {17: long.frame[17] - 1}, True)
    return [*cases, shorter]


def malformed_cases(rng) -> list[Case]:
    good = segment(rng, 0, 20, flags=0x10)
    options = IP(src=peer_ip(0), dst=LOCAL_IP, options=[IPOption(b"\x94\x04\x00\x00")])
    cases = [
        patched(good, "malformed", {24: good.frame[24] ^ 1}),  # IP checksum
        patched(good, "malformed", {28: good.frame[28] ^ 0x80}),
        patched(good, "malformed", {14: 0x55}, True),  # version 5
        patched(good, "malformed", {14: 0x44}, True),
        patched(good, "malformed", {46: 0x40}),  # TCP header shorter than itself
        patched(good, "malformed", {46: 0xB0}),  # longer than the segment
        patched(good, "malformed", {17: good.frame[17] + 1}, True),  # IP length beyond the frame
        patched(good, "malformed", {16: 0, 17: 39}, True),
        patched(good, "malformed", {16: 0, 17: 3}, True),
        patched(good, "malformed", {20: 0x20}, True),  # more fragments
        patched(good, "malformed", {21: 0x01}, True),  # fragment offset
        Case(bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / options / TCP(dport=PORT_BASE)), "malformed"),
    ]
    return cases + [Case(good.frame[:length], "malformed") for length in (14, 20, 33, 34, 53, 54, 73)]


def other_cases(rng) -> list[Case]:
    tcp = TCP(sport=peer_port(0), dport=PORT_BASE)
    elsewhere = bytes(lower(0, mac="02:00:00:00:00:01") / tcp)
    beyond = PORT_BASE + int(os.environ["PARAM_N_STREAMS"])
    return [
        Case(elsewhere, "not_for_us"),
        Case(bytes(lower(0, dst="10.0.1.3") / tcp), "not_for_us"),
        Case(bytes(lower(0, mac="ff:ff:ff:ff:ff:ff") / tcp), "not_for_us"),
        Case(bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / ARP(pdst=LOCAL_IP)).ljust(60, b"\0"), "other"),
        Case(bytes(lower(0) / ICMP() / Raw(bytes(56))), "other"),
        Case(bytes(lower(0) / UDP(sport=peer_port(0), dport=PORT_BASE) / Raw(bytes(56))), "other"),
        Case(bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC, type=0x86DD) / Raw(rng.randbytes(80))), "other"),
        Case(bytes(lower(0) / tcp)[:9], "other"),
        Case(segment(rng, 0, dport=beyond).frame, "unknown"),
        Case(segment(rng, 0, dport=PORT_BASE - 1).frame, "unknown"),
        Case(segment(rng, 0, sport=peer_port(1)).frame, "unknown"),
        Case(bytes(lower(1, src=PEER_IP) / TCP(sport=peer_port(1), dport=PORT_BASE + 1)), "unknown"),
        *(Case(frame, None, mac_error=True) for frame in (elsewhere, segment(rng, 0).frame, segment(rng, 1, 99).frame)),
    ]


def all_cases(rng) -> list[Case]:
    return good_cases(rng) + bad_checksums(rng) + malformed_cases(rng) + other_cases(rng) + path_mtu_cases(rng)


def syn_cases(rng) -> list[Case]:
    mss, scale = ("MSS", 1460), ("WScale", 7)
    nop, sack = ("NOP", None), ("SAckOK", b"")
    end = ("EOL", None)
    both = {"has_mss": 1, "mss": 1460, "has_scale": 1, "scale": 7}
    odd = (200, b"\x01\x02\x03")
    return [
        syn(rng, 0, [mss, sack, ("Timestamp", (1, 0)), nop, scale], **both),  # as Linux has it
        syn(rng, 1, []),
        syn(rng, 1, [mss], has_mss=1, mss=1460),
        syn(rng, 1, [scale, nop, mss], **both),
        syn(rng, 1, [nop] * 33 + [mss, scale], **both),  # all 40 bytes
        syn(rng, 1, [odd, mss, scale], **both),
        syn(rng, 1, [mss, end, scale], has_mss=1, mss=1460),
        syn(rng, 1, [mss, mss, ("WScale", 255)], **(both | {"scale": 255})),
        syn(rng, 1, [mss, (3, b"\x07\x07")], has_mss=1, mss=1460, malformed=1),
        syn(rng, 1, [scale, (2, b"\x05"), mss], has_scale=1, scale=7, malformed=1),
        syn(rng, 0, [mss, scale], payload=30, **both),
    ]


def cut_option(rng, tail: bytes) -> Case:
    """A SYN whose last option, after an MSS, has an invalid length."""
    options = b"\x02\x04\x05\xb4" + b"\x01" * (-len(tail) % 4) + tail
    case = segment(rng, 0, flags=0x12)
    head = bytearray(case.frame[34:54])
    head[12], head[16:18] = (5 + len(options) // 4) << 4, bytes(2)
    packet = bytes(head) + options
    ip = IP(src=peer_ip(0), dst=LOCAL_IP, flags="DF", id=0, proto=6)
    head[16:18] = in4_chksum(6, ip, packet).to_bytes(2, "big")
    frame = bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / ip / Raw(bytes(head) + options))
    read = {"what.options.has_mss": 1, "what.options.mss": 1460, "what.options.malformed": 1}
    return Case(frame.ljust(60, b"\0"), "segment", case.fields | read)


class Bed:
    """The module, fed with frames; who looks at its counts and takes what arrives."""

    def __init__(self, dut):
        self.dut = dut
        self.counted: list[str] = []
        self.arrived: deque[dict[str, int]] = deque()

    async def start(self) -> "Bed":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.rst.value = 1
        dut.local_mac.value, dut.local_ip.value = mac_int(LOCAL_MAC), ip_int(LOCAL_IP)
        dut.port_base.value, dut.arrival_ready.value, dut.peer.value, dut.peer_epoch.value = PORT_BASE, 1, 0, 0
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self._watch())
        return self

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if dut.peer_rd.value:
                stream = int(dut.peer_stream.value)
                dut.peer.value = structs.pack("tcp_peer_t", ip=ip_int(peer_ip(stream)), port=peer_port(stream))
                dut.peer_epoch.value = stream & 1
            counts = structs.unpack("tcp_rx_counts_t", int(dut.counts.value)) if dut.rst.value == 0 else {}
            pulses = [name for name, value in counts.items() if value]
            assert len(pulses) <= 1, f"one frame, two counts: {pulses}"
            self.counted += pulses
            if dut.arrival_valid.value == 1 and dut.arrival_ready.value == 1:
                self.arrived.append(structs.unpack("tcp_arrival_t", int(dut.arrival.value)))

    async def send(self, cases: list[Case]) -> None:
        """The frames one after the other, and all of their counts."""
        width = len(self.dut.s_axis_tdata) // 8
        expected = len(self.counted) + sum(case.stat is not None for case in cases)
        for case in cases:
            beats = -(-len(case.frame) // width)
            tuser = [0] * (beats * width - width) + [int(case.mac_error)] * (len(case.frame) - (beats - 1) * width)
            await self.source.send(AxiStreamFrame(case.frame, tuser=tuser))
        await self.source.wait()
        for _ in range(50 * len(cases)):  # a SYN has 40 bytes of options at most
            if len(self.counted) == expected:
                break
            await ClockCycles(self.dut.clk, 1)
        await ClockCycles(self.dut.clk, 10)
        assert len(self.counted) == expected, f"{expected} counts expected, {len(self.counted)} seen"

    async def check(self, cases: list[Case]) -> None:
        """Each frame has its count, in their order, and each good one its arrival."""
        begin = len(self.counted)
        await self.send(cases)
        expected = [case for case in cases if case.stat is not None]
        for case, stat in zip(expected, self.counted[begin:], strict=True):
            assert stat == case.stat, f"{stat} for a frame that is {case.stat}: {case.frame.hex()}"
            if case.fields is not None:
                got = self.arrived.popleft()
                wrong = {name: got[name] for name, value in case.fields.items() if got[name] != value}
                assert not wrong, f"{wrong} in {case.frame.hex()}, expected {case.fields}"
        assert not self.arrived


@cocotb.test()
async def every_frame_makes_one_pulse_of_the_right_kind(dut):
    bed = await Bed(dut).start()
    await bed.check(all_cases(seed()))


@cocotb.test()
async def shuffled_frames_back_to_back_do_not_disturb_each_other(dut):
    rng = seed()
    bed = await Bed(dut).start()
    cases = [case for _ in range(3) for case in all_cases(rng) if len(case.frame) < 400]
    rng.shuffle(cases)
    await bed.check(cases)


@cocotb.test()
async def pauses_inside_and_between_frames_change_nothing(dut):
    rng = seed()
    bed = await Bed(dut).start()
    bed.source.set_pause_generator(rng.random() < 0.3 for _ in itertools.count())
    cases = [case for case in all_cases(rng) if len(case.frame) < 400]
    rng.shuffle(cases)
    await bed.check(cases)


@cocotb.test()
async def options_of_a_syn_are_read_whatever_they_are(dut):
    rng = seed()
    bed = await Bed(dut).start()
    cut = [cut_option(rng, tail) for tail in (b"\x03\x04\x00\x00", b"\xfe\x09\x00", b"\xfe\x00\x00", b"\xfe\x01\x00")]
    for case in [*syn_cases(rng), *cut]:
        await bed.check([case])
    broken = syn(rng, 0, [("MSS", 1460)])
    await bed.check([patched(broken, "bad_checksum", {57: broken.frame[57] ^ 1})])
    await bed.check([syn(rng, 0, [("MSS", 9000)], has_mss=1, mss=9000)])


@cocotb.test()
async def syns_delay_nothing_and_those_of_all_streams_come_back_to_back(dut):
    rng = seed()
    bed = await Bed(dut).start()
    count = int(os.environ["PARAM_N_STREAMS"])
    filled = [("NOP", None)] * 36 + [("MSS", 1460)]  # all 40 bytes
    linux = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None), ("WScale", 7)]
    syns = [syn(rng, 0, filled, has_mss=1, mss=1460)]
    syns += [syn(rng, stream, linux, has_mss=1, mss=1460, has_scale=1, scale=7) for stream in range(1, count)]
    plain = [segment(rng, 1) for _ in range(3)]
    strange = segment(rng, 1, flags=0x12, options=linux, sport=peer_port(0))
    await bed.send([*syns[:2], Case(strange.frame, "unknown"), *syns[2:], *plain])
    assert sorted(bed.counted) == [*["segment"] * (count + 3), "unknown"], bed.counted
    arrived = list(bed.arrived)
    for cases, flag in ((syns, 1), (plain, 0)):
        for got, case in zip([one for one in arrived if one["what.flags.syn"] == flag], cases, strict=True):
            wrong = {name: got[name] for name, value in case.fields.items() if got[name] != value}
            assert not wrong, f"{wrong} in {case.frame.hex()}, expected {case.fields}"


@cocotb.test()
async def a_syn_more_than_wait_is_dropped_and_counted(dut):
    rng = seed()
    bed = await Bed(dut).start()
    dut.arrival_ready.value = 0
    waiting = DEPTH + max(16, int(os.environ["PARAM_N_STREAMS"])) + 1  # in queues likewise
    cases = [syn(rng, 1, [("MSS", 1460)]) for _ in range(waiting + 1)]
    await bed.send(cases[:DEPTH])
    for case in cases[DEPTH:waiting]:
        await bed.source.send(AxiStreamFrame(case.frame))
    await bed.source.wait()
    assert bed.counted == ["segment"] * DEPTH
    await bed.send(cases[waiting:])
    assert bed.counted[DEPTH:] == ["dropped"]
    dut.arrival_ready.value = 1
    await ClockCycles(dut.clk, 40 * waiting)
    assert bed.counted[DEPTH + 1 :] == ["segment"] * (waiting - DEPTH)
    assert len(bed.arrived) == waiting


@cocotb.test()
async def what_finds_no_room_is_dropped_and_counted(dut):
    rng = seed()
    bed = await Bed(dut).start()
    dut.arrival_ready.value = 0
    cases = [segment(rng, rng.choice(streams())) for _ in range(DEPTH + 5)]
    await bed.send(cases)
    assert bed.counted == ["segment"] * DEPTH + ["dropped"] * 5
    dut.arrival_ready.value = 1
    await ClockCycles(dut.clk, 2 * DEPTH)
    assert [one["what.seq"] for one in bed.arrived] == [case.fields["what.seq"] for case in cases[:DEPTH]]
