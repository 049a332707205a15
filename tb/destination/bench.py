# SPDX-License-Identifier: Apache-2.0
"""Events meet in the server that the table names, slots of a ring are used in turn, and nothing waits for ever."""

import itertools
import random
from dataclasses import dataclass, field, replace
from functools import cache

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib import structs
from lib.rtl import REPO
from lib.runner import Bench, seed

BENCH = Bench(top="destination", configs=[{"N_QP": 4}, {"N_QP": 256}])

CLOCK_NS = 10
TOO_LONG = 0xFFFFFFFF


@dataclass(frozen=True)
class Desc:
    tag: int = 0
    imm: int = 0
    raddr: int = 0
    length: int = 1000
    reserved: int = 0
    by_event: int = 0
    in_ring: int = 0
    with_imm: int = 0
    verb: int = 0
    qp: int = 0

    def to_bytes(self) -> bytes:
        return structs.pack("desc_t", **vars(self)).to_bytes(22, "little")

    @staticmethod
    def from_bytes(raw: bytes) -> "Desc":
        return Desc(**structs.unpack("desc_t", int.from_bytes(raw, "little")))


@cache
def words() -> dict[str, int]:
    """Byte offsets in each block, from the RDL itself."""
    from systemrdl import RDLCompiler

    compiler = RDLCompiler()
    wrapper = REPO / "build" / "tb" / "destination.rdl"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text('`include "destination.rdl"\naddrmap t { external rings rings; external servers servers; };\n')
    compiler.compile_file(str(wrapper), incl_search_paths=[str(REPO / "regs")])
    found = {}
    for block in compiler.elaborate("t").top.children():
        row = next(iter(block.children()))
        found[f"{block.inst_name}.stride"] = row.array_stride
        for register in row.children():
            found[f"{block.inst_name}.{register.inst_name}"] = register.raw_address_offset
            for f in register.fields():
                found[f"{block.inst_name}.{register.inst_name}.{f.inst_name}"] = f.low
    return found


@dataclass
class Ring:
    base: int = 0
    slots: int = 0
    slot_size: int = 0
    next_slot: int = 0


@dataclass
class Model:
    """The rules, written from the register descriptions."""

    n_qp: int
    rings: dict[int, Ring] = field(default_factory=dict)
    older: list[int] = field(default_factory=list)  # queue pairs of the live servers
    newer: list[int] = field(default_factory=list)
    switch_event: int = 0
    pending: bool = False

    def commit(self, table: list[int], switch_event: int) -> None:
        if not self.pending:
            self.older = self.newer
        self.newer, self.switch_event, self.pending = table, switch_event, True

    def forward(self, d: Desc) -> Desc:
        if d.by_event:
            table = self.newer if d.raddr >= self.switch_event else self.older
            if d.raddr >= self.switch_event:
                self.pending = False
            if not table:
                return replace(d, in_ring=0)
            d = replace(d, by_event=0, qp=table[d.raddr % len(table)])
        if d.in_ring and d.qp < self.n_qp:
            ring = self.rings.setdefault(d.qp, Ring())
            slot = ring.next_slot
            d = replace(d, with_imm=1, imm=slot, raddr=(ring.base + slot * ring.slot_size) % (1 << 64))
            if ring.slots == 0 or d.length > ring.slot_size:
                d = replace(d, length=TOO_LONG)
            else:
                ring.next_slot = (slot + 1) % ring.slots
        return replace(d, in_ring=0)


class Harness:
    def __init__(self, dut, rng: random.Random):
        self.dut, self.rng = dut, rng
        self.n_qp = int(dut.N_QP.value)
        self.model = Model(self.n_qp)
        self.expected: list[Desc] = []
        self.got: list[Desc] = []
        self.cycles: list[int] = []
        self.no_server = self.too_small = 0

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        for name in ("cfg", "rings_req", "servers_req"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_desc"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_desc"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self._receive())
        cocotb.start_soon(self._count())
        return self

    async def _receive(self) -> None:
        while True:
            beat = await self.sink.recv()
            self.got.append(Desc.from_bytes(bytes(beat.tdata)))
            self.cycles.append(int(beat.sim_time_end) // (CLOCK_NS * 1000))

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.no_server += int(self.dut.stat_no_server.value == 1)
            self.too_small += int(self.dut.stat_slot_too_small.value == 1)

    def stall(self, probability: float) -> None:
        for stream in (self.source, self.sink):
            stream.set_pause_generator(self.rng.random() < probability for _ in itertools.count())

    async def access(self, block: str, row: int, name: str, word: int | None = None, biten: int = 0xFFFFFFFF) -> int:
        offset = row * words()[f"{block}.stride"] + words()[f"{block}.{name}"]
        request = {"is_wr": word is not None, "addr": offset, "wr_data": word or 0, "wr_biten": biten}
        req, rsp = getattr(self.dut, f"{block}_req"), getattr(self.dut, f"{block}_rsp")
        req.value = structs.pack("reg_req_t", valid=1, **request)
        await RisingEdge(self.dut.clk)
        req.value = structs.pack("reg_req_t", **request)
        for _ in range(300):
            await ReadOnly()
            answer = structs.unpack("reg_rsp_t", int(rsp.value))
            await RisingEdge(self.dut.clk)
            if answer["rd_ack"] or answer["wr_ack"]:
                assert answer["rd_ack"] == (word is None) != answer["wr_ack"], "the wrong acknowledgement"
                return answer["rd_data"]
        raise AssertionError(f"no answer to {block}[{row}].{name}")

    async def set_ring(self, qp: int, base: int, slots: int, slot_size: int, next_slot: int = 0) -> None:
        values = {"base_lo": base & 0xFFFFFFFF, "base_hi": base >> 32, "slots": slots, "slot_size": slot_size}
        for name, word in self.rng.sample(sorted(values.items()), 4):
            await self.access("rings", qp, name, word)
        await self.access("rings", qp, "next_slot", next_slot)
        if qp < self.n_qp:
            self.model.rings[qp] = Ring(base, slots, slot_size, next_slot)

    async def set_table(self, servers: dict[int, int]) -> list[int]:
        """Server index -> queue pair of the live ones; the others get a queue pair nobody may see."""
        for index in range(64):
            word = servers.get(index, self.rng.getrandbits(8)) | int(index in servers) << words()["servers.entry.live"]
            await self.access("servers", index, "entry", word)
        return [servers[i] for i in sorted(servers)]

    async def commit(self, table: list[int], switch_event: int, wait: bool = True) -> None:
        self.dut.cfg.value = 1 << 64 | switch_event
        await RisingEdge(self.dut.clk)
        self.dut.cfg.value = 0
        await RisingEdge(self.dut.clk)
        self.model.commit(table, switch_event)
        while wait and (await self.status())["busy"]:
            pass

    async def status(self) -> dict[str, int]:
        await RisingEdge(self.dut.clk)
        word = int(self.dut.status.value)
        return {"live": word & 0x7F, "bank": word >> 7 & 1, "pending": word >> 8 & 1, "busy": word >> 9}

    def send(self, desc: Desc) -> None:
        self.expected.append(self.model.forward(desc))
        self.source.send_nowait(AxiStreamFrame(desc.to_bytes()))

    async def finish(self, cycles: int = 200_000) -> None:
        async def wait():
            while len(self.got) < len(self.expected):
                await RisingEdge(self.dut.clk)

        await with_timeout(wait(), cycles * CLOCK_NS, "ns")
        for n, (got, expected) in enumerate(zip(self.got, self.expected, strict=True)):
            assert got == expected, f"descriptor {n}"

    def desc(self, **fields: int) -> Desc:
        rng = self.rng
        drawn = {"tag": rng.getrandbits(32), "imm": rng.getrandbits(32), "raddr": rng.getrandbits(64)}
        drawn |= {"verb": rng.getrandbits(1), "with_imm": rng.getrandbits(1), "qp": rng.randrange(256)}
        return Desc(**(drawn | {"length": rng.randrange(1, 10_000)} | fields))


def random_servers(rng: random.Random, count: int | None = None) -> dict[int, int]:
    count = rng.choice([1, 2, 3, 63, 64, rng.randrange(1, 65)]) if count is None else count
    return {index: rng.getrandbits(8) for index in rng.sample(range(64), count)}


@cocotb.test()
async def a_descriptor_that_names_its_place_passes_untouched_one_a_cycle(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await ClockCycles(dut.clk, 300)
    for _ in range(100):
        h.send(h.desc())
    await h.finish()
    assert h.cycles[-1] - h.cycles[0] == 99


@cocotb.test()
async def an_event_goes_to_its_number_modulo_the_live_servers_in_table_order(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.2)
    for _ in range(6):
        table = await h.set_table(random_servers(rng))
        await h.commit(table, 0)
        assert (await h.status())["live"] == len(table)
        event = rng.getrandbits(64)
        for _ in range(40):
            event = rng.choice([event, event + 1, event + 1, event + 2, event - 1, rng.getrandbits(64), (1 << 64) - 1])
            event %= 1 << 64
            h.send(h.desc(by_event=1, raddr=event))
        await h.finish()


@cocotb.test()
async def a_table_acts_from_its_announced_event_on_and_the_older_one_before(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    event = rng.getrandbits(63)
    await h.commit(await h.set_table(random_servers(rng, 5)), 0)
    h.send(h.desc(by_event=1, raddr=event))
    await h.finish()
    for round_ in range(8):
        bank = (await h.status())["bank"]
        assert not (await h.status())["pending"]
        switch = event + 20
        if round_ % 2:  # a first thought, replaced before any event of it came
            await h.commit(await h.set_table(random_servers(rng)), event + rng.randrange(5, 30))
        # events flow while the table is edited and committed
        for n in range(10):
            h.send(h.desc(by_event=1, raddr=event + n))
        table = await h.set_table(random_servers(rng))
        await h.finish()
        if h.model.pending or not round_ % 2:
            await h.commit(table, switch, wait=bool(round_ % 3))
            assert (await h.status())["bank"] != bank or not round_ % 3
        order = [event + n for n in range(10, 30)]
        for n in order:
            h.send(h.desc(by_event=1, raddr=n))
            if rng.random() < 0.3:  # one that comes late
                h.send(h.desc(by_event=1, raddr=n - rng.randrange(10)))
        await h.finish()
        event += 40
        h.send(h.desc(by_event=1, raddr=event))
        await h.finish()


@cocotb.test()
async def events_flow_while_a_table_is_committed(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.commit(await h.set_table(random_servers(rng, 7)), 0)
    for n in range(2):
        h.send(h.desc(by_event=1, raddr=n))
    table = await h.set_table(random_servers(rng, 9))
    await h.finish()
    before = len(h.got)
    await h.commit(table, 1000, wait=False)
    for n in range(2, 9):
        h.send(h.desc(by_event=1, raddr=n))
    await ClockCycles(dut.clk, 60)
    assert (await h.status())["busy"] and len(h.got) == before + 7
    while (await h.status())["busy"]:
        pass
    h.send(h.desc(by_event=1, raddr=999))
    h.send(h.desc(by_event=1, raddr=1000))
    await h.finish()


@cocotb.test()
async def slots_are_used_in_turn_and_wrap(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.2)
    qps = rng.sample(range(h.n_qp), 3)
    for qp, slots in zip(qps, (1, 5, 16), strict=True):
        await h.set_ring(qp, rng.getrandbits(64), slots, rng.randrange(9000, 1 << 32))
    for _ in range(60):
        h.send(h.desc(in_ring=1, qp=rng.choice(qps), length=rng.randrange(1, 9000)))
    await h.finish()
    for qp in qps:
        assert await h.access("rings", qp, "next_slot") == h.model.rings[qp].next_slot
    # the largest ring, from near its end
    await h.set_ring(qps[0], rng.getrandbits(64), 65536, 0xFFFFFFFF, next_slot=65534)
    for _ in range(4):
        h.send(h.desc(in_ring=1, qp=qps[0]))
    await h.finish()
    await h.access("rings", qps[1], "next_slot", 0)
    h.model.rings[qps[1]].next_slot = 0
    h.send(h.desc(in_ring=1, qp=qps[1]))
    await h.finish()
    # a next slot beyond the ring becomes 0
    await h.access("rings", qps[2], "next_slot", 16)
    assert await h.access("rings", qps[2], "next_slot") == 0


@cocotb.test()
async def a_message_longer_than_its_slot_is_marked_and_takes_no_slot(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.set_ring(0, 0x1000, 4, 5000)
    for length in (5000, 5001, 1, 0, 1 << 31, 5000, 5000):
        h.send(h.desc(in_ring=1, qp=0, length=length))
    h.send(h.desc(in_ring=1, qp=1))  # has no ring
    h.send(h.desc(in_ring=1, qp=h.n_qp if h.n_qp < 256 else 1))  # does not exist
    await h.finish()
    await ClockCycles(dut.clk, 3)
    assert h.too_small == sum(d.length == TOO_LONG for d in h.got) >= 3


@cocotb.test()
async def an_event_without_a_live_server_is_marked_and_the_next_ones_pass(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for n in range(3):
        h.send(h.desc(by_event=1, in_ring=n % 2, raddr=n))
    h.send(h.desc())
    await h.finish()
    await h.commit(await h.set_table({}), 100)
    await h.commit(await h.set_table({9: 3}), 50)
    for n in (49, 50, 51):
        h.send(h.desc(by_event=1, raddr=n))
    await h.commit(await h.set_table({}), 60)
    for n in (59, 60, 61):
        h.send(h.desc(by_event=1, raddr=n))
    await h.finish()
    await ClockCycles(dut.clk, 3)
    assert h.no_server == sum(d.by_event for d in h.got) == 3 + 1 + 2


@cocotb.test()
async def everything_at_once_keeps_its_order_while_software_reads_and_writes(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.3)
    for qp in range(4):
        await h.set_ring(qp, rng.getrandbits(64), rng.randrange(1, 9), rng.randrange(1000, 9000))
    await h.commit(await h.set_table({i: rng.randrange(4) for i in range(11)}), 0)
    for n in range(400):
        kind = rng.choice([{}, {"by_event": 1}, {"in_ring": 1, "qp": rng.randrange(4)}, {"by_event": 1, "in_ring": 1}])
        if "by_event" in kind:
            kind["raddr"] = rng.choice([n, rng.getrandbits(64)])
        h.send(h.desc(**kind))
    while len(h.got) < 400:
        qp, biten = rng.randrange(4), rng.choice([0, 0xFFFF0000, 0xFF00FF])
        ring = h.model.rings[qp]
        for name, value in (("base_lo", ring.base & 0xFFFFFFFF), ("slots", ring.slots), ("slot_size", ring.slot_size)):
            assert await h.access("rings", qp, name) == value
            # bits that are not enabled stay, those that are get the value that they have
            await h.access("rings", qp, name, value & biten | rng.getrandbits(32) & ~biten, biten)
        await h.access("servers", rng.randrange(64), "entry", rng.getrandbits(9))  # acts from the next commit on
    await h.finish()
    assert await h.access("rings", 255, "slots") == 0 or h.n_qp == 256
    await h.access("servers", 63, "entry", 0x1A5)
    assert await h.access("servers", 63, "entry") == 0x1A5


@cocotb.test()
async def a_5_kb_message_at_100g_never_waits_for_its_destination(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for qp in range(4):
        await h.set_ring(qp, rng.getrandbits(64), 100, 5000)
    await h.commit(await h.set_table({i: i % 4 for i in range(64)}), 0)
    for what, budget, events in (
        ("random", 45, [rng.getrandbits(64) for _ in range(50)]),
        ("consecutive", 9, [n + 12345 for n in range(50)]),
    ):
        begin = len(h.cycles)
        for event in events:
            h.send(h.desc(by_event=1, in_ring=1, raddr=event, length=5000))
        await h.finish()
        mean = (h.cycles[-1] - h.cycles[begin + 2]) / (len(events) - 3)
        dut._log.info("%s events: %.1f cycles a descriptor", what, mean)
        assert mean <= budget, what
