#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateware's rules of TCP against the model's, an event a cycle: `python tb/tcp_equality/equality.py --help`.

The model (example `tcp_steps` of crates/transport) writes a random history to a pipe; `steps.cpp` drives the verilated
`tcp_engine` with it and compares every bit. A failure prints the command that replays it.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib import rtl  # noqa: E402
from lib.runner import alone  # noqa: E402
from lib.toolchain import REPO, verilator_root  # noqa: E402

BUILD = REPO / "build" / "tb" / "tcp_steps"
CXX_FLAGS = "-O2 -fno-semantic-interposition"


def harness() -> Path:
    """The verilated harness, built when it is older than what it is made of."""
    rtl.generate()
    program = BUILD / "steps"
    sources = [HERE / "steps.cpp", HERE / "tcp_step_harness.sv", *(rtl.RTL / "tcp").glob("*.sv"), *rtl.packages()]
    with alone(BUILD):
        if not program.exists() or program.stat().st_mtime <= max(path.stat().st_mtime for path in sources):
            build()
    return program


def build() -> None:
    root = verilator_root()
    BUILD.mkdir(parents=True, exist_ok=True)
    command = [root / "bin" / "verilator_bin", "--cc", "--exe", "--build", "-O3", "--no-timing", "-Wno-fatal"]
    command += ["--x-assign", "fast", "--x-initial", "fast", "-CFLAGS", CXX_FLAGS, "-Mdir", BUILD, "-o", "steps"]
    command += [*rtl.options(), *rtl.packages(), HERE / "tcp_step_harness.sv", HERE / "steps.cpp"]
    command += ["--top-module", "tcp_step_harness"]
    environment = {**os.environ, "VERILATOR_ROOT": str(root)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"the harness does not build:\n{result.stdout[-4000:]}{result.stderr[-4000:]}")


def model() -> Path:
    """The example `tcp_steps` of crates/transport."""
    build = ["cargo", "build", "--quiet", "--release", "--package", "penstock-transport", "--example", "tcp_steps"]
    subprocess.run(build, cwd=REPO, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target"))
    return target / "release" / "examples" / "tcp_steps"


def run(seed: int, events: int) -> str:
    """Compares; returns what was compared. Raises AssertionError at the first difference."""
    history = subprocess.Popen([model(), str(seed), str(events)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started = time.monotonic()
    gateware = subprocess.run([harness()], stdin=history.stdout, capture_output=True, text=True)
    history.stdout.close()
    said = history.stderr.read().decode().strip()
    history.wait()
    replay = f"replay with: python tb/tcp_equality/equality.py --seed {seed} --events {events}"
    assert gateware.returncode == 0, f"gateware and model differ; {replay}\n{gateware.stdout}"
    assert history.returncode == 0, f"the history is not complete: {said}; {replay}"
    return f"{said}; {gateware.stdout.strip()} in {time.monotonic() - started:.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the rules of TCP of gateware and model.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--chunk", type=int, default=100_000_000, help="events before the next seed is taken")
    options = parser.parse_args()
    for part in range(-(-options.events // options.chunk)):
        events = min(options.chunk, options.events - part * options.chunk)
        try:
            print(run(options.seed + part, events), flush=True)
        except AssertionError as difference:
            print(difference, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
