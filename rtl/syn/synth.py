# SPDX-License-Identifier: Apache-2.0
"""`make synth`: what the gateware costs on UltraScale+, out of context, and how deep its logic is.

    python rtl/syn/synth.py [--out out] [--only cc_engine] [--docs]

Prints a table and writes `out/synth.json`, an array of {top, n_qp, params, lut, ff, bram, uram, dsp, max_levels};
`params` are the parameters besides N_QP. `--docs` also puts the table into docs/synthesis.md and leaves the rest of the
page as it is. Yosys 0.70, `synth_xilinx -family xcup`: for comparison, not a vendor's figures.
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

# Top, N_QP, what the build is called, its other parameters.
LAWS = [("DCQCN alone", {"WITH_QCN": 0}), ("DCQCN and QCN", {"WITH_QCN": 1})]
TOPS = [
    ("penstock_10g", 4, "DCQCN and QCN", {}),
    *(("cc_engine", n_qp, laws, params) for laws, params in LAWS for n_qp in (1, 16, 256)),
]
# AdvCam Table I: its DCQCN module on an XCKU040, one rate for all queue pairs.
PUBLISHED = "| AdvCam, Table I | | DCQCN alone | 1337 | 2557 | 18 | | 5 | | | | |"
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


def measure(job: tuple[str, int, str, dict[str, int]]) -> tuple[dict, levels.Depth, str, float]:
    """The row of synth.json for one top, its deepest way, what the build is called, and the seconds it took."""
    top, n_qp, build, params = job
    started = time.monotonic()
    module = netlist(top, {"N_QP": n_qp, **params})
    kinds: dict[str, int] = {}
    for cell in module["cells"].values():
        kinds[cell["type"]] = kinds.get(cell["type"], 0) + 1
    depth = levels.deepest(module)
    row = {"top": top, "n_qp": n_qp, "params": params, **cost(kinds), "max_levels": depth.levels}
    return row, depth, build, time.monotonic() - started


def table(rows: list[tuple[dict, levels.Depth, str, float]]) -> str:
    """Markdown, the published module's row last."""
    lines = [
        "| top | N_QP | laws | LUT | FF | BRAM (36k) | URAM | DSP | levels | chains, DSPs on that way | from | to |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row, depth, build, _ in rows:
        figures = {**row, "params": build}.values()
        text = " | ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in figures)
        lines.append(f"| {text} | {depth.chains}, {depth.dsps} | `{depth.start}` | `{depth.end}` |")
    return "\n".join([*lines, PUBLISHED]) + "\n"


def with_table(page: str, new: str) -> str:
    """The page with its table replaced: the lines behind the mark that begin with a bar, and nothing else."""
    before, mark, after = page.partition(MARK)
    if not mark:
        raise ValueError(f"{DOCS} has no line {MARK.strip()!r}: put it where the table belongs")
    lines = after.splitlines(keepends=True)
    old = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return before + mark + new + "".join(lines[old:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=REPO / "out", help="folder for synth.json")
    parser.add_argument("--only", default="", help="tops with this word in their name; no others are in synth.json")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/synthesis.md")
    options = parser.parse_args()
    jobs = [job for job in TOPS if options.only in job[0]]
    if not jobs:
        print(f"synth: no top has {options.only!r} in its name; there are {sorted({job[0] for job in TOPS})}")
        return 2
    rtl.generate()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            rows = list(pool.map(measure, jobs))
        except (yosys.YosysError, levels.CombinationalLoopError) as error:
            sys.exit(f"synth: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "synth.json").write_text(json.dumps([row for row, *_ in rows], indent=2) + "\n")
    print(table(rows))
    for row, _, build, seconds in rows:
        print(f"{row['top']} N_QP {row['n_qp']}, {build}: {seconds:.0f} s")
    print(f"written: {options.out / 'synth.json'}")
    if options.docs:
        DOCS.write_text(with_table(DOCS.read_text(), table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
