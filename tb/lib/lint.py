# SPDX-License-Identifier: Apache-2.0
"""`verilator --lint-only -Wall` over every module alone and over the supported configurations of the tops.

Slang is the second front end (slang.py), over the same and over the wrappers of the benches. The layout of every
SystemVerilog file is checked, too, including benches and proofs (layout.py). Module names limit the lint to these
modules: `python tb/lib/lint.py cc_step pacer`. Without names Verilator reads only what `tb/linted.json` does not have
(passed.py), with `--all` everything.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import layout
import slang
from models import digest
from passed import Record
from toolchain import verilator_root

import rtl

RECORD = Record(rtl.REPO / "tb" / "linted.json")
OPTIONS = ["--lint-only", "-Wall", "--timing"]

Case = tuple[str, dict[str, int]]  # a module and its parameters

TCP = {"WITH_ROCE": 0, "WITH_TCP": 1}
TIMED = {"TIMING": 1, "SECOND_NS": 400_000}
STAGES = {**TIMED, "HOOK": 1, "STREAMING": 1}
LEAST = {"WITH_QCN": 0, "WITH_SOURCE": 0, "WITH_SERVICES": 0, "RETRANSMIT": 0, "RING_BYTES": 16384}

# In addition to the default parameters, with which every module is elaborated, and to what the benches build, which
# Verilator warns of as well. Front ends take seconds each: every value of a parameter is tried with each width of data,
# not every combination.
CONFIGURATIONS = [
    ("penstock_xgmii", {"N_QP": 256, "CLK_KHZ": 390_625}),
    ("penstock_xgmii", {"WITH_READ": 1, "N_IN": 2}),
    ("penstock_1g", {"WITH_CN_TAG": 1, "WITH_READ": 1}),
    *(("cn_tag_insert", {"DATA_W": w, "N_QP": n}) for w, n in ((64, 1), (512, 256))),
    ("penstock_100g", {"WITH_READ": 1, "WITH_RECEIVE": 1, "WITH_TCP": 1, "RING_BYTES": 65536}),
    ("penstock_100g", {"WITH_READ": 1, "STORE": 1, "N_QP": 16}),
    ("penstock_xgmii", {"WITH_RECEIVE": 1, "STORE": 1}),
    ("penstock_xgmii", {"WITH_READ": 1, "PULL_SLOTS": 64, "STORE": 1, "N_IN": 2}),
    ("penstock_100g", {"WITH_READ": 1, "PULL_SLOTS": 256, "WITH_RECEIVE": 1, "N_QP": 16}),
    ("penstock_xgmii", {"WITH_READ": 1, "WITH_RDMA_CM": 1}),
    ("penstock_100g", {"WITH_RECEIVE": 1, "WITH_RDMA_CM": 1, "N_QP": 16}),
    *(("connections", {"N_QP": n, "RDMA_CM": 1}) for n in (1, 256)),
    *(("fragment_keeper", {"DATA_W": w, "N_QP": n}) for w, n in ((64, 1), (512, 256))),
    *(("read_responder", {"DATA_W": w, "N_QP": n, "WITH_RECEIVE": 1}) for w, n in ((64, 256), (512, 1))),
    ("penstock_xgmii", {**TCP, "N_STREAMS": 64, "RING_BYTES": 65536, "N_IN": 3, **TIMED}),
    ("penstock_xgmii", {"WITH_TCP": 1, "STORE": 1, "RING_BYTES": 1 << 22, "N_IN": 2}),
    ("penstock_100g", {"N_QP": 256, "N_IN": 3, **STAGES}),
    ("penstock_100g", {**LEAST, "N_QP": 1, "SLOTS": 1024}),
    ("penstock_100g", {**TCP, "N_STREAMS": 64, "STORE": 1, "RING_BYTES": 1 << 26}),
    ("penstock_100g", {"WITH_TCP": 1, "N_STREAMS": 1, "RING_BYTES": 65536, "N_IN": 2}),
    ("penstock_1g", {"N_QP": 16, "N_IN": 4, **STAGES}),
    ("penstock_1g", {**LEAST, "N_QP": 1, "SLOTS": 16}),
    ("penstock_1g", {**TCP, "N_STREAMS": 64, "STORE": 1, "RING_BYTES": 1 << 26}),
    *(("event_merger", {"DATA_W": data_w, "N_IN": n_in}) for data_w in (64, 512) for n_in in (1, 16)),
    *(("fragment_builder", {"DATA_W": data_w, "TABLE": 1}) for data_w in (64, 256, 512, 1024)),
    *(("ring_fill", {"N_QP": n_qp}) for n_qp in (1, 256)),
    ("event_merger", {"TRIGGERED": 1}),
    ("event_timing", {"TRIGGERS": 8192}),
    *(("event_source", {"DATA_W": data_w, "TIMING": 1, "HOOK": 1, "STREAMING": 1}) for data_w in (64, 512)),
    ("event_source", {"N_IN": 1, "HOOK": 1}),
    *(
        ("tcp_endpoint", {"DATA_W": data_w, "N_STREAMS": n, **store})
        for data_w in (64, 512)
        for n, store in ((1, {"STORE": 1, "RING_BYTES": 1 << 26}), (64, {}))
    ),
    *(("penstock_dcqcn", {"DATA_W": data_w, "CLK_KHZ": 400_000, "LINE_MBPS": 2_000}) for data_w in (8, 512, 1024)),
    *(("qcn_switch", {"N_PORTS": ports, "N_QUEUES": queues}) for ports, queues in ((2, 1), (3, 8), (4, 4))),
    ("qcn_switch", {"CLK_KHZ": 62_500, "LINE_MBPS": 1_000, "CELLS": 256, "MAX_BYTES": 1518}),
    ("qcn_switch_gmii", {"N_PORTS": 2, "N_QUEUES": 1}),
    ("penstock_switch", {"N_PORTS": 2, "N_QUEUES": 8, "ENTRIES": 128, "MANAGEMENT": 0}),
    ("penstock_switch_1g", {"N_PORTS": 3, "N_QUEUES": 1, "ENTRIES": 128, "CLK_KHZ": 125_000}),
    ("qcn_switch_registers", {"MANAGEMENT": 0}),
    ("eth_port", {"DATA_W": 512, "CLK_KHZ": 322266, "LINE_MBPS": 100_000}),
]


def label(case: Case) -> str:
    name, parameters = case
    return "-".join([name, *(f"{key}{value}" for key, value in parameters.items())])


def fingerprint(case: Case) -> str:
    """Of all that decides about Verilator's complaints."""
    files = rtl.sources(case[0])
    return digest([version("verilator"), *OPTIONS, str(case), *rtl.waivers(files), *rtl.packages(), *files])


def lint(case: Case) -> str:
    """Verilator's complaints about one module with these parameters; empty when it is clean."""
    name, parameters = case
    root = verilator_root()
    command = [root / "bin" / "verilator_bin", *OPTIONS, "--top-module", name]
    command += [f"-G{key}={value}" for key, value in parameters.items()]
    result = subprocess.run(
        [*command, *rtl.options(), *rtl.packages(), *rtl.module(name)],
        env={**os.environ, "VERILATOR_ROOT": str(root)},
        capture_output=True,
        text=True,
    )
    return result.stderr if result.returncode or "%Warning" in result.stderr else ""


def slang_complaints(cases: list[Case], chosen: list[str]) -> list[str]:
    """Those of the second front end: the modules together, each configuration, and, if nothing is chosen, wrappers."""
    found = slang.check([name for name, parameters in cases if not parameters], {})
    for name, parameters in cases:
        if parameters:
            found += slang.check([name], parameters)
    wrappers = sorted((rtl.REPO / "tb").glob("*/*.sv"))
    return found if chosen else [*found, *slang.check([path.stem for path in wrappers], {}, wrappers)]


def cases() -> list[Case]:
    """Every module alone, and the configurations."""
    names = sorted(p.stem for folder in rtl.FOLDERS[:-1] for p in folder.glob("*.sv") if not p.stem.endswith("_pkg"))
    return [*((name, {}) for name in names), *CONFIGURATIONS]


def complaints_of(read: list[Case]) -> list[str]:
    """Verilator's about these, each with its case; what is clean is recorded."""
    prints = {label(case): fingerprint(case) for case in read}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {label(case): text for case, text in zip(read, pool.map(lint, read), strict=True)}
    RECORD.add({name: prints[name] for name, text in found.items() if not text}, map(label, cases()))
    return [f"--- {name}\n{text}" for name, text in found.items() if text]


def main(words: list[str]) -> int:
    chosen = [word for word in words if word != "--all"]
    rtl.generate()
    verilator_root()
    files = sorted(path for folder in ("rtl", "tb") for path in (rtl.REPO / folder).rglob("*.sv"))
    misplaced = [line for path in files for line in layout.complaints(path.relative_to(rtl.REPO), path.read_text())]
    if unknown := set(chosen) - {name for name, _ in cases()}:
        sys.exit(f"lint: no module {', '.join(sorted(unknown))} in {', '.join(rtl.ROOMS)} or boards")
    of_all = [case for case in cases() if not chosen or case[0] in chosen]
    before = RECORD.passed()
    left = [case for case in of_all if not words and before.get(label(case)) == fingerprint(case)]
    first = complaints_of([case for case in of_all if case not in left])
    second = slang_complaints(of_all, chosen)
    for line in [*misplaced, *first, *second]:
        print(line, file=sys.stderr)
    alone = sum(not parameters for _, parameters in of_all)
    recorded = f", {len(left)} of them in {RECORD.path.relative_to(rtl.REPO)}" if left else ""
    print(f"lint: {alone} modules, {len(of_all) - alone} more configurations{recorded}, {len(first)} with complaints")
    print(f"slang: the same and the benches' wrappers, {len(second)} complaints")
    print(f"layout: {len(files)} files, {len(misplaced)} lines with complaints")
    return bool(first or misplaced or second)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
