# SPDX-License-Identifier: Apache-2.0
"""Python decodes zero-suppressed samples written by the Rust model and the gateware, and reports damage."""

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import DATA, TIMEOUT_S
from veth import ended, until

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tb")]

from penstock.events import PART, parts, read_events  # noqa: E402
from penstock.suppression import expand, is_suppressed  # noqa: E402
from zero_suppression.make_vectors import drawn_table, suppressed  # noqa: E402

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


def test_values_come_back_in_python_as_defined() -> None:
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


def test_the_example_prints_what_was_kept(tmp_path: Path) -> None:
    (values, output), (other_values, more) = vectors()[6:8]
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
    largest = max(values.max(initial=0), other_values.max(initial=0))
    assert done.stdout.startswith(f"event 7: {kept} of {len(values) + len(other_values)} samples kept")
    assert done.stdout.strip().endswith(f"largest value {largest}")


@pytest.mark.usefixtures("namespaces")
def test_a_live_board_that_suppresses_zeros_is_stored_as_in_the_model_and_the_example_reads_it(
    network, recorded, tmp_path
):
    """Inputs 0 and 2 of the gateware suppress zeros, the others do not: one table is set word by word, one loaded."""
    events, shared, lanes, rows, board = 4, 64, 4, 16, "10.77.9.1"
    rng = random.Random(1)
    tables = {source: drawn_table(rng, lanes, rows, 0.3) for source in (0, 2)}
    settings = {"events.hook.enable": 0b101, "events.hook_rows.hold": 1, "events.hook_rows.rows": rows}
    for index, (pedestal, threshold) in enumerate(tables[0]):
        block, word = divmod(index, 32)
        settings[f"hook_block.{block}.word{word}.pedestal"] = pedestal
        settings[f"hook_block.{block}.word{word}.threshold"] = threshold & 0xFFFF
    loaded = tmp_path / "input2.bin"
    loaded.write_bytes(b"".join(struct.pack("<Hh", *entry) for entry in tables[2]))
    window = {"read_base_hi": 1 << 31, "read_base_lo": 0x38000, "read_length_lo": 8192, "read_rkey": 5}
    window |= {"read_depth": 16, "receive.write": 1}
    settings |= {f"qp.3.{name}": value for name, value in window.items()}
    lines = [f'[[board]]\naddress = "{board}"', *(f"{name} = {value}" for name, value in settings.items())]
    (tmp_path / "boards.toml").write_text("\n".join([*lines, ""]))

    command = (
        network.binary,
        "board",
        "--windows",
        "--packet",
        "veth1",
        "--ip",
        board,
        "--events",
        events,
        "--data",
        DATA,
        "--json",
    )
    sender = network.start("b", *map(str, (*command, "--share", f"0/{shared}", "--slots", 8, "--slot-size", 16384)))
    apply = (str(network.binary), "ctl", "apply", str(tmp_path / "boards.toml"))
    until("settings", lambda: ended(network.start("s", *apply)).status == 0)
    load = (str(network.binary), "ctl", "load", board, str(loaded), "--offset", "4096")
    done = ended(network.start("s", *load))
    assert done.status == 0, done
    out = tmp_path / "run"
    fixed = ("--slots", 8, "--slot-size", 16384, "--event-timeout", 60_000, "--state", "none")
    result = ended(network.recv(board, "--events", events, "--out", out, *fixed))
    assert result.status == 0, result
    assert ended(sender).status == 0

    kept = [0, 0]
    for row in read_events(out):
        samples = recorded[row["event_number"] % len(recorded), 0::shared].tobytes()
        for source, flags, data in parts(row, 0):
            raw = samples[: int.from_bytes(data[-8:-4], "little") if source in tables else len(data)]
            samples = samples[len(raw) :]
            assert not flags and raw
            assert data == (suppressed(raw, tables[source], lanes, 1) if source in tables else raw)
            if source in tables:
                stays = expand(data)[1]
                kept = [kept[0] + int(stays.sum()), kept[1] + len(stays)]
        assert not samples
    assert 0 < kept[0] < kept[1]
    command = [sys.executable, ROOT / "examples/suppressed_samples.py", out]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=TIMEOUT_S)
    printed = [int(line.split()[2]) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(printed) == events and sum(printed) == kept[0], done
