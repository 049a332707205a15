#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames made by scapy, an independent codec, for the wire crate to parse and to reproduce byte for byte.

Writes vectors.txt next to this script; `--check` only compares and fails if the stored file is stale:

    .venv/bin/python crates/wire/tests/make_vectors.py [--check]

One frame a line: its kind, `name=value` pairs (decimal), and the frame without FCS in hexadecimal. The FCS is zlib's.
"""

import random
import struct
import sys
import zlib
from pathlib import Path

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import mac2str

SEED = 20240607
OUT = Path(__file__).with_name("vectors.txt")
MAC_CONTROL_DST = "01:80:c2:00:00:01"
RETH_OPCODES = {0x06, 0x0A, 0x0B, 0x0C}
IMM_OPCODES = {0x03, 0x05, 0x09, 0x0B}
AETH_OPCODES = {0x0D, 0x0F, 0x10, 0x11}


def line(kind: str, fields: dict[str, int], frame: bytes) -> str:
    pairs = " ".join(f"{name}={value}" for name, value in {**fields, "fcs": zlib.crc32(frame)}.items())
    return f"{kind} {pairs} {frame.hex()}"


def ip_fields(rng: random.Random) -> dict[str, int]:
    return {
        "dst": rng.getrandbits(48) & ~(1 << 40),
        "src": rng.getrandbits(48) & ~(1 << 40),
        "sip": rng.getrandbits(32),
        "dip": rng.getrandbits(32),
        "tos": rng.getrandbits(8),
        "ttl": rng.randrange(1, 256),
        "sport": rng.randrange(0xC000, 0x10000),
    }


def mac(value: int) -> str:
    return ":".join(f"{octet:02x}" for octet in value.to_bytes(6, "big"))


def address(value: int) -> str:
    return ".".join(str(octet) for octet in value.to_bytes(4, "big"))


def envelope(fields: dict[str, int]):
    return (
        Ether(dst=mac(fields["dst"]), src=mac(fields["src"]))
        / IP(
            src=address(fields["sip"]),
            dst=address(fields["dip"]),
            tos=fields["tos"],
            ttl=fields["ttl"],
            id=0,
            flags="DF",
        )
        / UDP(sport=fields["sport"], dport=4791, chksum=0)
    )


def roce(rng: random.Random, opcode: int, length: int) -> str:
    fields = ip_fields(rng) | {
        "opcode": opcode,
        "solicited": rng.getrandbits(1),
        "migreq": rng.getrandbits(1),
        "pkey": rng.choice([0xFFFF, 0x7FFF, 0x1234]),
        "fecn": rng.getrandbits(1),
        "becn": rng.getrandbits(1),
        "dqpn": rng.getrandbits(24),
        "ackreq": rng.getrandbits(1),
        "psn": rng.getrandbits(24),
        "len": length,
    }
    names = ("opcode", "solicited", "migreq", "pkey", "fecn", "becn", "dqpn", "ackreq", "psn")
    header = b""
    if opcode in RETH_OPCODES:
        fields |= {"va": rng.getrandbits(64), "rkey": rng.getrandbits(32), "dmalen": rng.getrandbits(32)}
        header += struct.pack("!QII", fields["va"], fields["rkey"], fields["dmalen"])
    if opcode in AETH_OPCODES:
        fields |= {"syndrome": rng.getrandbits(8), "msn": rng.getrandbits(24)}
        header += bytes(AETH(syndrome=fields["syndrome"], msn=fields["msn"]))
    if opcode in IMM_OPCODES:
        fields |= {"imm": rng.getrandbits(32)}
        header += struct.pack("!I", fields["imm"])
    pad = -length % 4
    body = header + bytes((7 * i + length) & 0xFF for i in range(length)) + bytes(pad)
    bth = BTH(padcount=pad, **{name: fields[name] for name in names})
    return line("roce", fields, bytes(envelope(fields) / bth / Raw(body)))


def congestion_notification(rng: random.Random) -> str:
    fields = ip_fields(rng) | {"dqpn": rng.getrandbits(24)}
    return line("cnp", fields, bytes(envelope(fields) / cnp(fields["dqpn"])))


def mac_control(rng: random.Random) -> list[str]:
    src = rng.getrandbits(48) & ~(1 << 40)
    head = Ether(dst=MAC_CONTROL_DST, src=mac(src), type=0x8808)
    pause = rng.getrandbits(16)
    enabled, quanta = rng.getrandbits(8), [rng.getrandbits(16) for _ in range(8)]
    classes = {f"c{i}_enabled": enabled >> i & 1 for i in range(8)} | {f"c{i}_pause_time": quanta[i] for i in range(8)}
    pfc = MACControlClassBasedFlowControl(**classes)
    pfc_fields = {"src": src, "enabled": enabled} | {f"q{i}": quanta[i] for i in range(8)}
    return [
        line("pause", {"src": src, "quanta": pause}, bytes(head / MACControlPause(pause_time=pause)).ljust(60, b"\0")),
        line("pfc", pfc_fields, bytes(head / pfc).ljust(60, b"\0")),
    ]


def vectors() -> str:
    assert mac2str("01:02:03:04:05:06") == bytes(range(1, 7))
    rng = random.Random(SEED)
    with_payload = [*range(0x0C), 0x0D, 0x0E, 0x0F, 0x10]
    lines = [roce(rng, opcode, length) for opcode in with_payload for length in (0, 1, 2, 3, 4, 61, 256)]
    lines += [roce(rng, 0x0A, 4096), roce(rng, 0x07, 4095)]
    lines += [roce(rng, opcode, 0) for opcode in (0x0C, 0x11) for _ in range(8)]
    lines += [congestion_notification(rng) for _ in range(4)]
    for _ in range(4):
        lines += mac_control(rng)
    return "\n".join(lines) + "\n"


def main() -> int:
    text = vectors()
    if "--check" in sys.argv[1:]:
        if not OUT.exists() or OUT.read_text() != text:
            print(f"{OUT} is stale: run {Path(__file__).name} without --check and commit the result", file=sys.stderr)
            return 1
        return 0
    OUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
