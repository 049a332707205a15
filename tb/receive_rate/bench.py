# SPDX-License-Identifier: Apache-2.0
"""WRITEs and SENDs of peers are taken at the rate of a line of 10, 25 and 100 Gb/s whose frames have the least gap.

None is lost or refused, every byte is in its place, and as many arrive in a time as the line brings. With
`PENSTOCK_ALL_SIZES=1` (`make soak`) all sizes, MTUs and numbers of queue pairs; `make bench` has them.
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
    top="receive_rate_bench",
    configs=[
        {"DATA_W": 64, "CLK_KHZ": 156_250, "LINE_MBPS": 10_000},
        {"DATA_W": 64, "CLK_KHZ": 390_625, "LINE_MBPS": 25_000},
        {"DATA_W": 512, "CLK_KHZ": 322_266, "LINE_MBPS": 100_000},
    ],
    sources=[Path(__file__).parent / "receive_rate_bench.sv"],
)

RTS, PERIOD_NS = 3, 10
KEY, BASE, FIRST_PSN = 0xFEED0001, 0x10_0000, 0xFFFFF0
LATENCY = 100  # cycles of the memory
# Bytes a cycle: 10 Gb/s at 156.25 MHz, 25 Gb/s at 390.625 MHz, 100 Gb/s at 322.266 MHz.
RATES = {10_000: 8.0, 25_000: 8.0, 100_000: 12.5e9 / 322.265625e6}
CYCLES = 24_000  # that are measured
FULL = 0.9995  # 100.0 %


@dataclass
class Load:
    """Messages of one size and kind."""

    verb: str  # WRITE, WRITE_IMM or SEND
    size: int
    mtu: int
    queue_pairs: int

    @property
    def wire_bytes(self) -> int:
        """Of the packets of a message, preamble to gap; the first of a WRITE has a RETH, all are padded to four."""
        packets = -(-self.size // self.mtu)
        extended = (16 if self.verb.startswith("WRITE") else 0) + (4 if self.verb.endswith("IMM") else 0)
        return self.size + -self.size % 4 + 82 * packets + extended

    @property
    def unit(self) -> tuple[int, int]:
        """Frames and bytes of payload after which the lengths of frames repeat."""
        if self.size <= self.mtu or self.size % self.mtu == 0:
            return 1, min(self.size, self.mtu)
        return -(-self.size // self.mtu) * self.queue_pairs, self.size * self.queue_pairs


LOADS = [
    Load("WRITE", 1024, 1024, 16),
    Load("SEND", 5000, 4096, 1),
    Load("WRITE_IMM", 65_536, 1024, 1),
]
if os.environ.get("PENSTOCK_ALL_SIZES"):
    LOADS = [
        Load(verb, size, mtu, queue_pairs)
        for verb in ("WRITE", "WRITE_IMM", "SEND")
        for size in (1024, 5000, 65_536, 1 << 20)
        for mtu in (4096, 1024)
        for queue_pairs in (1, 16)
    ]


async def open_queue_pairs(dut, registers: Registers, load: Load, line: int) -> None:
    """After a reset."""
    dut.rst.value = 1
    for name, value in {
        "local_mac": mac_int(LOCAL_MAC), "local_ip": ip_int(LOCAL_IP), "peer_mac": mac_int(PEER_MAC),
        "peer_ip": ip_int(PEER_IP), "qpn_base": QPN_BASE, "rkey": KEY, "va": BASE + 5, "first_psn": FIRST_PSN,
        "size": load.size, "path_mtu": load.mtu, "active": load.queue_pairs, "sends": load.verb == "SEND",
        "has_imm": load.verb == "WRITE_IMM", "memory_latency": LATENCY, "rate": int(RATES[line] * 65536),
        "unit_frames": load.unit[0], "unit_bytes": load.unit[1], "start": 0, "measure": 0,
    }.items():  # fmt: skip
        getattr(dut, name).value = value
    await Timer(20 * PERIOD_NS, "ns")
    dut.rst.value = 0
    await Timer(2000 * PERIOD_NS, "ns")  # tables clear themselves, parameters get their reset values
    write = registers.write
    for name, value in {
        "local_mac_hi": mac_int(LOCAL_MAC) >> 32, "local_mac_lo": mac_int(LOCAL_MAC) & 0xFFFFFFFF,
        "local_ip": ip_int(LOCAL_IP), "qpn_base": QPN_BASE,
    }.items():  # fmt: skip
        await write(name, value)
    for qp in range(load.queue_pairs):
        for name, value in {
            "dst_mac_hi": mac_int(PEER_MAC) >> 32, "dst_mac_lo": mac_int(PEER_MAC) & 0xFFFFFFFF,
            "dst_ip": ip_int(PEER_IP), "dest_qpn": qp, "read_psn": FIRST_PSN, "read_rkey": KEY,
            "read_base_lo": BASE, "read_length_lo": 2 << 20, "receive": 0x101,
        }.items():  # fmt: skip
            await write(f"qp.{name}", value, qp)
        await registers.write_fields("qp.flow", qp, udp_sport=0xC000 + qp, tos=2)
        transport = {"mtu": load.mtu.bit_length() - 8, "ack_timeout": 14, "retry_cnt": 7, "rnr_retry": 7}
        await registers.write_fields("qp.transport", qp, **transport)
        await write("qp.state", RTS, qp)
        while await registers.read("qp.state", qp) != RTS:
            pass


async def taken(dut, registers: Registers, load: Load, line: int) -> tuple[float, float, bool]:
    """Shares of the line: that its frames fill, and that have arrived; and whether all have, as they were sent."""
    await open_queue_pairs(dut, registers, load, line)
    dut.start.value = 1
    await Timer(3000 * PERIOD_NS, "ns")
    dut.measure.value = 1
    await Timer(CYCLES * PERIOD_NS, "ns")
    await RisingEdge(dut.clk)
    offered = int(dut.offered_bytes.value) / (int(dut.offered_cycles.value) * RATES[line])
    arrived = int(dut.taken_bytes.value) / (int(dut.taken_cycles.value) * RATES[line])
    dut.start.value = 0
    await Timer(6000 * PERIOD_NS, "ns")  # packets that had begun arrive
    await RisingEdge(dut.clk)
    lost = await registers.read("counters.read_dropped")
    whole = int(dut.placed.value) == int(dut.sent.value) > 0 and int(dut.wrong.value) == int(dut.refused.value) == lost
    return offered, arrived, whole and lost == 0


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def messages_are_taken_at_the_rate_of_the_line(dut):
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    registers, line, failed = Registers(dut), int(os.environ["PARAM_LINE_MBPS"]), []
    for load in LOADS:
        offered, arrived, whole = await taken(dut, registers, load, line)
        found = {"line": line, "wire_bytes": load.wire_bytes, "offered": offered, "filled": arrived, "whole": whole}
        dut._log.info("rate %s", json.dumps({**asdict(load), **found}))
        if min(offered, arrived) < FULL or not whole:
            failed.append((load, offered, arrived, whole))
    assert not failed
