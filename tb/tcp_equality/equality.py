#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the gateware's TCP rules with the model's, one event per cycle: `python tb/tcp_equality/equality.py --help`.

The history is that of example `tcp_steps` of crates/transport, the gateware `tcp_engine` (lib/equality.py).
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.equality import Equality, in_chunks  # noqa: E402

EQUALITY = Equality(HERE, "tcp_step_harness", "tcp_steps")


def run(seed: int, events: int) -> str:
    """Compares; returns what was compared. Raises AssertionError at the first difference."""
    return EQUALITY.run((seed, events), f"--seed {seed} --events {events}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the rules of TCP of gateware and model.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--chunk", type=int, default=100_000_000, help="events before the next seed is taken")
    options = parser.parse_args()
    return in_chunks(run, options.seed, options.events, options.chunk)


if __name__ == "__main__":
    sys.exit(main())
