# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend verbs --cm rdma` in the machine: the kernel's connection manager, for queue pairs of ours.

Promise: boards of `penstock send --cm rdma` connect to it, send or are read, with one frame in a hundred lost, and data
is right byte for byte; ends are DREQs, in both directions; who may not connect is rejected, and the log has why.
"""

import json
import os
import re
import signal

import pytest
from processes import killed
from soft_roce import BOARDS
from veth import LIMIT_S, SERVER_IP, ended, first_board, until

TIMES = int(os.environ.get("PENSTOCK_CONNECTIONS", "5"))
EVENTS, BYTES = 20, 6000
CM_PORT = 17185
RECV = "penstock recv --backend verbs --device rxe0 --cm rdma --state none --json --bring-up 60"
MEMORY = "--slots 64 --slot-size 8192"
# The machine is slow, and shares two cores with other programs: the timeouts must allow for this.
PATIENT = ("--connect", SERVER_IP, "--cm", "rdma", "--ack-timeout", 19, "--slot-size", 8192)
METRICS = "127.0.0.1:9100"
LOSSY = pytest.mark.parametrize("joined", [0.01], indirect=True)


def started(machine, options: str, *boards: str) -> None:
    """A receiver in the machine, once it listens."""
    machine.start("recv", f"{RECV} {options} {' '.join(boards)}")
    until("listener", lambda: f":{CM_PORT}" in machine.check("rdma resource show cm_id") or has_ended(machine))
    assert not has_ended(machine), log(machine)


def has_ended(machine) -> bool:
    return machine.run("test -s /tmp/recv.rc").status == 0


def log(machine) -> str:
    return machine.run("job err recv").output


def result(machine) -> dict:
    """The report of a receiver that ends well."""
    done = machine.wait("recv", LIMIT_S)
    assert done.status == 0, f"{done.output}\n{log(machine)}"
    return json.loads(done.output)


@pytest.fixture
def near(joined, machine):
    """Boards whose MAC address the machine has: its connection manager resolves addresses one after the other."""
    link = json.loads(joined.output("b", "ip", "-json", "link", "show", "veth1"))[0]
    machine.check("; ".join(f"arp -s {first_board(k)} {link['address']}" for k in range(BOARDS)))
    return joined


def stopped(machine) -> dict:
    machine.check("job kill recv INT")
    return json.loads(machine.wait("recv", LIMIT_S).output)


@pytest.mark.parametrize("pull", [(), ("--pull",)], ids=["sent", "pulled"])
@LOSSY
def test_boards_connect_by_the_kernels_connection_manager(near, machine, pull):
    boards = [first_board(k) for k in range(BOARDS)]
    options = f"{MEMORY} {' '.join(pull)} --events {EVENTS} --payload prbs --event-timeout 20000"
    started(machine, options + (" --window 40000" if pull else ""), *boards)
    sender = near.send(*PATIENT, *pull, "--boards", BOARDS, "-n", EVENTS, "-l", BYTES)
    report = result(machine)
    sent = ended(sender)
    assert sent.status == 0, f"{sent.stdout}\n{sent.stderr}"
    builder, counters = report["readout"]["builder"], report["counters"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (EVENTS, 0)
    assert sum(pattern["errors"] + pattern["gaps"] for pattern in report["readout"]["pattern"]) == 0
    assert (counters["rdma_cm_requests"], counters["rdma_cm_refused"]) == (BOARDS, 0)
    assert [board["messages"] for board in sent.json()["boards"]] == [EVENTS] * BOARDS


@LOSSY
def test_a_board_connects_and_disconnects_again_and_again(near, machine):
    started(machine, f"{MEMORY} --seconds {LIMIT_S:.0f}", first_board())
    for run in range(TIMES):
        sent = ended(near.send(*PATIENT, "-n", 5, "--first-event", 5 * run, "-l", BYTES, "--linger", 0))
        assert sent.status == 0, f"{sent.stdout}\n{sent.stderr}"
    report = stopped(machine)
    board, counters = report["boards"][0], report["counters"]
    assert (board["lives"], board["messages"]) == (TIMES, 5 * TIMES), log(machine)
    assert (counters["rdma_cm_requests"], counters["rdma_cm_disconnected"]) == (TIMES, TIMES)
    assert report["readout"]["receiver"]["fragments_crc_error"] == 0


def test_runs_follow_one_another_and_each_ends_the_connections(near, machine):
    machine.check("rm -rf /tmp/runs")
    # The receiver waits for four timeouts of the boards at its end.
    patient = [17 if option == 19 else option for option in PATIENT]
    sender = near.send(*patient, "--boards", 2, "-l", BYTES, "--rate", 40)
    for run in range(3):
        boards = [first_board(0), first_board(1)]
        machine.start(
            "recv", f"{RECV} {MEMORY} --event-timeout 20000 --events 5 --out /tmp/runs/{run} {' '.join(boards)}"
        )
        assert result(machine)["readout"]["builder"]["events_incomplete"] == 0
    check = machine.run("penstock check --json /tmp/runs/0 /tmp/runs/1 /tmp/runs/2")
    assert check.status == 0, f"a gap, an event twice, or an incomplete one: {check.output}"
    machine.check("rm -rf /tmp/runs")
    sender.send_signal(signal.SIGINT)
    sent = ended(sender)
    assert sent.status == 0, f"{sent.stdout}\n{sent.stderr}"
    assert sent.json()["rdma_cm_disconnected"] >= 3 * 2


def test_a_board_that_dies_is_replaced_by_its_next_connection(near, machine):
    started(machine, f"{MEMORY} --seconds {LIMIT_S:.0f}", first_board())
    sender = near.send(*PATIENT, "-l", BYTES)
    until("connection", lambda: "state CONNECT " in machine.check("rdma resource show cm_id"))
    killed(sender)
    sent = ended(near.send(*PATIENT, "-n", 5, "-l", BYTES))
    assert sent.status == 0, f"{sent.stdout}\n{sent.stderr}\n{log(machine)}"
    assert stopped(machine)["boards"][0]["lives"] == 2


@pytest.mark.parametrize(
    ("options", "receiver", "why"),
    [
        (("--slots", 32), first_board(), "has 32 slots of 8192 bytes, this end 64 of 8192"),
        (("--mtu", 1024), first_board(), "requests path MTU 1024; both ends must have --mtu 4096"),
        ((), f"--pull --window 40000 {first_board()}", "takes 0 READs at a time, this end has 16"),
        ((), "10.77.1.99", None),
    ],
    ids=["slots", "mtu", "pull", "stranger"],
)
def test_a_board_that_does_not_fit_is_rejected(near, machine, options, receiver, why):
    started(machine, f"{MEMORY} --seconds {LIMIT_S:.0f} --metrics {METRICS} {receiver}")
    sender = near.send(*PATIENT, *options, "-n", 5, "-l", 500)
    metrics = f"wget -qO- http://{METRICS}/metrics"
    until(
        "reject", lambda: re.search(r"^penstock_rdma_cm_refused_total [1-9]", machine.run(metrics).output, re.MULTILINE)
    )
    sender.send_signal(signal.SIGINT)
    assert "rejected" in ended(sender).stdout
    assert (why or "") in log(machine)
    assert stopped(machine)["counters"]["rdma_cm_requests"] == 0
