#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make check`: lints and tests the code that a change can break, closest first, and ends within three minutes.

    .venv/bin/python tools/check.py [--base REV] [--list]

The change is the difference to the merge base with `main`, or with REV, including uncommitted and new files. It
runs in this order: the changed crate's tests, then those of the crates that use it, then one scenario; the benches
whose modules hold a changed RTL file, small ones first; the end-to-end tests of a changed folder (`TESTS`). It begins
nothing after two minutes and stops what is not done shortly before the third is over. Both are listed as not run;
`make test` runs them. Exit status 1: something failed.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN_BEFORE_S = 120.0
END_BEFORE_S = 165.0
STOP_S = 5.0
JOBS = os.cpu_count() or 1
CARGO = ("--release", "--locked", "--workspace")
TEST = ("cargo", "test", "-q", *CARGO)
PYTEST = (".venv/bin/pytest", "-q", "--tb=short")
PAGES = ("test_links", "test_citations", "test_pages")
# The end-to-end tests of a folder; PAGES are those of any page. What crates, gateware and tests can break they tell by
# what uses them.
TESTS = {
    "python": ("test_sweep", "test_python_module", "test_examples", "test_gateway", "test_run_control"),
    "tests/opcua": ("test_gateway",),
    "figures": ("test_figures",),
    "examples": ("test_examples", "test_python_module"),
    "web": ("test_page", "test_board_page"),
    "dissector": ("test_dissector",),
    "docs": ("test_integration_guide", "test_tutorials", "test_vhdl"),
    "packaging": ("test_package",),
    "tools": ("test_check", "test_fusesoc", "test_setup"),
    "data": ("test_examples",),
    "rtl/syn": ("test_synthesis",),
}


@dataclass(frozen=True)
class Step:
    """One command, in a folder of the repository. `far` counts what lies between it and the change: less goes first."""

    far: int
    what: str
    command: tuple[str, ...]
    folder: str = "."


def changed(base: str, root: Path = ROOT) -> list[str]:
    """The files that differ from the merge base with a revision, and new ones, by their paths from the root."""
    merge_base = git("merge-base", "HEAD", base, root=root).strip()
    new = git("ls-files", "--others", "--exclude-standard", root=root)
    return sorted({*git("diff", "--name-only", "--no-renames", merge_base, root=root).split(), *new.split()})


def git(*words: str, root: Path) -> str:
    """What a command of git prints; without git, or for a revision that it does not know, the program ends."""
    advice = "name the revision to compare with: BASE=<rev>"
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        sys.exit(f"check: {error}; {advice}")
    if done.returncode:
        sys.exit(f"check: `git {' '.join(words)}`: {done.stderr.strip()}; {advice}")
    return done.stdout


def steps(paths: list[str]) -> list[Step]:
    """What a change of these files can break, the nearest first."""
    found = [step for part in (rust, gateware, python, tests, web) for step in part(paths)]
    return sorted(dict.fromkeys(found), key=lambda step: step.far)


def rust(paths: list[str]) -> Iterable[Step]:
    """The tests of changed crates and of those that use them, and a scenario that goes through all of the command.

    Always of the whole workspace, of which cargo builds what has changed: with `-p` it would choose other features for
    the dependencies and build all of them again.
    """
    crates = workspace()
    distance = {crate: 0 for path in paths if (crate := crate_of(path)) in crates}
    distance |= {crate: 0 for path in paths if path.startswith("fuzz/") for crate in replayers()}
    if any(path.endswith(".rs") for path in paths):
        yield Step(0, "format of Rust", ("cargo", "fmt", "--all", "--check"))
    waiting = list(distance)
    for crate in waiting:  # grows: breadth first
        users = [user for user in crates[crate].users if user not in distance]
        waiting += users
        distance |= {user: distance[crate] + 1 for user in users}
    for crate, far in distance.items():
        if crates[crate].tests:
            yield Step(2 + 2 * far, f"tests of {crate}", crates[crate].command)
    if any(path.startswith("scenarios/") for path in paths):
        for path in sorted(ROOT.glob("crates/*/tests/*.rs")):
            if "scenarios" in path.read_text() and crate_of(str(path.relative_to(ROOT))) not in distance:
                yield Step(2, f"tests in {path.stem}.rs", (*TEST, "--test", path.stem))
    if distance:
        yield Step(3, "unit tests", (*TEST, "--lib", "--bins"))
        yield Step(3, "clippy", ("cargo", "clippy", *CARGO, "--all-targets", "--", "-D", "warnings"))
        run = "target/release/penstock run scenarios/advcam-5.toml --no-plots --out build/check"
        yield Step(5, "a scenario", ("sh", "-c", f"cargo build -q {' '.join(CARGO)} --bin penstock && {run}"))


def crate_of(path: str) -> str:
    """The package that a file belongs to, by the names of the folders in crates/."""
    parts = path.split("/")
    return f"penstock-{parts[1]}" if parts[0] == "crates" and len(parts) > 2 else ""


@dataclass
class Crate:
    """The integration tests of one of our crates, and the crates that depend on it directly, tests included."""

    tests: list[str]
    users: list[str]

    @property
    def command(self) -> tuple[str, ...]:
        """Runs its integration tests, and those of the same names in other crates."""
        return (*TEST, *(word for test in self.tests for word in ("--test", test)))


@cache
def workspace() -> dict[str, Crate]:
    """Our crates, by their names."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.check_output(command, cwd=ROOT))["packages"]
    tests = {
        package["name"]: [target["name"] for target in package["targets"] if "test" in target["kind"]]
        for package in packages
    }
    crates = {name: Crate(names, []) for name, names in tests.items()}
    for package in packages:
        for used in sorted({dependency["name"] for dependency in package["dependencies"]} & crates.keys()):
            crates[used].users.append(package["name"])
    return crates


def replayers() -> list[str]:
    """The crates whose tests run the fuzz targets over their corpus."""
    return [crate_of(str(path.relative_to(ROOT))) for path in sorted(ROOT.glob("crates/*/tests/corpus.rs"))]


def gateware(paths: list[str]) -> Iterable[Step]:
    """Lint of changed modules, and the benches that hold them, in the order of how many files they hold."""
    sources = {Path(path).stem for path in paths if path.endswith((".sv", ".svh"))}
    if any(path.startswith("regs/") for path in paths):
        sources |= {"penstock_regblock", "penstock_regblock_pkg", "penstock_regs_pkg", "qcn_switch_regs_pkg"}
    folders = {path.split("/")[1] for path in paths if re.match(r"tb/(?!lib/)[^/]+/.", path)}
    shared = {
        ".".join(Path(path).with_suffix("").parts[1:]) for path in paths if re.match(r"tb/[^/]+/[^/]+\.py$", path)
    }
    shared |= {"lib.runner" for path in paths if re.fullmatch(r"tb/[^/]+\.py", path)}
    rtl = gateware_files()
    modules = rtl.modules()
    if sources:
        holders = {name for name, path in modules.items() if sources & rtl.references(path)}
        linted = sorted({name for name in sources | holders if name in modules and not name.endswith("_pkg")})
        yield Step(1, "lint of gateware", (".venv/bin/python", "tb/lib/lint.py", *linted))
    yield from proofs(sources, any(path.startswith("rtl/formal/") and path.endswith(".py") for path in paths))
    if not (sources or folders or shared):
        return
    held = sorted(
        (len(files), label)
        for label, name, files, used in benches()
        if sources & files or name in folders or shared & used
    )
    for some in batched(held, 2 * JOBS):
        labels = [label for _, label in some]
        ids = [f"tb/test_benches.py::test_bench[{label}]" for label in labels]
        yield Step(2 + some[0][0], f"benches {', '.join(labels)}", (*PYTEST, "-n", str(JOBS), *ids))
    for path in sorted(ROOT.glob("tb/*/test_*.py")):  # equality with a model, which needs no cocotb
        siblings = {wrapper.stem: wrapper for wrapper in path.parent.glob("*.sv")}
        files = rtl.closure(siblings, modules | siblings, rtl.instances)
        if path.parent.name in folders or sources & files:
            yield Step(2 + len(files), path.stem, (*PYTEST, str(path.relative_to(ROOT))))
    if any(re.match(r"rtl/(?!formal|syn|boards)|regs/", path) for path in paths):
        yield Step(1000, "tests of penstock-board", workspace()["penstock-board"].command)


def proofs(sources: set[str], of_all: bool) -> Iterable[Step]:
    """The proofs of changed modules and properties, before any bench of a front end."""
    sys.path[:0] = [str(ROOT / "rtl/formal"), str(ROOT / "tb/lib")]
    from proofs import PROOFS

    for name in sorted(
        {proof.top for proof in PROOFS if of_all or {proof.top, f"{proof.props or proof.top}_props"} & sources}
    ):
        yield Step(20, f"proofs of {name}", (".venv/bin/python", "rtl/formal/check.py", name))


@cache
def gateware_files():
    """The module that knows which files a model holds."""
    sys.path[:0] = [str(ROOT / "tb")]
    from lib import rtl

    return rtl


@cache
def benches() -> list[tuple[str, str, set[str], set[str]]]:
    """Of each run of a bench: its label, its folder, the SystemVerilog files that it holds, the Python that it uses."""
    rtl = gateware_files()
    import test_benches
    from lib import bench_texts

    found = []
    for parameters in test_benches.benches():
        name, bench, _ = parameters.values
        files = {path.stem for path in rtl.sources(bench.top, bench.sources)}
        found.append((parameters.id, name, files, bench_texts.python_modules(name)))
    return found


def batched(items: list, size: int) -> Iterable[list]:
    return (items[at : at + size] for at in range(0, len(items), size))


def python(paths: list[str]) -> Iterable[Step]:
    """Formatters and linters of changed Python files."""
    changed_files = tuple(path for path in paths if path.endswith((".py", ".pyi")) and (ROOT / path).exists())
    if changed_files:
        yield Step(0, "ruff", (".venv/bin/ruff", "check", "-q", *changed_files))
        yield Step(0, "format of Python", (".venv/bin/ruff", "format", "-q", "--check", *changed_files))
    if any(path.startswith(("python/", "figures/")) for path in changed_files):
        yield Step(1, "mypy", (".venv/bin/mypy", "--cache-dir", "build/mypy"))


def tests(paths: list[str]) -> Iterable[Step]:
    """Changed end-to-end tests, those that import a changed helper, and those of a changed folder."""
    folders = {str(folder) for path in paths for folder in Path(path).parents}
    files = {path.stem: path for path in ROOT.glob("tests/**/*.py")}
    stems = {Path(path).stem for path in paths if re.match(r"tests/.*\.py$", path)}
    helpers = stems - {"conftest"}  # that of all tests would run them all
    users = {
        name for name, path in files.items() if name.startswith("test_") and imports_any(path.read_text(), helpers)
    }
    names = {name for name in stems if name.startswith("test_")} | users
    names |= {name for folder in folders for name in TESTS.get(folder, ())}
    names |= {name for name in PAGES if any(path.endswith(".md") for path in paths)} | {"test_citations"}
    for name in sorted(names & files.keys()):
        yield Step(1 if name in PAGES else 3, name, (*PYTEST, str(files[name].relative_to(ROOT))))


def imports_any(text: str, modules: set[str]) -> bool:
    return any(re.search(rf"^(?:from|import) {module}\b", text, re.M) for module in modules)


def web(paths: list[str]) -> Iterable[Step]:
    """Types, format and tests of the live page."""
    if any(path.startswith(("web/", "tests/browser/")) for path in paths):
        yield Step(1, "types of the page", ("npx", "--no-install", "tsc"), "web")
        prettier = ("npx", "--no-install", "prettier", "--log-level", "warn", "--check", ".", "../tests/browser")
        yield Step(1, "format of the page", prettier, "web")
        yield Step(2, "tests of the page", ("npm", "test"), "web")


def run(planned: list[Step], begin_before_s: float = BEGIN_BEFORE_S, end_before_s: float = END_BEFORE_S) -> int:
    """Runs the steps in turn and says how each ended; the number that failed."""
    begun, failed, late, stopped = time.monotonic(), [], [], []
    for step in planned:
        at = time.monotonic()
        if at - begun > begin_before_s:
            late.append(step.what)
            continue
        print(f"check: {step.what}", flush=True)
        status, output = ended(step, begun + end_before_s - at)
        took = f"{time.monotonic() - at:.0f} s"
        if status is None:
            stopped.append(step.what)
            print(f"check: {step.what}: not done, stopped after {took}", flush=True)
            continue
        if status:
            failed.append(step)
            print(output, end="")
        print(f"check: {step.what}: {'FAILED' if status else 'ok'}, {took}", flush=True)
    if stopped:
        print(f"check: stopped, as {end_before_s:g} s are over: {', '.join(stopped)}; `make test` runs it")
    if late:
        print(f"check: not run, as {begin_before_s:g} s are over: {', '.join(late)}; `make test` runs them")
    for step in failed:
        print(f"check: FAILED: {step.what}: `{' '.join(step.command)}` in {step.folder}")
    run_to_the_end = len(planned) - len(late) - len(stopped)
    took_s = time.monotonic() - begun
    print(f"check: {run_to_the_end} of {len(planned)} run, {len(failed)} failed, {took_s:.0f} s")
    return len(failed)


def ended(step: Step, within_s: float) -> tuple[int | None, str]:
    """The exit status of a step and what it printed; without a status, if it was stopped with all that it had begun."""
    process = subprocess.Popen(
        step.command,
        cwd=ROOT / step.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=max(within_s, 0))
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if process.poll() is None:  # or interrupted from the keyboard
            stop(process)


def stop(process: subprocess.Popen) -> None:
    """Ends a step as the keyboard would, so that tests remove what they set up, and then all that is left of it."""
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Lint and test what a change can break, in three minutes.")
    parser.add_argument("--base", metavar="REV", help="compare with its merge base (default: main)")
    parser.add_argument("--list", action="store_true", help="print what would be run, and run nothing")
    arguments = parser.parse_args()
    paths = changed(arguments.base or "main")
    planned = steps(paths)
    print(f"check: {len(paths)} changed files, {len(planned)} steps", flush=True)
    if arguments.list:
        print("\n".join(f"{step.what}: {' '.join(step.command)}" for step in planned))
        return 0
    return 1 if run(planned) else 0


if __name__ == "__main__":
    sys.exit(main())
