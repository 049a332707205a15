# SPDX-License-Identifier: Apache-2.0
"""AdvCam section VI A, as in the paper: cocotb runs the gateware, its frames go to a real Soft-RoCE responder, and
the emulated switch sits in between. The responder is the kernel's rdma_rxe in the machine of `tests/softroce`.

The machine needs the programs that `cargo build --release --workspace --all-targets` makes, as `make test` does.
"""

import hashlib
import json
import sys

import cocotb
from cocotb.triggers import ClockCycles
from lib import cable
from lib.board import RESET, RTS, SUCCESS, Board, start
from lib.cable import time_limit
from lib.emulated_switch import EmulatedSwitch
from lib.rates import cuts_of, sample_rates, set_dcqcn
from lib.rc_peer import QPN_BASE, Peer, Seen
from lib.roce import LOCAL_IP, LOCAL_MAC, has_imm, has_reth, ip_int, mac_int
from lib.rtl import REPO
from lib.runner import seed
from lib.tops import WIDTHS
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

sys.path.insert(0, str(REPO / "tests" / "softroce"))

import build
import qemu
from machine import Machine, frames

BENCHES = WIDTHS

QP, PSN, ACTED = 0, 0xFFFF80, 300
SWITCH_MAC, CNP = "02:00:00:00:5a:01", 0x81
ANSWER_S = 20  # real time; an answer takes 0.3 ms on an idle host


class SoftRoce(Peer):
    """The far end of the cable is the machine. Simulated time stops while it answers: no host is too slow."""

    link = None  # its Unix datagram socket

    def __init__(self, *arguments, **settings):
        self.early: list[bytes] = []  # answers that came before a CNP
        super().__init__(*arguments, **settings)

    async def handle(self, raw: bytes, start) -> None:
        frame = Ether(raw)
        bth = frame[BTH]
        body = bytes(bth.payload)
        skip = 16 * has_reth(bth.opcode) + 4 * has_imm(bth.opcode)
        packet = Seen(start / 1000, QP, bth.psn, bth.opcode, body[skip : len(body) - bth.padcount], len(raw) + 24)
        self.seen.append(packet)
        self.verdict(packet)
        self.link.send(raw)
        while bth.ackreq:
            reply = self.early.pop(0) if self.early else self.link.recv(9216)
            answered = Ether(reply)
            if AETH in answered:
                await self.send(reply)
                if answered[BTH].psn == bth.psn:
                    break

    async def notify(self, qp: int) -> None:
        """The emulated switch's CNP passes the machine's kernel, which routes it to the gateware."""
        sent = self.lower() / cnp(QPN_BASE + qp)
        sent.src, sent.dst = SWITCH_MAC, qemu.MAC
        self.link.send(bytes(sent))
        while (routed := Ether(frame := self.link.recv(9216))) and (BTH not in routed or routed[BTH].opcode != CNP):
            self.early.append(frame)
        assert (routed.src, routed.dst, routed[IP].ttl) == (qemu.MAC, LOCAL_MAC, sent[IP].ttl - 1)
        await self.send(frame)

    def lower(self):
        """Of the emulated switch's CNPs: as if they came from the machine, which is whom the gateware listens to."""
        return Ether(src=qemu.MAC, dst=LOCAL_MAC) / IP(src=qemu.ADDRESS, dst=LOCAL_IP) / UDP(sport=4791, chksum=0)


def listen(machine: Machine, slots: int, slot_bytes: int, mtu: int) -> dict:
    """Opens a ring in the machine for the gateware's queue pair; its number, key and address."""
    machine.check(f"ip route add {LOCAL_IP}/32 dev eth0; arp -s {LOCAL_IP} {LOCAL_MAC}")
    # The CNPs that it routes have its own source address, which the gateware expects of them.
    ipv4 = {"ip_forward": 1, "conf/all/accept_local": 1, "conf/all/rp_filter": 0, "conf/eth0/rp_filter": 0}
    machine.check("; ".join(f"echo {value} > /proc/sys/net/ipv4/{name}" for name, value in ipv4.items()))
    peer = {"ip": LOCAL_IP, "qpn": QPN_BASE + QP, "psn": PSN, "mtu": mtu, "rnr_us": 640}
    plan = {"qps": [peer], "slots": slots, "slot_bytes": slot_bytes, "receives": slots, "messages": slots}
    machine.start("sink", f"verbs_sink '{json.dumps(plan | {'dump': '/tmp/ring', 'timeout_s': 300})}'")
    return json.loads(machine.check("job line sink 1 120"))["qps"][0]


async def connect(board: Board, end: dict, mtu: int) -> None:
    """Aims the gateware's queue pair at the machine's."""
    await board.open(QP, mtu=mtu.bit_length() - 8, ack_timeout=14)
    write = board.registers.write
    await write("qp.state", RESET, QP)
    await write("qp.dst_mac_hi", mac_int(qemu.MAC) >> 32, QP)
    await write("qp.dst_mac_lo", mac_int(qemu.MAC) & 0xFFFFFFFF, QP)
    await write("qp.dst_ip", ip_int(qemu.ADDRESS), QP)
    await write("qp.dest_qpn", end["qpn"], QP)
    await write("qp.rkey", end["rkey"], QP)
    await write("qp.state", RTS, QP)


async def transfer(
    dut, settle: dict, slots: int, slot_bytes: int, switch: dict, mtu: int = 1024
) -> tuple[Board, list, EmulatedSwitch]:
    """Fills the machine's ring through the emulated switch and compares every byte of it."""
    payload = seed().randbytes(slots * slot_bytes)
    with Machine(build.build(log=dut._log.info)) as machine, frames(machine) as SoftRoce.link:
        SoftRoce.link.settimeout(ANSWER_S)
        end = listen(machine, slots, slot_bytes, mtu)
        board = await start(dut, {QP: PSN}, SoftRoce)
        await connect(board, end, mtu)
        await set_dcqcn(board, **settle)
        watched = EmulatedSwitch(board.peer, board.line, QP, **switch)
        samples = await sample_rates(board, QP, octets=512)
        for slot in range(slots):
            at = slot * slot_bytes
            await board.post(QP, payload[at : at + slot_bytes], slot, end["base"] + at, imm=slot)
        assert [await board.completion() for _ in range(slots)] == [(QP, slot, SUCCESS) for slot in range(slots)]
        await ClockCycles(dut.clk, ACTED)
        received = json.loads(machine.wait("sink", 60).output.splitlines()[-1])
        completions = [completion[1:] for completion in received["completions"]]
        assert completions == [[slot, "Success", "write_imm", slot, slot_bytes] for slot in range(slots)]
        assert machine.check("sha256sum /tmp/ring0").split()[0] == hashlib.sha256(payload).hexdigest()
    assert await board.count("packets_retransmitted") == 0, "a work request was lost on its way"
    return board, samples, watched


@cocotb.test(**time_limit(3))
async def figure_9_against_a_real_soft_roce_responder(dut):
    """Threshold half the line, window 5000 words of 8 octets: the first CNP halves R_C, later ones cut by less."""
    settle = {"g_shift": 4, "alpha_interval": 22_400, "increase_interval": 115_000, "decrease_interval": 4_000}
    switch = {"threshold": 0.5, "cooldown": 81_250}
    board, samples, watched = await transfer(dut, settle, slots=6, slot_bytes=53_000, switch=switch, mtu=4096)
    cuts = cuts_of(samples)
    assert len(cuts) == len(watched.notified_ns) == 3
    for before, after in cuts:
        dut._log.info(f"alpha {before.alpha:.3f}: R_C {before.rate_current} to {after.rate_current}")
        assert abs(1 - after.rate_current / before.rate_current - before.alpha / 2) < 1e-4
    first, second, third = (before.alpha for before, _ in cuts)
    rate = board.line.rate
    assert (first, cuts[0][0].rate_current, cuts[0][1].rate_current) == (1, rate, rate - rate // 2)
    assert 0.7 < second < 0.9 and 0.2 < third < 0.4


@cocotb.test(**time_limit(3))
async def a_storm_of_cnps_loses_no_work_request(dut):
    """AdvCam VI B: none lost "even when the threshold was lowered aggressively"."""
    lowest = cable.line().rate // 10
    settle = {"increase_interval": 5_600, "decrease_interval": 1_600, "rate_min": lowest}
    switch = {"threshold": 0.05, "cooldown": 3_200, "window": 8_000}
    board, samples, watched = await transfer(dut, settle, slots=8, slot_bytes=5_000, switch=switch)
    assert len(watched.notified_ns) > 20
    assert await board.registers.read("qp.rp_cnp_handled", QP) == len(watched.notified_ns)
    assert min(sample.rate_current for sample in samples) == lowest
