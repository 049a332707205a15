# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --socket xdp` over a veth pair between two namespaces.

Promise checked: other traffic stays with the kernel, frames of every queue are received, obstacles are named, and
nothing is left on the interface. `test_recv.py` checks that events arrive complete and correct by this socket.
"""

import signal
import subprocess
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM
from socket import socket as udp_socket

import pytest
from processes import killed
from veth import (
    METRICS,
    SERVER_IP,
    Network,
    Result,
    complete_once_all_are_there,
    ended,
    first_board,
    no_xdp,
    read_until,
    until,
)

pytestmark = [
    pytest.mark.usefixtures("namespaces"),
    # `test_recv.py` checks there that it is refused.
    pytest.mark.skipif(no_xdp() is not None, reason=f"{no_xdp()}: no AF_XDP for MTU 4096"),
]
PYTHON = str(Path(__file__).resolve().parents[1] / ".venv/bin/python")
PATIENT = ("--event-timeout", 5000)
WITH_METRICS = ("--metrics", METRICS)
NATIVE = "veth0: AF_XDP, native mode, copy, 1 queue"

# A program that passes everything, put on an interface by a link and held until standard input ends.
HOLDER = """
import ctypes, os, platform, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
def bpf(command, request):
    result = libc.syscall(number, command, ctypes.c_char_p(request), len(request))
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result
code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 2, 0x95, 0, 0, 0))
licence = ctypes.create_string_buffer(b"GPL")
load = (6, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 32, b"", 0, 37)
program = bpf(5, struct.pack("<IIQQIIQII16sII", *load))
bpf(28, struct.pack("<IIII", program, socket.if_nametoindex(sys.argv[1]), 37, 0))
print("held", flush=True)
sys.stdin.read()
"""

# Frames that the program must leave to the kernel, though they name our port and address.
OTHER_FRAMES = """
import sys
from scapy.all import Ether, IP, UDP, Dot1Q, IPOption_NOP, Raw, fragment, sendp
iface, server, mac = sys.argv[1:]
ether = Ether(dst=mac)
ours = IP(src="10.77.1.1", dst=server) / UDP(sport=4791, dport=4791, chksum=0)
sendp([ether / part for part in fragment(ours / Raw(bytes(3000)), fragsize=1000)], iface=iface, verbose=0)
sendp(ether / Dot1Q(vlan=5) / ours / Raw(bytes(100)), iface=iface, verbose=0)
options = IP(src="10.77.1.1", dst=server, options=[IPOption_NOP()] * 4)
sendp(ether / options / UDP(sport=4791, dport=4791, chksum=0) / Raw(bytes(100)), iface=iface, verbose=0)
another = IP(src="10.77.1.1", dst=server) / UDP(sport=4791, dport=4790, chksum=0)
sendp([ether / another / Raw(bytes(100)), ether / ours / Raw(bytes(100))], iface=iface, verbose=0)
"""


def inside(network: Network, end: str, *command: str) -> str:
    """What a command says at the server's (s) or the boards' (b) end."""
    full = ["ip", "netns", "exec", f"{network.name}-{end}", *command]
    return subprocess.run(full, capture_output=True, text=True, check=True).stdout


def has_program(network: Network) -> bool:
    return "prog/xdp" in inside(network, "s", "ip", "link", "show", "veth0")


def stopped(process: subprocess.Popen) -> Result:
    process.send_signal(signal.SIGINT)
    return ended(process)


def datagrams(network: Network) -> tuple[int, int]:
    """Datagrams that the kernel has put together, and those it has given to or kept from a UDP socket."""
    lines = [line.split() for line in inside(network, "s", "cat", "/proc/net/snmp").splitlines()]
    ip, udp = (dict(zip(*(words[1:] for words in lines if words[0] == name), strict=True)) for name in ("Ip:", "Udp:"))
    return int(ip["ReasmOKs"]), int(udp["InDatagrams"]) + int(udp["InErrors"])


def test_a_receiver_that_is_killed_leaves_no_program_and_another_takes_its_place_at_once(network, tmp_path):
    sender = network.send("--boards", 2, "-l", 3000, "--rate", 300, "--ack-timeout", 16)
    network.socket = "xdp"
    receiver = network.recv(first_board(0), first_board(1), "--keep-alive", 200, *WITH_METRICS)
    network.counted(20, "events_complete")
    assert has_program(network)
    killed(receiver)
    assert not has_program(network)
    options = ("--events", 100, "--keep-alive", 200, "--out", tmp_path / "again", *PATIENT)
    again = ended(network.recv(first_board(0), first_board(1), *options))
    assert NATIVE in again.stderr, again
    complete_once_all_are_there(tmp_path / "again")
    assert not has_program(network), "nor one that has ended"
    stopped(sender)


def test_what_is_not_ours_stays_the_kernels_while_we_receive(network):
    network.socket = "xdp"
    sender = network.send("--boards", 1, "-l", 3000, "--rate", 300, "--ack-timeout", 16)
    receiver = network.recv(first_board(), *WITH_METRICS, *PATIENT)
    network.counted(1, "events_complete")
    assert " 0% packet loss" in inside(network, "b", "ping", "-c", "5", "-i", "0.1", "-s", "4000", SERVER_IP)
    fetch = f"import urllib.request as u; print(u.urlopen('http://{SERVER_IP}:9100/metrics').read().decode())"
    assert "penstock_rx_ring_full_total 0\n" in inside(network, "b", "python3", "-c", fetch), "TCP"

    mac = inside(network, "s", "cat", "/sys/class/net/veth0/address").strip()
    before = datagrams(network)
    assert ended(network.start("b", PYTHON, "-c", OTHER_FRAMES, "veth1", SERVER_IP, mac)).status == 0

    def since() -> tuple[int, int]:
        now = datagrams(network)
        return now[0] - before[0], now[1] - before[1]

    # The port's socket drops them; of the tagged one's VLAN there is no interface.
    until("three datagrams in the kernel", lambda: since()[0] == 1 and since()[1] >= 2)
    network.counted(101, "events_complete")
    until(
        "the last frame",
        lambda: sum(network.metrics().get(name, 0) for name in ("rx_malformed", "rx_icrc_encapsulated")),
    )
    result = stopped(receiver)
    stopped(sender)
    report = result.json()
    assert result.status == 0 and report["readout"]["builder"]["events_complete"] > 100, result
    counters = report["counters"]
    assert counters["rx_malformed"] + counters["rx_icrc_encapsulated"] == 1, "the last frame alone"
    assert counters["rx_foreign_vlan"] == 1, "is our address in another VLAN"


def test_every_queue_is_received_from(namespaces, built, tmp_path):
    network = Network(built / "penstock", tmp_path / "state", socket="xdp")
    try:
        network.make(32, queues=4)
        inside(network, "b", "tc", "qdisc", "add", "dev", "veth1", "root", "mq")
        sender = network.send("--boards", 32, "-n", 50, "-l", 6000, "--ack-timeout", 16)
        boards = [first_board(k) for k in range(32)]
        result = ended(network.recv(*boards, "--events", 50, *PATIENT))
        assert "AF_XDP, native mode, copy, 4 queues" in result.stderr, result
        builder = result.json()["readout"]["builder"]
        assert (result.status, builder["events_complete"], builder["events_incomplete"]) == (0, 50, 0), result
        assert ended(sender).status == 0
        sent = inside(network, "b", "tc", "-s", "class", "show", "dev", "veth1")
        packets = [int(line.split()[3]) for line in sent.splitlines() if line.strip().startswith("Sent")]
        assert len(packets) == 4 and min(packets) > 50, f"boards use every queue: {sent}"
    finally:
        network.delete()


def test_another_program_on_the_interface_is_named_and_left_alone(network):
    holder = network.start("s", "python3", "-c", HOLDER, "veth0", stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "held\n", holder.communicate()
    network.socket = "xdp"
    refused = ended(network.recv(first_board(), "--seconds", 0.2))
    reported = "attaching the program: another XDP program is attached: `ip link` shows it"
    assert refused.status == 2 and f"veth0: no AF_XDP: {reported}" in refused.stderr, refused
    network.socket = "auto"
    sender = network.send("-n", 20, "-l", 3000, "--ack-timeout", 16)
    result = ended(network.recv(first_board(), "--events", 20, *PATIENT))
    assert result.status == 0 and f"veth0: packet socket with a ring; no AF_XDP: {reported}" in result.stderr, result
    assert ended(sender).status == 0 and has_program(network)
    holder.communicate()


def test_two_receivers_of_one_interface_share_it(network):
    """The first has its queues; the second takes the ring, and each gets what is sent to its address."""
    inside(network, "s", "ip", "addr", "add", "10.77.0.2/16", "dev", "veth0")
    first = network.recv(first_board(0), "--ip", SERVER_IP, "--events", 300, *PATIENT)
    read_until(first, NATIVE)  # its port is open before it has the queue
    second = network.recv(first_board(1), "--ip", "10.77.0.2", "--events", 300, *PATIENT)
    network.sees("0200" + "4D0A:12B7")
    sending = ["-n", "300", "-l", "3000", "--rate", "300", "--ack-timeout", "16", "--iface", "veth1", "--json"]
    command = [str(network.binary), "send", *sending, "--ip"]
    senders = [network.start("b", *command, first_board(k)) for k in range(2)]
    results = [ended(first), ended(second)]
    assert [result.status for result in results] == [0, 0], results
    assert "packet socket with a ring; no AF_XDP: binding to a queue: another AF_XDP socket" in results[1].stderr
    assert [result.json()["readout"]["builder"]["events_complete"] for result in results] == [300, 300]
    assert [ended(sender).status for sender in senders] == [0, 0]


def test_a_receiver_waits_for_the_one_before_it_to_give_the_queue_back(network):
    inside(network, "s", "ip", "addr", "add", "10.77.0.2/16", "dev", "veth0")
    network.socket = "xdp"
    first = network.recv(first_board(0), "--ip", SERVER_IP, *PATIENT)
    until("program", lambda: has_program(network))
    second = network.recv(first_board(1), "--ip", "10.77.0.2", *WITH_METRICS[:1], "10.77.0.2:9100", *PATIENT)
    read_until(second, "AF_XDP is in use by another process")
    killed(first)
    assert NATIVE in read_until(second, "AF_XDP, native")
    assert stopped(second).status == 1, "it was up, and no board was"


@pytest.mark.parametrize(
    ("capabilities", "reason"),
    [
        (("net_raw",), "it needs root, or CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN"),
        (("net_raw", "net_admin", "bpf"), "registering memory: more memory than may be locked: `ulimit -l unlimited`"),
        (("net_raw", "net_admin", "bpf", "ipc_lock"), None),
    ],
)
def test_what_a_process_may_not_do_is_named_and_the_ring_taken(network, capabilities, reason):
    allowed = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    limits = ["prlimit", "--memlock=1048576", "setpriv", "--bounding-set", allowed, "--inh-caps", allowed]
    command = [*limits, str(network.binary), "recv", first_board(), "--iface", "veth0", "--state", "none", "--json"]
    forced = ended(network.start("s", *command, "--socket", "xdp", "--seconds", "0.1"))
    sender = network.send("-n", 20, "-l", 3000, "--ack-timeout", 16)
    chosen = ended(network.start("s", *command, "--events", "20", "--event-timeout", "5000"))
    assert chosen.status == 0 == ended(sender).status, chosen
    if reason is None:
        assert NATIVE in forced.stderr and NATIVE in chosen.stderr
    else:
        assert forced.status == 2 and reason in forced.stderr, forced
        assert f"packet socket with a ring; no AF_XDP: {reason}" in chosen.stderr or reason in chosen.stderr, chosen


def test_a_driver_without_xdp_is_served_in_the_generic_mode_on_request(network):
    """A macvlan has no XDP of its own. `auto` goes first: the kernel takes a queue back late, another reason."""
    name = f"{network.name}-s"
    lines = [f"addr del {SERVER_IP}/16 dev veth0", "link add mv0 link veth0 mtu 4200 type macvlan mode bridge"]
    lines += [f"addr add {SERVER_IP}/16 dev mv0", "link set mv0 up"]
    subprocess.run(["ip", "-n", name, "-batch", "-"], input="\n".join(lines), text=True, check=True)
    reports = {}
    for socket in ("auto", "xdp"):
        sender = network.send("--boards", 2, "-n", 100, "-l", 10_000, "--ack-timeout", 16, "--loss", 0.01)
        command = [str(network.binary), "recv", first_board(0), first_board(1), "--iface", "mv0", "--socket", socket]
        options = ["--events", "100", "--event-timeout", "5000", "--payload", "prbs", "--json"]
        reports[socket] = ended(network.start("s", *command, *options))
        assert reports[socket].status == 0 == ended(sender).status, reports[socket]
        assert reports[socket].json()["readout"]["builder"]["events_complete"] == 100
    assert "mv0: AF_XDP, generic mode, copy, 1 queue" in reports["xdp"].stderr
    output = "mv0: packet socket with a ring; no AF_XDP: attaching the program: the driver runs no XDP programs"
    assert output in reports["auto"].stderr


def test_frames_for_which_no_chunk_is_free_are_counted_under_the_kernels_name(network):
    """All chunks hold frames when a receiver has stood still for long enough."""
    network.socket = "xdp"
    chunks = 16384  # of one board at MTU 4096, a frame of no more than a page in each
    receiver = network.recv(first_board(), *WITH_METRICS)
    until("metrics", lambda: "rx_dropped" in network.metrics())
    receiver.send_signal(signal.SIGSTOP)
    with network.inside("b"), udp_socket(AF_INET, SOCK_DGRAM) as stranger:
        for _ in range(2 * chunks):
            stranger.sendto(bytes(64), (SERVER_IP, 4791))
    receiver.send_signal(signal.SIGCONT)
    network.counted(1, "rx_dropped")
    network.counted(chunks, "rx_icrc_encapsulated")
    counters = stopped(receiver).json()["counters"]
    assert counters["rx_dropped"] + counters["rx_icrc_encapsulated"] == 2 * chunks, counters
