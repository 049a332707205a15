# SPDX-License-Identifier: Apache-2.0
"""The source sends the data that its settings define, to the bit and at full rate, for any stalls and width."""

import itertools
import os
from dataclasses import replace

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSink
from lib.runner import Bench, seed
from lib.source_model import COUNTER, PRBS, REPLAY, Settings, messages

BENCH = Bench(top="message_source", configs=[{"DATA_W": 64}, {"DATA_W": 64, "PEERS": 1}, {"DATA_W": 512, "PEERS": 1}])
PEERS = "PARAM_PEERS" in os.environ


class Harness:
    def __init__(self, dut, rng):
        self.dut = dut
        self.rng = rng
        self.lanes = len(dut.m_axis_data_tkeep)

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("start", "stop", "clear", "replay_req", "replay_fill", "cpl_valid"):
            getattr(dut, name).value = 0
        dut.cfg.value = Settings().pack()
        dut.rst.value = 1
        self.desc = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_desc"), dut.clk, dut.rst)
        self.data = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_data"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        return self

    def stall(self, probability: float) -> None:
        for stream in (self.desc, self.data):
            stream.set_pause_generator(self.rng.random() < probability for _ in itertools.count())

    async def pulse(self, name: str) -> None:
        getattr(self.dut, name).value = 1
        await RisingEdge(self.dut.clk)
        getattr(self.dut, name).value = 0

    async def complete(self, tag: int) -> None:
        self.dut.cpl.value = structs.pack("cpl_t", tag=tag)
        await self.pulse("cpl_valid")

    async def run(self, settings: Settings) -> None:
        self.dut.cfg.value = settings.pack()
        await ClockCycles(self.dut.clk, 2)
        await self.pulse("start")

    def status(self) -> dict[str, int]:
        return structs.unpack("source_status_t", int(self.dut.status.value))

    async def idle(self) -> dict[str, int]:
        await ClockCycles(self.dut.clk, 3)
        while self.status()["running"]:
            await RisingEdge(self.dut.clk)
        return self.status()

    async def expect(self, expected) -> None:
        """The next message is this one."""
        descriptor = int.from_bytes(bytes((await self.desc.recv()).tdata), "little")
        assert descriptor == expected.descriptor(), f"{descriptor:#x}, not {expected}"
        data = bytes((await self.data.recv()).tdata)
        assert data == expected.data, f"payload of event {expected.imm}, {len(data)} bytes"

    async def access(self, address: int, value: int | None = None, bits: int = 0xFFFFFFFF) -> int:
        """One access of software to the replay memory."""
        request = {"is_wr": value is not None, "addr": address, "wr_data": value or 0, "wr_biten": bits}
        self.dut.replay_req.value = structs.pack("reg_req_t", valid=1, **request)
        await RisingEdge(self.dut.clk)
        self.dut.replay_req.value = structs.pack("reg_req_t", **request)
        for _ in range(20):
            await RisingEdge(self.dut.clk)
            answer = structs.unpack("reg_rsp_t", int(self.dut.replay_rsp.value))
            if answer["rd_ack"] or answer["wr_ack"]:
                assert answer["rd_ack"] == (value is None) != answer["wr_ack"]
                return answer["rd_data"]
        raise AssertionError("the replay memory did not answer within 20 cycles")

    async def fill(self, blocks: int) -> bytes:
        memory = self.rng.randbytes(64 * blocks)
        for address in range(0, len(memory), 4):
            await self.access(address, int.from_bytes(memory[address : address + 4], "little"))
        return memory


def drawn_settings(rng, generator: int) -> Settings:
    n_qp = rng.choice([1, 1, 3])
    first = rng.randrange(200)
    low = rng.choice([1, 1, 7, 64, 200])
    return Settings(
        generator=generator,
        prbs_invert=rng.randrange(2),
        verb=rng.randrange(2),
        with_imm=rng.randrange(2),
        in_ring=rng.randrange(2),
        running_sum=rng.randrange(2),
        by_event=rng.randrange(2),
        tag_prefix=rng.randrange(256),
        qp_first=first,
        qp_last=first + n_qp - 1,
        length_min=low,
        length_max=rng.choice([0, low + 1, low + 300]),
        length_seed=rng.getrandbits(32),
        count=rng.randrange(20, 40),
        raddr=rng.getrandbits(64),
        raddr_stride=rng.getrandbits(20),
        raddr_slots=rng.choice([0, 1, 5]),
        first_event=rng.getrandbits(64),
        prbs_seed=rng.getrandbits(31),
        replay_blocks=rng.choice([1, 2, 5]),
        warm_up=rng.choice([0, 0, 9]),
    )


async def runs(dut, generator: int, stall: float) -> None:
    rng = seed()
    h = await Harness(dut, rng).start()
    h.stall(stall)
    memory = await h.fill(5) if generator == REPLAY else b""
    for _ in range(5):
        settings = drawn_settings(rng, generator)
        sent = list(itertools.islice(messages(settings, memory), settings.count))
        await h.run(settings)
        for message in sent:
            await h.expect(message)
            if settings.warm_up:
                await h.complete(message.tag)
        status = await h.idle()
        assert status["messages"] == len(sent) and status["bytes"] == sum(m.length for m in sent)
        assert status["event_number"] == (settings.first_event + len(sent)) % 2**64
        assert h.desc.empty() and h.data.empty(), "more than count messages"


@cocotb.test()
async def prbs_messages_are_one_sequence(dut):
    await runs(dut, PRBS, 0.0)


@cocotb.test()
async def prbs_messages_are_one_sequence_under_stalls(dut):
    await runs(dut, PRBS, 0.4)


@cocotb.test()
async def counter_messages_count_under_stalls(dut):
    await runs(dut, COUNTER, 0.4)


@cocotb.test()
async def replayed_messages_are_the_memory_round_and_round_under_stalls(dut):
    await runs(dut, REPLAY, 0.4)


@cocotb.test()
async def payload_leaves_without_a_bubble_also_between_messages(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    await h.fill(4)
    for generator, length in itertools.product((PRBS, COUNTER, REPLAY), (1, h.lanes, 5 * h.lanes + 3, 4096)):
        settings = Settings(generator=generator, length_min=length, count=0, replay_blocks=4)
        await h.run(settings)
        await RisingEdge(dut.m_axis_data_tvalid)
        for _ in range(200):
            await RisingEdge(dut.clk)
            assert dut.m_axis_data_tvalid.value == 1, f"generator {generator}, messages of {length} bytes"
        await h.pulse("stop")
        assert (await h.idle())["stalled"] == 0
        h.desc.clear()
        h.data.clear()


@cocotb.test()
async def stop_ends_with_a_whole_message_and_a_new_start_resumes_or_restarts(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    settings = Settings(length_min=100, length_max=0, qp_last=2, first_event=2**32 - 3)
    expected = messages(settings)
    events = settings.first_event
    for restart in (1, 0, 0):
        settings.restart = restart
        await h.run(settings)
        await ClockCycles(dut.clk, rng.randrange(60, 120))
        await h.pulse("start")  # has no effect now
        await h.pulse("stop")
        status = await h.idle()
        begun = events
        while not h.desc.empty():
            await h.expect(replace(next(expected), series=int(events - begun < 3)))
            events += 1
        assert h.data.empty() and status["event_number"] == events
        assert status["messages"] == events - settings.first_event
    settings.restart = 1
    await h.run(settings)
    await h.expect(next(messages(settings)))
    await h.pulse("clear")
    await h.pulse("stop")
    assert 0 < (await h.idle())["messages"] < 100


@cocotb.test()
async def a_warm_up_waits_for_the_completions_of_its_own_messages(dut):
    h = await Harness(dut, seed()).start()
    settings = Settings(
        length_min=3000, count=9, qp_first=4, qp_last=6, warm_up=64, first_event=2**24 - 2, tag_prefix=7
    )
    sent = list(itertools.islice(messages(settings), settings.count))
    assert [m.length for m in sent[:4]] == [64, 64, 64, 3000] and [m.series for m in sent] == [0] * 3 + [1] * 3 + [
        0
    ] * 3
    await h.run(settings)
    for message in sent[:3]:
        await h.expect(message)
    strangers = [sent[3].tag, sent[0].tag - 1, sent[1].tag ^ 8 << 24]
    for tag in (*strangers, sent[2].tag, *strangers, sent[0].tag):
        await h.complete(tag)
        await ClockCycles(dut.clk, 30)
        assert h.desc.empty() and h.status()["running"]
    await h.complete(sent[1].tag)
    for message in sent[3:]:
        await h.expect(message)
    assert (await h.idle())["messages"] == 9

    # Stopped while it waits, and without a warm-up the next time.
    await h.run(settings)
    for message in sent[:3]:
        await h.expect(message)
    await h.pulse("stop")
    assert (await h.idle())["messages"] == 3
    settings.warm_up = 0
    await h.run(settings)
    for message in itertools.islice(messages(settings), 9):
        await h.expect(message)


@cocotb.test()
async def messages_keep_their_rate_and_make_up_for_a_stall(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    interval, burst = 50, 3
    await h.run(Settings(length_min=h.lanes, interval=interval, burst=burst))
    begins = []
    for cycle in itertools.count():
        await RisingEdge(dut.clk)
        if dut.m_axis_data_tvalid.value == 1 and dut.m_axis_data_tready.value == 1:
            begins.append(cycle)
        h.data.pause = 300 <= cycle < 600
        if cycle == 1000:
            break
    for before in (299, 999):  # before the stall, and once it is made up for
        assert abs(sum(b <= before for b in begins) - before / interval * burst) <= burst + 1
    assert h.status()["stalled"] > 250
    quiet = [b for b in begins if b < 290][burst:]  # the first lengths take some cycles
    assert {later - earlier for earlier, later in itertools.pairwise(quiet)} == {1, interval - burst + 1}


@cocotb.test()
async def software_reads_and_writes_the_memory_while_it_is_played(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    h.data.set_pause_generator(rng.random() < 0.5 for _ in itertools.count())
    memory = bytearray(await h.fill(3))
    for block in (3, 255):  # not played; 255 is the last
        for word in range(0, 64, 4):
            await h.access(64 * block + word, 0)
    settings = Settings(generator=REPLAY, length_min=150, length_max=200, replay_blocks=3)
    expected = messages(settings, bytes(memory))
    await h.run(settings)
    other = {64 * block + word: 0 for block in (3, 255) for word in range(0, 64, 4)}
    for _ in range(300):
        address = rng.choice(list(other))
        if rng.random() < 0.5:
            value, bits = rng.getrandbits(32), rng.choice([0xFFFFFFFF, 0xFF00, 0xFFFF0000])
            await h.access(address, value, bits)
            other[address] = other[address] & ~bits | value & bits
        else:
            assert await h.access(address) == other[address]
        played = rng.randrange(0, 192, 4)
        assert await h.access(played) == int.from_bytes(memory[played : played + 4], "little")
    await h.pulse("stop")
    await h.idle()
    await ReadOnly()
    count = 0
    while not h.desc.empty():
        await h.expect(next(expected))
        count += 1
    assert count > 10


@cocotb.test(skip=not PEERS)
async def peers_fill_the_memory_while_a_part_of_it_is_played(dut):
    rng = seed()
    h = await Harness(dut, rng).start()
    memory = await h.fill(3)
    other = {}  # 32-bit words of blocks that are not played

    async def play(stop: list[bool]) -> int:
        settings = Settings(generator=REPLAY, length_min=150, length_max=200, replay_blocks=3)
        expected, count = messages(settings, memory), 0
        await h.run(settings)
        await RisingEdge(dut.m_axis_data_tvalid)
        while not stop:
            await RisingEdge(dut.clk)
            assert dut.m_axis_data_tvalid.value == 1, "a fill delays the replay"
        await h.pulse("stop")
        await h.idle()
        await ReadOnly()
        while not h.desc.empty():
            await h.expect(next(expected))
            count += 1
        return count

    stop: list[bool] = []
    player = cocotb.start_soon(play(stop))
    for _ in range(500):
        address = h.lanes * rng.randrange(3 * 64 // h.lanes, 16384 // h.lanes)
        words, data = rng.randrange(1, 1 << h.lanes // 4), rng.getrandbits(8 * h.lanes)
        dut.replay_fill.value = structs.pack("table_fill_t", valid=1, addr=address, words=words)
        dut.fill_data.value = data
        await RisingEdge(dut.clk)
        dut.replay_fill.value = 0
        for i in range(h.lanes // 4):
            if words >> i & 1:
                other[address + 4 * i] = data >> 32 * i & 0xFFFFFFFF
    stop.append(True)
    assert await player > 1
    await RisingEdge(dut.clk)
    for address in rng.sample(list(other), 200):
        assert await h.access(address) == other[address]
    for address in range(0, 192, 4):
        assert await h.access(address) == int.from_bytes(memory[address : address + 4], "little")
