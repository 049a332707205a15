# SPDX-License-Identifier: Apache-2.0
"""QCN's congestion notification messages as a congestion point sends them (IEEE 802.1Qau clause 33.4).

scapy supports neither the CN-TAG nor the message, so both are packed here, after scapy's Ethernet header.
"""

import struct

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
