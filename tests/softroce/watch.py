# SPDX-License-Identifier: Apache-2.0
"""Measures the time of events from a board's interface to a consumer: `watch.py INTERFACE ADDRESS PORT EVENTS SKIPPED`.

Promise: for each event the time from the kernel's stamp of its last frame going out (of all boards) until `penstock
recv --serve` has passed it to this program, both with one clock; prints JSON {event: ns} of all but the first
`SKIPPED`. Run it at the boards' end. For an event whose frames were sent repeatedly, the last time before its delivery
counts.
"""

import ctypes
import fcntl
import json
import select
import socket
import struct
import sys
import threading
import time
from collections import defaultdict

import pyarrow as pa

SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
SO_TIMESTAMPNS_OLD = 35  # this process and the kernel are 64 bits wide
ETH_P_ALL, SO_RCVBUFFORCE = 3, 33
PORT_ROCE = (4791).to_bytes(2)
BTH, RETH_LEN = 42, 16
FIRST, LAST_WITH_IMMEDIATE, ONLY_WITH_IMMEDIATE = 6, 9, 11  # RDMA WRITE of RC (IBTA table 38)
MAGIC = b"PSTF"
CONNECT_S, SILENT_S = 20, 15


def no_checksum_offload(interface: str) -> None:
    """Has TCP's checksums computed: a relay hands frames on as they are."""
    value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sQ", interface.encode(), ctypes.addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, request.ljust(40, b"\0"))


class Departures(threading.Thread):
    """When the last frames of events' fragments went out, by event."""

    def __init__(self, interface: str) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_OLD, 1)
        self.socket.bind((interface, ETH_P_ALL))
        self.of_event: dict[int, list[int]] = defaultdict(list)
        self.over = threading.Event()

    def run(self) -> None:
        under_way: dict[bytes, int] = {}  # by board: the event whose first frame went out
        while select.select([self.socket], [], [], 0.1)[0] or not self.over.is_set():
            try:
                frame, control, _, source = self.socket.recvmsg(160, 64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            if source[2] != socket.PACKET_OUTGOING or frame[23:24] != b"\x11" or frame[36:38] != PORT_ROCE:
                continue
            opcode, board = frame[BTH], frame[26:30]
            header = {FIRST: BTH + 12 + RETH_LEN, ONLY_WITH_IMMEDIATE: BTH + 12 + RETH_LEN + 4}.get(opcode)
            if header and frame[header : header + 4] == MAGIC:
                under_way[board] = int.from_bytes(frame[header + 16 : header + 24], "little")
            if opcode in (LAST_WITH_IMMEDIATE, ONLY_WITH_IMMEDIATE) and board in under_way:
                seconds, ns = struct.unpack("qq", control[0][2])
                self.of_event[under_way[board]].append(seconds * 10**9 + ns)


def arrivals(address: str, port: int, events: int) -> dict[int, int]:
    """The time at which each event was delivered; the connection is open when `watching` is printed."""
    end = time.monotonic() + CONNECT_S
    while True:
        try:
            consumer = socket.create_connection((address, port), timeout=1)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    consumer.settimeout(SILENT_S)
    print("watching", flush=True)
    came: dict[int, int] = {}
    with pa.ipc.open_stream(consumer.makefile("rb")) as stream:
        for batch in stream:
            now = time.time_ns()
            came |= {event: now for event in batch["event_number"].to_pylist()}
            if len(came) >= events:
                break
    return came


def main(interface: str, address: str, port: str, events: str, skipped: str) -> None:
    no_checksum_offload(interface)
    departures = Departures(interface)
    departures.start()
    came = arrivals(address, int(port), int(events))
    departures.over.set()
    departures.join()
    left = {event: max((at for at in departures.of_event[event] if at <= came[event]), default=None) for event in came}
    taken = {event: came[event] - left[event] for event in came if left[event] and event >= int(skipped)}
    print(json.dumps(taken))


if __name__ == "__main__":
    main(*sys.argv[1:])
