# SPDX-License-Identifier: Apache-2.0
"""A version 2 fragment as the gateware must make it, written only from the tables in crates/wire/src/fragment."""

import struct
from dataclasses import dataclass, field

from scapy.layers.sctp import crc32c as sctp_crc32c

MISSING, CUT, STOPPED, DROPPED, TRIGGER_DIFFERS = (1 << bit for bit in range(5))


def crc32c(data: bytes) -> int:
    """RFC 3720; scapy's is that of SCTP, which sends it least significant byte first."""
    return int.from_bytes(sctp_crc32c(data).to_bytes(4, "big"), "little")


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


@dataclass
class Part:
    """One input's share of a payload."""

    number: int
    data: bytes
    flags: int = 0


@dataclass
class Fragment:
    """What is said of a fragment, its bytes, and its parts where it has a table: then they make the payload."""

    event: int
    timestamp_ns: int = 0
    trigger_type: int = 0
    payload: bytes = b""
    flags: int = 0
    parts: list[Part] = field(default_factory=list)

    def message(self, source_id: int) -> bytes:
        payload, entries, flags = self.payload, b"", self.flags
        for part in self.parts:
            offset = len(padded(payload))
            entries += struct.pack("<BxHII4x", part.number, part.flags, offset, len(part.data))
            payload = padded(payload) + part.data if part.data else payload
            flags |= part.flags
        data = struct.pack("<4sHHQQH6x", b"PSTF", 2, source_id, self.event, self.timestamp_ns, self.trigger_type)
        data += padded(payload) + entries
        data += struct.pack("<IBxH4s", len(payload), len(self.parts), flags, b"PSTE")
        return data + struct.pack("<I", crc32c(data))
