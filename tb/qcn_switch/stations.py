# SPDX-License-Identifier: Apache-2.0
"""The stations at the ports of a QCN switch: one loop moves the beats of all lines at the line's rate.

A station sends its frames one after the other, obeys pause and PFC like a host's port, and takes what the switch sends
as fast as its line is.
"""

import os
import subprocess
from collections import Counter, deque
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Event, First, RisingEdge
from cocotb.utils import get_sim_time
from lib import structs
from lib.mac_control import PEER_MAC
from lib.roce import mac_int
from lib.rust_model import model

PORTS = 4
QUEUES = int(os.environ.get("PARAM_N_QUEUES", "2"))
CLK_KHZ = int(os.environ.get("PARAM_CLK_KHZ", "156250"))
LINE_MBPS = int(os.environ.get("PARAM_LINE_MBPS", "10000"))
CLOCK_NS = 10
RATE = LINE_MBPS * 125 / CLK_KHZ  # octets per cycle
CYCLES_PER_QUANTA = 64 / RATE
OVERHEAD = 24  # octets of a frame on the line besides its own: preamble, FCS, gap
SWITCH_MAC = PEER_MAC
STATIONS = [f"02:00:00:00:01:{port:02x}" for port in range(PORTS)]


@dataclass
class Line:
    """One port's line, seen from the station."""

    to_send: deque = field(default_factory=deque)  # (frame, bad)
    received: list[bytes] = field(default_factory=list)
    sent: int = 0
    honours_pause: bool = True
    back_to_back: bool = False  # beats without the line's gaps, faster than any MAC
    frame: tuple[bytes, bool] | None = None
    at: int = 0
    owed: float = 0.0  # octets of line time until the next beat may be sent
    paused: list[float] = field(default_factory=lambda: [0.0] * 9)  # cycle until which; 8: all classes
    partial: bytearray = field(default_factory=bytearray)
    taken_owed: float = 0.0  # ... be received

    @property
    def busy(self) -> bool:
        return bool(self.to_send or self.frame or self.owed or self.partial or self.taken_owed)


class Switch:
    """The gateware with a station at each port."""

    def __init__(self, dut):
        self.dut = dut
        self.lines = [Line() for _ in range(PORTS)]
        self.counts = [Counter() for _ in range(PORTS)]
        self.arrivals: list[tuple[int, int, int]] = []  # frames that joined a queue: queue, octets, octets with it
        self.peak = Counter()
        self.begun_ns = get_sim_time("ns")
        self.more = Event()  # to send
        self.settings: dict[str, int] = {}

    @property
    def cycle(self) -> int:
        return round((get_sim_time("ns") - self.begun_ns) / CLOCK_NS)

    def configure(self, **settings: int) -> None:
        """Sets fields of switch_cfg_t, `__` for a dot, and leaves the rest."""
        self.settings |= settings
        self.dut.cfg.value = structs.pack("switch_cfg_t", **self.settings)

    async def write_entry(self, index: int, mac: str, port: int) -> None:
        word = structs.pack("mac_entry_t", valid=1, is_static=1, mac=mac_int(mac), port_index=port)
        self.dut.table_index.value, self.dut.table_entry.value = index, word
        self.dut.table_valid.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.table_valid.value = 0

    def send(self, port: int, frame: bytes, bad: bool = False) -> None:
        self.lines[port].to_send.append((frame, bad))
        self.more.set()

    def levels(self) -> list[int]:
        """Octets in each queue, queue q of port p at p * QUEUES + q."""
        word = int(self.dut.level.value)
        return [word >> 24 * queue & 0xFFFFFF for queue in range(PORTS * QUEUES)]

    async def idle(self, limit: int = 2_000_000) -> None:
        """Waits until all frames have been sent and nothing has left the switch for as long as a long frame takes."""
        quiet, end = 0, self.cycle + limit
        while quiet < 400 + 2000 / RATE:
            await ClockCycles(self.dut.clk, 100)
            assert self.cycle < end, f"frames still wait after {limit} cycles: {self.levels()}"
            busy = any(line.to_send or line.frame or line.partial for line in self.lines) or any(self.levels())
            quiet = 0 if busy else quiet + 100

    # ---- the loop --------------------------------------------------------------------------------
    async def run(self) -> None:
        dut, ready, previous = self.dut, (1 << PORTS) - 1, None
        stat_bits = structs.width("switch_stat_t")
        dut.m_axis_tready.value = ready
        while True:
            await RisingEdge(dut.clk)
            if taken := int(dut.m_axis_tvalid.value) & ready:
                data, keep = int(dut.m_axis_tdata.value), int(dut.m_axis_tkeep.value)
                last = int(dut.m_axis_tlast.value)
                for port in range(PORTS):
                    if taken >> port & 1:
                        octets = (keep >> 8 * port & 0xFF).bit_count()
                        word = (data >> 64 * port & (1 << 64) - 1).to_bytes(8, "little")[:octets]
                        self.take(port, word, bool(last >> port & 1))
            self.watch(stat_bits)
            allowed = 0
            for port, line in enumerate(self.lines):
                if line.taken_owed:
                    line.taken_owed = max(0.0, line.taken_owed - RATE)
                allowed |= (line.taken_owed < RATE) << port
            if allowed != ready:
                dut.m_axis_tready.value = ready = allowed
            beats = [self.beat(line) if line.owed or line.frame or line.to_send else None for line in self.lines]
            now = any(beats)
            if now or previous:
                self.drive(beats)
            previous = now
            if not (now or allowed != (1 << PORTS) - 1 or any(line.busy for line in self.lines)):
                await self.wait_while_silent()

    async def wait_while_silent(self) -> None:
        """Waits until a station or the switch has something to send or to count: most cycles of a test have nothing."""
        dut = self.dut
        self.more.clear()
        if not (int(dut.m_axis_tvalid.value) or int(dut.stat.value) or int(dut.joins.value)):
            changes = (signal.value_change for signal in (dut.m_axis_tvalid, dut.stat, dut.joins))
            await First(self.more.wait(), *changes)

    def take(self, port: int, word: bytes, last: bool) -> None:
        line = self.lines[port]
        line.partial += word
        line.taken_owed += len(word) + (OVERHEAD if last else 0)
        if last:
            frame = bytes(line.partial)
            line.partial.clear()
            line.received.append(frame)
            if frame[12:14] == b"\x88\x08":
                self.obey(line, frame)

    def obey(self, line: Line, frame: bytes) -> None:
        """Pause and PFC act on the station as on a host's port."""
        half = [int.from_bytes(frame[at : at + 2], "big") for at in range(14, 34, 2)]
        quanta = {8: half[1]} if half[0] == 1 else {c: half[2 + c] for c in range(8) if half[1] >> c & 1}
        for timer, value in quanta.items():
            line.paused[timer] = self.cycle + value * CYCLES_PER_QUANTA

    def watch(self, stat_bits: int) -> None:
        if word := int(self.dut.stat.value):
            for port in range(PORTS):
                if port_bits := word >> stat_bits * port & (1 << stat_bits) - 1:
                    self.counts[port].update({n: v for n, v in structs.unpack("switch_stat_t", port_bits).items() if v})
        if joins := int(self.dut.joins.value):
            then = int(self.dut.level_then.value)
            octets = structs.unpack("switch_pkg::frame_t", int(self.dut.frame_q.value))["bytes"]
            for queue in range(PORTS * QUEUES):
                if joins >> queue & 1:
                    level = then >> 24 * queue & 0xFFFFFF
                    self.arrivals.append((queue, octets, level))
                    self.peak[queue] = max(self.peak[queue], level)

    def beat(self, line: Line) -> tuple[bytes, bool, bool] | None:
        """The station's next beat: octets, last, bad."""
        line.owed = max(0.0, line.owed - RATE)
        if line.owed >= RATE:
            return None
        if line.frame is None:
            if not line.to_send or (line.honours_pause and self.stopped(line, line.to_send[0][0])):
                return None
            line.frame, line.at = line.to_send.popleft(), 0
        frame, bad = line.frame
        octets = frame[line.at : line.at + 8]
        line.at += 8
        last = line.at >= len(frame)
        line.owed += 0 if line.back_to_back else len(octets) + (OVERHEAD if last else 0)
        if last:
            line.frame = None
            line.sent += 1
        return octets, last, bad and last

    def stopped(self, line: Line, frame: bytes) -> bool:
        return self.cycle < max(line.paused[8], line.paused[priority_of(frame)])

    def drive(self, beats: list[tuple[bytes, bool, bool] | None]) -> None:
        data = keep = valid = last = user = 0
        for port, beat in enumerate(beats):
            if beat:
                octets, ends, bad = beat
                data |= int.from_bytes(octets, "little") << 64 * port
                keep |= ((1 << len(octets)) - 1) << 8 * port
                valid |= 1 << port
                last |= ends << port
                user |= bad << port
        dut = self.dut
        dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tvalid.value = data, keep, valid
        dut.s_axis_tlast.value, dut.s_axis_tuser.value = last, user


def priority_of(frame: bytes) -> int:
    """The class of a frame: its tag's, or DSCP / 8."""
    if frame[12:14] == b"\x81\x00":
        return frame[14] >> 5
    at = 16 if frame[12:14] == b"\x22\xe9" else 12
    return frame[at + 3] >> 5 if frame[at : at + 2] == b"\x08\x00" else 0


async def start(dut, **settings: int) -> Switch:
    """A switch after reset that knows the stations of STATIONS, with its stations on their lines."""
    cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
    switch = Switch(dut)
    queue_of_priority = sum((priority * QUEUES // 8) << 3 * priority for priority in range(8))
    switch.configure(
        **{
            "mac": mac_int(SWITCH_MAC),
            "queue_of_priority": queue_of_priority,
            "limit_bytes": 200_000,
            "cnm_priority": 6,
            "pause__obey_pause": 1,
            "pause__obey_pfc": 1,
            "pause__classes": 0xFF,
            "pause__quanta": 0xFFFF,
            "pause__xoff_bytes": 130_000,
            "pause__xon_bytes": 110_000,
            **settings,
        }
    )
    dut.rst.value, dut.table_valid.value = 1, 0
    dut.s_axis_tvalid.value = 0
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    for port, mac in enumerate(STATIONS):
        await switch.write_entry(port, mac, port)
    cocotb.start_soon(switch.run())
    return switch


def model_answers(params: list[int], arrivals: list[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    """The model's messages for these frames, in order: index of the point, |F_b|, queue, queue at the sample before.

    `params` are q_eq, w, jitter, seed and the eight of sample_bytes.
    """
    frames = [(queue // QUEUES * 8 + queue % QUEUES, octets, level) for queue, octets, level in arrivals]
    lines = [" ".join(map(str, words)) for words in (params, *frames)]
    command = [model("congestion_points"), "answer"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(answers) == len(frames), done.stderr
    return [
        (index, feedback, level, old)
        for (index, _, level), (feedback, old) in zip(frames, answers, strict=True)
        if feedback
    ]
