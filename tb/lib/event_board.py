# SPDX-License-Identifier: Apache-2.0
"""A front end that makes events: rings on its queue pairs, a detector at its inputs, a peer that receives messages."""

from lib.board import SUCCESS, Board, start
from lib.detector import Detector
from lib.fragment import Fragment

SOURCE, PREFIX, TIMEOUT = 0x1234, 0xC5, 3000
SLOTS, SLOT_BYTES = 32, 8192
SECOND_NS = 100_000  # of a front end with triggers
TIMED = {"N_IN": 4, "EVENT_BYTES": 4096, "TIMING": 1, "SECOND_NS": SECOND_NS, "HOOK": 1, "STREAMING": 1}


class Setup:
    """A front end with rings on its queue pairs, and a detector at its inputs."""

    def __init__(self, board: Board, detector: Detector):
        self.board, self.detector = board, detector
        self.slots = dict.fromkeys(range(4), 0)
        self.taken = 0

    async def message(self) -> tuple[int, int, bytes]:
        """Queue pair, tag and bytes of the next message of an event, and that its slot is the ring's next."""
        qp, tag, status = await self.board.completion()
        assert status == SUCCESS
        slot = self.slots[qp] % SLOTS
        self.slots[qp] += 1
        assert (qp, b"", slot) in self.board.peer.received, f"no immediate with slot {slot} on queue pair {qp}"
        at = base_of(qp) + slot * SLOT_BYTES
        return qp, tag, bytes(self.board.peer.memory[at : at + SLOT_BYTES])

    async def expect(self, expected: Fragment, qp: int = 0) -> None:
        found_qp, tag, data = await self.message()
        whole = expected.message(SOURCE)
        assert (found_qp, tag) == (qp, PREFIX << 24 | expected.event & 0xFFFFFF)
        assert data[: len(whole)] == whole, f"event {expected.event}"

    async def counts(self, number: int) -> dict[str, int]:
        names = ("merged", "missing", "cut", "stopped", "empty", "duplicate", "late", "jumped", "broken")
        found = {name: await self.board.registers.read(f"event_input.{name}", number) for name in names}
        return {name: count for name, count in found.items() if count}


def base_of(qp: int) -> int:
    return qp * SLOTS * SLOT_BYTES


async def prepare(dut, rng, inputs: int, qps=(0,), stall: float = 0.0, **control: int) -> Setup:
    """`control` are fields of `events.control`; all inputs are enabled."""
    detector = Detector(dut, inputs, rng, stall)
    detector.start([rng.randrange(2000, 12000) for _ in range(inputs)])
    board = await start(dut, {qp: rng.getrandbits(24) for qp in qps})
    await configure(board, inputs, qps, **control)
    return Setup(board, detector)


async def configure(board: Board, inputs: int, qps=(0,), **control: int) -> None:
    """What software sets after each reset: the rings and the events' registers."""
    registers = board.registers
    for qp in qps:
        for name, word in (("base_lo", base_of(qp)), ("base_hi", 0), ("slots", SLOTS), ("slot_size", SLOT_BYTES)):
            await registers.write(f"ring.{name}", word, qp)
        await registers.write("ring.next_slot", 0, qp)
    await registers.write_fields("events.control", tag_prefix=PREFIX, **control)
    await registers.write("events.source_id", SOURCE)
    await registers.write("events.timeout", TIMEOUT)
    await registers.write("events.limit", 1024)
    await registers.write("events.enable", (1 << inputs) - 1)
