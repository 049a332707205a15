# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --exchange`: queue pairs by lines of JSON over TCP, and the C program of a board's processor.

Promise checked: examples/exchange.c sets a verilated front end's registers, whose events then arrive byte for byte,
also when it opens the queue pair anew; its addresses are those of the register map; a line that is wrong, cut or of a
stranger is answered with the reason, and neither these nor silent connections keep a board from its queue pair.
"""

import ctypes
import json
import re
import signal
import socket
import subprocess
from contextlib import ExitStack

import numpy as np
import pytest
from board_server import ROOT
from conftest import DATA
from lib.ipbus import READ, SUCCESS, WRITE, bytes_to_words, control, transaction
from lib.register_map import address
from test_board_tcp import SHARED, fragments
from veth import METRICS, SERVER_IP, Network, ended, until, verified

SOURCE = ROOT / "examples/exchange.c"
BOARD, PROCESSOR = "10.77.9.1", "10.77.8.1"
PORT, IPBUS = 18600, 50001
RING = ("--slots", 8, "--slot-size", 16384)
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-O2")
NAMES = {
    **{name: name.lower() for name in ("ID", "BUILD", "LOCAL_IP", "QPN_BASE")},
    **{f"RING_{name}": f"ring.{name.lower()}" for name in ("BASE_LO", "BASE_HI", "SLOTS", "SLOT_SIZE", "NEXT_SLOT")},
    **{
        f"QP_{name}": f"qp.{name.lower()}"
        for name in ("DST_MAC_HI", "DST_MAC_LO", "DST_IP", "FLOW", "DEST_QPN", "RKEY", "TRANSPORT", "INIT_PSN", "STATE")
    },
}


class Bus(ctypes.Structure):
    """`struct bus`: here IPbus, which ends at the same AXI4-Lite port as a processor's writes."""

    read_t = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))
    write_t = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
    _fields_ = (("read", read_t), ("write", write_t), ("user", ctypes.c_void_p))


class Options(ctypes.Structure):
    """`struct exchange_options`."""

    _fields_ = (
        ("host", ctypes.c_char_p),
        ("port", ctypes.c_char_p),
        ("qp", ctypes.c_uint32),
        ("psn", ctypes.c_uint32),
        ("window_key", ctypes.c_uint32),
        ("window_address", ctypes.c_uint64),
        ("next_hop_mac", ctypes.c_uint64),
        ("ack_timeout", ctypes.c_uint32),
        ("retry_cnt", ctypes.c_uint32),
        ("rnr_retry", ctypes.c_uint32),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    """The program and the library."""
    folder = tmp_path_factory.mktemp("exchange")
    subprocess.run(["cc", *STRICT, "-o", folder / "exchange", SOURCE], check=True)
    library = ("-DEXCHANGE_AS_LIBRARY", "-shared", "-fPIC", "-o", folder / "exchange.so")
    subprocess.run(["cc", *STRICT, *library, SOURCE], check=True)
    return folder


@pytest.fixture
def processor(network: Network):
    """A processor's place: at the boards' end, with an address of its own."""
    network.address("b", PROCESSOR)
    return network


def opened(network: Network, library, psn: int, port: int = PORT) -> str | None:
    """Opens the board's queue pair; the reason where that fails."""
    library = ctypes.CDLL(str(library))
    library.exchange_trouble.restype = ctypes.c_char_p
    with network.inside("s"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(20)
        link.connect((BOARD, IPBUS))

        def access(kind: int, where: int, *words: int) -> list[int] | None:
            link.send(control(transaction(kind, 1, where // 4, *words)))
            header, *data = bytes_to_words(link.recv(64))[1:]
            return data if header & 0xF == SUCCESS else None

        def read(_user, where: int, value) -> int:
            data = access(READ, where)
            value[0] = data[0] if data else 0
            return 0 if data else -1

        def write(_user, where: int, value: int) -> int:
            return -1 if access(WRITE, where, value) is None else 0

        bus = Bus(Bus.read_t(read), Bus.write_t(write), None)
        options = Options(SERVER_IP.encode(), str(port).encode(), psn=psn, ack_timeout=14, retry_cnt=7, rnr_retry=7)
        failed = library.exchange_open(ctypes.byref(bus), ctypes.byref(options))
        return library.exchange_trouble().decode() if failed else None


def board(network: Network, events: int):
    here = ("--packet", "veth1", "--ip", BOARD, "--share", f"0/{SHARED}", "--json")
    what = ("--events", events, "--data", DATA, "--interval", "20us")
    return network.start("b", *map(str, (network.binary, "board", *here, *what, *RING)))


def receiver(network: Network, *options: object):
    process = network.recv(BOARD, "--exchange", PORT, *RING, "--metrics", METRICS, "--state", "none", *options)
    until("metrics", network.metrics)
    return process


def conversation(network: Network, *lines: bytes, end: str = "s") -> list[dict]:
    """The answers to lines, each over a connection of its own; all connections are open at once."""
    with network.inside(end), ExitStack() as stack:
        source = {"source_address": (PROCESSOR, 0)} if end == "b" else {}
        to = (SERVER_IP, PORT)
        links = [stack.enter_context(socket.create_connection(to, timeout=60, **source)) for _ in lines]
        for link, line in zip(links, lines, strict=True):
            link.sendall(line)
        return [json.loads(link.makefile("rb").readline() or b"null") for link in links]


def line(**members: object) -> bytes:
    return json.dumps(members).encode() + b"\n"


def test_addresses_in_the_program_are_those_of_the_register_map() -> None:
    defined = dict(re.findall(r"^#define (\w+) (0x[0-9A-F]+)$", SOURCE.read_text(), re.MULTILINE))
    rows = {"ring": "RINGS", "qp": "QP_TABLE"}
    for name, register in NAMES.items():
        base = int(defined[rows[register.split(".")[0]]], 16) if "." in register else 0
        assert base + int(defined[name], 16) == address(register), name
    for stride, register in (("RINGS_STRIDE", "ring.base_lo"), ("QP_STRIDE", "qp.state")):
        assert int(defined[stride], 16) == address(register, 1) - address(register)


@pytest.mark.usefixtures("namespaces")
def test_events_arrive_over_a_queue_pair_that_the_boards_processor_has_opened_twice(
    network: Network, folder, recorded: np.ndarray, tmp_path
) -> None:
    events = 200
    sender = board(network, events)
    until("an answer of the board", lambda: opened(network, folder / "exchange.so", 5) == "server: Connection refused")
    process = receiver(network, "--events", events, "--out", tmp_path / "run", "--event-timeout", 60_000)
    assert opened(network, folder / "exchange.so", 0xFFFFFE) is None
    network.counted(2, "events_complete")
    # Nobody has reset the server's queue pair: it takes the place of the last one.
    assert opened(network, folder / "exchange.so", 7) is None
    verified(process)
    verified(sender)
    assert fragments(tmp_path / "run") == {n: [recorded[n % len(recorded), 0::SHARED].tobytes()] for n in range(events)}


@pytest.mark.usefixtures("namespaces")
def test_the_program_writes_what_the_server_answers(processor: Network, folder, tmp_path) -> None:
    """The registers are a file: a mapping as of /dev/uio0, in which a state is reached once it is written."""
    registers = tmp_path / "registers"
    words = np.zeros(0x20000 // 4, np.uint32)
    [local] = np.frombuffer(socket.inet_aton(BOARD), ">u4")
    for name, word in (("id", 0x5053544B), ("build", 4 << 16 | 64), ("local_ip", local), ("qpn_base", 0x200)):
        words[address(name) // 4] = word
    words.tofile(registers)
    program = (str(folder / "exchange"), "--registers", str(registers), "--qp", "2", "--psn", "0x1234")
    process = receiver(processor)
    result = ended(processor.start("b", *program, "--server", f"{SERVER_IP}:{PORT}", "--retry-cnt", "3"))
    assert (result.status, result.stdout) == (0, "queue pair 2 is ready to send\n"), result
    written = np.fromfile(registers, np.uint32)
    found = {name: int(written[address(name, 2) // 4]) for name in NAMES.values() if "." in name}
    [server] = np.frombuffer(socket.inet_aton(SERVER_IP), ">u4")
    assert (found["qp.dst_ip"], found["qp.init_psn"], found["qp.state"]) == (server, 0x1234, 3)
    assert found["qp.transport"] == 5 | 14 << 4 | 3 << 12 | 7 << 16
    assert (found["ring.slots"], found["ring.slot_size"]) == (8, 16384)
    mac = json.loads(processor.output("s", "ip", "-json", "link", "show", "veth0"))[0]["address"]
    assert found["qp.dst_mac_hi"] << 32 | found["qp.dst_mac_lo"] == int(mac.replace(":", ""), 16)
    processor.counted(1, "boards_up")
    metrics = processor.metrics()
    assert found["qp.dest_qpn"] == metrics[f'board_queue_pair{{board="{BOARD}"}}']
    untouched = np.setdiff1d(np.flatnonzero(written), [address(name, 2) // 4 for name in NAMES.values() if "." in name])
    assert [int(at) * 4 for at in untouched] == [address(name) for name in ("id", "build", "local_ip", "qpn_base")]

    for arguments, why in (
        (("--server", "nowhere"), "nowhere: write HOST:PORT"),
        (("--server", f"{SERVER_IP}:1"), "server: Connection refused"),
        (("--server", f"{SERVER_IP}:{PORT}", "--qp", "4"), "queue pair: the front end has fewer"),
        (("--server", f"{SERVER_IP}:{PORT}", "--psn", "0x1000000"), "--psn: the value is out of range"),
        (("--server", f"{SERVER_IP}:{PORT}", "--registers", "/dev/null/x"), "/dev/null/x: Not a directory"),
    ):
        result = ended(processor.start("b", *program, *arguments))
        assert result.status in (1, 2) and why in result.stderr, result
    process.send_signal(signal.SIGINT)
    ended(process)


@pytest.mark.usefixtures("namespaces")
def test_wrong_lines_are_answered_with_the_reason_and_keep_no_board_from_its_queue_pair(processor: Network) -> None:
    process = receiver(processor)
    good = {"ip": BOARD, "qpn": 0x200, "psn": 1}
    wrong = {
        b"penstock\n": "the line: expected value",
        b"\n": "the line: EOF",
        line(ip=BOARD, qpn=0x200): "missing field `psn`",
        line(**good, mtu=9000): "unknown field `mtu`",
        line(**good | {"qpn": 1}): "qpn 1: allowed are 2 to 16777215",
        line(**good | {"qpn": 1 << 24}): "qpn 16777216: allowed are",
        line(**good | {"psn": 1 << 24}): "psn 16777216: allowed are",
        line(**good | {"psn": -1}): "invalid value",
        line(**good | {"ip": "10.77.9.2"}): "10.77.9.2 is no board of this run",
        line(qpn=0x200, psn=1): f"{PROCESSOR} is no board of this run",
        b"x" * 2000: "a line has at most 1024 bytes",
    }
    for text, why in wrong.items():
        [answer] = conversation(processor, text, end="b")
        assert why in answer["error"], (text, answer)
    assert processor.metrics()["boards_up"] == 0

    # Silent connections take places; each address has few, and each of them ends.
    with processor.inside("b"), ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection((SERVER_IP, PORT), timeout=60)) for _ in range(50)]
        [answer] = conversation(processor, line(**good), end="s")
        assert answer["ip"] == SERVER_IP and answer["slots"] == 8 and answer["mtu"] == 4096, answer
        processor.counted(1, "boards_up")
        reasons = {link.makefile("rb").readline() for link in idle}
    assert reasons <= {b"", line(error="no line came in time").replace(b": ", b":")}, reasons

    process.send_signal(signal.SIGINT)
    report = ended(process).json()
    assert report["cm_strangers"] == 2
    assert (report["counters"]["exchange_answered"], report["counters"]["exchange_refused"] >= len(wrong)) == (1, True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--exchange", "18600", "--cm", "rdma"), "cannot be used with"),
        (("--exchange", "0"), "1..=65535"),
        (("--exchange", "18600", "--backend", "tcp"), "--exchange: streams over TCP have no queue pairs"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(built, options: tuple[str, ...], why: str) -> None:
    command = [built / "penstock", "recv", BOARD, "--iface", "lo", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and why in result.stderr, result
