# SPDX-License-Identifier: Apache-2.0
"""Every packet gives exactly one acknowledgement, one notification, or one counted drop."""

from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from lib import structs
from lib.runner import Bench, seed

BENCH = Bench(top="ack_receiver", configs=[{"N_QP": 4}, {"N_QP": 256}])

BASE = 0xABC100
ACK, CNP, READ_RESPONSE = 0x11, 0x81, 0x10
OK, NAK_SEQ, RNR, INV_REQ, ACCESS, REM_OP = range(6)
STATS = ("stat_unknown_qp", "stat_wrong_peer", "stat_not_ready", "stat_unserved")


@dataclass(frozen=True)
class Packet:
    src_ip: int
    qpn: int
    opcode: int = ACK
    psn: int = 0
    syndrome: int = 0
    becn: int = 0
    msn: int = 0

    def bits(self) -> int:
        """rx_roce_t."""
        return structs.pack(
            "rx_roce_t", src_ip=self.src_ip, opcode=self.opcode, becn=self.becn, dest_qpn=self.qpn, psn=self.psn,
            syndrome=self.syndrome, msn=self.msn,
        )  # fmt: skip


def peer(qp: int) -> int:
    return 0x0A000000 + qp * 7 + 1


def row(qp: int) -> int:
    """qp_cfg_t with nothing but dst_ip."""
    return structs.pack("qp_cfg_t", dst_ip=peer(qp))


def expected(packet: Packet, ready: int, n_qp: int):
    """What the rules of IBTA 9.7.5.2.8 and A17 make of a packet; a drop is the name of its counter."""
    qp = packet.qpn - BASE
    if not 0 <= qp < n_qp:
        return "stat_unknown_qp"
    if packet.src_ip != peer(qp):
        return "stat_wrong_peer"
    if not ready >> qp & 1:
        return "stat_not_ready"
    if packet.opcode == CNP:
        return ("cnp", qp)
    value = packet.syndrome & 31
    kinds = {0: OK, 1: RNR, 3: {0: NAK_SEQ, 1: INV_REQ, 2: ACCESS, 3: REM_OP}.get(value)}
    kind = kinds.get(packet.syndrome >> 5)
    if packet.opcode != ACK or kind is None:
        return "stat_unserved"
    return ("ack", qp, kind, packet.psn, value, packet.msn)


async def table(dut):
    """The queue-pair table's read port: the row one cycle after the read."""
    while True:
        await RisingEdge(dut.clk)
        if dut.cfg_rd.value:
            dut.cfg.value = row(int(dut.cfg_qp.value))


async def watch(dut, seen: list):
    while True:
        await RisingEdge(dut.clk)
        await ReadOnly()
        if dut.ack_valid.value:
            ack = structs.unpack("ack_event_t", int(dut.ack.value))
            seen.append(("ack", *(ack[name] for name in ("qp", "kind", "psn", "value", "msn"))))
        if dut.cnp_valid.value:
            seen.append(("cnp", int(dut.cnp_qp.value)))
        seen.extend(name for name in STATS if getattr(dut, name).value)


async def start(dut, ready: int) -> list:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.rx_valid.value = 0
    dut.qpn_base.value = BASE
    dut.ready.value = ready
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    seen = []
    cocotb.start_soon(table(dut))
    cocotb.start_soon(watch(dut, seen))
    return seen


async def drive(dut, packets, gap=lambda: 0):
    for packet in packets:
        dut.rx.value = packet.bits()
        dut.rx_valid.value = 1
        await RisingEdge(dut.clk)
        dut.rx_valid.value = 0
        for _ in range(gap()):
            await RisingEdge(dut.clk)
    for _ in range(6):
        await RisingEdge(dut.clk)


@cocotb.test()
async def every_syndrome_of_a_good_packet_has_the_meaning_of_the_ibta_table(dut):
    seen = await start(dut, 0b1111)
    packets = [Packet(peer(2), BASE + 2, ACK, 1000 + s, s, msn=7 * s) for s in range(256)]
    await drive(dut, packets)
    assert seen == [expected(p, 0b1111, 4) for p in packets]
    assert seen[0] == ("ack", 2, OK, 1000, 0, 0) and seen[0x60] == ("ack", 2, NAK_SEQ, 1096, 0, 0x60 * 7)


@cocotb.test()
async def every_opcode_but_acknowledge_and_cnp_is_dropped_and_counted(dut):
    seen = await start(dut, 1)
    packets = [Packet(peer(0), BASE, opcode, 5) for opcode in range(256)]
    await drive(dut, packets)
    assert seen.count("stat_unserved") == 254
    assert ("cnp", 0) in seen and ("ack", 0, OK, 5, 0, 0) in seen


@cocotb.test()
async def random_packets_are_sorted_by_the_rules_back_to_back_or_not(dut):
    rng, n_qp = seed(), int(dut.N_QP.value)
    ready = rng.getrandbits(n_qp)
    seen = await start(dut, ready)
    packets = []
    for _ in range(2000):
        qp = rng.randrange(n_qp)
        qpn = BASE + qp if rng.random() < 0.9 else rng.choice([BASE + n_qp, BASE - 1, qp, rng.getrandbits(24)])
        packets.append(
            Packet(
                src_ip=peer(qp) if rng.random() < 0.8 else rng.getrandbits(32),
                qpn=qpn & 0xFFFFFF,
                opcode=rng.choice([ACK, ACK, ACK, CNP, READ_RESPONSE]),
                psn=rng.getrandbits(24),
                syndrome=rng.choice([rng.randrange(32), 0x20 | rng.randrange(32), 0x60 | rng.randrange(5)]),
                becn=rng.getrandbits(1),
                msn=rng.getrandbits(24),
            )
        )
    await drive(dut, packets, lambda: rng.choice([0, 0, 0, 1, 3]))
    assert seen == [expected(p, ready, n_qp) for p in packets]
