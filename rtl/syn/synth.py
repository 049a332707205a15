# SPDX-License-Identifier: Apache-2.0
"""`make synth`: the cost of the gateware on UltraScale+, out of context, and its logic depth.

    python rtl/syn/synth.py [--out out] [--only cc_engine] [--n-qp 4] [--jobs 1] [--saved] [--docs]

Prints a table and writes `out/synth.json`, an array of {top, n_qp, params, lut, sites, ff, bram, uram, dsp,
max_levels, rtl}: `params` are the parameters besides N_QP, `sites` is `lut` with two LUTs in one site if they fit
(sites.py), `rtl` is the fingerprint of the logic (fingerprint.py). A row takes minutes, so each is saved in
build/synth/ as soon as it is made, and made again if the logic or a program has changed; `--saved` uses saved rows, of
any version, and makes none. `--docs` puts the rows into docs/measured/synthesis.json and leaves the others unchanged.
modules.py in this folder divides one row among its modules. Yosys 0.70, family xcup: for comparison, not a
vendor's figures.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tb" / "lib"))
sys.path.append(str(REPO))

import fingerprint  # noqa: E402
import levels  # noqa: E402
import sites  # noqa: E402
import yosys  # noqa: E402

import rtl  # noqa: E402
from figures import measured  # noqa: E402

# Top, N_QP, what the build is called, its other parameters.
LAWS = [("DCQCN alone", {"WITH_QCN": 0}), ("DCQCN and QCN", {"WITH_QCN": 1})]
NO_QP = 0  # a module without queue pairs
# Rings of 256 KiB a queue pair are on chip where they fit, and in AXI4 memory for many queue pairs.
STORES = {1: {"STORE": 0}, 4: {"STORE": 0}, 16: {"STORE": 1}, 256: {"STORE": 1}}
WHERE = ["both laws, store on chip", "both laws, store in AXI4 memory"]
FRONT_ENDS = [
    ("10G", "penstock_xgmii", {"CLK_KHZ": 156_250}),
    ("100G", "penstock_100g", {}),
    ("25G", "penstock_xgmii", {"CLK_KHZ": 390_625}),
]
ROCE = "roce_transport"  # in the table of TCP, to compare
PCS = "pcs_basex"
# What can be left out, one after the other; one queue pair at 10G.
LEFT_OUT = [
    ("without QCN", {"WITH_QCN": 0}),
    ("without QCN, source", {"WITH_QCN": 0, "WITH_SOURCE": 0}),
    ("without QCN, source, services", {"WITH_QCN": 0, "WITH_SOURCE": 0, "WITH_SERVICES": 0}),
]
# What requests of peers add to the row of RoCE, and what is left without messages of the front end's own.
PEERS = [
    ("ring of 256 KiB, READ", {"WITH_READ": 1}),
    ("ring of 256 KiB, READ and receive", {"WITH_READ": 1, "WITH_RECEIVE": 1}),
    ("READ and receive alone", {"WITH_READ": 1, "WITH_RECEIVE": 1, "WITH_REQUESTER": 0}),
    ("READ alone", {"WITH_READ": 1, "WITH_REQUESTER": 0}),
]
TOPS = [
    *(
        (top, n_qp, f"{rate}, {WHERE[STORES[n_qp]['STORE']]}", clock | STORES[n_qp])
        for n_qp in (4, 1, 16, 256)
        for rate, top, clock in FRONT_ENDS
    ),
    *(
        ("penstock_xgmii", 1, f"10G, {build}, store on chip", {"CLK_KHZ": 156_250, "STORE": 0, **params})
        for build, params in LEFT_OUT
    ),
    *(("cc_engine", n_qp, laws, params) for laws, params in LAWS for n_qp in (1, 16, 256)),
    ("penstock_dcqcn", NO_QP, "64 bits", {"DATA_W": 64}),
    ("penstock_dcqcn", NO_QP, "64 bits, QCN", {"DATA_W": 64, "WITH_QCN": 1}),
    (
        "penstock_dcqcn",
        NO_QP,
        "512 bits",
        {"DATA_W": 512, "CLK_KHZ": 322_266, "LINE_MBPS": 100_000},
    ),
    *(
        (
            "event_source",
            NO_QP,
            f"{n_in} input{'s' if n_in > 1 else ''} of {data_w} bits",
            {"DATA_W": data_w, "N_IN": n_in},
        )
        for data_w in (64, 512)
        for n_in in (1, 4, 16)
    ),
    ("tcp_engine", NO_QP, "the rules alone", {}),
    *(
        (top, NO_QP, f"{n} stream{'s' if n > 1 else ''}{what}", {"N_STREAMS": n})
        for top, what, counts in (("tcp_sender", "", (1, 16, 64)), ("tcp_endpoint", ", rings of 64 KiB", (1, 4)))
        for n in counts
    ),
    ("tcp_transport", NO_QP, "1 stream, ring of 256 KiB", {"N_STREAMS": 1}),
    (ROCE, 1, "1 queue pair, ring of 256 KiB, both laws", {}),
    *((ROCE, 1, f"1 queue pair, both laws, {build}", params) for build, params in PEERS),
    ("congestion_point", NO_QP, "one queue", {}),
    ("qcn_switch", NO_QP, "4 ports, 2 queues of 256 KiB each", {}),
    (PCS, NO_QP, "2.5 Gb/s", {}),
]
SWITCH = ("congestion_point", "qcn_switch")
# AdvCam Table I: its DCQCN module on an XCKU040, one rate for all queue pairs.
PUBLISHED = ("AdvCam, Table I", None, "DCQCN alone")
PUBLISHED_COST = {"sites": 1337, "FF": 2557, "BRAM (36k)": 18, "DSP": 5}
REACTION = "reaction points"
PUBLISHED_IN = {REACTION: "laws", "limiter": "build"}  # tables with that row, and the heading of its build
COLUMNS = {"LUT": "lut", "sites": "sites", "FF": "ff", "BRAM (36k)": "bram", "URAM": "uram", "DSP": "dsp"}
KEPT = REPO / "build" / "synth"
PROGRAMS = Path(__file__).parent
BRAM = {"RAMB36E2": 1, "RAMB18E2": 0.5}  # in blocks of 36 kbit
LUT_RAM = {"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4}
LUT_RAM |= {"RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM256X1D": 8, "RAM512X1S": 8}


Row = tuple[dict, levels.Depth, str, float]  # of synth.json, deepest way, name of the build, seconds it took


def netlist(top: str, params: dict[str, int], source: Path | None = None, for_depth: bool = False) -> dict:
    """One module, flat and mapped to UltraScale+ cells, as in Yosys' `write_json`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "netlist.json")
        read = yosys.read(top, params, source or rtl.module(top)[0])
        yosys.run([read, *yosys.synthesise(top, "-flatten", for_depth=for_depth), f"write_json {file}"])
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


def sites_of(module: dict) -> int:
    """LUTs of a module with two in a site where they can share one; LUT RAM and shift registers stay as they are."""
    found = kinds(module)
    small = sum(count for kind, count in found.items() if re.fullmatch(r"LUT\d", kind))
    return cost(found)["lut"] - small + sites.sites(module["cells"])


def kinds(module: dict) -> dict[str, int]:
    """How many cells of each type a module has."""
    found: dict[str, int] = {}
    for cell in module["cells"].values():
        found[cell["type"]] = found.get(cell["type"], 0) + 1
    return found


def digest(*paths: Path) -> str:
    """Of the text of these files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def logic(top: str, params: dict[str, int], source: Path | None = None) -> str:
    """The fingerprint of a design's logic; made once for one text of the gateware and kept.

    `source` is the file of `top` if it is not one of the gateware's.
    """
    rtl.generate()
    sources = [path for folder in rtl.FOLDERS for path in sorted(folder.glob("*.sv*"))]
    sources += [source] if source else []
    name = "_".join([top, *(f"{key}{value}" for key, value in sorted(params.items()))])
    kept = KEPT / "fingerprints" / f"{name}_{digest(*sources, PROGRAMS / 'fingerprint.py')}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(fingerprint.fingerprint(top, params, source))
    return kept.read_text()


def version(found: str) -> str:
    """Of everything a row depends on besides its job: the fingerprint of the logic, and what measures it."""
    flow = digest(*(PROGRAMS / name for name in ("yosys.py", "levels.py", "sites.py", "synth.py")))
    return hashlib.sha256(f"{found} {flow}".encode()).hexdigest()[:16]


Job = tuple[str, int, str, dict[str, int]]  # top, N_QP, name of the build, its other parameters


def label(job: Job) -> str:
    """What the files of a job's rows begin with."""
    top, n_qp, _, params = job
    return f"{top}_{n_qp}" + "".join(f"_{name}{value}" for name, value in params.items())


def restored(job: Job, kept: Path) -> Row:
    """A row as it was kept."""
    row, depth = json.loads(kept.read_text())
    return row, levels.Depth(**depth), job[2], 0.0


def saved(jobs: list[Job]) -> list[Row]:
    """The newest kept row of each job that has one."""
    found = [(job, sorted(KEPT.glob(f"{label(job)}_{'?' * 16}.json"), key=os.path.getmtime)) for job in jobs]
    return [restored(job, files[-1]) for job, files in found if files]


def measure(job: Job) -> Row:
    """The row of synth.json for one top, its deepest way, what the build is called, and the seconds it took."""
    top, n_qp, build, params = job
    started = time.monotonic()
    parameters = params if n_qp == NO_QP else {"N_QP": n_qp, **params}
    found = logic(top, parameters)
    kept = KEPT / f"{label(job)}_{version(found)}.json"
    if kept.exists():
        return restored(job, kept)
    module = netlist(top, parameters)
    depth = levels.deepest(module)
    costs = {"lut": 0, "sites": sites_of(module)} | cost(kinds(module))
    row = {"top": top, "n_qp": n_qp, "params": params, **costs, "max_levels": depth.levels, "rtl": found[:8]}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps([row, asdict(depth)]))
    return row, depth, build, time.monotonic() - started


def page_row(row: Row, what: str = "build") -> measured.Row:
    """A row of docs/synthesis.md; `what` heads the column that identifies builds."""
    figures, depth, build, _ = row
    return {
        "top": figures["top"],
        "N_QP": figures["n_qp"],
        what: build,
        **{heading: figures[column] for heading, column in COLUMNS.items()},
        "levels": figures["max_levels"],
        "RTL": figures["rtl"],
        "chains": depth.chains,
        "DSPs": depth.dsps,
        "from": depth.start,
        "to": depth.end,
    }


def tables(rows: list[Row]) -> dict[str, list[measured.Row]]:
    """The rows of each table of the page that has some."""
    names = {top: "front ends" for _, top, _ in FRONT_ENDS} | {top: "switch" for top in SWITCH}
    names |= {"event_source": "events", ROCE: "tcp", "penstock_dcqcn": "limiter", PCS: "pcs"}
    found: dict[str, list[measured.Row]] = {}
    for row in rows:
        top = row[0]["top"]
        name = "tcp" if top.startswith("tcp_") else names.get(top, REACTION)
        name = "peers" if "WITH_READ" in row[0]["params"] else name
        found.setdefault(name, []).append(page_row(row, "laws" if name == REACTION else "build"))
    for name, what in PUBLISHED_IN.items():
        if name in found:
            found[name].append({"top": PUBLISHED[0], "N_QP": None, what: PUBLISHED[2], **PUBLISHED_COST})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=REPO / "out", help="folder for synth.json")
    parser.add_argument("--only", default="", help="tops with this word in their name; no others are in synth.json")
    parser.add_argument("--n-qp", type=int, action="append", help="only rows with so many queue pairs; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="rows at a time")
    parser.add_argument("--saved", action="store_true", help="rows that are kept, of any version; make none")
    parser.add_argument("--docs", action="store_true", help="put the rows into docs/measured/synthesis.json")
    options = parser.parse_args()
    jobs = [job for job in TOPS if options.only in job[0] and job[1] in (options.n_qp or [job[1]])]
    if not jobs:
        print(f"synth: no row has {options.only!r} in its name and such a number of queue pairs; there are")
        print("\n".join(f"    {top} {n_qp}" for top, n_qp, *_ in TOPS))
        return 2
    rtl.generate()
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            rows = saved(jobs) if options.saved else list(pool.map(measure, jobs))
        except (yosys.YosysError, levels.CombinationalLoopError) as error:
            sys.exit(f"synth: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "synth.json").write_text(json.dumps([row for row, *_ in rows], indent=2) + "\n")
    for table in tables(rows).values():
        print(measured.markdown(table))
    for row, _, build, seconds in rows:
        print(f"{row['top']} N_QP {row['n_qp']}, {build}: {seconds:.0f} s")
    print(f"written: {options.out / 'synth.json'}")
    if options.docs:
        order = [*((top, n_qp, build) for top, n_qp, build, _ in TOPS), PUBLISHED]
        for name, found in tables(rows).items():
            measured.put(name, found, order)
    return 0


if __name__ == "__main__":
    sys.exit(main())
