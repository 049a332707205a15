# SPDX-License-Identifier: Apache-2.0
"""`penstock send --protocol tcp` against the kernel's TCP in another namespace: the simplified TCP meets the real one.

Promise checked: a plain socket receives every byte in order, whatever the network and the receiver do.
"""

import contextlib
import fcntl
import json
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet
from veth import LIMIT_S, SERVER_IP, Network, ended, first_board, until

pytestmark = pytest.mark.usefixtures("namespaces")

PORT = 10_000
HEADER, FRAGMENT_HEADER = 8, 40
FAULTS = [f"--{way}{kind}" for way in ("", "ack-") for kind in ("loss", "duplicate", "reorder", "corrupt")]


def emulator(network: Network, *options: object) -> subprocess.Popen:
    fixed = ["--protocol", "tcp", "--payload", "counter", "--connect", SERVER_IP]
    return network.send(*fixed, *map(str, options))


class Receiver:
    """An ordinary listening socket, and what came over each connection."""

    def __init__(self, network: Network, rcvbuf: int = 0, port: int = PORT) -> None:
        with network.inside("s"):
            self.socket = socket.create_server((SERVER_IP, port), backlog=256)
        if rcvbuf:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.socket.settimeout(LIMIT_S)
        self.streams: list[bytearray] = []
        self.threads: list[threading.Thread] = []
        self.waits = threading.Event()
        self.waits.set()

    def accept(self) -> socket.socket:
        connection, _ = self.socket.accept()
        connection.settimeout(LIMIT_S)
        return connection

    def drain(self, connection: socket.socket) -> None:
        """Reads until the other end aborts, whenever `waits` lets it."""
        stream = bytearray()
        self.streams.append(stream)

        def read() -> None:
            with contextlib.suppress(ConnectionResetError), connection:
                while self.waits.wait(LIMIT_S) and (part := connection.recv(1 << 20)):
                    stream.extend(part)

        self.threads.append(threading.Thread(target=read))
        self.threads[-1].start()

    def finish(self) -> list[bytearray]:
        for thread in self.threads:
            thread.join(LIMIT_S)
        self.socket.close()
        return self.streams


def messages(stream: bytearray) -> Iterator[bytes]:
    """The messages of a stream; each header and all padding are checked."""
    at = 0
    while at < len(stream):
        length = int.from_bytes(stream[at : at + 4], "little")
        assert int.from_bytes(stream[at + 4 : at + 8], "little") == length ^ int.from_bytes(b"PSTL", "little"), at
        message = bytes(stream[at + HEADER : at + HEADER + length])
        padding = -length % 8
        at += HEADER + length + padding
        assert len(message) == length and not any(stream[at - padding : at])
        yield message


def checked(stream: bytearray, events: int, length: int, first: int = 0) -> int:
    """A stream is what the counter makes, byte for byte; returns its source."""
    read = list(messages(stream))
    numbers = [int.from_bytes(message[16:24], "little") for message in read]
    assert numbers == list(range(first, first + events))
    words = -(-length // 8)
    payload = b"".join(message[FRAGMENT_HEADER:] for message in read)
    counter = np.arange(first * words, (first + events) * words, dtype="<u8").view(np.uint8)
    expected = counter.reshape(events, words * 8)[:, :length].tobytes()
    assert payload == expected
    [source] = {int.from_bytes(message[6:8], "little") for message in read}
    return source


def report(process: subprocess.Popen) -> dict:
    result = ended(process)
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    return result.json()


def one(network: Network, *options: object, events: int = 200, length: int = 20_001, rcvbuf: int = 0) -> dict:
    """One stream to one socket, compared; the sender's report on it."""
    receiver = Receiver(network, rcvbuf)
    sender = emulator(network, "-n", events, "-l", length, *options)
    receiver.drain(receiver.accept())
    output = report(sender)
    [stream] = receiver.finish()
    assert checked(stream, events, length) == 0
    [board] = output["boards"]
    assert (board["messages"], board["lives"]) == (events, 1)
    return board


def test_a_stream_arrives_byte_for_byte(wire):
    board = one(wire)
    assert board["mss"] == 4160 and board["bad_options"] == 0 and board["trouble"] is None


def test_every_byte_arrives_over_faults_in_both_directions(wire):
    faults = [word for fault in FAULTS for word in (fault, "0.01")]
    board = one(wire, "--mss", 1000, "--rto", 50, *faults, events=100)
    assert board["retransmitted"] > 0 and board["duplicate_acks"] > 0


def test_without_back_off_every_byte_arrives_too(wire):
    one(wire, "--mss", 1000, "--rto", 50, "--no-back-off", "--loss", "0.01", "--ack-loss", "0.05", events=100)


def test_sequence_numbers_wrap(wire):
    one(wire, "--iss", 2**32 - 100_000)


def test_short_fragments_fill_long_segments_unless_nagle_is_off(wire):
    board = one(wire, events=3000, length=64)
    assert board["segments"] < 1500
    one(wire, "--no-nagle", events=500, length=64)


def test_64_streams_at_once_are_kept_apart(wire):
    receiver = Receiver(wire)
    sender = emulator(wire, "--boards", 64, "-n", 30, "-l", 3000, "--ring", 65536)
    for _ in range(64):
        receiver.drain(receiver.accept())
    output = report(sender)
    streams = receiver.finish()
    assert sorted(checked(stream, 30, 3000) for stream in streams) == list(range(64))
    assert {board["state"] for board in output["boards"]} == {"closed"} and output["arp_answered"] >= 1


def test_a_window_that_stays_closed_is_probed_and_nothing_is_lost(wire):
    receiver = Receiver(wire, rcvbuf=30_000)
    sender = emulator(wire, "-n", 100, "-l", 5000, "--rto", 20, "--give-up", 3)
    receiver.waits.clear()
    connection = receiver.accept()
    receiver.drain(connection)
    # Many more timeouts than --give-up: the kernel answers the probes, so the stream lives.
    time.sleep(4)
    assert sender.poll() is None
    receiver.waits.set()
    [board] = report(sender)["boards"]
    assert board["window_closed"] >= 1 and board["window_probes"] > 3
    assert checked(receiver.finish()[0], 100, 5000) == 0


def test_a_window_that_shrinks_loses_nothing(wire):
    sysctl = ["ip", "netns", "exec", f"{wire.name}-s", "sysctl", "-q", "-w", "net.ipv4.tcp_shrink_window=1"]
    if subprocess.run(sysctl, capture_output=True).returncode:
        pytest.skip("this kernel never shrinks a window (before Linux 6.5)")
    receiver = Receiver(wire, rcvbuf=200_000)
    sender = emulator(wire, "-n", 200, "-l", 5000, "--rto", 20)
    connection = receiver.accept()
    read = bytearray()
    # The buffer shrinks while the sender holds an offer of the larger one.
    for size in (20_000, 5_000, 100_000):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        until = len(read) + 200_000
        while len(read) < until:
            read.extend(connection.recv(4096))
    receiver.drain(connection)
    report(sender)
    assert checked(read + receiver.finish()[0], 200, 5000) == 0


def test_a_receiver_that_is_killed_and_comes_back_gets_what_was_not_acknowledged(wire):
    receiver = Receiver(wire)
    sender = emulator(wire, "-n", 300, "-l", 10_000, "--rate", 300)
    connection = receiver.accept()
    first = bytearray()
    while len(first) < 300_000:
        first.extend(connection.recv(65536))
    # As the kernel ends the sockets of a killed process: by RST, as bytes are unread.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    receiver.drain(receiver.accept())
    [board] = report(sender)["boards"]
    assert board["lives"] == 2 and board["messages"] == 300
    [second] = receiver.finish()
    begins = int.from_bytes(second[HEADER + 16 : HEADER + 24], "little")
    # What was acknowledged is not sent again; the application had not read all of it.
    assert 0 < begins <= 300 and checked(second, 300 - begins, 10_000, begins) == 0


def unsent(connection: socket.socket) -> int:
    """Bytes that a socket has written and that are not acknowledged (tcp(7), SIOCOUTQ)."""
    return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]


def test_what_a_receiver_writes_is_acknowledged_whatever_its_length_and_dropped(wire):
    receiver = Receiver(wire)
    sender = emulator(wire, "-n", 200, "-l", 4000, "--rate", 100)
    connection = receiver.accept()
    for written in (1, 459, 1000, 60_000, 300_000):
        connection.sendall(bytes(written))
        until(f"acknowledgement of {written} bytes", lambda: unsent(connection) == 0)
    receiver.drain(connection)
    output = report(sender)
    [board] = output["boards"]
    assert board["peer_data"] >= 5 and board["lives"] == 1 and output["bad_frames"] == 0
    assert checked(receiver.finish()[0], 200, 4000) == 0


@contextlib.contextmanager
def raw_socket(network: Network) -> Iterator[socket.socket]:
    """All frames at the server's end."""
    with network.inside("s"):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    with raw:
        raw.bind(("veth0", 0))
        raw.settimeout(LIMIT_S)
        yield raw


def segment_of_the_server(raw: socket.socket) -> Packet:
    """The next segment from the receiver to its board."""
    while True:
        frame = Ether(raw.recv(65536))
        if TCP in frame and frame[TCP].sport == PORT and frame[TCP].flags == "A":
            return frame


def test_a_segment_of_another_vlan_is_none_of_the_stream(wire):
    receiver = Receiver(wire)
    with raw_socket(wire) as raw:
        sender = emulator(wire, "-n", 200, "-l", 4000, "--rate", 100)
        connection = receiver.accept()
        receiver.drain(connection)
        seen = segment_of_the_server(raw)
        # In all else the segment that ends the connection.
        reset = TCP(sport=PORT, dport=seen[TCP].dport, seq=seen[TCP].seq, flags="R")
        ends = Ether(src=seen.src, dst=seen.dst), IP(src=seen[IP].src, dst=seen[IP].dst) / reset
        raw.send(bytes(ends[0] / Dot1Q(vlan=5) / ends[1]))
    output = report(sender)
    assert output["rx_foreign_vlan"] == 1 and output["boards"][0]["lives"] == 1
    assert checked(receiver.finish()[0], 200, 4000) == 0


def test_a_server_with_another_mac_is_found_again(wire):
    receiver = Receiver(wire)
    sender = emulator(wire, "-n", 200, "-l", 4000, "--rate", 200)
    connection = receiver.accept()
    assert len(connection.recv(1, socket.MSG_PEEK)) == 1
    subprocess.run(["ip", "-n", f"{wire.name}-s", "link", "set", "veth0", "address", "02:00:00:00:77:01"], check=True)
    wire.pin_board_mac(first_board())
    receiver.drain(connection)
    output = report(sender)
    assert output["hop_moves"] == 1 and output["boards"][0]["timeouts"] >= 1 and output["boards"][0]["lives"] == 1
    assert checked(receiver.finish()[0], 200, 4000) == 0


def test_another_host_that_claims_the_servers_address_gets_no_segment(wire):
    receiver = Receiver(wire)
    claimed = "02:00:00:00:77:66"
    with raw_socket(wire) as raw:
        sender = emulator(wire, "-n", 200, "-l", 4000, "--rate", 200)
        connection = receiver.accept()
        assert len(connection.recv(1, socket.MSG_PEEK)) == 1
        wire.pin_board_mac(first_board())
        for operation in (1, 2):
            arp = ARP(op=operation, hwsrc=claimed, psrc=SERVER_IP, hwdst=claimed, pdst=SERVER_IP)
            raw.send(bytes(Ether(src=claimed, dst="ff:ff:ff:ff:ff:ff") / arp))
        receiver.drain(connection)
        output = report(sender)
    assert (output["hop_claims"], output["hop_moves"], output["boards"][0]["lives"]) == (2, 0, 1)
    assert checked(receiver.finish()[0], 200, 4000) == 0


def test_a_hundred_opens_and_aborts(wire):
    receiver = Receiver(wire)
    for _ in range(4):
        sender = emulator(wire, "--boards", 25, "-n", 1, "-l", 100, "--ring", 4096)
        for _ in range(25):
            receiver.drain(receiver.accept())
        assert sum(board["messages"] for board in report(sender)["boards"]) == 25
    streams = receiver.finish()
    assert len(streams) == 100 and all(checked(stream, 1, 100) >= 0 for stream in streams)


def test_segments_longer_than_the_path_are_shortened(wire):
    """Between the two namespaces a router whose far link has an MTU of 1300 bytes, and that reports it."""
    name, ip = wire.name, ["ip", "netns", "exec"]
    far = "10.88.0.1"
    lines = [f"link add veth2 netns {name}-s mtu 1300 type veth peer name veth3 netns {name}-r mtu 1300"]
    subprocess.run(["ip", "netns", "add", f"{name}-r"], check=True)
    try:
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
        commands = [
            [*ip, f"{name}-r", "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"],
            ["ip", "-n", f"{name}-s", "addr", "add", f"{far}/24", "dev", "veth2"],
            ["ip", "-n", f"{name}-s", "link", "set", "veth2", "up"],
            ["ip", "-n", f"{name}-r", "addr", "add", "10.88.0.254/24", "dev", "veth3"],
            ["ip", "-n", f"{name}-r", "link", "set", "veth3", "up"],
            ["ip", "-n", f"{name}-s", "addr", "del", f"{SERVER_IP}/16", "dev", "veth0"],
            ["ip", "-n", f"{name}-s", "link", "set", "veth0", "netns", f"{name}-r"],
            ["ip", "-n", f"{name}-r", "addr", "add", "10.77.0.254/16", "dev", "veth0"],
            ["ip", "-n", f"{name}-r", "link", "set", "veth0", "up"],
            ["ip", "-n", f"{name}-s", "route", "add", "10.77.0.0/16", "via", "10.88.0.254"],
            ["ip", "-n", f"{name}-b", "addr", "add", "10.77.9.9/16", "dev", "veth1"],
            ["ip", "-n", f"{name}-b", "route", "add", "10.88.0.0/24", "via", "10.77.0.254"],
            # Of its own address the server names an MSS of 1260: a router that lets it name 4000 is the case meant.
            ["ip", "-n", f"{name}-s", "route", "change", "10.77.0.0/16", "via", "10.88.0.254", "advmss", "4000"],
        ]
        for command in commands:
            subprocess.run(command, check=True)
        with wire.inside("s"):
            server = socket.create_server((far, PORT))
        server.settimeout(LIMIT_S)
        options = ["--protocol", "tcp", "--payload", "counter", "--connect", far, "-n", "50", "-l", "9000"]
        sender = wire.send(*options)
        connection, stream = server.accept()[0], bytearray()
        connection.settimeout(LIMIT_S)
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                stream.extend(part)
        output = report(sender)
        assert checked(stream, 50, 9000) == 0
        assert output["boards"][0]["mss"] == 1260 and output["boards"][0]["path_mtu"] >= 1
        connection.close()
        server.close()
    finally:
        subprocess.run(["ip", "netns", "del", f"{name}-r"], capture_output=True)


def test_a_receiver_that_stands_still_for_two_seconds_only_delays(wire, tmp_path):
    """CMS-TCP section 3.3: "Linux is not a real-time OS"."""
    code = "import socket,sys\ns=socket.create_server(('0.0.0.0',10000));print('up',flush=True);c=s.accept()[0];n=0\n"
    code += "try:\n while p:=c.recv(65536): n+=len(p)\nexcept ConnectionResetError: pass\nprint(n,flush=True)"
    receiver = wire.start("s", "python3", "-c", code)
    assert receiver.stdout.readline() == "up\n"
    # 256 KiB of ring for 2 s at 8 MB/s: the front end is held back.
    sender = emulator(wire, "-n", 3000, "-l", 8000, "--rate", 1000, "--ring", 1 << 18)
    time.sleep(0.5)
    # The process group's first is `ip netns exec`, which has become python3.
    receiver.send_signal(signal.SIGSTOP)
    time.sleep(2)
    receiver.send_signal(signal.SIGCONT)
    [board] = report(sender)["boards"]
    assert board["messages"] == 3000 and board["lives"] == 1
    assert int(receiver.communicate(timeout=LIMIT_S)[0]) == 3000 * (HEADER + FRAGMENT_HEADER + 8000)


def test_another_tool_reads_the_streams_as_tcp_without_a_complaint(wire, tmp_path):
    capture = tmp_path / "stream.pcapng"
    options = ("-q", "-i", "veth0", "-s", "256", "-f", f"tcp port {PORT}", "-w", str(capture))
    sniffer = wire.start("s", "tshark", *options)
    until("a capture", lambda: capture.exists() and capture.stat().st_size > 0)
    one(wire, "--iss", 2**32 - 50_000, events=60)
    time.sleep(1)
    sniffer.send_signal(signal.SIGINT)
    ended(sniffer)

    def read(display_filter: str, *fields: str) -> list[str]:
        words = [word for field in fields for word in ("-e", field)]
        command = ["tshark", "-r", str(capture), "-Y", display_filter, *(["-T", "fields"] if fields else []), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    complaints = (
        "_ws.malformed || tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.analysis.out_of_order"
    )
    assert read(complaints) == []
    assert read("tcp.flags.syn==1 && tcp.flags.ack==0", "tcp.options.mss_val", "tcp.options.wscale.shift") == [
        "4160\t0"
    ]
    assert len(read("tcp.flags.reset==1")) == 1
    assert {line for line in read("tcp.stream", "tcp.stream")} == {"0"}


def refused(network: Network, *options: object, ip: str = "10.77.1.2", to: str = SERVER_IP) -> str:
    fixed = ["--iface", "veth1", "--ip", ip, "--protocol", "tcp", "--connect", to]
    result = ended(network.start("b", str(network.binary), "send", *fixed, *map(str, options)))
    assert result.status == 2, result.stderr
    return result.stderr


def test_what_cannot_work_is_refused_by_name(wire):
    subprocess.run(["ip", "-n", f"{wire.name}-b", "addr", "add", "10.77.1.1/16", "dev", "veth1"], check=True)
    reported = refused(wire, ip="10.77.1.1")
    assert "--ip 10.77.1.1" in reported and "--stack sockets" in reported
    assert "--mss 9000" in refused(wire, "--mss", 9000)
    assert "--ring 100" in refused(wire, "--ring", 100)
    assert "--rto 0" in refused(wire, "--rto", 0)
    assert "--connect 10.77.1.1" in refused(wire, to="10.77.1.1")


def test_a_port_where_nobody_listens_is_named(wire):
    sender = emulator(wire, "-n", 1, "-D", 2, "--port", 10_077)
    result = ended(sender)
    assert result.status == 1
    [fault] = json.loads(result.stdout)["faults"]
    assert f"{SERVER_IP}:10077" in fault and "no program listens on this port" in fault
    assert first_board() in fault


def test_an_ordinary_socket_whose_receiver_has_gone_is_a_fault_though_it_had_no_end(wire):
    subprocess.run(["ip", "-n", f"{wire.name}-b", "addr", "add", f"{first_board()}/16", "dev", "veth1"], check=True)
    receiver = Receiver(wire)
    sender = emulator(wire, "--stack", "sockets", "-l", 20_001)
    connection = receiver.accept()
    connection.recv(1)
    connection.close()
    result = ended(sender)
    assert result.status == 1, result
    [fault] = json.loads(result.stdout)["faults"]
    assert first_board() in fault and "--stack sockets opens no connection again, the emulator does" in fault


def test_ordinary_sockets_send_the_same_bytes(wire):
    subprocess.run(["ip", "-n", f"{wire.name}-b", "addr", "add", f"{first_board()}/16", "dev", "veth1"], check=True)
    receiver = Receiver(wire)
    sender = emulator(wire, "--stack", "sockets", "-n", 100, "-l", 20_001)
    receiver.drain(receiver.accept())
    assert report(sender)["stack"] == "sockets"
    assert checked(receiver.finish()[0], 100, 20_001) == 0
