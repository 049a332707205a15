# SPDX-License-Identifier: Apache-2.0
"""Messages of the standard connection manager as UDP payloads, made and read field by field.

Offsets are those of IBTA volume 1, clauses 12.6 and 13.4.3; scapy computes the ICRC.
"""

import struct
from dataclasses import dataclass
from functools import cached_property

from scapy.all import IP, UDP, Ether, Raw
from scapy.contrib.roce import BTH

from lib.roce import ip_str

REQ, MRA, REJ, REP, RTU, DREQ, DREP = range(0x10, 0x17)
UD_SEND_ONLY, QKEY, UDP_PORT, SOURCE_PORT = 0x64, 0x80010000, 4791, 0xC000
HEADS = 42  # Ethernet, IPv4, UDP
MAD_AT, MAD_LEN, DATA_AT, BYTES = 20, 256, 24, 280


def mad(attribute: int, data: bytes, transaction: int = 1, header: bytes = b"\x01\x07\x02\x03") -> bytes:
    return header + bytes(4) + struct.pack(">QHHI", transaction, attribute, 0, 0) + data.ljust(232, b"\0")


def ids(local: int, remote: int) -> bytes:
    return struct.pack(">II", local, remote)


def rej(local: int, remote: int, answered: int = 0, reason: int = 28, guid: int | None = None) -> bytes:
    information = b"" if guid is None else guid.to_bytes(8)
    return ids(local, remote) + struct.pack(">BBH", answered << 6, len(information) << 1, reason) + information


def mra(local: int, remote: int, answered: int = 1, timeout: int = 20) -> bytes:
    return ids(local, remote) + bytes([answered << 6, timeout << 3])


def dreq(local: int, remote: int, qpn: int) -> bytes:
    return ids(local, remote) + (qpn << 8).to_bytes(4)


def req(source: int, to: int, local: int, /, qpn: int = 0x77, **changed: int) -> bytes:
    """A REQ of a program over librdmacm; `changed` are fields with other values."""
    field = {"port": 17185, "space": 0x0106, "service": 0, "mtu": 5, "pkey": 0xFFFF, "ip": 4, "version": 0, "psn": 5}
    field |= {"timeout": 20, "retries": 15, "depth": 16, "retry": 7, "rnr": 7, "ack_timeout": 14, "guid": 0xABCD}
    field |= {"from": source, "to": to} | changed
    data = bytearray(232)
    struct.pack_into(">I4xQQ", data, 0, local, field["space"] << 16 | field["port"], field["guid"])
    data[32:35], data[44:47] = qpn.to_bytes(3), field["psn"].to_bytes(3)
    data[39], data[43] = field["depth"], 20 << 3 | field["service"] << 1
    data[47] = field["timeout"] << 3 | field["retry"]
    struct.pack_into(">HBB", data, 48, field["pkey"], field["mtu"] << 4 | field["rnr"], field["retries"] << 4)
    data[95], data[140], data[141] = field["ack_timeout"] << 3, field["version"], field["ip"] << 4
    data[156:160], data[172:176] = field["from"].to_bytes(4), field["to"].to_bytes(4)
    return bytes(data)


def frame(source: int, to: int, mad: bytes, **changed) -> bytes:
    """A frame with a MAD, without FCS; `changed`: fields of its headers."""
    field = {
        "qkey": QKEY,
        "source_qpn": 1,
        "opcode": UD_SEND_ONLY,
        "qpn": 1,
        "pkey": 0xFFFF,
        "port": SOURCE_PORT,
    } | changed
    heads = Ether() / IP(src=ip_str(source), dst=ip_str(to), id=0, flags="DF")
    heads /= UDP(sport=field["port"], dport=UDP_PORT, chksum=0)
    heads /= BTH(opcode=field["opcode"], dqpn=field["qpn"], psn=0, pkey=field["pkey"], migreq=0)
    return bytes(heads / Raw(struct.pack(">II", field["qkey"], field["source_qpn"]) + mad))


def payload(source: int, to: int, mad: bytes, **changed) -> bytes:
    """Its UDP payload, which ends with the ICRC."""
    return frame(source, to, mad, **changed)[HEADS:]


@dataclass(frozen=True)
class Answer:
    """A message of the board, as the payload of a datagram."""

    ip: int
    payload: bytes

    @cached_property
    def mad(self) -> bytes:
        return self.payload[MAD_AT : MAD_AT + MAD_LEN]

    @cached_property
    def data(self) -> bytes:
        return self.mad[DATA_AT:]

    @cached_property
    def attribute(self) -> int:
        return int.from_bytes(self.mad[16:18])

    @cached_property
    def transaction(self) -> int:
        return int.from_bytes(self.mad[8:16])

    @cached_property
    def local(self) -> int:
        return int.from_bytes(self.data[:4])

    @cached_property
    def remote(self) -> int:
        return int.from_bytes(self.data[4:8])

    @cached_property
    def reason(self) -> int:
        """Of a REJ."""
        return int.from_bytes(self.data[10:12])

    @cached_property
    def qpn(self) -> int:
        """Of a REP."""
        return int.from_bytes(self.data[12:15])

    @cached_property
    def psn(self) -> int:
        """Of a REP."""
        return int.from_bytes(self.data[20:23])
