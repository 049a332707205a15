# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend verbs` in the machine takes camera events of `penstock board`, the verilated gateware.

Promise: the real commands at both ends, the connection opened over the network; each fragment's CRC-32C is checked.
"""

import json
import subprocess
from pathlib import Path

import pytest
from verbs_case import HOST_IP, HOST_MAC

RING = ("--slots", "8", "--slot-bytes", "131072")
EVENTS = 6
DATA = Path(__file__).resolve().parents[2] / "data/lst1_run2008/modules.npz"


@pytest.mark.parametrize("poll", ["hybrid", "event"])
def test_camera_events_of_the_gateware_are_built_and_checked_by_the_receiver(machine, built, poll):
    machine.check(f"arp -d {HOST_IP} 2>/dev/null; true")  # the gateware answers ARP
    machine.host_socket.unlink(missing_ok=True)
    board = [built / "penstock", "board", "--unix", f"{machine.host_socket},{machine.vm_socket}"]
    board += ["--ip", f"{HOST_IP}/24", "--mac", HOST_MAC, "--slots", "8", "--slot-size", "131072"]
    board += ["--events", str(EVENTS), "--share", "0/3", "--data", DATA, "--wall", "60", "--json"]
    receive = f"penstock recv --backend verbs --device rxe0 {HOST_IP} --events {EVENTS} --poll {poll} --state none"
    receive += f" --seconds 60 --keep-alive 0 --json {' '.join(RING)}"
    with subprocess.Popen(board, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
        try:
            machine.start("recv", receive)
            result = machine.wait("recv", 120)
            sent, errors = sender.communicate(timeout=120)
        finally:
            sender.kill()
    said = machine.check("job err recv")
    assert result.status == 0, f"{result.output}\n{said}\n{sent}\n{errors}"
    assert sender.returncode == 0, f"{sent}\n{errors}"
    report = json.loads(result.output)
    builder, receiver = report["readout"]["builder"], report["readout"]["receiver"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (EVENTS, 0)
    assert receiver["fragments_crc_error"] == 0
    assert json.loads(sent)["messages"]["ok"] == EVENTS
