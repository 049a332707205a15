# SPDX-License-Identifier: Apache-2.0
"""`penstock ctl status --arp`: who is in the network of an interface, without a list of addresses.

Promise checked: boards are found among other hosts, two devices at one address are told of with both, and without the
privilege it says what to do.
"""

import socket
import subprocess
import threading

import pytest
from ctl import Ctl, Done
from scapy.layers.l2 import ARP, Ether
from veth import SERVER_IP, ended, first_board

pytestmark = pytest.mark.usefixtures("namespaces")

BOARDS, ADDRESSES = 2, 64  # boards in software; the fixture's hosts, which all answer ARP
THIEF_MAC = "02:50:53:54:4b:66"


@pytest.fixture
def boards(network, built):
    """Two boards in software at the first addresses of the boards' end."""
    responders = network.start(
        "b", str(built / "examples/responders"), "--first", first_board(), "--count", str(BOARDS)
    )
    assert responders.stdout.readline() == "ready\n"
    return [first_board(k) for k in range(BOARDS)]


def ctl(network, tmp_path, *prefix: str) -> Ctl:
    return Ctl(network.binary, tmp_path / "state", ["ip", "netns", "exec", f"{network.name}-s", *prefix])


def sweep(network, tmp_path, *words: str, status: int = 0) -> Done:
    return ctl(network, tmp_path).run("status", "--arp", "veth0", *words, "-J", status=status)


def test_boards_are_found_in_the_network_of_an_interface(network, boards, tmp_path):
    done = sweep(network, tmp_path)
    assert [board["board"] for board in done.json["boards"]] == boards
    arp = done.json["arp"]
    assert (arp["interface"], arp["asked"], arp["answers"]) == ("veth0", 65_534, ADDRESSES)
    assert arp["no_boards"] == [first_board(k) for k in range(BOARDS, ADDRESSES)]
    reported = ctl(network, tmp_path).run("status", f"{first_board()}-{first_board(3)}", "--arp", "veth0")
    assert f"veth0: 4 addresses asked, 4 answer ARP; no IPbus at {first_board(2)}, {first_board(3)}" in reported.err
    assert boards[0] in reported.out and boards[1] in reported.out


def test_a_board_that_was_named_and_does_not_answer_arp_is_a_fault(network, boards, tmp_path):
    done = sweep(network, tmp_path, f"{boards[0]},10.77.9.9", status=1)
    assert [board["board"] for board in done.json["boards"]] == boards[:1]
    assert done.faults("10.77.9.9") == [(None, "no answer to ARP at veth0")]


class Thief:
    """A device that answers ARP for addresses of others."""

    def __init__(self, network, *addresses: str) -> None:
        with network.inside("b"):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
        self.socket.bind(("veth1", 0))
        self.addresses = addresses
        self.thread = threading.Thread(target=self.answer, daemon=True)
        self.thread.start()

    def answer(self) -> None:
        while True:
            try:
                raw, (_, _, kind, *_) = self.socket.recvfrom(2048)
            except OSError:  # the interface has gone, with the test's namespace
                return
            requested = Ether(raw)[ARP]
            if kind == 4 or requested.op != 1 or requested.pdst not in self.addresses:  # 4: our own, on its way out
                continue
            reply = ARP(op=2, hwsrc=THIEF_MAC, psrc=requested.pdst, hwdst=requested.hwsrc, pdst=requested.psrc)
            self.socket.send(bytes(Ether(src=THIEF_MAC, dst=requested.hwsrc) / reply))


def test_two_devices_at_one_address_are_reported_with_both(network, boards, tmp_path):
    show = ["ip", "netns", "exec", f"{network.name}-b", "cat", "/sys/class/net/veth1/address"]
    rightful = subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
    Thief(network, boards[1], SERVER_IP)
    done = sweep(network, tmp_path, f"{boards[0]}-{boards[1]},{SERVER_IP}", status=1)
    [(register, message)] = done.faults(boards[1])
    assert register is None and message.startswith("is the address of 2 devices: ")
    assert rightful in message and THIEF_MAC in message and "give each an address of its own" in message
    [(_, message)] = done.faults(SERVER_IP)
    assert "is this host's address" in message and THIEF_MAC in message
    assert done.faults(boards[0]) == []


def test_what_is_missing_for_a_sweep_is_reported(network, tmp_path):
    without = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
    reported = ctl(network, tmp_path, *without).run("status", "--arp", "veth0", status=2).err
    assert (
        "--arp veth0: ARP needs a packet socket" in reported
        and "CAP_NET_RAW" in reported
        and "a range or a network" in reported
    )
    assert "--arp eth77: no such interface" in ctl(network, tmp_path).run("status", "--arp", "eth77", status=2).err
    no_address = ctl(network, tmp_path)
    subprocess.run(["ip", "-n", f"{network.name}-s", "addr", "flush", "dev", "veth0"], check=True)
    assert "it has no IPv4 address" in no_address.run("status", "--arp", "veth0", status=2).err
    lines = [f"addr add {SERVER_IP}/8 dev veth0"]
    subprocess.run(["ip", "-n", f"{network.name}-s", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    reported = no_address.run("status", "--arp", "veth0", status=2).err
    assert "its network is 10.0.0.0/8, more than 65536 addresses" in reported
    neither = ended(network.start("s", str(network.binary), "ctl", "status"))
    assert neither.status == 2 and "BOARDS" in neither.stderr
