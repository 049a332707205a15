# SPDX-License-Identifier: Apache-2.0
"""Follows the events that a receiver serves (`penstock recv --serve`) until it closes, and counts them.

PYTHONPATH=python .venv/bin/python examples/follow_events.py HOST:PORT
"""

import argparse
import sys

from penstock.events import follow_events


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", metavar="HOST:PORT|PATH", help="address and port, or path of a Unix socket")
    address = parser.parse_args().address
    events = missed = payload_bytes = 0
    try:
        for row in follow_events(address):
            events += 1
            missed += row["missed"]
            payload_bytes += sum(map(len, row["fragments"]))
    except (OSError, ValueError) as error:
        print(f"error: {address}: {error}; is `penstock recv --serve {address}` running?", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass  # what has come is counted
    print(f"{events} events, {payload_bytes} bytes, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
