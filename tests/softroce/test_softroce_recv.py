# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend verbs` in the machine takes camera events of `penstock board`, the verilated gateware.

Promise: the real commands at both ends, the connection opened over the network; each fragment's CRC-32C is checked.
"""

import json
import subprocess
from pathlib import Path

import pytest
from processes import killed
from verbs_case import HOST_IP, HOST_MAC

SLOT = "131072"
EVENTS = 6
DATA = Path(__file__).resolve().parents[2] / "data/lst1_run2008/modules.npz"


@pytest.mark.parametrize(
    ("poll", "verb", "memory"),
    [
        ("hybrid", "write-imm", ("--slots", "8")),
        ("busy", "send-imm", ("--slots", "8")),
        ("event", "send-imm", ("--srq", "4")),
    ],
    ids=["ring", "ring of SENDs", "pool"],
)
def test_camera_events_of_the_gateware_are_built_and_checked_by_the_receiver(machine, built, poll, verb, memory):
    machine.check(f"arp -d {HOST_IP} 2>/dev/null; true")  # the gateware answers ARP
    board = [built / "penstock", "board", "--unix", ",".join(machine.ethernet())]
    board += ["--ip", f"{HOST_IP}/24", "--mac", HOST_MAC, "--slots", "8", "--slot-size", SLOT, "--verb", verb]
    board += ["--events", str(EVENTS), "--share", "0/3", "--data", DATA, "--wall", "60", "--json"]
    receive = f"penstock recv --backend verbs --device rxe0 {HOST_IP} --events {EVENTS} --poll {poll} --state none"
    receive += f" --seconds 60 --keep-alive 0 --json {' '.join(memory)} --slot-size {SLOT}"
    with subprocess.Popen(board, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
        try:
            machine.start("recv", receive)
            result = machine.wait("recv", 120)
            sent, errors = sender.communicate(timeout=120)
        finally:
            killed(sender)
    stderr = machine.check("job err recv")
    assert result.status == 0, f"{result.output}\n{stderr}\n{sent}\n{errors}"
    assert sender.returncode == 0, f"{sent}\n{errors}"
    report = json.loads(result.output)
    builder, receiver = report["readout"]["builder"], report["readout"]["receiver"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (EVENTS, 0)
    assert receiver["fragments_crc_error"] == 0
    assert json.loads(sent)["messages"]["ok"] == EVENTS


def test_a_path_mtu_that_the_device_cannot_take_is_warned_of(machine):
    machine.check("ip link set eth0 mtu 1500")
    try:
        stderr = machine.run(f"penstock recv --backend verbs {HOST_IP} --seconds 0.1 --state none --json").output
    finally:
        machine.check("ip link set eth0 mtu 4200")
    assert "WARNING: rxe0 takes a path MTU of 1024 at most, 4096 is asked for" in stderr and "--mtu 1024" in stderr
