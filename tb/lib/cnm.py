# SPDX-License-Identifier: Apache-2.0
"""QCN's congestion notification messages as a congestion point sends them (IEEE 802.1Qau clause 33.4).

scapy supports neither the CN-TAG nor the message, so both are packed here, after scapy's Ethernet header.
"""

import struct
from dataclasses import dataclass

from scapy.layers.l2 import Ether

from lib.roce import LOCAL_MAC

CN_TAG, CNM = 0x22E9, 0x22E7
SWITCH_MAC = "02:00:00:00:5a:01"


def cnm(flow: int, feedback: int, **other) -> bytes:
    """A message for flow `flow` with quantised feedback |F_b|, filled up to the shortest frame.

    `dst`, `tag`, `ethertype`, `version` and `reserved` (six bits no receiver looks at) take other values.
    """
    fields = {"dst": LOCAL_MAC, "tag": CN_TAG, "ethertype": CNM, "version": 0, "reserved": 0} | other
    tag = struct.pack("!HH", flow, fields["ethertype"])
    head = struct.pack("!H", fields["version"] << 12 | fields["reserved"] << 6 | feedback)
    cpid, queue = bytes.fromhex("0200000000070003"), struct.pack("!hh", -1234, 567)
    encapsulated = struct.pack("!H6sH", 3 << 13, bytes.fromhex("0250535409fe"), 0)
    ether = Ether(src=SWITCH_MAC, dst=fields["dst"], type=fields["tag"])
    return (bytes(ether) + tag + head + cpid + queue + encapsulated).ljust(60, b"\0")


@dataclass(frozen=True)
class Notification:
    """A message as a reaction point reads it; `msdu` is what it quotes of the sampled frame."""

    dst: str
    src: str
    vlan: tuple[int, int] | None  # priority, VID
    flow: int
    feedback: int
    cpid: int
    q_offset: int
    q_delta: int
    priority: int
    sampled_dst: str
    msdu: bytes


def parse(frame: bytes) -> Notification | None:
    """Reads a message; None for another frame. Raises AssertionError where it does not have the standard's form."""
    ether, rest, vlan = Ether(frame), frame[12:], None
    if rest[:2] == b"\x81\x00":
        tci = int.from_bytes(rest[2:4], "big")
        vlan, rest = (tci >> 13, tci & 0xFFF), rest[4:]
    tag, flow, ethertype = struct.unpack("!HHH", rest[:6])
    if (tag, ethertype) != (CN_TAG, CNM):
        return None
    head, cpid, q_offset, q_delta, priority, sampled_dst, length = struct.unpack("!HQhhH6sH", rest[6:30])
    assert head >> 6 == 0, f"version and reserved bits are {head >> 6:#x}, must be 0"
    assert priority & 0x1FFF == 0, f"the 13 bits after the priority are {priority & 0x1FFF:#x}, must be 0"
    assert not any(rest[30 + length :]), "padding is not zero"
    sampled = ":".join(f"{octet:02x}" for octet in sampled_dst)
    quoted = rest[30 : 30 + length]
    return Notification(
        ether.dst, ether.src, vlan, flow, head & 0x3F, cpid, q_offset, q_delta, priority >> 13, sampled, quoted
    )
