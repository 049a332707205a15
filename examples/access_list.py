# SPDX-License-Identifier: Apache-2.0
"""Sets which hosts may write registers and open queue pairs of boards, over the network.

.venv/bin/python examples/access_list.py --allow 10.0.0.0/24,10.0.1.7 --lock 10.0.0.2 10.0.0.3

--allow names the hosts that IPbus and the connection manager serve from then on, up to 8 addresses or networks: the
host that runs this must be one of them, and so must every server. `--allow all` disables the list. --lock
keeps the list until the board is reset. Without either option the active list is shown. Over IPbus (uHAL);
`make regs` makes its address table.
"""

import argparse
import ipaddress
import socket
import sys
from pathlib import Path

import uhal

TABLE = Path(__file__).resolve().parents[1] / "build/gen/penstock.xml"
ENTRIES = 8
UNUSED = (0, 0xFFFFFFFF)  # address and netmask that match no host
ENABLE, LOCKED = 1, 2

Network = ipaddress.IPv4Network


class Refused(Exception):
    """The board keeps the list that it has."""


def networks(text: str) -> list[Network]:
    """The networks of "10.0.0.0/24,10.0.1.7"; none for "all"."""
    try:
        found = [] if text == "all" else [Network(word) for word in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; allowed are addresses and networks, or all") from None
    if len(found) > ENTRIES:
        raise argparse.ArgumentTypeError(f"{len(found)} entries: the list has {ENTRIES}")
    return found


def host_address(board: str) -> ipaddress.IPv4Address:
    """The address from which this host speaks to a board."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((board, 50001))  # nothing is sent
        return ipaddress.IPv4Address(probe.getsockname()[0])


def shown(board: uhal.HwInterface) -> str:
    """The list in force."""
    words = [[board.getNode(f"access_entry{i}.{name}").read() for name in ("ip", "netmask")] for i in range(ENTRIES)]
    control = board.getNode("access.control").read()
    board.dispatch()
    listed = [f"{ipaddress.IPv4Address(int(ip))}/{int(mask).bit_count()}" for ip, mask in words if (ip, mask) != UNUSED]
    hosts = ", ".join(listed) or "nobody"
    return f"{hosts if control & ENABLE else 'all hosts'}{', locked until reset' if control & LOCKED else ''}"


def change(board: uhal.HwInterface, allowed: list[Network] | None, lock: bool) -> None:
    """Writes the list and puts it into force; None leaves its entries. Raises Refused where it is locked."""
    control = board.getNode("access.control").read()
    board.dispatch()
    if control & LOCKED:
        raise Refused("its list is locked until reset")
    if allowed is not None:
        board.getNode("access.control").write(0)
        pairs = [(int(entry.network_address), int(entry.netmask)) for entry in allowed]
        for i, (ip, netmask) in enumerate(pairs + [UNUSED] * (ENTRIES - len(pairs))):
            board.getNode(f"access_entry{i}.ip").write(ip)
            board.getNode(f"access_entry{i}.netmask").write(netmask)
        control = ENABLE if allowed else 0
    board.getNode("access.control").write(control | (LOCKED if lock else 0))
    board.dispatch()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="+", metavar="ADDRESS", help="IPv4 address of a board")
    parser.add_argument("--allow", type=networks, metavar="LIST", help="10.0.0.0/24,10.0.1.7, or all")
    parser.add_argument("--lock", action="store_true", help="keep the list until the board is reset")
    options = parser.parse_args()
    if not TABLE.exists():
        parser.error(f"{TABLE} is missing: `make regs`")
    uhal.disableLogging()
    failed = 0
    for address in options.boards:
        board = uhal.getDevice(address, f"ipbusudp-2.0://{address}:50001", f"file://{TABLE}")
        board.setTimeoutPeriod(20_000)
        try:
            host = host_address(address)
            if options.allow and not any(host in entry for entry in options.allow):
                raise Refused(f"the list would shut out this host: add {host}")
            if options.allow is not None or options.lock:
                change(board, options.allow, options.lock)
            print(f"{address}: serves {shown(board)}")
        except (Refused, OSError, uhal.exception) as error:
            failed += 1
            print(f"{address}: not changed: {str(error).strip()}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
