# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.convert`: files that public packages ship, through the simulated network and a real receiver.

Promise checked: every byte that a converter takes from a file is the library's own number, little-endian, and arrives
as it is; bad input is refused with its place and what is allowed.
"""

import os
import struct
import subprocess
import sys
from fractions import Fraction
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
        assert (ours.timestamp_ns, ours.trigger_type) == (round(Fraction(float(row["time"])) * 10**9), row["ccd_id"])
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


def test_raw_records_are_cut_as_described(tmp_path):
    record = np.dtype([("number", ">u4"), ("adc", ">i2", (2, 3))])
    records = np.zeros(2, record)
    records["number"], records["adc"] = [1, 2], np.arange(12).reshape(2, 2, 3) - 6
    (tmp_path / "in.raw").write_bytes(b"HEAD" + records.tobytes())
    (tmp_path / "in.toml").write_text(RAW)
    words = ("raw", tmp_path / "in.raw", tmp_path / "o.npz", "--description", tmp_path / "in.toml")
    (tmp_path / "in.toml").write_text(RAW, encoding="utf-8-sig")
    events = converted(tmp_path / "o.npz", *words)
    assert events[1].modules == [np.arange(start, start + 3, dtype="<i2").tobytes() for start in (0, 3)]
    assert recorded.module_type(tmp_path / "o.npz")["adc"] == np.dtype(("<i2", (1, 3)))

    (tmp_path / "in.raw").write_bytes(b"HEAD" + records.tobytes() + b"x")
    assert "33 bytes are no whole number of records of 16; 1 are left" in refused(*words)
    for old, new, reason in [
        ("skip = 4", "skip = 99", "skip = 99: allowed is 0 to 37"),
        ('">i2"', '"q9"', "fields:"),
        ('payload = "adc"', 'payload = "x"', "no column x; there are: number, adc"),
        ("modules = 2", "moduls = 2", "key moduls: allowed are"),
        ("modules = 2", "modules = 5", "--modules 5: row 0 has 12 bytes, which do not divide"),
    ]:
        (tmp_path / "in.raw").write_bytes(b"HEAD" + records.tobytes() + b"x" * (old == "skip = 4"))
        (tmp_path / "in.toml").write_text(RAW.replace(old, new))
        assert reason in refused(*words)


EVENTS = ("--event-number", "event", "--payload")


def test_hdf5_reads_what_is_named_wherever_its_link_leads_and_nothing_else(tmp_path):
    adc = np.arange(32, dtype="u2").reshape(4, 8)
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["entry/data"] = adc
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["event"], file["raw/adc"] = np.arange(4), adc
        file["alias"], file["soft"] = file["raw/adc"], h5py.SoftLink("/raw/adc")
        file["external"] = h5py.ExternalLink("part.h5", "/entry/data")
        file["broken"] = h5py.ExternalLink("none.h5", "/entry/data")
        file["a.b/c.d"] = np.array([(1, (2, 3))] * 4, [("x", "u1"), ("in", [("y", "u1"), ("z", "u1")])])
        # Another's, of a terabyte, and of a compression that is not installed.
        file.create_dataset("unrelated", shape=(1 << 40,), dtype="u1", chunks=(1 << 20,))
        file.create_dataset("long", shape=(1 << 40, 8), dtype="u2", chunks=(1 << 10, 8))
        file.create_dataset("number", shape=(1 << 40,), dtype="u4", chunks=(1 << 10,))
    words = ("hdf5", tmp_path / "in.h5", tmp_path / "o.npz")
    for name in ("raw/adc", "/raw/adc", "alias", "soft", "external"):
        events = converted(tmp_path / "o.npz", *words, *EVENTS, name)
        assert [event.modules for event in events] == [[row.tobytes()] for row in adc], name
    events = converted(tmp_path / "o.npz", *words, *EVENTS, "a.b/c.d.x,a.b/c.d.in.z")
    assert [event.modules for event in events] == [[b"\x01\x03"]] * 4
    events = converted(tmp_path / "o.npz", *words, "--event-number", "number", "--payload", "long", "--events", 3)
    assert [event.modules for event in events] == [[bytes(16)]] * 3
    assert "column broken is a link to /entry/data in none.h5" in refused(*words, *EVENTS, "broken")
    assert "name a field: a.b/c.d.x" in refused(*words, *EVENTS, "a.b/c.d")
    assert "column long has 1099511627776 rows, column event has 4" in refused(*words, "--payload", "event,long")
    assert "there is no column nothing; there are: a.b/c.d.x, " in refused(*words, *EVENTS, "nothing")


def test_a_virtual_dataset_of_which_a_file_is_absent_is_refused(tmp_path):
    layout = h5py.VirtualLayout((4, 2), "u2")
    layout[:] = h5py.VirtualSource("part.h5", "adc", (4, 2))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_virtual_dataset("adc", layout)
    words = ("hdf5", tmp_path / "in.h5", tmp_path / "o.npz", "--payload", "adc")
    assert "part.h5, which is absent" in refused(*words)
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["adc"] = np.arange(8, dtype="u2").reshape(4, 2)
    assert converted(tmp_path / "o.npz", *words)[3].modules == [struct.pack("<2H", 6, 7)]


def test_rows_of_unequal_length_are_events_of_unequal_length(tmp_path):
    rows = np.empty(4, object)
    rows[:] = [np.arange(k, dtype=">i2") for k in (3, 0, 5, 1)]
    expected = [[row.astype("<i2").tobytes()] for row in rows]
    columns = [fits.Column("EVT", "J", array=np.arange(4)), fits.Column("WF", "PI()", array=rows)]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "in.fits")
    words = ("fits", tmp_path / "in.fits", tmp_path / "o.npz", "--event-number", "EVT", "--payload")
    assert [event.modules for event in converted(tmp_path / "o.npz", *words, "WF")] == expected
    assert "does not say what a module's bytes are" in not_typed(tmp_path / "o.npz")
    assert [event.modules for event in converted(tmp_path / "o.npz", *words, "wf", "--events", 2)] == expected[:2]
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["event"] = np.arange(4)
        file.create_dataset("wf", (4,), dtype=h5py.vlen_dtype(">i2"))[:] = rows
        file.create_dataset("text", (4,), dtype=h5py.string_dtype())[:] = ["a", "", "bcd", "e"]
    words = ("hdf5", tmp_path / "in.h5", tmp_path / "o.npz", *EVENTS)
    assert [event.modules for event in converted(tmp_path / "o.npz", *words, "wf")] == expected
    assert [event.modules for event in converted(tmp_path / "o.npz", *words, "text")] == [
        [b"a"],
        [b""],
        [b"bcd"],
        [b"e"],
    ]
    assert "--modules 4: row 0 has 6 bytes, which do not divide" in refused(*words, "wf", "--modules", 4)
    rows[:] = [np.arange(5, dtype=">i2")] * 4
    fits.BinTableHDU.from_columns([fits.Column("WF", "PI()", array=rows)]).writeto(tmp_path / "equal.fits")
    converted(tmp_path / "o.npz", "fits", tmp_path / "equal.fits", tmp_path / "o.npz", "--payload", "WF")
    assert recorded.module_type(tmp_path / "o.npz")["WF"] == np.dtype(("<i2", (5,)))


def not_typed(archive: Path) -> str:
    with pytest.raises(ValueError) as error:
        recorded.module_type(archive)
    return str(error.value)


def test_csv_times_keep_every_digit_and_byte_order_marks_are_no_text(tmp_path):
    text = "event,t,adc\n1,1490195805.433502912,1\n2,1490195805.433503,2\n3.0,1490195805.4335031,3\n4e0,1.5e9,4\n"
    words = ("csv", tmp_path / "in.csv", tmp_path / "o.npz", "--event-number", "event", "--payload", "adc")
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "in.csv").write_text(text, encoding=encoding)
        events = converted(tmp_path / "o.npz", *words, "--time", "t", "--time-unit", "s")
        times = [1490195805433502912, 1490195805433503000, 1490195805433503100, 1500000000000000000]
        assert [(event.number, event.timestamp_ns) for event in events] == list(enumerate(times, 1)), encoding
    (tmp_path / "in.csv").write_text("event,t,adc\n1,1,1\n2,1e400,x\n")
    assert len(converted(tmp_path / "o.npz", *words, "--time", "t", "--events", 1)) == 1
    assert "line 3, column adc: `x`: allowed is u2" in refused(*words)
    (tmp_path / "in.csv").write_text("event,t,adc\n1,1e400,1\n")
    assert "line 2, column t: `1e400`: allowed is a number" in refused(*words, "--time", "t")
    (tmp_path / "in.csv").write_text("event,t,adc\n1.5,1,1\n")
    assert "column event, row 0: 1.5: allowed is a whole number" in refused(*words)
    (tmp_path / "in.csv").write_text("event,t,adc\n1,1,1e39\n")
    assert "`1e39`: allowed is f4" in refused(*words, "--type", "f4")


def test_the_first_events_of_a_table_of_fragments_are_whole(tmp_path):
    (tmp_path / "in.csv").write_text("n,s,a\n5,2,1\n6,2,2\n5,4,3\n7,2,4\n7,4,5\n")
    words = ("--event-number", "n", "--source", "s", "--payload", "a", "--events", 2)
    events = converted(tmp_path / "o.npz", "csv", tmp_path / "in.csv", tmp_path / "o.npz", *words)
    assert [event.modules for event in events] == [[b"\x01\0", b"\x03\0"], [b"\x02\0", b""]]


@pytest.mark.parametrize(
    ("text", "words", "reason"),
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
def test_bad_tables_are_refused(text, words, reason, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    assert reason in refused("csv", tmp_path / "in.csv", tmp_path / "o.npz", *words.split())
    assert not list(tmp_path.glob("o.npz*"))


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "in").write_text("not what it says")
    for kind in ("fits", "hdf5"):
        assert str(tmp_path / "in") in refused(kind, tmp_path / "in", tmp_path / "o.npz", "--payload", "a")
    assert "No such file" in refused("zfits", tmp_path / "none", tmp_path / "o.npz")
