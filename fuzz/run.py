# SPDX-License-Identifier: Apache-2.0
"""Builds the fuzz targets with the stable compiler and runs each for a given time: `python fuzz/run.py --seconds 60`.

Exit status 0: nothing found; 1: a target broke a promise, its input is named; 2: invalid request. One seed on one
machine starts one search; findings within a given time depend on the machine, and replay from their files.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
ROOT = FUZZ.parent
BUILD = ROOT / "build/fuzz"
LONGEST_INPUT = 4096
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", f"-max_len={LONGEST_INPUT}", "-print_final_stats=1"]


def targets() -> list[str]:
    return [binary["name"] for binary in tomllib.loads((FUZZ / "Cargo.toml").read_text())["bin"]]


def build() -> Path:
    """The folder of the targets' programs."""
    environment = os.environ | {"RUSTC_WRAPPER": str(FUZZ / "rustc.sh"), "CARGO_TARGET_DIR": str(FUZZ / "target")}
    command = ["cargo", "build", "--release", "--manifest-path", FUZZ / "Cargo.toml"]
    subprocess.run(command, check=True, env=environment)
    return FUZZ / "target/release"


def fuzz(program: Path, seconds: int, seed: int) -> bool:
    """Searches from the committed corpus; new inputs go to build/fuzz. True if every promise held."""
    name = program.name
    found, artifacts = BUILD / "corpus" / name, BUILD / "artifacts" / name
    for folder in (found, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{name}.log"
    limits = [*LIMITS, f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={artifacts}/"]
    with log.open("wb") as output:
        command = [program, *limits, found, FUZZ / "corpus" / name]
        done = subprocess.run(command, stdout=output, stderr=output, check=False, cwd=BUILD)
    lines = log.read_text(errors="replace").splitlines()
    runs = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    covered = [line.split("cov: ")[1].split()[0] for line in lines if "cov: " in line]
    verdict = "held" if done.returncode == 0 else "BROKEN"
    print(f"{name:12} {runs:>10} inputs  {covered[-1] if covered else '?':>6} edges covered  {verdict}", flush=True)
    if done.returncode:
        panic = [line for line in lines if "panicked at" in line or "ERROR: libFuzzer" in line]
        print(f"  {' '.join(panic[:1])}\n  log: {log}\n  inputs: {artifacts}", file=sys.stderr)
        print(f"  replay: {program} {artifacts}/<input>", file=sys.stderr)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("target", nargs="*", help=f"of {', '.join(targets())}; without one, all")
    arguments = parser.parse_args()
    chosen = arguments.target or targets()
    if unknown := sorted(set(chosen) - set(targets())):
        parser.error(f"no target {', '.join(unknown)}: there are {', '.join(targets())}")
    if arguments.seconds < 1 or not 0 < arguments.seed < 1 << 32:
        parser.error("--seconds is 1 or more, --seed from 1 to 4294967295")
    programs = build()
    print(f"seed {arguments.seed}, {arguments.seconds} s each")
    held = [fuzz(programs / name, arguments.seconds, arguments.seed) for name in chosen]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
