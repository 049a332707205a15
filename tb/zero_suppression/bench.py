# SPDX-License-Identifier: Apache-2.0
"""Zero suppression converts every fragment as defined, to the bit, at line rate, and can be switched off."""

import itertools
import os
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.runner import Bench, seed
from zero_suppression.make_vectors import FILE, Table, drawn_payload, drawn_table, suppressed

BENCH = Bench(top="zero_suppression", configs=[{"DATA_W": 64}, {"DATA_W": 512}])
LANES = int(os.environ.get("PARAM_DATA_W", "64")) // 16


class Harness:
    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.number = self.words = self.kept = self.fragments = 0

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.req.value = dut.fill.value = 0
        self.configure(1, 1)
        dut.rst.value = 1
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        cocotb.start_soon(self.count())
        return self

    async def count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.words += int(self.dut.stat_words.value)
            self.kept += int(self.dut.stat_kept.value)
            self.fragments += int(self.dut.stat_fragment.value)

    def stall(self, probability: float) -> None:
        for stream in (self.source, self.sink):
            stream.set_pause_generator(self.rng.random() < probability for _ in itertools.count())

    def configure(self, hold: int, rows: int, enable: int = 1) -> None:
        self.dut.cfg.value = structs.pack("hook_cfg_t", enable=enable, hold=hold, rows=rows)

    async def access(self, address: int, value: int | None = None, patience: int = 20) -> int:
        request = {"is_wr": value is not None, "addr": address, "wr_data": value or 0, "wr_biten": 0xFFFFFFFF}
        self.dut.req.value = structs.pack("reg_req_t", valid=1, **request)
        await RisingEdge(self.dut.clk)
        self.dut.req.value = structs.pack("reg_req_t", **request)
        for _ in range(patience):
            await RisingEdge(self.dut.clk)
            answer = structs.unpack("reg_rsp_t", int(self.dut.rsp.value))
            if answer["rd_ack"] or answer["wr_ack"]:
                assert answer["wr_ack"] == (value is not None)
                return answer["rd_data"]
        raise AssertionError(f"no answer at {address:#x} within {patience} cycles")

    async def load(self, table: Table) -> None:
        for index, (pedestal, threshold) in enumerate(table):
            await self.access(4 * index, pedestal | (threshold & 0xFFFF) << 16)

    async def fill(self, table: Table, pause: float = 0.0) -> None:
        """The table as a peer WRITEs it, a beat of DATA_W bits a cycle."""
        words, beat = [pedestal | (threshold & 0xFFFF) << 16 for pedestal, threshold in table], LANES // 2
        for at in range(0, len(words), beat):
            while self.rng.random() < pause:
                await RisingEdge(self.dut.clk)
            part = words[at : at + beat]
            self.dut.fill.value = structs.pack("table_fill_t", valid=1, addr=4 * at, words=(1 << len(part)) - 1)
            self.dut.fill_data.value = sum(word << 32 * i for i, word in enumerate(part))
            await RisingEdge(self.dut.clk)
            self.dut.fill.value = 0

    async def send(self, payload: bytes) -> int:
        """One fragment; returns the side information of its first beat."""
        self.number += 1
        user = structs.pack(
            "fragment_t", event_number=self.number, timestamp_ns=self.rng.getrandbits(64), trigger_type=3
        )
        keep = None if payload else [0]
        await self.source.send(AxiStreamFrame(payload or b"\0", tkeep=keep, tuser=user))
        return user

    async def expect(self, user: int, output: bytes) -> None:
        frame = await self.sink.recv()
        users = frame.tuser if isinstance(frame.tuser, list) else [frame.tuser]
        assert set(map(int, users)) == {user}
        assert bytes(frame.tdata) == output, f"fragment {self.number}: {len(frame.tdata)} bytes, not {len(output)}"


@cocotb.test()
async def the_gateware_makes_what_the_rust_model_makes(dut):
    h = await Harness(dut, seed()).start()
    count = 0
    for line in FILE.read_text().splitlines():
        words = line.split(" ")
        if words[0] != str(LANES):
            continue
        hold, rows = int(words[1]), int(words[2])
        table = list(struct.iter_unpack("<Hh", bytes.fromhex(words[3])))
        payload, output = bytes.fromhex(words[4].strip("-")), bytes.fromhex(words[5])
        await h.load(table)
        h.configure(hold, rows)
        user = await h.send(payload)
        await h.expect(user, output)
        count += 1
    assert count >= 14 and h.fragments == count


@cocotb.test()
async def fragments_of_every_length_back_to_back_under_stalls(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for turn, (hold, rows, often, stall) in enumerate(
        [(1, 8, 0.1, 0.0), (2, 3, 0.5, 0.3), (1, 64, 1.0, 0.4), (5, 1, 0.5, 0.2)]
    ):
        table = drawn_table(rng, LANES, rows, often)
        await h.load(table)
        h.configure(hold, rows)
        h.stall(stall)
        sent = []
        for _ in range(30):
            size = rng.choice([0, 1, 2 * LANES, 8 * LANES, 512, rng.randrange(3000), rng.randrange(64)])
            payload = drawn_payload(rng, size)
            sent.append((await h.send(payload), suppressed(payload, table, LANES, hold)))
        for user, output in sent:
            await h.expect(user, output)
        assert h.fragments == 30 * (turn + 1)
    assert 0 < h.kept < h.words


@cocotb.test()
async def a_beat_a_cycle_unless_nearly_everything_stays(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for often, longest in ((0.1, 0), (1.0, 1)):
        table = drawn_table(rng, LANES, 4, often)
        await h.load(table)
        h.configure(1, 4)
        beats = 512
        payload = drawn_payload(rng, beats * 2 * LANES)
        user = await h.send(payload)
        await RisingEdge(dut.s_axis_tvalid)
        waited = 0
        for _ in range(beats - 2):
            await RisingEdge(dut.clk)
            waited += int(dut.s_axis_tready.value == 0)
        blocks = beats * 2 * LANES // 512
        dut._log.info(f"{waited} cycles waited in {beats} beats, {blocks} blocks")
        assert waited <= longest * blocks
        await h.expect(user, suppressed(payload, table, LANES, 1))


@cocotb.test()
async def software_reads_the_table_while_fragments_pass(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    table = drawn_table(rng, LANES, 64, 0.1)
    await h.load(table)
    h.configure(1, 64)
    payloads = [drawn_payload(rng, 64 * LANES) for _ in range(30)]
    users = [await h.send(payload) for payload in payloads]
    for _ in range(60):
        index = rng.randrange(len(table))
        word = await h.access(4 * index)
        assert (word & 0xFFFF, word >> 16) == (table[index][0], table[index][1] & 0xFFFF)
    for user, payload in zip(users, payloads, strict=True):
        await h.expect(user, suppressed(payload, table, LANES, 1))
    beyond = 4 * len(table)
    if beyond < 65536:
        await h.access(beyond, 0xFFFFFFFF)
        assert await h.access(beyond) == 0
    assert await h.access(0) == table[0][0] | (table[0][1] & 0xFFFF) << 16


@cocotb.test()
async def peers_fill_the_table_before_fragments_and_again_while_they_pass(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    for turn in range(6):
        rows = rng.choice([1, 5, 64])
        table = drawn_table(rng, LANES, rows, 0.3)
        h.configure(2, rows)
        h.stall(0.2 if turn % 2 else 0.0)
        await h.fill(table, pause=0.3)
        payloads = [drawn_payload(rng, rng.randrange(2000)) for _ in range(10)]
        users = [await h.send(payload) for payload in payloads]
        for _ in range(5):  # the same values: fragments do not change
            await h.fill(table)
            index = rng.randrange(len(table))
            word = await h.access(4 * index)
            assert (word & 0xFFFF, word >> 16) == (table[index][0], table[index][1] & 0xFFFF)
        for user, payload in zip(users, payloads, strict=True):
            await h.expect(user, suppressed(payload, table, LANES, 2))


@cocotb.test()
async def left_off_it_passes_the_stream_unchanged(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.configure(1, 1, enable=0)
    h.stall(0.3)
    payloads = [rng.randbytes(rng.randrange(1, 400)) for _ in range(20)]
    users = [await h.send(payload) for payload in payloads]
    for user, payload in zip(users, payloads, strict=True):
        await h.expect(user, payload)
    await ClockCycles(dut.clk, 10)
    h.configure(1, 1)
    await h.load([(0, -32768)] * LANES)
    user = await h.send(payloads[0])
    await h.expect(user, suppressed(payloads[0], [(0, -32768)] * LANES, LANES, 1))
