# SPDX-License-Identifier: Apache-2.0
"""Announces a change of servers to boards: from event FIRST on, event n goes to live server n modulo their number.

.venv/bin/python examples/change_servers.py --first 120000 --live 0,1,3 10.0.0.2 10.0.0.3

--live names the queue pairs of the servers that are left, in table order; the same order at every board. FIRST must
lie ahead of what any board has sent: events below it keep the table of before. Over IPbus (uHAL); `make regs` makes
its address table.
"""

import argparse
import sys
import time
from pathlib import Path

import uhal

TABLE = Path(__file__).resolve().parents[1] / "build/gen/penstock.xml"
SERVERS = 64


class Refused(Exception):
    """The board cannot take the change; nothing of it is in force."""


def queue_pairs(text: str) -> list[int]:
    """Queue pairs in table order, of "0,1,3"; an empty text takes all servers away."""
    try:
        live = [int(word) for word in text.split(",") if word]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: numbers with commas between, as in 0,1,3") from None
    if len(live) > SERVERS:
        raise argparse.ArgumentTypeError(f"{len(live)} servers: the table has {SERVERS} rows")
    if len(set(live)) < len(live):
        raise argparse.ArgumentTypeError(f"{text}: a queue pair stands there twice")
    return live


def change(board: uhal.HwInterface, live: list[int], first: int) -> int:
    """Writes the table and puts it into force from event `first` on; the bank that it is in.

    Raises Refused for a queue pair that the board has not, or while the change before waits for its first event.
    """
    n_qp, pending = board.getNode("build.n_qp").read(), board.getNode("destination.status.pending").read()
    board.dispatch()
    if beyond := [qp for qp in live if not 0 <= qp < n_qp]:
        raise Refused(f"it has {int(n_qp)} queue pairs, and no {', '.join(map(str, beyond))}")
    if pending:
        raise Refused("no event of the last change has come yet: a second one would take its place")
    for row in range(SERVERS):
        entry = board.getNode(f"server{row}.entry")
        entry.write(1 << 8 | live[row] if row < len(live) else 0)
    board.getNode("destination.switch_event_lo").write(first & 0xFFFFFFFF)
    board.getNode("destination.switch_event_hi").write(first >> 32)
    board.getNode("destination.control.commit").write(1)
    board.dispatch()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        busy, bank = board.getNode("destination.status.busy").read(), board.getNode("destination.status.bank").read()
        count = board.getNode("destination.status.live").read()
        board.dispatch()
        if not busy:
            if count != len(live):
                raise Refused(f"it counts {int(count)} servers, not {len(live)}")
            return int(bank)
    raise Refused("it is still busy with it after 10 s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="+", metavar="ADDRESS", help="IPv4 address of a board, or ADDRESS:PORT")
    parser.add_argument("--live", type=queue_pairs, required=True, help="queue pairs of the live servers: 0,1,3")
    parser.add_argument("--first", type=int, required=True, help="first event of the new table")
    options = parser.parse_args()
    if not TABLE.exists():
        parser.error(f"{TABLE} is missing: `make regs`")
    uhal.disableLogging()
    failed = 0
    for address in options.boards:
        port = "" if ":" in address else ":50001"
        board = uhal.getDevice(address, f"ipbusudp-2.0://{address}{port}", f"file://{TABLE}")
        board.setTimeoutPeriod(20_000)
        try:
            bank = change(board, options.live, options.first)
            print(f"{address}: {len(options.live)} servers from event {options.first} on (bank {bank})")
        except (Refused, uhal.exception) as error:
            failed += 1
            print(f"{address}: not changed: {str(error).strip()}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
