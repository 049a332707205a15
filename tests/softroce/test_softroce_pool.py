# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend verbs --srq` in the machine against `penstock send`: boards want more than the pool holds.

Promise: boards at full speed and a slow consumer end in RNR NAKs; nothing acknowledged is lost, every event is whole.
"""

import json
import sys
from pathlib import Path

import pytest
from veth import Network, ended, first_board

BOARDS, EVENTS, BYTES = 8, 12, 6000
RELAY = Path(__file__).with_name("relay.py")


@pytest.fixture
def boards(namespaces, machine, built, tmp_path):
    """Addresses for boards in a namespace that is joined to the machine's Ethernet."""
    network = Network(built / "penstock", tmp_path / "state")
    machine.host_socket.unlink(missing_ok=True)
    machine.check("ip route add 10.77.1.0/24 dev eth0")
    try:
        network.make(BOARDS, ip=None)
        ends = (str(machine.host_socket), str(machine.vm_socket))
        relay = network.start("s", sys.executable, str(RELAY), "veth0", *ends)
        assert relay.stdout.readline() == "joined\n", relay.stderr.read()
        yield network
    finally:
        network.delete()
        machine.check("ip route del 10.77.1.0/24 dev eth0")


def test_boards_that_overrun_a_pool_are_held_back_and_every_event_is_whole(machine, boards):
    size = ("--slot-bytes", 8192)
    # The machine is slow, and shares two cores with what else runs: nobody is to lose patience.
    sent = boards.send("--boards", BOARDS, "-n", EVENTS, "-l", BYTES, "--send-verb", "--ack-timeout", 19, *size)
    receive = f"penstock recv --backend verbs --device rxe0 {' '.join(map(first_board, range(BOARDS)))} --state none"
    receive += f" --srq {2 * BOARDS} --srq-copies {BOARDS} --slot-bytes 8192 --consumer-rate 2 --event-timeout 20000"
    machine.start("recv", f"{receive} --events {EVENTS} --seconds 60 --json")
    result = machine.wait("recv", 90)
    assert result.status == 0, f"{result.output}\n{machine.run('job err recv').output}"
    sender = ended(sent, 30)
    assert sender.status == 0, f"{sender.stdout}\n{sender.stderr}"
    report = json.loads(result.output)
    builder, receiver = report["readout"]["builder"], report["readout"]["receiver"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (EVENTS, 0)
    assert (receiver["fragments_good"], receiver["fragments_crc_error"]) == (BOARDS * EVENTS, 0)
    assert report["counters"]["send_rnr_err"] > 0, "boards were held back"
    assert [board["messages"] for board in sender.json()["boards"]] == [EVENTS] * BOARDS
    assert all(board["rnr_nak"] > 0 and board["lives"] == 1 for board in sender.json()["boards"])
