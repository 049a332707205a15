# SPDX-License-Identifier: Apache-2.0
"""`verilator --lint-only -Wall` over every module alone, and over the supported configurations of the tops."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from toolchain import verilator_root

import rtl

# Beside the default parameters, which every module is elaborated with.
CONFIGURATIONS = [
    *((top, {"N_QP": n_qp}) for top in ("penstock_10g", "penstock_25g", "penstock_100g") for n_qp in (1, 16, 256)),
    ("eth_port", {"DATA_W": 512, "CLK_KHZ": 322266, "LINE_MBPS": 100_000}),
]


def lint(case: tuple[str, dict[str, int]]) -> str:
    """Verilator's complaints about one module with these parameters; empty when it is clean."""
    name, parameters = case
    root = verilator_root()
    command = [root / "bin" / "verilator_bin", "--lint-only", "-Wall", "--timing", "--top-module", name]
    command += [f"-G{key}={value}" for key, value in parameters.items()]
    result = subprocess.run(
        [*command, *rtl.options(), *rtl.packages(), *rtl.module(name)],
        env={**os.environ, "VERILATOR_ROOT": str(root)},
        capture_output=True,
        text=True,
    )
    return result.stderr if result.returncode or "%Warning" in result.stderr else ""


def main() -> int:
    rtl.generate()
    verilator_root()
    names = sorted(p.stem for folder in rtl.FOLDERS[:-1] for p in folder.glob("*.sv") if not p.stem.endswith("_pkg"))
    cases = [*((name, {}) for name in names), *CONFIGURATIONS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lint, cases))
    for (name, parameters), text in zip(cases, complaints, strict=True):
        if text:
            print(f"--- {name} {parameters or ''}\n{text}", file=sys.stderr)
    failed = sum(map(bool, complaints))
    print(f"lint: {len(names)} modules, {len(CONFIGURATIONS)} more configurations, {failed} with complaints")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
