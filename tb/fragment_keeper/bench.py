# SPDX-License-Identifier: Apache-2.0
"""Fragments are kept, announced and READ once, in order and to the byte, whatever memory, server and network do.

The memory shows a write when it has answered it. The server of each queue pair posts READs of what was announced,
sixteen at a time, whole or in two parts; messages and answers to READs reach it after times of their own. What a READ
finds stays the same until sixteen further READs have come, as it may be repeated until then.
"""

import random
import struct
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, RisingEdge
from lib import structs
from lib.axi_memory import AxiMemory
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed

BENCH = Bench(
    top="fragment_keeper_bench",
    configs=[{"DATA_W": 64, "N_QP": 4}, {"DATA_W": 512, "N_QP": 2}],
    sources=[Path(__file__).parent / "fragment_keeper_bench.sv"],
)

CLOCK_NS = 6
LIST = 10
READS = 16
WINDOW = 1 << 17
RING = 0x5000_0000  # of the first server


@dataclass
class Fragment:
    event: int
    content: bytes


@dataclass
class Server:
    """The peer of a queue pair: what was announced to it, what it has read."""

    announced: deque = field(default_factory=deque)  # (event, address, length) that no READ was posted for
    last: tuple[int, int] | None = None  # event and address of the last one
    stride: int = 0
    carried: int = 0
    came: deque = field(default_factory=deque)  # answers to READs on their way
    messages: deque = field(default_factory=deque)  # that have come before what was carried
    read: list[Fragment] = field(default_factory=list)
    outstanding: int = 0
    posted: int = 0  # READs
    ended: int = 0  # fragments of which all READs were taken
    slot: int = 0  # of the next message

    def take(self, skipped: int, length: int) -> None:
        event, address = self.last
        self.last = (event + 1 + skipped, address + self.stride)
        self.announced.append((*self.last, length))

    def take_message(self, data: bytes) -> None:
        magic, version, count, carried, event, address, rkey, self.stride = struct.unpack_from("<4sHBBQQII", data)
        assert (magic, version, carried, len(data)) == (b"PSTA", 2, self.carried % 256, 32 + 5 * count)
        assert 1 <= count <= 44 and rkey == 0xCAFE
        for at in range(count):
            skipped, length = struct.unpack_from("<BI", data, 32 + 5 * at)
            if at == 0:
                self.last = (event - 1, address - self.stride)
            self.take(skipped, length)

    def take_list(self, data: bytes) -> None:
        for at in range(2):
            skipped, length = struct.unpack_from("<BI", data, 5 * at)
            if length:
                self.take(skipped, length)
                self.carried += 1

    def settle(self) -> None:
        """Messages are taken once all that was carried before them has come."""
        while self.messages and self.messages[0][7] == self.carried % 256:
            self.take_message(self.messages.popleft())


class Harness:
    def __init__(self, dut, rng: random.Random, stride: int = 2048, stall: float = 0.0, latency: int = 20):
        self.dut, self.rng, self.stride, self.stall, self.latency = dut, rng, stride, stall, latency
        self.n_qp = int(dut.N_QP.value)
        self.servers = [Server() for _ in range(self.n_qp)]
        self.sent: list[list[Fragment]] = [[] for _ in range(self.n_qp)]  # over this connection
        self.place = [0] * self.n_qp  # of the next message in the server's ring
        self.acks: deque[tuple[int, int]] = deque()  # (queue pair, tag) of completions that come
        self.left: Queue = Queue()
        self.passed: list[tuple[dict, bytes]] = []
        self.dropped = self.announced = self.refused = 0
        self.faults: list[int] = []
        self.recent: list[deque] = [deque() for _ in range(self.n_qp)]  # what READs found
        self.ready = (1 << self.n_qp) - 1
        self.epoch = [0] * self.n_qp
        self.is_reading = [True] * self.n_qp
        self.is_busy = False  # READs are being posted
        self.gap = 1  # cycles between READs
        self.flushes = 0  # READs of no bytes of queue pair 0, which free the places of all that was read
        self.events = [rng.getrandbits(40) for _ in range(self.n_qp)]

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        dut.rst.value = 1
        for name in ("cpl_valid", "cpl", "read_valid", "read_taken", "reading", "window", "ready"):
            getattr(dut, name).value = 0
        dut.stride.value = self.stride
        self.descs = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_desc"), dut.clk, dut.rst)
        self.data = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_data"), dut.clk, dut.rst)
        self.out_descs = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_desc"), dut.clk, dut.rst)
        self.out_data = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_data"), dut.clk, dut.rst)
        self.memory = AxiMemory(dut, self.rng, self.n_qp * WINDOW, lambda rng: rng.randint(1, self.latency), CLOCK_NS)
        if self.stall:
            self.memory.stall(self.rng, self.stall)
            for stream in (self.descs, self.data, self.out_descs, self.out_data):
                stream.set_pause_generator(self.rng.random() < self.stall for _ in iter(int, 1))
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        dut.ready.value = self.ready
        for task in (self._windows, self._descs, self._messages, self._completions, self._reads, self._counts):
            cocotb.start_soon(task())
        return self

    # ---- messages in ---------------------------------------------------------------------------------

    def post(self, qp: int, length: int, skipped: int = 0) -> None:
        """A fragment; its event is `skipped` events after the one that follows the last."""
        content = self.rng.randbytes(length)
        self.events[qp] += 1 + skipped
        slot = self.place[qp]
        self.place[qp] = (slot + 1) % 16
        desc = structs.pack(
            "desc_t", qp=qp, in_ring=1, with_imm=1, length=length, imm=slot, raddr=RING * (qp + 1) + 512 * slot,
            tag=self.rng.getrandbits(32),
        )  # fmt: skip
        self._send(desc | self.events[qp] << 176, content)
        self.sent[qp].append(Fragment(self.events[qp], content))

    def post_other(self, qp: int, length: int, **values: int) -> tuple[dict, bytes]:
        desc = structs.pack("desc_t", qp=qp, length=length, raddr=self.rng.getrandbits(64), tag=7, **values)
        content = self.rng.randbytes(length)
        self._send(desc, content)
        return structs.unpack("desc_t", desc), content

    def _send(self, desc: int, content: bytes) -> None:
        self.descs.send_nowait(AxiStreamFrame(desc.to_bytes(30, "little")))
        if content:
            self.data.send_nowait(AxiStreamFrame(content))

    # ---- messages out, completions ---------------------------------------------------------------------

    async def _descs(self) -> None:
        """Each with the life of its queue pair in which it left."""
        while True:
            desc = structs.unpack("desc_t", int.from_bytes(bytes((await self.out_descs.recv()).tdata), "little"))
            self.left.put_nowait((desc, self.epoch[desc["qp"]]))

    async def _messages(self) -> None:
        while True:
            desc, epoch = await self.left.get()
            data = bytes((await self.out_data.recv()).tdata) if desc["length"] else b""
            if not data.startswith(b"PSTA"):
                self.passed.append((desc, data))
                continue
            self.announced += 1
            assert len(data) == desc["length"] and desc["with_imm"] == 1 and desc["in_ring"] == 0
            if desc["by_event"]:  # its queue pair was closed before it was taken: flushed
                self.acks.append((desc["qp"], desc["tag"]))
            else:
                cocotb.start_soon(self._deliver(desc["qp"], epoch, desc, data))

    async def _deliver(self, qp: int, epoch: int, desc: dict, data: bytes) -> None:
        await ClockCycles(self.dut.clk, self.rng.randint(20, 200))
        server = self.servers[qp]
        if epoch == self.epoch[qp]:
            assert (desc["imm"], desc["raddr"]) == (server.slot, RING * (qp + 1) + 512 * server.slot)
            server.slot = (server.slot + 1) % 16
            server.messages.append(data)
            server.settle()
            await ClockCycles(self.dut.clk, self.rng.randint(10, 100))
        self.acks.append((qp, desc["tag"]))

    async def _completions(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            dut.cpl_valid.value = 0
            if self.acks and dut.cpl_room.value:
                qp, tag = self.acks.popleft()
                dut.cpl.value = structs.pack("cpl_t", qp=qp, tag=tag)
                dut.cpl_valid.value = 1

    # ---- READs -------------------------------------------------------------------------------------------

    async def _reads(self) -> None:
        """The responder's operations, one after the other."""
        dut, rng = self.dut, self.rng
        while True:
            await ClockCycles(dut.clk, self.gap)
            if self.flushes and not dut.hold.value:
                self.flushes -= 1
                await self._read(0, 0, 0)
            choices = [
                qp for qp, server in enumerate(self.servers)
                if server.announced and server.outstanding < READS and self.is_reading[qp] and self.ready >> qp & 1
            ]  # fmt: skip
            if not choices or dut.hold.value:
                continue
            self.is_busy = True
            qp = rng.choice(choices)
            server, epoch = self.servers[qp], self.epoch[qp]
            event, address, length = server.announced.popleft()
            parts = [(address, length + LIST)]
            if rng.random() < 0.2 and length > 1:
                cut = rng.randint(1, length - 1)
                parts = [(address, cut), (address + cut, length + LIST - cut)]
            for part in parts:
                while dut.hold.value:
                    await RisingEdge(dut.clk)
                await self._read(qp, *part)
            self.is_busy = False
            if epoch != self.epoch[qp]:
                continue
            server.ended += 1
            found = bytes(self.memory.mem[address : address + length + LIST])
            self.recent[qp].append((server.posted, address, found))
            server.outstanding += 1
            cocotb.start_soon(self._answer(qp, epoch, event, found))

    async def _read(self, qp: int, address: int, length: int) -> None:
        """One READ: taken in the cycle at hand, in which `hold` is low."""
        dut = self.dut
        server = self.servers[qp]
        dut.reading.value = 1
        await ClockCycles(dut.clk, self.rng.randint(3, 12))
        dut.read_taken.value = structs.pack("read_taken_t", qp=qp, va=address, bytes=length)
        dut.read_valid.value = 1
        await RisingEdge(dut.clk)
        dut.read_valid.value = 0
        dut.reading.value = 0
        server.posted += 1
        # The answers of the latest READs may be repeated.
        while self.recent[qp] and self.recent[qp][0][0] + READS <= server.posted:
            self.recent[qp].popleft()
        for _, first, found in self.recent[qp]:
            assert self.memory.mem[first : first + len(found)] == found, f"queue pair {qp}: {first:#x} was overwritten"

    async def _answer(self, qp: int, epoch: int, event: int, found: bytes) -> None:
        server = self.servers[qp]
        ticket = object()
        server.came.append(ticket)
        await ClockCycles(self.dut.clk, self.rng.randint(20, 300))
        while server.came[0] is not ticket:
            await RisingEdge(self.dut.clk)
        if epoch == self.epoch[qp]:
            server.came.popleft()
            server.outstanding -= 1
            server.read.append(Fragment(event, found[:-LIST]))
            server.take_list(found[-LIST:])
            server.settle()

    # ---- the tables ----------------------------------------------------------------------------------------

    async def _windows(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if dut.cfg_rd.value:
                base = int(dut.cfg_qp.value) * WINDOW
                dut.window.value = structs.pack("read_cfg_t", rkey=0xCAFE, base=base, length=self.window, resources=16)

    window = WINDOW

    async def _counts(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            self.dropped += int(dut.stat_dropped.value)
            self.refused += int(dut.stat_refused.value)
            if dut.fault_valid.value:
                self.faults.append(int(dut.fault_qp.value))
                cocotb.start_soon(self._fail(self.faults[-1]))

    async def _fail(self, qp: int) -> None:
        """The transport ends a queue pair some time after a fault."""
        await ClockCycles(self.dut.clk, self.rng.randint(5, 100))
        if self.ready >> qp & 1:
            await self.close(qp)

    async def close(self, qp: int) -> int:
        """The queue pair ends; returns how many of its fragments were not READ, once all have come in."""
        self.ready &= ~(1 << qp)
        self.dut.ready.value = self.ready
        self.epoch[qp] += 1
        server, sent = self.servers[qp], self.sent[qp]
        self.servers[qp], self.sent[qp], self.place[qp] = Server(), [], 0
        self.recent[qp].clear()
        await RisingEdge(self.dut.clk)
        return len(sent) - server.ended

    def open(self, qp: int) -> None:
        self.ready |= 1 << qp
        self.dut.ready.value = self.ready

    async def finish(self, limit: int = 200_000) -> None:
        """Until all fragments of open queue pairs have been read."""
        for _ in range(limit):
            if all(len(server.read) == len(sent) for server, sent in zip(self.servers, self.sent, strict=True)):
                break
            await RisingEdge(self.dut.clk)
        for qp, (server, sent) in enumerate(zip(self.servers, self.sent, strict=True)):
            assert server.read == sent, f"queue pair {qp}: {len(server.read)} of {len(sent)} were read"


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3], latency=[4, 60])
async def fragments_are_read_once_in_order_and_to_the_byte(dut, stall, latency):
    rng = seed()
    h = await Harness(dut, rng, stall=stall, latency=latency).start()
    for _ in range(60):
        qp = rng.randrange(h.n_qp)
        for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
            h.post(
                qp, rng.choice([1, 7, 8, 9, 60, 64, 100, 500, 1000, 2038]), rng.choice([0, 0, 0, 3, 255, 256, 10**6])
            )
        await ClockCycles(dut.clk, rng.choice([0, 10, 100, 1000]))
    await h.finish()
    assert not h.faults and not h.dropped and not h.passed


@cocotb.test()
async def busy_boards_announce_in_lists(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.gap = 300
    for _ in range(300):
        h.post(0, 1000)
    await h.finish()
    assert h.servers[0].carried > 200 and h.announced < 40, (h.servers[0].carried, h.announced)


@cocotb.test()
async def an_idle_board_announces_each_fragment_by_a_message(dut):
    h = await Harness(dut, seed()).start()
    for count in range(1, 6):
        h.post(1, 300)
        await h.finish()
        await ClockCycles(dut.clk, 200)
        assert h.announced == count


@cocotb.test()
async def what_follows_a_long_fragment_is_announced_before_its_end(dut):
    h = await Harness(dut, seed(), stride=16384).start()
    h.is_reading[0] = False
    h.post(0, 12_000)
    h.post(0, 12_000)
    while h.announced < 2:
        await RisingEdge(dut.clk)
    h.is_reading[0] = True
    await h.finish()


@cocotb.test()
async def a_full_window_stops_the_messages_and_goes_on_when_places_are_free(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.window = 40 * 2048  # places for forty fragments
    h.is_reading[0] = False
    for _ in range(100):
        h.post(0, rng.randint(1, 2000))
    await ClockCycles(dut.clk, 20_000)
    assert not h.descs.empty()
    h.is_reading[0] = True
    for _ in range(4):
        while h.servers[0].announced or h.servers[0].outstanding:
            await RisingEdge(dut.clk)
        h.flushes = READS
        await ClockCycles(dut.clk, 2000)
    await h.finish()


@cocotb.test()
async def other_messages_pass_unchanged(dut):
    rng = seed()
    h = await Harness(dut, rng, stall=0.2).start()
    expected = []
    for _ in range(60):
        if rng.random() < 0.5:
            h.post(rng.randrange(h.n_qp), rng.randint(1, 2000))
        else:
            expected.append(h.post_other(rng.randrange(h.n_qp), rng.choice([0, 1, 64, 700]), with_imm=rng.randrange(2)))
    await h.finish()
    await ClockCycles(dut.clk, 2000)
    assert h.passed == expected


@cocotb.test()
async def without_a_stride_all_messages_pass(dut):
    h = await Harness(dut, seed(), stride=0).start()
    for _ in range(10):
        h.post(0, 200)
    await ClockCycles(dut.clk, 1000)
    assert [data for _, data in h.passed] == [fragment.content for fragment in h.sent[0]] and not h.announced


@cocotb.test()
async def a_closed_queue_pair_drops_and_counts_what_was_not_read_and_begins_anew(dut):
    rng = seed()
    h = await Harness(dut, rng, stall=0.1).start()
    expected = 0
    for _ in range(12):
        for _ in range(rng.randint(0, 30)):
            h.post(0, rng.randint(1, 2000))
            h.post(1, rng.randint(1, 2000))
        await ClockCycles(dut.clk, rng.choice([10, 500, 3000]))
        while not (h.descs.idle() and h.data.idle()):
            await RisingEdge(dut.clk)
        h.is_reading[0] = False
        while h.is_busy:
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, 40)  # the READs have been processed
        expected += await h.close(0)
        await ClockCycles(dut.clk, rng.choice([1, 5, 1000]))
        h.open(0)
        h.is_reading[0] = True
    await h.finish()
    await ClockCycles(dut.clk, 1000)
    assert h.dropped == expected and not h.faults


@cocotb.test()
async def messages_of_a_closed_queue_pair_pass_to_be_flushed(dut):
    h = await Harness(dut, seed()).start()
    await h.close(0)
    h.post(0, 100)
    h.post(1, 100)
    await ClockCycles(dut.clk, 500)
    assert [desc["qp"] for desc, _ in h.passed] == [0]
    h.sent[0].clear()
    await h.finish()


@cocotb.test()
async def a_window_without_room_for_a_fragment_refuses_it(dut):
    h = await Harness(dut, seed()).start()
    h.window = 1024
    h.post(0, 100)
    await ClockCycles(dut.clk, 500)
    assert [desc["length"] for desc, _ in h.passed] == [0xFFFF_FFFF] and not h.announced


@cocotb.test()
@cocotb.parametrize(difference=[-1, -9, -70, 1, 70])
async def a_stream_that_differs_from_its_descriptor_ends_the_queue_pair(dut, difference):
    rng = seed()
    h = await Harness(dut, rng).start()
    length = 200
    desc = structs.pack("desc_t", qp=1, in_ring=1, with_imm=1, length=length, raddr=RING * 2)
    h._send(desc | 5 << 176, rng.randbytes(length + difference))
    await ClockCycles(dut.clk, 500)
    assert h.faults == [1] and not h.ready & 2 and h.dropped == 1
    h.open(1)
    h.post(1, 100)
    h.post(0, 100)
    await h.finish()


@cocotb.test()
async def a_memory_that_fails_ends_the_queue_pair(dut):
    h = await Harness(dut, seed()).start()
    h.memory.fault = lambda address, is_write: is_write and address // WINDOW == 1
    h.post(1, 100)
    h.post(0, 100)
    await ClockCycles(dut.clk, 500)
    assert h.faults == [1] and h.refused == 1 and not h.ready & 2
    h.sent[1].clear()
    await h.finish()
