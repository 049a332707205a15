# SPDX-License-Identifier: Apache-2.0
"""Answers to READs fill a line of 25 and of 100 Gb/s: 100.0 % of what their headers leave, near and far.

A peer has 16 READs outstanding, and these are the limit where the line carries more until it can send the next one.
With `PENSTOCK_ALL_SIZES=1` (`make soak`) all sizes, MTUs, numbers of queue pairs and distances; `make bench` has them.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from lib.rc_peer import QPN_BASE
from lib.register_map import Registers
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int, mac_int
from lib.runner import Bench

BENCH = Bench(
    top="read_rate_bench",
    configs=[
        {"DATA_W": 64, "CLK_KHZ": 390_625, "LINE_MBPS": 25_000},
        {"DATA_W": 512, "CLK_KHZ": 322_266, "LINE_MBPS": 100_000},
    ],
    sources=[Path(__file__).parent / "read_rate_bench.sv"],
)

N_QP, DEPTH, RESET, RTS, PERIOD_NS = 16, 16, 0, 3, 10
KEY, BASE, FIRST_PSN = 0xFEED0001, 0x10_0000, 0xFFFFF0
LATENCY = 100  # cycles of the memory
# Of the front end, from a request's end to the start of its answer, with the memory's.
BOARD_CYCLES = LATENCY + 60
# Bytes a cycle, and cycles in a microsecond: 25 Gb/s at 390.625 MHz, 100 Gb/s at 322.266 MHz.
LINES = {25_000: (8.0, 390.625), 100_000: (12.5e9 / 322.265625e6, 322.265625)}
FULL = 0.9995  # 100.0 %


@dataclass
class Load:
    """READs of one size by peers that are as far away: a request comes `us` after the answer that it waits for."""

    size: int
    mtu: int
    queue_pairs: int
    us: float

    @property
    def packets(self) -> int:
        return -(-self.size // self.mtu)

    @property
    def wire_bytes(self) -> int:
        """Of the packets of an answer, preamble to gap; the first and the last have an AETH."""
        return self.size + 82 * self.packets + 4 * min(2, self.packets)

    def cycles(self, line: int) -> int:
        return round(self.us * LINES[line][1])

    def allowed(self, line: int) -> float:
        """The share of the line that the READs outstanding fill if each begins anew only when its answer is there."""
        rate = LINES[line][0]
        turn = self.cycles(line) + BOARD_CYCLES + 98 / rate + self.wire_bytes / rate
        return min(1, DEPTH * self.queue_pairs * self.wire_bytes / (turn * rate))


LOADS = [
    Load(1024, 1024, 16, 1),
    Load(65_536, 4096, 1, 1),
    Load(1 << 20, 1024, 1, 40),
]
if os.environ.get("PENSTOCK_ALL_SIZES"):
    LOADS = [
        Load(size, mtu, queue_pairs, us)
        for us in (1, 160)
        for size in (1024, 5000, 65_536, 1 << 20)
        for mtu in (4096, 1024)
        for queue_pairs in (1, 16)
        if us == 1 or queue_pairs * size >= 1 << 20  # fewer bytes cannot fill the line at a distance
    ]


async def open_queue_pairs(dut, registers: Registers, load: Load, line: int) -> None:
    """After a reset."""
    dut.rst.value = 1
    for name, value in {
        "local_mac": mac_int(LOCAL_MAC), "local_ip": ip_int(LOCAL_IP), "peer_mac": mac_int(PEER_MAC),
        "peer_ip": ip_int(PEER_IP), "qpn_base": QPN_BASE, "rkey": KEY, "va": BASE + 5, "first_psn": FIRST_PSN,
        "size": load.size, "answer_packets": load.packets, "active": load.queue_pairs, "depth": DEPTH,
        "distance": load.cycles(line), "memory_latency": LATENCY, "rate": int(LINES[line][0] * 65536),
        "start": 0, "writes": 0, "measure": 0,
    }.items():  # fmt: skip
        getattr(dut, name).value = value
    await Timer(20 * PERIOD_NS, "ns")
    dut.rst.value = 0
    await Timer(300 * PERIOD_NS, "ns")  # tables clear themselves
    write = registers.write
    for name, value in {
        "local_mac_hi": mac_int(LOCAL_MAC) >> 32, "local_mac_lo": mac_int(LOCAL_MAC) & 0xFFFFFFFF,
        "local_ip": ip_int(LOCAL_IP), "qpn_base": QPN_BASE,
    }.items():  # fmt: skip
        await write(name, value)
    for qp in range(load.queue_pairs):
        await write("qp.state", RESET, qp)  # its rate begins by the parameters, which were not there at once
        for name, value in {
            "dst_mac_hi": mac_int(PEER_MAC) >> 32, "dst_mac_lo": mac_int(PEER_MAC) & 0xFFFFFFFF,
            "dst_ip": ip_int(PEER_IP), "dest_qpn": qp, "init_psn": 7, "read_psn": FIRST_PSN, "read_rkey": KEY,
            "read_base_lo": BASE, "read_length_lo": 2 << 20, "read_depth": DEPTH,
        }.items():  # fmt: skip
            await write(f"qp.{name}", value, qp)
        await registers.write_fields("qp.flow", qp, udp_sport=0xC000 + qp, tos=2)
        transport = {"mtu": load.mtu.bit_length() - 8, "ack_timeout": 14, "retry_cnt": 7, "rnr_retry": 7}
        await registers.write_fields("qp.transport", qp, **transport)
        await write("qp.state", RTS, qp)
        while await registers.read("qp.state", qp) != RTS:
            pass


async def shares(dut, registers: Registers, load: Load, line: int, writes: bool = False) -> tuple[float, float]:
    """Of the line: filled by all frames, and by answers; over the time in which requests pass once."""
    await open_queue_pairs(dut, registers, load, line)
    dut.writes.value, dut.start.value = writes, 1
    await Timer((load.cycles(line) + 4000) * PERIOD_NS, "ns")
    dut.measure.value = 1
    await Timer((load.cycles(line) + 8000) * PERIOD_NS, "ns")
    await RisingEdge(dut.clk)
    assert int(dut.misplaced.value) == int(dut.refused.value) == 0
    assert await registers.read("counters.read_dropped") == 0
    carried = int(dut.elapsed.value) * LINES[line][0]
    return int(dut.wire_bytes.value) / carried, int(dut.answer_bytes.value) / carried


def begin(dut) -> tuple[Registers, int]:
    """Also the line's rate, Mb/s."""
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    return Registers(dut), int(os.environ["PARAM_LINE_MBPS"])


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def answers_fill_the_line_near_and_far(dut):
    (registers, line), failed = begin(dut), []
    for load in LOADS:
        filled, _ = await shares(dut, registers, load, line)
        allowed = load.allowed(line)
        found = {"line": line, "wire_bytes": load.wire_bytes, "filled": filled, "allowed": allowed}
        dut._log.info("rate %s", json.dumps({**asdict(load), **found}))
        if filled < FULL * allowed:
            failed.append((load, filled, allowed))
    assert not failed


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def answers_and_messages_from_rings_in_the_same_memory_fill_the_line_together(dut):
    registers, line = begin(dut)
    for mtu, queue_pairs in ((1024, 16), (4096, 1)):
        load = Load(65_536, mtu, queue_pairs, 1)
        filled, answers = await shares(dut, registers, load, line, writes=True)
        dut._log.info("with messages, MTU %d: %.2f %% filled, %.2f %% by answers", mtu, 100 * filled, 100 * answers)
        assert filled >= FULL and 0.3 < answers / filled < 0.7
