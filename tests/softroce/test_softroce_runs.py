# SPDX-License-Identifier: Apache-2.0
"""Runs of `penstock recv --backend verbs` in the machine follow one another under boards of `penstock send` that never
stop.

Promise: a run ends between two events although the NIC acknowledges by itself, with rings and with a pool; all runs
together have each event once, complete, and none is between two runs.
"""

import json
import signal

import pytest
from soft_roce import BOARDS
from veth import ended, first_board, until

RUNS = "/tmp/runs"  # in the machine
METRICS = "127.0.0.1:9100"


def complete(machine) -> int:
    """Complete events of the receiver so far."""
    count = f"wget -qO- http://{METRICS}/metrics 2>/dev/null | sed -n 's/^penstock_events_complete_total //p'"
    return int(machine.run(count).output.strip() or 0)


@pytest.mark.parametrize("memory", ["--slots 8", f"--srq {2 * BOARDS}"], ids=["rings", "pool"])
def test_runs_follow_one_another_without_a_gap(machine, joined, memory):
    verb = ("--send-verb",) if "srq" in memory else ("--slots", 8)
    # The machine is slow, and shares two cores with other programs: the timeouts must allow for this.
    patient = ("--ack-timeout", 19, "--slot-size", 8192)
    sender = joined.send("--boards", BOARDS, "-l", 2000, "--rate", 40, *verb, *patient)
    boards = " ".join(map(first_board, range(BOARDS)))
    receive = f"penstock recv --backend verbs --device rxe0 {boards} --state none {memory} --slot-size 8192"
    receive += f" --event-timeout 20000 --linger 50 --metrics {METRICS} --json"
    machine.check(f"rm -rf {RUNS}")
    reports = []
    for run, end in enumerate(["--events 5", "Ctrl-C", "--events 1", "Ctrl-C"]):
        machine.start("recv", f"{receive} --out {RUNS}/{run} {end if end != 'Ctrl-C' else ''}")
        if end == "Ctrl-C":
            until("events", lambda: complete(machine) >= 4)
            machine.check("job kill recv INT")
        result = machine.wait("recv", 120)
        assert result.status == 0, f"{end}: {result.output}\n{machine.run('job err recv').output}"
        reports.append(json.loads(result.output)["readout"]["builder"])
    between = [(builder["before_begin"], builder["after_end"]) for builder in reports]
    assert between == [(0, 0)] * len(reports), "no event is between two runs"
    assert [reports[0]["events_complete"], reports[2]["events_complete"]] == [5, 1]
    folders = " ".join(f"{RUNS}/{run}" for run in range(len(reports)))
    check = machine.run(f"penstock check --json {folders}")
    assert check.status == 0, f"a gap, an event twice, or an incomplete one: {check.output}"
    sender.send_signal(signal.SIGINT)
    result = ended(sender)
    assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    machine.check(f"rm -rf {RUNS}")
