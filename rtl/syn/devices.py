# SPDX-License-Identifier: Apache-2.0
"""The cost of the 10G front end on devices of other families than synth.py's, and what each of its memories becomes.

    python rtl/syn/devices.py [--only polarfire] [--saved] [--docs]

The front end has one queue pair and both laws, its ring on chip; Yosys maps it with the family's own flow, out of
context, a quarter of an hour or so each. The builds without retransmission are for PolarFire, where a published one
is; that of 1 Gb/s is for Nexus, a family with open place and route, where the question is whether it fits. Cells of
different families are different things: a LUT has four inputs or six, a block of RAM 16, 20 or 36 kbit. A memory that
Yosys makes out of flip-flops is not in the second table. Rows are saved in build/synth/devices as soon as they are
made, and made again if the logic or a program has changed; `--saved` uses saved rows, of any version, and makes none.
`--docs` puts the rows into docs/measured/synthesis.json.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import bitstream
import synth
import yosys

import rtl
from figures import measured

PARAMS = {"N_QP": 1, "CLK_KHZ": 156_250, "STORE": 0}
# Rings of four packets of 4096 bytes; 64 packets in flight are 210 us.
ONCE = PARAMS | {"RETRANSMIT": 0, "RING_BYTES": 16_384, "SLOTS": 64}
GIGABIT_PARAMS = {"N_QP": 1, "CLK_KHZ": 62_500, "RING_BYTES": 16_384, "SLOTS": 16}  # as in boards/versa_ecp5
WHOLE, GIGABIT = "10G, one queue pair", "1G, one queue pair, ring of 16 KiB"
BUILDS = {  # top and parameters
    WHOLE: ("penstock_xgmii", PARAMS),
    "without retransmission": ("penstock_xgmii", ONCE),
    "without retransmission, QCN, source": ("penstock_xgmii", ONCE | {"WITH_QCN": 0, "WITH_SOURCE": 0}),
    GIGABIT: ("penstock_1g", GIGABIT_PARAMS),
}
KEPT = synth.KEPT / "devices"
NAMED = 15  # memories of the second table, the largest; the others are one line
COLUMNS = {
    "LUT": "lut",
    "FF": "ff",
    "blocks of RAM": "block_ram",
    "small RAM": "small_ram",
    "multipliers": "multiplier",
}


@dataclass(frozen=True)
class Family:
    """How Yosys maps to a family, and what its cells count for in each column."""

    title: str
    flow: str  # Yosys' commands, one a line; `{top}` is the module
    notes: dict[str, str]  # what one in a column is
    cells: dict[str, dict[str, float]]  # column: what each kind of cell counts for in it
    before: tuple[str, ...] = ()  # commands after the design has been read


FAMILIES = {
    "polarfire": Family(
        "PolarFire",
        "synth_microchip -family polarfire -noiopad -noclkbuf -discard-ffinit -top {top}",
        {"lut": "4-input", "block_ram": "LSRAM, 20 kbit", "small_ram": "uSRAM, 64 x 12", "multiplier": "MACC"},
        {
            # A bit of a carry chain (ARI1) has a LUT in it; a multiplexer of four (MX4) takes two.
            "lut": {"CFG1": 1, "CFG2": 1, "CFG3": 1, "CFG4": 1, "ARI1": 1, "MX4": 2},
            "ff": {"SLE": 1},
            "block_ram": {"RAM1K20": 1},
            "small_ram": {"RAM64x12": 1},
            "multiplier": {"MACC_PA": 1},
        },
        # uSRAM counts as block RAM with Yosys, which finds nothing for what must be LUT RAM.
        before=("setattr -unset ram_style m:* a:ram_style=distributed %i",),
    ),
    "ecp5": Family(
        "ECP5",
        "synth_ecp5 -abc9 -top {top}",
        {"lut": "4-input", "block_ram": "EBR, 18 kbit", "small_ram": "LUT RAM, 16 x 4", "multiplier": "18 x 18"},
        {
            # Two bits of a carry chain (CCU2C) have a LUT each; a RAM of 16 x 4 takes four.
            "lut": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
            "ff": {"TRELLIS_FF": 1},
            "block_ram": {"DP16KD": 1},
            "small_ram": {"TRELLIS_DPR16X4": 1},
            "multiplier": {"MULT18X18D": 1},
        },
    ),
    "7-series": Family(
        "7-series",
        "synth_xilinx -family xc7 -noiopad -noclkbuf -flatten -top {top}",
        {"lut": "6-input", "block_ram": "36 kbit", "small_ram": "LUTs as RAM", "multiplier": "DSP48E1"},
        {
            "lut": {**{f"LUT{n}": 1 for n in range(1, 7)}, "SRL16E": 1, "SRLC32E": 1, **synth.LUT_RAM},
            "ff": {"FDRE": 1, "FDSE": 1, "FDCE": 1, "FDPE": 1},
            "block_ram": {"RAMB36E1": 1, "RAMB18E1": 0.5},
            "small_ram": synth.LUT_RAM,
            "multiplier": {"DSP48E1": 1},
        },
    ),
    "nexus": Family(
        "Nexus",
        # Small memories as bitstream.py has them.
        "synth_nexus -family lifcl -noiopad -top {top} -run begin:map_ram\n"
        f"setattr -unset ram_style t:$mem_v2 r:SIZE<={bitstream.SMALL_WORDS} %i\n"
        "synth_nexus -family lifcl -noiopad -top {top} -run map_ram:",
        {"lut": "4-input", "block_ram": "EBR, 18 kbit", "small_ram": "LUT RAM, 16 x 4", "multiplier": "18 x 18"},
        {
            # A carry (CCU2) and a multiplexer of two LUTs (WIDEFN9) have two LUTs in them, a RAM of 16 x 4 takes four.
            "lut": {"LUT4": 1, "CCU2": 2, "WIDEFN9": 2, "DPR16X4": 4},
            "ff": {"FD1P3IX": 1, "FD1P3JX": 1, "FD1P3BX": 1, "FD1P3DX": 1},
            "block_ram": {"PDP16K": 1, "PDPSC16K": 1},
            "small_ram": {"DPR16X4": 1},
            "multiplier": {"MULT18X18": 1, "MULT18X36": 2},
        },
    ),
}
# Which builds on which family, in the order of the table.
JOBS = [
    *((build, "polarfire") for build in BUILDS if build != GIGABIT),
    *((WHOLE, name) for name in FAMILIES if name not in ("polarfire", "nexus")),
    (GIGABIT, "nexus"),
]
# FEROCE's endpoint on an MPF300, as its authors published it; 24 LSRAM and 108 uSRAM. And what nextpnr-nexus finds in
# an LIFCL-40.
OTHER_DEVICES = [
    {"front end": "FEROCE, published", "family": "PolarFire", "LUT": "13k", "FF": "14k"}
    | {"blocks of RAM": 24, "small RAM": 108},
    {"front end": "an LIFCL-40 has", "family": "Nexus", "LUT": 32256, "FF": 32256}
    | {"blocks of RAM": 84, "multipliers": 56},
]


def netlist(top: str, params: dict[str, int], family: Family, source: Path | None = None) -> dict:
    """One module, flat and mapped to a family's cells, as in Yosys' `write_json`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "netlist.json")
        read = yosys.read(top, params, source or rtl.module(top)[0])
        yosys.run([read, *family.before, family.flow.format(top=top), f"write_json {file}"])
        return json.loads(file.read_text())["modules"][top]


def cost(module: dict, family: Family) -> dict[str, float]:
    """The columns of the first table."""
    found = synth.kinds(module)
    return {
        column: sum(weight * found.get(kind, 0) for kind, weight in family.cells[column].items())
        for column in COLUMNS.values()
    }


def memories(module: dict, family: Family) -> dict[str, dict[str, int]]:
    """The cells of each memory by the instances it is in; of an array of instances, all together."""
    kinds = family.cells["block_ram"] | family.cells["small_ram"]
    found: dict[str, Counter] = {}
    for name, cell in module["cells"].items():
        if cell["type"] in kinds:
            memory = re.sub(r"(\.\d+)+$", "", name)  # Yosys counts the cells behind a memory's name
            instances = [part.removeprefix("u_") for part in memory.split(".") if part.startswith("u_")]
            found.setdefault(".".join(instances) or memory, Counter())[cell["type"]] += 1
    return {name: dict(cells) for name, cells in sorted(found.items())}


def label(build: str, name: str) -> str:
    """What the files of a job's rows begin with."""
    return "_".join([name, *(f"{key}{value}" for key, value in BUILDS[build][1].items() if key not in PARAMS)])


def measure(build: str, name: str) -> dict:
    """The row of a build on one family: {device, build, columns, memories, rtl}.

    Kept while its logic and these programs are the same.
    """
    family, (top, params) = FAMILIES[name], BUILDS[build]
    found = synth.logic(top, params)
    programs = synth.digest(Path(__file__), Path(yosys.__file__))
    kept = KEPT / f"{label(build, name)}_{found[:16]}_{programs}.json"
    if not kept.exists():
        module = netlist(top, params, family)
        about = {"device": name, "build": build}
        row = {**about, **cost(module, family), "memories": memories(module, family), "rtl": found[:8]}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(row))
    return json.loads(kept.read_text())


def saved(build: str, name: str) -> dict | None:
    """The newest kept row of a build on a family, if there is one."""
    files = sorted(KEPT.glob(f"{label(build, name)}_{'?' * 16}_{'?' * 16}.json"), key=os.path.getmtime)
    return json.loads(files[-1].read_text()) if files else None


def page_rows(rows: list[dict]) -> list[measured.Row]:
    """Rows of docs/synthesis.md: the cost of each build on each family."""
    found: list[measured.Row] = []
    for row in rows:
        family = FAMILIES[row["device"]]
        shown = {
            heading: f"{row[column]:g} ({family.notes[column]})" if column in family.notes else row[column]
            for heading, column in COLUMNS.items()
        }
        found.append({"front end": row["build"], "family": family.title, **shown, "RTL": row["rtl"]})
    return [*found, *OTHER_DEVICES]


def memory_rows(rows: list[dict]) -> list[measured.Row]:
    """The memories that take most cells, one a row, and the cells of each family."""
    weight: Counter = Counter()
    for row in rows:
        for name, cells in row["memories"].items():
            weight[name] += sum(cells.values())
    named = [name for name, _ in sorted(weight.items(), key=lambda item: (-item[1], item[0]))]

    def cells(row: dict, names: list[str]) -> str:
        total: Counter = Counter()
        for name in names:
            total.update(row["memories"].get(name, {}))
        return ", ".join(f"{count} {kind}" for kind, count in sorted(total.items())) or "flip-flops"

    groups = {name: [name] for name in named[:NAMED]}
    if more := named[NAMED:]:
        groups[f"{len(more)} more"] = more
    return [
        {"memory": name, **{FAMILIES[row["device"]].title: cells(row, group) for row in rows}}
        for name, group in groups.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=FAMILIES, help="one family; the page's tables need all")
    parser.add_argument("--saved", action="store_true", help="rows that are kept, of any version; make none")
    parser.add_argument("--docs", action="store_true", help="put the rows into docs/measured/synthesis.json")
    options = parser.parse_args()
    if options.docs and options.only:
        parser.error("--docs writes whole tables: leave out --only (rows that are there already are kept)")
    chosen = [job for job in JOBS if options.only in (None, job[1])]
    try:
        found = [(saved if options.saved else measure)(*job) for job in chosen]
    except yosys.YosysError as error:
        sys.exit(f"devices: {error}")
    rows = [row for row in found if row]
    if not rows:
        names = ", ".join(dict.fromkeys(name for _, name in chosen))
        print(f"devices: no row of {names} is kept; leave out --saved to make it")
        return 2
    tables = {"devices": page_rows(rows), "memories": memory_rows([row for row in rows if row["build"] == WHOLE])}
    print("\n".join(map(measured.markdown, tables.values())))
    if options.docs:
        measured.write(measured.read() | tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
