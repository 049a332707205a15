# SPDX-License-Identifier: Apache-2.0
"""The standard connection manager against the kernel's: librdmacm in the machine and `--cm rdma` on this side.

Promise: connections open and close in both directions, again and again, with one frame in a hundred lost; data written
over them is right byte for byte. Debian's programs do so unmodified, as far as their own protocol allows.
"""

import os

import pytest
from veth import LIMIT_S, SERVER_IP, ended, first_board, until

# Connections of each direction; a soak takes more.
TIMES = int(os.environ.get("PENSTOCK_CONNECTIONS", "10"))
READERS, FRAGMENTS = int(os.environ.get("PENSTOCK_CONNECTIONS", "3")), int(os.environ.get("PENSTOCK_READS", "100"))
MESSAGES, BYTES = 5, 8192
CM_PORT = 17185
METRICS = "127.0.0.1:9100"
PEER_PORT = 7471
LOSSY = pytest.mark.parametrize("joined", [0.01], indirect=True)


def receiving(joined, *options):
    """`penstock recv --cm rdma` for the machine as its only board, once it listens."""
    fixed = ["recv", "--iface", "veth1", "--ip", first_board(), SERVER_IP, "--cm", "rdma", "--json", "--state", "none"]
    process = joined.start("b", str(joined.binary), *fixed, "--bring-up", "60", *map(str, options))
    process.stderr.readline()  # the socket that it has opened
    return process


@LOSSY
def test_a_program_over_librdmacm_connects_writes_and_disconnects(joined, machine):
    total = TIMES * MESSAGES
    receiver = receiving(joined, "--bare", "--payload", "counter", "--messages", total)
    machine.start("peer", f"rdma_peer connect {first_board()} {CM_PORT} {TIMES} {MESSAGES} {BYTES}")
    peer = machine.wait("peer", LIMIT_S + 20 * TIMES)
    assert peer.status == 0, f"{peer.output}\n{machine.run('job err peer').output}"
    assert peer.output == f"{TIMES} connections, {total * BYTES // 8} words\n"
    result = ended(receiver)
    report = result.json()
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    board = report["boards"][0]
    assert (board["messages"], board["bytes"], board["lives"]) == (total, total * BYTES, TIMES)


@LOSSY
def test_front_ends_connect_to_a_listener_over_librdmacm_and_write(joined, machine):
    slots, slot_bytes, length = 8, 8192, 6000
    machine.start("peer", f"rdma_peer listen {PEER_PORT} {TIMES} {slots} {slot_bytes}")
    assert machine.check("job line peer 1 30").strip() == "listening"
    to_peer = ("--connect", SERVER_IP, "--cm", "rdma", "--cm-port", PEER_PORT, "--linger", 0)
    ring = ("--slots", slots, "--slot-size", slot_bytes)
    for _ in range(TIMES):
        sender = joined.send(*to_peer, *ring, "-n", slots, "-l", length, "--payload", "counter")
        result = ended(sender)
        assert result.status == 0, f"{result.stdout}\n{result.stderr}"
        assert result.json()["boards"][0]["messages"] == slots
    peer = machine.wait("peer", LIMIT_S)
    assert peer.status == 0, f"{peer.output}\n{machine.run('job err peer').output}"
    fragments, words = TIMES * slots, TIMES * slots * length // 8
    assert peer.output.splitlines()[-1] == f"{TIMES} connections, {fragments} fragments, {words} words"


@pytest.mark.parametrize("joined", [(0.01, 0.01, 0.01)], indirect=True)
def test_front_ends_connect_to_a_listener_over_librdmacm_which_reads_them(joined, machine):
    slots, slot_bytes, length = 32, 8192, 8000
    machine.start("peer", f"rdma_peer read {PEER_PORT} {READERS} {slots} {slot_bytes}")
    assert machine.check("job line peer 1 30").strip() == "listening"
    to_peer = ("--connect", SERVER_IP, "--cm", "rdma", "--cm-port", PEER_PORT, "--linger", 0, "--pull")
    # The machine is slow, and shares two cores with other programs: a timer that is too short ends the connection.
    ring = ("--slots", slots, "--slot-size", slot_bytes, "--ack-timeout", 19)
    for _ in range(READERS):
        sender = joined.send(*to_peer, *ring, "-n", FRAGMENTS, "-l", length, "--payload", "counter")
        result = ended(sender, LIMIT_S + FRAGMENTS)
        assert result.status == 0, f"{result.stdout}\n{result.stderr}"
        assert result.json()["boards"][0]["messages"] == FRAGMENTS
    peer = machine.wait("peer", LIMIT_S)
    assert peer.status == 0, f"{peer.output}\n{machine.run('job err peer').output}"
    fragments, words = READERS * FRAGMENTS, READERS * FRAGMENTS * length // 8
    assert peer.output.splitlines()[-1] == f"{READERS} connections, {fragments} fragments, {words} words"


@pytest.mark.parametrize("program", ["cmtime -s {ip} -p {port} -c 1", "ucmatose -s {ip} -p {port} -C 0"])
def test_programs_of_debian_connect_and_disconnect_unmodified(joined, machine, program):
    receiver = receiving(joined, "--seconds", 60, "--payload", "counter", "--metrics", METRICS)
    machine.start("program", program.format(ip=first_board(), port=CM_PORT))
    if "ucmatose" in program:  # it waits for our DREQ
        until("connection", lambda: joined.metrics(METRICS, "b").get("rdma_cm_established", 0) == 1)
    else:
        machine.wait("program", LIMIT_S)
    receiver.send_signal(2)
    done = machine.wait("program", LIMIT_S)
    report = ended(receiver).json()
    assert done.status == 0, f"{done.output}\n{machine.run('job err program').output}"
    assert report["boards"][0]["lives"] == 1 and report["cm_refused"] == 0


def test_a_port_where_nothing_listens_and_a_stranger_are_rejected_with_the_reason(joined, machine):
    receiver = receiving(joined, "--seconds", 60)
    machine.start("wrong", f"rdma_peer connect {first_board()} {CM_PORT + 1} 1 1 64")
    assert machine.wait("wrong", LIMIT_S).status == 1
    assert "RDMA_CM_EVENT_REJECTED (status 8)" in machine.check("job err wrong"), "invalid service identifier"
    receiver.send_signal(2)
    ended(receiver)
    stranger = joined.start(
        "b", str(joined.binary), "recv", "--iface", "veth1", "--ip", first_board(), "10.77.1.99", "--cm", "rdma",
        "--json", "--state", "none", "--seconds", "60",
    )  # fmt: skip
    stranger.stderr.readline()
    machine.start("refused", f"rdma_peer connect {first_board()} {CM_PORT} 1 1 64")
    assert machine.wait("refused", LIMIT_S).status == 1
    assert "RDMA_CM_EVENT_REJECTED (status 28)" in machine.check("job err refused"), "refused by the application"
    stranger.send_signal(2)
    assert ended(stranger).json()["cm_strangers"] >= 1
