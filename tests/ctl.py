# SPDX-License-Identifier: Apache-2.0
"""Boards in software on loopback addresses, and `penstock ctl` to operate them."""

import itertools
import json
import os
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DEADLINE_S = 300  # what hangs fails its test


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)

    def board(self, address: str) -> dict:
        """What the answer says of a board."""
        [found] = [board for board in self.json["boards"] if board["board"] == address]
        return found

    def faults(self, address: str) -> list[tuple[str | None, str]]:
        """(register, message) of each fault of a board."""
        return [(f["register"], f["message"]) for f in self.json["faults"] if f["board"] == address]


class Boards:
    """`count` boards at consecutive addresses of 127.0.0.0/8; other tests have others."""

    number = 0

    def __init__(self, built: Path, count: int, *options: str) -> None:
        Boards.number += 1
        self.count = count
        self.first = (127 << 24) + ((os.getpid() % 16000 + 256) << 10) % (1 << 24) + (Boards.number << 4) % 1024
        self.begin(built, *options)

    def begin(self, built: Path, *options: str) -> None:
        """Starts them; again after `close`, as after a reboot."""
        command = [str(built / "examples/responders"), "--first", self.address(0), "--count", str(self.count), *options]
        self.built = built
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError(self.process.communicate()[1])

    def address(self, number: int) -> str:
        ip = self.first + number
        return ".".join(str(ip >> shift & 255) for shift in (24, 16, 8, 0))

    @property
    def all(self) -> str:
        return f"{self.address(0)}-{self.address(self.count - 1)}"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Ctl:
    """`penstock ctl` with a journal of its own."""

    def __init__(self, binary: Path, journal: Path, prefix: list[str] | None = None) -> None:
        self.binary, self.journal, self.prefix = binary, journal, prefix or []

    def command(self, *words: object) -> list[str]:
        return [*self.prefix, str(self.binary), "ctl", *map(str, words)]

    def run(self, *words: object, status: int | None = 0) -> Done:
        environment = {**os.environ, "XDG_STATE_HOME": str(self.journal)}
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=environment
        )
        ended = Done(done.returncode, done.stdout, done.stderr)
        assert status is None or ended.status == status, ended
        return ended

    def written(self) -> list[dict]:
        """The journal's lines."""
        file = self.journal / "penstock/ctl.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def boards(built: Path, count: int, *options: str):
    found = Boards(built, count, *options)
    try:
        yield found
    finally:
        found.close()


# Below the ports that the kernel gives to connections: what is free stays so until its server takes it.
PORTS = itertools.cycle(range(20_000, 32_000))
next(itertools.islice(PORTS, os.getpid() * 64 % 12_000, None))  # other processes begin elsewhere


def free_port() -> int:
    """A port of 127.0.0.1 that neither TCP nor UDP uses."""
    for port in itertools.islice(PORTS, 12_000):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                for probe in (tcp, udp):
                    probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("no port from 20000 to 31999 is free")
