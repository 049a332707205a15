# SPDX-License-Identifier: Apache-2.0
"""The meters of a series are what a list of its packets, with the cycles of their sending and acknowledgement, says."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from lib.register_map import address, unpack
from lib.runner import Bench, seed

BENCH = Bench(
    top="transfer_meter_bench",
    configs=[{"N_QP": 1}, {"N_QP": 4}, {"N_QP": 256}],
    sources=[Path(__file__).parent / "transfer_meter_bench.sv"],
    inside=["transfer_meter.now_q"],
)

RESET, RTS, SQD, ERR = 0, 3, 4, 6  # enum ibv_qp_state
PSNS = 1 << 24


@dataclass
class Packet:
    psn: int  # without a wrap
    size: int
    sent: int
    acked: int | None = None


@dataclass
class Series:
    """The packets since the meters were restarted."""

    packets: list[Packet] = field(default_factory=list)
    freed: int = 0
    resent: bool = False
    running: bool = False
    last_ack: int = 0
    latency_last: int = 0
    looked: int = 0  # cycle of the last operation in its life

    def outstanding(self) -> list[Packet]:
        return [p for p in self.packets if p.acked is None]

    def data_outstanding(self) -> bool:
        return any(p.size for p in self.outstanding())

    def acknowledge(self, upto: int, now: int) -> None:
        had_data = self.data_outstanding()
        covered = [p for p in self.outstanding() if p.psn < upto]
        for packet in covered:
            packet.acked = now
        if covered and had_data:
            self.last_ack = now
            if not self.data_outstanding():
                self.latency_last = now - [p for p in self.packets if p.size][-1].sent

    def meters(self) -> dict[str, int]:
        if not self.packets:
            return dict.fromkeys(NAMES, 0)
        first = self.packets[0]
        acked = [p for p in self.packets if p.acked is not None]
        waiting = sum(self.looked - p.sent for p in self.outstanding())
        return {
            "latency_first_packet": 0 if first.acked is None else first.acked - first.sent,
            "latency_last_packet": self.latency_last,
            "transfer_time_tot": self.last_ack - first.sent if self.last_ack else 0,
            "bytes": self.freed,
            "packets": len(acked),
            "latency_sum": sum(p.acked - p.sent for p in acked) + waiting,
            "running": int(self.running),
            "outstanding": int(self.running and bool(self.outstanding())),
            "resent": int(self.resent),
        }


LONG = ("transfer_time_tot", "bytes", "packets", "latency_sum")  # in two words each
NAMES = ("latency_first_packet", "latency_last_packet", *LONG, "running", "outstanding", "resent")


@dataclass
class QueuePair:
    """A go-back-N sender, reduced to its pointers; PSNs without a wrap."""

    base: int
    tail: int = 0
    una: int = 0
    nxt: int = 0
    end: int = 0  # the first that was never sent
    sizes: list[int] = field(default_factory=list)
    armed: bool = True
    series: Series = field(default_factory=Series)


class Harness:
    def __init__(self, dut, rng):
        self.dut = dut
        self.rng = rng
        self.n_qp = int(os.environ["PARAM_N_QP"])
        self.qps = [QueuePair(rng.choice([rng.randrange(PSNS), PSNS - rng.randrange(8)])) for _ in range(self.n_qp)]

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("clear", "arm_valid", "stat_valid", "req_valid"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        for qp in range(self.n_qp):
            await self.operation(qp, state=RESET)
        await self.tick()
        return self

    async def tick(self, cycles: int = 1) -> None:
        await ClockCycles(self.dut.clk, cycles)

    @property
    def cycle(self) -> int:
        return int(get_sim_time("ns")) // 10

    async def operation(self, qp: int, state: int = RTS, psn: int = 0, size: int = 0, **values: int) -> None:
        q, dut = self.qps[qp], self.dut
        if q.series.running:
            q.series.looked = self.cycle
        values = {"send": 0, "retransmit": 0, "freed": 0} | values
        values |= {"una": (q.base + q.una) % PSNS, "nxt": (q.base + q.nxt) % PSNS, "stat_psn": (q.base + psn) % PSNS}
        for name, value in (values | {"stat_qp": qp, "state": state, "stat_bytes": size, "stat_valid": 1}).items():
            getattr(dut, name).value = value
        await self.tick()
        dut.stat_valid.value = 0

    # ---- what a requester does; the model follows the definitions, not the gateware -----------------------

    async def send(self, qp: int, size: int = 1024, state: int = RTS) -> None:
        """The packet at nxt: a new one of `size`, or one that was sent before."""
        q = self.qps[qp]
        psn, again = q.nxt, q.nxt < q.end
        if again:
            size = q.sizes[psn]
        else:
            q.sizes.append(size)
        if not again and size and (q.armed or not q.series.running):
            q.series = Series(running=True)
            q.armed = False
        s = q.series
        if s.running and not q.armed:
            if not again:
                s.packets.append(Packet(psn, size, self.cycle))
            elif psn >= s.packets[0].psn:
                s.resent = True
        q.nxt += 1
        q.end = max(q.end, q.nxt)
        await self.operation(qp, state=state, psn=psn, size=size, send=1, retransmit=int(again))

    async def acknowledge(self, qp: int, upto: int, rewind: bool = False, state: int = RTS) -> None:
        """All before `upto` has arrived; a rewind makes it the next to be sent."""
        q = self.qps[qp]
        q.una = upto
        q.nxt = upto if rewind else max(q.nxt, upto)
        if q.series.running and not q.armed:
            q.series.acknowledge(upto, self.cycle)
        await self.operation(qp, state=state)

    async def release(self, qp: int) -> None:
        q = self.qps[qp]
        psn = q.tail
        q.tail += 1
        if q.series.running and not q.armed and psn >= q.series.packets[0].psn:
            q.series.freed += q.sizes[psn]
        await self.operation(qp, psn=psn, size=q.sizes[psn], freed=1)

    async def fail(self, qp: int, state: int) -> None:
        """Falls out of RTS; what was outstanding is given up, and a new life begins at other PSNs."""
        q = self.qps[qp]
        q.series.running = False
        await self.operation(qp, state=state)
        q.una = q.nxt = q.tail = q.end
        q.base = self.rng.randrange(PSNS)
        await self.tick()
        await self.operation(qp, state=RTS)

    async def random_operation(self, qp: int) -> None:
        q, rng = self.qps[qp], self.rng
        choice = rng.random()
        if (choice < 0.45 and q.end - q.una < 12) or (q.end == q.una and q.tail == q.una):
            await self.send(qp, rng.choice([0, 1, 256, 4096, 4096]), rng.choice([RTS, RTS, SQD]))
        elif choice < 0.75 and q.end > q.una:
            await self.acknowledge(qp, q.una + rng.randint(0, q.end - q.una), rng.random() < 0.15)
        elif choice < 0.95 and q.tail < q.una:
            await self.release(qp)
        elif choice > 0.99:
            await self.fail(qp, rng.choice([RESET, ERR]))
        else:
            await self.operation(qp)

    async def drain(self, qp: int) -> None:
        q = self.qps[qp]
        while q.nxt < q.end:
            await self.send(qp)
            await self.tick()
        if q.una < q.end:
            await self.acknowledge(qp, q.end)
            await self.tick()
        while q.tail < q.una:
            await self.release(qp)
            await self.tick()

    # ---- software ---------------------------------------------------------------------------------------

    async def access(self, qp: int, name: str, write: bool = False, patience: int = 60) -> int:
        dut = self.dut
        where = address(f"meter.{name}", qp) - address("meter.latency_first_packet")
        dut.req_valid.value, dut.req_is_wr.value, dut.req_addr.value = 1, int(write), where
        await RisingEdge(dut.clk)
        dut.req_valid.value = 0
        for _ in range(patience):
            await RisingEdge(dut.clk)
            if dut.rd_ack.value == 1 or dut.wr_ack.value == 1:
                assert dut.wr_ack.value == int(write)
                return int(dut.rd_data.value)
        raise AssertionError(f"no answer for {name} of queue pair {qp} within {patience} cycles")

    async def read(self, qp: int) -> dict[str, int]:
        found = {name: await self.access(qp, name) for name in ("latency_first_packet", "latency_last_packet")}
        for name in LONG:
            found[name] = await self.access(qp, f"{name}_lo") | await self.access(qp, f"{name}_hi") << 32
        return found | unpack("meter.status", await self.access(qp, "status"))

    async def check(self, qp: int) -> None:
        q = self.qps[qp]
        expected = (Series() if q.armed else q.series).meters()
        found = await self.read(qp)
        assert found == expected, f"queue pair {qp}: {found}, not {expected}"


def some(h: Harness) -> list[int]:
    """A few queue pairs to look at, the first and the last among them."""
    return sorted({0, h.n_qp - 1, *(h.rng.randrange(h.n_qp) for _ in range(4))})


async def traffic(h: Harness, operations: int, busy: list[int]) -> None:
    """Operations as fast as the requester makes them: each cycle one, a queue pair every second at most."""
    last = None
    await h.tick()
    for _ in range(operations):
        free = [qp for qp in busy if qp != last]
        if not free or h.rng.random() < 0.1:
            last = None
            await h.tick(h.rng.choice([1, 1, 2, 30, 90]))
            continue
        last = h.rng.choice(free)
        await h.random_operation(last)


@cocotb.test()
async def meters_count_what_the_packets_of_the_series_did(dut):
    h = await Harness(dut, seed()).start()
    busy = some(h)
    for _ in range(8):
        await traffic(h, 400, busy)
        await h.tick(4)
        for qp in busy:
            await h.check(qp)
    for qp in busy:
        await h.tick()
        await h.drain(qp)
        await h.tick(4)
        await h.check(qp)
        assert h.qps[qp].series.meters()["outstanding"] == 0
    for qp in [qp for qp in range(h.n_qp) if qp not in busy][:2]:
        await h.check(qp)


@cocotb.test()
async def a_series_begins_with_the_first_packet_after_its_start(dut):
    """By a descriptor, by software, and by a clear of everything, with packets of before outstanding or not."""
    h = await Harness(dut, seed()).start()
    busy = some(h)
    for turn in range(12):
        await traffic(h, 150, busy)
        await h.tick(2)
        victims = busy if turn % 3 == 2 else [h.rng.choice(busy)]
        if turn % 3 == 0:
            dut.arm_valid.value, dut.arm_qp.value = 1, victims[0]
            await h.tick()
            dut.arm_valid.value = 0
        elif turn % 3 == 1:
            await h.access(victims[0], h.rng.choice(["status", "bytes_hi"]), write=True)
        else:
            dut.clear.value = 1
            await h.tick()
            dut.clear.value = 0
        for qp in victims:
            h.qps[qp].armed = True
        await h.tick()
        for qp in busy:
            await h.check(qp)
        await traffic(h, 100, busy)
        await h.tick(4)
        for qp in busy:
            await h.check(qp)


@cocotb.test()
async def no_word_of_the_series_before_is_read_while_the_next_begins(dut):
    h = await Harness(dut, seed()).start()
    await h.send(0)
    await h.tick()
    await h.drain(0)
    await h.tick(4)
    for delay in range(8):
        assert await h.access(0, "bytes_lo") == 1024
        dut.arm_valid.value, dut.arm_qp.value = 1, 0
        await h.tick()
        dut.arm_valid.value, h.qps[0].armed = 0, True
        await h.tick(3)
        await h.send(0)
        await h.tick(delay)
        assert await h.access(0, "bytes_lo") == 0, f"{delay} cycles after its first packet"
        await h.tick()
        await h.drain(0)
        await h.tick(4)


@cocotb.test()
async def a_keep_alive_does_not_stretch_the_transfer(dut):
    h = await Harness(dut, seed()).start()
    await h.send(0, 0)
    await h.tick(5)
    await h.acknowledge(0, 1)
    await h.tick(4)
    await h.check(0)  # an empty packet begins nothing
    for size in (4096, 100):
        await h.send(0, size)
        await h.tick(3)
    await h.acknowledge(0, 3)
    await h.tick(200)
    before = await h.read(0)
    await h.send(0, 0)
    await h.tick(50)
    await h.acknowledge(0, 4)
    await h.tick(4)
    await h.check(0)
    after = await h.read(0)
    for name in ("transfer_time_tot", "latency_last_packet", "latency_first_packet", "bytes"):
        assert after[name] == before[name]
    assert after["packets"] == before["packets"] + 1


@cocotb.test()
async def times_beyond_32_bits_are_held_or_saturate(dut):
    """The cycle counter is moved, not waited for, as far as the queue pair may go unvisited."""
    h = await Harness(dut, seed()).start()
    now = dut.u_dut.now_q
    now.value = 2**40 - 100
    await h.tick(2)
    await h.send(0, 64)
    for _ in range(2**13 + 8):
        await h.tick()
        now.value = int(now.value) + 2**20 - 16
        await h.operation(0)
    await h.tick(2)
    await h.acknowledge(0, 1)
    await h.tick(4)
    found = await h.read(0)
    assert found["latency_first_packet"] == found["latency_last_packet"] == 0xFFFFFFFF
    assert 2**33 < found["transfer_time_tot"] == found["latency_sum"] < 2**33 + 2**23


@cocotb.test()
async def software_reads_while_every_cycle_has_an_operation(dut):
    h = await Harness(dut, seed()).start()
    if h.n_qp == 1:
        return
    busy = [0, 1, *([2, 3] if h.n_qp > 3 else [])]
    stop = False

    async def saturate() -> None:
        n = 0
        while not stop:
            await h.send(busy[n % len(busy)], 4096) if n < 400 else await h.operation(busy[n % len(busy)])
            n += 1

    working = cocotb.start_soon(saturate())
    for _ in range(200):
        qp = h.rng.choice(busy)
        assert await h.access(qp, "packets_lo", patience=2 * len(busy) + 8) == 0
    stop = True
    await working
    await h.tick(4)
    for qp in busy:
        await h.check(qp)


@cocotb.test()
async def rows_that_do_not_exist_read_nothing_and_answer(dut):
    h = await Harness(dut, seed()).start()
    await h.send(0, 64)
    await h.tick()
    await h.acknowledge(0, 1)
    await h.tick(5)
    if h.n_qp < 256:
        await h.access(h.n_qp, "status", write=True)
        assert not any((await h.read(h.n_qp)).values())
        dut.arm_valid.value, dut.arm_qp.value = 1, h.n_qp
        await h.tick()
        dut.arm_valid.value = 0
    await h.check(0)
