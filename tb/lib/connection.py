# SPDX-License-Identifier: Apache-2.0
"""The 64-byte messages of the FEROCE connection manager, written only from the table of its fields.

Promise: the bytes of `GOLDEN` are those that FEROCE's own host software sends and accepts.
"""

import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

REQUEST_PORT, REPLY_PORT = 0x4321, 0x4322
NONE, OPEN_QP, SEND_QP_INFO, MODIFY_QP_RTS, CLOSE_QP, ERROR = 0, 1, 2, 3, 4, 7
ACK, NO_QP, NAK, ACK_ERROR = 1, 2, 3, 7


@dataclass(frozen=True)
class Info:
    """One side of a connection: 23 bytes."""

    qpn: int = 0
    psn: int = 0
    rkey: int = 0
    base: int = 0
    ip: int = 0

    def pack(self) -> bytes:
        return struct.pack(">3sx3sIQI", self.qpn.to_bytes(3), self.psn.to_bytes(3), self.rkey, self.base, self.ip)

    @classmethod
    def unpack(cls, data: bytes) -> "Info":
        qpn, psn, rkey, base, ip = struct.unpack(">3sx3sIQI", data)
        return cls(int.from_bytes(qpn), int.from_bytes(psn), rkey, base, ip)


@dataclass(frozen=True)
class Transmit:
    """Byte 51: what the board's source of messages is to do."""

    start: bool = True
    with_imm: bool = False
    is_write: bool = False
    length: int = 0
    count: int = 0
    interval: int = 0  # clock cycles from one message to the next

    def flags(self) -> int:
        return 1 | self.start << 1 | self.with_imm << 2 | self.is_write << 3


@dataclass(frozen=True)
class Message:
    request: int = NONE
    sender: Info = field(default_factory=Info)
    other: Info = field(default_factory=Info)
    info_valid: bool = True
    answer: int | None = None
    port: int = 0
    transmit: Transmit | None = None

    def pack(self) -> bytes:
        flags = self.info_valid | self.request << 1 | (0 if self.answer is None else 1 << 4 | self.answer << 5)
        head = struct.pack(">Bx", flags) + self.sender.pack() + b"\0" + self.other.pack()
        t = self.transmit
        tail = (t.flags(), t.length, t.count, t.interval) if t else (0, 0, 0, 0)
        return head + struct.pack(">HBIII", self.port, *tail)

    @classmethod
    def unpack(cls, data: bytes) -> "Message":
        assert len(data) == 64, f"{len(data)} bytes"
        flags, (port, what, *numbers) = data[0], struct.unpack(">HBIII", data[49:])
        answer = flags >> 5 if flags & 16 else None
        transmit = Transmit(*(bool(what & bit) for bit in (2, 4, 8)), *numbers) if what & 1 else None
        infos = Info.unpack(data[2:25]), Info.unpack(data[26:49])
        return cls(flags >> 1 & 7, *infos, bool(flags & 1), answer, port, transmit)

    def answered(self, answer: int, sender: Info | None = None) -> "Message":
        """The answer to this request; `sender` has the answering side's parameters."""
        way = {"info_valid": sender is not None, "sender": sender or Info(), "other": self.sender}
        return replace(self, answer=answer, port=REQUEST_PORT, transmit=None, **way)


FEROCE_HOST = Info(qpn=0x11, psn=0, rkey=0x1F2E, base=0x7F4A5C001000, ip=0x0A4D0001)
FEROCE_BOARD = Info(qpn=0x100, psn=0, ip=0x0A4D0002)
_MESSAGES = {
    "host opens": Message(OPEN_QP, FEROCE_HOST, port=0x4321),
    "board agrees": Message(OPEN_QP, FEROCE_BOARD, FEROCE_HOST, answer=ACK, port=0x4321),
    "tx-meta": Message(other=Info(qpn=0x100), transmit=Transmit(length=4096, count=16, interval=1562)),
    "tx-meta --immediate": Message(other=Info(qpn=0x100), transmit=Transmit(True, True, False, 4096, 16)),
    "tx-meta --write": Message(other=Info(qpn=0x100), transmit=Transmit(True, False, True, 4096, 16)),
    "tx-meta --write --immediate": Message(other=Info(qpn=0x100), transmit=Transmit(True, True, True, 4096, 16)),
    "host closes": Message(CLOSE_QP, FEROCE_HOST, FEROCE_BOARD, port=0x4321),
    "board has closed": Message(CLOSE_QP, FEROCE_BOARD, FEROCE_HOST, answer=ACK, port=0x4321),
    "close-qp": Message(CLOSE_QP, Info(ip=0x0A4D0001), Info(qpn=0x100), port=0xBEEF),
    "board opens": Message(OPEN_QP, FEROCE_BOARD, port=0x4321),
    "host agrees": Message(OPEN_QP, FEROCE_HOST, FEROCE_BOARD, answer=ACK, port=0x4321),
    "board closes": Message(CLOSE_QP, FEROCE_BOARD, FEROCE_HOST, port=0x4321),
    "host has closed": Message(CLOSE_QP, FEROCE_HOST, FEROCE_BOARD, answer=ACK, port=0x4321),
}


def _golden() -> dict[str, tuple[Message, bytes]]:
    """What each line of the file means, and its 64 bytes."""
    lines = (Path(__file__).parents[2] / "crates/wire/tests/feroce_messages.txt").read_text().splitlines()
    reported = dict(line.split(": ") for line in lines if not line.startswith("#"))
    assert reported.keys() == _MESSAGES.keys()
    return {name: (message, bytes.fromhex(reported[name])) for name, message in _MESSAGES.items()}


GOLDEN = _golden()
