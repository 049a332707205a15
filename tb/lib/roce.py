# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 frames by scapy, and the packed structs of penstock_pkg that describe them."""

import random
from dataclasses import dataclass, fields, replace

from cocotb.triggers import RisingEdge
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from lib import structs

LOCAL_MAC = "02:50:53:54:4b:01"
LOCAL_IP = "10.0.1.2"
PEER_MAC = "02:50:53:54:4b:fe"
PEER_IP = "10.0.9.7"
TTL = 64
ICRC_BYTES = 4

# RC opcodes (IBTA table 38) by verb, place in the message and immediate data.
WRITE_OPCODES = {"FIRST": 0x06, "MIDDLE": 0x07, "LAST": 0x08, "LAST_IMM": 0x09, "ONLY": 0x0A, "ONLY_IMM": 0x0B}
SEND_OPCODES = {"FIRST": 0x00, "MIDDLE": 0x01, "LAST": 0x02, "LAST_IMM": 0x03, "ONLY": 0x04, "ONLY_IMM": 0x05}
OPCODES = [*WRITE_OPCODES.values(), *SEND_OPCODES.values()]


def mac_int(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def ip_int(ip: str) -> int:
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


def mac_str(mac: int) -> str:
    return mac.to_bytes(6, "big").hex(":")


def ip_str(ip: int) -> str:
    return ".".join(map(str, ip.to_bytes(4, "big")))


def has_reth(opcode: int) -> bool:
    return opcode in (0x06, 0x0A, 0x0B)


def has_imm(opcode: int) -> bool:
    return opcode in (0x03, 0x05, 0x09, 0x0B)


@dataclass
class TxHeader:
    """penstock_pkg::tx_hdr_t; what has_reth and has_imm say follows from the opcode."""

    dst_mac: int = mac_int(PEER_MAC)
    dst_ip: int = ip_int(PEER_IP)
    udp_sport: int = 0xC123
    tos: int = 0
    opcode: int = WRITE_OPCODES["MIDDLE"]
    dest_qpn: int = 0x12
    psn: int = 0
    ack_req: int = 0
    solicited: int = 0
    va: int = 0
    rkey: int = 0
    dma_len: int = 0
    imm: int = 0
    payload_len: int = 0

    @classmethod
    def random(cls, rng: random.Random, opcode: int, payload_len: int) -> "TxHeader":
        """Every field random, but the two that shape the frame."""
        drawn = cls(**{f.name: rng.getrandbits(structs.fields("tx_hdr_t")[f.name][1]) for f in fields(cls)})
        return replace(drawn, opcode=opcode, payload_len=payload_len)

    def packed(self) -> int:
        parts = {"has_reth": has_reth(self.opcode), "has_imm": has_imm(self.opcode)}
        return structs.pack("tx_hdr_t", **parts, **vars(self))

    def frame(self, payload: bytes) -> bytes:
        """The whole frame, its ICRC by scapy."""
        assert len(payload) == self.payload_len
        pad = -len(payload) % 4
        body = b""
        if has_reth(self.opcode):
            body += self.va.to_bytes(8, "big") + self.rkey.to_bytes(4, "big") + self.dma_len.to_bytes(4, "big")
        if has_imm(self.opcode):
            body += self.imm.to_bytes(4, "big")
        bth = BTH(
            opcode=self.opcode,
            solicited=self.solicited,
            padcount=pad,
            dqpn=self.dest_qpn,
            ackreq=self.ack_req,
            psn=self.psn,
        )
        lower = (
            Ether(dst=mac_str(self.dst_mac), src=LOCAL_MAC, type=0x0800)
            / IP(src=LOCAL_IP, dst=ip_str(self.dst_ip), tos=self.tos, ttl=TTL, id=0, flags="DF")
            / UDP(sport=self.udp_sport, dport=4791, chksum=0)
        )
        return roce_bytes(lower / bth / Raw(body + payload + bytes(pad)))


def roce_bytes(packet: Packet) -> bytes:
    """Built bytes; scapy binds the layers of another opcode only to what follows, so Raw is safe."""
    return bytes(packet)


def random_len(rng: random.Random) -> int:
    """A payload length, short ones as likely as long ones."""
    return min(4096, int(2 ** rng.uniform(0, 12.01)) - 1)


async def drive_headers(dut, headers: list[TxHeader], pause=None) -> None:
    """Offers the headers one by one on hdr/hdr_valid/hdr_ready; `pause` yields True to wait a cycle."""
    for header in headers:
        while pause is not None and next(pause):
            await RisingEdge(dut.clk)
        dut.hdr.value = header.packed()
        dut.hdr_valid.value = 1
        await RisingEdge(dut.clk)
        while dut.hdr_ready.value != 1:
            await RisingEdge(dut.clk)
        dut.hdr_valid.value = 0
