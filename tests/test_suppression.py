# SPDX-License-Identifier: Apache-2.0
"""Zero-suppressed samples come back in Python as the model in Rust and the gateware wrote them, and damage is named."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import TIMEOUT_S

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from penstock.events import PART  # noqa: E402
from penstock.suppression import expand, is_suppressed  # noqa: E402

LINES = [
    line.split(" ")
    for line in (ROOT / "crates/wire/tests/suppression.txt").read_text().splitlines()
    if not line.startswith("#")
]


def vectors() -> list[tuple[np.ndarray, bytes]]:
    """Values of all samples by the definition, and what the gateware makes of them."""
    found = []
    for lanes, hold, rows, table, payload, output in LINES:
        entries = np.array(list(struct.iter_unpack("<Hh", bytes.fromhex(table))), int)
        samples = np.frombuffer(bytes.fromhex(payload.strip("-"))[: len(payload.strip("-")) // 4 * 2], "<u2").astype(
            int
        )
        index = np.arange(len(samples))
        row = index // int(lanes) // max(int(hold), 1) % int(rows)
        pedestal, threshold = entries[row * int(lanes) + index % int(lanes)].reshape(-1, 2).T
        value = np.clip(samples - pedestal, -32768, 32767)
        stays = (
            np.add.reduceat(value >= threshold, np.arange(0, len(samples), 4)) > 0
            if len(samples)
            else np.zeros(0, bool)
        )
        found.append((np.where(np.repeat(stays, 4)[: len(samples)], value, 0), bytes.fromhex(output)))
    return found


def test_values_come_back_in_python_as_the_definition_says() -> None:
    for values, output in vectors():
        assert is_suppressed(output)
        got, kept = expand(output)
        np.testing.assert_array_equal(got, values)
        assert kept.shape == got.shape and not got[~kept].any()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b[:-1], "not zero-suppressed"),
        (lambda b: b[:-4] + b"PSTX", "not zero-suppressed"),
        (lambda b: b[8:], "keeps"),
        (lambda b: bytes(8) + b, "1 words before block 0"),
        (lambda b: b[-8:], "has no mask"),
    ],
)
def test_bytes_that_are_no_output_are_refused(damage, message: str) -> None:
    output = max((output for _, output in vectors()), key=len)
    with pytest.raises(ValueError, match=message):
        expand(damage(output))


def test_the_example_tells_what_was_kept(tmp_path: Path) -> None:
    (values, output), (others, more) = vectors()[6:8]
    offset = -(-len(output) // 8) * 8
    entries = np.zeros(2, PART)
    entries["input"], entries["offset"], entries["length"] = [0, 1], [0, offset], [len(output), len(more)]
    events = pa.table(
        {
            "event_number": pa.array([7], pa.uint64()),
            "sources": pa.array([[1]], pa.list_(pa.uint16())),
            "fragments": pa.array([[output + more]], pa.list_(pa.binary())),
            "parts": pa.array([[entries.tobytes()]], pa.list_(pa.binary())),
        }
    ).replace_schema_metadata({"penstock.schema": "events/3"})
    pq.write_table(events, tmp_path / "events.parquet")
    command = [sys.executable, ROOT / "examples/suppressed_samples.py", tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    kept = sum(int(expand(b)[1].sum()) for b in (output, more))
    largest = max(values.max(initial=0), others.max(initial=0))
    assert done.stdout.startswith(f"event 7: {kept} of {len(values) + len(others)} samples kept")
    assert done.stdout.strip().endswith(f"largest value {largest}")
