# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend verbs --srq` in the machine with `penstock send`: the boards' demand exceeds the pool.

Promise: boards at full speed and a slow consumer cause RNR NAKs; no acknowledged data is lost, every event is complete.
"""

import json

from soft_roce import BOARDS
from veth import ended, first_board

EVENTS, BYTES = 12, 6000


def test_boards_that_overrun_a_pool_are_held_back_and_every_event_is_whole(machine, joined):
    size = ("--slot-size", 8192)
    # The machine is slow, and shares two cores with other programs: the timeouts must allow for this.
    sent = joined.send("--boards", BOARDS, "-n", EVENTS, "-l", BYTES, "--send-verb", "--ack-timeout", 19, *size)
    receive = f"penstock recv --backend verbs --device rxe0 {' '.join(map(first_board, range(BOARDS)))} --state none"
    receive += f" --srq {2 * BOARDS} --srq-copies {BOARDS} --slot-size 8192 --consumer-rate 2 --event-timeout 20000"
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
