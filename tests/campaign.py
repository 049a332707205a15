# SPDX-License-Identifier: Apache-2.0
"""Shared by the campaigns of `test_campaign.py`: the course that a seed gives, a small disk, and what boards have sent.

What happens depends on the seed alone, and on the pace of the machine only when.
"""

import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

import board_server  # noqa: F401  (where `lib` is)
import numpy as np
import pyarrow.parquet as pq
from bridged import Bridged
from lib.source_model import prbs31_bytes
from scapy.contrib.roce import cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))

from penstock.events import parts

SHARED = 64  # a verilated board has every 64th module of a recorded event


def setting(name: str, usual: int) -> int:
    """`PENSTOCK_<name>`, which the makefile's campaigns set."""
    return int(os.environ.get(f"PENSTOCK_{name}", usual))


LONGEST_S = setting("CUT_S", 1)  # of an outage or a suspension


def span_s(dice: random.Random) -> float:
    """Of an outage or a suspension: mostly short."""
    return LONGEST_S * dice.random() ** 3


class World(Protocol):
    """The place of incidents."""

    def kinds(self) -> list[Callable[[random.Random], str]]:
        """What can happen next, as often as it is likely, by earlier incidents alone; each says what it did."""

    def ended(self, dice: random.Random) -> None:
        """Brings all to its end, and settles the account."""

    def describe(self) -> str:
        """What can be read of everything, after a failure."""

    def processes(self) -> dict[str, subprocess.Popen]:
        """Those that run, by name."""


@dataclass
class Course:
    """Incidents in the order in which they happen. Each has dice of its own, for its details."""

    test: str
    usual: int

    @property
    def seed(self) -> int:
        return setting("SEED", 1)

    def settings(self) -> dict[str, int]:
        """All that a course depends on."""
        return {"SEED": 1, "INCIDENTS": self.usual, "CUT_S": LONGEST_S}

    def run(self, world: "World") -> None:
        """Everything happens, and the world comes to its end; if that fails, its processes tell what they know."""
        try:
            self.happens(world.kinds)
            world.ended(random.Random(self.seed))
        except BaseException:
            print(world.describe())
            for name, process in world.processes().items():
                if process.stdout.closed:
                    continue
                process.kill()
                for of, text in zip(("said", "warned"), process.communicate(), strict=True):
                    print(f"---- {name} has {of}:\n{text[-3000:]}")
            raise

    def happens(self, kinds: Callable[[], list[Callable[[random.Random], str]]]) -> None:
        count = setting("INCIDENTS", self.usual)
        settings = " ".join(f"PENSTOCK_{name}={setting(name, usual)}" for name, usual in self.settings().items())
        print(f"{settings} .venv/bin/pytest tests/test_campaign.py -k {self.test}")
        dice, happened = random.Random(self.seed), Counter()
        for number in range(count):
            possible, draws = kinds(), random.Random(dice.getrandbits(64))
            # A short course has some of each, too.
            [kind] = dice.choices(possible, [1 / (1 + happened[kind]) ** 3 for kind in possible])
            happened[kind] += 1
            print(f"{number:4} {kind.__name__}", end="", flush=True)
            print(f": {kind(draws)}")


# Longer than any wait of a machine that is busy elsewhere.
LIMIT_S = 400


class Disk:
    """A file system of its own, so small that a file of ballast fills it, and large enough for what boards send to one
    server while the others are away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ballast = folder, folder / "ballast"
        folder.mkdir()
        megabytes = 24 + 16 * int(LONGEST_S)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", folder], check=True)

    def fill(self) -> None:
        """Leaves no page free."""
        with suppress(OSError), self.ballast.open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(1 << 16))
                ballast.flush()

    def free(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], capture_output=True)


@contextmanager
def disks(folders: list[Path]) -> Iterator[list[Disk]]:
    """Gone at the end, whatever happens."""
    made = []
    try:
        for folder in folders:
            made.append(Disk(folder))
        yield made
    finally:
        for disk in made:
            disk.close()


class Forger:
    """Somebody at the receiver's end who sees what goes to a board, and sends congestion notifications in its name."""

    def __init__(self, network: Bridged) -> None:
        # What AF_XDP sends is seen at the far end only.
        with network.inside("m"):
            self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.wire.bind(("port-s", 0))
        with network.inside("s"):
            self.out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # takes nothing
        self.out.bind((network.inner("s"), 0))
        self.wire.settimeout(1.0)

    def notification(self, server: str, board: str) -> bytes | None:
        """With addresses and queue pair of an acknowledgement that goes by; none if none does."""
        between = socket.inet_aton(server) + socket.inet_aton(board)
        with suppress(TimeoutError):
            for _ in range(100_000):
                frame = self.wire.recv(2048)
                if frame[12:14] == b"\x08\x00" and frame[26:34] == between and frame[36:38] == b"\x12\xb7":
                    number = int.from_bytes(frame[47:50])
                    macs = Ether(dst=frame[:6], src=frame[6:12])
                    return bytes(macs / IP(src=server, dst=board) / UDP(sport=49152, dport=4791) / cnp(dqpn=number))
        return None

    def forge(self, frame: bytes, seconds: float) -> int:
        """As fast as it can; how many."""
        end, sent = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for _ in range(100):
                self.out.send(frame)
            sent += 100
        return sent

    def close(self) -> None:
        self.wire.close()
        self.out.close()


class Pattern:
    """PRBS-31 of a board in software, as bytes: x^31 + x^28 + 1, inverted, begun with the board's source plus one."""

    def __init__(self, source: int) -> None:
        self.raw = np.array(list(islice(prbs31_bytes(source + 1, False), 31)), np.uint8)

    def part(self, first: int, count: int) -> bytes:
        """So many bytes from the first one on."""
        while len(self.raw) < first + count:
            # The polynomial's powers of two hold of bytes as well, and of ever longer steps.
            step = 1 << ((len(self.raw) // 31).bit_length() - 1)
            whole, n = self.raw, len(self.raw)
            self.raw = np.concatenate([whole, whole[n - 31 * step : n - 3 * step] ^ whole[n - 28 * step : n]])
        return (self.raw[first : first + count] ^ 0xFF).tobytes()


@dataclass
class Sent:
    """What each source has sent of each event."""

    recorded: np.ndarray
    length: int  # of a fragment of software
    patterns: dict[int, Pattern] = field(default_factory=dict)
    # Of a source in software: event with which each of its lives began, in ascending order.
    begun: dict[int, list[int]] = field(default_factory=dict)

    def of_software(self, source: int, event: int) -> bytes:
        first = max((begin for begin in self.begun.get(source, [0]) if begin <= event), default=0)
        pattern = self.patterns.setdefault(source, Pattern(source))
        return pattern.part((event - first) * self.length, self.length)

    def of_gateware(self, share: int, event: int) -> bytes:
        return self.recorded[event % len(self.recorded), share::SHARED].tobytes()


@dataclass
class Stored:
    """The events of a folder."""

    numbers: list[int] = field(default_factory=list)
    # Sources that are missing, of those that are incomplete.
    missing: dict[int, list[int]] = field(default_factory=dict)
    # Event, source and input of each part that is marked as not whole, with its marks.
    marked: dict[tuple[int, int, int], set[str]] = field(default_factory=dict)

    @property
    def complete(self) -> list[int]:
        return [number for number in self.numbers if number not in self.missing]


def stored(folder: Path, sent: Sent, gateware: dict[int, int]) -> Stored:
    """Compares every byte with what was sent. `gateware`: the share of each source that is a verilated board."""
    found = Stored()
    if not list(folder.glob("*.parquet")):
        return found
    for row in pq.read_table(folder).to_pylist():
        event = row["event_number"]
        found.numbers.append(event)
        if not row["complete"]:
            found.missing[event] = row["missing"]
        for at, (source, fragment) in enumerate(zip(row["sources"], row["fragments"], strict=True)):
            if source not in gateware:
                assert fragment == sent.of_software(source, event), f"event {event}, source {source}"
                continue
            expected, offset = sent.of_gateware(gateware[source], event), 0
            table = list(parts(row, at))
            flagged = {given: marks for given, marks, _ in table if marks}
            if not flagged:
                assert fragment == expected, f"event {event}, source {source}"
                continue
            lengths = input_lengths(len(sent.recorded[0, gateware[source] :: SHARED]), sent.recorded.shape[2])
            for given, marks, data in table:
                whole = expected[offset : offset + lengths[given]]
                is_right = data == whole or (marks - {"dropped"} and whole.startswith(data))
                assert is_right, f"event {event}, source {source}, input {given}: {marks}"
                offset += lengths[given]
            found.marked |= {(event, source, given): marks for given, marks in flagged.items()}
    return found


def input_lengths(modules: int, module_bytes: int, inputs: int = 4) -> list[int]:
    """Bytes of an event at each input of a board: its modules in their order, as even as whole words allow."""
    lengths, taken = [0], 0
    for _ in range(modules):
        taken += 1
        lengths[-1] += module_bytes
        if taken >= -(-modules // inputs) and lengths[-1] % 8 == 0:
            lengths.append(0)
            taken = 0
    return [length for length in lengths if length]
