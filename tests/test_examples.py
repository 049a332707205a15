# SPDX-License-Identifier: Apache-2.0
"""The Python examples on a run of recorded data, and the camera's geometry against the numbers of its pixels."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import matplotlib.image
import numpy as np
import pytest
from conftest import TIMEOUT_S
from processes import killed
from veth import until

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data/lst1_run2008/modules.npz"
sys.path.insert(0, str(ROOT / "python"))

from penstock.camera import camera_event, pixel_positions  # noqa: E402
from penstock.events import read_events  # noqa: E402

BOARDS, EVENTS = 3, 50


@pytest.fixture(scope="module")
def run(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "run"
    subprocess.run([built / "examples/write_events", DATA, folder, str(EVENTS)], check=True)
    return folder


def python(*arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "MPLBACKEND": "agg"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_recorded_module_is_a_flower_of_seven_neighbouring_pixels() -> None:
    pixels = np.load(DATA)["pixel_id"].reshape(265, 7)
    positions = pixel_positions()
    assert len(np.unique(positions.round(6), axis=0)) == len(positions) == 1855
    modules = positions[pixels]
    distance = np.hypot(*np.moveaxis(modules - modules.mean(axis=1, keepdims=True), 2, 0))
    np.testing.assert_allclose(np.sort(distance, axis=1), [[0, 1, 1, 1, 1, 1, 1]] * 265, atol=1e-9)


def test_events_read_back_are_the_recorded_samples(run: Path) -> None:
    recorded = np.load(DATA)["frag"]
    rows = list(read_events(run))
    assert [row["event_number"] for row in rows] == list(range(EVENTS))
    for row in rows:
        samples = camera_event(row["sources"], row["fragments"], BOARDS)
        here = np.isin(np.arange(265) % BOARDS, row["sources"])
        assert (samples[here] == recorded[row["event_number"]][here]).all() and np.isnan(samples[~here]).all()


def test_the_camera_image_is_drawn(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "camera.png"
    text = python(ROOT / "examples/camera_image.py", run, "--out", out)
    assert matplotlib.image.imread(out).std() > 0.05
    samples = np.load(DATA)["frag"][:, :, 0].astype(float)
    charge = (samples - np.median(samples, axis=-1, keepdims=True)).sum(axis=-1)
    # Board 1 misses every tenth event: what it would have seen is not drawn.
    charge[9::10, 1::BOARDS] = -np.inf
    assert f"event {charge.max(axis=(1, 2)).argmax()}:" in text and f"brightest {charge.max():.0f}," in text


def test_a_run_that_is_not_there_is_named_without_a_traceback(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for words in (("examples/camera_image.py", nothing), ("examples/follow_events.py", nothing)):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "MPLBACKEND": "agg"}
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
        assert done.returncode == 2 and done.stderr.startswith(f"error: {nothing}"), done.stderr


def test_a_run_becomes_one_hdf5_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.h5"
    assert f"{EVENTS} events" in python("-m", "penstock.hdf5", run, out)
    with h5py.File(out) as file:
        payload, offset, fragment = file["payload"][:], file["offset"][:], file["fragment"][:]
        for event, row in enumerate(read_events(run)):
            parts = range(fragment[event], fragment[event + 1])
            assert [payload[offset[i] : offset[i + 1]].tobytes() for i in parts] == row["fragments"]
            assert file["source"][parts.start : parts.stop].tolist() == row["sources"]
            assert (file["event_number"][event], bool(file["complete"][event])) == (event, row["complete"])
            assert file["timestamp_ns"][event] == row["timestamp_ns"]


def test_events_are_followed_while_they_are_stored(built: Path, tmp_path: Path) -> None:
    """A receiver that holds back, a consumer with pyarrow: every event comes."""
    socket = tmp_path / "events.sock"
    server = subprocess.Popen([built / "examples/serve_events", DATA, socket, str(EVENTS)])
    try:
        until("socket of the server", socket.exists)
        text = python(ROOT / "examples/follow_events.py", socket)
        assert server.wait(timeout=TIMEOUT_S) == 0
    finally:
        killed(server)
    full = EVENTS * 265 * 1142
    assert text.startswith(f"{EVENTS} events, {full} bytes, 0 missed")
