# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --pull` reads a live verilated board over a veth pair: every event is stored byte for byte, and the
board has announced all of them."""

import json
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from veth import ended, first_board, verified

pytestmark = pytest.mark.usefixtures("namespaces")

DATA = Path(__file__).resolve().parents[1] / "data/lst1_run2008/modules.npz"
SHARED = 64  # the board has every 64th module of an event
PATIENT = ("--event-timeout", 20_000)  # a verilated board is slow, on a busy machine by seconds apart
# Its fragments are kept behind its rings, and its server has a ring for announcements.
PULL = (
    *("pull_stride=16384", "qp[0].read_base_lo=0x100000", "qp[0].read_length_lo=0x400000", "qp[0].read_rkey=0x1234"),
    *("qp[0].read_depth=16", "ring[0].slots=16", "ring[0].slot_size=512", "--force"),
)


def test_recorded_events_are_read_from_a_live_verilated_board(network, recorded, tmp_path):
    events, board = 40, first_board()
    wire = ("--packet", "veth1", "--ip", board, "--windows", "--stay", "--json")
    source = ("--events", events, "--data", DATA, "--interval", "20us", "--share", f"0/{SHARED}")
    sender = network.start("b", *map(str, (network.binary, "board", *wire, *source)))
    network.output("s", str(network.binary), "ctl", "set", board, *PULL, "--patience", "60s")
    ring = ("--slots", 8, "--slot-size", 16384)
    receiver = network.recv("--pull", board, "--events", events, "--out", tmp_path / "out", *ring, *PATIENT)
    received = verified(receiver)[0]
    assert received["readout"]["builder"]["events_complete"] == events

    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["event_number"] for row in rows] == list(range(events))
    for event, row in enumerate(rows):
        assert row["fragments"] == [recorded[event % len(recorded), ::SHARED].tobytes()], f"event {event}"

    counted = network.output("s", str(network.binary), "ctl", "get", board, "counters", "-J", "--patience", "60s")
    [registers] = [one["registers"] for one in json.loads(counted)["boards"]]
    announcements = received["boards"][0]["counters"]["pull_announcements"]
    assert registers["counters.announcements"]["number"] == announcements > 0
    assert registers["counters.fragments_dropped"]["number"] == 0
    sender.send_signal(signal.SIGINT)
    ended(sender)
