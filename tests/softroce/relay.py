# SPDX-License-Identifier: Apache-2.0
"""Joins the machine's Ethernet to an interface: `relay.py INTERFACE HOST_SOCKET VM_SOCKET [LOSS DUPLICATES REORDERED
[SEED]]`, prints a line when ready. Of frames of RoCEv2 it loses a share, sends one twice and one after its successor.

Promise: every other frame, in order, both ways, until it is killed; faults are drawn from the seed. A veth pair leaves
UDP's checksum to hardware that does not exist; the checksum is optional in IPv4 (RFC 768), so none is set.
"""

import random
import selectors
import socket
import sys

LONGEST = 9216
BATCH = 64
SUCCESSOR_S = 0.01  # how long a frame waits for one that is to overtake it
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
PORT, ROCE = slice(36, 38), (4791).to_bytes(2)
UDP_IN_IPV4, CHECKSUM = slice(23, 24), slice(40, 42)


class Faults:
    """What becomes of the frames of one direction."""

    def __init__(self, shares: tuple[float, ...], draws: random.Random) -> None:
        self.shares, self.draws = shares, draws
        self.held: list[bytes] = []  # one that waits for its successor

    def of(self, frame: bytes) -> list[bytes]:
        """What is to be sent now."""
        if frame[PORT] != ROCE:
            return [frame]
        lost, duplicate, reordered = (self.draws.random() < share for share in self.shares)
        frames = [] if lost else [frame] * (1 + duplicate)
        if reordered and frames and not self.held:
            self.held = frames
            return []
        return frames + self.rest()

    def rest(self) -> list[bytes]:
        """What no successor has come for."""
        held, self.held = self.held, []
        return held


def main(
    interface: str, host: str, vm: str, loss: str = "0", duplicates: str = "0", reordered: str = "0", seed: str = "1"
) -> None:
    shares, draws = (float(loss), float(duplicates), float(reordered)), random.Random(int(seed))
    to_vm, to_interface = Faults(shares, draws), Faults(shares, draws)
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
        selected = ready.select(SUCCESSOR_S if to_vm.held or to_interface.held else None)
        for key, _ in selected:
            for _ in range(BATCH):
                try:
                    frame, source = key.fileobj.recvfrom(LONGEST, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                if key.fileobj is unix:
                    for each in to_interface.of(frame):
                        raw.send(each)
                elif source[2] != socket.PACKET_OUTGOING:
                    for each in to_vm.of(without_checksum(frame)):
                        unix.send(each)
        if not selected:
            for end, faults in ((unix, to_vm), (raw, to_interface)):
                for each in faults.rest():
                    end.send(each)


def without_checksum(frame: bytes) -> bytes:
    if frame[12:14] != b"\x08\x00" or frame[UDP_IN_IPV4] != b"\x11":
        return frame
    return frame[: CHECKSUM.start] + bytes(2) + frame[CHECKSUM.stop :]


if __name__ == "__main__":
    main(*sys.argv[1:])
