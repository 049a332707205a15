# SPDX-License-Identifier: Apache-2.0
"""A `[readout]` that pulls: every event is stored byte for byte, whatever links and storage do, and no queue is longer
than what was requested and announced."""

from pathlib import Path

import pytest
from conftest import Penstock, Run

PULL = ("readout.mode=pull", "replay.sender=software")


def pull(penstock: Penstock, out: Path, *settings: str) -> Run:
    run = penstock.run(out, *PULL, *settings)
    assert run.status == 0, run.stdout + run.stderr
    readout = run.summary()["readout"]
    assert readout["byte_exact"]
    assert readout["events_complete"] == readout["events_wanted"]
    return run


def test_events_that_are_read_are_stored_byte_for_byte_below_the_bound(penstock: Penstock, tmp_path: Path) -> None:
    run = pull(penstock, tmp_path / "run")
    summary = run.summary()
    (host,) = summary["pull"]["hosts"]
    boards = summary["readout"]["queue_pairs"]
    fragments = sum(board["pull_read"] for board in boards)
    assert fragments == 300 == sum(board["pull_announced"] for board in boards)
    assert host["reads"] > fragments, "a fragment of 100 kB is read in parts"
    assert 0 < host["announcements"] < fragments, "a busy board joins fragments"
    assert 0 < host["announcement_share"] < 0.01
    assert host["highest_in_flight_bytes"] <= 2 * host["window_bytes"]
    assert summary["pull"]["peak_queue_bytes"] <= summary["pull"]["queue_bound_bytes"] < 60_000
    assert summary["readout"]["goodput_first_to_last_gbps"] > 9.7
    assert sum(flow["retransmissions"] for flow in summary["flows"]) == 0
    assert "Pulled: " in run.stdout
    traced = set(run.trace().column("metric").to_pylist())
    assert {"window_bytes", "requested_bytes", "reads", "announcement_share"} <= traced


@pytest.mark.parametrize(
    "settings",
    [
        ("link.loss=1e-3", "qp.ack_timeout=262us"),
        ("link.reorder=1e-3", "link.reorder_by=5us", "qp.ack_timeout=262us"),
        ("readout.consumer_rate=500MB/s", "readout.slots=4"),
        ("link.server.rate=5Gbps", "switch.pfc=false", "switch.buffer=67KB"),
        ("pull.window=9KB", "qp.mtu=1024"),
    ],
    ids=["loss", "reordering", "slow storage", "half the line, a shallow switch", "a window of two packets"],
)
def test_events_are_exact_whatever_holds_them_up(penstock: Penstock, tmp_path: Path, settings: tuple[str, ...]) -> None:
    pull(penstock, tmp_path / "run", "replay.events=40", *settings)


def test_one_seed_stores_the_same_bytes(penstock: Penstock, tmp_path: Path) -> None:
    runs = [pull(penstock, tmp_path / name, "replay.events=20") for name in "ab"]
    assert (runs[0].out / "events.parquet").read_bytes() == (runs[1].out / "events.parquet").read_bytes()


def test_verilated_boards_store_the_same_read_as_sent(penstock: Penstock, tmp_path: Path) -> None:
    events, faults = 12, ("link.loss=1e-3", "link.reorder=1e-3", "qp.ack_timeout=262us")
    sent, read, repeated = (
        penstock.run(tmp_path / name, f"replay.events={events}", "cc.law=off", *settings)
        for name, settings in {
            "sent": ("readout.mode=push",),
            "read": ("readout.mode=pull",),
            "repeated": ("readout.mode=pull", *faults),
        }.items()
    )
    for run in (sent, read, repeated):
        assert run.status == 0, run.stdout + run.stderr
        readout = run.summary()["readout"]
        assert readout["byte_exact"] and readout["events_complete"] == events
        assert run.of_boards("messages_ok") == [events] * 3 and run.of_boards("messages_error") == [0] * 3
        assert run.of_boards("counters.fragments_dropped") == [0] * 3
    # The gateware makes the fragments, with their times, whichever way they come.
    columns = ["event_number", "timestamp_ns", "complete", "missing", "fragments"]
    assert sent.events().select(columns).equals(read.events().select(columns))
    assert sent.events().select(columns).equals(repeated.events().select(columns))

    assert sent.of_boards("counters.announcements") == [0] * 3 and "pull" not in sent.summary()
    (host,) = read.summary()["pull"]["hosts"]
    assert sum(read.of_boards("counters.announcements")) == host["announcements"]
    assert read.summary()["pull"]["peak_queue_bytes"] <= read.summary()["pull"]["queue_bound_bytes"] < 60_000
    assert read.summary()["readout"]["goodput_first_to_last_gbps"] > 9.5
    assert sum(repeated.of_boards("counters.duplicate_request")) > 0
