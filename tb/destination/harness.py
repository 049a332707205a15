# SPDX-License-Identifier: Apache-2.0
"""Shared by the benches of `destination`: its structs and rules in Python, and a harness."""

import itertools
import random
from dataclasses import dataclass, field, replace
from functools import cache

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, with_timeout
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.rtl import REPO

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
    rings = REPO / "regs/destination.rdl"
    wrapper.write_text(f'`include "{rings.name}"\naddrmap t {{ external rings rings; external servers servers; }};\n')
    compiler.compile_file(str(wrapper), incl_search_paths=[str(rings.parent)])
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
    unready: set[int] = field(default_factory=set)  # queue pairs that are not open
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
            elif d.qp not in self.unready:
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
        self.unready = self.model.unready
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
        """Server index -> queue pair of the live ones; the others get a queue pair that must not be used."""
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


def events_of(h: Harness, events: list[int]) -> list[Desc]:
    return [h.desc(by_event=1, raddr=event, in_ring=0) for event in events]


async def held(h: Harness, bit: str = "held") -> None:
    """Until an event waits."""
    while not (await h.status())[bit]:
        pass
