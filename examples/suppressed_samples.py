# SPDX-License-Identifier: Apache-2.0
"""Tells how many samples of a run's events the boards kept, and the largest value of each event.

PYTHONPATH=python .venv/bin/python examples/suppressed_samples.py RUN
"""

import argparse
import sys

from penstock.events import parts, read_events
from penstock.suppression import expand, is_suppressed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="folder or events.parquet of a run whose boards suppress zeros")
    run = parser.parse_args().run
    try:
        for row in read_events(run):
            samples = kept = largest = 0
            for fragment, payload in enumerate(row["fragments"]):
                pieces = [data for _, _, data in parts(row, fragment)] or [payload]
                for values, stays in map(expand, filter(is_suppressed, pieces)):
                    samples += len(values)
                    kept += int(stays.sum())
                    largest = max(largest, int(values.max(initial=0)))
            share = f"{100 * kept / samples:.1f} %" if samples else "none is zero-suppressed"
            print(f"event {row['event_number']}: {kept} of {samples} samples kept ({share}), largest value {largest}")
    except (OSError, ValueError) as error:
        print(f"error: {run}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
