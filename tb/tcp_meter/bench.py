# SPDX-License-Identifier: Apache-2.0
"""The meters and the histogram of a stream are what a list of its segments, with the cycles of their sending and
acknowledgement, says."""

import os
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from lib import structs
from lib.register_map import address, unpack
from lib.runner import Bench, seed

RING, LARGE = 8192, 1 << 26
BENCH = Bench(
    top="tcp_meter", configs=[{"N_STREAMS": n, "RING_BYTES": ring} for n, ring in ((1, RING), (4, LARGE), (64, RING))]
)
UNIT = max(1, int(os.environ.get("PARAM_RING_BYTES", "0")) >> 22)  # bytes in which the histogram counts places

CLOSED, SYN_SENT, ESTABLISHED = range(3)
WRAP = 1 << 32
LONG = ("transfer_time_tot", "bytes", "packets", "latency_sum")  # in two words each
NAMES = ("latency_first_packet", "latency_last_packet", *LONG, "running", "outstanding", "resent")


@dataclass
class Piece:
    """Bytes that one segment sent for the first time; offsets in the stream, without a wrap."""

    begin: int
    end: int
    sent: int


@dataclass
class Series:
    """What was sent since the meters were restarted."""

    pieces: list[Piece] = field(default_factory=list)
    acked: int = 0  # bytes before this offset; not before the series
    running: bool = False
    resent: bool = False
    latency_first: int = 0
    latency_last: int = 0
    last_ack: int = 0
    done_sum: int = 0
    looked: int = 0  # cycle of the last event in its life

    @property
    def end(self) -> int:
        return self.pieces[-1].end

    def acknowledge(self, upto: int, now: int) -> None:
        if upto <= self.acked:
            return
        for piece in self.pieces:
            covered = min(piece.end, upto) - max(piece.begin, self.acked)
            self.done_sum += max(covered, 0) * (now - piece.sent)
        if self.acked < self.pieces[0].end <= upto:
            self.latency_first = now - self.pieces[0].sent
        self.acked, self.last_ack = upto, now
        if upto == self.end:
            self.latency_last = now - self.pieces[-1].sent

    def meters(self) -> dict[str, int]:
        if not self.pieces:
            return dict.fromkeys(NAMES, 0)
        waiting = sum(max(p.end - max(p.begin, self.acked), 0) * (self.looked - p.sent) for p in self.pieces)
        return {
            "latency_first_packet": self.latency_first,
            "latency_last_packet": self.latency_last,
            "transfer_time_tot": self.last_ack - self.pieces[0].sent if self.last_ack else 0,
            "bytes": self.acked - self.pieces[0].begin,
            "packets": len(self.pieces),
            "latency_sum": self.done_sum + waiting,
            "running": int(self.running),
            "outstanding": int(self.running and self.acked < self.end),
            "resent": int(self.resent),
        }


@dataclass
class Latencies:
    """One segment at a time is measured, never one that was sent again. Places are in units, rounded up."""

    measured: tuple[int, int] | None = None  # the end of the segment, and when it was sent
    found: list[int] = field(default_factory=list)
    discarded: int = 0

    def sent(self, begin: int, end: int, all_new: bool, again: bool, now: int) -> None:
        if again and self.measured is not None and begin < self.measured[0]:
            self.measured = None
            self.discarded += 1
        elif all_new and self.measured is None:
            self.measured = (end, now)

    def acknowledge(self, upto: int, now: int) -> None:
        if self.measured is not None and upto >= self.measured[0]:
            self.found.append(now - self.measured[1])
            self.measured = None

    def closed(self) -> None:
        self.discarded += self.measured is not None
        self.measured = None


@dataclass
class Stream:
    """A sender, reduced to its pointers: offsets without a wrap."""

    base: int = 0
    una: int = 0
    nxt: int = 0
    end: int = 0  # after the last byte that was ever sent
    end_before: int = 0  # the same at the stream's last event
    state: int = CLOSED
    armed: bool = True
    series: Series = field(default_factory=Series)
    latencies: Latencies = field(default_factory=Latencies)

    def place(self, offset: int) -> int:
        return -(-(self.base + offset) // UNIT)


class Harness:
    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.n = int(os.environ["PARAM_N_STREAMS"])
        self.streams = [Stream() for _ in range(self.n)]

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("clear", "arm_valid", "arm_qp", "done_valid", "done", "req", "latency_req"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 32 * self.n + 8)  # the histogram is cleared
        for stream in range(self.n):
            await self.open(stream)
        return self

    async def tick(self, cycles: int = 1) -> None:
        await ClockCycles(self.dut.clk, cycles)

    @property
    def cycle(self) -> int:
        return int(get_sim_time("ns")) // 10

    async def event(self, index: int, **fields: int) -> None:
        """Served by the sender."""
        s, dut = self.streams[index], self.dut
        if s.series.running:
            s.series.looked = self.cycle
        places = {"una": s.una, "nxt": s.nxt, "max": s.end, "max_before": s.end_before}
        s.end_before = s.end
        values = {"stream": index, "state": s.state} | {name: (s.base + at) % WRAP for name, at in places.items()}
        dut.done.value, dut.done_valid.value = structs.pack("tcp_done_t", **(values | fields)), 1
        await self.tick()
        dut.done_valid.value = 0

    # ---- what a sender does; the model follows the definitions, not the gateware -------------------------------------

    async def open(self, index: int) -> None:
        s = self.streams[index]
        s.base = self.rng.choice([self.rng.getrandbits(32), WRAP - self.rng.randrange(1, 3000)])
        s.una = s.nxt = s.end = s.end_before = 0
        s.state = SYN_SENT
        await self.event(index)
        await self.tick()
        s.state = ESTABLISHED
        await self.event(index, **{"actions.opened": 1})
        await self.tick()

    async def close(self, index: int) -> None:
        s = self.streams[index]
        s.state, s.series.running = CLOSED, False
        s.latencies.closed()
        await self.event(index, **{"actions.ended": 2})
        await self.tick()

    async def send(self, index: int, size: int) -> None:
        """A segment from nxt on; its first bytes, or all, may have been sent before."""
        s = self.streams[index]
        begin, end = s.nxt, s.nxt + size
        fresh, again = end > s.end, begin < s.end
        if fresh and (s.armed or not s.series.running):
            s.series, s.armed = Series(running=True, acked=s.end), False
        series = s.series
        if series.running and not s.armed:
            if again and series.pieces and max(begin, series.acked) < min(end, series.end):
                series.resent = True
            if fresh:
                series.pieces.append(Piece(s.end, end, self.cycle))
        s.latencies.sent(s.place(begin), s.place(end), not again and size >= UNIT, again, self.cycle)
        s.nxt, s.end = end, max(end, s.end)
        sent = {"valid": 1, "seq": (s.base + begin) % WRAP, "len": size}
        fields = {f"actions.send.{name}": value for name, value in sent.items()}
        await self.event(index, **fields, **{"actions.counts.retransmitted": int(again)})

    async def acknowledge(self, index: int, upto: int, rewind: bool = False) -> None:
        s = self.streams[index]
        s.una = upto
        s.nxt = upto if rewind else max(s.nxt, upto)
        if s.series.running and not s.armed:
            s.series.acknowledge(upto, self.cycle)
        s.latencies.acknowledge(s.place(upto), self.cycle)
        await self.event(index)

    async def random_event(self, index: int) -> None:
        s, rng = self.streams[index], self.rng
        choice, room = rng.random(), RING - (s.nxt - s.una)
        if s.state == CLOSED:
            await self.open(index)
        elif choice < 0.5 and room > 0:
            await self.send(index, min(room, rng.choice([1, 64, 536, 1460, rng.randrange(1, 1461)])))
        elif choice < 0.85 and s.end > s.una:
            await self.acknowledge(index, rng.choice([s.end, s.nxt, rng.randint(s.una, s.nxt)]), rng.random() < 0.15)
        elif choice > 0.99:
            await self.close(index)
        else:
            await self.event(index)

    async def drain(self, index: int) -> None:
        s = self.streams[index]
        if s.state == ESTABLISHED and s.una < s.end:
            await self.acknowledge(index, s.end)
            await self.tick()

    # ---- software ----------------------------------------------------------------------------------------------------

    async def access(self, name: str, index: int, write: bool = False, patience: int = 200) -> int:
        """One word of `meter`, `latency` or `latency_bins`."""
        dut = self.dut
        of_meter = name.startswith("meter.")
        base = address("meter.latency_first_packet" if of_meter else "latency_bins.bin0", 0)
        where = structs.pack("reg_req_t", valid=1, is_wr=int(write), addr=address(name, index) - base)
        request, answer = (dut.req, dut.rsp) if of_meter else (dut.latency_req, dut.latency_rsp)
        request.value = where
        await RisingEdge(dut.clk)
        request.value = 0
        for _ in range(patience):
            await RisingEdge(dut.clk)
            output = structs.unpack("reg_rsp_t", int(answer.value))
            if output["rd_ack"] or output["wr_ack"]:
                assert output["wr_ack"] == int(write)
                return output["rd_data"]
        raise AssertionError(f"no answer for {name} of stream {index} within {patience} cycles")

    async def read(self, index: int) -> dict[str, int]:
        found = {name: await self.access(f"meter.{name}", index) for name in NAMES[:2]}
        for name in LONG:
            low, high = await self.access(f"meter.{name}_lo", index), await self.access(f"meter.{name}_hi", index)
            found[name] = low | high << 32
        return found | unpack("meter.status", await self.access("meter.status", index))

    async def check(self, index: int) -> None:
        s = self.streams[index]
        expected = (Series() if s.armed else s.series).meters()
        found = await self.read(index)
        assert found == expected, f"stream {index}: {found}, not {expected}"

    async def check_latencies(self, index: int) -> None:
        of = self.streams[index].latencies
        last, shortest, longest = (of.found[-1], min(of.found), max(of.found)) if of.found else (0, 0, 0)
        expected = {"last": last, "shortest": shortest, "longest": longest, "discarded": of.discarded}
        expected["sum_lo"] = sum(of.found)
        found = {name: await self.access(f"latency.{name}", index) for name in expected}
        assert found == expected, f"stream {index}: {found}, not {expected}"
        bins = [await self.access(f"latency_bins.bin{n}", index) for n in range(32)]
        edges = [edge << k for k in range(4, 20) for edge in (3, 4)][:-1]
        limits = zip([0, *edges], [*edges, WRAP], strict=True)
        assert bins == [sum(first <= cycles < end for cycles in of.found) for first, end in limits]


def some(h: Harness) -> list[int]:
    """A few streams to look at, the first and the last among them."""
    return sorted({0, h.n - 1, *(h.rng.randrange(h.n) for _ in range(3))})


async def traffic(h: Harness, events: int, busy: list[int]) -> None:
    """An event in most cycles, of a stream every second at most."""
    last = None
    await h.tick()
    for _ in range(events):
        free = [stream for stream in busy if stream != last]
        if not free or h.rng.random() < 0.1:
            last = None
            await h.tick(h.rng.choice([1, 1, 2, 30, 90, 700]))
            continue
        last = h.rng.choice(free)
        await h.random_event(last)
    await h.tick(4)


@cocotb.test()
async def meters_and_histogram_count_what_the_segments_did(dut):
    h = await Harness(dut, seed()).start()
    busy = some(h)
    for _ in range(6):
        await traffic(h, 400, busy)
        for stream in busy:
            await h.check(stream)
    for stream in busy:
        await h.drain(stream)
        await h.tick(4)
        await h.check(stream)
        assert h.streams[stream].series.meters()["outstanding"] == 0
        await h.check_latencies(stream)
        assert len(h.streams[stream].latencies.found) > 20 and h.streams[stream].latencies.discarded > 0
    for stream in [stream for stream in range(h.n) if stream not in busy][:2]:
        await h.check(stream)
        await h.check_latencies(stream)


@cocotb.test()
async def a_series_begins_with_the_first_byte_after_its_start(dut):
    """By a descriptor, by software, and by a clear of everything, with bytes of before outstanding or not."""
    h = await Harness(dut, seed()).start()
    busy = some(h)
    for turn in range(12):
        await traffic(h, 120, busy)
        victims = busy if turn % 3 == 2 else [h.rng.choice(busy)]
        if turn % 3 == 0:
            dut.arm_valid.value, dut.arm_qp.value = 1, victims[0]
            await h.tick()
            dut.arm_valid.value = 0
        elif turn % 3 == 1:
            await h.access(f"meter.{h.rng.choice(['status', 'bytes_hi'])}", victims[0], write=True)
        else:
            dut.clear.value = 1
            await h.tick()
            dut.clear.value = 0
            await h.tick(32 * h.n + 8)
        for stream in victims:
            h.streams[stream].armed = True
        await h.tick()
        for stream in busy:
            await h.check(stream)
        await traffic(h, 80, busy)
        for stream in busy:
            await h.check(stream)


@cocotb.test()
async def software_reads_while_every_cycle_has_an_event(dut):
    h = await Harness(dut, seed()).start()
    if h.n == 1:
        return
    stop = False

    async def saturate() -> None:
        n = 0
        while not stop:
            await h.send(n % 4, 16) if n < 400 else await h.event(n % 4)
            n += 1

    working = cocotb.start_soon(saturate())
    for _ in range(100):
        assert await h.access("meter.bytes_lo", h.rng.randrange(4), patience=20) == 0
    stop = True
    await working
    await h.tick(4)
    for stream in range(4):
        await h.check(stream)


@cocotb.test()
async def rows_that_do_not_exist_read_nothing_and_answer(dut):
    h = await Harness(dut, seed()).start()
    await h.send(0, 64)
    await h.tick()
    await h.acknowledge(0, 64)
    await h.tick(5)
    await h.access("meter.status", h.n, write=True)
    assert not any((await h.read(h.n)).values())
    dut.arm_valid.value, dut.arm_qp.value = 1, h.n
    await h.tick()
    dut.arm_valid.value = 0
    await h.check(0)


@cocotb.test(skip=UNIT == 1)
async def a_segment_is_measured_while_a_large_ring_is_outstanding(dut):
    h = await Harness(dut, seed()).start()
    for _ in range(LARGE // 8960 - 1):
        await h.send(0, 8960)
        await h.tick()
    assert h.streams[0].end > LARGE - 3 * 8960
    await h.acknowledge(0, 8959)
    await h.tick()
    await h.acknowledge(0, 8960)
    await h.tick()
    await h.acknowledge(0, h.streams[0].end)
    await h.tick(4)
    await h.check(0)
    await h.check_latencies(0)
    assert len(h.streams[0].latencies.found) == 1
