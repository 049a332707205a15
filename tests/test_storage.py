# SPDX-License-Identifier: Apache-2.0
"""Stored runs read by other programs, and the files of a killed writer.

Promise checked: five independent readers see the same events; `kill -9` at any moment leaves valid files.
"""

import json
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import awkward
import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import killed
from veth import row_groups, until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from penstock.events import parts

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data/lst1_run2008/modules.npz"
BOARDS, EVENTS = 3, 40


def write(built: Path, folder: Path, *options: str) -> list[str]:
    return [str(built / "examples/write_events"), str(DATA), str(folder), *options]


@pytest.fixture(scope="module")
def runs(built: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of several files for each table."""
    folders = {}
    for table in ("events", "fragments"):
        folders[table] = tmp_path_factory.mktemp(table) / "run"
        subprocess.run(write(built, folders[table], str(EVENTS), table, "2000000"), check=True)
        assert len(list(folders[table].glob("events-*.parquet"))) > 2
    return folders


def expected(recorded: np.ndarray, event: int) -> list[bytes]:
    """Payloads of an event, by board; board 1 misses every tenth."""
    boards = [board for board in range(BOARDS) if not (board == 1 and event % 10 == 9)]
    return [recorded[event % len(recorded), board::BOARDS].tobytes() for board in boards]


def by_pyarrow(folder: Path) -> list:
    return pq.read_table(folder)["fragments"].to_pylist()


def by_pandas(folder: Path) -> list:
    return [list(row) for row in pandas.read_parquet(folder)["fragments"]]


def by_polars(folder: Path) -> list:
    return polars.read_parquet(folder / "*.parquet")["fragments"].to_list()


def by_duckdb(folder: Path) -> list:
    rows = duckdb.sql(f"select fragments from read_parquet('{folder}/*.parquet') order by event_number").fetchall()
    return [row[0] for row in rows]


def by_awkward(folder: Path) -> list:
    return awkward.to_list(awkward.from_parquet(str(folder))["fragments"])


@pytest.mark.parametrize("read", [by_pyarrow, by_pandas, by_polars, by_duckdb, by_awkward])
def test_a_run_is_read_by(read, runs: dict[str, Path], recorded: np.ndarray) -> None:
    assert read(runs["events"]) == [expected(recorded, event) for event in range(EVENTS)]


def test_one_row_per_fragment_holds_the_same_and_names_who_is_missing(
    runs: dict[str, Path], recorded: np.ndarray
) -> None:
    table = pq.read_table(runs["fragments"])
    assert table["event_number"].to_pylist() == [event for event in range(EVENTS) for _ in range(BOARDS)]
    assert table["source"].to_pylist() == list(range(BOARDS)) * EVENTS
    here = table.filter(table["payload"].is_valid())
    assert here["payload"].to_pylist() == [part for event in range(EVENTS) for part in expected(recorded, event)]
    gone = table.filter(table["payload"].is_null())
    assert gone["source"].to_pylist() == [1] * (EVENTS // 10)
    assert gone["crc32c"].null_count == gone["timestamp_ns"].null_count == gone.num_rows


def test_the_checksums_are_crc32c(runs: dict[str, Path]) -> None:
    """Against a table-driven CRC-32C (RFC 3720), of a few fragments."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    rows = pq.read_table(runs["fragments"], columns=["crc32c", "payload"]).slice(0, 2).to_pylist()
    for row in rows:
        crc = 0xFFFFFFFF
        for byte in row["payload"]:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        assert crc ^ 0xFFFFFFFF == row["crc32c"]


def test_killed_at_any_moment_closed_files_are_valid_and_the_open_one_is_recovered(
    built: Path, tmp_path: Path, recorded: np.ndarray
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    stored = 0
    for life in range(4):
        process = subprocess.Popen(write(built, tmp_path / "run", "1000000", "events", "8000000"))
        try:
            time.sleep(0.1 + rng.random() * 0.5)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        for file in (tmp_path / "run").glob("events-*.parquet"):
            pq.read_table(file)
        # The next life recovers what this one has left, and stores one event.
        subprocess.run(write(built, tmp_path / "run", "1", "events"), check=True)
        assert not list((tmp_path / "run").glob("*.partial"))
        files = sorted((tmp_path / "run").glob("events-*.parquet"))
        assert len(files) > stored, f"life {life} left nothing"
        numbers = []
        for row in (row for file in files[stored:] for row in pq.read_table(file).to_pylist()):
            numbers.append(row["event_number"])
            assert row["fragments"] == expected(recorded, row["event_number"])
        assert numbers == [*range(len(numbers) - 1), 0], "events from 0 on without a gap, then those of the next life"
        stored = len(files)


def check(built: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [built / "penstock", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_check_proves_a_run_and_its_exit_status_is_the_verdict(built: Path, runs: dict[str, Path]) -> None:
    for table, version in (("events", "events/3"), ("fragments", "fragments/2")):
        done = check(built, runs[table])
        assert done.returncode == 1, "a tenth of the events is incomplete\n" + done.stdout + done.stderr
        why = f"NOT verified: {EVENTS // 10} events lack sources (--allow-incomplete: that is no fault)"
        assert done.stdout.endswith(why + "\n"), "the last line says why"
        done = check(built, runs[table], "--allow-incomplete", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["verified"] and report["events_missing"] == report["events_twice"] == 0
        assert {file["schema"] for file in report["files"]} == {version}
        assert sum(file["events"] for file in report["files"]) == EVENTS
        assert sum(file["fragments"] for file in report["files"]) == EVENTS * BOARDS - EVENTS // 10
    assert check(built, "nowhere").returncode == 2
    assert check(built).returncode == 2


def test_check_names_the_row_of_a_damaged_fragment_and_the_events_of_a_lost_file(
    built: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    files = sorted(runs["events"].glob("*.parquet"))
    table = pq.read_table(files[0])
    crcs = table["crc32c"].to_pylist()
    crcs[5][1] ^= 1
    column = table.schema.get_field_index("crc32c")
    field = table.schema.field(column)
    damaged = table.set_column(column, field, pa.array(crcs, field.type))
    damaged = damaged.drop_columns(["trigger_types", "parts"])  # as files were before there were any
    damaged = damaged.replace_schema_metadata({"penstock.schema": "events/2"})
    pq.write_table(damaged, tmp_path / "events-000000.parquet", compression="zstd")
    (tmp_path / "events-000002.parquet").write_bytes(files[2].read_bytes())
    done = check(built, tmp_path, "--allow-incomplete")
    assert done.returncode == 1
    assert "events-000000.parquet, row group 0, row 5, event 5, source 1: CRC-32C of its payload is" in done.stdout
    lost = pq.read_table(files[1])["event_number"].to_pylist()
    assert f"events {lost[0]} to {lost[-1]} are in no file" in done.stdout
    why = f"NOT verified: 1 problems in files; {len(lost)} events are missing (--allow-gaps"
    assert why in done.stdout.splitlines()[-1]


def test_check_recovers_what_a_killed_writer_has_left(built: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(write(built, tmp_path, "1000000", "events", "1000000000"))
    partial = tmp_path / "events-000000.parquet.partial"
    until("stored events", lambda: partial.exists() and row_groups(partial))
    killed(process)
    done = check(built, tmp_path)
    assert done.returncode == 1 and "not closed; --recover completes it" in done.stdout
    done = check(built, tmp_path, "--recover", "--allow-incomplete")
    assert done.returncode == 0 and "recovered" in done.stdout, done.stdout + done.stderr
    assert not partial.exists()


def test_a_file_that_is_removed_as_it_held_nothing_is_not_called_verified(built: Path, tmp_path: Path) -> None:
    partial = tmp_path / "events-000000.parquet.partial"
    partial.write_bytes(b"PAR1")
    done = check(built, tmp_path, "--recover")
    assert done.returncode == 1 and not partial.exists()
    assert done.stdout.splitlines() == [
        f"removed {partial}: no row group had been written",
        "NOT verified: no file with events is left",
    ]


def test_a_fragment_is_cut_into_its_parts_by_its_table() -> None:
    entries = struct.pack("<BxHII4x", 0, 0, 0, 5) + struct.pack("<BxHII4x", 3, 0b10010, 8, 3)
    row = {"sources": [4, 9], "fragments": [b"first...two", b"alone"], "parts": [entries, b""]}
    assert list(parts(row, 0)) == [(0, set(), b"first"), (3, {"cut", "trigger_differs"}, b"two")]
    assert list(parts(row, 1)) == []
    assert list(parts({"sources": [4], "fragments": [b"of an older file"]}, 0)) == []


def test_equal_events_of_two_files_are_no_fault_where_that_is_allowed_and_others_are(
    built: Path, tmp_path: Path
) -> None:
    """Of a receiver that was killed and started again: what boards had not heard of is stored twice."""
    files = []
    for number, (begin, end, extra) in enumerate([(0, 6, 0), (4, 9, 0), (4, 9, 1)]):
        rows = {
            "event_number": pa.array(range(begin, end), pa.uint64()),
            "timestamp_ns": pa.array(range(begin, end), pa.uint64()),
            "complete": [True] * (end - begin),
            "sources": pa.array([[0]] * (end - begin), pa.list_(pa.uint16())),
            "missing": pa.array([[]] * (end - begin), pa.list_(pa.uint16())),
            "fragments": pa.array([[bytes(extra)]] * (end - begin), pa.list_(pa.binary())),
            "crc32c": pa.array([[0 if extra == 0 else 0x527D5351]] * (end - begin), pa.list_(pa.uint32())),
        }
        files.append(tmp_path / f"run{number}" / "events-000000.parquet")
        files[-1].parent.mkdir()
        table = pa.table(rows).replace_schema_metadata({"penstock.schema": "events/2"})
        pq.write_table(table, files[-1], compression="zstd")
    for second, options, status, reported in (
        (files[1], (), 1, "2 events are in more than one file (--allow-twice"),
        (files[1], ("--allow-twice",), 0, "verified"),
        (files[2], ("--allow-twice",), 1, "2 events are in more than one file, and differ there"),
    ):
        command = [built / "penstock", "check", files[0], second, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status and reported in done.stdout.splitlines()[-1], done.stdout
