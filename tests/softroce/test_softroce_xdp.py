# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --socket` in the machine: AF_XDP of Linux 6.1 on a driver of real virtual hardware (virtio_net).

Promise: a driver's native mode receives camera events of the gateware; missing features of kernel and driver are named.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import Image, Machine
from processes import killed
from verbs_case import HOST_IP, HOST_MAC

SLOT = "131072"
EVENTS = 4
DATA = Path(__file__).resolve().parents[2] / "data/lst1_run2008/modules.npz"
RECEIVE = f"penstock recv --backend packet --iface eth0 {HOST_IP} --state none --json"


@pytest.fixture
def without_rxe(image: Image) -> Iterator[Machine]:
    """A separate machine with a free RoCEv2 port."""
    with Machine(image) as machine:
        machine.check("rdma link delete rxe0 && rmmod rdma_rxe")
        yield machine


@pytest.mark.parametrize(
    ("mtu", "path_mtu", "reason"),
    [
        (4200, 4096, "binding to a queue: frames longer than a page need Linux 6.6"),
        (4200, 1024, "attaching the program: the driver refuses the program; with a smaller MTU it may not"),
        (1500, 1024, None),
    ],
)
def test_camera_events_of_the_gateware_come_by_the_native_mode_or_the_reason_is_printed(
    without_rxe, built, mtu, path_mtu, reason
):
    machine = without_rxe
    machine.check(f"ip link set eth0 mtu {mtu}")
    forced = machine.run(f"{RECEIVE} --mtu {path_mtu} --socket xdp --seconds 0.1")
    if path_mtu == 4096:
        assert forced.status == 2 and f"eth0: no AF_XDP: {reason}" in forced.output, forced
    else:
        mode = "generic" if reason else "native"
        assert f"eth0: AF_XDP, {mode} mode, copy, 1 queue" in forced.output, forced

    board = [built / "penstock", "board", "--unix", ",".join(machine.ethernet())]
    board += ["--ip", f"{HOST_IP}/24", "--mac", HOST_MAC, "--slots", "8", "--slot-size", SLOT, "--mtu", str(path_mtu)]
    board += ["--events", str(EVENTS), "--share", "0/3", "--data", DATA, "--wall", "60", "--json"]
    options = f"--mtu {path_mtu} --events {EVENTS} --seconds 60 --keep-alive 0 --slots 8 --slot-size {SLOT}"
    with subprocess.Popen(board, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
        try:
            machine.start("recv", f"{RECEIVE} {options}")
            result = machine.wait("recv", 120)
            sent, errors = sender.communicate(timeout=120)
        finally:
            killed(sender)
    stderr = machine.check("job err recv")
    assert result.status == 0 == sender.returncode, f"{result.output}\n{stderr}\n{sent}\n{errors}"
    assert (f"ring; no AF_XDP: {reason}" if reason else "eth0: AF_XDP, native mode") in stderr, stderr
    report = json.loads(result.output)
    builder, receiver = report["readout"]["builder"], report["readout"]["receiver"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (EVENTS, 0)
    assert receiver["fragments_crc_error"] == 0 and report["counters"]["rx_packets"] > 0
    assert json.loads(sent)["messages"]["ok"] == EVENTS
