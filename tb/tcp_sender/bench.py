# SPDX-License-Identifier: Apache-2.0
"""Streams of the simplified TCP open, send, repair and end side by side, each with a receiver of its own.

That one event does the right thing to one row is shown by tb/tcp_equality; here the rows, their turns and their time.
"""

import os
from collections import Counter, deque
from itertools import pairwise

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from lib.runner import Bench, seed
from lib.structs import pack, unpack
from lib.tcp_receiver import ACK, FIN, RST, SYN, WRAP, Receiver, Segment

BENCH = Bench(top="tcp_sender", configs=[{"N_STREAMS": n, "CLK_KHZ": 10_000} for n in (1, 4, 64)])
TICK = 10  # cycles
FLAGS = ("fin", "syn", "rst", "psh", "ack")  # by bit
REFUSED, RESET, FINISHED, TIMED_OUT, ABORTED = range(1, 6)
PARAMETERS = {
    "mss": 1460,
    "receive_window": 65535,
    "nagle": 1,
    "back_off": 1,
    "adaptive": 1,
    "rto_initial": 400,
    "rto_min": 200,
    "rto_max": 5000,
    "give_up": 15,
    "challenge_interval": 500,
}


class Bed:
    """The module between a user who writes and a network with a delay, which may lose."""

    def __init__(self, dut, rng, delay: int = 60):
        self.dut, self.rng, self.delay = dut, rng, delay
        self.n = int(os.environ["PARAM_N_STREAMS"])
        self.receivers = [Receiver(rng.getrandbits(32), buffer=1 << 15) for _ in range(self.n)]
        self.loss = 0.0
        self.path_mss = 1 << 16  # a router drops longer segments, and names this limit
        self.cycle = 0
        self.flight: deque = deque()  # (cycle, stream, segment, whether it comes from us)
        self.arrivals: deque = deque()
        self.queues = {"command": deque(), "write": deque()}
        self.sent: list[tuple[int, int, dict]] = []  # cycle, stream, segment
        self.written = [0] * self.n
        self.acked = [0] * self.n
        self.state = [0] * self.n
        self.ended: list[tuple[int, int]] = []
        self.counts: Counter = Counter()

    async def start(self, **changes: int) -> "Bed":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("command_valid", "write_valid", "arrival_valid", "tx_paused", "command", "write", "arrival"):
            getattr(dut, name).value = 0
        dut.params.value = pack("tcp_params_t", **{**PARAMETERS, **changes})
        dut.send_room.value = 1
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self._watch())
        for port in ("command", "write", "arrival"):
            cocotb.start_soon(self._drive(port))
        return self

    async def set(self, **changes: int) -> None:
        """Changes parameters between two events, and waits until each stream has had its next one: the clock's."""
        await FallingEdge(self.dut.clk)
        while self.dut.busy.value:
            await FallingEdge(self.dut.clk)
        self.dut.params.value = pack("tcp_params_t", **{**PARAMETERS, **changes})
        await ClockCycles(self.dut.clk, 40 * max(self.n, 4))

    def data(self) -> list[int]:
        """Segments with data of each stream."""
        turns = Counter(stream for _, stream, sent in self.sent if sent["len"])
        return [turns[stream] for stream in range(self.n)]

    # ---- what the bench requests -----------------------------------------------------------------------------------
    def open(self, stream: int, iss: int | None = None) -> None:
        iss = self.rng.getrandbits(32) if iss is None else iss
        self.queues["command"].append(pack("tcp_command_t", stream=stream, opens=1, iss=iss))

    def abort(self, stream: int) -> None:
        self.queues["command"].append(pack("tcp_command_t", stream=stream))

    def write(self, stream: int, count: int) -> None:
        self.written[stream] += count
        self.queues["write"].append(pack("tcp_write_t", stream=stream, bytes=count))

    def limit(self, stream: int, seq: int, mss: int) -> None:
        """A router's message, true or forged: the segment at `seq` is longer than `mss`."""
        word = pack("tcp_event_t", kind=4, ack=seq % WRAP, options__mss=mss)
        self.arrivals.append(pack("tcp_arrival_t", stream=stream) | word)

    def deliver(self, stream: int, segment: Segment) -> None:
        """To the module, at once."""
        parts = {f"options__{name}": value for name, value in segment.options.items()}
        parts |= {f"flags__{name}": segment.flags >> bit & 1 for bit, name in enumerate(FLAGS)}
        word = pack("tcp_event_t", kind=3, seq=segment.seq, ack=segment.ack, window=segment.window, len=segment.len,
                    **parts)  # fmt: skip
        self.arrivals.append(pack("tcp_arrival_t", stream=stream) | word)

    async def until(self, condition, cycles: int = 200_000) -> None:
        """Waits for something to be true; says what was true instead when it never is."""
        for _ in range(cycles):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        state = f"states {self.state}, written {self.written}, acked {self.acked}, ended {self.ended}, {self.counts}"
        raise AssertionError(f"not within {cycles} cycles; {state}")

    async def all_acknowledged(self) -> None:
        await self.until(lambda: self.acked == self.written)
        got = [receiver.bytes for receiver in self.receivers]
        assert got == self.written, f"received {got}, written {self.written}"

    async def all_open(self) -> None:
        for stream in range(self.n):
            self.open(stream)
        await self.until(lambda: all(state == 2 for state in self.state))

    # ---- the network -----------------------------------------------------------------------------------------------
    async def _drive(self, port: str) -> None:
        dut, queue = self.dut, self.arrivals if port == "arrival" else self.queues[port]
        valid, ready, word = (getattr(dut, f"{port}{end}") for end in ("_valid", "_ready", ""))
        while True:
            await FallingEdge(dut.clk)
            valid.value = 1 if queue else 0
            if queue:
                word.value = queue[0]
                await RisingEdge(dut.clk)
                if ready.value:
                    queue.popleft()

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            self.cycle += 1
            if dut.done_valid.value:
                self._done(unpack("tcp_done_t", int(dut.done.value)))
            while self.flight and self.flight[0][0] <= self.cycle:
                _, stream, segment, ours = self.flight.popleft()
                if not ours:
                    self.deliver(stream, segment)
                    continue
                for answer in self.receivers[stream].handle(segment):
                    self._send(stream, answer, False)

    def _send(self, stream: int, segment: Segment, ours: bool) -> None:
        if self.rng.random() >= self.loss:
            self.flight.append((self.cycle + self.delay, stream, segment, ours))

    def _done(self, done: dict) -> None:
        stream, sent = done["stream"], {k[13:]: v for k, v in done.items() if k.startswith("actions.send.")}
        self.state[stream] = done["state"]
        self.acked[stream] += done["actions.acknowledged"]
        if done["actions.ended"]:
            self.ended.append((stream, done["actions.ended"]))
        for name, value in done.items():
            if name.startswith("actions.counts."):
                self.counts[name[15:]] += value
        if sent["valid"]:
            flags = sum(sent[f"flags.{name}"] << bit for bit, name in enumerate(FLAGS))
            self.sent.append((self.cycle, stream, sent))
            if sent["len"] > self.path_mss:
                self.limit(stream, sent["seq"], self.path_mss)
                return
            self._send(stream, Segment(sent["seq"], sent["ack"], flags, sent["len"]), True)


@cocotb.test()
async def every_stream_opens_and_its_bytes_arrive_in_order(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.all_open()
    syns = [stream for _, stream, sent in bed.sent if sent["flags.syn"]]
    assert sorted(syns) == list(range(bed.n))
    for _ in range(200):
        bed.write(rng.randrange(bed.n), rng.choice([1, 63, 1460, rng.randrange(1, 30_000)]))
    await bed.all_acknowledged()
    assert bed.counts["retransmitted"] == 0 and not bed.ended


@cocotb.test()
async def what_a_lossy_network_loses_is_sent_again_and_nothing_else_is_lost(dut):
    rng = seed()
    bed = await Bed(dut, rng).start(give_up=0)
    bed.loss = 0.05
    await bed.all_open()
    for _ in range(60):
        bed.write(rng.randrange(bed.n), rng.randrange(1, 40_000))
    await bed.until(lambda: bed.acked == bed.written, 4_000_000)
    assert [receiver.bytes for receiver in bed.receivers] == bed.written
    assert bed.counts["retransmitted"] > 0 and bed.counts["timeout"] + bed.counts["fast_retransmit"] > 0


@cocotb.test()
async def sequence_numbers_wrap(dut):
    bed = await Bed(dut, seed()).start()
    for stream in range(bed.n):
        bed.open(stream, WRAP - 1 - 5000 * (stream % 3))
        bed.receivers[stream].iss = WRAP - 1
    await bed.until(lambda: all(state == 2 for state in bed.state))
    for stream in range(bed.n):
        bed.write(stream, 20_000)
    await bed.all_acknowledged()


@cocotb.test()
async def the_line_is_shared_evenly_and_is_not_left_idle(dut):
    """A segment every 12 cycles and an ACK for each: 1460 bytes take 24 cycles at 512 bits, 192 at 64."""
    bed = await Bed(dut, seed()).start()
    for receiver in bed.receivers:
        receiver.buffer, receiver.scale = 1 << 20, 7
    await bed.all_open()
    for stream in range(bed.n):
        bed.write(stream, 300 * 1460)
    # A look every few cycles: it counts all that was sent.
    for _ in range(2000):
        sent = Counter(stream for _, stream, one in bed.sent if one["len"])
        if len(bed.sent) >= bed.n * 42 and all(count >= 40 for count in sent.values()):
            break
        await ClockCycles(dut.clk, 200)
    data = [(cycle, stream) for cycle, stream, sent in bed.sent if sent["len"]]
    busy = data[bed.n * 10 : bed.n * 40]
    turns = Counter(stream for _, stream in busy)
    assert len(turns) == bed.n and max(turns.values()) - min(turns.values()) <= 2, turns
    gaps = [b - a for (a, _), (b, _) in pairwise(busy)]
    assert sum(gaps) <= 12 * len(gaps), f"{sum(gaps) / len(gaps):.1f} cycles a segment, at most {max(gaps)}"


@cocotb.test()
async def a_closed_window_stops_its_stream_alone_and_is_probed(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    bed.receivers[0].buffer = 0
    await bed.all_open()
    for stream in range(bed.n):
        bed.write(stream, 10_000)
    await bed.until(lambda: bed.acked[1:] == bed.written[1:] and bed.counts["probe"] >= 3)
    assert bed.acked[0] == 0 and bed.receivers[0].bytes == 0
    probes = [cycle for cycle, stream, sent in bed.sent if stream == 0 and sent["len"] == 1]
    gaps = [b - a for a, b in pairwise(probes)]
    assert all(b > a for a, b in pairwise(gaps)), f"probes {gaps} cycles apart do not back off"
    bed.receivers[0].buffer = 1 << 15
    await bed.all_acknowledged()


@cocotb.test()
async def streams_end_by_name_and_open_again(dut):
    bed = await Bed(dut, seed()).start(give_up=3)
    bed.receivers[0].listens = False
    bed.open(0)
    await bed.until(lambda: bed.ended == [(0, REFUSED)])
    bed.receivers[0].listens = True
    for flags, reason in ((RST, RESET), (FIN, FINISHED)):
        bed.open(0)
        await bed.until(lambda: bed.state[0] == 2)
        bed.deliver(0, bed.receivers[0].end(flags))
        await bed.until(lambda reason=reason: bed.ended[-1] == (0, reason))
    bed.open(0)
    await bed.until(lambda: bed.state[0] == 2)
    bed.abort(0)
    await bed.until(lambda: bed.ended[-1] == (0, ABORTED) and bed.receivers[0].resets >= 1)
    # A receiver that is gone: 3 tries, each twice as long.
    bed.open(0)
    await bed.until(lambda: bed.state[0] == 2)
    bed.loss, begin = 1.0, bed.cycle
    bed.write(0, 1)
    await bed.until(lambda: bed.ended[-1] == (0, TIMED_OUT))
    ticks = (bed.cycle - begin) / TICK
    assert 15 * 200 <= ticks < 15 * 200 + 60 + bed.n * 4, f"gave up after {ticks} ticks"
    assert bed.counts["timeout"] == 3


@cocotb.test()
async def time_stands_still_while_the_line_is_paused(dut):
    bed = await Bed(dut, seed()).start()
    await bed.all_open()
    bed.loss = 1.0
    bed.write(0, 100)
    await bed.until(lambda: any(sent["len"] for *_, sent in bed.sent))
    dut.tx_paused.value = 1
    before = len(bed.sent)
    await ClockCycles(dut.clk, 400 * TICK)
    assert len(bed.sent) == before and bed.counts["timeout"] == 0
    dut.tx_paused.value = 0
    await bed.until(lambda: bed.counts["timeout"] == 1)


@cocotb.test()
async def blind_segments_change_nothing_and_no_stream_takes_what_is_meant_for_another(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.all_open()
    for stream in range(bed.n):
        bed.write(stream, 50_000)
    for _ in range(300):
        stream = rng.randrange(bed.n)
        seq = (bed.receivers[stream].iss + 1 + (1 << 17) + rng.getrandbits(30)) % WRAP
        flags = rng.choice([RST, RST | ACK, SYN, SYN | ACK, ACK])
        bed.deliver(stream, Segment(seq, rng.getrandbits(32), flags, window=rng.getrandbits(16)))
        await ClockCycles(dut.clk, 20)
    await bed.all_acknowledged()
    assert not bed.ended and bed.counts["out_of_window"] > 200
    assert bed.counts["challenge"] < 100 + bed.n


@cocotb.test()
async def a_forged_path_mtu_about_data_under_way_shortens_no_segment_that_is_acknowledged(dut):
    rng = seed()
    bed = await Bed(dut, rng).start()
    await bed.all_open()
    for stream in range(bed.n):
        bed.write(stream, 100_000)
    seen = 0
    while bed.acked != bed.written:
        await RisingEdge(dut.clk)
        for _, stream, sent in bed.sent[seen:]:
            if sent["len"] and rng.random() < 0.5:
                bed.limit(stream, sent["seq"], rng.choice([64, 535, 536, 1000]))
        seen = len(bed.sent)
    await bed.all_acknowledged()
    assert bed.counts["path_mtu"] == 0 and bed.counts["ignored"] > 10, bed.counts
    # The last one before a pause may be shorter, as all that was written.
    short = [sent["len"] for _, _, sent in bed.sent if 0 < sent["len"] < 1460]
    assert len(short) <= bed.n, f"{len(short)} segments are shorter than 1460: {sorted(short)[:20]}"


@cocotb.test()
async def a_path_mtu_holds_from_the_next_timeout_on_and_never_below_what_all_hosts_take(dut):
    bed = await Bed(dut, seed()).start()
    await bed.all_open()
    bed.path_mss = 600
    for stream in range(bed.n):
        bed.write(stream, 20_000)
    await bed.all_acknowledged()
    assert bed.counts["path_mtu"] == bed.n <= bed.counts["timeout"], bed.counts
    bed.path_mss = 500  # nothing passes, and no segment becomes so short
    for stream in range(bed.n):
        bed.write(stream, 2000)
    await bed.until(lambda: bed.counts["timeout"] >= 3 * bed.n)
    assert bed.counts["path_mtu"] == bed.n and min(sent["len"] for *_, sent in bed.sent[-bed.n :]) == 600
    bed.path_mss = 600
    await bed.all_acknowledged()


@cocotb.test()
async def what_a_stream_may_send_follows_the_parameters_while_it_waits(dut):
    """Nagle's algorithm and back-off are switched between the choice of a segment and its turn."""
    slow = {"rto_initial": 20_000, "rto_min": 20_000, "rto_max": 20_000}
    bed = await Bed(dut, seed()).start(**slow)
    await bed.all_open()

    async def write(count: int) -> None:
        for stream in range(bed.n):
            bed.write(stream, count)
        await ClockCycles(dut.clk, 80 * max(bed.n, 4))

    bed.delay = 100_000  # nothing is acknowledged yet
    await write(1000)
    await write(100)
    assert bed.data() == [1] * bed.n, "a short segment goes in spite of Nagle's algorithm"
    await bed.set(**slow, nagle=0)
    await bed.until(lambda: bed.data() == [2] * bed.n, 40 * max(bed.n, 4))
    assert bed.acked == [0] * bed.n
    # Chosen, and ready for the line, when Nagle's algorithm is switched on.
    dut.send_room.value = 0
    await write(10)
    await bed.set(**slow)
    dut.send_room.value = 1
    await write(10)
    assert bed.data() == [2] * bed.n, "what was chosen before Nagle's algorithm was switched on still goes"
    bed.delay = 60
    await bed.all_acknowledged()
    assert bed.data() == [3] * bed.n and bed.counts["retransmitted"] == 0

    # A loss is repaired: what is new waits, unless nothing backs off.
    fixed = {"give_up": 0, "adaptive": 0, "rto_initial": 4000}
    await bed.set(**fixed)
    bed.loss = 1.0
    await write(4 * 1460)
    assert bed.data() == [7] * bed.n
    await bed.until(lambda: bed.counts["retransmitted"] >= bed.n)
    await write(1460)
    assert sum(bed.data()) == 7 * bed.n + bed.counts["retransmitted"], "new data goes while a loss is repaired"
    await bed.set(**fixed, back_off=0)
    await bed.until(lambda: sum(bed.data()) == 8 * bed.n + bed.counts["retransmitted"], 200 * max(bed.n, 4))
    await bed.set(**fixed)
    bed.loss = 0.0
    await bed.all_acknowledged()
