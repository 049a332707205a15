# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a veth pair, and `penstock recv` and `penstock send` in them.

The end of the fixture removes everything: it kills processes and deletes namespaces.
"""

import ctypes
import errno
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from processes import killed

SERVER_IP = "10.77.0.1"
MTU = 4200
METRICS = f"{SERVER_IP}:9100"  # where a test's receiver tells how far it is: `--metrics`
# Tests wait for what they wait for, however long a busy machine takes; this ends one that waits in vain.
LIMIT_S = 120.0


def first_board(k: int = 0) -> str:
    return f"10.77.1.{k + 1}"


def allowed() -> bool:
    """Whether this machine lets us make namespaces."""
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


def no_xdp() -> str | None:
    """What a receiver of packets of MTU 4096 says where this kernel has no AF_XDP for them; none where it has."""
    try:
        socket.socket(44, socket.SOCK_RAW).close()  # AF_XDP
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
        return "this kernel has no AF_XDP"
    release = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    return "need Linux 6.6" if release < (6, 6) else None


@dataclass
class Result:
    status: int
    stdout: str
    stderr: str

    def json(self) -> dict:
        return json.loads(self.stdout)


@dataclass
class Network:
    """Namespace `<name>-s` has the server's end, `<name>-b` the boards'."""

    binary: Path
    state: Path
    name: str = field(default_factory=lambda: f"pstk{os.getpid()}")
    running: list[subprocess.Popen] = field(default_factory=list)
    cpus: dict[str, int] = field(default_factory=dict)  # by end: the only CPU of its processes
    socket: str = "auto"  # of the packet back end
    ends = "sb"

    def make(self, boards: int, ip: str | None = SERVER_IP, queues: int = 1, mtu: int = MTU) -> None:
        """`ip` is the server's address; none: its end only carries frames. `queues` are those of either direction."""
        server, board = f"{self.name}-s", f"{self.name}-b"
        lines = [f"netns add {server}", f"netns add {board}"]
        both = f"mtu {mtu} numrxqueues {queues} numtxqueues {queues}"
        lines += [f"link add veth0 netns {server} {both} type veth peer name veth1 netns {board} {both}"]
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
        ends = ((server, "veth0", [ip] if ip else []), (board, "veth1", [first_board(k) for k in range(boards)]))
        for namespace, end, addresses in ends:
            lines = [f"addr add {at}/16 dev {end}" for at in addresses] + [f"link set {end} up", "link set lo up"]
            batch = ["ip", "-n", namespace, "-batch", "-"]
            subprocess.run(batch, input="\n".join(lines), text=True, check=True)

    def address(self, end: str, ip: str) -> None:
        """Gives the interface at one end another address of the kernel's."""
        interface = {"s": "veth0", "b": "veth1"}[end]
        subprocess.run(["ip", "-n", f"{self.name}-{end}", "addr", "add", f"{ip}/16", "dev", interface], check=True)

    def pin_board_mac(self, board: str) -> None:
        """The server's kernel has this board's MAC for good: no ARP of its own tells the board anything from now on."""
        show = ["ip", "-n", f"{self.name}-b", "-json", "link", "show", "veth1"]
        mac = json.loads(subprocess.run(show, capture_output=True, check=True).stdout)[0]["address"]
        entry = [board, "lladdr", mac, "dev", "veth0", "nud", "permanent"]
        subprocess.run(["ip", "-n", f"{self.name}-s", "neigh", "replace", *entry], check=True)

    def delete(self) -> None:
        for process in self.running:
            if process.poll() is None:
                killed(process)
            process.stdout.close()
            process.stderr.close()
        for end in self.ends:
            subprocess.run(["ip", "netns", "del", f"{self.name}-{end}"], capture_output=True)

    def start(self, end: str, *command: str, stdin: int | None = None) -> subprocess.Popen:
        """A process at the server's (s) or the boards' (b) end."""
        pinned = ["taskset", "-c", str(self.cpus[end])] if end in self.cpus else []
        full = [*pinned, "ip", "netns", "exec", f"{self.name}-{end}", *command]
        env = {**os.environ, "XDG_STATE_HOME": str(self.state)}
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(full, text=True, env=env, **pipes)
        self.running.append(process)
        return process

    def output(self, end: str, *command: str) -> str:
        """What a command at one end prints; its status is 0."""
        full = ["ip", "netns", "exec", f"{self.name}-{end}", *command]
        return subprocess.run(full, capture_output=True, text=True, check=True).stdout

    def recv(self, *options: str, poll: str = "event") -> subprocess.Popen:
        fixed = ["--backend", "packet", "--iface", "veth0", "--socket", self.socket, "--poll", poll, "--json"]
        if "--linger" not in options:
            fixed += ["--linger", "50"]
        return self.start("s", str(self.binary), "recv", *fixed, *map(str, options))

    def send(self, *options: str) -> subprocess.Popen:
        fixed = ["--iface", "veth1", "--ip", first_board(), "--json"]
        return self.start("b", str(self.binary), "send", *fixed, *map(str, options))

    @contextmanager
    def inside(self, end: str):
        """Sockets that are made in here are of one end's namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.name}-{end}") as there:
            assert libc.setns(there.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(home.fileno(), 0) == 0

    def sees(self, what: str, table: str = "udp") -> None:
        """Waits for a socket in the server's namespace; `what` is a part of its line in the table of `/proc/net`."""
        listing = ["ip", "netns", "exec", f"{self.name}-s", "cat", f"/proc/net/{table}"]
        until(f"{table} socket {what}", lambda: what.encode() in subprocess.run(listing, capture_output=True).stdout)

    def received(self, interface: str) -> int:
        """Frames that an interface in the server's namespace has received."""
        show = ["ip", "-n", f"{self.name}-s", "-json", "-statistics", "link", "show", interface]
        return json.loads(subprocess.run(show, capture_output=True, check=True).stdout)[0]["stats64"]["rx"]["packets"]

    def metrics(self, address: str = METRICS, end: str = "s") -> dict[str, float]:
        """The metrics of a receiver, by names without `penstock_` and `_total`; empty before it serves them."""
        with self.inside(end):
            try:
                connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
                connection.request("GET", "/metrics")
                text = connection.getresponse().read().decode()
            except (ConnectionError, http.client.HTTPException):
                return {}
        samples = re.findall(r"^penstock_(\w+?)(?:_total)?(\{.*\})? (\S+)$", text, re.MULTILINE)
        return {name + labels: float(value) for name, labels, value in samples}

    def counted(self, at_least: float, name: str, board: str | None = None, address: str = METRICS) -> None:
        """Waits until a metric of a receiver with `--metrics`, or that of one board, has grown so far."""
        of = f'{name}{{board="{board}"}}' if board else name
        until(f"{of} of {at_least}", lambda: self.metrics(address).get(of, -1.0) >= at_least)


def until(what: str, condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Waits for a condition."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"no {what} after {limit_s:g} s"
        time.sleep(0.02)


def row_groups(partial: Path) -> int:
    """How many lie whole in a file that is being written (docs/storage.md): what a killed writer has not lost.

    Its length alone says nothing, as the last one may be on its way to the disk.
    """
    data, at, whole = partial.read_bytes(), len(b"PAR1"), 0
    while data[at : at + 8] == b"PSTKSEG1" and len(data) >= at + 32:
        at += 32 + int.from_bytes(data[at + 16 : at + 24], "little")
        whole += at <= len(data)
    return whole


def ended(process: subprocess.Popen, limit_s: float = LIMIT_S) -> Result:
    """Waits for a process to end by itself."""
    stdout, stderr = process.communicate(timeout=limit_s)
    return Result(process.returncode, stdout, stderr)


def verified(*processes: subprocess.Popen) -> list[dict]:
    """The JSON reports of processes that must end well."""
    results = [ended(process) for process in processes]
    for result in results:
        assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    return [result.json() for result in results]


def sums(report: dict, counter: str) -> int:
    """A counter of all boards of a receiver's report together."""
    return sum(board["counters"][counter] for board in report["boards"])


def complete_once_all_are_there(out: Path) -> int:
    """The number of complete events of a run whose boards join it one after the other, in the middle of their events.

    The first events lack those that come later, by as much as a busy machine delays them; then nothing may be missing.
    """
    complete = pq.read_table(out, columns=["complete"])["complete"].to_pylist()
    assert True in complete, f"{len(complete)} events, and none is complete"
    first = complete.index(True)
    assert all(complete[first:]), f"events {complete[first:].index(False) + first} and others, of {len(complete)}"
    return len(complete) - first


def read_until(process: subprocess.Popen, what: str) -> str:
    """What a process says on standard error up to the line that has this in it. One that never says it is killed."""
    output = []
    limit = threading.Timer(LIMIT_S, process.kill)
    limit.start()
    try:
        for line in process.stderr:
            output.append(line)
            if what in line:
                return "".join(output)
    finally:
        limit.cancel()
    raise AssertionError(f"no {what!r} in {output}")
