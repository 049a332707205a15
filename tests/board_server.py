# SPDX-License-Identifier: Apache-2.0
"""A server for `penstock board`: a link to it, ARP, and an RC responder; headers and ICRC by scapy.

The rules of acceptance are those of `tb/lib/responder.py`.
"""

import ctypes
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tb"))

from lib.responder import OPCODES, Ack, Message, Packet, Responder  # noqa: E402
from scapy.contrib.roce import AETH, BTH  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.l2 import ARP, Ether  # noqa: E402

SYNDROMES = {Ack.OK: 0x00, Ack.NAK_SEQ: 0x60, Ack.RNR: 0x20, Ack.INV_REQ: 0x61, Ack.ACCESS: 0x62, Ack.REM_OP: 0x63}
SERVER_MAC, SERVER_IP = "02:50:53:54:4b:fe", "10.9.0.1"
BOARD_MAC, BOARD_IP = "02:00:0a:09:00:02", "10.9.0.2"
BOARD_QPN, SERVER_QPN = 0x200, 0x11


class Network:
    """A network namespace that lives as long as its test."""

    def __init__(self, name: str) -> None:
        self.name = name
        subprocess.run(["ip", "netns", "add", name], check=True)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words: str, timeout: float = 300) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def inside(self):
        """Sockets that are made in here belong to the namespace for good."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as home, open(f"/run/netns/{self.name}") as there:
            assert libc.setns(there.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(home.fileno(), 0) == 0

    def close(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=True)


class UnixCable:
    """The virtual machine's end of a pair of Unix datagram sockets."""

    def __init__(self, local: Path, board: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(local))
        self.board = str(board)

    def send(self, frame: bytes) -> None:
        self.socket.sendto(frame, self.board)

    def receive(self, timeout: float) -> bytes | None:
        self.socket.settimeout(timeout)
        try:
            return self.socket.recv(65536)
        except TimeoutError:
            return None


class PacketCable:
    """A packet socket on an interface of a namespace."""

    def __init__(self, network: Network, interface: str) -> None:
        with network.inside():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.socket.bind((interface, 0))

    def send(self, frame: bytes) -> None:
        self.socket.send(frame)

    def receive(self, timeout: float) -> bytes | None:
        self.socket.settimeout(timeout)
        try:
            return self.socket.recv(65536)
        except TimeoutError:
            return None


class Server:
    """One queue pair at the far end of a cable. `arp` answers for `SERVER_IP` if no kernel does."""

    def __init__(self, cable, psn: int = 0, mtu: int = 4096, rkey: int = 7, arp: bool = True) -> None:
        self.cable, self.arp, self.mac = cable, arp, SERVER_MAC
        self.responder = Responder(psn=psn, mtu=mtu, rkey=rkey)
        self.board_qpn = BOARD_QPN
        self.other_frames: list[bytes] = []

    @property
    def messages(self) -> list[Message]:
        return self.responder.messages

    def step(self, timeout: float = 0.05) -> bool:
        """Takes one frame; whether there was one."""
        raw = self.cable.receive(timeout)
        if raw is None:
            return False
        frame = Ether(raw)
        if BTH in frame:
            self.request(frame, raw)
        elif self.arp and ARP in frame and frame[ARP].op == 1 and frame[ARP].pdst == SERVER_IP:
            requested = frame[ARP]
            reply = ARP(op=2, hwsrc=self.mac, psrc=SERVER_IP, hwdst=requested.hwsrc, pdst=requested.psrc)
            self.cable.send(bytes(Ether(src=self.mac, dst=requested.hwsrc) / reply))
        else:
            self.other_frames.append(raw)
        return True

    def request(self, frame, raw: bytes) -> None:
        bth = frame[BTH]
        if bth.opcode not in OPCODES:
            return  # an answer of ours, seen on its way out
        bth.icrc = None  # scapy computes it anew
        assert bytes(frame) == raw, "scapy builds the frame otherwise: ICRC or a length is wrong"
        _, first, _, with_imm = OPCODES[bth.opcode]
        body = bytes(bth.payload)
        body = body[: len(body) - bth.padcount]
        packet = {"opcode": bth.opcode, "psn": bth.psn, "ack_req": bool(bth.ackreq)}
        if first and bth.opcode >= 0x06:
            packet |= {"va": int.from_bytes(body[:8]), "rkey": int.from_bytes(body[8:12])}
            packet["dma_len"] = int.from_bytes(body[12:16])
            body = body[16:]
        if with_imm:
            packet["imm"], body = int.from_bytes(body[:4]), body[4:]
        self.peer_mac, self.lower = frame.src, (frame[IP].dst, frame[IP].src)
        for reply in self.responder.receive(Packet(payload=body, **packet)):
            syndrome = SYNDROMES[reply.kind] | (reply.value if reply.kind in (Ack.OK, Ack.RNR) else 0)
            self.answer(BTH(opcode=0x11, dqpn=self.board_qpn, psn=reply.psn) / AETH(syndrome=syndrome, msn=reply.msn))

    def answer(self, transport) -> None:
        source, destination = self.lower
        lower = Ether(src=self.mac, dst=self.peer_mac) / IP(src=source, dst=destination)
        self.cable.send(bytes(lower / UDP(sport=0xC000, dport=4791, chksum=0) / transport))

    def serve(self, process: subprocess.Popen) -> None:
        """Until the board has ended."""
        while process.poll() is None:
            self.step()
