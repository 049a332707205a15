# SPDX-License-Identifier: Apache-2.0
"""The event file as a physicist reads it, with pyarrow, compared with the recorded arrays read by NumPy.

Promise checked: the schema documented in crates/readout (`Table::Events`), and every payload byte.
"""

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data/lst1_run2008/modules.npz"
BOARDS, EVENTS = 3, 60

SCHEMA = pa.schema(
    [
        pa.field("event_number", pa.uint64(), nullable=False),
        pa.field("timestamp_ns", pa.uint64()),
        pa.field("complete", pa.bool_(), nullable=False),
        pa.field("sources", pa.list_(pa.field("item", pa.uint16())), nullable=False),
        pa.field("missing", pa.list_(pa.field("item", pa.uint16())), nullable=False),
        pa.field("fragments", pa.list_(pa.field("item", pa.binary())), nullable=False),
        pa.field("crc32c", pa.list_(pa.field("item", pa.uint32())), nullable=False),
        pa.field("trigger_types", pa.list_(pa.field("item", pa.uint16())), nullable=False),
        pa.field("parts", pa.list_(pa.field("item", pa.binary())), nullable=False),
    ]
)


@pytest.fixture(scope="module")
def events_file(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("events") / "events.parquet"
    subprocess.run([built / "examples/write_events", DATA, out, str(EVENTS)], check=True, cwd=ROOT)
    return out


def test_schema_and_version_are_the_documented_ones(events_file: Path) -> None:
    file = pq.ParquetFile(events_file)
    assert file.schema_arrow.equals(SCHEMA)
    assert file.metadata.metadata[b"penstock.schema"] == b"events/3"
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_every_payload_is_what_numpy_reads_from_the_recorded_file(events_file: Path) -> None:
    recorded = np.load(DATA)
    counters, samples = recorded["counters"], recorded["frag"]
    modules = np.concatenate([counters, samples.reshape(*counters.shape[:2], -1).view(np.uint8)], axis=2)
    rows = pq.read_table(events_file).to_pylist()
    assert [row["event_number"] for row in rows] == list(range(EVENTS))
    for row in rows:
        event = row["event_number"]
        absent = [1] if event % 10 == 9 else []
        assert row["missing"] == absent and row["complete"] == (not absent)
        assert row["sources"] == [board for board in range(BOARDS) if board not in absent]
        for board, payload in zip(row["sources"], row["fragments"], strict=True):
            assert payload == modules[event % len(modules), board::BOARDS].tobytes()


def test_trigger_times_are_ascending(events_file: Path) -> None:
    times = pq.read_table(events_file)["timestamp_ns"].to_numpy()
    assert (np.diff(times.astype(np.int64)) >= 0).all()
