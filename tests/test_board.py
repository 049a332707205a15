# SPDX-License-Identifier: Apache-2.0
"""`penstock board`: the verilated gateware against this host's kernel, uHAL, and a responder of scapy."""

import ipaddress
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from board_server import (
    BOARD_IP,
    BOARD_MAC,
    BOARD_QPN,
    ROOT,
    SERVER_IP,
    SERVER_QPN,
    Network,
    PacketCable,
    Server,
    UnixCable,
)
from lib import connection as cm
from lib.fragment import Fragment, Part
from lib.source_model import prbs31_bytes
from processes import killed
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether
from scapy.utils import PcapNgReader, PcapNgWriter

ADDRESSES = ROOT / "build/gen/penstock.xml"
DEADLINE_S = 300  # a board that hangs fails its test
BASE, RKEY, PSN = 0x10000, 7, 0x123

tools = pytest.mark.usefixtures("namespaces")


@pytest.fixture
def network():
    network = Network(f"pstk-board-{os.getpid()}")
    yield network
    network.close()


class Board:
    """A running `penstock board`."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)

    def end(self, status: int = 0) -> dict:
        """The summary of a board that ends by itself."""
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == status, f"{self.process.returncode}: {err}{out[-2000:]}"
        return json.loads(out)

    def interrupt(self, status: int = 0) -> dict:
        self.process.send_signal(signal.SIGINT)
        return self.end(status)


@pytest.fixture
def start(penstock):
    """Starts boards, in a namespace or not, and ends those that are left over."""
    boards = []

    def begin(*options: str, network: Network | None = None) -> Board:
        command = [str(penstock.binary), "board", "--json", "--ip", BOARD_IP, *map(str, options)]
        boards.append(Board(network.command(*command) if network else command))
        return boards[-1]

    yield begin
    for board in boards:
        board.process.kill()
        board.process.communicate()


@contextmanager
def until(what: str):
    """Polls: `with until("...") as waiting: while waiting(): ...`."""
    deadline = time.monotonic() + DEADLINE_S

    def waiting() -> bool:
        assert time.monotonic() < deadline, what
        return True

    yield waiting


def wait_for(network: Network, interface: str) -> None:
    with until(f"no interface {interface}") as waiting:
        while interface not in network.run("ip", "-br", "link") and waiting():
            time.sleep(0.02)


@pytest.fixture
def tap(start, network):
    """A board on a TAP device of a namespace whose kernel has the address of the server."""
    board = start("--tap", "pstk0", network=network)
    wait_for(network, "pstk0")
    network.run("ip", "addr", "add", f"{SERVER_IP}/24", "dev", "pstk0")
    network.run("ip", "link", "set", "pstk0", "mtu", "9000", "up")
    return board


@tools
def test_the_kernel_pings_the_board_with_every_class_of_size_and_resolves_it(tap, network):
    sizes = [*range(0, 20), *range(60, 70), 255, 256, 1471, 1472, 1473, 4095, 8191, 8971, 8972]
    for size in sizes:
        reported = network.run("ping", "-c", "1", "-W", "100", "-M", "do", "-s", str(size), BOARD_IP)
        assert " 0% packet loss" in reported and "wrong" not in reported, reported
    assert f"{BOARD_IP} dev pstk0 lladdr {BOARD_MAC}" in network.run("ip", "neigh")
    report = tap.interrupt()
    assert report["counters"]["icmp_echo_replies"] == len(sizes)
    assert report["end"] == "interrupted" and report["timing"]["slowdown"] > 1


@tools
def test_an_echo_of_every_size_comes_back_byte_for_byte(tap, network):
    """0 to 129 and each 127th up to a jumbo frame's 8972; `PENSTOCK_ALL_SIZES=1` for all 8973, some minutes."""
    with network.inside():
        Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")
        echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    data = random.Random(1).randbytes(8972)
    step = 1 if os.environ.get("PENSTOCK_ALL_SIZES") else 127
    with echo:
        echo.settimeout(DEADLINE_S)
        echo.connect((BOARD_IP, 0))
        for size in [*range(130), *range(130, 8972, step), 8972]:
            sequence = size.to_bytes(2)  # identifier and checksum are the kernel's, which drops what is wrong
            echo.send(bytes([8, 0, 0, 0, 0, 0]) + sequence + data[:size])
            assert echo.recv(10_000)[6:] == sequence + data[:size], size


UHAL = """
import sys, uhal
uhal.disableLogging()
board = uhal.getDevice("penstock", f"ipbusudp-2.0://{sys.argv[1]}:50001", f"file://{sys.argv[2]}")
board.setTimeoutPeriod(20000)
board.getNode("scratch").write(0xCAFE0123)
board.getNode("flow_control.traffic_class").write(5)
names = ["id", "scratch", "flow_control.traffic_class", "build.n_qp"]
values = [board.getNode(name).read() for name in names]
board.dispatch()
print(*(f"{int(value):x}" for value in values))
"""


@tools
def test_uhal_reads_and_writes_registers_over_the_kernel_s_own_udp(tap, network):
    reported = network.run(sys.executable, "-c", UHAL, BOARD_IP, str(ADDRESSES))
    assert reported.split() == ["5053544b", "cafe0123", "5", "4"]


@tools
def test_uhal_works_across_a_veth_pair_that_leaves_checksums_to_hardware(start, network):
    network.run("ip", "link", "add", "far", "type", "veth", "peer", "name", "near")
    network.run("ip", "addr", "add", f"{SERVER_IP}/24", "dev", "near")
    for side in ("far", "near"):
        network.run("ip", "link", "set", side, "up")
    board = start("--packet", "far", network=network)
    reported = network.run(sys.executable, "-c", UHAL, BOARD_IP, str(ADDRESSES))
    assert reported.split() == ["5053544b", "cafe0123", "5", "4"]
    network.run("ping", "-c", "1", "-W", "100", BOARD_IP)
    report = board.interrupt()
    assert report["counters"]["ip_checksum"] == 0


@tools
def test_a_change_of_servers_is_announced_and_one_that_cannot_be_is_refused(tap, network):
    def change(*options: str) -> subprocess.CompletedProcess[str]:
        command = network.command(sys.executable, str(ROOT / "examples/change_servers.py"), *options, BOARD_IP)
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    beyond = change("--live", "0,4", "--first", "100")
    assert beyond.returncode == 1 and "has 4 queue pairs, and no 4" in beyond.stderr
    announced = change("--live", "0,2,3", "--first", "5000000000")
    assert announced.returncode == 0 and announced.stdout.startswith(f"{BOARD_IP}: 3 servers from event 5000000000 on")
    again = change("--live", "0,2", "--first", "6000000000")
    assert again.returncode == 1 and "no event of the last change has come yet" in again.stderr
    assert change("--live", "1,1", "--first", "0").returncode == 2


@tools
def test_an_access_list_is_set_over_the_network_and_locked_and_strangers_are_refused(tap, network):
    def access(*options: str) -> subprocess.CompletedProcess[str]:
        command = network.command(sys.executable, str(ROOT / "examples/access_list.py"), *options, BOARD_IP)
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert access().stdout == f"{BOARD_IP}: serves all hosts\n"
    shut_out = access("--allow", "10.200.0.0/16")
    assert shut_out.returncode == 1 and f"would shut out this host: add {SERVER_IP}" in shut_out.stderr
    assert access("--allow", ",".join(["10.0.0.1"] * 9)).returncode == 2
    assert "has host bits set" in access("--allow", f"{SERVER_IP}/24").stderr
    assert (
        access("--allow", f"{SERVER_IP},10.200.0.0/16").stdout == f"{BOARD_IP}: serves {SERVER_IP}/32, 10.200.0.0/16\n"
    )
    assert access("--lock").stdout.endswith(", locked until reset\n")
    locked = access("--allow", "all")
    assert locked.returncode == 1 and "its list is locked until reset" in locked.stderr

    stranger = str(ipaddress.ip_address(SERVER_IP) + 60)
    network.run("ip", "addr", "add", f"{stranger}/24", "dev", "pstk0")
    ip = int.from_bytes(socket.inet_aton(stranger))
    opening = cm.Message(cm.OPEN_QP, cm.Info(SERVER_QPN, PSN, RKEY, BASE, ip), port=cm.REQUEST_PORT).pack()
    with network.inside():
        local, foreign = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    foreign.bind((stranger, cm.REQUEST_PORT))
    foreign.sendto(opening, (BOARD_IP, cm.REQUEST_PORT))
    local.bind((SERVER_IP, cm.REQUEST_PORT))
    local.settimeout(DEADLINE_S)
    local.sendto(opening, (BOARD_IP, cm.REQUEST_PORT))
    assert cm.Message.unpack(local.recv(2048)).answer != cm.NONE, "answered after the stranger's was seen"
    foreign.setblocking(False)
    with pytest.raises(BlockingIOError):
        foreign.recv(2048)
    report = tap.interrupt()
    assert report["counters"]["udp_strangers"] == 1 and report["counters"]["cm_requests"] == 1


@tools
def test_a_server_opens_a_queue_pair_over_the_kernel_s_udp_and_takes_the_board_s_data(tap, network):
    with network.inside():
        manager = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        roce = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # or the kernel answers that nobody is at the port
    manager.bind((SERVER_IP, cm.REQUEST_PORT))
    manager.settimeout(DEADLINE_S)
    roce.bind((SERVER_IP, 4791))
    ip = int.from_bytes(socket.inet_aton(SERVER_IP))

    def exchange(message: cm.Message) -> cm.Message:
        manager.sendto(message.pack(), (BOARD_IP, cm.REQUEST_PORT))
        return cm.Message.unpack(manager.recv(2048))

    peer = cm.Info(SERVER_QPN, PSN, RKEY, BASE, ip)
    local = exchange(cm.Message(cm.OPEN_QP, peer, port=cm.REQUEST_PORT)).sender
    # The gateware divides by 256; the base is drawn, so that it is the usual one once in 65,534 runs.
    assert local.qpn % 256 == 0 and local.qpn not in (0, BOARD_QPN)

    server = Server(PacketCable(network, "pstk0"), psn=local.psn, rkey=RKEY, arp=False)
    server.board_qpn = local.qpn
    server.mac = network.run("cat", "/sys/class/net/pstk0/address").strip()
    transmit = cm.Transmit(with_imm=True, is_write=True, length=3000, count=24)
    request = cm.Message(cm.NONE, peer, local, port=cm.REQUEST_PORT, transmit=transmit)
    assert exchange(request).answer == cm.ACK
    with until("24 messages") as waiting:
        while len(server.messages) < 24 and waiting():
            server.step()
    stream = prbs31_bytes(0, invert=True)
    for number, message in enumerate(server.messages):
        assert message.data == bytes(next(stream) for _ in range(3000))
        assert message.va == BASE + 3000 * number % 65536, "on from the last one, in 16 bits"
    assert exchange(cm.Message(cm.CLOSE_QP, peer, local, port=cm.REQUEST_PORT)).answer == cm.ACK
    assert tap.interrupt()["messages"] == {"ok": 24, "failed": 0, "errors": {}, "first_error": None}


@tools
def test_a_receiver_sets_the_board_s_share_of_the_line_before_it_opens_it(tap, network, penstock, tmp_path):
    """Weight 3, with an absent board of weight 1: 3/4 of the line, 15/16 of that at the least."""
    (tmp_path / "boards.toml").write_text(
        f'[[board]]\nip = "{BOARD_IP}"\nweight = 3\n[[board]]\nname = "gone"\nip = "10.9.0.9"\n'
    )
    binary, end = str(penstock.binary), ("--state", "none", "--bring-up", "1", "--seconds", "2", "--linger", "0")
    command = (binary, "recv", "--iface", "pstk0", "--file", str(tmp_path / "boards.toml"), "--line", "8Gbps", *end)
    done = subprocess.run(network.command(*command, "--json"), capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["shares"] == {BOARD_IP: "6Gbps", "gone": None}, done.stderr
    assert report["boards"][0]["lives"] == 1, done.stderr
    status = json.loads(network.run(binary, "ctl", "status", BOARD_IP, "--json"))["boards"][0]
    registers = network.run(binary, "ctl", "get", BOARD_IP, "cc[0].rate_min", "cc[3].rate_start", "cc[0].rate_line")
    assert status["share"] == "6Gbps"
    assert all(rate in registers for rate in ("5.625Gbps", "6Gbps", "10Gbps")), registers
    in_force = {"law": "dcqcn", "profile": "penstock", "share": "6Gbps"}
    assert tap.interrupt()["congestion"] == [{"group": group, **in_force} for group in range(4)]


@tools
def test_a_board_that_begins_anew_in_a_run_gets_its_share_again_but_not_over_what_an_operator_has_set(
    start, network, penstock
):
    """Killed and started again on a TAP device that stays; group 2 is then set by hand. A TAP device has no speed."""
    network.run("ip", "tuntap", "add", "dev", "pstk1", "mode", "tap")
    network.run("ip", "addr", "add", f"{SERVER_IP}/24", "dev", "pstk1")
    network.run("ip", "link", "set", "pstk1", "mtu", "9000", "up")
    binary = str(penstock.binary)
    command = (binary, "recv", BOARD_IP, "--iface", "pstk1", "--state", "none", "--linger", "0", "--keep-alive", "100")
    refused = subprocess.run(network.command(*command, "--line"), capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "pstk1 is a TAP device, whose speed means nothing" in refused.stderr

    def wait_for_share(board: Board, share: str | None) -> None:
        with until(f"a share of {share}") as waiting:
            while waiting():
                assert board.process.poll() is None, board.process.stderr.read()
                status = network.command(binary, "ctl", "status", BOARD_IP, "--json")
                found = json.loads(subprocess.run(status, capture_output=True, text=True, check=False).stdout)["boards"]
                if found and found[0]["share"] == share:
                    return

    board = start("--tap", "pstk1", network=network)
    wait_for_share(board, None)
    receiver = subprocess.Popen(network.command(*command, "--line", "6Gbps"), stderr=subprocess.PIPE, text=True)
    try:
        wait_for_share(board, "6Gbps")
        killed(board.process)
        board = start("--tap", "pstk1", network=network)
        wait_for_share(board, "6Gbps")
    finally:
        receiver.kill()
        receiver.communicate()
    network.run(binary, "ctl", "set", BOARD_IP, "cc[2].rate_ai=77Mbps")
    command = (*command, "--line", "3Gbps", "--bring-up", "1", "--seconds", "2", "--json")
    done = subprocess.run(network.command(*command), capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["shares"] == {BOARD_IP: "3Gbps"}, done.stderr
    assert f"{BOARD_IP}: cc[2] (law dcqcn, profile custom) keeps what it was set to" in done.stderr
    assert f"{BOARD_IP}: share 3Gbps replaces 6Gbps" in done.stderr
    groups = [(group["profile"], group["share"]) for group in board.interrupt()["congestion"]]
    assert groups == [("penstock", "3Gbps"), ("penstock", "3Gbps"), ("custom", None), ("penstock", "3Gbps")]


@tools
def test_a_board_opens_a_queue_pair_by_itself_on_a_tap_device_that_was_there_before(start, network):
    network.run("ip", "tuntap", "add", "dev", "pstk1", "mode", "tap")
    network.run("ip", "addr", "add", f"{SERVER_IP}/24", "dev", "pstk1")
    network.run("ip", "link", "set", "pstk1", "mtu", "9000", "up")
    with network.inside():
        manager = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        roce = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    manager.bind((SERVER_IP, cm.REQUEST_PORT))
    manager.settimeout(DEADLINE_S)
    roce.bind((SERVER_IP, 4791))
    board = start("--tap", "pstk1", "--peer-ip", SERVER_IP, "--open", "--counter", "5000x4", network=network)
    local = cm.Info(SERVER_QPN, PSN, RKEY, BASE, int.from_bytes(socket.inet_aton(SERVER_IP)))
    server = Server(PacketCable(network, "pstk1"), rkey=RKEY, arp=False)
    server.mac = network.run("cat", "/sys/class/net/pstk1/address").strip()
    request = cm.Message.unpack(manager.recv(2048))
    assert (request.request, request.info_valid) == (cm.OPEN_QP, True)
    server.responder.psn, server.board_qpn = request.sender.psn, request.sender.qpn
    manager.sendto(request.answered(cm.ACK, local).pack(), (BOARD_IP, request.port))
    server.serve(board.process)
    assert board.end()["messages"]["ok"] == 4
    assert [(message.va, len(message.data)) for message in server.messages] == [
        (BASE + 131_072 * n, 5000) for n in range(4)
    ]


def connect(psn: int = PSN) -> list[str]:
    return ["--peer-ip", SERVER_IP, "--connect", f"qpn={SERVER_QPN:#x},psn={psn},rkey={RKEY},va={BASE:#x}"]


@pytest.fixture
def machine(tmp_path):
    """The virtual machine's end of a pair of Unix sockets; the board's flag for its own."""
    local, board = tmp_path / "machine.sock", tmp_path / "board.sock"
    return UnixCable(local, board), ["--unix", f"{board},{local}"]


def test_counter_words_reach_a_ring_of_slots_over_a_unix_socket_and_a_capture_has_every_frame(start, machine, tmp_path):
    cable, wire = machine
    capture = tmp_path / "board.pcapng"
    options = ["--counter", "10000x5", "--slots", "3", "--mtu", "1024", "--capture", capture]
    board = start(*wire, *connect(), *options)
    server = Server(cable, psn=PSN, mtu=1024, rkey=RKEY)
    server.serve(board.process)
    report = board.end()
    words = iter(range(10**6))
    for number, message in enumerate(server.messages):
        assert (message.va, message.imm) == (BASE + number % 3 * 12288, number % 3)
        assert message.data == b"".join(next(words).to_bytes(8, "little") for _ in range(1250))
    assert len(server.messages) == report["messages"]["ok"] == 5
    assert report["queue_pairs"][0]["bytes_acked"] == 50_000
    with PcapNgReader(str(capture)) as frames:
        times = [float(frame.time) for frame in frames]
    assert len(times) == report["captured"] == report["frames"]["sent"] + report["frames"]["received"]
    assert times == sorted(times) and times[-1] <= report["time"]["simulated_s"]


@pytest.mark.parametrize(
    ("verb", "immediates"),
    [("write-imm", [0, 1, 2, 0]), ("write", [None] * 4), ("send", [None] * 4), ("send-imm", [0, 1, 2, 0])],
)
def test_messages_of_the_gatewares_source_have_an_immediate_on_request(start, machine, verb, immediates):
    cable, wire = machine
    board = start(*wire, *connect(), "--counter", "1000x4", "--slots", "3", "--verb", verb)
    server = Server(cable, psn=PSN, rkey=RKEY)
    server.serve(board.process)
    assert board.end()["messages"]["ok"] == 4
    assert [message.imm for message in server.messages] == immediates
    if verb.startswith("write"):
        assert [message.va for message in server.messages] == [BASE + slot * 4096 for slot in (0, 1, 2, 0)]


@pytest.mark.parametrize("verb", ["write-imm", "send-imm"])
def test_the_gateware_makes_the_messages_of_recorded_events_of_their_raw_samples(start, machine, recorded, verb):
    cable, wire = machine
    options = ["--events", "3", "--share", "1/16", "--interval", "30us", "--slots", "2", "--verb", verb]
    board = start(*wire, *connect(), *options)
    server = Server(cable, psn=PSN, rkey=RKEY)
    server.serve(board.process)
    report = board.end()
    assert report["messages"]["ok"] == report["counters"]["event_messages"] == 3
    triggers = report["triggers"]
    assert (triggers["received"], triggers["accepted"]) == (3, 3) and triggers["busy_s"] > 0
    assert [message.imm for message in server.messages] == [0, 1, 0]
    begun = int.from_bytes(server.messages[0].data[16:24], "little")
    for number, message in enumerate(server.messages):
        modules = recorded[number][1::16]
        parts = [Part(i, modules[8 * i : 8 * i + 8].tobytes()) for i in range(3)]  # 17 modules, 8 together
        at = int.from_bytes(message.data[16:24], "little")  # by the gateware's clock, which counts cycles of 6.4 ns
        assert abs(at - begun - 30_000 * number) < 16
        expected = Fragment(number, at, 1, parts=parts).message(source_id=1)
        assert message.data == expected, f"event {number}"
        if verb.startswith("write"):
            assert message.va == BASE + number % 2 * 20480


def test_a_machine_that_does_not_look_for_a_second_loses_nothing(start, machine):
    cable, wire = machine
    board = start(*wire, *connect(), "--prbs", "40000x3", "--verb", "send")
    server = Server(cable, psn=PSN, rkey=RKEY)
    while not server.messages:
        server.step()
    time.sleep(1)  # its socket takes some frames, then the board's clock stands still
    server.serve(board.process)
    report = board.end()
    assert [len(message.data) for message in server.messages] == [40_000] * 3
    assert report["queue_pairs"][0]["packets_retransmitted"] == 0 and report["frames"]["lost"] == 0


def test_a_slow_server_is_waited_for_and_nothing_times_out(start, machine):
    cable, wire = machine
    board = start(*wire, *connect(), "--prbs", "4096x2", "--ack-timeout", "10", "--patience", "2000")
    server = Server(cable, psn=PSN, rkey=RKEY)
    answer = server.answer

    def late(transport) -> None:
        time.sleep(2.5)  # some 600 times the 4.2 ms that its timeout is
        answer(transport)

    server.answer = late
    server.serve(board.process)
    report = board.end()
    assert report["counters"]["local_ack_timeout_err"] == 0 and report["messages"]["ok"] == 2
    assert report["time"]["waiting_cycles"] > 0


def test_a_server_that_refuses_the_key_fails_the_messages_and_the_status_is_1(start, machine):
    cable, wire = machine
    board = start(*wire, *connect(), "--prbs", "100x3")
    server = Server(cable, psn=PSN, rkey=RKEY)
    from lib.responder import Ack

    server.responder.refuse = lambda packet: Ack.ACCESS
    server.serve(board.process)
    report = board.end(status=1)
    assert report["messages"]["failed"] == 3
    assert "remote access error" in report["messages"]["first_error"]


def test_the_emulated_switch_halves_the_rate_at_its_first_cnp_as_in_figure_9(start, machine):
    cable, wire = machine
    options = ["--counter", "32000x10", "--verb", "write", "--switch", "scenarios/advcam-9.toml"]
    board = start(*wire, *connect(), *options)
    server = Server(cable, psn=PSN, rkey=RKEY)
    server.serve(board.process)
    report = board.end()
    switch, counters = report["switch"], report["counters"]
    assert [len(message.data) for message in server.messages] == [32_000] * 10
    first, *later = switch["cuts"]
    assert (first["alpha"], first["before_gbps"], first["after_gbps"]) == (1, 10, 5)
    assert later and all(cut["after_gbps"] > (1 - 0.51 * cut["alpha"]) * cut["before_gbps"] for cut in later)
    assert len(switch["notifications"]) == len(switch["cuts"]) == counters["rx_cnp_packets"]
    assert all(sent["measured_gbps"] > sent["threshold_gbps"] == 5 for sent in switch["notifications"])
    assert max(rate["current_gbps"] for rate in report["rates"]) == 10


def test_a_replayed_capture_is_answered_the_same_each_time(start, tmp_path):
    to_board = Ether(src="02:50:53:54:4b:fe", dst=BOARD_MAC)
    request = Ether(src="02:50:53:54:4b:fe", dst="ff:ff:ff:ff:ff:ff") / ARP(
        op=1, hwsrc="02:50:53:54:4b:fe", psrc=SERVER_IP, pdst=BOARD_IP
    )
    pings = [to_board / IP(src=SERVER_IP, dst=BOARD_IP) / ICMP(seq=n) / bytes(range(40 * n)) for n in range(4)]
    given, answers = tmp_path / "given.pcapng", [tmp_path / f"answers{n}.pcapng" for n in range(2)]
    writer = PcapNgWriter(str(given))
    for number, frame in enumerate([request, *pings]):
        frame.time = 1_700_000_000 + number * 20e-6
        writer.write(frame)
    writer.close()
    for path in answers:
        report = start("--replay", given, "--capture", path).end()
        assert report["counters"]["icmp_echo_replies"] == 4 and report["counters"]["arp_requests"] == 1
    with PcapNgReader(str(answers[0])) as frames:
        seen = [(round(float(frame.time) * 1e6), frame) for frame in frames]
    entered = [at for at, frame in seen if frame.dst != "02:50:53:54:4b:fe"]
    assert all(abs(at - 20 * number) < 3 for number, at in enumerate(entered[-5:])), entered
    replies = [frame for _, frame in seen if frame.dst == "02:50:53:54:4b:fe"]
    assert replies[0][ARP].hwsrc == BOARD_MAC
    assert [bytes(frame[ICMP].payload)[: 40 * n] for n, frame in enumerate(replies[1:])] == [
        bytes(range(40 * n)) for n in range(4)
    ]
    assert answers[0].read_bytes() == answers[1].read_bytes()


def refusal(penstock, *options: str, **how) -> str:
    how = {"cwd": ROOT, **how}
    command = [str(penstock.binary), "board", "--ip", BOARD_IP, *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, **how)
    assert done.returncode == 2 and not done.stdout, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr


def test_what_cannot_be_is_refused_with_its_value_and_a_remedy(penstock, tmp_path, machine):
    cable, _ = machine
    address = cable.socket.getsockname()
    text, cut = tmp_path / "text.pcapng", tmp_path / "cut.pcapng"
    text.write_text("not a capture")
    cut.write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))
    plain = tmp_path / "plain"
    plain.write_text("")
    for options, words in [
        (["--packet", "nosuch0"], ["nosuch0", "missing", "lo"]),
        (["--unix", f"{address},{tmp_path}/x"], [address, "in use"]),
        (["--unix", f"{plain},{tmp_path}/x"], ["plain", "no socket"]),
        (["--unix", "/one/path"], ["/one/path", "comma"]),
        (["--replay", text], ["text.pcapng", "not a pcapng file", "editcap"]),
        (["--replay", cut], ["cut.pcapng", "not a pcapng file"]),
        (["--replay", tmp_path / "none"], ["none", "cannot read"]),
        (["--replay", text, "--mtu", "1500"], ["1500", "256, 512, 1024, 2048, 4096"]),
        (["--replay", text, "--prbs", "0x1x4"], ["0x1x4"]),
        (["--replay", text, "--prbs", "100x0"], ["0 messages"]),
        (["--replay", text, "--qpn-base", "5"], ["0x5", "0x200"]),
        (["--replay", text, "--rings", "disk"], ["disk", "chip and memory"]),
        (["--replay", text, "--rings", "memory"], ["10Gbps and rings in memory", "--features all-tops"]),
        (["--replay", text, "--connect", "qpn=1"], ["--peer-ip"]),
        (["--replay", text, "--mac", "01:00:5e:00:00:01"], ["01:00:5e", "group"]),
        (["--replay", text, "--counter", "100", "--slot-size", "64"], ["--slot-size 64", "100 bytes"]),
        (["--replay", text, "--events", "3", "--verb", "write"], ["--verb", "write-imm, send-imm"]),
        (["--replay", text, "--switch", plain, "--set", "switch.window=0ns"], ["switch.window", "more than 0"]),
        ([], ["--tap", "--unix"]),
    ]:
        reported = refusal(penstock, *options)
        assert all(word in reported for word in words), f"{options}: {reported}"


@tools
def test_a_user_without_the_right_to_a_tap_device_gets_the_commands(penstock):
    # pytest's folders are closed to other users; so may be the one that the tests are in.
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        Path(folder).chmod(0o755)
        everyones = type(penstock)(Path(shutil.copy(penstock.binary, folder)))
        nobody = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": folder}
        reported = refusal(everyones, "--tap", "pstk9", **nobody)
        assert "ip tuntap add dev pstk9 mode tap user" in reported and "setcap cap_net_admin" in reported
        reported = refusal(everyones, "--packet", "lo", **nobody)
        assert "cap_net_raw" in reported and "lo" in reported


def test_a_peer_that_never_answers_arp_is_named(start, machine):
    _, wire = machine
    board = start(*wire, *connect(), "--prbs", "100x1")
    _, err = board.process.communicate(timeout=DEADLINE_S)
    assert board.process.returncode == 1 and SERVER_IP in err and "--peer-mac" in err


@pytest.mark.parametrize(
    ("source", "status", "unfinished"),
    [
        (("--counter", "2000x5"), 1, "0 of 5 messages had ended: no server has opened the queue pair"),
        (("--counter", "2000"), 0, None),
    ],
)
def test_messages_that_were_requested_and_have_not_ended_in_time_are_a_fault(
    penstock, tmp_path, source, status, unfinished
):
    wire = ("--ip", BOARD_IP, "--unix", f"{tmp_path / 'own'},{tmp_path / 'peer'}")
    command = (penstock.binary, "board", *wire, *source, "--wall", "0.2", "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["end"], summary.get("unfinished")) == (status, "wall time limit", unfinished)
