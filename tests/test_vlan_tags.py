# SPDX-License-Identifier: Apache-2.0
"""Tagged frames at a virtual board and a live switch on an interface (`packet:`).

Promise checked: they are as they were on the wire. The kernel takes tags off before a packet socket sees a frame.
"""

import os

import pytest
from board_server import BOARD_IP, SERVER_MAC, Network, PacketCable
from ctl import DEADLINE_S
from scapy.layers.l2 import ARP, Dot1Q, Ether
from test_board import Board, until
from test_live_switch import STATIONS, LiveSwitch, frame

pytestmark = pytest.mark.usefixtures("namespaces")


@pytest.fixture
def network():
    network = Network(f"pstk-vlan-{os.getpid()}")
    yield network
    network.close()


@pytest.fixture
def cable(network):
    """The near end of a pair of interfaces; the far end is for the device."""
    network.run("ip", "link", "add", "far", "type", "veth", "peer", "name", "near")
    for side in ("far", "near"):
        network.run("ip", "link", "set", side, "up")
    return PacketCable(network, "near")


def test_frames_of_another_vlan_reach_a_board_with_their_tag_and_it_drops_them(penstock, network, cable):
    board = Board(network.command(str(penstock.binary), "board", "--json", "--ip", BOARD_IP, "--packet", "far"))

    def question(sender: str, *tags: int) -> bytes:
        frame = Ether(src=SERVER_MAC, dst="ff:ff:ff:ff:ff:ff")
        for vlan in tags:
            frame /= Dot1Q(vlan=vlan, prio=5)
        return bytes(frame / ARP(op=1, hwsrc=SERVER_MAC, psrc=sender, pdst=BOARD_IP))

    try:
        with until("an answer to each question without a foreign tag") as waiting:
            output = set()
            while waiting() and output < {"10.9.0.10", "10.9.0.20"}:
                for sender, *tags in (("10.9.0.5", 5), ("10.9.0.6", 5, 6), ("10.9.0.10", 0), ("10.9.0.20",)):
                    cable.send(question(sender, *tags))
                while (frame := cable.receive(0.3)) is not None:
                    answer = Ether(frame)
                    if ARP in answer and answer[ARP].op == 2 and answer[ARP].psrc == BOARD_IP:
                        output.add(answer[ARP].pdst)
        assert output == {"10.9.0.10", "10.9.0.20"}
        assert board.interrupt()["counters"]["rx_vlan_drop"] >= 2
    finally:
        board.process.kill()
        board.process.communicate()


def test_a_port_on_an_interface_forwards_frames_with_the_tags_that_they_came_with(penstock, network, cable, tmp_path):
    switch = LiveSwitch(penstock.binary, network, tmp_path, "--port=packet:far")
    try:
        plain = frame("02:00:00:00:01:99", "ff:ff:ff:ff:ff:ff", 7)
        tags = [b"", b"\x81\x00\xa0\x05", b"\x81\x00\x60\x00", b"\x88\xa8\x00\x07\x81\x00\x00\x08"]
        for tag in tags:
            whole = plain[:12] + tag + plain[12:]
            cable.send(whole)
            # What this kernel says of itself on the interface (IPv6) is forwarded, too.
            while (got := switch.received(1)) and plain[:12] != got[:12]:
                pass
            assert got == whole, (got[:24].hex(), whole[:24].hex())
        tagged = frame(STATIONS[0], "02:00:00:00:01:99", 8)
        switch.send(0, tagged[:12] + tags[1] + tagged[12:])
        while (back := cable.receive(DEADLINE_S)) and back[-100:] != bytes([8]) * 100:
            pass
        assert back is not None
    finally:
        switch.process.kill()
        switch.process.communicate()
