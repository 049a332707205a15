# SPDX-License-Identifier: Apache-2.0
"""The Wireshark dissector: tshark shows the fields that scapy wrote, and flags violations of the format."""

import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT, SCENARIO, TIMEOUT_S, Penstock
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.contrib.roce import BTH, cnp
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.sctp import crc32c
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgReader, PcapWriter, wrpcap

sys.path.append(str(ROOT / "tb/lib"))
import connection as cm  # written from the table of the message's fields alone

DISSECTOR = ROOT / "dissector/penstock.lua"
INSTALL = "tshark is missing: apt-get install tshark, or `make setup`"
ERROR = "_ws.expert.severity == error"


def tshark(capture: Path, *arguments: str) -> list[list[str]]:
    """A row of fields per frame that tshark prints."""
    command = ["tshark", "-n", "-r", capture, "-X", f"lua_script:{DISSECTOR}", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        pytest.fail(INSTALL, pytrace=False)
    assert done.returncode == 0 and "Lua" not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def fields(capture: Path, names: list[str], *arguments: str) -> list[list[str]]:
    return tshark(capture, *arguments, "-T", "fields", *(word for name in names for word in ("-e", name)))


def udp(dport: int, sport: int = 0xC123) -> Packet:
    return (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src="10.0.1.1", dst="10.0.0.1")
        / UDP(sport=sport, dport=dport)
    )


def rdma(opcode: int, payload: bytes, headers: bytes = b"") -> Packet:
    padding = -len(payload) % 4
    return udp(4791) / BTH(opcode=opcode, dqpn=0x11, psn=7, padcount=padding) / Raw(headers + payload + bytes(padding))


RETH, IMMEDIATE = struct.pack(">QII", 0x1000, 0x2A, 4096), struct.pack(">I", 5)
WRITE_FIRST, WRITE_MIDDLE, WRITE_ONLY_IMM, SEND_ONLY = 0x06, 0x07, 0x0B, 0x04
READ_REQUEST, READ_FIRST, READ_ONLY, AETH = 0x0C, 0x0D, 0x10, struct.pack(">I", 0x1F000007)


def fragment(payload: bytes, source: int = 3, event: int = 0x123456789ABCDEF0, length: int | None = None) -> bytes:
    """A fragment as crates/wire/src/fragment/mod.rs draws it; the CRC is scapy's."""
    crc = crc32c_of(payload)
    size = len(payload) if length is None else length
    header = struct.pack("<4sHHIIQQI", b"PSTF", 1, source, size, crc, event, 987_654_321_012, 0)
    return header + struct.pack("<I", crc32c_of(header)) + payload


def crc32c_of(data: bytes) -> int:
    """SCTP sends the CRC-32C least significant byte first."""
    return int.from_bytes(crc32c(data).to_bytes(4, "big"), "little")


class Case(NamedTuple):
    frame: Packet
    expected: dict[str, str]


def test_the_crc_of_the_tests_is_that_of_rfc_3720() -> None:
    assert crc32c_of(b"123456789") == 0xE3069283


def check(folder: Path, names: list[str], cases: list[Case], *arguments: str) -> None:
    capture = folder / "cases.pcap"
    wrpcap(str(capture), [case.frame for case in cases])
    rows = fields(capture, names, *arguments)
    assert len(rows) == len(cases)
    for row, case in zip(rows, cases, strict=True):
        assert dict(zip(names, row, strict=True)) == {name: case.expected.get(name, "") for name in names}


SENDER = cm.Info(0x123456, 0x654321, 0xCAFEF00D, 0x0123456789ABCDEF, 0x0A000001)
OTHER = cm.Info(0xABCDEF, 0x1, 0x2, 0x3, 0x0A000102)
MESSAGE = cm.Message(cm.OPEN_QP, SENDER, OTHER, port=0x4322, transmit=cm.Transmit(True, True, True, 4096, 10, 7))


def test_every_field_of_the_connection_manager_is_read(tmp_path: Path) -> None:
    side = {"qpn": "0x123456", "psn": "6636321", "rkey": "0xcafef00d", "base": "0x0123456789abcdef", "ip": "10.0.0.1"}
    other = {"qpn": "0xabcdef", "psn": "1", "rkey": "0x00000002", "base": "0x0000000000000003", "ip": "10.0.1.2"}
    expected = {"info_valid": "1", "request": "1", "ack_valid": "0", "ack": "0", "port": "17186"}
    expected |= {f"sender.{name}": value for name, value in side.items()}
    expected |= {f"other.{name}": value for name, value in other.items()}
    expected |= {"tx.valid": "1", "tx.start": "1", "tx.imm": "1", "tx.kind": "1"}
    expected |= {"tx.length": "4096", "tx.count": "10", "tx.interval": "7"}
    names = [f"penstock.cm.{name}" for name in expected]
    cases = [
        Case(udp(port) / Raw(MESSAGE.pack()), dict(zip(names, expected.values(), strict=True)))
        for port in (cm.REQUEST_PORT, cm.REPLY_PORT)
    ]
    check(tmp_path, names, cases)


def test_feroce_s_own_messages_are_read_as_what_they_mean(tmp_path: Path) -> None:
    cases = []
    for message, data in cm.GOLDEN.values():
        expected = {"request": message.request, "ack": message.answer or 0, "port": message.port}
        expected |= {"sender.qpn": f"0x{message.sender.qpn:06x}", "other.qpn": f"0x{message.other.qpn:06x}"}
        what = message.transmit or cm.Transmit(start=False)
        expected |= {"tx.imm": int(what.with_imm), "tx.kind": int(what.is_write), "tx.interval": what.interval}
        fields = {f"penstock.cm.{name}": str(value) for name, value in expected.items()}
        cases.append(Case(udp(cm.REQUEST_PORT) / Raw(data), fields))
    names = [*cases[0].expected, "penstock.cm.length.bad", "penstock.cm.reserved", "penstock.cm.empty"]
    check(tmp_path, names, cases)


def test_captures_that_are_cut_anywhere_are_read_without_an_error_of_the_dissector(tmp_path: Path) -> None:
    frames = [
        udp(cm.REQUEST_PORT) / Raw(MESSAGE.pack()),
        udp(4791) / BTH(opcode=0x81, becn=1, dqpn=0xABCDE, psn=0) / Raw(bytes(16)),
        udp(4791) / BTH(opcode=0x81, becn=1, dqpn=0xABCDE, psn=0) / Raw(bytes(5)),
        rdma(WRITE_ONLY_IMM, fragment(bytes(100)), RETH + IMMEDIATE),
        rdma(SEND_ONLY, fragment(bytes(100))),
        rdma(READ_ONLY, fragment(bytes(100)), AETH),
        rdma(WRITE_ONLY_IMM, announcement([64, 0, 10]), RETH + IMMEDIATE),
    ]
    capture, whole = tmp_path / "cut.pcap", max(len(bytes(frame)) for frame in frames)
    with PcapWriter(str(capture), linktype=1) as writer:
        writer.write_header(None)
        for cut in range(14, whole + 1):
            for data in map(bytes, frames):
                writer.write_packet(data[:cut], wirelen=len(data))
    reported = "\n".join("\t".join(line) for line in tshark(capture, "-V"))
    errors = [line for line in reported.splitlines() if "Lua Error" in line or "dissector bug" in line.lower()]
    assert reported.count("Frame Length:") == len(frames) * (whole - 13) and not errors, errors[:3]


def test_headers_of_packets_that_were_cut_are_read(tmp_path: Path) -> None:
    """As `tcpdump -s` leaves them: InfiniBand's own dissector stops in front of the payload of such a packet."""
    frames = [
        (rdma(WRITE_ONLY_IMM, fragment(bytes(1000)), RETH + IMMEDIATE), "RDMA WRITE Only with Immediate", True),
        (rdma(WRITE_FIRST, fragment(bytes(984), length=5000), RETH), "RDMA WRITE First", True),
        (rdma(SEND_ONLY, fragment_2(bytes(1000), [(0, 0, 0, 1000)], event=77)), "SEND Only", True),
        (rdma(READ_FIRST, fragment(bytes(984), length=5000), AETH), "RDMA READ response First", True),
        (rdma(WRITE_MIDDLE, bytes(1000)), "RDMA WRITE Middle", False),
    ]
    capture = tmp_path / "cut.pcap"
    for snap in (256, 142):
        with PcapWriter(str(capture), linktype=1) as writer:
            writer.write_header(None)
            for frame, *_ in frames:
                writer.write_packet(bytes(frame)[:snap], wirelen=len(frame))
        names = ["penstock.fragment.event", "penstock.fragment.source", "penstock.fragment.time", "_ws.col.Info"]
        rows = fields(capture, names)
        numbers = [str(0x123456789ABCDEF0)] * 2 + ["77", str(0x123456789ABCDEF0)]
        assert [row[:3] for row in rows[:4]] == [[number, "3", "987654321012"] for number in numbers]
        assert rows[4][:3] == ["", "", ""]
        for (frame, opcode, is_fragment), row in zip(frames, rows, strict=True):
            assert f"{opcode} (" in row[3] and f"({snap} of {len(frame)} bytes captured)" in row[3], row
            assert ("fragment: source 3, event" in row[3], "Malformed" in row[3]) == (is_fragment, False), row
        assert tshark(capture, "-Y", ERROR) == []


def test_malformed_messages_of_the_connection_manager_are_flagged(tmp_path: Path) -> None:
    def changed(at: int, value: int) -> bytes:
        data = bytearray(MESSAGE.pack())
        data[at] = value
        return bytes(data)

    flags = {name: f"penstock.cm.{name}" for name in ("length.bad", "request.bad", "ack.bad", "empty", "reserved")}
    bad = {
        "length.bad": [MESSAGE.pack()[:63], MESSAGE.pack() + b"\0", b"\0"],
        "request.bad": [changed(0, 5 << 1), changed(0, 6 << 1)],
        "ack.bad": [changed(0, 1 << 4 | 4 << 5), changed(0, 1 << 4)],
        "empty": [bytes(64)],
        "reserved": [changed(1, 1), changed(51, 0xF1)],
    }
    cases = [
        Case(udp(cm.REQUEST_PORT) / Raw(data), {flags[name]: "1"}) for name, several in bad.items() for data in several
    ]
    good = [cm.Message(request, SENDER, answer=answer) for request in (1, 2, 3, 4, 7) for answer in (None, 1, 2, 3, 7)]
    good.append(cm.Message(transmit=cm.Transmit(start=False)))
    cases += [Case(udp(cm.REQUEST_PORT) / Raw(message.pack()), {}) for message in good]
    check(tmp_path, list(flags.values()), cases)


def test_every_field_of_a_cnp_is_read_and_broken_ones_are_flagged(tmp_path: Path) -> None:
    def notification(becn: int = 1, reserved: bytes = bytes(16)) -> Packet:
        return udp(4791) / BTH(opcode=0x81, fecn=1, becn=becn, dqpn=0xABCDE, psn=0) / Raw(reserved)

    names = ["qpn", "fecn", "becn", "reserved", "icrc", "length.bad", "becn.bad", "reserved.bad"]
    names = [f"penstock.cnp.{name}" for name in names]

    def expected(frame: Packet, becn: str = "1", reserved: str = "00" * 16) -> dict[str, str]:
        icrc = int.from_bytes(bytes(frame)[-4:], "little")
        return dict(zip(names, ["0x0abcde", "1", becn, reserved, f"0x{icrc:08x}"], strict=False))

    good, silent = notification(), notification(becn=0)
    dirty, short = notification(reserved=bytes(15) + b"\1"), notification(reserved=bytes(12))
    by_scapy = udp(4791) / cnp(dqpn=0xABCDE)
    cases = [
        Case(good, expected(good)),
        Case(silent, expected(silent, becn="0") | {"penstock.cnp.becn.bad": "1"}),
        Case(dirty, expected(dirty, reserved="00" * 15 + "01") | {"penstock.cnp.reserved.bad": "1"}),
        Case(short, {"penstock.cnp.length.bad": "1"}),
        Case(by_scapy, expected(by_scapy) | {"penstock.cnp.fecn": "0"}),
    ]
    check(tmp_path, names, cases)


def test_a_tagged_packet_and_a_notification_for_it_are_read_and_broken_ones_are_flagged(tmp_path: Path) -> None:
    capture = tmp_path / "qcn.pcap"
    plain = bytes(rdma(WRITE_MIDDLE, bytes(64)))
    tagged = plain[:12] + struct.pack(">HH", 0x22E9, 0x0203) + plain[12:]

    def message(flow: int, feedback: int, version: int = 0, length: int = 44) -> bytes:
        head = struct.pack(">HHHH8s", 0x22E9, flow, 0x22E7, version << 12 | feedback, bytes(8))
        sampled = struct.pack(">hhH6sH", -1234, 567, 3 << 13, bytes.fromhex("0250535409fe"), length)
        return plain[:12] + head + sampled + plain[12:56]

    frames = (plain, tagged, message(3, 32), message(4, 33, version=1), message(5, 34, length=45))
    wrpcap(str(capture), [Ether(frame) for frame in frames])
    names = ["penstock.qcn.flow", "infiniband.bth.psn", "penstock.qcn.feedback", "penstock.qcn.q_offset"]
    assert fields(capture, [*names, "penstock.qcn.dst"]) == [
        ["", "7", "", "", ""],
        ["515", "7", "", "", ""],
        *([str(flow), "", str(32 + flow - 3), "-1234", "02:50:53:54:09:fe"] for flow in (3, 4, 5)),
    ]
    assert fields(capture, ["penstock.qcn.flow"], "-Y", ERROR) == [["4"], ["5"]]


def test_fragment_headers_are_read_where_a_message_begins_and_nowhere_else(tmp_path: Path) -> None:
    names = ["source", "event", "time", "length", "version", "whole", "crc.bad", "header_crc.bad"]
    names = [f"penstock.fragment.{name}" for name in [*names, "version.bad", "length.bad", "short"]]
    payload = bytes(range(200)) + b"x"
    whole = fragment(payload)
    values = ["3", str(0x123456789ABCDEF0), "987654321012", str(len(payload)), "1", "1"]
    good = dict(zip(names, values, strict=False))

    def flagged(name: str, **more: str) -> dict[str, str]:
        return good | {f"penstock.fragment.{key}": value for key, value in ({name: "1"} | more).items()}

    def damaged(at: int) -> bytes:
        return whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]

    def only(data: bytes) -> Packet:
        return rdma(WRITE_ONLY_IMM, data, RETH + IMMEDIATE)

    long = fragment(bytes(984), length=5000)
    too_long = fragment(payload, length=202)
    cases = [
        Case(only(whole), good),
        Case(rdma(SEND_ONLY, whole), good),
        Case(rdma(WRITE_FIRST, long, RETH), good | {names[3]: "5000", names[5]: "0"}),
        Case(rdma(WRITE_MIDDLE, whole), {}),
        Case(only(b"PSTG" + whole[4:]), {}),
        Case(only(damaged(50)), flagged("crc.bad")),
        Case(only(damaged(32)), flagged("header_crc.bad")),
        Case(only(damaged(4)), flagged("version.bad", version="0") | {"penstock.fragment.header_crc.bad": "1"}),
        Case(only(too_long), flagged("length.bad", length="202", whole="0")),
        Case(only(whole[:39]), {"penstock.fragment.short": "1"}),
    ]
    check(tmp_path, names, cases)


def fragment_2(payload: bytes, parts: list[tuple[int, int, int, int]], source: int = 3, event: int = 1 << 60) -> bytes:
    """Version 2 as crates/wire/src/fragment/message.rs draws it; parts are input, flags, offset and length."""
    message = struct.pack("<4sHHQQH6x", b"PSTF", 2, source, event, 987_654_321_012, 9) + payload
    message += bytes(-len(payload) % 8)
    message += b"".join(struct.pack("<BxHII4x", *part) for part in parts)
    message += struct.pack("<IBxH4s", len(payload), len(parts), 0x11, b"PSTE")
    return message + struct.pack("<I", crc32c_of(message))


def test_a_fragment_of_version_2_is_read_to_its_trailer_and_its_parts(tmp_path: Path) -> None:
    names = ["source", "event", "time", "trigger", "version", "whole", "length", "parts", "flags"]
    names += ["part.input", "part.flags", "part.offset", "part.length", "message_crc.bad", "trailer.bad", "short"]
    names = [f"penstock.fragment.{name}" for name in names]
    whole = fragment_2(bytes(range(21)), [(0, 0, 0, 5), (4, 0x11, 8, 13)])
    begun = dict(zip(names, ["3", str(1 << 60), "987654321012", "9", "2", "1"], strict=False))
    values = ["21", "2", "0x0011", "0,4", "0x0000,0x0011", "0,8", "5,13"]
    good = begun | dict(zip(names[6:], values, strict=False))

    def only(data: bytes) -> Packet:
        return rdma(WRITE_ONLY_IMM, data, RETH + IMMEDIATE)

    long = rdma(WRITE_FIRST, fragment_2(bytes(4096), [])[:1024], RETH)
    cases = [
        Case(only(whole), good),
        Case(rdma(SEND_ONLY, whole), good),
        Case(only(fragment_2(b"", [])), begun | dict(zip(names[6:9], ["0", "0", "0x0011"], strict=True))),
        Case(only(whole[:40] + b"x" + whole[41:]), good | {"penstock.fragment.message_crc.bad": "1"}),
        Case(only(whole[:-8]), begun | {"penstock.fragment.trailer.bad": "1"}),
        Case(long, begun | {"penstock.fragment.whole": "0"}),
        Case(only(whole[:31]), {"penstock.fragment.short": "1"}),
    ]
    check(tmp_path, names, cases)


def announcement(lengths: list[int], version: int = 2, count: int | None = None, stride: int = 74) -> bytes:
    """As crates/wire/src/announcement.rs draws it, seven fragments having been named by READs before."""
    count = len(lengths) if count is None else count
    header = struct.pack("<4sHBBQQII", b"PSTA", version, count, 7, 1 << 60, 0x1000_0000_0040, 0xCAFE, stride)
    return header + entries(lengths)


def entries(lengths: list[int]) -> bytes:
    """Each skips one event more."""
    return b"".join(struct.pack("<BI", skipped, length) for skipped, length in enumerate(lengths))


def test_every_field_of_an_announcement_is_read_and_broken_ones_are_flagged(tmp_path: Path) -> None:
    names = ["version", "count", "carried", "event", "address", "rkey", "stride", "skipped", "length"]
    names += ["version.bad", "count.bad", "length.bad", "overlap"]
    names = [f"penstock.announcement.{name}" for name in names]

    def only(data: bytes) -> Packet:
        return rdma(WRITE_ONLY_IMM, data, RETH + IMMEDIATE)

    def expected(*flags: str, **changed: str) -> dict[str, str]:
        values = ["2", "3", "7", str(1 << 60), "0x0000100000000040", "0x0000cafe", "74", "0,1,2", "64,0,10"]
        good = dict(zip(names, values, strict=False))
        return good | {
            f"penstock.announcement.{name}": value for name, value in ({f: "1" for f in flags} | changed).items()
        }

    lengths = [64, 0, 10]
    cases = [
        Case(only(announcement(lengths)), expected()),
        Case(rdma(SEND_ONLY, announcement(lengths)), expected()),
        Case(only(announcement(lengths, version=1)), expected("version.bad", version="1")),
        Case(only(announcement([], count=0)), expected("count.bad", count="0", skipped="", length="")),
        Case(only(announcement(lengths, count=2)), expected("length.bad", count="2", skipped="0,1", length="64,0")),
        Case(only(announcement(lengths, stride=73)), expected("overlap", stride="73")),
        Case(rdma(WRITE_MIDDLE, announcement(lengths)), {}),
        Case(only(announcement(lengths)[:31]), {}),
    ]
    check(tmp_path, names, cases)


def test_what_follows_a_fragment_that_is_read_is_read_as_an_announcement(tmp_path: Path) -> None:
    names = ["penstock.fragment.event", "penstock.fragment.crc.bad"]
    names += [f"penstock.announcement.{name}" for name in ("skipped", "length")]

    def expected(*values: str) -> dict[str, str]:
        return dict(zip(names, [str(0x123456789ABCDEF0), "", *values], strict=False))

    followed = [fragment(b"event") + entries(lengths) for lengths in ([64, 10], [64, 0], [0, 0])]
    cases = [
        Case(rdma(READ_ONLY, followed[0], AETH), expected("0,1", "64,10")),
        Case(rdma(READ_ONLY, followed[1], AETH), expected("0", "64")),
        Case(rdma(READ_ONLY, followed[2], AETH), expected()),
        Case(rdma(READ_ONLY, followed[0][:-1], AETH), expected()),
        Case(rdma(WRITE_ONLY_IMM, followed[0], RETH + IMMEDIATE), expected()),
    ]
    check(tmp_path, names, cases)


def test_answers_to_reads_are_read_as_fragments(tmp_path: Path) -> None:
    expected = {"penstock.fragment.event": str(0x123456789ABCDEF0), "penstock.fragment.crc.bad": ""}
    damaged = fragment(b"event")[:-1] + b"?"
    cases = [
        Case(rdma(READ_REQUEST, b"", RETH), {}),
        Case(rdma(READ_ONLY, fragment(b"event"), AETH), expected),
        Case(rdma(READ_ONLY, damaged, AETH), expected | {"penstock.fragment.crc.bad": "1"}),
        Case(rdma(READ_FIRST, fragment(bytes(1000), length=5000), AETH), expected),
        Case(rdma(READ_ONLY, b"no event", AETH), {}),
    ]
    check(tmp_path, list(expected), cases)


def test_wireshark_reads_from_the_vectors_of_the_codec_what_the_codec_reads(tmp_path: Path) -> None:
    """All opcodes, READ requests and responses included; crates/wire/tests/vectors.rs has the codec's part."""
    lines = (ROOT / "crates/wire/tests/vectors.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line.startswith("roce ")]
    names = {"opcode": "bth.opcode", "dqpn": "bth.destqp", "psn": "bth.psn", "ackreq": "bth.a", "pkey": "bth.p_key"}
    names |= {"va": "reth.va", "rkey": "reth.r_key", "dmalen": "reth.dmalen"}
    names |= {"syndrome": "aeth.syndrome", "msn": "aeth.msn"}
    capture = tmp_path / "vectors.pcap"
    wrpcap(str(capture), [Ether(bytes.fromhex(row[-1])) for row in rows])
    found = fields(capture, [f"infiniband.{name}" for name in names.values()])
    opcodes = set()
    for row, values in zip(rows, found, strict=True):
        expected = dict(pair.split("=") for pair in row[1:-1])
        assert [int(value, 0) if value else None for value in values] == [
            int(expected[name]) if name in expected else None for name in names
        ]
        opcodes.add(int(expected["opcode"]))
    assert opcodes == set(range(0x12))


def test_a_frame_of_each_kind_is_read_without_an_error(tmp_path: Path) -> None:
    frames = [
        rdma(WRITE_ONLY_IMM, fragment(b"event"), RETH + IMMEDIATE),
        udp(4791) / cnp(dqpn=1),
        udp(cm.REQUEST_PORT) / Raw(MESSAGE.pack()),
        Ether(dst="01:80:c2:00:00:01", type=0x8808) / MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=9),
        Ether() / IP() / TCP(sport=5000, dport=6000, seq=1) / Raw(b"x"),
    ]
    capture = tmp_path / "kinds.pcap"
    wrpcap(str(capture), frames)
    rows = fields(capture, ["_ws.col.Protocol", "_ws.expert.severity"])
    assert [row[0] for row in rows] == ["Fragment", "RoCE CNP", "CM", "MAC CTRL", "TCP"]
    assert tshark(capture, "-Y", f"_ws.malformed or {ERROR}") == []


@pytest.fixture(scope="module")
def captured(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three boards, a slow server and a small buffer: both directions of every link, whole frames."""
    marking = ["switch.kmin=10KB", "switch.kmax=40KB", "switch.buffer=250KB"]
    settings = ["replay.events=3", "cc.law=dcqcn", "cc.rate_start=10Gbps", *marking]
    capture = [
        'capture.links=["board0-switch", "board1-switch", "board2-switch", "server0-switch"]',
        "capture.snap=65535B",
    ]
    run = penstock.run(tmp_path_factory.mktemp("captured"), *settings, *capture, scenario=SCENARIO)
    assert run.status == 0, run.stderr
    return run.out / "capture.pcapng"


def test_a_run_of_boards_is_captured_with_no_malformed_frame_and_its_fragments_are_read(captured: Path) -> None:
    names = ["_ws.col.Protocol", "frame.interface_name", "penstock.fragment.source", "penstock.fragment.event"]
    rows = fields(captured, [*names, "_ws.malformed", "frame.time_epoch"])
    protocols = {row[0] for row in rows}
    assert {"Fragment", "RoCE CNP", "RRoCE", "MAC CTRL"} <= protocols, protocols
    assert all(row[4] == "" for row in rows)
    at_server = {(int(row[2]), int(row[3])) for row in rows if row[2] and row[1] == "switch:3>server0:0"}
    assert at_server == {(source, event) for source in range(3) for event in range(3)}
    times = [row[5] for row in rows]
    assert all(len(time.split(".")[1]) == 9 for time in times) and any(not time.endswith("000") for time in times)
    assert times == sorted(times, key=float)
    assert tshark(captured, "-Y", ERROR) == []


def test_the_default_capture_has_the_headers_of_all_fragments(penstock: Penstock, tmp_path: Path) -> None:
    settings = ["replay.events=3", 'capture.links=["server0-switch"]']
    run = penstock.run(tmp_path / "out", *settings, scenario=SCENARIO)
    assert run.status == 0, run.stderr
    names = ["penstock.fragment.source", "penstock.fragment.event", "frame.interface_name"]
    rows = [row for row in fields(run.out / "capture.pcapng", names) if row[0] and row[2] == "switch:3>server0:0"]
    assert sorted((int(row[0]), int(row[1])) for row in rows) == [(s, event) for s in range(3) for event in range(3)]


TCP_RUN = """
[run]
time_limit = "1s"
[topology]
kind = "star"
boards = 2
[switch]
buffer = "300KB"
[[flow]]
from = "board{0..1}"
to = "server0"
protocol = "tcp"
size = "300KB"
[trace]
interval = "0us"
"""


def test_our_tcp_is_read_as_one_stream_a_flow_without_a_malformed_frame(penstock: Penstock, tmp_path: Path) -> None:
    scenario = tmp_path / "tcp.toml"
    scenario.write_text(TCP_RUN)
    run = penstock.run(tmp_path / "out", 'capture.links=["server0-switch"]', scenario=scenario)
    assert run.status == 0, run.stderr
    capture = run.out / "capture.pcapng"
    rows = fields(capture, ["tcp.stream", "tcp.len", "_ws.malformed"])
    assert {row[0] for row in rows} == {"0", "1"} and all(row[2] == "" for row in rows)
    assert sum(int(row[1]) for row in rows) >= 2 * 300_000
    assert tshark(capture, "-Y", ERROR) == []


def test_scapy_reads_the_same_capture_with_the_same_number_of_frames(captured: Path) -> None:
    frames = sum(1 for _ in PcapNgReader(str(captured)))
    assert frames == len(fields(captured, ["frame.number"]))
