# SPDX-License-Identifier: Apache-2.0
"""Bursts of a peer reach tables and memory, each its own; what is in no table is refused and changes nothing."""

import itertools
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Combine, Lock, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster
from lib import structs
from lib.axi_memory import AxiMemory
from lib.axil_slave import RegisterSlave
from lib.runner import Bench, seed

BENCH = Bench(
    top="peer_tables_bench",
    configs=[{"DATA_W": 64}, {"DATA_W": 512}],
    sources=[Path(__file__).parent / "peer_tables_bench.sv"],
)
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
TABLES = 1 << 63
REPLAY, HOOKS = TABLES + 0x8000, TABLES + 0x38000  # first addresses (regs/penstock.rdl)
SIZES = {0: 1 << 15, REPLAY: 16384, HOOKS: 2048}  # of the memory and of each table
OKAY, SLVERR = 0, 2


class Registers(RegisterSlave):
    """The registers of both tables; reads of the gateware become accesses of software."""

    def __init__(self, dut):
        super().__init__(dut, "m_axil", lambda where: True)
        self.dut, self.lock = dut, Lock()

    async def read(self, address: int, length: int, **kwargs) -> bytes:
        assert length == 4
        return (await self.access(TABLES + address)).to_bytes(4, "little")

    async def access(self, address: int, value: int | None = None) -> int:
        name, base = ("hooks", HOOKS) if address >= HOOKS else ("replay", REPLAY)
        request = {"is_wr": value is not None, "addr": address - base, "wr_data": value or 0, "wr_biten": 0xFFFFFFFF}
        port, answers = getattr(self.dut, f"{name}_req"), getattr(self.dut, f"{name}_rsp")
        async with self.lock:
            port.value = structs.pack("reg_req_t", valid=1, **request)
            await RisingEdge(self.dut.clk)
            port.value = structs.pack("reg_req_t", **request)
            for _ in range(600):  # a burst of 256 words may pass
                await RisingEdge(self.dut.clk)
                answer = structs.unpack("reg_rsp_t", int(answers.value))
                if answer["rd_ack"] or answer["wr_ack"]:
                    return answer["rd_data"]
        raise AssertionError(f"no answer at {address:#x}")


class Bed:
    def __init__(self, dut, rng):
        self.dut, self.rng, self.fills = dut, rng, 0

    async def start(self) -> "Bed":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.rst.value = 1
        dut.replay_req.value = dut.hooks_req.value = 0
        self.registers = Registers(dut)
        self.memory = AxiMemory(dut, self.rng, SIZES[0], lambda rng: rng.randrange(40))
        self.master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        for part in (self.master.write_if, self.master.read_if):
            part.log.setLevel("ERROR")
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        cocotb.start_soon(self.watch())
        self.images = {0: bytearray(self.memory.mem)}
        for base in (REPLAY, HOOKS):
            self.images[base] = bytearray(SIZES[base])
            assert await self.write(base, bytes(SIZES[base])) == OKAY
        return self

    async def watch(self) -> None:
        """No fill is outside of its table."""
        while True:
            await RisingEdge(self.dut.clk)
            for fill, base in ((self.dut.replay_fill, REPLAY), (self.dut.hooks_fill, HOOKS)):
                found = structs.unpack("table_fill_t", int(fill.value))
                if found["valid"]:
                    self.fills += 1
                    assert found["addr"] % LANES == 0 and found["addr"] < SIZES[base]
                    assert 0 < found["words"] < 1 << LANES // 4

    def stall(self, probability: float) -> None:
        self.memory.stall(self.rng, probability)
        for channel in (self.master.write_if.aw_channel, self.master.write_if.w_channel, self.master.write_if.b_channel,
                        self.master.read_if.ar_channel, self.master.read_if.r_channel):  # fmt: skip
            channel.set_pause_generator(self.rng.random() < probability for _ in itertools.count())

    async def write(self, address: int, data: bytes) -> int:
        return int((await self.master.write(address, data, awid=0)).resp)

    async def read(self, address: int, length: int) -> tuple[int, bytes]:
        answer = await self.master.read(address, length, arid=0)
        return int(answer.resp), bytes(answer.data)

    async def compare(self) -> None:
        """Memory and tables have the bytes of the images, those of the tables by software's accesses, too."""
        await ClockCycles(self.dut.clk, 4)
        assert self.memory.mem == self.images[0]
        for base in (REPLAY, HOOKS):
            image = self.images[base]
            assert await self.read(base, len(image)) == (OKAY, bytes(image))
            for at in self.rng.sample(range(0, len(image), 4), 50):
                assert await self.registers.access(base + at) == int.from_bytes(image[at : at + 4], "little")


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def bursts_to_memory_and_tables_by_turns_reach_their_own_and_are_answered_in_order(dut):
    """All have one ID, so an answer that is out of order would be taken for another one's."""
    rng = seed()
    bed = await Bed(dut, rng).start()
    for turn in range(12):
        bed.stall(rng.choice([0, 0.3]) if turn else 0.3)
        writes = []
        for place in range(8):  # each in an eighth of its own
            base = rng.choice(list(SIZES))
            part, step = SIZES[base] // 8, 4 if base else 1
            at = place * part + rng.randrange(0, part // 2, step)
            data = rng.randbytes(rng.randrange(step, part // 2, step))
            bed.images[base][at : at + len(data)] = data
            writes.append(cocotb.start_soon(bed.write(base + at, data)))
        await Combine(*writes)
        assert {write.result() for write in writes} == {OKAY}
        reads = []
        for _ in range(6):
            base = rng.choice(list(SIZES))
            at, length = rng.randrange(SIZES[base] - 300), rng.randrange(1, 300)
            expected = bytes(bed.images[base][at : at + length])
            reads.append((expected, cocotb.start_soon(bed.read(base + at, length))))
        for expected, read in reads:
            assert await read == (OKAY, expected)
    bed.stall(0)
    await bed.compare()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_table_is_filled_a_word_in_each_cycle(dut):
    bed = await Bed(dut, seed()).start()
    image = bed.images[REPLAY]
    image[:] = bed.rng.randbytes(len(image))
    beats, bursts = len(image) // LANES, len(image) // min(4096, 256 * LANES)
    bed.fills, cycles = 0, 0
    write = cocotb.start_soon(bed.write(REPLAY, bytes(image)))
    while bed.fills < beats:
        await RisingEdge(dut.clk)
        cycles += bed.fills > 0
    dut._log.info(f"{beats} words in {cycles} cycles")
    assert cycles <= beats + 4 * bursts  # an address and a response each
    assert await write == OKAY
    await bed.compare()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def what_is_in_no_table_is_refused_and_changes_nothing(dut):
    bed = await Bed(dut, seed()).start()
    words = bed.rng.randbytes(LANES)
    outside = [TABLES, REPLAY - LANES, REPLAY + SIZES[REPLAY], HOOKS - LANES, HOOKS + SIZES[HOOKS]]
    outside += [REPLAY + (1 << bit) for bit in (18, 31, 32, 62)]
    for address in outside:
        bed.fills = 0
        assert await bed.write(address, words) == SLVERR, f"{address:#x}"
        assert (await bed.read(address, LANES))[0] == SLVERR, f"{address:#x}"
        assert bed.fills == 0
    # Words of 32 bits are written as a whole or not at all.
    for at, length in ((0, 1), (1, 3), (2, 2), (3, 2), (LANES - 3, 3), (1, LANES - 1)):
        for base in (REPLAY, HOOKS):
            assert await bed.write(base + at, words[:length]) == SLVERR
    # Of a longer transfer the rest is written.
    for base in (REPLAY, HOOKS):
        assert await bed.write(base, bytes(range(LANES)) + b"!") == SLVERR
        bed.images[base][:LANES] = bytes(range(LANES))
        assert await bed.write(base + SIZES[base] - LANES, 2 * words) == SLVERR
        bed.images[base][-LANES:] = words
        status, data = await bed.read(base + SIZES[base] - LANES, 2 * LANES)
        assert status == SLVERR and data[:LANES] == words
    await bed.compare()
    assert await bed.write(LANES, words) == OKAY
    bed.images[0][LANES : 2 * LANES] = words
    await bed.compare()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def software_writes_words_while_others_are_filled(dut):
    bed = await Bed(dut, seed()).start()
    fills = []
    for base in (REPLAY, HOOKS):
        half = SIZES[base] // 2
        bed.images[base][:half] = bed.rng.randbytes(half)
        fills.append((base, bytes(bed.images[base][:half])))
    writing = [cocotb.start_soon(bed.write(base, data)) for base, data in fills * 8]
    count = 0
    while not all(write.done() for write in writing):
        for base, at in ((REPLAY, 12_000), (HOOKS, 1500)):
            at += 4 * bed.rng.randrange(100)
            value = bed.rng.getrandbits(32)
            bed.images[base][at : at + 4] = value.to_bytes(4, "little")
            await bed.registers.access(base + at, value)
            assert await bed.registers.access(base + at) == value
            count += 1
    assert count > 4
    await bed.compare()
