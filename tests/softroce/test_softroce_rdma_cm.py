# SPDX-License-Identifier: Apache-2.0
"""The standard connection manager against the kernel's: librdmacm in the machine, `rdma_cm_peer` on this side.

Promise: connections open and close in both directions, again and again, with one frame in a hundred lost each way;
every word that is written over them is right. `PENSTOCK_CONNECTIONS` is their number.
"""

import os
import subprocess

import pytest
from processes import killed
from verbs_case import HOST_IP, HOST_MAC

TIMES = int(os.environ.get("PENSTOCK_CONNECTIONS", "5"))
PATIENCE_S = 120 + 10 * TIMES  # a lost REQ of the kernel is repeated after seconds
PORT, LOSS = 7471, 0.01


def near(built, machine, role: str, *options) -> list[str]:
    """The command of our end."""
    machine.check(f"arp -s {HOST_IP} {HOST_MAC}")
    return list(map(str, (built / "examples/rdma_cm_peer", role, *machine.ethernet(), PORT, TIMES, *options, LOSS)))


def far(machine) -> str:
    """What the program in the machine has printed; its status is 0."""
    peer = machine.wait("peer", PATIENCE_S)
    assert peer.status == 0, f"{peer.output}\n{machine.run('job err peer').output}"
    return peer.output.splitlines()[-1]


@pytest.mark.parametrize("messages", [5])
def test_a_program_over_librdmacm_connects_writes_and_disconnects(machine, built, messages):
    command = near(built, machine, "passive", messages, 8192)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ours:
        try:
            machine.start("peer", f"rdma_peer connect {HOST_IP} {PORT} {TIMES} {messages} 8192")
            words = TIMES * messages * 1024
            assert far(machine) == f"{TIMES} connections, {words} words"
            stdout, stderr = ours.communicate(timeout=PATIENCE_S)
        finally:
            killed(ours)
    assert ours.returncode == 0, stderr
    assert stdout.startswith(f"{TIMES} connections, {words} words")


def test_we_connect_to_a_listener_over_librdmacm_write_and_disconnect(machine, built):
    machine.start("peer", f"rdma_peer listen {PORT} {TIMES} 8 8192")
    assert machine.check("job line peer 1 30").strip() == "listening"
    ours = subprocess.run(near(built, machine, "active", 8, 6000), capture_output=True, text=True, timeout=PATIENCE_S)
    assert ours.returncode == 0, ours.stderr
    assert far(machine) == f"{TIMES} connections, {TIMES * 8} fragments, {TIMES * 6000} words"
