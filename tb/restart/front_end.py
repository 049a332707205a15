# SPDX-License-Identifier: Apache-2.0
"""A front end whose rings are in an AXI4 memory: resets of the front end and of the memory's side."""

import os

import cocotb
from cocotb.triggers import ClockCycles
from lib.board import SUCCESS, Board, start
from lib.both_board import N_QP, N_STREAMS, SIZES, TARGETS, open_streams
from lib.cable import HardMac, time_limit
from lib.rc_peer import Flow
from lib.runner import seed
from lib.tcp_host import TcpAndRoceHost
from lib.tcp_receiver import KeepingReceiver

PARAMETERS = {"WITH_TCP": 1, **SIZES, "STORE": 1}
TABLES = 300  # cycles in which tables clear themselves
SLOW = 4000  # cycles: the memory's late responses come after everything is open again


class Witness(TcpAndRoceHost):
    """A host that is not reset. It compares each byte of a WRITE with what was given for its place."""

    def __init__(self, dut, expected: dict[int, int]):
        super().__init__(dut, expected)
        self.cable.forgives_damage = True  # of frames that a reset cuts
        self.given = bytearray(len(self.memory))

    def accept(self, flow: Flow, packet, extended: bytes) -> None:
        super().accept(flow, packet, extended)
        place = slice(flow.cursor - len(packet.payload), flow.cursor)
        assert packet.payload == self.given[place], f"queue pair {packet.qp}: other bytes at 0x{place.start:X}"


class Bed:
    """A front end in its surroundings, which record what it was given since its last reset."""

    def __init__(self, board: Board, rng):
        self.board, self.rng, self.dut = board, rng, board.dut
        self.place = self.tag = 0
        self.streams = (board.descriptors, board.data, board.completions)
        self.models = [*self.streams, board.registers.master.write_if, board.registers.master.read_if]
        if isinstance(board.peer.cable, HardMac):
            self.models += [board.peer.cable.sink, board.peer.cable.source]
        for model in self.models:
            model.log.setLevel("ERROR")  # else it writes down what a reset cuts
        self.forget()

    def forget(self) -> None:
        self.posted: dict[int, list[tuple[int, bytes]]] = {target: [] for target in TARGETS}

    async def open(self) -> None:
        """Software opens everything anew; connections have new numbers, as they should have."""
        board = self.board
        for qp in range(N_QP):
            board.first_psn[qp] = self.rng.getrandbits(24)
            board.peer.flows[qp] = Flow(board.first_psn[qp])
        await board.set_up()
        await board.registers.write("tcp.secret", self.rng.getrandbits(32))
        await open_streams(board)

    async def post(self, count: int) -> None:
        """Messages to any target, WRITEs each to a place where no earlier one is under way."""
        for _ in range(count):
            target, payload = self.rng.choice(TARGETS), self.rng.randbytes(self.rng.randrange(1, 6000))
            if self.place + len(payload) > len(self.board.peer.given):
                self.place = 0
            if target < N_QP:
                self.board.peer.given[self.place : self.place + len(payload)] = payload
            await self.board.post(target, payload, self.tag, self.place if target < N_QP else None)
            self.posted[target].append((self.tag, payload))
            self.tag, self.place = self.tag + 1, self.place + len(payload)

    def receiver(self, stream: int) -> KeepingReceiver:
        return self.board.peer.tcp.receivers[stream]

    def compare(self) -> None:
        """What came to the streams' receivers is what was given, up to where a reset has cut it."""
        for stream in range(N_STREAMS):
            given = b"".join(payload for _, payload in self.posted[N_QP + stream])
            found = bytes(self.receiver(stream).content[: self.receiver(stream).bytes])
            assert given.startswith(found), f"stream {stream}: other bytes among {len(found)}"

    async def deliver(self, count: int) -> None:
        """Posts messages and waits for all completions: each message is whole at its receiver."""
        await self.post(count)
        done = [await self.board.completion() for _ in range(count)]
        assert all(status == SUCCESS for *_, status in done), done
        for target, messages in self.posted.items():
            assert [tag for at, tag, _ in done if at == target] == [tag for tag, _ in messages], f"target {target}"
        self.compare()
        for stream in range(N_STREAMS):
            assert self.receiver(stream).bytes == sum(len(payload) for _, payload in self.posted[N_QP + stream])

    async def pulse(self, *names: str) -> None:
        """These resets, each at its own moment within a few cycles and for its own time; the user's side as well."""
        spans = {name: (begin := self.rng.randrange(8), begin + self.rng.randrange(1, 12)) for name in names}
        for model in self.models:
            model.assert_reset(True)
        for cycle in range(20):
            for name, (begin, end) in spans.items():
                getattr(self.dut, name).value = int(begin <= cycle < end)
            await ClockCycles(self.dut.clk, 1)
        for stream in self.streams:
            stream.clear()
        for model in self.models:
            model.assert_reset(False)


@cocotb.test(**time_limit(2), skip="PARAM_N_STREAMS" not in os.environ)
async def resets_of_front_end_and_memory_at_any_moment_change_no_byte(dut):
    """Its responses come late or its channels stop, as while a DDR memory is refreshed, and last beyond the reset."""
    rng = seed()
    bed = Bed(await start(dut, dict.fromkeys(range(N_QP), 0), Witness), rng)
    memory, late = bed.board.memory, [0, 0]
    resets = [("rst",)] * 3 + [("m_axi_rst",), ("rst", "m_axi_rst")]
    for number in range(10):
        memory.read_latency = memory.write_latency = lambda rng: rng.randrange(10, 40)
        holds = rng.random() < 0.5
        memory.stall(rng, 0 if holds else rng.choice([0, 0.2]))
        await bed.open()
        await bed.deliver(5)
        await bed.post(24)
        await ClockCycles(dut.clk, rng.randrange(2500))
        setattr(memory, rng.choice(["read_latency", "write_latency"]), lambda rng: rng.choice([20, SLOW]))
        await ClockCycles(dut.clk, rng.randrange(1500))
        memory.hold(holds)
        await ClockCycles(dut.clk, rng.randrange(200))
        names = resets[number % len(resets)]
        if names == ("rst",):
            late = [count + bool(pending) for count, pending in zip(late, memory.pending(), strict=True)]
        await bed.pulse(*names)
        bed.compare()
        bed.forget()
        await ClockCycles(dut.clk, TABLES)
        memory.hold(False)
    dut._log.info(f"resets before the memory had answered all reads, writes: {late}")
    await bed.open()
    await bed.deliver(5)
    assert any(late)
