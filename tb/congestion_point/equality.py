#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the gateware's congestion points with the model's: `python tb/congestion_point/equality.py --help`.

The history is that of example `congestion_points` of crates/cc, the gateware `congestion_point` (lib/equality.py).
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.equality import Equality, in_chunks  # noqa: E402

EQUALITY = Equality(HERE, "congestion_point_harness", "congestion_points")


def run(seed: int, frames: int) -> str:
    """Compares; returns what was compared. Raises AssertionError at the first difference."""
    return EQUALITY.run(("history", seed, frames), f"--seed {seed} --events {frames}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the congestion points of gateware and model.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=10_000_000, help="frames that enter a queue")
    parser.add_argument("--chunk", type=int, default=100_000_000, help="frames before the next seed is taken")
    options = parser.parse_args()
    return in_chunks(run, options.seed, options.events, options.chunk)


if __name__ == "__main__":
    sys.exit(main())
