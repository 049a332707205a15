# SPDX-License-Identifier: Apache-2.0
"""`penstock ctl load` into memory and tables of a verilated board, whose frames a relay of this test loses or changes.

Promise checked: a table counts as loaded if and only if all of its bytes are in the board, whatever is lost on the way;
what the board or its window does not permit is refused with the reason; the queue pair is in reset afterwards.
"""

import fcntl
import os
import random
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from board_server import BOARD_IP, ROOT, SERVER_IP, Network
from ctl import Ctl, boards
from processes import killed
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from test_tutorials import follow, workplace

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
READ_RESPONSES = range(0x0D, 0x11)
WRITES = {0x06, 0x07, 0x08, 0x0A}  # first, middle and last packet of several, and only one
BASE, WINDOW_BYTES, KEY = 1 << 20, 3 << 20, 0x1234
TABLES, REPLAY, REPLAY_BYTES = 1 << 31, 0x8000, 16384  # high half of tables' addresses; the replay memory
PAIR = "qp[3]"


class Relay:
    """The wire between a board's socket and a TAP device of a namespace; `change` gets RoCE frames to the server."""

    def __init__(self, network: Network, local: Path, board: Path) -> None:
        self.loss, self.change = 0.0, lambda frame: frame
        self.random = random.Random(1)
        self.board, self.socket = str(board), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(local))
        with network.inside():
            self.tap = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", b"pstk0", IFF_TAP | IFF_NO_PI))
        network.run("ip", "addr", "add", f"{SERVER_IP}/24", "dev", "pstk0")
        network.run("ip", "link", "set", "pstk0", "mtu", "9000", "up")
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.ended.is_set():
            for ready in select.select([self.tap, self.socket], [], [], 0.05)[0]:
                to_server = ready is self.socket
                frame = self.socket.recv(65536) if to_server else os.read(self.tap, 65536)
                if frame[36:38] == b"\x12\xb7":  # UDP to port 4791
                    if self.random.random() < self.loss:
                        continue
                    frame = self.change(frame) if to_server else frame
                if to_server:
                    os.write(self.tap, frame)
                else:
                    with suppress(OSError):  # the board is not there yet, or not any more
                        self.socket.sendto(frame, self.board)

    def close(self) -> None:
        self.ended.set()
        self.thread.join()
        self.socket.close()
        os.close(self.tap)


@pytest.fixture(scope="module")
def network():
    network = Network(f"pstk-load-{os.getpid()}")
    yield network
    network.close()


@pytest.fixture(scope="module")
def relay(built, namespaces, network, tmp_path_factory):
    """A board with windows, and the wire to it."""
    folder = tmp_path_factory.mktemp("sockets")
    relay = Relay(network, folder / "server", folder / "board")
    command = [built / "penstock", "board", "--unix", f"{folder}/board,{folder}/server", "--ip", BOARD_IP]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    board = subprocess.Popen([*command, "--windows", "--stay"], cwd=ROOT, **pipes)
    yield relay
    killed(board)
    board.communicate()
    relay.close()


@pytest.fixture
def ctl(relay, network, built, tmp_path):
    """`penstock ctl` beside the board, whose queue pair 3 has a window."""
    relay.loss, relay.change = 0.0, lambda frame: frame
    ctl = Ctl(built / "penstock", tmp_path, network.command())
    ctl.run("set", BOARD_IP, *settings(), "--patience", "60s", "--force")
    return ctl


def settings(**changed: int) -> list[str]:
    """The registers of the window."""
    window = {
        "read_base_lo": BASE,
        "read_base_hi": 0,
        "read_length_lo": WINDOW_BYTES,
        "read_rkey": KEY,
        "read_depth": 16,
        "receive.write": 1,
    }
    return [f"{PAIR}.{register}={value}" for register, value in (window | changed).items()]


def table(path: Path, count: int, seed: int) -> Path:
    np.save(path, np.random.default_rng(seed).integers(0, 1 << 16, (4, count // 4), dtype="<u2"))
    return path


def state(ctl: Ctl) -> str:
    return ctl.run("get", BOARD_IP, f"{PAIR}.state", "-J").board(BOARD_IP)["registers"][f"{PAIR}.state"]["text"]


def number(ctl: Ctl, name: str) -> int:
    return ctl.run("get", BOARD_IP, name, "-J").board(BOARD_IP)["registers"][name]["number"]


def counter(ctl: Ctl, name: str) -> int:
    return number(ctl, f"counters.{name}")


def test_a_table_is_loaded_and_verified_through_loss(ctl, relay, tmp_path):
    file = table(tmp_path / "pedestals.npy", 200_000, 1)
    relay.loss = 0.01
    before = counter(ctl, "rx_read_requests")
    loaded = ctl.run("load", BOARD_IP, file, "--offset", 4099, "-J").json
    [board] = loaded["boards"]
    assert loaded["faults"] == []
    assert (board["queue_pair"], board["address"], board["bytes"]) == (3, BASE + 4099, 400_000)
    assert board["retransmitted_pkts"] > 0
    relay.loss = 0.0
    ctl.run("set", BOARD_IP, f"{PAIR}.receive.write=0")  # READs alone
    ctl.run("load", BOARD_IP, file, "--offset", 4099, "--compare")
    other = ctl.run("load", BOARD_IP, file, "--offset", 4098, "--compare", status=1)
    assert "bytes differ" in other.err
    assert counter(ctl, "rx_read_requests") - before >= 7  # 64 KiB each
    assert state(ctl) == "reset"
    assert any(line["register"] == f"{PAIR}.state" for line in ctl.written())


def test_a_binary_file_fills_the_window_to_its_last_byte(ctl, tmp_path):
    file = tmp_path / "pattern.bin"
    file.write_bytes(random.Random(2).randbytes(5001))
    done = ctl.run("load", BOARD_IP, file, "--offset", WINDOW_BYTES - 5001, "--rkey", hex(KEY))
    place = f"at {BASE + WINDOW_BYTES - 5001:#x}, window of {PAIR}"
    assert f"{BOARD_IP}: 5001 bytes of {file} (binary) {place}: verified" in done.out
    refused = ctl.run("load", BOARD_IP, file, "--offset", WINDOW_BYTES - 5000, status=1)
    assert "5001 bytes from offset 3140728 on do not fit into its window of 3145728 bytes" in refused.err


def test_a_byte_that_reads_otherwise_is_named(ctl, relay, tmp_path):
    """The relay changes a byte of the answers to READs, and makes their ICRC anew."""

    def change(frame: bytes) -> bytes:
        packet = Ether(frame)
        if BTH not in packet or packet[BTH].opcode not in READ_RESPONSES:
            return frame
        at = 42 + 12 + (0 if packet[BTH].opcode == 0x0E else 4) + 100
        changed = Ether(frame[:at] + bytes([frame[at] ^ 0x40]) + frame[at + 1 :])
        changed[BTH].icrc = None
        return bytes(changed)

    file = table(tmp_path / "pedestals.npy", 2000, 3)
    relay.change = change
    done = ctl.run("load", BOARD_IP, file, status=1)
    data = np.load(file).tobytes()
    found = f"byte 100 reads {data[100] ^ 0x40:#04x} where the file has {data[100]:#04x}; 1 bytes differ"
    assert f"{BOARD_IP}: {found}" in done.err and "verified" not in done.out
    assert state(ctl) == "reset"


@pytest.mark.parametrize(
    ("changed", "options", "why"),
    [
        ({"read_length_lo": 0}, (), "it has no window; make one: penstock ctl set"),
        (
            {},
            ("--rkey", "0x55"),
            f"no window has key 0x55; its windows: {PAIR}: key 0x1234, 3145728 bytes from 0x1",
        ),
        ({}, ("--queue-pair", "1"), "qp[1] has no window; make one"),
        ({}, ("--queue-pair", "4"), "it has 4 queue pairs, and no 4"),
        ({"read_length_lo": 3968}, (), "('<u2', 4 x 504): 4032 bytes from offset 0 on do not fit"),
        ({"receive.write": 0}, (), f"{PAIR}.receive.write is 0"),
        ({"read_depth": 0}, (), f"{PAIR}.read_depth is 0"),
        ({"read_base_lo": 65 << 20}, (), "it could not complete the request"),
        # A table ends inside of the window; a word of 32 bits is written in part.
        ({"read_base_hi": TABLES, "read_base_lo": REPLAY + 12416}, (), "it could not complete the request"),
        ({"read_base_hi": TABLES, "read_base_lo": REPLAY}, ("--offset", 2), "it could not complete the request"),
        ({"read_base_hi": TABLES, "read_base_lo": 0x100}, ("--compare",), "it could not complete the request"),
    ],
    ids=lambda value: "",
)
def test_what_cannot_be_loaded_is_refused_with_the_reason(ctl, tmp_path, changed, options, why):
    ctl.run("set", BOARD_IP, *settings(**changed))
    file = table(tmp_path / "pedestals.npy", 2016, 4)
    done = ctl.run("load", BOARD_IP, file, *options, status=1)
    assert why in done.err
    assert state(ctl) == "reset"


def test_the_replay_memory_is_filled_while_it_is_replayed_and_then_sent(ctl, network, relay, tmp_path):
    ctl.run("set", BOARD_IP, *settings(read_base_hi=TABLES, read_base_lo=REPLAY, read_length_lo=REPLAY_BYTES))
    first, second = tmp_path / "first.bin", tmp_path / "second.bin"
    first.write_bytes(random.Random(8).randbytes(REPLAY_BYTES))
    second.write_bytes(random.Random(9).randbytes(2052))
    [board] = ctl.run("load", BOARD_IP, first, "-J").json["boards"]
    assert board["address"] == (TABLES << 32) + REPLAY

    packets: dict[int, bytes] = {}  # payload of a WRITE without its RETH, by PSN

    def keep(frame: bytes) -> bytes:
        """Without scapy: the source sends faster than that takes packets apart, and the answers to ctl wait behind."""
        bth, payload = frame[42:54], frame[54:-4]
        if bth[0] in WRITES and int.from_bytes(bth[5:8], "big") == 0x77:
            packets[int.from_bytes(bth[9:12], "big")] = payload[16 * (bth[0] in (0x06, 0x0A)) :]
        return frame

    def replayed() -> bytes:
        """A message of the whole memory, which is never acknowledged."""
        # A source that has been stopped still completes its message; a start before that has no effect.
        deadline = time.monotonic() + 60
        while number(ctl, "source.status.running") and time.monotonic() < deadline:
            time.sleep(0.05)
        packets.clear()
        ctl.run("set", BOARD_IP, *sender, "qp[0].state=rts", "source.count=1", "source.command.start=1", "--force")
        deadline = time.monotonic() + 60
        while len(packets) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        ctl.run("set", BOARD_IP, "qp[0].state=reset", "--force")
        return b"".join(packets[psn] for psn in sorted(packets))

    relay.change = keep
    mac = bytes.fromhex(network.run("cat", "/sys/class/net/pstk0/address").strip().replace(":", ""))
    peer = {"dst_mac_hi": int.from_bytes(mac[:2], "big"), "dst_mac_lo": int.from_bytes(mac[2:], "big")}
    peer |= {"dst_ip": SERVER_IP, "dest_qpn": 0x77, "init_psn": 0, "transport.mtu": 5, "transport.ack_timeout": 20}
    sender = [f"qp[0].{name}={value}" for name, value in peer.items()]
    sender += ["source.control.generator=2", f"source.length_min={REPLAY_BYTES}", "source.control.restart=1"]
    assert replayed() == first.read_bytes()
    # Messages that play on meanwhile change nothing, and are not in the way.
    ctl.run("set", BOARD_IP, "qp[0].state=rts", "source.count=0", "source.command.start=1", "--force")
    ctl.run("load", BOARD_IP, second, "--offset", 4092)
    assert number(ctl, "source.status.running") == 1
    ctl.run("set", BOARD_IP, "source.command.stop=1", "qp[0].state=reset", "--force")
    expected = bytearray(first.read_bytes())
    expected[4092 : 4092 + 2052] = second.read_bytes()
    assert replayed() == expected


def test_a_queue_pair_of_a_run_is_left_alone(ctl, tmp_path):
    ctl.run("set", BOARD_IP, f"{PAIR}.state=rts")
    done = ctl.run("load", BOARD_IP, table(tmp_path / "pedestals.npy", 100, 5), status=1)
    assert f"{PAIR} is open: a run uses it" in done.err
    assert state(ctl) == "rts"
    ctl.run("set", BOARD_IP, f"{PAIR}.state=reset", "--force")


def test_a_board_that_falls_silent_is_not_waited_for(ctl, relay, tmp_path):
    relay.loss = 1.0
    begun = time.monotonic()
    done = ctl.run("load", BOARD_IP, table(tmp_path / "pedestals.npy", 2000, 6), status=1)
    assert "WRITE: PSN" in done.err and "was not acknowledged after 7 retries" in done.err
    assert time.monotonic() - begun < 60
    assert state(ctl) == "reset"


def test_files_and_boards_that_cannot_be_used(ctl, built, tmp_path):
    good = table(tmp_path / "pedestals.npy", 100, 7)
    silent = ctl.run("load", "10.9.0.77", good, "--patience", "200ms", status=1)
    assert "10.9.0.77: no answer to" in silent.err
    for file, why in [
        (tmp_path / "none.npy", "No such file"),
        (Path(__file__), "do not fit"),
        (tmp_path / "cut.npy", "cut off"),
    ]:
        if file.name == "cut.npy":
            file.write_bytes(good.read_bytes()[:-1])
        assert why in ctl.run("load", BOARD_IP, file, "--offset", WINDOW_BYTES, status=None).err
    with boards(built, 1) as software:
        done = Ctl(built / "penstock", tmp_path).run("load", software.address(0), good, status=1)
    assert "its gateware takes no WRITEs (WITH_RECEIVE is 0)" in done.err


def test_a_board_with_windows_has_one_line(built):
    command = [built / "penstock", "board", "--tap", "none", "--ip", BOARD_IP, "--windows", "--line", "1Gbps"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no board of this program has a line of 1Gbps and windows" in done.stderr


def test_a_connection_manager_of_windows_needs_windows(built):
    command = [built / "penstock", "board", "--tap", "none", "--ip", BOARD_IP, "--cm", "rdma"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--cm rdma: servers connect to windows; give --windows" in done.stderr


def test_the_page_of_a_board_s_memory(built, namespaces, tmp_path):
    namespace = f"win{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    try:
        follow("windows.md", built, workplace(tmp_path), ["ip", "netns", "exec", namespace], {})
    finally:  # the board is gone by the page's own last commands unless it failed
        left = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
        for process in left.stdout.split():
            os.kill(int(process), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
