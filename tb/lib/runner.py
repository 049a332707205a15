"""The runner of all cocotb benches.

A bench is a folder `tb/<name>/` with a `bench.py`: cocotb tests and one line

    BENCH = Bench(top="axis_register", configs=[{"W": 64}, {"W": 512}])

or `BENCHES`, a list, where the same tests run on several tops.

`tb/test_benches.py` finds them all. Random tests take their generator from `seed()`; a failure is
replayed with `PENSTOCK_SEED=<n> pytest tb -k <name>`.

Benches of one top with the same parameters share one model (`models.py` says when it is made again). The output of a
build and of a run goes to `build.log` and `run.log`; the terminal shows only the lines that explain a failure.
"""

import logging
import os
import random
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cocotb_tools.runner import get_results, get_runner

from lib import models, quick, rtl, runtime
from lib.models import alone
from lib.netlist import Netlist
from lib.rtl import REPO
from lib.toolchain import verilator_root

quick.install()
TB = REPO / "build" / "tb"
# cocotb makes every signal of the design visible to the bench, which forbids Verilator most of what it could optimise:
# only the top's own signals are (`--public-depth`), and those that a bench names in `inside`.
BUILD_ARGS = ["-Wall", "--assert", "--timing", "--x-initial", "unique", "--no-public-flat-rw", "--public-depth", "1"]
BUILD_ARGS += rtl.include_options()
# Bench speed is C++ compile time: all of a model in one piece, and no more optimisation than pays. With -Og a front end
# compiles in half of the time of -O1 and runs as fast; with -O0 it compiles hardly faster and runs three times as long.
MAKE_VARIABLES = f"OPT_FAST={runtime.OPTIMISE} VM_PARALLEL_BUILDS=0"
# A simulation loads part of pytest, for what its assertions say, and many modules. It takes longer to start than most
# benches run unless it leaves pytest's plugins out and finds its modules compiled, their assertions rewritten.
PYTHON: dict[str, str | None] = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": None,
    "PYTHONPYCACHEPREFIX": str(TB / "python"),
}
NOISE = re.compile(r"\bINFO\b|^\s*\*\*|^(ccache |g\+\+|c\+\+|make|- )")
LOG_LINES = 100  # of a log that are shown when something fails


@dataclass
class Bench:
    """What to build: the top module and each set of parameters it is tested with."""

    top: str
    configs: list[dict[str, int]] = field(default_factory=lambda: [{}])
    sources: list[Path] = field(default_factory=list)  # a bench-only wrapper, next to bench.py
    inside: list[str] = field(default_factory=list)  # `module.signal` below the top that the bench reads or moves

    def model(self, config: dict[str, int], netlist: Netlist | None = None) -> str:
        """The name of this configuration's model: one for all benches that need the same."""
        wrapped = [path.parent.name for path in self.sources[-1:]]
        signals = [name.split(".")[-1] for name in self.inside]
        kind = ["waves"] if waves() else []
        name = netlist.name if netlist else tag("_".join([self.top, *wrapped, *signals]), config)
        return "_".join([name, *kind])

    def label(self, name: str, config: dict[str, int], netlist: Netlist | None = None) -> str:
        """Of one run of the bench in the folder `name`, told apart from those on other tops."""
        name = name if name in self.top else f"{name}_{self.top}"
        return f"{name}_on_{netlist.name}" if netlist else tag(name, config)


class BenchError(Exception):
    """A model that could not be built or a cocotb test that failed; says which, and how to try again."""


def seed() -> random.Random:
    """The bench's random source; prints the seed that replays it."""
    number = int(os.environ["PENSTOCK_SEED"])
    print(f"seed {number}: replay with PENSTOCK_SEED={number}")
    return random.Random(number)


def tag(name: str, config: dict[str, int]) -> str:
    """A name and parameters as the name of a folder."""
    return "_".join([name, *(f"{key}{value}" for key, value in config.items())])


def waves() -> bool:
    return bool(os.environ.get("WAVES"))


def run(name: str, bench: Bench, config: dict[str, int], netlist: Netlist | None = None) -> None:
    """Build and run one configuration; raises `BenchError` when a cocotb test failed or none ran.

    With a `netlist` the bench runs on that instead of the RTL.
    """
    with alone(TB / "setup"):
        rtl.generate()
        runtime.make()
    number = os.environ.get("PENSTOCK_SEED", "1")
    runner = get_runner(netlist.simulator if netlist else "verilator")
    runner.log.setLevel(logging.CRITICAL)
    build_dir = build(runner, bench, config, netlist)
    run_dir = TB / bench.label(name, config, netlist)
    run_dir.mkdir(parents=True, exist_ok=True)
    log, results = run_dir / "run.log", run_dir / "results.xml"
    results.unlink(missing_ok=True)
    crash = ""
    try:
        with environment({**verilator_environment(), **PYTHON}):
            runner.test(
                hdl_toplevel=bench.top,
                hdl_toplevel_lang="verilog",
                test_module="bench",
                test_dir=REPO / "tb" / name,  # where cocotb looks for `bench` first
                build_dir=build_dir,
                results_xml=str(results),
                log_file=log,
                test_args=["--trace-file", str(run_dir / "dump.fst")] if waves() else [],
                plusargs=initial_values(netlist, number),
                extra_env={
                    "PYTHONPATH": os.pathsep.join([str(REPO / "tb" / name), str(REPO / "tb")]),
                    "PENSTOCK_SEED": number,
                    **{f"PARAM_{k}": str(v) for k, v in config.items()},
                },
            )
    except (RuntimeError, SystemExit) as error:  # the simulator ended badly, whatever the tests said
        crash = f"the simulator ended with {error}"
    ran, failed = get_results(results) if results.exists() else (0, 0)
    if crash or failed or not ran:
        nothing = "no cocotb test ran" if results.exists() else f"the simulator ended without {results.name}"
        what = ", ".join(failures(results)) or crash or nothing
        settings = " ".join([*([netlist.setting] if netlist else []), f"PENSTOCK_SEED={number}"])
        again = f"`{settings} .venv/bin/pytest tb -k {name}`"
        raise BenchError(f"seed {number}: {what}\n{log_tail(log)}\n{run_dir.name}: {what}; {again}; all of it: {log}")


def initial_values(netlist: Netlist | None, seed: str) -> list[str]:
    """Verilator's arguments for what has no initial value: 0 in RTL, unless `RANDOM_INIT=1`; random in netlists.

    Assertions are off in RTL that begins with random values, since they do not hold before the reset.
    """
    if netlist and netlist.four_state:
        return []
    if not netlist and not os.environ.get("RANDOM_INIT"):
        return []
    return ["+verilator+rand+reset+2", f"+verilator+seed+{seed}", *([] if netlist else ["+verilator+noassert"])]


@dataclass(frozen=True)
class ModelInputs:
    """What a model is made from besides the compiler's settings."""

    files: list[Path]
    arguments: list[str]  # of Verilator
    settings: str  # Verilator's configuration file


def model_inputs(bench: Bench, config: dict[str, int], netlist: Netlist | None = None) -> ModelInputs:
    if netlist:
        files, arguments, public = (
            netlist.sources(),
            netlist.build_args(),
            [f"{bench.top}.{port}" for port in netlist.ports()],
        )
    else:
        files, arguments, public = rtl.sources(bench.top, bench.sources), BUILD_ARGS, bench.inside
    pairs = [line.split(".") for line in public]
    text = models.settings(files, [f'public_flat_rw -module "{module}" -var "{var}"' for module, var in pairs])
    options = ["--trace-fst"] if waves() else runtime.VERILATOR_OPTIONS
    if netlist and netlist.four_state:
        text, options = "", []
    return ModelInputs(files, [*arguments, *options], text)


def build(runner, bench: Bench, config: dict[str, int], netlist: Netlist | None) -> Path:
    """The folder of the model, made if need be."""
    inputs = model_inputs(bench, config, netlist)
    files, args, text = inputs.files, inputs.arguments, inputs.settings
    variables = f"{MAKE_VARIABLES} {'' if waves() else runtime.MAKE_VARIABLES}"
    simulator = netlist.simulator if netlist else "verilator"

    def make(folder: Path) -> None:
        log = folder / "build.log"
        settings = [folder / "settings.vlt"] if text else []
        for path in settings:
            path.write_text(text)
        try:
            with environment({**verilator_environment(), "MAKEFLAGS": variables}):
                runner.build(
                    sources=[*settings, *rtl.compiled(files)],
                    hdl_toplevel=bench.top,
                    parameters={} if netlist else config,
                    build_args=args,
                    build_dir=folder,
                    timescale=("1ns", "1ps"),
                    waves=waves(),
                    log_file=log,
                )
        except (RuntimeError, SystemExit) as error:
            raise BenchError(f"{log_tail(log)}\n{folder.name} could not be built: {error} (all of it: {log})") from None
        for path in folder.glob("V*"):  # all but the program
            path.unlink()

    parts = [runtime.version(), simulator, bench.top, str(config), variables, *map(str, args), text, *files]
    return models.made(bench.model(config, netlist), parts, make)


@contextmanager
def environment(variables: dict[str, str | None]) -> Iterator[None]:
    """Variables of the commands that cocotb starts, None for one to leave out; other processes do not get them."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        put(variables)
        yield
    finally:
        put(before)


def put(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def verilator_environment() -> dict[str, str | None]:
    """Where cocotb finds Verilator, and how C++ is compiled.

    Of its commands alone: Cargo, which a later test calls, compiles for Python again where `PATH` is another.
    """
    root = verilator_root()
    variables: dict[str, str | None] = {
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    if shutil.which("ccache"):  # a model that was there before
        # Without the second, compiled headers are refused.
        ccache = {"OBJCACHE": "ccache", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
        variables |= {name: os.environ.get(name, value) for name, value in ccache.items()}
    return variables


def failures(results: Path) -> list[str]:
    """The names of the cocotb tests that failed."""
    if not results.exists():
        return []
    cases = ET.parse(results).iter("testcase")
    return [
        case.get("name", "?") for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]


def log_tail(log: Path) -> str:
    """The end of a log without what is only progress, tables and commands."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    return "\n".join([line for line in plain if not NOISE.search(line)][-LOG_LINES:])
