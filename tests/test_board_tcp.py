# SPDX-License-Identifier: Apache-2.0
"""`penstock board --protocol tcp`: verilated streams on a TAP device into `penstock recv --backend tcp` of this kernel.

Promise checked: recorded events arrive byte for byte; after a receiver is killed the stream ends with a named reason,
and the next receiver gets the events from the first unacknowledged one on.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from board_server import BOARD_IP, ROOT, SERVER_IP, Network
from ctl import Ctl, free_port
from processes import killed
from veth import Result, ended, until

DATA = ROOT / "data/lst1_run2008/modules.npz"
PORT, SHARED = 10_000, 64  # a board has every 64th module of an event
pytestmark = pytest.mark.usefixtures("namespaces")


class Cable(Network):
    """A namespace with a TAP device, whose kernel has the server's address; processes in it end with the test."""

    def __init__(self, binary: Path) -> None:
        super().__init__(f"pstk-btcp-{os.getpid()}")
        self.binary, self.running = binary, []
        for line in ("tuntap add dev pstk0 mode tap", f"addr add {SERVER_IP}/24 dev pstk0", "link set pstk0 up"):
            self.run("ip", *line.split())

    def start(self, *words: object) -> subprocess.Popen:
        command = self.command(str(self.binary), *map(str, words), "--json")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        self.running.append(process)
        return process

    def board(self, *options: object) -> subprocess.Popen:
        fixed = ("--tap", "pstk0", "--ip", BOARD_IP, "--protocol", "tcp", "--peer-ip", SERVER_IP)
        source = ("--data", DATA, "--share", f"0/{SHARED}", "--interval", "20us")
        return self.start("board", *fixed, *source, *options)

    def recv(self, *options: object) -> subprocess.Popen:
        fixed = ("--backend", "tcp", "--poll", "event", "--event-timeout", 60_000, "--linger", 50)
        process = self.start("recv", BOARD_IP, *fixed, *options)
        listing = self.command("cat", "/proc/net/tcp")
        reported = lambda: subprocess.run(listing, capture_output=True).stdout  # noqa: E731
        until("listener", lambda: f":{PORT:04X} 00000000:0000 0A".encode() in reported() or process.poll() is not None)
        return process

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.communicate()
        super().close()


@pytest.fixture
def cable(built: Path) -> Iterator[Cable]:
    cable = Cable(built / "penstock")
    try:
        yield cable
    finally:
        cable.close()


def verified(process: subprocess.Popen) -> dict:
    result: Result = ended(process, 300)
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    return result.json()


def fragments(folder: Path) -> dict[int, list[bytes]]:
    table = pq.read_table(folder)
    return dict(zip(table["event_number"].to_pylist(), table["fragments"].to_pylist(), strict=True))


def test_recorded_events_come_out_of_verilated_streams_byte_for_byte(cable, recorded, tmp_path):
    events = 30
    receiver = cable.recv("--events", events, "--out", tmp_path / "run")
    board = cable.board("--events", events)
    received, sent = verified(receiver), verified(board)
    assert received["readout"]["builder"]["events_complete"] == events
    assert sum(one["counters"]["resynchronised"] for one in received["boards"]) == 0
    found = fragments(tmp_path / "run")
    assert found == {n: [recorded[n % len(recorded), 0::SHARED].tobytes()] for n in range(events)}
    assert (sent["messages"]["ok"], sent["messages"]["failed"]) == (events, 0)
    [stream] = sent["streams"]
    assert stream["bytes_acked"] > sum(len(part[0]) for part in found.values())
    assert stream["meters"]["bytes"] == stream["bytes_acked"] and stream["meters"]["throughput_gbps"] > 0


def test_a_killed_receiver_comes_back_and_gets_what_was_not_acknowledged(cable, recorded, tmp_path):
    first = cable.recv()
    board = cable.board("--events", 100_000)
    until("segments", lambda: established(cable))
    killed(first)
    second = cable.recv("--events", 20, "--out", tmp_path / "run")
    verified(second)
    board.send_signal(signal.SIGINT)
    result = ended(board, 300)
    report = json.loads(result.stdout)
    one, other = report["connections"][:2]
    assert one["ended"], report["connections"]
    assert one["server"] == other["server"] == SERVER_IP
    assert other["first"] == one["first"] + one["acknowledged"]
    found = fragments(tmp_path / "run")
    numbers = sorted(found)
    assert numbers == list(range(other["first"], other["first"] + len(numbers))), "none is left out"
    assert found == {n: [recorded[n % len(recorded), 0::SHARED].tobytes()] for n in numbers}


def test_an_idle_board_answers_each_keep_alive_of_the_receivers_kernel(cable):
    receiver = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listens", flush=True)
stream = listener.accept()[0]
for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 2)):
    stream.setsockopt(socket.IPPROTO_TCP, option, value)
stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
try:
    while stream.recv(1 << 16):
        pass
except OSError as error:
    sys.exit(str(error))
"""
    command = cable.command(sys.executable, "-c", receiver, SERVER_IP, str(PORT))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    cable.running.append(process)
    assert process.stdout.readline() == "listens\n"
    cable.board("--events", 1, "--stay")

    def sent() -> int:
        names, values = [line.split() for line in cable.run("cat", "/proc/net/netstat").splitlines()[:2]]
        return int(values[names.index("TCPKeepAlive")])

    # Of two without an answer in a row the kernel ends the connection.
    until("5 keep-alives", lambda: sent() >= 5 or process.poll() is not None)
    assert process.poll() is None, process.communicate()


def test_messages_longer_than_the_receivers_slots_are_a_fault_at_both_ends(cable):
    """Whole events, 265 kB and more, and slots as they are by default."""
    receiver = cable.recv("--first-event", 0)
    fixed = ("--tap", "pstk0", "--ip", BOARD_IP, "--protocol", "tcp", "--peer-ip", SERVER_IP)
    board = ended(cable.start("board", *fixed, "--data", DATA, "--events", 3), 300)
    summary = json.loads(board.stdout)
    assert board.status == 1 and summary["end"] == "refused" and summary["messages"]["ok"] == 0, board
    assert "acknowledged no message" in summary["unfinished"] and "--slot-size" in summary["unfinished"], summary
    receiver.send_signal(signal.SIGINT)
    received = ended(receiver, 300)
    assert received.status == 1 and "and slots of 131072" in json.loads(received.stdout)["faults"][0], received


def test_messages_that_only_the_kernel_takes_are_a_fault_at_both_ends(cable, tmp_path):
    """It acknowledges all of them before the receiver looks at the first, and refuses it."""
    events, name = 10, "stream[0].messages_ok"
    receiver = cable.recv("--first-event", 0, "--slot-size", 2048)
    receiver.send_signal(signal.SIGSTOP)
    board = cable.board("--events", events)
    ctl = Ctl(cable.binary, tmp_path / "state", cable.command())

    def is_done() -> bool:
        requested = ctl.run("get", BOARD_IP, name, "-J", "--patience", "60s", status=None)
        return requested.status == 0 and requested.board(BOARD_IP)["registers"][name]["number"] == events

    until("acknowledgements", is_done, 300)
    receiver.send_signal(signal.SIGCONT)
    refused = ended(board, 300)
    summary = json.loads(refused.stdout)
    assert refused.status == 1 and summary["end"] == "refused" and summary["messages"]["ok"] == events, refused
    assert "may not have taken all of them" in summary["unfinished"] and "--slot-size" in summary["unfinished"], summary
    receiver.send_signal(signal.SIGINT)
    stopped = ended(receiver, 300)
    assert stopped.status == 1 and "and slots of 2048" in json.loads(stopped.stdout)["faults"][0], stopped


def established(cable: Cable) -> bool:
    """The kernel has a connection to the board over which bytes have come."""
    reported = cable.run("ss", "-tin", "state", "established", f"dst {BOARD_IP}")
    return "bytes_received:" in reported and "bytes_received:0 " not in reported


def test_ctl_finds_the_board_by_arp_and_names_its_streams(cable, tmp_path):
    receiver = cable.recv("--seconds", 600)
    board = cable.board("--events", 100_000)
    until("segments", lambda: established(cable))
    ctl = Ctl(cable.binary, tmp_path / "state", cable.command())
    patience = ("--patience", "60s")  # of a board that makes its cycles in software, on a machine with other work

    by_arp = ("status", f"{BOARD_IP},{SERVER_IP}", "--arp", "pstk0", "-J", "--patience", "2s")
    boards: list[dict] = []

    def is_found() -> bool:
        """A sweep listens for all of its patience, as another device may answer: short ones, until the board does."""
        boards[:] = ctl.run(*by_arp, status=None).json["boards"]
        return bool(boards)

    until("the board", is_found)
    [found] = boards
    assert found["board"] == BOARD_IP
    assert found["queue_pairs"] == [] and found["build"]["streams"] == len(found["streams"]) > 0
    first, *rest = found["streams"]
    assert (first["state"], first["peer"]) == ("established", f"{SERVER_IP}:{PORT}") and first["bytes_acked"] > 0
    assert {other["state"] for other in rest} <= {"closed"}
    assert (found["build"]["qcn"], found["build"]["source"], found["build"]["services"]) == (False, True, True)
    many = found["build"]["streams"]
    for setting, reported in [
        ("cc.rate_ai=40Mbps", "this board has no queue pairs: its gateware is built without RoCE (WITH_ROCE is 0)"),
        (f"stream[{many}].peer_port=1", f"stream[{many}].peer_port: this board's gateware is built without stream"),
    ]:
        assert f"{BOARD_IP}: " in (refused := ctl.run("set", BOARD_IP, setting, *patience, status=2).err)
        assert reported in refused, refused
    table = ctl.run("status", BOARD_IP, *patience).out
    assert "streams" in table and "1 established to" in table
    counted = ctl.run("counters", BOARD_IP, "--streams", "-J", *patience).board(BOARD_IP)["counters"]
    assert counted["stream[0].segments"] > 0 and "stream[0].messages_ok" in counted
    port = free_port()
    served = cable.start("ctl", "serve", BOARD_IP, "--metrics", f"127.0.0.1:{port}", *patience)
    curl = cable.command(sys.executable, "-c", READ_METRICS, str(port))
    text = lambda: subprocess.run(curl, capture_output=True, text=True, check=False).stdout  # noqa: E731
    label = f'{{board="{BOARD_IP}",stream="0"}}'
    until("metrics", lambda: f"penstock_gateware_stream_state{label} 2" in text())
    found_metrics = dict(line.rsplit(" ", 1) for line in text().splitlines() if line and line[0] != "#")
    of_stream = lambda name: float(found_metrics[f"penstock_gateware_stream_{name}{label}"])  # noqa: E731
    assert of_stream("series_bytes") > 0 and of_stream("series_seconds") > 0
    assert of_stream("latency_longest_seconds") >= of_stream("latency_shortest_seconds") > 0
    assert "meter[0].bytes" in ctl.run("get", BOARD_IP, "meter[0].bytes", *patience).out
    for process in (served, board, receiver):
        process.send_signal(signal.SIGINT)
        ended(process, 300)


READ_METRICS = """
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=60).read().decode())
"""


def test_what_cannot_work_is_refused_by_name(cable):
    nobody = ended(cable.board("--events", 1), 300)
    assert nobody.status == 1 and "refused (RST)" in nobody.stderr and "--port" in nobody.stderr
    fixed = ("board", "--tap", "pstk0", "--ip", BOARD_IP, "--protocol", "tcp")
    no_line = "--line: no board of this program has a line of 40Gbps with TCP; it has 10Gbps"
    for options, reported in (
        ((), "--peer-ip"),
        (("--peer-ip", SERVER_IP, "--open"), "--open"),
        (("--port", 0), "--port"),
        (("--peer-ip", SERVER_IP, "--rings", "memory"), "--rings memory goes with --protocol roce alone"),
        (("--peer-ip", SERVER_IP, "--line", "40Gbps"), no_line),
    ):
        result = ended(cable.start(*fixed, *options), 300)
        assert result.status == 2 and reported in result.stderr, result.stderr
