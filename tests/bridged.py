# SPDX-License-Identifier: Apache-2.0
"""A server and two groups of boards, each in a namespace of its own, joined by a bridge whose ports can be cut."""

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
        named = {end: f"{self.name}-{end}" for end in self.ends}
        lines = [f"netns add {name}" for name in named.values()]
        for end in "sbc":
            inner = "veth0" if end == "s" else "veth1"
            lines.append(
                f"link add port-{end} netns {named['m']} mtu {MTU} type veth"
                f" peer name {inner} netns {named[end]} mtu {MTU}"
            )
        self.ip("\n".join(lines))
        ports = [line for end in "sbc" for line in (f"link set port-{end} master br0", f"link set port-{end} up")]
        self.ip("\n".join([f"link add br0 mtu {MTU} type bridge", "link set br0 up", *ports]), "m")
        groups = {"s": [SERVER_IP]}
        for end, first, count in zip("bc", (0, self.second), (*boards, 0), strict=False):
            groups[end] = [first_board(first + k) for k in range(count)]
        for end, addresses in groups.items():
            inner = "veth0" if end == "s" else "veth1"
            lines = [f"addr add {at}/16 dev {inner}" for at in addresses]
            self.ip("\n".join([*lines, f"link set {inner} up", "link set lo up"]), end)

    def ip(self, lines: str, end: str | None = None) -> None:
        inside = ["-n", f"{self.name}-{end}"] if end else []
        subprocess.run(["ip", *inside, "-batch", "-"], input=lines, text=True, check=True)

    def cut(self, end: str) -> None:
        self.ip(f"link set port-{end} down", "m")

    def heal(self, end: str) -> None:
        self.ip(f"link set port-{end} up", "m")

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
