# SPDX-License-Identifier: Apache-2.0
"""Verilated boards whose server is killed: they connect to its successor and continue where it stopped.

Promise checked: each board is up again within the dead server's timers and 2 s, in the board's own time; messages that
the dead server had acknowledged are not sent again, all later ones are, in order, byte for byte as recorded and with
their original timestamps.
"""

import json
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import board_server  # noqa: F401  (where `lib` is)
import numpy as np
import pyarrow.parquet as pq
import pytest
from lib import connection as cm
from processes import killed
from veth import LIMIT_S, METRICS, SERVER_IP, ended

pytestmark = pytest.mark.usefixtures("namespaces")

DATA = Path(__file__).resolve().parents[1] / "data/lst1_run2008/modules.npz"
SUCCESSOR = "10.77.0.2"
SLOTS_DIFFER = "do both ends have slots of the same size and number?"
PATIENT = ("--event-timeout", 20_000)  # verilated boards are slow, on a busy machine by seconds apart
BOARDS = [f"10.77.9.{k + 1}" for k in range(3)]
SHARED = 64  # a board has every 64th module of an event
SLOTS, SLOT_BYTES, INTERVAL_NS = 8, 16384, 20_000
TIMEOUT_CODE, RETRIES = 6, 7
# A queue pair is given up after retries + 1 timers without an answer.
TIMERS_US = (RETRIES + 1) * 4.096 * 2**TIMEOUT_CODE
ALLOWANCE_US = 2e6
ROCE_PORT = 4791


def boards(network, ips: list[str], events: int, *options: str) -> list[subprocess.Popen]:
    ring = ("--slots", SLOTS, "--slot-size", SLOT_BYTES, "--ack-timeout", TIMEOUT_CODE, "--retry-cnt", RETRIES)
    source = ("--events", events, "--data", DATA, "--interval", f"{INTERVAL_NS}ns")
    started = []
    for k, ip in enumerate(ips):
        command = (network.binary, "board", "--packet", "veth1", "--ip", ip, "--share", f"{k}/{SHARED}", "--json")
        started.append(network.start("b", *map(str, (*command, *ring, *source, *options))))
    return started


def recv(network, ip: str, ips: list[str], *options: str, slots: int = SLOTS) -> subprocess.Popen:
    ring = ("--slots", slots, "--slot-size", SLOT_BYTES)
    return network.recv(*ips, "--ip", ip, "--state", "none", *PATIENT, *ring, *options)


def interrupted(process: subprocess.Popen) -> dict:
    process.send_signal(signal.SIGINT)
    result = ended(process)
    report = json.loads(result.stdout)
    assert report["end"] == "interrupted", result
    return report


@pytest.fixture
def both(network):
    """The network with the successor's address."""
    subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "add", f"{SUCCESSOR}/16", "dev", "veth0"], check=True)
    return network


def test_three_verilated_boards_go_on_at_another_server_where_the_killed_one_stopped(both, tmp_path):
    senders = boards(both, BOARDS, 100_000)
    first = recv(both, SERVER_IP, BOARDS, "--metrics", METRICS)
    both.counted(5, "events_complete")
    killed(first)
    result = ended(recv(both, SUCCESSOR, BOARDS, "--events", 20, "--out", tmp_path / "out"))
    faults = result.json()["faults"]
    reports = [interrupted(sender) for sender in senders]

    begins = []
    for report in reports:
        before, after = report["connections"][:2]
        assert (before["server"], after["server"]) == (SERVER_IP, SUCCESSOR)
        assert "does not answer" in before["ended"] and before["acknowledged"] >= 5
        assert after["first"] == before["acknowledged"], "on with the first one that was not acknowledged"
        gap_us = after["opened_us"] - before["answered_us"]
        print(
            f"up {gap_us:.0f} us after the last answer; {report['timing']['slowdown']:.0f} times slower than real time"
        )
        assert TIMERS_US < gap_us < TIMERS_US + ALLOWANCE_US
        begins.append(after["first"])

    recorded = np.load(DATA)
    counters, samples = recorded["counters"], recorded["frag"]
    modules = np.concatenate([counters, samples.reshape(*counters.shape[:2], -1).view(np.uint8)], axis=2)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    numbers = [row["event_number"] for row in rows]
    assert numbers == list(range(numbers[0], numbers[0] + 20)) and numbers[0] in range(min(begins), max(begins) + 1)
    for row in rows:
        event = row["event_number"]
        # What a board had sent to the dead server is that server's; all else is here.
        assert row["sources"] == [board for board, begin in enumerate(begins) if event >= begin], f"event {event}"
        for board, payload in zip(row["sources"], row["fragments"], strict=True):
            assert payload == modules[event % len(modules), board::SHARED].tobytes(), f"event {event}, board {board}"
        # By the gateware's clock of 6.4 ns a cycle, which stood still while there was no server.
        assert abs(row["timestamp_ns"] - event * INTERVAL_NS) < 16, (
            "counted from the first event of the first connection"
        )
    lacking = sum(not row["complete"] for row in rows)
    assert (len(faults), result.status) == ((1, 1) if lacking else (0, 0)), faults
    assert all(fault.startswith(f"{lacking} events are incomplete") for fault in faults), faults


def test_a_board_that_opens_its_queue_pair_by_itself_opens_it_again_at_a_server_that_was_started_again(network):
    requests = ("--open", "--peer-ip", SERVER_IP)
    [sender] = boards(network, BOARDS[:1], 100_000, *requests)
    first = recv(network, SERVER_IP, BOARDS[:1], "--listen", "--metrics", METRICS)
    network.counted(5, "events_complete")
    killed(first)
    result = ended(recv(network, SERVER_IP, BOARDS[:1], "--listen", "--events", 20))
    assert result.status == 0 and result.json()["readout"]["builder"]["events_complete"] == 20, result
    before, after = interrupted(sender)["connections"][:2]
    assert after["first"] == before["acknowledged"] >= 5


def test_a_successor_with_other_slots_is_refused_by_name(both):
    [sender] = boards(both, BOARDS[:1], 300)
    first = recv(both, SERVER_IP, BOARDS[:1], "--metrics", METRICS)
    both.counted(5, "events_complete")
    killed(first)
    result = ended(recv(both, SUCCESSOR, BOARDS[:1], "--events", 200, slots=4))
    assert result.status == 1 and any(SLOTS_DIFFER in fault for fault in result.json()["faults"]), result
    reported = ended(sender)
    last = reported.json()["connections"][-1]
    assert reported.status == 1 and last["acknowledged"] == 4 and "remote access error" in last["ended"], reported


def test_a_board_that_no_other_server_takes_ends_and_reports_it(network):
    [sender] = boards(network, BOARDS[:1], 100_000, "--wait", 1)
    result = ended(recv(network, SERVER_IP, BOARDS[:1], "--events", 5))
    assert result.status == 0, result
    reported = ended(sender)
    assert reported.status == 1 and reported.json()["end"] == "no server", reported
    assert reported.json()["messages"]["failed"] == 0 and reported.json()["messages"]["ok"] >= 5, reported


class Mute:
    """A server that opens a board's queue pair and acknowledges nothing."""

    def __init__(self, network, ip: str) -> None:
        subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "replace", f"{ip}/16", "dev", "veth0"], check=True)
        with network.inside("s"):
            self.frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
            self.cm = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.roce = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # or the kernel says that nothing is there
        self.frames.bind(("veth0", 0))
        self.frames.setblocking(False)
        self.cm.bind((ip, 0))
        self.cm.settimeout(0.002)
        self.roce.bind((ip, ROCE_PORT))
        self.ip = socket.inet_aton(ip)

    def opens(self, board: str) -> int:
        """Repeats the request until the board agrees; returns its first PSN."""
        info = cm.Info(qpn=0x11, psn=0, rkey=7, base=0x10000, ip=int.from_bytes(self.ip))
        request = cm.Message(cm.OPEN_QP, info, port=self.cm.getsockname()[1]).pack()
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            try:
                self.cm.sendto(request, (board, cm.REQUEST_PORT))
                answer = cm.Message.unpack(self.cm.recv(64))
            except TimeoutError:
                continue
            if answer.answer == cm.ACK:
                return answer.sender.psn
        raise AssertionError("no queue pair")

    def first(self) -> tuple[int, int]:
        """PSN and event of the first message that comes: one WRITE of several packets."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            try:
                frame = self.frames.recv(65536)
            except BlockingIOError:
                time.sleep(0.001)
                continue
            ip, udp = frame[14:34], frame[34:42]
            if ip[16:20] != self.ip or udp[2:4] != ROCE_PORT.to_bytes(2):
                continue
            transport = frame[42:]
            assert transport[0] == 0x06, "RDMA WRITE First"
            return int.from_bytes(transport[9:12]), struct.unpack_from("<Q", transport, 12 + 16 + 8)[0]
        raise AssertionError("no message")


def test_no_server_gets_a_message_before_those_that_its_predecessor_did_not_acknowledge(network):
    """Each server sends a request every 2 ms, also while the queue pair fails and its messages end."""
    [sender] = boards(network, BOARDS[:1], 100_000)
    for k in range(4):
        server = Mute(network, f"10.77.0.{k + 1}")
        output = server.opens(BOARDS[0])
        assert server.first() == (output, 0), f"server {k}"
    report = interrupted(sender)
    assert [connection["first"] for connection in report["connections"]] == [0] * 4, report["connections"]
