# SPDX-License-Identifier: Apache-2.0
"""The port merges, tags, holds and stops frames as configured, and never splits one; scapy makes and reads them."""

import itertools
import os
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.frames_tx import stalls
from lib.mac_control import CONTROL_MAC, pause, pfc
from lib.roce import LOCAL_MAC, PEER_MAC, mac_int
from lib.runner import Bench, seed
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

BENCH = Bench(
    top="eth_port",
    configs=[{"DATA_W": 64}, {"DATA_W": 512, "CLK_KHZ": 322266, "LINE_MBPS": 100000}],
)
CYCLES_PER_QUANTA = (
    512 * int(os.environ.get("PARAM_CLK_KHZ", 156250)) / int(os.environ.get("PARAM_LINE_MBPS", 10000)) / 1000
)

# What the tests call a field of port_cfg_t.
CFG = {
    "vlan_enable": "vlan.enable",
    "vid": "vlan.vid",
    "pcp_data": "vlan.pcp_data",
    "pcp_services": "vlan.pcp_services",
    "obey_pause": "flow_control.pause_en",
    "obey_pfc": "flow_control.pfc_en",
    "traffic_class": "flow_control.traffic_class",
    "send_pause": "pause_tx.pause_en",
    "send_pfc": "pause_tx.pfc_en",
    "classes": "pause_tx.classes",
    "quanta": "pause_tx.quanta",
    "xoff_bytes": "pause_tx.xoff_bytes",
    "xon_bytes": "pause_tx.xon_bytes",
}
ROCE, SERVICE = 0x8915, 0x0806  # EtherTypes of the frames of the bench


def data(rng, kind: int, size: int) -> bytes:
    return bytes(Ether(dst=PEER_MAC, src=LOCAL_MAC, type=kind) / Raw(rng.randbytes(size - 14)))


def tagged(frame: bytes, vid: int, pcp: int) -> bytes:
    ether = Ether(frame)
    return bytes(Ether(dst=ether.dst, src=ether.src) / Dot1Q(vlan=vid, prio=pcp, type=ether.type) / ether.payload)


class Port:
    """The port between its streams; `configure` sets what it names and leaves the rest."""

    def __init__(self, dut):
        self.dut = dut
        self.width = len(dut.m_axis_mac_tdata) // 8
        bus = AxiStreamBus.from_prefix
        self.roce = AxiStreamSource(bus(dut, "s_axis_roce"), dut.clk, dut.rst)
        self.service = AxiStreamSource(bus(dut, "s_axis_service"), dut.clk, dut.rst)
        self.to_mac = AxiStreamSink(bus(dut, "m_axis_mac"), dut.clk, dut.rst)
        self.from_mac = AxiStreamSource(bus(dut, "s_axis_mac"), dut.clk, dut.rst)
        self.rx = AxiStreamSink(bus(dut, "m_axis_rx"), dut.clk, dut.rst)
        for model in (self.roce, self.service, self.to_mac, self.from_mac, self.rx):
            model.log.setLevel("WARNING")
        self.settings: dict[str, int] = {}
        self.counts = Counter()
        self.holes = 0  # cycles inside a frame in which the MAC, ready, was offered nothing
        self.cycle = 0

    def configure(self, **settings: int) -> None:
        self.settings |= {CFG[name]: value for name, value in settings.items()}
        self.dut.cfg.value = structs.pack("port_cfg_t", **self.settings)

    async def watch(self) -> None:
        inside = False
        while True:
            await FallingEdge(self.dut.clk)
            self.cycle += 1
            for name, pulse in structs.unpack("port_stat_t", int(self.dut.stat.value)).items():
                self.counts[name] += pulse
            if self.dut.m_axis_mac_tready.value == 1:
                valid = self.dut.m_axis_mac_tvalid.value == 1
                self.holes += inside and not valid
                inside = self.dut.m_axis_mac_tlast.value != 1 if valid else inside

    async def receive(self, frame: bytes, bad: bool = False) -> None:
        await self.from_mac.send(AxiStreamFrame(frame, tuser=[0] * (len(frame) - 1) + [int(bad)]))

    async def sent(self) -> bytes:
        return bytes((await self.to_mac.recv()).tdata)

    def received(self) -> list[bytes]:
        """All good frames so far."""
        frames = []
        while not self.rx.empty():
            frame = self.rx.recv_nowait(compact=False)
            if not frame.tuser[-1]:
                frames.append(bytes(octet for octet, keep in zip(frame.tdata, frame.tkeep, strict=True) if keep))
        return frames


async def start(dut, **settings: int) -> Port:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.local_mac.value = mac_int(LOCAL_MAC)
    dut.level_bytes.value = 0
    dut.line_share.value = 0
    port = Port(dut)
    port.configure(**settings)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    cocotb.start_soon(port.watch())
    return port


async def send_both(port: Port, rng, count: int, sizes) -> dict[int, list[bytes]]:
    frames = {ROCE: [], SERVICE: []}
    for _ in range(count):
        for kind, source in ((ROCE, port.roce), (SERVICE, port.service)):
            frame = data(rng, kind, rng.choice(sizes))
            frames[kind].append(frame)
            await source.send(frame)
    return frames


LENGTHS = [*range(18, 200), 1514, 4095, 4154, 9014]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stalled=[False, True])
async def frames_leave_whole_and_in_turns_whoever_made_them(dut, stalled):
    rng = seed()
    port = await start(dut)
    if stalled:
        port.to_mac.set_pause_generator(stalls(rng, 0.4))
    frames = await send_both(port, rng, 60, LENGTHS)
    got = {ROCE: [], SERVICE: []}
    order = []
    for _ in range(120):
        frame = await port.sent()
        order.append(Ether(frame).type)
        got[order[-1]].append(frame)
    assert got == frames
    assert all(a != b for a, b in itertools.pairwise(order)), "one of two that wait was served twice"
    assert port.holes == 0


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(stalled=[False, True])
async def every_frame_but_mac_control_gets_the_tag_of_its_kind(dut, stalled):
    rng = seed()
    pcp = {ROCE: rng.randrange(8), SERVICE: rng.randrange(8)}
    vid = rng.randrange(1, 4095)
    port = await start(dut, vlan_enable=1, vid=vid, pcp_data=pcp[ROCE], pcp_services=pcp[SERVICE])
    if stalled:
        port.to_mac.set_pause_generator(stalls(rng, 0.4))
    for size in rng.sample(LENGTHS, len(LENGTHS)):
        kind = rng.choice([ROCE, SERVICE])
        frame = data(rng, kind, size)
        await (port.roce if kind == ROCE else port.service).send(frame)
        assert await port.sent() == tagged(frame, vid, pcp[kind]), f"{size} bytes"
    frames = await send_both(port, rng, 40, LENGTHS)
    got = [await port.sent() for _ in range(80)]
    for kind in (ROCE, SERVICE):
        expected = [tagged(frame, vid, pcp[kind]) for frame in frames[kind]]
        assert [frame for frame in got if Ether(frame)[Dot1Q].type == kind] == expected
    assert port.holes == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(enable=[0, 1], paused=[False, True])
async def a_frame_is_taken_by_its_vlan_and_loses_its_tag(dut, enable, paused):
    rng = seed()
    ours = rng.randrange(2, 4095)
    port = await start(dut, vlan_enable=enable, vid=ours)
    if paused:
        port.from_mac.set_pause_generator(stalls(rng, 0.3))
    expected, dropped = [], 0
    for size in rng.sample(LENGTHS, len(LENGTHS)):
        frame = data(rng, ROCE, size)
        vid = rng.choice([None, 0, ours, ours ^ 1, 4095 - ours])
        bad = rng.random() < 0.1
        await port.receive(frame if vid is None else tagged(frame, vid, rng.randrange(8)), bad)
        accepted = vid in ((0, ours) if enable else (0, None))
        expected += [frame] if accepted and not bad else []
        dropped += not accepted and not bad
    await port.from_mac.wait()
    await ClockCycles(dut.clk, 8)
    assert port.received() == expected
    assert port.counts["rx_vlan_drop"] == dropped


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(enable=[0, 1])
async def bad_frames_cut_short_anywhere_do_not_spoil_the_next(dut, enable):
    rng = seed()
    port = await start(dut, vlan_enable=enable, vid=7)
    expected = []
    for _ in range(100):
        cut = tagged(data(rng, ROCE, 80), 7, 1)[: rng.randint(1, 80)]
        await port.receive(cut, bad=True)
        frame = data(rng, ROCE, rng.randint(60, 90))
        expected.append(frame)
        await port.receive(tagged(frame, rng.choice([0, 7]) if enable else 0, 0))
    await port.from_mac.wait()
    await ClockCycles(dut.clk, 8)
    assert port.received() == expected
    assert port.counts["rx_vlan_drop"] == 0


# Control frame, what is obeyed (pause, PFC), and whose frames go on.
PAUSES = {
    "pause": (lambda ours: pause(60), 1, 1, set()),
    "pause_not_obeyed": (lambda ours: pause(60), 0, 1, {ROCE, SERVICE}),
    "pfc": (lambda ours: pfc({ours: 60}), 1, 1, {SERVICE}),
    "pfc_not_obeyed": (lambda ours: pfc({ours: 60}), 1, 0, {ROCE, SERVICE}),
    "pfc_of_others": (lambda ours: pfc({c: 60 for c in range(8) if c != ours}), 1, 1, {ROCE, SERVICE}),
}


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(case=list(PAUSES))
async def a_pause_holds_what_it_is_for_between_frames(dut, case):
    rng = seed()
    our_class = rng.randrange(8)
    control, obey_pause, obey_pfc, free = PAUSES[case]
    port = await start(dut, obey_pause=obey_pause, obey_pfc=obey_pfc, traffic_class=our_class)
    port.to_mac.set_pause_generator(stalls(rng, 0.1))
    frames = await send_both(port, rng, 150, range(60, 300))
    await ClockCycles(dut.clk, 30)
    await port.receive(control(our_class))
    await port.from_mac.wait()
    await ClockCycles(dut.clk, 6)
    while not port.to_mac.empty():
        port.to_mac.recv_nowait()
    await ClockCycles(dut.clk, int(30 * CYCLES_PER_QUANTA))
    assert port.dut.tx_paused.value == (ROCE not in free)
    seen = Counter()
    while not port.to_mac.empty():
        seen[Ether(bytes(port.to_mac.recv_nowait().tdata)).type] += 1
    for kind in (ROCE, SERVICE):
        assert seen[kind] >= 2 if kind in free else seen[kind] <= 1  # one may have been on its way
    assert port.holes == 0 and port.counts["rx_pause"] + port.counts["rx_pfc"] == 1
    await ClockCycles(dut.clk, int(60 * CYCLES_PER_QUANTA))
    while not (port.roce.idle() and port.service.idle()):
        await RisingEdge(dut.clk)
    assert dut.tx_paused.value == 0 and frames


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize((("share", "slower"), [(0, 1), (1, 10), (2, 100)]))
async def a_pause_is_as_long_as_the_line_is_slow(dut, share, slower):
    """IEEE 802.3 31B.3.3: a quanta is 512 bit times of the line as it runs."""
    port = await start(dut, obey_pause=1)
    dut.line_share.value = share
    await ClockCycles(dut.clk, 200)
    for quanta in (1, 7, 40):
        await port.receive(pause(quanta))
        while not int(dut.tx_paused.value):
            await FallingEdge(dut.clk)
        begin = port.cycle
        while int(dut.tx_paused.value):
            await FallingEdge(dut.clk)
        lasted, requested = port.cycle - begin, quanta * CYCLES_PER_QUANTA * slower
        assert requested - slower <= lasted <= 1.01 * requested + 2 * slower, f"{quanta} quanta: {lasted} cycles"


def quanta_of(frame: bytes, use_pfc: bool, classes: int) -> int:
    """Checks a control frame of ours to its last octet; its quanta."""
    ether = Ether(frame)
    assert (ether.dst, ether.src, ether.type, len(frame)) == (CONTROL_MAC, LOCAL_MAC, 0x8808, 60)
    if not use_pfc:
        quanta = ether[MACControlPause].pause_time
        again = MACControlPause(pause_time=quanta)
    else:
        control = ether[MACControlClassBasedFlowControl]
        named = [c for c in range(8) if classes >> c & 1]
        (quanta,) = {getattr(control, f"c{c}_pause_time") for c in named}
        fields = {f"c{c}_enabled": 1 for c in named} | {f"c{c}_pause_time": quanta for c in named}
        again = MACControlClassBasedFlowControl(**fields)
    assert bytes(Ether(dst=CONTROL_MAC, src=LOCAL_MAC, type=0x8808) / again).ljust(60, b"\0") == frame
    return quanta


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(use_pfc=[False, True])
async def a_full_buffer_stops_the_peer_until_it_has_drained(dut, use_pfc):
    rng = seed()
    classes, requested = rng.randrange(1, 256), 400
    port = await start(
        dut, send_pause=1, send_pfc=int(use_pfc), classes=classes, quanta=requested, vlan_enable=1, vid=5
    )
    port.configure(xoff_bytes=12000, xon_bytes=6000)
    await send_both(port, rng, 200, [1500])  # the line is busy with others meanwhile
    output = []  # (cycle, quanta)

    async def listen():
        while True:
            frame = await port.sent()
            if frame[12:14] == b"\x88\x08":
                output.append((port.cycle, quanta_of(frame, use_pfc, classes)))

    cocotb.start_soon(listen())
    dut.level_bytes.value = 12000  # at the threshold, not above
    await ClockCycles(dut.clk, 300)
    assert output == []
    dut.level_bytes.value = 12001
    raised = port.cycle
    hold = int(4 * requested * CYCLES_PER_QUANTA)
    await ClockCycles(dut.clk, hold // 2)
    dut.level_bytes.value = 6000  # below XOFF and not below XON: still stopped
    await ClockCycles(dut.clk, hold // 2)
    assert output and all(quanta == requested for _, quanta in output)
    assert output[0][0] - raised <= 2 * 1520 // port.width + 20
    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(output)]
    assert max(gaps) < requested * CYCLES_PER_QUANTA, "the peer's timer ran out"
    assert min(gaps) > 0.4 * requested * CYCLES_PER_QUANTA, "refreshed more often than needed"
    before = len(output)
    dut.level_bytes.value = 5999
    await ClockCycles(dut.clk, 600)
    assert [quanta for _, quanta in output[before:]] == [0], "XON is said once"
    count = port.counts["tx_pfc" if use_pfc else "tx_pause"]
    assert count == len(output) and port.counts["tx_pause" if use_pfc else "tx_pfc"] == 0
    assert port.holes == 0
