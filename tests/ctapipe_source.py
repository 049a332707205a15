# SPDX-License-Identifier: Apache-2.0
"""Stored runs read by ctapipe itself: `make soak`, since ctapipe and its libraries are 700 MB.

An environment of its own gets ctapipe from the registry and Penstock from its wheel, so that ctapipe finds the event
source as it finds those of other projects. Promise checked: every waveform that ctapipe hands on is the one that NumPy
reads from the file that was sent.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, ROOT, TIMEOUT_S, Penstock

sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "python")]

import wheel_package  # noqa: E402
from penstock import recorded  # noqa: E402

VENV = ROOT / "build/ctapipe"


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python that has ctapipe and Penstock."""
    pip = [sys.executable, "-m", "pip", "--python", VENV / "bin/python", "--disable-pip-version-check", "install", "-q"]
    if not (VENV / "bin/ctapipe-info").exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", VENV], check=True)
        subprocess.run([*pip, "ctapipe>=0.28", "pyarrow"], check=True)
    wheel = wheel_package.pack(built, tmp_path_factory.mktemp("wheel"))
    subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    return VENV / "bin/python"


def script(python: Path, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-c", code], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


READ = """
import json, sys
import numpy as np
from ctapipe.io import EventSource
with EventSource("out/events.parquet", **json.loads({options!r})) as source:
    events = [(event.index.event_id, event.trigger.time.unix_tai, event.r0.tel[1].waveform) for event in source]
    geometry = source.subarray.tel[1].camera.geometry
np.savez(
    "read.npz", waveform=np.array([e[2] for e in events]), number=[e[0] for e in events], time=[e[1] for e in events],
    pix_x=geometry.pix_x.to_value("m"), pix_y=geometry.pix_y.to_value("m"),
)
print(type(source).__name__, source.subarray.tel[1].name, geometry.name, geometry.neighbor_matrix.sum(axis=1).max())
"""


def test_ctapipe_reads_the_camera_that_the_laboratory_sent(python: Path, penstock: Penstock, tmp_path: Path) -> None:
    run = penstock.run(tmp_path / "out", "replay.events=12", "cc.law=off")
    assert run.status == 0, run.stderr
    options = json.dumps({"like": str(DATA), "max_events": 10})
    done = script(python, tmp_path, READ.format(options=options))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["PenstockEventSource", "LST", "LST-1", "6"]
    read, sent = np.load(tmp_path / "read.npz"), np.load(DATA)
    expected = np.empty((10, 2, 1855, 40), np.uint16)
    modules = sent["frag"][:10].transpose(0, 2, 1, 3, 4).reshape(10, 2, 1855, 40)
    expected[:, :, sent["pixel_id"]] = modules
    assert np.array_equal(read["waveform"], expected) and expected.std() > 0
    assert read["number"].tolist() == list(range(10))
    stored = [row["timestamp_ns"] for row in run.events().to_pylist()[:10]]
    assert np.allclose(read["time"], np.array(stored) / 1e9, rtol=0, atol=1e-9)


NETWORK = """\
[run]
kind = "network"
[topology]
kind = "star"
boards = 2
[replay]
file = "any.npz"
trigger = "periodic"
rate = "20kHz"
[readout]
"""


def test_ctapipe_reads_another_camera_with_its_geometry(python: Path, penstock: Penstock, tmp_path: Path) -> None:
    """Samples in one row, as the converter of zfits leaves them; positions from a table of ctapipe's own."""
    rng = np.random.default_rng(27)
    kind = np.dtype([("adc", "<i2", (4 * 30,)), ("flags", "u1", (3,))])
    samples = rng.integers(-900, 900, (5, 3, 120)).astype("<i2")
    events = []
    for number, event in enumerate(samples):
        modules = np.zeros(3, kind)
        modules["adc"] = event
        events.append(recorded.Event(number, number * 50_000, 0, [module.tobytes() for module in modules]))
    recorded.write(tmp_path / "any.npz", events, [0, 1, 2], kind)
    (tmp_path / "any.toml").write_text(NETWORK)
    assert penstock.run(tmp_path / "out", scenario=tmp_path / "any.toml").status == 0
    table = """
import astropy.units as u, numpy as np
from ctapipe.instrument import CameraGeometry
x = np.arange(12) * u.m
CameraGeometry("line", np.arange(12), x, 2 * x, np.ones(12) * u.m**2, "rectangular").to_table().write("line.fits.gz")
"""
    assert script(python, tmp_path, table).returncode == 0
    options = {"like": "any.npz", "waveform": "adc", "n_samples": 30, "geometry": "line.fits.gz"}
    done = script(python, tmp_path, READ.format(options=json.dumps(options)))
    assert done.returncode == 0 and done.stdout.startswith("PenstockEventSource unknown line"), done
    read = np.load(tmp_path / "read.npz")
    assert np.array_equal(read["waveform"], samples.reshape(5, 1, 12, 30))
    assert read["pix_y"].tolist() == [2.0 * n for n in range(12)]

    for change, output in (
        ({"like": None}, "like = None"),
        ({"waveform": "flag"}, "waveform = 'flag': allowed are the fields of"),
        ({"n_samples": 7}, "n_samples = 7: a module's adc has shape (120,)"),
        ({"like": str(DATA), "waveform": "", "geometry": None}, "have 151"),
    ):
        refused = script(python, tmp_path, READ.format(options=json.dumps(options | change)))
        assert refused.returncode != 0 and output in refused.stderr, refused.stderr
