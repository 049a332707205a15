# SPDX-License-Identifier: Apache-2.0
"""The distribution of the logic of one configuration: cost and depth of each module without its submodules.

    python rtl/syn/modules.py [penstock_xgmii] [--n-qp 4]

Synthesised with the hierarchy kept, so that every cell belongs to a module; the sum is a little above the flat figure
of synth.py, where logic is shared across modules. A path through several modules is cut at their ports, which count as
registers.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import levels
import synth
import yosys

import rtl

COLUMNS = ("lut", "sites", "ff", "bram", "uram", "dsp")
NAMED = 25  # lines of the table; the rest is one line


def netlists(top: str, params: dict[str, int], source: Path | None = None) -> dict[str, dict]:
    """The modules of a top, mapped, as in Yosys' `write_json`; each instance is a module `type$path`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "netlist.json")
        read = yosys.read(top, params, source or rtl.module(top)[0], "--best-effort-hierarchy")
        yosys.run([read, *yosys.synthesise(top), f"write_json {file}"])
        return json.loads(file.read_text())["modules"]


def shares(modules: dict[str, dict]) -> list[dict]:
    """One row for each module of ours, over all its instances, most LUTs first."""
    found: dict[str, dict] = {}
    for name, module in modules.items():
        if not module["cells"] or int(module["attributes"].get("blackbox", "0"), 2):
            continue
        kind = name.lstrip("\\").split("$")[0]
        row = found.setdefault(kind, {"module": kind, "instances": 0, **dict.fromkeys(COLUMNS, 0), "max_levels": 0})
        row["instances"] += 1
        for column, value in synth.cost(synth.kinds(module)).items():
            row[column] += value
        row["sites"] += synth.sites_of(module)
        row["max_levels"] = max(row["max_levels"], levels.deepest(module).levels)
    return sorted(found.values(), key=lambda row: -row["lut"])


def merged(name: str, rows: list[dict]) -> dict:
    """Several rows as one."""
    sums = {column: sum(row[column] for row in rows) for column in ("instances", *COLUMNS)}
    return {"module": name, **sums, "max_levels": max(row["max_levels"] for row in rows)}


def table(rows: list[dict]) -> str:
    """Markdown: the largest modules, the others in one line, the sum."""
    named, rest = rows[:NAMED], rows[NAMED:]
    shown = [*named, *([merged(f"{len(rest)} more", rest)] if rest else []), merged("**sum**", rows)]
    lines = [
        "| module | instances | LUT | sites | FF | BRAM (36k) | URAM | DSP | levels |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in shown:
        lines.append("| " + " | ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in row.values()) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("top", nargs="?", default="penstock_xgmii")
    parser.add_argument("--n-qp", type=int, default=4)
    parser.add_argument("--out", type=Path, default=synth.REPO / "out", help="folder for synth_modules.json")
    options = parser.parse_args()
    rtl.generate()
    try:
        rows = shares(netlists(options.top, {"N_QP": options.n_qp}))
    except yosys.YosysError as error:
        sys.exit(f"modules: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "synth_modules.json").write_text(json.dumps(rows, indent=2) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
