# SPDX-License-Identifier: Apache-2.0
"""The clock that front ends of 25 and 100 Gb/s allow, mapped for the fewest levels: an estimate, no vendor's figure.

    python rtl/syn/clocks.py [--only 25G] [--by TCP] [--n 4] [--jobs 1] [--saved] [--docs]

Each is mapped as by deep.py, every way as short as the mapper finds it, in five to fifteen minutes of one core; the
rows of synth.py have the fewest LUTs instead. Of all ways the one with the longest `delay` limits the clock. Rows are
saved in build/synth/clocks as soon as they are made, and made again if the logic or a program has changed; `--saved`
uses saved rows, of any version, and makes none. `--docs` puts the rows into docs/measured/synthesis.json; those of
front ends that were not chosen stay as they are there.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import levels
import synth
import yosys

from figures import measured

KEPT = synth.KEPT / "clocks"
PROGRAMS = Path(__file__).parent
# Nanoseconds of a path with two nets of high fan-out, of each of its levels and of each carry chain: the table of
# routed paths in docs/synthesis.md. And what a multiplier between registers, which belong into its DSP, takes more than
# such a path: 544 MHz at -2 (DS923, FMAX_MULT_NOMREG).
PATH_NS, LEVEL_NS, CHAIN_NS = 0.81, 0.24, 0.26
DSP_NS = 1000 / 544 - PATH_NS
NEEDED_MHZ = {"25G": 390.625, "100G": 322.266}
# How messages are sent, and to how many queue pairs or streams.
COUNTS = {"RoCE": list(synth.STORES), "TCP": [4, 16]}
Job = tuple[str, str, int]  # rate, how messages are sent, number of queue pairs or streams
JOBS = [(rate, by, n) for by, counts in COUNTS.items() for rate in NEEDED_MHZ for n in counts]


def delay(way: levels.Weight) -> float:
    """Nanoseconds of a path through so many LUTs, carry chains and DSPs."""
    luts, chains, dsps = way
    return PATH_NS + LEVEL_NS * luts + CHAIN_NS * chains + DSP_NS * dsps


def frequency(depth: levels.Depth) -> float:
    """The clock in MHz that leaves time for such a path."""
    return 1000 / delay((depth.levels, depth.chains, depth.dsps))


def measure(job: Job) -> dict:
    """The row of a front end, {rate, by, n, lut, depth, rtl}; kept while its logic and these programs are the same."""
    rate, by, n = job
    top, clock = next((top, clock) for name, top, clock in synth.FRONT_ENDS if name == rate)
    transport = {"N_QP": n} if by == "RoCE" else {"WITH_ROCE": 0, "WITH_TCP": 1, "N_STREAMS": n}
    params = transport | clock | synth.STORES[n]
    found = synth.logic(top, params)
    programs = synth.digest(*(PROGRAMS / name for name in ("yosys.py", "levels.py", "clocks.py")))
    kept = KEPT / f"{label(job)}_{found[:16]}_{programs}.json"
    if not kept.exists():
        module = synth.netlist(top, params, for_depth=True)
        depth = levels.deepest(module, delay)
        row = {"rate": rate, "by": by, "n": n, "lut": synth.cost(synth.kinds(module))["lut"], "depth": asdict(depth)}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(row | {"rtl": found[:8]}))
    return json.loads(kept.read_text())


def label(job: Job) -> str:
    """What the file of a row begins with."""
    return "_".join(map(str, job))


def saved(job: Job) -> dict | None:
    """The newest kept row of a front end, if there is one."""
    files = sorted(KEPT.glob(f"{label(job)}_*_*.json"), key=os.path.getmtime)
    return json.loads(files[-1].read_text()) if files else None


def page_rows(rows: list[dict]) -> list[measured.Row]:
    """Rows of docs/synthesis.md: the clock that the slowest path allows, the one that the line needs, and the path."""
    found: list[measured.Row] = []
    for row in rows:
        way = levels.Depth(**row["depth"])
        clock = {"MHz, estimate": round(frequency(way)), "MHz needed": round(NEEDED_MHZ[row["rate"]], 1)}
        path = {"levels": way.levels, "chains": way.chains, "DSPs": way.dsps, "from": way.start, "to": way.end}
        job = {"front end": row["rate"], "by": row["by"], "queue pairs, streams": row["n"]}
        found.append({**job, "LUT": row["lut"], **clock, "RTL": row["rtl"], **path})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=NEEDED_MHZ, help="front ends of one rate")
    parser.add_argument("--by", choices=COUNTS, help="front ends that send messages so")
    parser.add_argument("--n", type=int, choices=synth.STORES, help="front ends of so many queue pairs or streams")
    parser.add_argument("--jobs", type=int, default=1, help="front ends at a time; each takes 2 GB of memory")
    parser.add_argument("--saved", action="store_true", help="rows that are kept, of any version; make none")
    parser.add_argument("--docs", action="store_true", help="put the rows into docs/measured/synthesis.json")
    options = parser.parse_args()
    filters = (options.only, options.by, options.n)
    chosen = [job for job in JOBS if all(value in (None, has) for value, has in zip(filters, job, strict=True))]
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            rows = [row for row in pool.map(saved if options.saved else measure, chosen) if row]
    except yosys.YosysError as error:
        sys.exit(f"clocks: {error}")
    if not rows:
        print("clocks: no such row is kept; leave out --saved to make it", file=sys.stderr)
        return 2
    found = page_rows(rows)
    print(measured.markdown(found))
    if options.docs:
        measured.put("clocks", found, JOBS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
