# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend verbs --pull` in the machine reads what boards of `penstock send --pull` announce.

Promise: the kernel's READs bring every fragment byte for byte, and with it what follows; no more than the window is on
its way; a board that dies is named with what was not read.
"""

import json
import re
import signal

import pytest
from processes import killed
from soft_roce import BOARDS
from test_softroce_runs import METRICS, complete
from veth import ended, first_board, until

EVENTS, BYTES, WINDOW = 40, 6000, 40_000
RECV = (
    "penstock recv --backend verbs --device rxe0 --pull --state none --slots 8 --slot-size 8192 --json --payload prbs"
)
# The machine is slow, and shares two cores with other programs: the timeouts must allow for this.
PATIENT = ("--ack-timeout", 19, "--slots", 32, "--slot-size", 8192)


def reported(machine, what: str) -> None:
    until(what, lambda: what in report_of(machine))


def report_of(machine) -> str:
    return machine.run("job err recv").output


@pytest.mark.parametrize("joined", [0, 0.01], ids=["whole", "loss"], indirect=True)
def test_the_kernel_reads_every_fragment_and_what_follows_it(machine, joined):
    sent = joined.send("--pull", "--boards", BOARDS, "-n", EVENTS, "-l", BYTES, *PATIENT)
    boards = " ".join(map(first_board, range(BOARDS)))
    machine.start("recv", f"{RECV} {boards} --events {EVENTS} --window {WINDOW} --event-timeout 20000 --seconds 100")
    result = machine.wait("recv", 150)
    assert result.status == 0, f"{result.output}\n{machine.run('job err recv').output}"
    sender = ended(sent, 30)
    assert sender.status == 0, f"{sender.stdout}\n{sender.stderr}"
    report = json.loads(result.output)
    readout, counters = report["readout"], report["counters"]
    assert (readout["builder"]["events_complete"], readout["builder"]["events_incomplete"]) == (EVENTS, 0)
    assert sum(pattern["errors"] + pattern["gaps"] for pattern in readout["pattern"]) == 0
    assert 0 < counters["pull_highest_in_flight_bytes"] <= WINDOW == counters["pull_window_bytes"]
    of_boards = [board["counters"] for board in report["boards"]]
    assert [of["pull_read"] for of in of_boards] == [of["pull_announced"] for of in of_boards] == [EVENTS] * BOARDS
    assert sum(of["pull_carried"] for of in of_boards) > 0
    assert sum(of["pull_mislabelled"] + of["pull_malformed"] + of["pull_forgotten"] for of in of_boards) == 0
    assert [board["messages"] for board in sender.json()["boards"]] == [EVENTS] * BOARDS


def test_a_board_that_dies_is_named_with_what_was_not_read(machine, joined):
    sender = joined.send("--pull", "-l", BYTES, *PATIENT)
    # A READ is given up after seven timers of 4.2 ms.
    receive = (
        f"{RECV} {first_board()} --window {WINDOW} --event-timeout 40 --consumer-rate 0.05 --outage 0 --keep-alive 0"
    )
    machine.start("recv", f"{receive} --metrics {METRICS}")
    until("events", lambda: complete(machine) >= 4)
    killed(sender)
    reported(machine, "announced and not read: a READ of what the board has announced failed: IBV_WC_RETRY_EXC_ERR")
    machine.check("job kill recv INT")
    result = machine.wait("recv", 60)
    report = json.loads(result.output)
    named = re.search(r"(\d+) fragments of events (\d+) to (\d+) were announced and not read", report_of(machine))
    count, first, last = map(int, named.groups())
    assert count == last - first + 1 <= report["boards"][0]["counters"]["pull_forgotten"]


def test_runs_of_boards_that_are_read_follow_one_another_without_a_gap(machine, joined):
    sender = joined.send("--pull", "--boards", BOARDS, "-l", 2000, "--rate", 40, *PATIENT)
    boards = " ".join(map(first_board, range(BOARDS)))
    machine.check("rm -rf /tmp/runs")
    for run, events in enumerate((5, 1, 4)):
        ends = f"--events {events} --out /tmp/runs/{run}"
        machine.start("recv", f"{RECV} {boards} --window {WINDOW} --event-timeout 20000 {ends}")
        result = machine.wait("recv", 120)
        assert result.status == 0, f"{result.output}\n{machine.run('job err recv').output}"
        builder = json.loads(result.output)["readout"]["builder"]
        assert (builder["events_complete"], builder["before_begin"], builder["after_end"]) == (events, 0, 0)
    check = machine.run("penstock check --json /tmp/runs/0 /tmp/runs/1 /tmp/runs/2")
    assert check.status == 0, f"a gap, an event twice, or an incomplete one: {check.output}"
    machine.check("rm -rf /tmp/runs")
    sender.send_signal(signal.SIGINT)
    result = ended(sender)
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
