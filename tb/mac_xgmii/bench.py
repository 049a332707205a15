# SPDX-License-Identifier: Apache-2.0
"""MAC and port: both directions at once, faults of the link, and pauses of both sides seen on the wire."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamSink, AxiStreamSource
from lib.mac_control import CONTROL_MAC, pause, pfc
from lib.runner import Bench, seed
from lib.xgmii import LANES, LineMonitor, drive_line
from scapy.contrib.mac_control import MACControlPause
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

BENCH = Bench(top="mac_port", sources=[Path(__file__).parent / "mac_port.sv"])
OUR_CLASS = 3
OCTETS_PER_QUANTA = 64
QUANTA = 60  # that we request from the peer


class Mac:
    def __init__(self, dut):
        self.dut = dut
        self.tx = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.rx = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.wire_in = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk, dut.rst)
        self.wire_out = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
        self.line = LineMonitor(dut.clk, dut.xgmii_txd, dut.xgmii_txc)
        self.counts = Counter()
        for log in (self.tx.log, self.rx.log, self.wire_in.log, self.wire_out.log):
            log.setLevel("WARNING")

    async def count(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            for word, struct in ((self.dut.status, "mac_status_t"), (self.dut.stat, "port_stat_t")):
                for name, pulse in structs.unpack(struct, int(word.value)).items():
                    if pulse:
                        self.counts[name] += 1

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk)

    async def peer_sends(self, frame: bytes) -> None:
        await self.wire_in.send(XgmiiFrame.from_payload(frame))
        await self.wire_in.wait()

    async def flood(self, frame: bytes) -> None:
        """Keep the transmitter busy for ever."""
        while True:
            await self.tx.send(frame)
            if self.tx.count() > 3:
                await RisingEdge(self.dut.clk)
                while self.tx.count() > 3:
                    await self.cycles(8)


async def start(dut, pause_en: bool = True, pfc_en: bool = True) -> Mac:
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    dut.rst.value = 1
    dut.cfg_pause_en.value = pause_en
    dut.cfg_pfc_en.value = pfc_en
    dut.cfg_class.value = OUR_CLASS
    dut.cfg_stop_peer.value = 0
    dut.cfg_quanta.value = QUANTA
    dut.level_bytes.value = 0
    mac = Mac(dut)
    await mac.cycles(4)
    dut.rst.value = 0
    await mac.cycles(2)
    mac.watch = cocotb.start_soon(mac.line.run())
    cocotb.start_soon(mac.count())
    return mac


@cocotb.test()
async def frames_cross_in_both_directions_at_full_rate(dut):
    rng = seed()
    mac = await start(dut)
    out = [rng.randbytes(rng.choice([60, 61, 300, 1500, 4154])) for _ in range(30)]
    into = [rng.randbytes(rng.choice([60, 63, 200, 1501, 4154])) for _ in range(30)]
    for sent, received in zip(out, into, strict=True):
        await mac.tx.send(sent)
        await mac.wire_in.send(XgmiiFrame.from_payload(received))
    for sent, received in zip(out, into, strict=True):
        assert bytes((await with_timeout(mac.wire_out.recv(), 20, "us")).get_payload()) == sent
        got = await with_timeout(mac.rx.recv(), 20, "us")
        assert bytes(got.tdata) == received and not got.tuser
    assert abs(sum(mac.line.gaps()) - 12 * len(mac.line.gaps())) <= 3
    assert mac.counts == {"tx_frame": len(out), "rx_frame": len(into)}


@cocotb.test()
async def a_pause_on_the_wire_silences_us_for_its_quanta(dut):
    rng = seed()
    mac = await start(dut)
    frame_octets = 300
    cocotb.start_soon(mac.flood(rng.randbytes(frame_octets - 4)))
    pace = frame_octets + 8 + 12
    for quanta, frame in ((40, pause(40)), (60, pfc({OUR_CLASS: 60})), (25, pfc(dict.fromkeys(range(8), 25)))):
        await mac.cycles(300)
        first = len(mac.line.starts) - 1
        await mac.peer_sends(frame)
        received_at = mac.line.position
        await mac.cycles(quanta * OCTETS_PER_QUANTA // LANES + 200)
        starts = mac.line.starts[first:]
        silence, stopped_at = max((b - a, a) for a, b in pairwise(starts))
        # From the last start to the next: the pause itself, and what of a frame was under way.
        assert quanta * OCTETS_PER_QUANTA <= silence <= quanta * OCTETS_PER_QUANTA + pace + 2 * LANES
        assert stopped_at - received_at <= 12 * LANES, (
            f"a frame started {stopped_at - received_at} octets after the pause"
        )
    assert min(mac.line.gaps()) >= 9
    assert mac.counts["rx_pause"] == 1 and mac.counts["rx_pfc"] == 2


@cocotb.test()
async def a_refreshed_pause_holds_and_xon_ends_it_at_once(dut):
    rng = seed()
    mac = await start(dut)
    cocotb.start_soon(mac.flood(rng.randbytes(100)))
    await mac.cycles(200)
    for _ in range(5):
        await mac.peer_sends(pfc({OUR_CLASS: 30}))
        await mac.cycles(100)
    started = len(mac.line.starts)
    for _ in range(5):
        await mac.peer_sends(pfc({OUR_CLASS: 30}))
        await mac.cycles(100)
    assert len(mac.line.starts) == started and int(dut.tx_paused.value) == 1
    await mac.peer_sends(pfc({OUR_CLASS: 0}))
    await mac.cycles(20)
    assert len(mac.line.starts) > started, "XON did not let us go on"
    assert int(dut.tx_paused.value) == 0


async def starts_during(mac: Mac, frames: list[bytes]) -> int:
    """Frames that start in the 400 cycles after the peer sent these."""
    for frame in frames:
        await mac.peer_sends(frame)
    await mac.cycles(60)
    before = len(mac.line.starts)
    await mac.cycles(400)
    return len(mac.line.starts) - before


@cocotb.test()
async def a_pause_of_other_classes_does_not_stop_us(dut):
    rng = seed()
    mac = await start(dut)
    cocotb.start_soon(mac.flood(rng.randbytes(100)))
    await mac.cycles(100)
    full_rate = await starts_during(mac, [])
    other_classes = {c: 0xFFFF for c in range(8) if c != OUR_CLASS}
    assert abs(await starts_during(mac, [pfc(other_classes)]) - full_rate) <= 1
    dut.cfg_class.value = 6
    assert await starts_during(mac, []) == 0


@cocotb.test()
async def what_is_not_enabled_is_not_obeyed(dut):
    rng = seed()
    mac = await start(dut, pause_en=False, pfc_en=False)
    cocotb.start_soon(mac.flood(rng.randbytes(100)))
    await mac.cycles(100)
    full_rate = await starts_during(mac, [])
    assert abs(await starts_during(mac, [pause(0xFFFF), pfc({OUR_CLASS: 0xFFFF})]) - full_rate) <= 1
    assert mac.counts["rx_pause"] == 1 and mac.counts["rx_pfc"] == 1
    dut.cfg_pause_en.value = 1
    assert await starts_during(mac, []) == 0
    dut.cfg_pause_en.value = 0
    assert abs(await starts_during(mac, []) - full_rate) <= 1
    dut.cfg_pfc_en.value = 1
    assert await starts_during(mac, []) == 0


@cocotb.test()
async def a_pause_frame_with_a_bad_fcs_is_counted_and_not_obeyed(dut):
    rng = seed()
    mac = await start(dut)
    cocotb.start_soon(mac.flood(rng.randbytes(100)))
    whole = XgmiiFrame.from_payload(pause(0xFFFF))
    whole.data[-1] ^= 0x10
    await mac.wire_in.send(whole)
    await mac.wire_in.wait()
    await mac.cycles(30)
    assert int(dut.tx_paused.value) == 0
    assert mac.counts["rx_bad_fcs"] == 1 and mac.counts["rx_pause"] == 0


@cocotb.test()
async def a_full_buffer_pauses_the_peer_on_the_wire_until_it_drains(dut):
    rng = seed()
    mac = await start(dut)
    dut.cfg_stop_peer.value = 1
    frame = rng.randbytes(300)
    cocotb.start_soon(mac.flood(frame))
    await mac.cycles(100)
    dut.level_bytes.value = 1001
    await mac.cycles(4 * QUANTA * OCTETS_PER_QUANTA // LANES)
    dut.level_bytes.value = 499
    await mac.cycles(200)
    output = []
    while not mac.wire_out.empty():
        got = mac.wire_out.recv_nowait()
        assert got.check_fcs()
        if bytes(got.get_payload()) != frame:
            output.append((got.sim_time_start, bytes(got.get_payload())))
    ours = "02:50:53:54:4b:01"
    stop = bytes(Ether(dst=CONTROL_MAC, src=ours, type=0x8808) / MACControlPause(pause_time=QUANTA)).ljust(60, b"\0")
    go_on = bytes(Ether(dst=CONTROL_MAC, src=ours, type=0x8808) / MACControlPause(pause_time=0)).ljust(60, b"\0")
    assert [payload for _, payload in output] == [stop] * (len(output) - 1) + [go_on]
    ns = QUANTA * OCTETS_PER_QUANTA / LANES * 6.4
    assert all(b - a < ns * 1000 for (a, _), (b, _) in pairwise(output)), "the peer's timer ran out between two frames"
    assert mac.counts["tx_pause"] == len(output) >= 6


def ordered_sets(kind: int, columns: int) -> list[tuple[int, int]]:
    return [(0x9C, 1), (0, 0), (0, 0), (kind, 0)] * columns


@cocotb.test()
async def a_link_fault_stops_data_notifies_the_peer_and_ends(dut):
    rng = seed()
    mac = await start(dut)
    mac.watch.cancel()  # the fault cuts a frame
    cocotb.start_soon(mac.flood(rng.randbytes(100)))
    quiet = int.from_bytes(bytes([0x07] * LANES), "little"), 0xFF
    remote_fault = 0x0200009C_0200009C, 0x11
    for kind, name, answer in ((1, "local_fault", remote_fault), (2, "remote_fault", quiet)):
        await mac.cycles(200)
        mac.wire_in.pause = True
        line = cocotb.start_soon(drive_line(dut.clk, dut.xgmii_rxd, dut.xgmii_rxc, ordered_sets(kind, 400)))
        await mac.cycles(10)
        for _ in range(180):
            await FallingEdge(dut.clk)
            assert (int(dut.xgmii_txd.value), int(dut.xgmii_txc.value)) == answer
        await line
        mac.wire_in.pause = False
        await mac.cycles(64 + 10)
        before = mac.counts["tx_frame"]
        await mac.cycles(200)
        assert mac.counts["tx_frame"] >= before + 10
        assert 200 <= mac.counts[name] <= 200 + 64 + 2
    assert mac.counts["link_fault"] == 2 and mac.counts["tx_dropped"] > 10 and mac.counts["tx_underrun"] == 0


@cocotb.test()
async def the_longest_jumbo_frame_with_a_tag_passes_and_one_octet_more_does_not(dut):
    rng = seed()
    mac = await start(dut)
    whole = Ether(dst="02:50:53:54:4b:01", src="02:00:00:00:00:07") / Dot1Q(vlan=0, prio=3, type=0x0800)
    for payload, passes in ((9000, True), (9001, False)):
        frame = bytes(whole / Raw(rng.randbytes(payload)))
        await mac.peer_sends(frame)
        await mac.cycles(20)
        got = await mac.rx.recv()
        assert got.tuser == 0 if passes else got.tuser
        if passes:
            assert bytes(got.tdata) == frame[:12] + frame[16:]
    assert mac.counts == {"rx_frame": 1, "rx_bad_frame": 1, "rx_oversize": 1}
