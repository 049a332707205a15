# SPDX-License-Identifier: Apache-2.0
"""IPbus 2.0 on the client's side: packets built by hand that uHAL never sends, and the rules of a reliable client.

Addresses count 32-bit words, as everywhere in IPbus.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

READ, WRITE, READ_FIFO, WRITE_FIFO, RMW_BITS, RMW_SUM = range(6)
CONTROL, STATUS, RESEND = range(3)
SUCCESS, BAD_HEADER, READ_ERROR, WRITE_ERROR, REQUEST = 0, 1, 4, 5, 0xF


def words_to_bytes(words: list[int], order: str = "big") -> bytes:
    return b"".join(word.to_bytes(4, order) for word in words)


def bytes_to_words(data: bytes, order: str = "big") -> list[int]:
    assert len(data) % 4 == 0, f"{len(data)} bytes are no whole words"
    return [int.from_bytes(data[i : i + 4], order) for i in range(0, len(data), 4)]


def packet_header(kind: int = CONTROL, ident: int = 0) -> int:
    return 0x200000F0 | ident << 8 | kind


def transaction(kind: int, words: int, *body: int, ident: int = 0, info: int = REQUEST) -> list[int]:
    return [0x2 << 28 | ident << 16 | words << 8 | kind << 4 | info, *body]


def control(*transactions: list[int], ident: int = 0, order: str = "big") -> bytes:
    return words_to_bytes([packet_header(CONTROL, ident), *(w for t in transactions for w in t)], order)


def status(order: str = "big") -> bytes:
    return words_to_bytes([packet_header(STATUS), *[0] * 15], order)


def resend(ident: int) -> bytes:
    return words_to_bytes([packet_header(RESEND, ident)])


@dataclass
class Status:
    """The 64 bytes of a status reply."""

    header: int
    max_bytes: int
    buffers: int
    next_id: int
    events: bytes
    received: list[int]
    sent: list[int]

    @classmethod
    def of(cls, reply: bytes, order: str = "big") -> "Status":
        words = bytes_to_words(reply, order)
        assert len(words) == 16, f"a status reply of {len(words)} words"
        assert words[3] & 0xFF0000FF == 0x200000F0, f"next expected header {words[3]:#010x}"
        events = words_to_bytes(words[4:8])
        return cls(words[0], words[1], words[2], words[3] >> 8 & 0xFFFF, events, words[8:12], words[12:])


def next_id(ident: int) -> int:
    return ident % 0xFFFF + 1


class ReliableClient:
    """Sends control packets over a link that loses frames, as ControlHub does.

    `exchange(payload)` sends one datagram and returns the datagrams that came back in time. A lost packet is
    recovered by asking for the status: if the target still expects this packet, it is sent again; if it has
    carried it out, the reply is asked for.
    """

    def __init__(self, exchange: Callable[[bytes], Awaitable[list[bytes]]]):
        self.exchange = exchange
        self.ident: int | None = None
        self.recovered = {"request": 0, "reply": 0}

    async def _status(self) -> Status:
        for _ in range(50):
            for reply in await self.exchange(status()):
                if reply[:4] == status()[:4]:
                    return Status.of(reply)
        raise TimeoutError("no answer to fifty status requests")

    async def send(self, *transactions: list[int]) -> list[int]:
        """Words of the reply, carried out exactly once."""
        if self.ident is None:
            self.ident = (await self._status()).next_id
        request = control(*transactions, ident=self.ident)
        payload = request
        for _ in range(50):
            for reply in await self.exchange(payload):
                if reply[:4] == request[:4]:
                    self.ident = next_id(self.ident)
                    return bytes_to_words(reply)
            expected = (await self._status()).next_id
            lost = "request" if expected == self.ident else "reply"
            self.recovered[lost] += 1
            payload = request if lost == "request" else resend(self.ident)
        raise TimeoutError(f"packet {self.ident} was not recovered in fifty attempts")
