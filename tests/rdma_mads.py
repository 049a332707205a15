# SPDX-License-Identifier: Apache-2.0
"""Messages of the standard connection manager made by hand: frames that any host could send, and their answers.

Offsets are those of IBTA volume 1, clauses 12.6 and 13.4.3; scapy computes the ICRC.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from scapy.all import IP, UDP, Ether, Raw
from scapy.contrib.roce import BTH
from veth import SERVER_IP, Network

REQ, MRA, REJ, REP, RTU, DREQ, DREP = range(0x10, 0x17)
PORT = 17185
SLOTS, SLOT_BYTES = 64, 131072
# From the Ethernet header to the BTH, and to the MAD.
BTH_AT, MAD_AT = 42, 62
MAD_LEN, DATA_AT = 256, 24


class Answer(NamedTuple):
    """A message of `Host.to`, with its identifier and the addressee's."""

    attribute: int
    transaction: int
    local: int
    remote: int
    data: bytes

    @property
    def reason(self) -> int:
        return int.from_bytes(self.data[10:12], "big")

    @property
    def qpn(self) -> int:
        """Of a REP."""
        return int.from_bytes(self.data[12:15], "big")


def mad(attribute: int, data: bytes, transaction: int = 1, header: bytes = b"\x01\x07\x02\x03") -> bytes:
    return header + bytes(4) + struct.pack(">QHHI", transaction, attribute, 0, 0) + data.ljust(232, b"\0")


def ids(local: int, remote: int) -> bytes:
    return struct.pack(">II", local, remote)


def req(source: str, local: int, qpn: int = 0x77, **changed: int) -> bytes:
    """A REQ of a program over librdmacm; `changed` are fields that are wrong."""
    field = {"port": PORT, "service": 0, "mtu": 5, "pkey": 0xFFFF, "ip": 4, "psn": 5, **changed}
    data = bytearray(232)
    struct.pack_into(">I4xQQ", data, 0, local, 0x01060000 | field["port"], 0xABCD)
    data[32:35], data[44:47] = qpn.to_bytes(3, "big"), field["psn"].to_bytes(3, "big")
    data[43] = 20 << 3 | field["service"] << 1
    data[47] = 20 << 3 | 7
    struct.pack_into(">HBB", data, 48, field["pkey"], field["mtu"] << 4 | 7, 15 << 4)
    data[141] = field["ip"] << 4
    data[156:160], data[172:176] = socket.inet_aton(source), socket.inet_aton(SERVER_IP)
    return bytes(data)


def mac_of(network: Network, end: str, interface: str) -> str:
    return network.output(end, "cat", f"/sys/class/net/{interface}/address").strip()


class Host:
    """Any host in the network of the server or of a board (`to`), with an address that the kernel does not have."""

    def __init__(self, network: Network, ip: str, to: str = SERVER_IP) -> None:
        self.ip, self.to = ip, to
        here, there = (("b", "veth1"), ("s", "veth0")) if to == SERVER_IP else (("s", "veth0"), ("b", "veth1"))
        with network.inside(here[0]):
            self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.wire.bind((here[1], 0))
        self.ether = Ether(src=mac_of(network, *here), dst=mac_of(network, *there))

    def frame(self, mad: bytes, qkey: int = 0x80010000, source_qpn: int = 1, opcode: int = 0x64) -> bytes:
        ip = IP(src=self.ip, dst=self.to, flags="DF") / UDP(sport=0xC000, dport=4791, chksum=0)
        deth = struct.pack(">II", qkey, source_qpn)
        return bytes(self.ether / ip / BTH(opcode=opcode, dqpn=1, psn=0, pkey=0xFFFF) / Raw(deth + mad))

    def send(self, *frames: bytes) -> None:
        for frame in frames:
            self.wire.send(frame)

    def answers(self, limit_s: float = 0.5) -> Iterator[Answer]:
        """The answers to this address until none comes for a while."""
        self.wire.settimeout(limit_s)
        ours = socket.inet_aton(self.to) + socket.inet_aton(self.ip)
        with contextlib.suppress(TimeoutError):
            while True:
                frame = self.wire.recv(2048)
                if frame[26:34] == ours and frame[BTH_AT : BTH_AT + 1] == b"\x64" and len(frame) >= MAD_AT + MAD_LEN:
                    data = frame[MAD_AT : MAD_AT + MAD_LEN]
                    transaction, attribute = struct.unpack_from(">QH", data, 8)
                    yield Answer(attribute, transaction, *struct.unpack_from(">II", data, DATA_AT), data[DATA_AT:])

    def exchange(self, attribute: int, data: bytes, transaction: int = 1) -> Answer | None:
        """The first answer to a message."""
        self.send(self.frame(mad(attribute, data, transaction)))
        return next(self.answers(), None)
