# SPDX-License-Identifier: Apache-2.0
"""Follows the events that a receiver serves, at HOST:PORT or the path of a Unix socket.

PYTHONPATH=python .venv/bin/python examples/follow_events.py HOST:PORT
"""

import sys

from penstock.events import follow_events


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    events = missed = payload_bytes = 0
    for row in follow_events(sys.argv[1]):
        events += 1
        missed += row["missed"]
        payload_bytes += sum(map(len, row["fragments"]))
    print(f"{events} events, {payload_bytes} bytes, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
