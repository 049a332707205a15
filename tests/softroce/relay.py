# SPDX-License-Identifier: Apache-2.0
"""Joins the machine's Ethernet to an interface: `relay.py INTERFACE HOST_SOCKET VM_SOCKET [LOSS SEED]`, prints a line
when ready. LOSS is the share of frames of RoCEv2 that it loses, drawn from the seed.

Promise: every frame, in order, both ways, until it is killed. A veth pair leaves UDP's checksum to hardware that does
not exist; the checksum is optional in IPv4 (RFC 768), so none is set.
"""

import random
import selectors
import socket
import sys

LONGEST = 9216
BATCH = 64
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
PORT, ROCE = slice(36, 38), (4791).to_bytes(2)
UDP_IN_IPV4, CHECKSUM = slice(23, 24), slice(40, 42)


def main(interface: str, host: str, vm: str, loss: str = "0", seed: str = "1") -> None:
    chance, draws = float(loss), random.Random(int(seed))
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    raw.bind((interface, ETH_P_ALL))
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    unix.bind(host)
    unix.connect(vm)
    ready = selectors.DefaultSelector()
    for end in (raw, unix):
        ready.register(end, selectors.EVENT_READ)
    print("joined", flush=True)
    while True:
        for key, _ in ready.select():
            for _ in range(BATCH):
                try:
                    frame, source = key.fileobj.recvfrom(LONGEST, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                if frame[PORT] == ROCE and draws.random() < chance:
                    continue
                if key.fileobj is unix:
                    raw.send(frame)
                elif source[2] != socket.PACKET_OUTGOING:
                    unix.send(without_checksum(frame))


def without_checksum(frame: bytes) -> bytes:
    if frame[12:14] != b"\x08\x00" or frame[UDP_IN_IPV4] != b"\x11":
        return frame
    return frame[: CHECKSUM.start] + bytes(2) + frame[CHECKSUM.stop :]


if __name__ == "__main__":
    main(*sys.argv[1:])
