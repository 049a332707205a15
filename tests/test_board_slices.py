# SPDX-License-Identifier: Apache-2.0
"""Untriggered readout: `penstock board --stream` into `penstock recv`, over a veth pair.

Promise checked: the slices that are stored make up the recorded streams byte for byte, cut where they are to be cut,
numbered from 0 without a gap; boards with the same marks have the same slices; what cannot work is refused.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, ROOT
from veth import Network, ended

sys.path.insert(0, str(ROOT / "python"))

from penstock.events import parts, read_events

pytestmark = pytest.mark.usefixtures("namespaces")

# A board has 16 modules of an event, four of them at each input.
SHARED, EVENTS, INPUTS, TOGETHER = 17, 12, 4, 4
INTERVAL_NS, SLICE_NS = 20_000, 50_000


def stream(recorded: np.ndarray, board: int, part: int) -> bytes:
    """All that one input gets."""
    modules = [recorded[event % len(recorded)][board::SHARED] for event in range(EVENTS)]
    return b"".join(event[TOGETHER * part :][:TOGETHER].tobytes() for event in modules)


def sliced(network: Network, out: Path, boards: int, events: int, where: str, *options: str) -> list[dict]:
    """Boards that send their streams in so many slices; gives their summaries when the run is proved."""
    addresses = [f"10.77.9.{k + 1}" for k in range(boards)]
    receiver = network.recv(*addresses, "--events", events, "--event-timeout", 60_000, "--state", "none", "--out", out)
    source = ("--stream", str(EVENTS), "--data", str(DATA), "--interval", f"{INTERVAL_NS}ns", "--slice", where)
    running = [
        network.start(
            *("b", str(network.binary), "board", "--packet", "veth1", "--json"),
            *("--ip", address, "--share", f"{k}/{SHARED}", *source, *options),
        )
        for k, address in enumerate(addresses)
    ]
    results = [ended(process) for process in (receiver, *running)]
    assert all(result.status == 0 for result in results), results
    check = subprocess.run([network.binary, "check", out], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check
    summaries = [result.json() for result in results[1:]]
    for summary in summaries:
        slices = summary["slices"]
        assert slices.pop("event_messages") == summary["messages"]["ok"] == events
        assert set(slices.values()) == {0}, slices
    return summaries


def found(out: Path, boards: int) -> tuple[list[int], dict[tuple[int, int], list[bytes]]]:
    """Times of the slices, and what each input of each board has in each of them."""
    times, pieces = [], {(board, part): [] for board in range(boards) for part in range(INPUTS)}
    for number, row in enumerate(read_events(out)):
        assert row["event_number"] == number and row["sources"] == list(range(boards))
        times.append(row["timestamp_ns"])
        for board in range(boards):
            for part, flags, data in parts(row, board):
                assert not flags, (number, board, part, flags)
                pieces[board, part].append(bytes(data))
    return times, pieces


@pytest.mark.parametrize("verb", ["write-imm", "send-imm"])
def test_slices_by_size_are_the_stream_cut_after_so_many_bytes(network, recorded, tmp_path, verb):
    size = 4096
    events = -(-len(stream(recorded, 0, 0)) // size)
    sliced(network, tmp_path / "run", 1, events, f"size={size}", "--verb", verb)
    _, pieces = found(tmp_path / "run", 1)
    for (board, part), slices in pieces.items():
        whole = stream(recorded, board, part)
        assert slices == [whole[at : at + size] for at in range(0, len(whole), size)], f"input {part}"


def test_boards_with_the_same_marks_have_the_same_slices(network, recorded, tmp_path):
    boards, events = 2, -(-INTERVAL_NS * EVENTS // SLICE_NS)
    sliced(network, tmp_path / "run", boards, events, f"mark={SLICE_NS}ns")
    times, pieces = found(tmp_path / "run", boards)
    assert np.abs(np.diff(times) - SLICE_NS)[1:].max() < 16, times  # the first slice begins with the run
    each = len(stream(recorded, 0, 0)) // EVENTS
    for (board, part), slices in pieces.items():
        assert b"".join(slices) == stream(recorded, board, part), f"board {board}, input {part}"
        # The samples of the events whose time lies within the slice, as the line is faster than the streams.
        begun = [range(k * SLICE_NS, (k + 1) * SLICE_NS) for k in range(events)]
        assert [len(data) for data in slices] == [
            each * sum(INTERVAL_NS * n in span for n in range(EVENTS)) for span in begun
        ]


def test_slices_by_period_follow_each_other_without_a_gap(network, recorded, tmp_path):
    events = -(-INTERVAL_NS * (EVENTS - 1) // SLICE_NS)
    sliced(network, tmp_path / "run", 1, events, f"period={SLICE_NS}ns")
    times, pieces = found(tmp_path / "run", 1)
    assert np.abs(np.diff(times) - SLICE_NS).max() < 16, times
    for (board, part), slices in pieces.items():
        assert b"".join(slices) == stream(recorded, board, part), f"input {part}"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--stream", 3, "--slice", "size=1"), "allowed are 8 or more"),
        (("--stream", 3, "--slice", "size=200000"), "allowed are 131072 for each"),
        (("--stream", 3, "--slice", "mark=1ns"), "or more"),
        (("--stream", 3, "--slice", "orbit"), "size=BYTES, period=TIME and mark=TIME"),
        (("--stream", 3, "--verb", "write"), "write-imm, send-imm"),
        (("--stream", 3, "--events", 3), "cannot be used with"),
        (("--prbs", "64x1", "--by-event"), "--events or --stream"),
        (("--prbs", "64x1", "--slice", "size=64"), "--slice: goes with --stream alone"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_what_is_allowed(network, options, reason):
    command = ("board", "--packet", "veth1", "--ip", "10.77.9.1", "--share", f"0/{SHARED}", "--data", DATA)
    result = ended(network.start("b", str(network.binary), *map(str, (*command, *options))))
    assert result.status == 2 and reason in result.stderr, result
