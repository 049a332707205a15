# SPDX-License-Identifier: Apache-2.0
"""Triggers that come while a verilated board is busy: `penstock board --triggers lost` into `penstock recv`.

Promise checked: each trigger is one stored event, or is counted as rejected; a stored event is whole, byte for byte as
recorded, and has the time of its trigger; the front end is busy before it would have no room.
"""

import signal
import sys

import numpy as np
import pytest
from conftest import DATA, ROOT
from veth import METRICS, Network, ended, until

sys.path.insert(0, str(ROOT / "python"))

from penstock.events import parts, read_events

pytestmark = pytest.mark.usefixtures("namespaces")

BOARD = "10.77.9.1"
FEW, MANY = 64, 17  # boards that share an event: 5 kB of it, or 18 kB, which take the line 4 us or 15 us


def timing(network: Network, *names: str) -> list[int]:
    """Registers of the board's trigger input."""
    words = [f"timing.{name}" for name in names]
    get = ("ctl", "get", BOARD, *words, "-J", "--patience", "60s")  # a board in software, on a machine with other work
    found = ended(network.start("s", str(network.binary), *get)).json()["boards"][0]["registers"]
    return [found[word]["number"] for word in words]


@pytest.mark.parametrize(
    ("share", "events", "interval_ns", "is_stopped"), [(MANY, 120, 2_000, False), (FEW, 200, 8_000, True)]
)
def test_a_trigger_while_busy_is_rejected_and_counted_and_no_event_is_cut(
    network, recorded, tmp_path, share, events, interval_ns, is_stopped
):
    """Triggers above the rate of the line; or a receiver that stands still."""
    out = tmp_path / "run"
    receiver = network.recv(BOARD, "--metrics", METRICS, "--event-timeout", 1000, "--state", "none", "--out", out)
    source = ("--events", events, "--data", DATA, "--share", f"0/{share}", "--interval", f"{interval_ns}ns")
    command = (network.binary, "board", "--packet", "veth1", "--ip", BOARD, "--json", "--triggers", "lost", *source)
    board = network.start("b", *map(str, command))
    if is_stopped:
        network.counted(5, "events_complete")
        receiver.send_signal(signal.SIGSTOP)
        until("rejected triggers", lambda: timing(network, "rejected_busy") > [4])
        receiver.send_signal(signal.SIGCONT)
    until("the last trigger", lambda: timing(network, "received") == [events])
    [accepted, rejected] = timing(network, "accepted", "rejected_busy")
    network.counted(accepted, "events_complete")
    receiver.send_signal(signal.SIGINT)
    received = ended(receiver)
    result = ended(board)
    assert result.status == 0, result

    summary = result.json()
    triggers = summary["triggers"]
    assert accepted + rejected == events and rejected > 4, triggers
    assert (triggers["accepted"], triggers["rejected_busy"], triggers["received"]) == (accepted, rejected, events)
    assert {triggers[name] for name in ("vetoed", "rejected_dead", "jumped")} == {0}, triggers
    assert summary["messages"]["ok"] == accepted and summary["messages"]["failed"] == 0
    assert triggers["busy_s"] > (rejected - 1) * interval_ns * 1e-9 / 2, "each rejected one fell into dead time"

    rows = [row for row in read_events(out) if row["complete"]]
    numbers = [row["event_number"] for row in rows]
    assert len(numbers) == accepted and numbers == sorted(set(numbers)) and numbers[-1] < events
    # The receiver misses those in between. It knows nothing of those behind the last event: on a busy machine all
    # others of the series may have come before the stopped receiver goes on.
    lacking = numbers[-1] + 1 - accepted
    assert received.status == (lacking > 0) and (is_stopped or lacking > 0) and lacking <= rejected
    faults = [f"{lacking} events are incomplete (lacking {BOARD}: {lacking})"] if lacking else []
    assert received.json().get("faults", []) == faults
    times = np.array([row["timestamp_ns"] for row in rows]) - np.array(numbers) * interval_ns
    assert np.ptp(times) < 16, "the time of each is that of its trigger"
    for row in rows:
        pieces = list(parts(row, 0))
        assert not any(flags for _, flags, _ in pieces), row["event_number"]
        whole = recorded[row["event_number"] % len(recorded)][0::share].tobytes()
        assert b"".join(bytes(data) for _, _, data in pieces) == whole, row["event_number"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--events", 3), "--interval 20us"),
        (("--prbs", "64x1", "--interval", "20us"), "--events"),
    ],
)
def test_what_cannot_be_lost_is_refused_with_what_is_needed(network, options, reason):
    command = ("board", "--packet", "veth1", "--ip", BOARD, "--data", DATA, "--share", "0/17", "--triggers", "lost")
    result = ended(network.start("b", str(network.binary), *map(str, (*command, *options))))
    assert result.status == 2 and reason in result.stderr, result
