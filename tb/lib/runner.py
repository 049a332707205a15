"""The one runner of all cocotb benches.

A bench is a folder `tb/<name>/` with a `bench.py`: cocotb tests and one line

    BENCH = Bench(top="axis_fifo", configs=[{"DATA_W": 64}, {"DATA_W": 512}])

`tb/test_benches.py` finds them all. Random tests take their generator from `seed()`; a failure is
replayed with `PENSTOCK_SEED=<n> pytest tb -k <name>`.
"""

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from cocotb_tools.runner import get_results, get_runner

from lib import rtl
from lib.rtl import REPO
from lib.toolchain import verilator_root

BUILD_ARGS = ["-Wall", "--assert", "--timing", "--x-initial", "unique"]
# Bench speed is C++ compile time: light optimisation where the clock passes, none where the model is set up.
OPTIMISATION = "OPT_FAST=-O1 OPT_GLOBAL=-O1 OPT_SLOW=-O0"


@dataclass
class Bench:
    """What to build: the top module and each set of parameters it is tested with."""

    top: str
    configs: list[dict[str, int]] = field(default_factory=lambda: [{}])
    sources: list[Path] = field(default_factory=list)  # a bench-only wrapper, beside bench.py


def seed() -> random.Random:
    """The bench's random source; prints the seed that replays it."""
    number = int(os.environ["PENSTOCK_SEED"])
    print(f"seed {number}: replay with PENSTOCK_SEED={number}")
    return random.Random(number)


def run(name: str, bench: Bench, config: dict[str, int]) -> None:
    """Build and run one configuration; raises when a cocotb test failed or none ran."""
    rtl.generate()
    root = verilator_root()
    number = os.environ.get("PENSTOCK_SEED", "1")
    os.environ["VERILATOR_ROOT"] = str(root)
    os.environ["MAKEFLAGS"] = OPTIMISATION
    os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"
    if shutil.which("ccache"):  # the same runtime is compiled for every bench
        os.environ.setdefault("OBJCACHE", "ccache")
        os.environ.setdefault("CCACHE_DIR", str(REPO / "build" / "ccache"))
    tag = "_".join([name, *(f"{k}{v}" for k, v in config.items())])
    build_dir = REPO / "build" / "tb" / tag
    runner = get_runner("verilator")
    waves = bool(os.environ.get("WAVES"))
    runner.build(
        sources=rtl.packages() + bench.sources + rtl.module(bench.top),
        hdl_toplevel=bench.top,
        parameters=config,
        build_args=[*BUILD_ARGS, *rtl.options(), *(["--trace-fst"] if waves else [])],
        build_dir=build_dir,
        timescale=("1ns", "1ps"),
        waves=waves,
    )
    results = runner.test(
        hdl_toplevel=bench.top,
        test_module="bench",
        test_dir=REPO / "tb" / name,
        build_dir=build_dir,
        results_xml=str(build_dir / "results.xml"),
        extra_env={
            "PYTHONPATH": os.pathsep.join([str(REPO / "tb" / name), str(REPO / "tb")]),
            "PENSTOCK_SEED": number,
            **{f"PARAM_{k}": str(v) for k, v in config.items()},
        },
    )
    ran, failed = get_results(Path(results))
    assert ran > 0, f"{tag}: no cocotb test ran"
    assert failed == 0, f"{tag}: {failed} of {ran} cocotb tests failed (see above; seed {number})"
