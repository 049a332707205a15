# SPDX-License-Identifier: Apache-2.0
"""The receiver accepts scapy's RoCEv2 packets to our address, and reports the reason for every other frame."""

import itertools
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSource
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int, mac_int
from lib.runner import Bench, seed
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import ICMP, IP, UDP, IPOption
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

BENCH = Bench(top="roce_rx", configs=[{"DATA_W": 64}, {"DATA_W": 512}])

STATS = ["rx_roce", "icrc_error", "bad_pkey", "not_for_us", "malformed", "other"]


@dataclass
class Case:
    """A frame, the one count it must raise (None: silence), and the fields it must bring."""

    frame: bytes
    stat: str | None
    fields: dict[str, int] | None = None
    mac_error: bool = False


def lower(mac=LOCAL_MAC, dst=LOCAL_IP, dport=4791, **ip) -> Packet:
    ip = {"tos": 0, "ttl": 63, "id": 0, "flags": "DF"} | ip
    return (
        Ether(dst=mac, src=PEER_MAC, type=0x0800)
        / IP(src=PEER_IP, dst=dst, **ip)
        / UDP(sport=49152, dport=dport, chksum=0)
    )


def ack(rng, syndrome: int, under: Packet | None = None, **bth) -> Case:
    """An acknowledgement of any kind with random fields."""
    aeth = {"syndrome": syndrome, "msn": rng.getrandbits(24)}
    bth = {"dqpn": rng.getrandbits(24), "psn": rng.getrandbits(24), "migreq": rng.getrandbits(1)} | bth
    packet = (
        (under or lower(tos=rng.getrandbits(8), ttl=rng.randrange(1, 256))) / BTH(opcode=0x11, **bth) / AETH(**aeth)
    )
    becn = bth.get("becn", 0)
    fields = {
        "src_ip": ip_int(PEER_IP),
        "opcode": 0x11,
        "becn": becn,
        "dest_qpn": bth["dqpn"],
        "psn": bth["psn"],
        **aeth,
    }
    return Case(bytes(packet), "rx_roce", fields)


def cnp_case(rng) -> Case:
    qpn = rng.getrandbits(24)
    fields = {"src_ip": ip_int(PEER_IP), "opcode": 0x81, "becn": 1, "dest_qpn": qpn, "psn": 0}
    return Case(bytes(lower(tos=rng.getrandbits(8)) / cnp(qpn)), "rx_roce", fields)


def data_case(rng, length: int) -> Case:
    """A packet with payload: not served further on, but a good packet."""
    opcode, qpn, psn = rng.choice([0x00, 0x04, 0x07, 0x0A]), rng.getrandbits(24), rng.getrandbits(24)
    pad = -length % 4
    packet = lower() / BTH(opcode=opcode, dqpn=qpn, psn=psn, padcount=pad) / Raw(rng.randbytes(length + pad))
    fields = {"src_ip": ip_int(PEER_IP), "opcode": opcode, "becn": 0, "dest_qpn": qpn, "psn": psn}
    return Case(bytes(packet), "rx_roce", fields)


def good_cases(rng) -> list[Case]:
    acks = [ack(rng, syndrome) for syndrome in (0x00, 0x1F, 0x0D)]
    rnr = [ack(rng, 0x20 | timer) for timer in (0, 14, 31)]
    naks = [ack(rng, 0x60 | code) for code in range(4)]
    marked = [ack(rng, 0, fecn=1), ack(rng, 0, becn=1), ack(rng, 0, resv6=0x2A)]
    data = [data_case(rng, length) for length in (0, 1, 2, 3, 4, 60, 64, 255, 1024, 4096)]
    padded = [ack(rng, 3), data_case(rng, 0), data_case(rng, 77)]
    for case, more in zip(padded, (2, 2, 130), strict=True):
        case.frame += rng.randbytes(more)  # Ethernet padding is not part of the packet
    return [*acks, *rnr, *naks, *marked, *data, *padded, *(cnp_case(rng) for _ in range(4))]


def patched(case: Case, stat: str | None, patches: dict[int, int], fix_ip_checksum: bool = False) -> Case:
    """The case with some frame bytes replaced."""
    frame = bytearray(case.frame)
    for at, value in patches.items():
        frame[at] = value
    if fix_ip_checksum:
        frame[24:26] = bytes(2)
        words = sum(int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2))
        words = (words & 0xFFFF) + (words >> 16)
        frame[24:26] = (0xFFFF - ((words & 0xFFFF) + (words >> 16))).to_bytes(2, "big")
    return Case(bytes(frame), stat)


def bit_errors(rng) -> list[Case]:
    """One bit turned over wherever only the ICRC can see it."""
    cases = []
    for at in (44, 45, *range(47, 62)):  # BTH after TVer but for its mutable byte, AETH, ICRC
        case = ack(rng, 0)
        cases.append(patched(case, "icrc_error", {at: case.frame[at] ^ 1 << rng.randrange(8)}))
    cases += [patched(c, "icrc_error", {70: c.frame[70] ^ 0x10}) for c in (data_case(rng, 64), data_case(rng, 2000))]
    cases.append(patched(cnp_case(rng), "icrc_error", {60: 1}))
    return cases


def mutable_bytes_changed(rng) -> list[Case]:
    """What routers and switches may change leaves the ICRC right."""
    cases = []
    for at in (15, 22, 46):
        case = ack(rng, 0)
        turned = patched(case, "rx_roce", {at: case.frame[at] ^ 0x2B}, fix_ip_checksum=True)
        fields = case.fields | ({"becn": case.fields["becn"] ^ (0x2B >> 6 & 1)} if at == 46 else {})
        cases.append(Case(turned.frame, "rx_roce", fields))
    return cases


def partition_cases(rng) -> list[Case]:
    """The default partition's full and limited members are accepted, others only counted; a bad ICRC comes first."""
    stranger = [ack(rng, 0, pkey=pkey) for pkey in (0x0000, 0x8000, 0xFFFE, 0x7FFE, 0xBFFF, rng.randrange(0x7FFF))]
    for case in stranger:
        case.stat, case.fields = "bad_pkey", None
    damaged = patched(stranger[0], "icrc_error", {54: stranger[0].frame[54] ^ 1})
    return [ack(rng, 0, pkey=0x7FFF), ack(rng, 0, pkey=0xFFFF), *stranger, damaged]


def malformed_cases(rng) -> list[Case]:
    good = ack(rng, 0)
    with_options = Ether(dst=LOCAL_MAC, src=PEER_MAC) / IP(
        src=PEER_IP, dst=LOCAL_IP, options=[IPOption(b"\x94\x04\x00\x00")]
    )
    cases = [
        patched(good, "malformed", {24: good.frame[24] ^ 1}),  # IP checksum
        patched(good, "malformed", {30: good.frame[30] ^ 0x80}),
        patched(good, "malformed", {14: 0x55}, True),  # version 5
        patched(good, "malformed", {14: 0x44}, True),  # header shorter than itself
        patched(good, "malformed", {43: good.frame[43] | 0x1}),  # BTH version
        patched(good, "malformed", {39: good.frame[39] ^ 4}),  # UDP length
        patched(good, "malformed", {17: good.frame[17] + 4}, True),  # IP length beyond the frame
        patched(good, "malformed", {17: good.frame[17] - 4, 39: good.frame[39] - 4}, True),  # no room for the AETH
        patched(good, "malformed", {17: good.frame[17] - 1, 39: good.frame[39] - 1}, True),  # not in fours
        patched(good, "malformed", {16: 0, 17: 20}, True),
        patched(good, "malformed", {16: 0, 17: 3}, True),
        patched(good, "malformed", {20: 0x20}, True),  # more fragments
        patched(good, "malformed", {21: 0x01}, True),  # fragment offset
        Case(bytes(with_options / UDP(dport=4791, chksum=0) / BTH(opcode=0x11) / AETH()), "malformed"),
        Case(bytes(lower() / BTH(opcode=0x81, becn=1) / Raw(bytes(12))), "malformed"),  # CNP cut short
    ]
    return cases + [Case(good.frame[:n], "malformed") for n in (1, 8, 13, 14, 20, 33, 34, 41, 42, 53, 54, 57, 58, 61)]


def other_cases(rng) -> list[Case]:
    elsewhere = ack(rng, 0, lower(mac="02:00:00:00:00:01"))
    router_alert = IP(src=PEER_IP, dst="224.0.0.22", proto=2, options=[IPOption(b"\x94\x04\x00\x00")])
    return [
        Case(elsewhere.frame, "not_for_us"),
        Case(ack(rng, 0, lower(dst="10.0.1.3")).frame, "not_for_us"),
        Case(ack(rng, 0, lower(mac="ff:ff:ff:ff:ff:ff")).frame, "not_for_us"),
        Case(bytes(Ether(dst="02:00:00:00:00:01", src=PEER_MAC) / ARP()).ljust(60, b"\0"), "not_for_us"),
        Case(bytes(Ether(dst="ff:ff:ff:ff:ff:ff", src=PEER_MAC) / ARP(pdst=LOCAL_IP)).ljust(60, b"\0"), "other"),
        Case(
            bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC) / IP(src=PEER_IP, dst=LOCAL_IP) / ICMP() / Raw(bytes(56))), "other"
        ),
        Case(bytes(lower(dport=4790) / Raw(rng.randbytes(48))), "other"),
        Case(bytes(Ether(dst=LOCAL_MAC, src=PEER_MAC, type=0x86DD) / Raw(rng.randbytes(80))), "other"),
        Case(bytes(Ether(dst="01:00:5e:00:00:16", src=PEER_MAC) / router_alert / Raw(bytes(40))), "other"),
        *(Case(c.frame, None, mac_error=True) for c in (good_cases(rng)[0], elsewhere, cnp_case(rng))),
    ]


def all_cases(rng) -> list[Case]:
    return (
        good_cases(rng)
        + bit_errors(rng)
        + partition_cases(rng)
        + mutable_bytes_changed(rng)
        + malformed_cases(rng)
        + other_cases(rng)
    )


async def start(dut) -> AxiStreamSource:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.local_mac.value = mac_int(LOCAL_MAC)
    dut.local_ip.value = ip_int(LOCAL_IP)
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    return source


async def run_cases(dut, source: AxiStreamSource, cases: list[Case]) -> list[int]:
    """Sends the cases back to back and checks the pulses in their order; returns the latency of each."""
    width = len(dut.s_axis_tdata) // 8
    for case in cases:
        beats = -(-len(case.frame) // width)
        tuser = [0] * (beats * width - width) + [int(case.mac_error)] * (len(case.frame) - (beats - 1) * width)
        await source.send(AxiStreamFrame(case.frame, tuser=tuser))
    expected = [case for case in cases if case.stat is not None]
    seen, ends = [], []
    cycle = quiet = 0
    while quiet < 16:
        await RisingEdge(dut.clk)
        cycle += 1
        quiet = 0 if dut.s_axis_tvalid.value == 1 or not source.idle() else quiet + 1
        if dut.s_axis_tvalid.value == 1 and dut.s_axis_tlast.value == 1 and dut.s_axis_tuser.value == 0:
            ends.append(cycle)
        pulses = [name for name in STATS if getattr(dut, f"stat_{name}").value == 1]
        assert (dut.rx_valid.value == 1) == ("rx_roce" in pulses)
        if not pulses:
            continue
        assert len(pulses) == 1, f"one frame, two counts: {pulses}"
        case = expected[len(seen)]
        assert pulses[0] == case.stat, f"{pulses[0]} for a frame that is {case.stat}: {case.frame.hex()}"
        if case.fields is not None:
            got = structs.unpack("rx_roce_t", int(dut.rx.value))
            assert {k: got[k] for k in case.fields} == case.fields, case.frame.hex()
        seen.append(cycle)
    assert len(seen) == len(expected), f"{len(expected)} frames with {len(seen)} counts"
    return [at - end for at, end in zip(seen, ends, strict=True)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_frame_makes_one_pulse_of_the_right_kind_six_cycles_later(dut):
    rng = seed()
    source = await start(dut)
    latencies = await run_cases(dut, source, all_cases(rng))
    assert set(latencies) == {6}, f"latencies {sorted(set(latencies))}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def shuffled_frames_back_to_back_do_not_disturb_each_other(dut):
    rng = seed()
    source = await start(dut)
    cases = [case for _ in range(2) for case in all_cases(rng) if len(case.frame) < 400]
    rng.shuffle(cases)
    await run_cases(dut, source, cases)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def pauses_inside_and_between_frames_change_nothing(dut):
    rng = seed()
    source = await start(dut)
    source.set_pause_generator(rng.random() < 0.3 for _ in itertools.count())
    cases = [case for case in all_cases(rng) if len(case.frame) < 400]
    rng.shuffle(cases)
    await run_cases(dut, source, cases)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def minimum_acknowledgements_back_to_back_all_arrive(dut):
    rng = seed()
    source = await start(dut)
    await run_cases(dut, source, [ack(rng, rng.getrandbits(8)) for _ in range(200)])
