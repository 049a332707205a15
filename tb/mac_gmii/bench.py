# SPDX-License-Identifier: Apache-2.0
"""The MAC on GMII and MII sends every frame whole, padded, with FCS and gaps of 12 octets, passes on every good frame,
marks every bad one, and stays synchronised after both, at any ratio of its three clocks."""

from itertools import pairwise
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource
from lib.gmii import TX_CLOCK_PS, GmiiMac, reset, wait_up, with_filler
from lib.runner import Bench, seed

BENCH = Bench(top="gmii_port", sources=[Path(__file__).parent / "gmii_port.sv"])
MAX_BYTES = 9022
CORE_PS = 16_000  # 62.5 MHz


async def start(dut, mbps: int = 1000, core_ps: int = CORE_PS, rx_clock: bool = True) -> GmiiMac:
    mac = GmiiMac(dut, mbps)
    speed = mac.speed
    cocotb.start_soon(Clock(dut.gmii_tx_clk, TX_CLOCK_PS, "ps").start())
    if rx_clock:
        cocotb.start_soon(Clock(dut.gmii_rx_clk, speed.clock_ps - 2 * (speed.code == 2), "ps").start())
    else:
        dut.gmii_rx_clk.value = 0
    dut.divider.value = speed.divider
    dut.link_up.value = dut.link_full_duplex.value = 1
    dut.link_speed.value = speed.code
    mii = dut.mii
    await Timer(1, "ps")
    mac.wire_in = GmiiSource(dut.gmii_rxd, dut.gmii_rx_er, dut.gmii_rx_dv, dut.gmii_rx_clk, mii_select=mii)
    mac.wire_out = GmiiSink(
        dut.gmii_txd, dut.gmii_tx_er, dut.gmii_tx_en, dut.phy_clk, enable=dut.gmii_tx_enable, mii_select=mii
    )
    mac.quiet()
    await reset(dut, core_ps)
    cocotb.start_soon(mac.count())
    if rx_clock:
        await wait_up(mac)
    return mac


def gaps(mac: GmiiMac, frames: list[GmiiFrame]) -> list[int]:
    """Octets of idle between frames on the line."""
    return [round((b.sim_time_start - a.sim_time_end) / mac.speed.octet_ps) for a, b in pairwise(frames)]


@cocotb.test()
@cocotb.parametrize(mbps=[1000, 100, 10])
async def every_length_leaves_padded_with_its_fcs_and_a_gap_of_12(dut, mbps):
    rng = seed()
    mac = await start(dut, mbps)
    lengths = [*range(14, 100), 4154, 9014] if mbps == 1000 else [14, 15, 59, 60, 61, 62, 63, 64, 65, 130]
    rng.shuffle(lengths)
    frames = [rng.randbytes(length) for length in lengths]
    for frame in frames:
        await mac.tx.send(with_filler(rng, frame))
    seen = [await mac.expect(frame) for frame in frames]
    assert set(gaps(mac, seen)) == {12}
    await mac.settle()
    assert mac.counts == {"tx_frame": len(frames)}
    assert mac.level("line_share") == mac.speed.share


@cocotb.test()
@cocotb.parametrize(core_ps=[51_200, 16_000, 15_998, 8_000, 3_104])
async def no_clock_of_the_core_makes_a_stream_without_bubbles_run_dry(dut, core_ps):
    """19.5 MHz is the slowest that penstock_1g allows; the stream's words come one a cycle."""
    rng = seed()
    mac = await start(dut, core_ps=core_ps)
    frames = [rng.randbytes(rng.randint(14, 1500)) for _ in range(30)]
    for frame in frames:
        await mac.tx.send(with_filler(rng, frame))
    seen = [await mac.expect(frame) for frame in frames]
    assert max(gaps(mac, seen)) == 12
    await mac.peer_sends(*(frame.ljust(60, b"\0") for frame in frames))
    assert mac.received() == [(frame.ljust(60, b"\0"), 0) for frame in frames]
    assert mac.counts == {"tx_frame": 30, "rx_frame": 30}


@cocotb.test()
async def a_source_that_runs_dry_spoils_its_frame_with_tx_er_and_spares_the_next(dut):
    rng = seed()
    mac = await start(dut)
    for count in range(1, 8):
        broken, whole = rng.randbytes(rng.randint(400, 600)), rng.randbytes(rng.randint(60, 200))
        await mac.tx.send(broken)
        while not int(dut.gmii_tx_en.value):
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, rng.randint(0, 12))
        mac.tx.pause = True
        await mac.octets(300)
        mac.tx.pause = False
        await mac.tx.send(whole)
        got = await mac.wire_out.recv()
        assert got.error is not None and got.error[-1] and not any(got.error[:-1])
        assert broken.startswith(bytes(got.data[7:-1]))
        await mac.expect(whole)
        await mac.settle()
        assert mac.counts == {"tx_frame": count, "tx_underrun": count}


@cocotb.test()
@cocotb.parametrize(
    (("up", "full_duplex"), [(0, 1), (1, 0)]),
)
async def without_a_link_frames_are_dropped_and_the_first_after_it_is_whole(dut, up, full_duplex):
    rng = seed()
    mac = await start(dut)
    for faults in range(1, 5):
        before = mac.counts["tx_frame"] + mac.counts["tx_dropped"]
        frames = [rng.randbytes(rng.randint(20, 300)) for _ in range(8)]
        for frame in frames:
            await mac.tx.send(with_filler(rng, frame))
        await mac.octets(rng.randint(1, 900))
        dut.link_up.value, dut.link_full_duplex.value = up, full_duplex
        await mac.octets(3000)
        assert mac.level("local_fault") and mac.tx.idle() and not int(dut.gmii_tx_en.value)
        await mac.settle()
        assert mac.counts["tx_frame"] + mac.counts["tx_dropped"] == before + 8
        while not mac.wire_out.empty():
            mac.wire_out.recv_nowait()
        dut.link_up.value = dut.link_full_duplex.value = 1
        await mac.octets(30)
        frame = rng.randbytes(80)
        await mac.tx.send(with_filler(rng, frame))
        await mac.expect(frame)
        await mac.settle()
        assert mac.counts["link_fault"] == faults and not mac.counts["tx_underrun"]


@cocotb.test()
@cocotb.parametrize(mbps=[1000, 100, 10])
async def good_frames_of_every_length_arrive(dut, mbps):
    rng = seed()
    mac = await start(dut, mbps)
    lengths = [*range(60, 100), 4154, MAX_BYTES - 4] if mbps == 1000 else [*range(60, 70)]
    frames = [rng.randbytes(length) for length in lengths]
    rng.shuffle(frames)
    await mac.peer_sends(*frames)
    assert mac.received() == [(frame, 0) for frame in frames]
    assert mac.counts == {"rx_frame": len(frames)}


@cocotb.test()
@cocotb.parametrize(preamble=[0, 1, 3, 7, 30])
async def a_preamble_of_any_length_will_do_and_a_gap_of_one_octet(dut, preamble):
    """IEEE 802.3 35.2.3.2.2: a receiver may see the preamble shrunk, on GMII down to the SFD."""
    rng = seed()
    mac = await start(dut)
    mac.wire_in.ifg = 1
    frames = [rng.randbytes(rng.randint(60, 90)) for _ in range(20)]
    for frame in frames:
        on_line = GmiiFrame.from_payload(frame)
        await mac.wire_in.send(GmiiFrame(b"\x55" * preamble + bytes(on_line.data[7:])))
    await mac.wire_in.wait()
    await mac.settle()
    assert mac.received() == [(frame, 0) for frame in frames]


@cocotb.test()
@cocotb.parametrize(mbps=[1000, 100])
async def bad_frames_are_marked_counted_by_their_kind_and_spare_the_next(dut, mbps):
    rng = seed()
    mac = await start(dut, mbps)

    def spoilt(kind: str) -> GmiiFrame:
        frame = GmiiFrame.from_payload(rng.randbytes(rng.randint(60, 90)))
        frame.normalize()
        if kind == "bit":
            frame.data[rng.randrange(8, len(frame.data))] ^= 1 << rng.randrange(8)
        elif kind == "rx_er":
            frame.error[rng.randrange(8, len(frame.data))] = 1
        elif kind == "preamble":
            frame.data[rng.randrange(0, 7)] ^= 0x22
        elif kind == "no_sfd":
            frame.data, frame.error = bytearray(b"\x55" * 9), [0] * 9
        elif kind == "runt":
            short = GmiiFrame.from_payload(rng.randbytes(rng.randint(1, 59)), min_len=0)
            short.normalize()
            return short
        elif kind == "scrap":
            frame.data, frame.error = frame.data[: 8 + rng.randint(0, 4)], None
        elif kind == "long":
            return GmiiFrame.from_payload(rng.randbytes(MAX_BYTES - 4 + rng.randint(1, 9)))
        return frame

    kinds = ["bit", "rx_er", "preamble", "no_sfd", "runt", "scrap"] * 6 + ["long"] * (2 if mbps == 1000 else 0)
    rng.shuffle(kinds)
    good = [rng.randbytes(rng.randint(60, 90)) for _ in kinds]
    for kind, frame in zip(kinds, good, strict=True):
        await mac.wire_in.send(spoilt(kind))
        await mac.wire_in.send(GmiiFrame.from_payload(frame))
    await mac.wire_in.wait()
    await mac.settle()
    assert [frame for frame, bad in mac.received() if not bad] == good
    counts, number = mac.counts, {kind: kinds.count(kind) for kind in set(kinds)}
    long = number.get("long", 0)
    assert counts["rx_frame"] == len(kinds)
    assert counts["rx_bad_fcs"] == number["bit"]
    assert counts["rx_bad_frame"] == len(kinds) - number["bit"]
    assert counts["rx_undersize"] == number["runt"] + number["scrap"]
    assert counts["rx_oversize"] == long


@cocotb.test()
async def a_nibble_too_many_is_dropped(dut):
    """IEEE 802.3 4.2.4.2.1: a frame is cut to whole octets, and its FCS decides."""
    rng = seed()
    mac = await start(dut, 100)
    frame = rng.randbytes(61)
    octets = bytes(GmiiFrame.from_payload(frame).data)
    nibbles = [n for octet in octets for n in (octet & 15, octet >> 4)] + [9]
    for nibble in nibbles:
        await FallingEdge(dut.gmii_rx_clk)
        dut.gmii_rxd.value, dut.gmii_rx_dv.value = nibble, 1
    await FallingEdge(dut.gmii_rx_clk)
    dut.gmii_rx_dv.value = 0
    await mac.settle()
    assert mac.received() == [(frame, 0)]


@cocotb.test()
async def a_line_whose_clock_starts_late_is_a_fault_until_then_and_whole_after(dut):
    rng = seed()
    mac = await start(dut, rx_clock=False)
    for late in range(3):
        await ClockCycles(dut.clk, 50 + late)
        assert mac.level("local_fault") and mac.rx.empty()
        clock = cocotb.start_soon(Clock(dut.gmii_rx_clk, 8000, "ps").start())
        await wait_up(mac)
        frames = [rng.randbytes(rng.randint(60, 200)) for _ in range(10)]
        await mac.peer_sends(*frames)
        assert mac.received() == [(frame, 0) for frame in frames]
        clock.cancel()
        dut.gmii_rx_clk.value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 10)
        dut.rst.value = 0


@cocotb.test()
async def a_reset_amid_traffic_leaves_no_word_of_it(dut):
    rng = seed()
    mac = await start(dut)
    for _ in range(8):
        await mac.wire_in.send(GmiiFrame.from_payload(rng.randbytes(400)))
        await mac.octets(rng.randint(20, 400))
        dut.rst.value = 1
        await ClockCycles(dut.clk, rng.randint(1, 30))
        dut.rst.value = 0
        await mac.wire_in.wait()
        await wait_up(mac)
        mac.received()
        frames = [rng.randbytes(rng.randint(60, 100)) for _ in range(3)]
        await mac.peer_sends(*frames)
        assert mac.received() == [(frame, 0) for frame in frames]
