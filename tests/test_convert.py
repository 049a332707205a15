# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.convert`: files that public packages ship, through the simulated network and a real receiver.

Promise checked: every byte that a converter takes from a file is the library's own number, little-endian, and arrives
as it is; bad input is refused with its place and what is allowed.
"""

import os
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import protozfits
import pytest
from astropy.io import fits
from conftest import ROOT, TIMEOUT_S

sys.path.insert(0, str(ROOT / "python"))

from penstock import recorded

ZFITS = Path(protozfits.__file__).parent / "tests/resources"
PYTHON = {**os.environ, "PYTHONPATH": str(ROOT / "python")}


def convert(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.convert", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=PYTHON, timeout=TIMEOUT_S, check=False)


def converted(out: Path, *words: object) -> list[recorded.Event]:
    done = convert(*words)
    assert not done.returncode, done.stderr
    events, sources = recorded.read(out)
    assert done.stdout == f"{len(events)} events of {len(sources)} modules written to {out}\n"
    return events


def refused(*words: object) -> str:
    done = convert(*words)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done
    return done.stderr


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten events of another camera than LST-1: 1296 pixels of the digital camera of SST-1M, in 16 modules."""
    out = tmp_path_factory.mktemp("convert") / "digicam.npz"
    converted(out, "zfits", ZFITS / "example_10evts.fits.fz", out, "--modules", 16)
    return out


def test_zfits_events_have_the_samples_that_protozfits_reads(camera):
    events, sources = recorded.read(camera)
    assert sources == list(range(16))
    with protozfits.File(str(ZFITS / "example_10evts.fits.fz")) as file:
        theirs = list(file.Events)
    assert [event.number for event in events] == [event.eventNumber for event in theirs]
    assert events[0].timestamp_ns == theirs[0].local_time_sec * 10**9 + theirs[0].local_time_nanosec
    assert [event.trigger_type for event in events] == [event.event_type for event in theirs]
    for ours, event in zip(events, theirs, strict=True):
        assert b"".join(ours.modules) == event.hiGain.waveforms.samples.astype("<i2").tobytes()


@pytest.mark.parametrize(
    ("name", "field", "count"),
    [("example_LST_R1_10_evts", "waveform", 10), ("example_9evts_NectarCAM", "hiGain.waveforms.samples", 9)],
)
def test_zfits_of_other_cameras(name, field, count, tmp_path):
    events = converted(tmp_path / "o.npz", "zfits", ZFITS / f"{name}.fits.fz", tmp_path / "o.npz")
    with protozfits.File(str(ZFITS / f"{name}.fits.fz")) as file:
        for ours, event in zip(events, file.Events, strict=True):
            samples = event
            for part in field.split("."):
                samples = getattr(samples, part)
            assert ours.modules[0] == samples.tobytes()
    assert len(events) == count


def test_a_fits_table_has_the_rows_that_astropy_reads(tmp_path):
    """Two photons of the Chandra observatory: a time, CCD and energies of several types, all big-endian in the file."""
    table = Path(fits.__file__).parent / "tests/data/chandra_time.fits"
    names = ["energy", "pha", "fltgrade"]
    words = ("fits", table, tmp_path / "o.npz", "--time", "time", "--time-unit", "s", "--payload", ",".join(names))
    events = converted(tmp_path / "o.npz", *words, "--trigger-type", "ccd_id")
    theirs = fits.getdata(table, 1)
    for ours, row in zip(events, theirs, strict=True):
        energy, pha, grade = (row[name] for name in names)
        assert ours.modules[0] == struct.pack("<fih", energy, pha, grade)
        assert (ours.timestamp_ns, ours.trigger_type) == (round(float(row["time"]) * 1e9), row["ccd_id"])
    assert "no column nothing; there are: time, ccd_id" in refused(*words[:-1], "nothing")
    assert "HDU 0 is no binary table; the file's are: 1" in refused(*words, "--hdu", 0)


def test_hdf5_fragments_of_several_sources_are_joined(tmp_path):
    rng = np.random.default_rng(27)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["daq/number"] = [7, 7, 9, 9]
        file["daq/board"] = [4, 2, 2, 4]
        file["daq/time"] = [1.0, 1.0, 2.5, 2.5]
        file["daq/adc"] = rng.integers(0, 4096, (4, 3, 5)).astype(">u2")
    words = ("--payload", "daq/adc", "--event-number", "daq/number", "--source", "daq/board")
    events = converted(
        tmp_path / "o.npz", "hdf5", tmp_path / "in.h5", tmp_path / "o.npz", *words,
        "--time", "daq/time", "--time-unit", "us",
    )  # fmt: skip
    with h5py.File(tmp_path / "in.h5") as file:
        adc = file["daq/adc"][()].astype("<u2")
    assert [(event.number, event.timestamp_ns) for event in events] == [(7, 1000), (9, 2500)]
    assert events[0].modules == [adc[1].tobytes(), adc[0].tobytes()]
    assert recorded.module_type(tmp_path / "o.npz")["daq/adc"].shape == (3, 5)


def test_h5py_s_own_file(tmp_path):
    shipped = Path(h5py.__file__).parent / "tests/data_files/compound-dtype-complex.h5"
    words = ("hdf5", shipped, tmp_path / "o.npz", "--payload")
    events = converted(tmp_path / "o.npz", *words, ">c16,c8")
    with h5py.File(shipped) as file:
        big, little = file[">c16"][()], file["c8"][()]
    expected = [a.astype("<c16").tobytes() + b.astype("<c8").tobytes() for a, b in zip(big, little, strict=True)]
    assert [event.modules for event in events] == [[payload] for payload in expected]
    assert "no column nothing; there are: <c16" in refused(*words, "nothing")


def test_csv_numbers_and_digits(tmp_path):
    (tmp_path / "in.csv").write_text("event,t,a,b\n5,10,1,65535\n6,20,2,3\n")
    words = ("csv", tmp_path / "in.csv", tmp_path / "o.npz", "--event-number", "event", "--time", "t")
    events = converted(tmp_path / "o.npz", *words, "--payload", "b,a")
    assert [event.modules for event in events] == [[b"\xff\xff\x01\x00"], [b"\x03\x00\x02\x00"]]
    assert [(event.number, event.timestamp_ns) for event in events] == [(5, 10), (6, 20)]
    (tmp_path / "in.csv").write_text("event,t,bytes\n5,10,00ff\n6,20,0102\n")
    events = converted(tmp_path / "o.npz", *words, "--payload", "bytes", "--type", "hex", "--modules", 2)
    assert [event.modules for event in events] == [[b"\x00", b"\xff"], [b"\x01", b"\x02"]]


RAW = """\
skip = 4
fields = [
    { name = "number", type = ">u4" },
    { name = "adc", type = ">i2", shape = [2, 3] },
]
payload = "adc"
event_number = "number"
modules = 2
"""


def test_raw_records_are_cut_as_the_description_says(tmp_path):
    record = np.dtype([("number", ">u4"), ("adc", ">i2", (2, 3))])
    records = np.zeros(2, record)
    records["number"], records["adc"] = [1, 2], np.arange(12).reshape(2, 2, 3) - 6
    (tmp_path / "in.raw").write_bytes(b"HEAD" + records.tobytes())
    (tmp_path / "in.toml").write_text(RAW)
    words = ("raw", tmp_path / "in.raw", tmp_path / "o.npz", "--description", tmp_path / "in.toml")
    events = converted(tmp_path / "o.npz", *words)
    assert events[1].modules == [np.arange(start, start + 3, dtype="<i2").tobytes() for start in (0, 3)]
    assert recorded.module_type(tmp_path / "o.npz")["adc"] == np.dtype(("<i2", (1, 3)))

    (tmp_path / "in.raw").write_bytes(b"HEAD" + records.tobytes() + b"x")
    assert "33 bytes are no whole number of records of 16; 1 are left" in refused(*words)
    for old, new, told in [
        ("skip = 4", "skip = 99", "skip = 99: allowed is 0 to 37"),
        ('">i2"', '"q9"', "fields:"),
        ('payload = "adc"', 'payload = "x"', "no column x; there are: number, adc"),
        ("modules = 2", "moduls = 2", "key moduls: allowed are"),
        ("modules = 2", "modules = 5", "--modules 5: a row of 12 bytes does not divide"),
    ]:
        (tmp_path / "in.raw").write_bytes(b"HEAD" + records.tobytes() + b"x" * (old == "skip = 4"))
        (tmp_path / "in.toml").write_text(RAW.replace(old, new))
        assert told in refused(*words)


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("a,b\n1\n", "--payload a", "line 2 has 1 columns, the first line has 2"),
        ("a,a\n1,2\n", "--payload a", "two columns are called a"),
        ("a\n70000\n", "--payload a", "line 2, column a: `70000`: allowed is u2"),
        ("a\nxy\n", "--payload a --type hex", "`xy`: allowed is hexadecimal digits"),
        ("a\n1\n", "--payload c", "no column c; line 1 has: a"),
        ("a\n", "--payload a", "there is no event"),
        ("", "--payload a", "line 1 has: nothing"),
        ("a,t\n1,5\n1,4\n", "--payload a --time t", "event 1 (number 1): at 4 ns, before the event ahead"),
        ("a,s\n1,1\n", "--payload a --source s", "--source needs --event-number"),
        ("a,n,s\n1,1,2\n1,1,2\n", "--payload a --source s --event-number n", "event 1 has source 2 already, in row 0"),
        ("a,n,s\n1,1,70000\n", "--payload a --source s --event-number n", "allowed are ascending numbers from 0 to"),
        ("a,y\n1,99999\n", "--payload a --trigger-type y", "trigger type 99999: allowed is 0 to 65535"),
    ],
)
def test_bad_tables_are_refused(text, words, told, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    assert told in refused("csv", tmp_path / "in.csv", tmp_path / "o.npz", *words.split())
    assert not list(tmp_path.glob("o.npz*"))


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "in").write_text("not what it says")
    for kind in ("fits", "hdf5"):
        assert str(tmp_path / "in") in refused(kind, tmp_path / "in", tmp_path / "o.npz", "--payload", "a")
    assert "No such file" in refused("zfits", tmp_path / "none", tmp_path / "o.npz")
