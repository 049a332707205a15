# SPDX-License-Identifier: Apache-2.0
"""The PCS against itself: every frame passes whole, whatever the difference of the clocks and the place of the bits;
the line is balanced; what is damaged on the way is no good frame; and a lost signal is a lost link.

That its code and its negotiation are those of the standard shows the bench against LiteEth.
"""

import itertools
import zlib

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from lib.runner import REPO, Bench, seed
from lib.xgmii import ERROR, IDLE, LANES, START, TERM, idle, line_frame, read_frames, with_fcs

BENCH = Bench(top="pcs_pair", sources=[REPO / "tb/pcs_basex/pcs_pair.sv"])

LINE_PS = 6400
FAULT = (0x11, 0x0100_009C_0100_009C)
IDLE_WORD = (0xFF, int.from_bytes(bytes([IDLE] * LANES), "little"))
LONGEST = 9018


class Side:
    """The MAC of one side: octets out, frames in."""

    def __init__(self, dut, number: int):
        self.dut, self.number = dut, number
        self.txd, self.txc, self.rxd, self.rxc = (
            getattr(dut, f"xgmii_{name}_{number}") for name in ("txd", "txc", "rxd", "rxc")
        )
        self.clk = getattr(dut, f"clk_{number}")
        self.sink: Queue[bytes | None] = Queue()
        self.word(idle(LANES))
        cocotb.start_soon(read_frames(self.clk, self.rxd, self.rxc, self.sink))

    def word(self, octets: list[tuple[int, int]]) -> None:
        self.txd.value = int.from_bytes(bytes(octet for octet, _ in octets), "little")
        self.txc.value = sum(control << lane for lane, (_, control) in enumerate(octets))

    async def send(self, octets: list[tuple[int, int]]) -> None:
        octets = octets + idle(-len(octets) % LANES)
        for at in range(0, len(octets), LANES):
            await RisingEdge(self.clk)
            self.word(octets[at : at + LANES])
        await RisingEdge(self.clk)
        self.word(idle(LANES))

    def received(self) -> tuple[int, int]:
        return int(self.rxc.value), int(self.rxd.value)

    def is_up(self) -> bool:
        return bool(int(self.dut.link_up.value) >> self.number & 1)


def back_to_back(frames: list[bytes], rng) -> list[tuple[int, int]]:
    """Frames in lanes 0 and 4 with the gaps of a MAC that counts its deficit: 12 octets on average with /T/."""
    octets: list[tuple[int, int]] = idle(rng.choice([8, 12]))
    deficit = 0
    for frame in frames:
        octets += line_frame(frame)
        gap = 11 + deficit  # behind /T/
        gap -= (len(octets) + gap) % 4
        if gap < 8:
            gap += 4
        deficit += 11 - gap
        octets += idle(gap)
    return octets


async def start(dut, ppm: int = 0, slip: tuple[int, int] = (0, 0), negotiate: int = 0) -> list[Side]:
    dut.rst.value = 3
    dut.negotiate.value, dut.sgmii.value, dut.spoil.value = negotiate, 0, 0
    dut.slip.value = slip[0] | slip[1] << 5
    for number, period in enumerate((LINE_PS, LINE_PS + LINE_PS * ppm // 1_000_000 // 2 * 2)):
        cocotb.start_soon(Clock(getattr(dut, f"line_clk_{number}"), period, "ps").start(start_high=bool(number)))
    sides = [Side(dut, number) for number in (0, 1)]
    await ClockCycles(dut.clk_0, 8)
    dut.rst.value = 0
    return sides


async def up(sides: list[Side]) -> None:
    while not all(side.is_up() for side in sides):
        await RisingEdge(sides[0].clk)
    await ClockCycles(sides[0].clk, 4)


def random_frames(rng, count: int) -> list[bytes]:
    sizes = [*range(60, 60 + 16), 1514, LONGEST - 4]
    return [with_fcs(rng.randbytes(rng.choice(sizes))) for _ in range(count)]


async def exchange(sides: list[Side], rng, count: int) -> None:
    frames = [random_frames(rng, count) for _ in sides]
    sending = [cocotb.start_soon(side.send(back_to_back(sent, rng))) for side, sent in zip(sides, frames, strict=True)]
    for side, sent in zip(sides, reversed(frames), strict=True):
        for octets in sent:
            got = await side.sink.get()
            assert got == b"\x55" * 7 + b"\xd5" + octets
    for task in sending:
        await task
    assert all(side.sink.empty() for side in sides)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(ppm=[-320, 0, 320], slip=[(0, 9), (10, 19), (5, 13)])
async def frames_pass_back_to_back_at_every_difference_of_the_clocks(dut, ppm, slip):
    """320 ppm is more than two clocks of 100 ppm can differ."""
    rng = seed()
    sides = await start(dut, ppm, slip)
    await up(sides)
    await exchange(sides, rng, 60)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def every_place_of_the_bits_is_found(dut):
    rng = seed()
    sides = await start(dut)
    for slip in range(20):
        dut.slip.value = slip | (19 - slip) << 5
        while any(side.is_up() for side in sides) and slip:  # until both have seen that theirs is no longer right
            await RisingEdge(sides[0].clk)
        await up(sides)
        await ClockCycles(sides[0].clk, 20)
        for side in sides:
            while not side.sink.empty():
                side.sink.get_nowait()
        await exchange(sides, rng, 4)


async def bits_of_the_line(dut, cycles: int) -> str:
    bits = []
    for _ in range(cycles):
        await FallingEdge(dut.line_clk_0)
        bits.append(f"{int(dut.line.value) & 0xFFFFF:020b}"[::-1])
    return "".join(bits)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def the_line_is_balanced_with_no_more_than_five_equal_bits(dut):
    rng = seed()
    sides = await start(dut)
    await up(sides)
    await ClockCycles(sides[0].clk, 20)
    reading = cocotb.start_soon(bits_of_the_line(dut, 8000))
    await sides[0].send(back_to_back(random_frames(rng, 40), rng))
    bits = await reading
    assert max(len(list(run)) for _, run in itertools.groupby(bits)) == 5
    sums = list(itertools.accumulate(1 if bit == "1" else -1 for bit in bits))
    assert max(sums) - min(sums) <= 6
    commas = [at % 20 for at in range(len(bits) - 7) if bits[at : at + 7] in ("0011111", "1100000")]
    assert len(set(commas)) == 1 and len(commas) >= 2 * 40, "two or more in each gap, all in even places"


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def an_error_of_the_sender_spoils_its_frame_and_no_other(dut):
    rng = seed()
    sides = await start(dut)
    await up(sides)
    good = with_fcs(rng.randbytes(100))
    for at in range(8, 40):
        spoilt = line_frame(good)
        spoilt[at] = (ERROR, 1)
        await sides[0].send([*line_frame(good), *idle(15), *spoilt, *idle(15 + 4), *line_frame(good)])
        found = [await sides[1].sink.get() for _ in range(3)]
        assert found == [b"\x55" * 7 + b"\xd5" + good, None, b"\x55" * 7 + b"\xd5" + good], at


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def a_bit_that_turns_over_costs_its_frame_at_most(dut):
    """And never passes: with a good FCS no frame is another than was sent."""
    rng = seed()
    sides = await start(dut)
    await up(sides)
    sent = [with_fcs(rng.randbytes(rng.randrange(60, 120))) for _ in range(1500)]
    turned = 0

    async def turn_over() -> None:
        nonlocal turned
        while True:
            await ClockCycles(dut.line_clk_0, rng.randrange(40, 300))
            dut.spoil.value = 1 << rng.randrange(20)
            turned += 1
            await RisingEdge(dut.line_clk_0)
            dut.spoil.value = 0

    spoiling = cocotb.start_soon(turn_over())
    await sides[0].send(back_to_back(sent, rng))
    spoiling.cancel()
    dut.spoil.value = 0
    await ClockCycles(sides[0].clk, 40)
    good = []
    while not sides[1].sink.empty():
        octets = sides[1].sink.get_nowait()
        if octets and zlib.crc32(octets[8:]) == 0x2144DF1C:
            good.append(octets[8:])
    remaining = iter(sent)
    assert all(octets in remaining for octets in good), "in order, and none but those sent"
    lost = len(sent) - len(good)
    dut._log.info(f"{turned} bits turned over, {lost} frames lost")
    assert 0 < lost <= turned and sides[1].is_up()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_lost_signal_is_a_local_fault_until_it_is_back(dut):
    rng = seed()
    sides = await start(dut)
    await up(sides)
    assert sides[1].received() == IDLE_WORD
    sending = cocotb.start_soon(sides[0].send(line_frame(with_fcs(rng.randbytes(9000)))))
    await ClockCycles(sides[0].clk, 100)
    for _ in range(200):
        dut.spoil.value = rng.getrandbits(20)
        await RisingEdge(dut.line_clk_0)
    assert not sides[1].is_up() and sides[0].is_up() and sides[1].received() == FAULT
    dut.spoil.value = 0
    await sending
    await up(sides)
    assert sides[1].received() == IDLE_WORD
    while not sides[1].sink.empty():
        assert sides[1].sink.get_nowait() is None
    await exchange(sides, rng, 5)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_frame_that_breaks_off_early_is_a_bad_one(dut):
    sides = await start(dut)
    await up(sides)
    heads = [
        [(START, 1), (TERM, 1)],
        [(START, 1), *[(0x55, 0)] * 3, (0x12, 0), *[(0x55, 0)] * 3],
        [(START, 1), *[(0x55, 0)] * 3],
    ]
    for octets in heads:
        await sides[0].send(octets)
        assert await sides[1].sink.get() is None


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def faults_of_the_mac_are_idle_on_the_line(dut):
    rng = seed()
    sides = await start(dut)
    await up(sides)
    for _ in range(40):
        await RisingEdge(sides[0].clk)
        sides[0].txc.value, sides[0].txd.value = 0x11, 0x0200_009C_0200_009C
        assert sides[1].received() == IDLE_WORD
    await exchange(sides, rng, 3)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def both_negotiate_and_either_begins_anew(dut):
    rng = seed()
    sides = await start(dut, 300, (3, 11), negotiate=3)
    await up(sides)
    assert dut.partner_0.value == dut.partner_1.value == 0x00A0
    await exchange(sides, rng, 5)
    for number in (0, 1):
        dut.rst.value = 1 << number
        await ClockCycles(sides[0].clk, 8)
        dut.rst.value = 0
        while sides[1 - number].is_up():
            await RisingEdge(sides[0].clk)
        await up(sides)
        await exchange(sides, rng, 5)
    # One side alone that negotiates has no link: the other sends nothing that it could answer.
    dut.negotiate.value = dut.rst.value = 1
    await ClockCycles(sides[0].clk, 8)
    dut.rst.value = 0
    await Timer(200, "us")
    assert not sides[0].is_up()
