# SPDX-License-Identifier: Apache-2.0
"""Messages written into rings in an AXI4 memory come back as segments from any byte to any byte, with their sums.

The bench is the sender (`tcp_sender`): it opens streams, acknowledges, and requests segments.
"""

import itertools
import random
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib.axi_memory import AxiMemory
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed
from lib.structs import pack, unpack
from lib.tcp_receiver import ACK, WRAP

N = 3
RINGS = {8: 16384, 64: 32768}  # by bytes of a beat
BENCH = Bench(
    top="tcp_rings_axi_bench",
    configs=[{"DATA_W": 8 * lanes, "N_STREAMS": N, "RING_BYTES": ring} for lanes, ring in RINGS.items()],
    sources=[Path(__file__).parent / "tcp_rings_axi_bench.sv"],
)

BASE = 0x10000
MSS = 8960
OPEN, SEGMENT = 0, 3  # tcp_event_e
CLOSED, SYN_SENT, ESTABLISHED = range(3)
RESET = 2  # tcp_end_e
LINE = {8: (156.25e6, 10e9), 64: (322.266e6, 100e9)}  # clock and line rate
OVERHEAD = 78  # bytes of a segment on the line besides its payload


def sum_of(data: bytes) -> int:
    """RFC 1071, modulo 65535: 0 and 0xFFFF are one value."""
    return int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF


@dataclass
class Stream:
    """The bytes that were written from the sequence number `start` on, and how far they have come."""

    start: int
    data: bytearray = field(default_factory=bytearray)
    reported: int = 0
    acked: int = 0


class Harness:
    def __init__(self, dut, rng: random.Random):
        self.dut, self.rng = dut, rng
        self.lanes = len(dut.m_axis_tkeep)
        self.ring = RINGS[self.lanes]
        self.streams = [Stream(0) for _ in range(N)]
        self.events: deque[dict[str, int]] = deque()  # of tcp_done_t
        self.jobs: deque[tuple[int, int]] = deque()  # stream and tcp_segment_t
        self.requested: list[tuple[int, int, int, bytes]] = []  # stream, sequence number, length, bytes
        self.headers: list[dict[str, int]] = []
        self.payloads: list[bytes] = []
        self.laid: list[tuple[int, int]] = []  # dropped, end
        self.faults: list[tuple[str, int]] = []
        self.errors = self.cycle = self.reads = self.most_reads = 0
        self.echoes = False  # what the writer reports is acknowledged at once
        self.ready = 1.0  # how often the sender and the framer take what is offered

    async def start(self, latency=lambda rng: 20, stall: float = 0.0) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.rst.value = 1
        for name in ("write_ready", "done", "done_valid", "s_stream", "s_segment", "s_valid", "hdr_ready"):
            getattr(dut, name).value = 0
        dut.params.value = pack("tcp_params_t", mss=MSS, receive_window=4321)
        self.memory = AxiMemory(dut, self.rng, BASE + N * self.ring, latency)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        if stall:
            self.ready = 1 - stall
            self.memory.stall(self.rng, stall)
            for stream in (self.source, self.sink):
                stream.set_pause_generator(self.rng.random() < stall for _ in itertools.count())
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        for task in (self._watch, self._drive, self._payloads):
            cocotb.start_soon(task())
        for stream in range(N):
            self.open(stream, self.rng.choice([self.rng.getrandbits(32), WRAP - 5000]))
        await self.until(lambda: not self.events)
        return self

    # ---- what the sender does --------------------------------------------------------------------------------------
    def open(self, stream: int, iss: int) -> None:
        self.streams[stream] = Stream((iss + 1) % WRAP)
        self.events.append({"stream": stream, "kind": OPEN, "state": SYN_SENT, "una": iss, "written": (iss + 1) % WRAP})
        self.acknowledge(stream, 0)

    def acknowledge(self, stream: int, upto: int) -> None:
        one = self.streams[stream]
        one.acked = upto
        una = (one.start + upto) % WRAP
        self.events.append({"stream": stream, "kind": SEGMENT, "state": ESTABLISHED, "una": una})

    def end(self, stream: int) -> None:
        self.events.append({"stream": stream, "kind": SEGMENT, "state": CLOSED, "actions__ended": RESET})

    def write(self, stream: int, message: bytes) -> None:
        self.streams[stream].data += message
        self.source.send_nowait(AxiStreamFrame(message, tuser=stream))

    def request(self, stream: int, first: int, length: int) -> None:
        """A segment of the stream's bytes from `first` on; of none, an acknowledgement."""
        one = self.streams[stream]
        seq = (one.start + first) % WRAP
        self.jobs.append((stream, pack("tcp_segment_t", valid=1, seq=seq, ack=7, flags__ack=1, len=length)))
        self.requested.append((stream, seq, length, bytes(one.data[first : first + length])))

    async def until(self, condition, cycles: int = 200_000) -> None:
        for _ in range(cycles):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(
            f"not within {cycles} cycles: {[(len(s.data), s.reported, s.acked) for s in self.streams]}"
        )

    async def all_reported(self) -> None:
        await self.until(lambda: all(one.reported == len(one.data) for one in self.streams))

    async def answered(self) -> None:
        """All segments have left; header, payload and sum of each are right."""
        await self.until(lambda: not self.jobs and len(self.headers) == len(self.requested))
        bare = [payload for _, _, _, payload in self.requested if payload]
        await self.until(lambda: len(self.payloads) == len(bare))
        assert self.payloads == bare
        for hdr, (stream, seq, length, payload) in zip(self.headers, self.requested, strict=True):
            fields = {name: hdr[name] for name in ("port", "segment.seq", "segment.len", "window", "segment.flags.ack")}
            assert list(fields.values()) == [40_000 + stream, seq, length, 4321, ACK >> 4], fields
            assert hdr["payload_sum"] % 0xFFFF == sum_of(payload), "the sum is wrong"
        for made in (self.requested, self.headers, self.payloads):
            made.clear()

    # ---- tasks -----------------------------------------------------------------------------------------------------
    async def _drive(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            event = self.events.popleft() if self.events else None
            dut.done_valid.value = event is not None
            if event:
                dut.done.value = pack("tcp_done_t", **event)
            job = self.jobs.popleft() if self.jobs and dut.room.value == 1 else None
            dut.s_valid.value = job is not None
            if job:
                dut.s_stream.value, dut.s_segment.value = job
            dut.write_ready.value = self.rng.random() < self.ready
            dut.hdr_ready.value = self.rng.random() < self.ready

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            self.cycle += 1
            if dut.write_valid.value == 1 and dut.write_ready.value == 1:
                write = unpack("tcp_write_t", int(dut.write.value))
                self._report(write["stream"], write["bytes"])
            if dut.laid_valid.value == 1:
                laid = unpack("tcp_laid_t", int(dut.laid.value))
                self.laid.append((laid["dropped"], laid["end_seq"]))
            if dut.hdr_valid.value == 1 and dut.hdr_ready.value == 1:
                self.headers.append(unpack("tcp_tx_hdr_t", int(dut.hdr.value)))
            for side in ("wr", "rd"):
                if getattr(dut, f"{side}_fault_valid").value == 1:
                    self.faults.append((side, int(getattr(dut, f"{side}_fault_stream").value)))
            self.errors += dut.stat_error.value == 1
            self.reads += dut.m_axi_arvalid.value == 1 and dut.m_axi_arready.value == 1
            self.reads -= dut.m_axi_rvalid.value == 1 and dut.m_axi_rready.value == 1 and dut.m_axi_rlast.value == 1
            self.most_reads = max(self.most_reads, self.reads)
            assert dut.m_axi_rready.value == 1, "the memory is stalled"

    def _report(self, stream: int, count: int) -> None:
        """The bytes that are reported to the sender are in the memory, at their places."""
        one = self.streams[stream]
        for at in range(one.reported, one.reported + count):
            place = BASE + stream * self.ring + (one.start + at) % self.ring
            assert self.memory.mem[place] == one.data[at], f"byte {at} of stream {stream} is not in the memory"
        one.reported += count
        if self.echoes:
            self.acknowledge(stream, one.reported)

    async def _payloads(self) -> None:
        while True:
            self.payloads.append(bytes((await self.sink.recv()).tdata))


def some_length(rng: random.Random, most: int) -> int:
    return min(most, rng.choice([1, 2, 7, 8, 9, 63, 64, 65, 1460, rng.randrange(1, MSS), MSS]))


async def random_traffic(dut, latency, stall: float) -> None:
    """Until every ring has wrapped."""
    rng = seed()
    h = await Harness(dut, rng).start(latency, stall)
    while not all(one.acked > h.ring for one in h.streams):
        for _ in range(8):
            stream = rng.randrange(N)
            one = h.streams[stream]
            free = h.ring - 5 * h.lanes - (len(one.data) - one.acked)
            if free > 0:
                h.write(stream, rng.randbytes(some_length(rng, free)))
        await h.all_reported()
        for _ in range(12):
            stream = rng.randrange(N)
            one = h.streams[stream]
            first = rng.randrange(one.acked, one.reported + 1)
            h.request(stream, first, some_length(rng, one.reported - first) if first < one.reported else 0)
        await h.answered()
        for stream, one in enumerate(h.streams):
            h.acknowledge(stream, rng.choice([one.reported, rng.randrange(one.acked, one.reported + 1)]))
        await h.until(lambda: not h.events)
    assert min(h.memory.touched) >= BASE >> 12 and h.memory.most_writes <= 16 and h.most_reads <= 16
    assert not h.faults and not h.errors and not any(dropped for dropped, _ in h.laid)


@cocotb.test()
async def what_was_written_comes_back_from_a_quick_memory_from_any_byte_to_any_byte(dut):
    await random_traffic(dut, lambda rng: 2, stall=0.0)


@cocotb.test()
async def what_was_written_comes_back_from_a_slow_memory_with_random_stalls_everywhere(dut):
    await random_traffic(dut, lambda rng: rng.randrange(300), stall=0.3)


@cocotb.test()
async def segments_fill_the_line_from_a_memory_of_latency_100(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 100)
    clock, rate = LINE[h.lanes]
    h.write(0, rng.randbytes(15_000))
    await h.all_reported()
    for mss in (1460, MSS):
        segments = 40 if mss == 1460 else 12
        for _ in range(segments):
            h.request(0, rng.randrange(15_000 - mss), mss)
        await h.until(lambda: len(h.payloads) == 4)
        begin = h.cycle
        await h.until(lambda n=segments: len(h.payloads) == n)
        each = (h.cycle - begin) / (segments - 4)
        line = (mss + OVERHEAD) * 8 / rate * clock
        dut._log.info("segments of %d bytes: one every %.1f cycles, on the line %.1f", mss, each, line)
        assert each <= line
        await h.answered()


@cocotb.test()
async def messages_enter_a_memory_of_latency_100_at_the_rate_of_the_line(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 100)
    clock, rate = LINE[h.lanes]
    h.echoes = True
    for _ in range(16):
        h.write(1, rng.randbytes(5000))
    await h.until(lambda: h.streams[1].reported > 10_000)
    begin, already = h.cycle, h.streams[1].reported
    await h.all_reported()
    bytes_a_cycle = (80_000 - already) / (h.cycle - begin)
    line = rate / 8 / clock * 1460 / (1460 + OVERHEAD)
    dut._log.info("%.2f bytes a cycle, the line takes %.2f", bytes_a_cycle, line)
    assert bytes_a_cycle >= line


@cocotb.test()
async def a_memory_that_stops_stops_everything_and_loses_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 10)
    h.memory.hold(True)
    for _ in range(6):
        h.write(rng.randrange(N), rng.randbytes(2 * h.ring // N))
    await ClockCycles(dut.clk, 6000)
    assert not any(one.reported for one in h.streams) and dut.s_axis_tready.value == 0 and dut.unconfirmed.value != 0
    h.echoes = True
    h.memory.hold(False)
    await h.all_reported()
    h.echoes = False
    h.memory.hold(True)
    h.write(0, rng.randbytes(3000))
    h.memory.hold(False)
    await h.all_reported()
    h.memory.hold(True)
    first = h.streams[0].acked
    for _ in range(12):
        h.request(0, first + rng.randrange(1000), 2000)
    await ClockCycles(dut.clk, 500)
    assert h.jobs and not h.payloads and dut.unread.value != 0
    h.memory.hold(False)
    await h.answered()
    assert dut.unread.value == 0 and dut.unconfirmed.value == 0


@cocotb.test()
async def bytes_that_were_not_written_are_never_reported_nor_those_after_them(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(40))
    one = h.streams[1]
    bad = BASE + h.ring + ((one.start + 6000) % h.ring & ~4095)
    h.memory.fault = lambda address, is_write: is_write and bad <= address < bad + 8
    for stream in (0, 1, 2, 1, 0, 1):
        h.write(stream, rng.randbytes(4000))
    await h.until(lambda: len(h.laid) == 6)
    before = (bad - BASE - h.ring - one.start) % h.ring
    assert h.faults == [("wr", 1)] and h.errors == 1
    assert h.streams[0].reported == 8000 and h.streams[2].reported == 4000 and one.reported <= before < len(one.data)
    assert not any(dropped for dropped, _ in h.laid)  # they fail with their stream
    h.memory.fault = lambda address, is_write: False
    h.end(1)
    h.open(1, 77)
    await h.until(lambda: not h.events)
    h.write(1, rng.randbytes(5000))
    await h.all_reported()
    h.request(1, 3, 4900)
    await h.answered()


@cocotb.test()
async def a_segment_that_could_not_be_read_is_not_sent_and_its_stream_is_named(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(40), stall=0.1)
    for stream in range(N):
        h.write(stream, rng.randbytes(9000))
    await h.all_reported()
    one = h.streams[2]
    bad = 5000
    at = BASE + 2 * h.ring + (one.start + bad) % h.ring
    h.memory.fault = lambda address, is_write: not is_write and address <= at < address + h.lanes
    beat = (one.start + bad) // h.lanes
    failed = 0
    for _ in range(40):
        stream, first = rng.choice([(rng.randrange(N), rng.randrange(8000)), (2, bad - rng.randrange(-20, 200))])
        length = some_length(rng, 1000)
        h.request(stream, first, length)
        if stream == 2 and (one.start + first) // h.lanes <= beat <= (one.start + first + length - 1) // h.lanes:
            failed += 1
            h.requested.pop()
    assert 0 < failed < 40
    await h.answered()
    await h.until(lambda: len(h.faults) >= failed)
    assert h.faults == [("rd", 2)] * failed


@cocotb.test()
async def bytes_of_a_connection_that_has_ended_are_not_reported(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: 50)
    h.memory.hold(True)
    for length in (1000, 3, 5000):
        h.write(0, rng.randbytes(length))
    h.write(1, rng.randbytes(1000))
    await h.until(h.source.idle)
    h.end(0)
    await h.until(lambda: not h.events)
    assert not h.laid
    h.memory.hold(False)
    await h.until(lambda: len(h.laid) == 4)
    assert [dropped for dropped, _ in h.laid] == [1, 1, 1, 0]
    assert h.streams[0].reported == 0 and h.streams[1].reported == 1000
    h.end(1)
    h.write(1, rng.randbytes(100))
    await h.until(lambda: len(h.laid) == 5)
    assert h.laid[4][0] == 1 and h.streams[1].reported == 1000
    h.open(0, 12345)
    await h.until(lambda: not h.events)
    h.write(0, rng.randbytes(700))
    await h.until(lambda: h.streams[0].reported == 700)
    h.request(0, 0, 700)
    await h.answered()


@cocotb.test()
async def a_connection_that_ends_in_a_message_leaves_the_rings_of_others_as_they_are(dut):
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(60))
    for _ in range(20):
        kept = len(h.streams[1].data)
        h.echoes = True
        h.write(0, rng.randbytes(rng.randrange(1, 3000)))
        h.write(1, rng.randbytes(rng.randrange(1, 500)))
        laid = len(h.laid)
        await ClockCycles(dut.clk, rng.randrange(1, 250))
        h.end(0)
        await h.until(lambda laid=laid: len(h.laid) == laid + 2 and h.source.idle())
        await h.until(lambda: h.streams[1].reported == len(h.streams[1].data))
        await h.until(lambda: dut.unconfirmed.value == 0)
        h.open(0, rng.getrandbits(32))
        h.request(1, kept, len(h.streams[1].data) - kept)
        await h.answered()


@cocotb.test()
async def a_segment_acknowledged_before_it_is_read_has_the_sum_of_the_bytes_it_carries(dut):
    """And those of its bytes that are not acknowledged are right: only the others may have been written over."""
    rng = seed()
    h = await Harness(dut, rng).start(lambda rng: rng.randrange(60))
    one = h.streams[0]
    for _ in range(6):
        first, length = len(one.data), rng.randrange(2000, h.ring // 2)
        h.write(0, rng.randbytes(h.ring // 2))
        await h.all_reported()
        h.memory.slave.read_if.ar_channel.pause = True
        length = min(length, MSS)
        h.request(0, first, length)
        kept = rng.randrange(1, 100)
        h.acknowledge(0, first + length - kept)
        h.write(0, rng.randbytes(h.ring // 2 + length - kept - 5 * h.lanes))  # over the acknowledged bytes, too
        await h.all_reported()
        h.memory.slave.read_if.ar_channel.pause = False
        await h.until(lambda: len(h.payloads) == 1 and len(h.headers) == 1)
        (payload,), (hdr,), (requested,) = h.payloads, h.headers, h.requested
        assert payload != requested[3] and len(payload) == length and payload[-kept:] == requested[3][-kept:]
        assert hdr["payload_sum"] % 0xFFFF == sum_of(payload)
        for made in (h.requested, h.headers, h.payloads):
            made.clear()
        h.acknowledge(0, len(one.data))
