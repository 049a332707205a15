# SPDX-License-Identifier: Apache-2.0
"""Events meet in the server that the table names, tables change at one event, slots of a ring are used in turn."""

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
    series: int = 0
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

    def put_into_force(self, table: list[int], switch_event: int, prepared: bool = False) -> None:
        if not self.pending or prepared:
            self.older = self.newer
        self.newer, self.switch_event, self.pending = table, switch_event, switch_event != 0

    def table(self, event: int) -> list[int]:
        return self.newer if event >= self.switch_event else self.older

    def forward(self, d: Desc) -> Desc:
        if d.by_event:
            table = self.table(d.raddr)
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
        self.owner = self.wait_for_server = 0
        self.unready: set[int] = set()
        self.configure()
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

    def configure(self, **command: int) -> None:
        """Settings for the next cycle, and what is commanded in it."""
        fields = {"owner": self.owner, "key": self.owner, "wait_for_server": self.wait_for_server} | command
        self.dut.cfg.value = structs.pack("destination_cfg_t", **fields)
        self.dut.ready.value = sum(1 << qp for qp in range(self.n_qp) if qp not in self.unready)

    async def command(self, name: str, switch_event: int = 0, wait: bool = True, **fields: int) -> bool:
        """Whether the command was taken."""
        self.configure(**{f"command__{name}": 1, "switch_event": switch_event}, **fields)
        await RisingEdge(self.dut.clk)
        self.configure()
        await RisingEdge(self.dut.clk)
        while wait and (await self.status())["busy"]:
            pass
        return not (await self.status())["refused"]

    async def commit(self, table: list[int], switch_event: int, wait: bool = True) -> None:
        assert await self.command("commit", switch_event, wait)
        self.model.put_into_force(table, switch_event)

    async def status(self) -> dict[str, int]:
        await RisingEdge(self.dut.clk)
        return structs.unpack("destination_status_t", int(self.dut.status.value))

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
            assert not round_ % 3 or (await h.status())["bank"] != bank
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


def events_of(h: Harness, events: list[int]) -> list[Desc]:
    return [h.desc(by_event=1, raddr=event, in_ring=0) for event in events]


async def held(h: Harness, bit: str = "held") -> None:
    """Until an event waits."""
    while not (await h.status())[bit]:
        pass


@cocotb.test()
async def a_prepared_table_holds_its_events_until_it_is_confirmed_or_cancelled(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    event = rng.getrandbits(62)
    await h.commit(await h.set_table(random_servers(rng, 5)), 0)
    for round_ in range(6):
        for desc in events_of(h, [event, event + 1]):
            h.send(desc)
        table = await h.set_table(random_servers(rng))
        await h.finish()
        first = event + rng.randrange(4, 9)
        assert await h.command("prepare", first)
        await h.set_table(random_servers(rng))  # is edited on, and changes nothing that is prepared
        status = await h.status()
        assert status["prepared"] and status["announced"] == first and status["last_event"] == event + 1
        before, late = [*range(event + 2, first)], first - 1
        for desc in events_of(h, before):
            h.send(desc)
        behind = [*events_of(h, [first, late, first + 1]), h.desc()]
        for desc in behind:
            h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
        await held(h)
        await ClockCycles(dut.clk, rng.randrange(200))
        assert len(h.got) == len(h.expected), "what is below goes, what is above and behind it does not"
        confirms = round_ % 2 == 0
        # Software gets its answers meanwhile.
        await h.set_ring(2, 0x1000, 4, 5000)
        assert await h.access("rings", 2, "slot_size") == 5000
        assert await h.command("confirm" if confirms else "cancel")
        if confirms:
            h.model.put_into_force(table, first)
        h.expected += [h.model.forward(desc) for desc in behind]
        await h.finish()
        status = await h.status()
        assert not status["prepared"] and not status["held"] and status["announced"] == h.model.switch_event
        event = first + 10


@cocotb.test()
async def a_change_that_comes_too_late_or_out_of_turn_is_refused_and_changes_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    assert not (await h.status())["begun"]
    await h.commit(await h.set_table(random_servers(rng, 3)), 0)
    for command in ("confirm", "cancel"):
        assert not await h.command(command), "nothing is prepared"
    for desc in events_of(h, [100, 90]):
        h.send(desc)
    await h.finish()
    status = await h.status()
    assert status["begun"] and status["last_event"] == 100
    other = await h.set_table(random_servers(rng, 9))
    for command in ("commit", "prepare"):
        for first in (1, 99, 100):
            assert not await h.command(command, first), f"{command} at {first}"
    await h.commit(other, 101)
    assert (await h.status())["pending"]
    assert not await h.command("prepare", 102), "the last change waits for its first event"
    for desc in events_of(h, [101, 102]):
        h.send(desc)
    await h.finish()
    assert await h.command("prepare", 200)
    for command in ("prepare", "commit"):
        assert not await h.command(command, 300), "one is prepared"
    assert (await h.status())["announced"] == 200
    assert await h.command("cancel")
    assert not await h.command("prepare", 200, command__commit=1), "one command at a time"
    # An event that will go, seen while it is on its way.
    for first in range(103, 140):
        for desc in events_of(h, [first]):
            h.send(desc)
        await ClockCycles(dut.clk, rng.randrange(60))
        if await h.command("prepare", first):
            assert len(h.got) < len(h.expected), "it has gone and the change was taken"
            assert await h.command("cancel")
        await h.finish()
    # A run that begins anew: what has gone is forgotten.
    await h.commit(other, 0)
    assert not (await h.status())["begun"] and not (await h.status())["pending"]
    for desc in events_of(h, [0, 1]):
        h.send(desc)
    await h.finish()


@cocotb.test()
async def who_does_not_own_the_table_commands_nothing(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.owner = 7
    await h.commit(await h.set_table(random_servers(rng, 3)), 0)
    for key in (0, 6, 0xFFFF):
        assert not await h.command("prepare", 5, key=key)
        assert not await h.command("commit", 0, key=key)
    assert await h.command("prepare", 5)
    for command in ("confirm", "cancel"):
        assert not await h.command(command, key=8)
        assert (await h.status())["prepared"]
    h.owner = 8
    assert await h.command("cancel")


@cocotb.test()
async def an_event_waits_for_its_server_until_that_is_back_or_another_table_is_announced(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    alive, dead = 1, 2
    both, one = {0: alive, 1: dead}, {0: alive}
    await h.commit(await h.set_table(both), 0)
    h.unready.add(dead)
    h.configure()
    for desc in events_of(h, range(4)):  # without the option they go, and are flushed further on
        h.send(desc)
    await h.finish()
    h.wait_for_server = 1
    h.configure()
    for back in (True, False):
        start = 10 if back else 40
        behind = events_of(h, range(start, start + 4))
        for desc in behind:
            h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
        await held(h, "waits")
        await ClockCycles(dut.clk, rng.randrange(200))
        assert len(h.got) == len(h.expected) + 1
        assert await h.access("servers", 1, "entry") & 0xFF == dead
        if back:
            h.unready.clear()
            h.configure()
        else:
            table = await h.set_table(one)
            assert await h.command("prepare", start + 3), "the one that waits has not gone"
            # Those of the dead server below the change are flushed.
            await held(h)
            assert len(h.got) == len(h.expected) + 3
            assert await h.command("confirm")
        h.expected += [h.model.forward(desc) for desc in behind[:3]]
        if not back:
            h.model.put_into_force(table, start + 3)
        h.expected += [h.model.forward(behind[3])]
        await h.finish()
        h.unready.add(dead)
        h.configure()
    # The one that waits may itself be the first of the next table, and goes by that.
    await h.commit(await h.set_table({0: dead}), 100)
    behind = events_of(h, [100, 101])
    for desc in behind:
        h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
    await held(h, "waits")
    table = await h.set_table(one)
    assert (await h.status())["pending"] and await h.command("prepare", 100) and await h.command("confirm")
    h.model.put_into_force(table, 100, prepared=True)
    h.expected += [h.model.forward(desc) for desc in behind]
    await h.finish()
    # No server at all.
    await h.commit(await h.set_table({}), 200)
    behind = events_of(h, [200, 201])
    for desc in behind:
        h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
    await held(h, "waits")
    assert h.no_server == 0
    h.wait_for_server = 0
    h.configure()
    h.expected += [h.model.forward(desc) for desc in behind]
    await h.finish()
    assert h.no_server == 2


@cocotb.test()
async def whatever_a_coordinator_does_each_event_goes_by_the_table_of_its_number(dut):
    """Events that come a little out of order while tables are prepared, confirmed, cancelled and come too late."""
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(0.1)
    tables: list[tuple[int, list[int]]] = [(0, await h.set_table(random_servers(rng, 3)))]
    await h.commit(tables[0][1], 0)
    events = [n + rng.choice([0, 0, 0, -1, 1, 2]) for n in range(1, 3000)]
    descs = events_of(h, events)
    for desc in descs:
        h.source.send_nowait(AxiStreamFrame(desc.to_bytes()))
    outcomes = {"confirmed": 0, "cancelled": 0, "refused": 0}
    while len(h.got) < len(descs):
        table = await h.set_table(random_servers(rng, rng.randrange(1, 5)))
        last = (await h.status())["last_event"]
        if last < tables[-1][0] + 4:
            continue  # late ones of the table before the last may still come
        first = last + rng.randrange(-2, 12)
        if not await h.command("prepare", first):
            outcomes["refused"] += 1
            await ClockCycles(dut.clk, rng.randrange(40))
            continue
        await ClockCycles(dut.clk, rng.randrange(400))
        if rng.random() < 0.3:
            assert await h.command("cancel")
            outcomes["cancelled"] += 1
        else:
            assert await h.command("confirm")
            tables.append((first, table))
            outcomes["confirmed"] += 1
    dut._log.info("changes: %s", outcomes)
    assert min(outcomes.values()) > 3
    for desc, got in zip(descs, h.got, strict=True):
        table = next(table for first, table in reversed(tables) if first <= desc.raddr)
        assert got == replace(desc, by_event=0, qp=table[desc.raddr % len(table)])


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
