# SPDX-License-Identifier: Apache-2.0
"""Servers and groups of boards, each in a namespace of its own, joined by a bridge whose ports can be cut."""

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
from veth import MTU, SERVER_IP, Network, first_board


class Bridged(Network):
    """Ends: the server's (s), a group of boards (b), and a second one (c) whose sources follow. The bridge is in m."""

    ends = "sbcm"
    second = 0

    def make(self, *boards: int) -> None:
        """So many boards in either group."""
        self.second = boards[0]
        groups = {"s": [SERVER_IP]}
        for end, first, count in zip("bc", (0, self.second), (*boards, 0), strict=False):
            groups[end] = [first_board(first + k) for k in range(count)]
        self.join(groups)

    def join(self, groups: dict[str, list[str]], bridge: str | None = None) -> None:
        """Addresses by end, and that of the bridge."""
        self.ends = "".join(groups) + "m"
        named = {end: f"{self.name}-{end}" for end in self.ends}
        lines = [f"netns add {name}" for name in named.values()]
        lines += [
            f"link add port-{end} netns {named['m']} mtu {MTU} type veth"
            f" peer name {self.inner(end)} netns {named[end]} mtu {MTU}"
            for end in groups
        ]
        self.ip("\n".join(lines))
        ports = [line for end in groups for line in (f"link set port-{end} master br0", f"link set port-{end} up")]
        ports += [f"addr add {bridge}/16 dev br0"] if bridge else []
        self.ip("\n".join([f"link add br0 mtu {MTU} type bridge", "link set br0 up", *ports]), "m")
        for end, addresses in groups.items():
            lines = [f"addr add {at}/16 dev {self.inner(end)}" for at in addresses]
            self.ip("\n".join([*lines, f"link set {self.inner(end)} up", "link set lo up"]), end)

    def inner(self, end: str) -> str:
        """The interface of an end."""
        return "veth1" if end in "bcd" else "veth0"

    def ip(self, lines: str, end: str | None = None) -> None:
        inside = ["-n", f"{self.name}-{end}"] if end else []
        subprocess.run(["ip", *inside, "-batch", "-"], input=lines, text=True, check=True)

    def pin_server_mac(self) -> None:
        """The boards' kernels have the server's MAC for good: no ARP tells them of an outage."""
        show = ["ip", "-n", f"{self.name}-s", "-json", "link", "show", self.inner("s")]
        mac = json.loads(subprocess.run(show, capture_output=True, check=True).stdout)[0]["address"]
        for end in "bc":
            self.ip(f"neigh replace {SERVER_IP} lladdr {mac} dev {self.inner(end)} nud permanent", end)

    def cut(self, end: str) -> None:
        self.ip(f"link set port-{end} down", "m")

    def unplug(self, end: str) -> None:
        """The interface itself goes down."""
        self.ip(f"link set {self.inner(end)} down", end)

    def heal(self, end: str) -> None:
        self.ip(f"link set port-{end} up", "m")
        self.ip(f"link set {self.inner(end)} up", end)

    def boards(self, end: str, count: int, *options: object) -> subprocess.Popen:
        """Boards of a group: their sources follow one another from the group's first."""
        first = {"b": 0, "c": self.second}[end]
        here = ("--ip", first_board(first), "--first-source", first, "--boards", count)
        command = (self.binary, "send", "--iface", "veth1", "--json", *here, *options)
        return self.start(end, *map(str, command))


def stored(out: Path) -> tuple[list[int], list[int]]:
    """Numbers of the events in a folder, in the order of the files, and of those that are incomplete."""
    table = pq.read_table(out, columns=["event_number", "complete"]).to_pydict()
    numbers = table["event_number"]
    return numbers, [number for number, whole in zip(numbers, table["complete"], strict=True) if not whole]
