# SPDX-License-Identifier: Apache-2.0
"""docs/your-data.md: its commands as printed, in their order, from another camera's file to a verified run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, TIMEOUT_S
from veth import ended

sys.path.insert(0, str(ROOT / "python"))

from penstock import recorded

PAGE = (ROOT / "docs/your-data.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_s_commands_bring_another_camera_s_data_through(penstock, tmp_path):
    description, network = blocks("toml")
    (tmp_path / "pulses.toml").write_text(description)
    (tmp_path / "network.toml").write_text(network)
    (tmp_path / "pulses.csv").write_text("event,time,adc0,adc1\n1,100,5,6\n2,350,7,8\n")
    (tmp_path / "pulses.raw").write_bytes(b"HEAD" + bytes(range(32)))
    path = f"{penstock.binary.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "python")}
    assert len(blocks("sh")) == 5
    for block in blocks("sh"):
        done = subprocess.run(
            ["bash", "-e", "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S,
            env=environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"

    events, sources = recorded.read(tmp_path / "events.npz")
    assert (len(events), sources) == (10, list(range(16)))
    summary = json.loads((tmp_path / "simulated/summary.json").read_text())
    assert summary["readout"]["check"]["fragments_differing"] == 0
    for run, count in (("simulated/events.parquet", 200), ("received", 100)):
        table = pq.read_table(tmp_path / run)
        assert table["event_number"].to_pylist() == list(range(count))
        for number, fragments in enumerate(table["fragments"].to_pylist()):
            modules = events[number % 10].modules
            assert fragments == [b"".join(modules[board::4]) for board in range(4)]
    with h5py.File(tmp_path / "received.h5") as file:
        samples = file["hiGain.waveforms.samples"]
        assert (samples.shape[:2], samples.dtype) == ((100, 16), np.dtype("<i2"))
        assert f"shape {samples.shape} in int16" in PAGE.replace("\n", " ")
        assert file["present"][()].all()
        for number, event in enumerate(samples[()]):
            assert event.tobytes() == b"".join(events[number % 10].modules)
    raw, _ = recorded.read(tmp_path / "raw.npz")
    assert raw[1].modules[0] == np.frombuffer(bytes(range(20, 26)), ">i2").astype("<i2").tobytes()


@pytest.fixture
def made(tmp_path):
    """Events in the file `any.npz`: modules whose length changes from event to event, with trigger types."""
    rng = np.random.default_rng(27)
    events = [
        recorded.Event(100 + n, n * 50_000, 7 + n, [rng.bytes(int(size)) for size in rng.integers(1, 3000, 3)])
        for n in range(6)
    ]
    recorded.write(tmp_path / "any.npz", events, [3, 10, 11])
    return events


def test_the_gateware_makes_the_same_events(penstock, made, tmp_path):
    scenario = """\
[run]
kind = "network"
[topology]
kind = "star"
boards = 2
[replay]
file = "any.npz"
trigger = "periodic"
rate = "20kHz"
sender = "gateware"
[readout]
"""
    (tmp_path / "any.toml").write_text(scenario)
    done = subprocess.run(
        [str(penstock.binary), "run", "any.toml", "--out", "out"], cwd=tmp_path, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "out/events.parquet").to_pylist()
    assert len(rows) == 6
    for row, event in zip(rows, made, strict=True):
        assert row["fragments"] == [event.modules[0] + event.modules[2], event.modules[1]]
        assert row["trigger_types"] == [event.trigger_type] * 2


def test_a_live_board_sends_another_detector_s_events(network, made, tmp_path):
    """`board --data`: more events than the file has, so that they repeat; the receiver compares with the file, too."""
    board, events, data = "10.77.9.1", 10, tmp_path / "any.npz"
    command = (network.binary, "board", "--packet", "veth1", "--ip", board, "--events", events, "--data", data)
    sender = network.start("b", *map(str, command), "--interval", "20us", "--json")
    result = ended(
        network.recv(board, "--events", events, "--data", data, "--out", tmp_path / "run", "--state", "none")
    )
    assert result.status == 0, result
    assert ended(sender).status == 0
    rows = pq.read_table(tmp_path / "run").to_pylist()
    assert [row["event_number"] for row in rows] == list(range(events))
    for row in rows:
        event = made[row["event_number"] % len(made)]
        assert row["fragments"] == [b"".join(event.modules)] and row["trigger_types"] == [event.trigger_type]
