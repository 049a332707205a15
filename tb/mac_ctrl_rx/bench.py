# SPDX-License-Identifier: Apache-2.0
"""Pause and PFC frames stop exactly the named classes for exactly the given time, and are not passed on."""

import itertools
import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.mac_control import PEER_MAC, pause, pfc
from lib.roce import LOCAL_MAC, mac_int
from lib.runner import Bench, seed

BENCH = Bench(
    top="mac_ctrl_rx",
    configs=[{"DATA_W": 64}, {"DATA_W": 512, "CLK_KHZ": 322266, "LINE_MBPS": 100000}],
)
GLOBAL = 8
# A quanta is 512 bit times; of a cycle's share 8 binary places are kept, rounded down.
STEP = (
    256 * 1000 * int(os.environ.get("PARAM_LINE_MBPS", 10000)) // (512 * int(os.environ.get("PARAM_CLK_KHZ", 156250)))
)


def cycles_of(quanta: int) -> int:
    return -(-256 * quanta // STEP)


def as_stream(frame: bytes, bad: bool) -> AxiStreamFrame:
    return AxiStreamFrame(frame, tuser=[0] * (len(frame) - 1) + [int(bad)])


class Ctrl:
    def __init__(self, dut):
        self.dut = dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for log in (self.source.log, self.sink.log):
            log.setLevel("WARNING")
        self.paused_for = [0] * 9  # cycles, by class; the global timer last
        self.pauses = self.pfcs = 0

    async def watch(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            paused = int(self.dut.paused_class.value) | int(self.dut.paused_global.value) << GLOBAL
            for i in range(9):
                self.paused_for[i] += paused >> i & 1
            self.pauses += int(self.dut.stat_pause.value)
            self.pfcs += int(self.dut.stat_pfc.value)

    async def send(self, frame: bytes, bad: bool = False) -> None:
        await self.source.send(as_stream(frame, bad))
        await self.source.wait()

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk)

    def received(self) -> list[tuple[bytes, int]]:
        frames = []
        while not self.sink.empty():
            frame = self.sink.recv_nowait(compact=False)
            data = bytes(octet for octet, keep in zip(frame.tdata, frame.tkeep, strict=True) if keep)
            frames.append((data, int(frame.tuser[-1])))
        return frames


async def start(dut) -> Ctrl:
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    dut.rst.value = 1
    dut.tick.value = 1
    dut.local_mac.value = mac_int(LOCAL_MAC)
    ctrl = Ctrl(dut)
    await ctrl.cycles(4)
    dut.rst.value = 0
    await ctrl.cycles(2)
    cocotb.start_soon(ctrl.watch())
    return ctrl


@cocotb.test()
async def a_pause_lasts_exactly_its_quanta(dut):
    ctrl = await start(dut)
    total = 0
    for quanta in (1, 2, 7, 100):
        await ctrl.send(pause(quanta))
        await ctrl.cycles(cycles_of(quanta) + 10)
        total += cycles_of(quanta)
        assert ctrl.paused_for == [0] * 8 + [total], f"{quanta} quanta"
    assert ctrl.pauses == 4 and ctrl.pfcs == 0
    assert ctrl.received() == []


@cocotb.test()
async def pfc_stops_the_classes_it_names_each_for_its_own_time(dut):
    rng = seed()
    ctrl = await start(dut)
    expected = [0] * 9
    for _ in range(20):
        quanta = {c: rng.randint(0, 30) for c in rng.sample(range(8), rng.randint(0, 8))}
        await ctrl.send(pfc(quanta))
        await ctrl.cycles(cycles_of(30) + 10)
        for c, q in quanta.items():
            expected[c] += cycles_of(q)
        assert ctrl.paused_for == expected, f"{quanta}"
    assert ctrl.pfcs == 20 and ctrl.pauses == 0
    assert ctrl.received() == []


@cocotb.test()
async def a_refresh_restarts_the_time_and_zero_quanta_ends_it(dut):
    ctrl = await start(dut)
    await ctrl.send(pause(100))
    await ctrl.send(pfc({2: 100, 5: 100}))
    whole, half = cycles_of(100), cycles_of(50)
    await ctrl.cycles(half)
    await ctrl.send(pause(100))  # refresh: 100 quanta from now
    await ctrl.send(pfc({5: 0}))  # class 5 may go on, class 2 is not named and stays
    await ctrl.cycles(20)
    before = list(ctrl.paused_for)
    assert int(dut.paused_class.value) == 1 << 2
    assert before[5] < half + 50
    await ctrl.cycles(whole + 200)
    assert ctrl.paused_for[2] == whole, "a PFC frame touched a class that it does not name"
    assert whole + half <= ctrl.paused_for[GLOBAL] <= whole + half + 40, "the refresh did not restart the pause"
    await ctrl.send(pause(0xFFFF))
    await ctrl.cycles(50)
    assert int(dut.paused_global.value) == 1
    await ctrl.send(pause(0))
    await ctrl.cycles(4)
    assert int(dut.paused_global.value) == 0


@cocotb.test()
async def a_pause_to_our_own_address_counts_and_pfc_does_not(dut):
    ctrl = await start(dut)
    await ctrl.send(pause(7, dst=LOCAL_MAC))
    await ctrl.send(pfc({c: 50 for c in range(8)}, dst=LOCAL_MAC))
    await ctrl.cycles(cycles_of(7) + 10)
    assert ctrl.paused_for == [0] * 8 + [cycles_of(7)]
    assert (ctrl.pauses, ctrl.pfcs, ctrl.received()) == (1, 0, [])
    await ctrl.send(pfc({3: 2}))
    await ctrl.cycles(cycles_of(2) + 10)
    assert ctrl.paused_for[3] == cycles_of(2) and ctrl.pfcs == 1


@cocotb.test()
async def only_good_control_frames_to_the_control_address_act(dut):
    rng = seed()
    ctrl = await start(dut)
    await ctrl.send(pause(50), bad=True)
    await ctrl.send(pfc({c: 50 for c in range(8)}), bad=True)
    await ctrl.send(pause(50, dst=LOCAL_MAC), bad=True)
    unicast = pause(50, dst="02:00:00:00:00:09")
    await ctrl.send(unicast)
    other_type = bytearray(pause(50))
    other_type[12:14] = b"\x08\x00"
    await ctrl.send(bytes(other_type))
    unknown = bytearray(pause(50))
    unknown[14:16] = b"\x00\x02"  # EPON gate: an opcode that we do not serve
    await ctrl.send(bytes(unknown))
    plain = bytes.fromhex(PEER_MAC.replace(":", "")) + rng.randbytes(60)
    await ctrl.send(plain)
    await ctrl.cycles(20)
    assert ctrl.paused_for == [0] * 9
    assert (ctrl.pauses, ctrl.pfcs) == (0, 0)
    assert ctrl.received() == [(unicast, 0), (bytes(other_type), 0), (plain, 0)]


@cocotb.test()
async def data_frames_pass_unchanged_between_control_frames(dut):
    rng = seed()
    ctrl = await start(dut)
    ctrl.source.set_pause_generator(rng.random() < 0.2 for _ in itertools.count())
    sent = []
    for _ in range(300):
        if rng.random() < 0.3:
            frame = rng.choice([pause(rng.randint(0, 3)), pfc({rng.randrange(8): 2}), pause(9)[: rng.randint(14, 59)]])
            await ctrl.source.send(as_stream(frame, bad=len(frame) < 60))
        else:
            frame, bad = rng.randbytes(rng.randint(1, 150)), int(rng.random() < 0.2)
            await ctrl.source.send(as_stream(frame, bool(bad)))
            sent.append((frame, bad))
    await ctrl.source.wait()
    await ctrl.cycles(10)
    assert ctrl.received() == sent
