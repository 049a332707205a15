# SPDX-License-Identifier: Apache-2.0
"""Changes the servers of boards at one event: from event FIRST on, event n goes to live server n modulo their number.

.venv/bin/python examples/change_servers.py --first 120000 --live 0,1,3 10.0.0.2 10.0.0.3

--live names the queue pairs of the live servers, in table order; the order is the same at every board. Either all
boards change or none: each holds the events from FIRST on until all have agreed. FIRST must be above the events that
any board has sent; 0 starts a run. `penstock farm` does this by itself when a server dies. Over IPbus (uHAL); `make
regs` makes its address table.
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


def prepare(board: uhal.HwInterface, live: list[int], first: int) -> None:
    """Writes the table, and has events from `first` on held for it; for event 0 it is in force at once.

    Raises Refused for a queue pair that the board has not, for an event that has gone, while the change before waits
    for its first event, and if the board belongs to a coordinator.
    """
    n_qp, pending = board.getNode("build.n_qp").read(), board.getNode("destination.status.pending").read()
    owner = board.getNode("destination.owner.id").read()
    board.dispatch()
    if beyond := [qp for qp in live if not 0 <= qp < n_qp]:
        raise Refused(f"it has {int(n_qp)} queue pairs, and no {', '.join(map(str, beyond))}")
    if owner:
        raise Refused(f"it belongs to coordinator {int(owner)}: stop that one and write 0 to destination.owner")
    if pending and first:
        raise Refused("no event of the last change has come yet: a second one would take its place")
    for row in range(SERVERS):
        entry = board.getNode(f"server{row}.entry")
        entry.write(1 << 8 | live[row] if row < len(live) else 0)
    board.getNode("destination.switch_event_lo").write(first & 0xFFFFFFFF)
    board.getNode("destination.switch_event_hi").write(first >> 32)
    board.getNode(f"destination.control.{'prepare' if first else 'commit'}").write(1)
    if refused(board):
        raise Refused(f"an event at or above {first} has gone, or another table is prepared")


def finish(board: uhal.HwInterface, command: str) -> None:
    """Confirms or cancels what is prepared."""
    board.getNode(f"destination.control.{command}").write(1)
    if refused(board):
        raise Refused(f"it was reset, or somebody else has been at it: `{command}` is refused")


def refused(board: uhal.HwInterface) -> bool:
    """Whether the last command was, when it has been carried out."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        busy, no = (board.getNode(f"destination.status.{name}").read() for name in ("busy", "refused"))
        board.dispatch()
        if not busy:
            return bool(no)
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
    boards = {}
    for address in options.boards:
        port = "" if ":" in address else ":50001"
        boards[address] = uhal.getDevice(address, f"ipbusudp-2.0://{address}{port}", f"file://{TABLE}")
        boards[address].setTimeoutPeriod(20_000)

    def each(addresses: list[str], action) -> list[str]:
        """Those at which it was carried out."""
        done = []
        for address in addresses:
            try:
                action(boards[address])
                done.append(address)
            except (Refused, uhal.exception) as error:
                print(f"{address}: not changed: {str(error).strip()}", file=sys.stderr)
        return done

    prepared = each(options.boards, lambda board: prepare(board, options.live, options.first))
    agreed = len(prepared) == len(boards)
    if options.first:
        finished = each(prepared, lambda board: finish(board, "confirm" if agreed else "cancel"))
        prepared = finished if agreed else []
    for address in prepared:
        print(f"{address}: {len(options.live)} servers from event {options.first} on")
    return 0 if len(prepared) == len(boards) else 1


if __name__ == "__main__":
    sys.exit(main())
