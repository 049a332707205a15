# SPDX-License-Identifier: Apache-2.0
"""`penstock board` with a host that sends FEROCE's messages byte for byte, in the order and timing of its software.

Promise checked: a host program of FEROCE opens, starts and closes our board, and our board opens one; all data arrive.
"""

import json
import struct
import subprocess
import time
from dataclasses import replace

import pytest
from board_server import BOARD_IP, BOARD_MAC, ROOT, SERVER_IP, SERVER_MAC, Server, UnixCable
from lib import connection as cm
from lib.source_model import prbs31_bytes
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from veth import until

DEADLINE_S = 90
HOST = cm.Info(
    qpn=0x11, psn=0, rkey=0x1F2E, base=0x7F4A5C001000, ip=int.from_bytes(bytes(map(int, SERVER_IP.split("."))))
)
ANSWER_S, TRIES = 2.0, 2  # its host software waits so long for an answer, and asks so often
BUFFER, BUFFERS = 4096, 16
COUNTED = BUFFERS + 4  # messages of a board that begins by itself: its slots come round


class FeroceHost:
    """One queue pair of the host software; its connection manager at port 0x4321 takes requests and answers."""

    def __init__(self, cable: UnixCable) -> None:
        self.server = Server(cable, psn=HOST.psn, rkey=HOST.rkey)
        self.board = cm.Info()

    def send(self, message: cm.Message, sport: int = cm.REQUEST_PORT) -> None:
        lower = Ether(src=SERVER_MAC, dst=BOARD_MAC) / IP(src=SERVER_IP, dst=BOARD_IP)
        self.server.cable.send(bytes(lower / UDP(sport=sport, dport=cm.REQUEST_PORT) / Raw(message.pack())))

    def receive(self, limit_s: float) -> cm.Message | None:
        """The next message to port 0x4321, while the responder continues."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            self.server.step()
            frames = [Ether(raw) for raw in self.server.other_frames]
            self.server.other_frames.clear()
            for frame in frames:
                if UDP in frame and (frame[UDP].sport, frame[UDP].dport) == (cm.REQUEST_PORT, cm.REQUEST_PORT):
                    return cm.Message.unpack(bytes(frame[UDP].payload)[:64])
        return None

    def exchange(self, request: cm.Message) -> cm.Message:
        """Sent twice at most; any other message in between counts as no answer."""
        for _ in range(TRIES):
            self.send(request)
            answer = self.receive(ANSWER_S)
            if answer and (answer.request, answer.answer, answer.other) == (request.request, cm.ACK, request.sender):
                assert answer.port == cm.REQUEST_PORT
                return answer
        raise AssertionError(f"no ACK to {request}")

    def open(self) -> None:
        """`recv --active`."""
        self.board = self.exchange(cm.Message(cm.OPEN_QP, HOST, port=cm.REQUEST_PORT)).sender
        self.server.responder.psn = self.board.psn

    def open_stream(self, stream: int) -> cm.Message | None:
        """`recv --active --num-streams`: the answer to the OPEN_QP of one of the host's queue pairs."""
        self.send(cm.Message(cm.OPEN_QP, replace(HOST, qpn=HOST.qpn + stream), port=cm.REQUEST_PORT))
        return self.receive(DEADLINE_S)

    def tx_meta(self, **what) -> None:
        """`ctrl tx-meta`, from a socket of its own that waits for nothing."""
        transmit = cm.Transmit(length=BUFFER, count=BUFFERS, **what)
        self.send(cm.Message(cm.NONE, other=cm.Info(qpn=self.board.qpn), transmit=transmit), sport=0xBEEF)

    def take(self, count: int) -> list:
        deadline = time.monotonic() + DEADLINE_S
        while len(self.server.messages) < count:
            assert time.monotonic() < deadline, f"{len(self.server.messages)} of {count} messages came"
            self.server.step()
        taken = self.server.messages[:]
        self.server.messages.clear()
        return taken

    def close(self) -> None:
        self.exchange(cm.Message(cm.CLOSE_QP, HOST, self.board, port=cm.REQUEST_PORT))


@pytest.fixture
def host(tmp_path):
    return FeroceHost(UnixCable(tmp_path / "host.sock", tmp_path / "board.sock"))


@pytest.fixture
def board(penstock, tmp_path, host):
    """Starts a board at the other end of the host's cable, numbered as FEROCE's are."""
    boards = []

    def begin(*options: str) -> subprocess.Popen:
        ends = f"{tmp_path}/board.sock,{tmp_path}/host.sock"
        command = [
            penstock.binary,
            "board",
            "--json",
            "--ip",
            BOARD_IP,
            "--unix",
            ends,
            "--qpn-base",
            "0x100",
            *options,
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
        boards.append(subprocess.Popen(list(map(str, command)), **pipes))

        def has_socket() -> bool:
            assert boards[-1].poll() is None, boards[-1].communicate()
            return (tmp_path / "board.sock").exists()

        until("socket of the board", has_socket)
        return boards[-1]

    yield begin
    for process in boards:
        process.kill()
        process.communicate()


def expected(write: bool) -> list[tuple[int | None, bytes]]:
    """Where the messages of a series go, and what they are: PRBS-31 (ITU-T O.150) from its start."""
    stream = prbs31_bytes(0, invert=True)
    data = [bytes(next(stream) for _ in range(BUFFER)) for _ in range(BUFFERS)]
    return [(HOST.base + BUFFER * n if write else None, message) for n, message in enumerate(data)]


def test_a_feroce_host_opens_a_board_starts_each_kind_of_series_and_closes_it(host, board):
    process = board()
    host.server.board_qpn = HOST.qpn
    host.open()
    assert host.board.qpn == 0x100
    host.server.board_qpn = host.board.qpn
    for is_write in (False, True):
        for with_imm in (False, True):
            host.tx_meta(is_write=is_write, with_imm=with_imm)
            taken = host.take(BUFFERS)
            assert [(message.va, bytes(message.data)) for message in taken] == expected(is_write)
            assert [message.imm for message in taken] == [n if with_imm else None for n in range(BUFFERS)]
    host.close()
    process.send_signal(2)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0 and json.loads(out)["messages"]["ok"] == 4 * BUFFERS, err


def test_a_feroce_host_opens_a_stream_on_each_queue_pair_of_a_board_without_messages(host, board):
    """One host may have all four of them, a fifth is refused; the last one sends a series like the first."""
    board()
    serve, last = host.server.request, HOST.qpn + 3
    host.server.request = lambda frame, raw: serve(frame, raw) if frame[BTH].dqpn == last else None
    answers = [host.open_stream(stream) for stream in range(4)]
    assert [(answer.answer, answer.sender.qpn) for answer in answers] == [(cm.ACK, 0x100 + n) for n in range(4)]
    host.board = answers[-1].sender
    host.server.board_qpn, host.server.responder.psn = host.board.qpn, host.board.psn
    assert host.open_stream(4).answer == cm.NO_QP
    host.tx_meta(is_write=True)
    assert [(message.va, bytes(message.data)) for message in host.take(BUFFERS)] == expected(write=True)


@pytest.mark.parametrize("verb", ["send", "send-imm", "write", "write-imm"])
def test_a_board_opens_a_queue_pair_of_a_feroce_host_which_closes_it(host, board, verb):
    """Message n goes to slot n of the host's buffers by WRITE, and to the next one that it has posted by SEND."""
    requests = ("--open", "--peer-ip", SERVER_IP, "--peer-mac", SERVER_MAC)
    ring = ("--slots", BUFFERS, "--slot-size", BUFFER)
    process = board(*requests, *ring, "--counter", f"{BUFFER}x{COUNTED}", "--verb", verb, "--stay")
    request = host.receive(DEADLINE_S)
    assert (request.request, request.info_valid, request.other) == (cm.OPEN_QP, True, cm.Info())
    host.board, host.server.board_qpn = request.sender, request.sender.qpn
    host.server.responder.psn = request.sender.psn  # ready to receive before it answers
    host.send(request.answered(cm.ACK, HOST))
    taken = host.take(COUNTED)
    words = [range(n * BUFFER // 8, (n + 1) * BUFFER // 8) for n in range(COUNTED)]
    slots = [n % BUFFERS for n in range(COUNTED)]
    assert [bytes(message.data) for message in taken] == [struct.pack(f"<{BUFFER // 8}Q", *of) for of in words]
    assert [message.va for message in taken] == [HOST.base + BUFFER * n if "write" in verb else None for n in slots]
    assert [message.imm for message in taken] == [n if "imm" in verb else None for n in slots]
    host.close()
    process.send_signal(2)
    out, err = process.communicate(timeout=DEADLINE_S)
    report = json.loads(out)
    assert process.returncode == 0 and report["messages"]["ok"] == COUNTED and report["messages"]["failed"] == 0, err
    assert report["queue_pairs"] == [], "closed"
