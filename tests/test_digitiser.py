# SPDX-License-Identifier: Apache-2.0
"""docs/digitiser.md: its waveform generators, simulated as printed, and what the gateware makes of their beats."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "tb" / "lib"), str(REPO / "tb")]

from lib.fragment import Fragment, Part  # noqa: E402
from toolchain import verilator_root  # noqa: E402

import rtl  # noqa: E402

PAGE = (REPO / "docs" / "digitiser.md").read_text()
BENCHES = REPO / "tests" / "digitiser"
EVENTS, SAMPLES, TRIGGER_TYPE, SOURCE = 5, 30, 9, 7
# A pulse of 2048 that halves every four samples, on a pedestal of 300.
WAVEFORM = b"".join((300 + (2048 >> (k - 10) // 4 if k >= 10 else 0)).to_bytes(2, "little") for k in range(SAMPLES))


def example(name: str) -> str:
    """The code block behind the mark with this name."""
    found = re.search(rf"<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.S)
    assert found, f"docs/digitiser.md has no example {name}"
    return found[1]


def run(folder: Path, *command: object) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, "VERILATOR_ROOT": str(verilator_root()), "MAKEFLAGS": "OPT_FAST=-O1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def bytes_of(word: str, keep: str) -> bytes:
    data, mask = int(word, 16).to_bytes(8, "little"), int(keep, 16)
    return bytes(byte for lane, byte in enumerate(data) if mask >> lane & 1)


def assert_fragments(said: str) -> None:
    """The beats are the waveform, once an event, with what is said of it in the first beat."""
    fragments, data, users = [], b"", []
    for word, keep, last, user in re.findall(r"^beat (\w+) (\w+) (\d) (\w+)$", said, re.M):
        data += bytes_of(word, keep)
        users.append(int(user, 16))
        if last == "1":
            fragments.append((data, users[0]))
            data, users = b"", []
        else:
            assert int(keep, 16) == 0xFF, "a beat inside a fragment is full"
    about = [TRIGGER_TYPE << 128 | 1000 * (n + 1) << 64 | n for n in range(EVENTS)]
    assert fragments == [(WAVEFORM, user) for user in about]


@pytest.fixture(scope="module")
def systemverilog(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("digitiser")
    (folder / "waveform_source.sv").write_text(example("sv"))
    rtl.generate()
    binary = verilator_root() / "bin" / "verilator"
    options = ["--binary", "--timing", "-Wno-fatal", "--top-module", "waveform_tb", "--Mdir", "out", *rtl.options()]
    sources = [*rtl.packages(), "waveform_source.sv", BENCHES / "waveform_tb.sv"]
    run(folder, binary, *options, *sources)
    return run(folder, "out/Vwaveform_tb")


def test_the_generator_in_systemverilog_gives_a_fragment_for_each_trigger(systemverilog: str) -> None:
    assert_fragments(systemverilog)


def test_the_gateware_makes_a_message_of_each_of_its_fragments(systemverilog: str) -> None:
    messages, data = [], b""
    for word, keep, last in re.findall(r"^message (\w+) (\w+) (\d)$", systemverilog, re.M):
        data += bytes_of(word, keep)
        if last == "1":
            messages.append(data)
            data = b""
    wanted = [Fragment(n, 1000 * (n + 1), TRIGGER_TYPE, parts=[Part(0, WAVEFORM)]) for n in range(EVENTS)]
    assert messages == [fragment.message(SOURCE) for fragment in wanted]


def test_the_generator_in_vhdl_gives_the_same_beats(tmp_path: Path) -> None:
    (tmp_path / "waveform_source.vhd").write_text(example("vhd"))
    for step in (["-a", "waveform_source.vhd"], ["-a", BENCHES / "waveform_tb.vhd"], ["-e", "waveform_tb"]):
        run(tmp_path, "ghdl", step[0], "--std=08", *step[1:])
    assert_fragments(run(tmp_path, "ghdl", "-r", "--std=08", "waveform_tb"))
