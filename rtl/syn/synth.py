# SPDX-License-Identifier: Apache-2.0
"""`make synth`: what the gateware costs on UltraScale+, out of context, and how deep its logic is.

    python rtl/syn/synth.py [--out out] [--only cc_engine] [--docs]

Prints a table and writes `out/synth.json`, an array of {top, n_qp, lut, ff, bram, uram, dsp, max_levels}; `--docs` also
puts the table into docs/synthesis.md. Yosys 0.70, `synth_xilinx -family xcup`: for comparison, not a vendor's figures.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import levels  # noqa: E402
import yosys  # noqa: E402

import rtl  # noqa: E402

TOPS = [("penstock_10g", 4), ("cc_engine", 1), ("cc_engine", 16), ("cc_engine", 256)]
DOCS = REPO / "docs" / "synthesis.md"
MARK = "<!-- table: made by `make synth` with --docs -->\n"
BRAM = {"RAMB36E2": 1, "RAMB18E2": 0.5}  # in blocks of 36 kbit
LUT_RAM = {"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4}
LUT_RAM |= {"RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM256X1D": 8, "RAM512X1S": 8}


def netlist(top: str, params: dict[str, int], source: Path | None = None) -> dict:
    """One module, flat and mapped to UltraScale+ cells, as in Yosys' `write_json`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "netlist.json")
        read = yosys.read(top, params, source or rtl.module(top)[0])
        # -noiopad: out of context, so the ports get no pads
        synthesis = f"synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}"
        yosys.run([read, synthesis, f"write_json {file}"])
        return json.loads(file.read_text())["modules"][top]


def cost(kinds: dict[str, int]) -> dict[str, float]:
    """Counts of cell types in the columns of the table. Inverters are not counted: LUTs take them in."""
    lut = sum(count for kind, count in kinds.items() if re.fullmatch(r"LUT\d|SRL.*", kind))
    lut += sum(count * LUT_RAM[kind] for kind, count in kinds.items() if kind in LUT_RAM)
    unknown = [kind for kind in kinds if kind.startswith("RAM") and kind not in LUT_RAM | BRAM]
    if unknown:
        raise ValueError(f"RAM cells of unknown size: {unknown}; add them to rtl/syn/synth.py")
    return {
        "lut": lut,
        "ff": sum(count for kind, count in kinds.items() if re.fullmatch(r"FD[RSCP]E", kind)),
        "bram": sum(count * BRAM[kind] for kind, count in kinds.items() if kind in BRAM),
        "uram": kinds.get("URAM288", 0),
        "dsp": sum(count for kind, count in kinds.items() if kind.startswith("DSP48")),
    }


def measure(job: tuple[str, int]) -> tuple[dict, levels.Depth, float]:
    """The row of synth.json for one top, its deepest way, and the seconds it took."""
    top, n_qp = job
    started = time.monotonic()
    module = netlist(top, {"N_QP": n_qp})
    kinds: dict[str, int] = {}
    for cell in module["cells"].values():
        kinds[cell["type"]] = kinds.get(cell["type"], 0) + 1
    depth = levels.deepest(module)
    row = {"top": top, "n_qp": n_qp, **cost(kinds), "max_levels": depth.levels}
    return row, depth, time.monotonic() - started


def table(rows: list[tuple[dict, levels.Depth, float]]) -> str:
    """Markdown."""
    lines = [
        "| top | N_QP | LUT | FF | BRAM (36k) | URAM | DSP | LUT levels | chains, DSPs on that way | from | to |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row, depth, _ in rows:
        figures = " | ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in row.values())
        lines.append(f"| {figures} | {depth.chains}, {depth.dsps} | `{depth.start}` | `{depth.end}` |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=REPO / "out", help="folder for synth.json")
    parser.add_argument("--only", default="", help="tops with this word in their name; no others are in synth.json")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/synthesis.md")
    options = parser.parse_args()
    jobs = [job for job in TOPS if options.only in job[0]]
    if not jobs:
        print(f"synth: no top has {options.only!r} in its name; there are {sorted({top for top, _ in TOPS})}")
        return 2
    rtl.generate()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            rows = list(pool.map(measure, jobs))
        except (yosys.YosysError, levels.CombinationalLoopError) as error:
            sys.exit(f"synth: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "synth.json").write_text(json.dumps([row for row, _, _ in rows], indent=2) + "\n")
    print(table(rows))
    for row, _, seconds in rows:
        print(f"{row['top']} N_QP {row['n_qp']}: {seconds:.0f} s")
    print(f"written: {options.out / 'synth.json'}")
    if options.docs:
        before, _, after = DOCS.read_text().partition(MARK)
        rest = after[after.index("\n\n") :] if "\n\n" in after else "\n"
        DOCS.write_text(before + MARK + table(rows).rstrip("\n") + rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
