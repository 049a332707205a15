#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the gateware's laws with the model's, one visit per cycle: `python tb/cc_equality/equality.py --help`.

The history is that of example `steps` of crates/cc, the gateware `cc_step` (lib/equality.py).
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.equality import Equality, in_chunks  # noqa: E402

EQUALITY = Equality(HERE, "cc_step_harness", "steps")
LAWS = ("dcqcn", "qcn", "mixed")


def run(law: str, seed: int, events: int) -> str:
    """Compares; returns what was compared. Raises AssertionError at the first difference."""
    return f"{law}: {EQUALITY.run((seed, events, law), f'--law {law} --seed {seed} --events {events}')}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the congestion-control laws of gateware and model.")
    parser.add_argument("--law", choices=[*LAWS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=10_000_000, help="for each law")
    parser.add_argument("--chunk", type=int, default=100_000_000, help="events before the next seed is taken")
    options = parser.parse_args()
    for law in LAWS if options.law == "all" else [options.law]:
        status = in_chunks(
            lambda seed, events, law=law: run(law, seed, events), options.seed, options.events, options.chunk
        )
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
