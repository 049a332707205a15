# SPDX-License-Identifier: Apache-2.0
"""A board emulated with scapy: it opens one queue pair like a board, then sends packets that a board must not send.

    scapy_board.py SERVER BOARD IFACE WHAT

WHAT is a key of `FRAMES`. Prints `ready`, then the first answer to a packet.
"""

import socket
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

from scapy.all import IP, UDP, AsyncSniffer, Dot1Q, Ether, Packet, Raw, getmacbyip, sendp
from scapy.contrib.roce import AETH, BTH


class Target(NamedTuple):
    """The slot of the server's ring that a board may write to, and the way there."""

    server: str
    board: str
    mac: str
    qpn: int
    key: int
    base: int

    def write(self, payload: int = 64, key: int | None = None, version: int = 4, tag: Dot1Q | None = None) -> Packet:
        """An RDMA WRITE ONLY WITH IMMEDIATE into slot 0."""
        return self.write_bytes(bytes(payload), key, version, tag)

    def write_bytes(self, data: bytes, key: int | None = None, version: int = 4, tag: Dot1Q | None = None) -> Packet:
        pad = -len(data) % 4
        bth = BTH(opcode=0x0B, padcount=pad, dqpn=self.qpn, psn=0x100, ackreq=1, pkey=0xFFFF)
        reth = struct.pack(">QIII", self.base, self.key if key is None else key, len(data), 0)
        ip = IP(version=version, src=self.board, dst=self.server, tos=2, flags="DF")
        ether = Ether(dst=self.mac) if tag is None else Ether(dst=self.mac) / tag
        return ether / ip / UDP(sport=0xC000, dport=4791, chksum=0) / bth / Raw(reth + data + bytes(pad))

    def announce(self, *lengths: int, stride: int = 4096, version: int = 2) -> Packet:
        """An announcement of events from 0 on, as crates/wire/src/announcement.rs draws it."""
        header = struct.pack("<4sHBBQQII", b"PSTA", version, len(lengths), 0, 0, 1 << 33, 0xCAFE, stride)
        return self.write_bytes(header + b"".join(struct.pack("<BI", 0, length) for length in lengths))


FRAMES: dict[str, Callable[[Target], list[Packet]]] = {
    "key": lambda to: [to.write(key=to.key ^ 1)],
    "long": lambda to: [to.write(payload=4096)],
    "jumbo": lambda to: [to.write(payload=8800)],
    "priority": lambda to: [to.write(tag=Dot1Q(vlan=0, prio=3))],
    "vlan": lambda to: [to.write(tag=Dot1Q(vlan=5)), to.write()],
    "version": lambda to: [to.write(version=6), to.write()],
    "no announcement": lambda to: [to.write()],
    "later announcement": lambda to: [to.announce(64, version=3)],
    "overlapping announcement": lambda to: [to.announce(64, 64, stride=73)],
    "too long": lambda to: [to.announce(1 << 20, stride=1 << 21)],
    "nothing there": lambda to: [to.announce(64)],
}


def opened(server: str, board: str) -> Target:
    """Answers the connection manager's requests until the queue pair may send."""
    manager = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    manager.bind((board, 0x4321))
    there = getmacbyip(server)
    print("ready", flush=True)
    while True:
        request, (_, port) = manager.recvfrom(64)
        code, peer = (request[0] >> 1) & 7, request[2:25]
        mine = bytes.fromhex("000200 00 000100") + bytes(12) + socket.inet_aton(board)
        answer = bytes([code << 1 | 1 << 4 | 1 << 5 | 1, 0]) + mine + b"\0" + peer
        manager.sendto(answer.ljust(64, b"\0"), (server, port))
        if code == 3:  # MODIFY_QP_RTS, asked for a sign of life: by now it is connected
            key, base = struct.unpack(">IQ", peer[7:19])
            return Target(server, board, there, int.from_bytes(peer[:3], "big"), key, base)


def main() -> None:
    server, board, iface, what = sys.argv[1:]
    held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held.bind((board, 4791))
    answers = AsyncSniffer(iface=iface, filter=f"udp dst port 4791 and src host {server}", count=1)
    answers.start()
    target = opened(server, board)
    sendp(FRAMES[what](target), iface=iface, verbose=0)
    answers.join(timeout=60)
    answer = answers.results[0][AETH].syndrome
    print(f"wrote {what}, key {target.key:#010x}, answered {answer:#04x}", flush=True)


if __name__ == "__main__":
    main()
