# SPDX-License-Identifier: Apache-2.0
"""Campaigns of incidents that a seed chooses, with real processes: boards in software and verilated ones that never
stop, receivers, a disk that is small, a network that can be cut.

Promise checked: each event is stored once, every byte as it was sent, or it is lost with a cause that is named: a
receiver that was killed, a board that was killed, a detector input that was reset. A failing campaign is repeated by
the line that it prints. `PENSTOCK_INCIDENTS` is the number of incidents (`make soak`).
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest
from bridged import Bridged
from campaign import LIMIT_S, Course, Disk, Forger, Sent, Stored, disks, span_s, stored
from conftest import DATA
from farm_campaign import Farm
from veth import SERVER_IP, ended, first_board, read_until, until

pytestmark = pytest.mark.usefixtures("namespaces")

METRICS_AT = "127.0.0.1:9100"  # where it is reached, whatever interface is down
# Boards in software, the source of the one that is verilated, and of the one that is killed.
SOFTWARE, GATEWARE, KILLED = 3, 3, 2
LENGTH = 1500
RING = ("--slots", 8, "--slot-size", 16384)
INTERVAL_NS = 20_000
# A machine that is busy elsewhere makes boards slow; nothing here ends by itself for being slow.
PATIENT = ("--event-timeout", 60_000, "--outage", 600, "--bring-up", 600, "--keep-alive", 200)


@pytest.fixture
def bridged(built: Path, tmp_path: Path) -> Iterator[Bridged]:
    network = Bridged(built / "penstock", tmp_path / "state", name=f"camp{os.getpid()}")
    try:
        yield network
    finally:
        network.delete()


@dataclass
class Run:
    """One receiver's."""

    out: Path
    process: subprocess.Popen
    has_killed_boards: bool = False
    # Why it has lost what it had acknowledged and not stored.
    excuse: str | None = None
    gave_up: bool = False
    stored: Stored = field(default_factory=Stored)
    report: dict = field(default_factory=dict)


class Readout:
    """A receiver after the other, of boards that never stop."""

    def __init__(self, network: Bridged, disk: Disk, recorded: np.ndarray) -> None:
        self.network, self.disk, self.sent = network, disk, Sent(recorded, LENGTH)
        self.kept = disk.folder.parent / "kept"
        self.kept.mkdir()
        self.runs: list[Run] = []
        self.dark: set[str] = set()
        self.is_full = False
        self.resets = self.parts_lost = 0
        self.silent: list[socket.socket] = []
        network.make(SOFTWARE, 0)
        self.senders = [self.software(0, KILLED, 0), self.software(KILLED, 1, 0)]
        self.verilated = self.gateware()

    def software(self, first: int, count: int, begin: int) -> subprocess.Popen:
        for source in range(first, first + count):
            self.sent.begun.setdefault(source, []).append(begin)
        rate = ("--rate", 1e9 / INTERVAL_NS, "-l", LENGTH, "--first-event", begin)
        here = ("--iface", "veth1", "--ip", first_board(first), "--first-source", first, "--boards", count)
        return self.network.start("b", *map(str, (self.network.binary, "send", "--json", *here, *rate, *RING)))

    def gateware(self) -> subprocess.Popen:
        here = ("--packet", "veth1", "--ip", first_board(GATEWARE), "--share", f"{GATEWARE}/64", "--json", "--stay")
        events = ("--events", 1_000_000, "--data", DATA, "--interval", f"{INTERVAL_NS}ns", "--control")
        timers = ("--ack-timeout", 6, "--retry-cnt", 7)
        command = (self.network.binary, "board", *here, *events, *timers, *RING)
        return self.network.start("c", *map(str, command), stdin=subprocess.PIPE)

    def describe(self) -> str:
        """What the receiver counts."""
        return f"{self.network.metrics(METRICS_AT)}"

    def processes(self) -> dict[str, subprocess.Popen]:
        senders = {f"software {at}": process for at, process in enumerate(self.senders)}
        return {**({"receiver": self.runs[-1].process} if self.is_on else {}), **senders, "gateware": self.verilated}

    @property
    def is_on(self) -> bool:
        return bool(self.runs) and self.runs[-1].process.poll() is None

    @property
    def moves(self) -> bool:
        return self.is_on and not self.dark and not self.is_full

    def count(self) -> float:
        of = self.network.metrics(METRICS_AT)
        return of.get("events_complete", 0) + of.get("events_incomplete", 0)

    def flows(self, dice: Random) -> None:
        """Events come, unless something keeps them."""
        if self.moves:
            least = self.count() + 1 + int(90 * dice.random() ** 4)
            until(f"{least} events", lambda: self.count() >= least or not self.is_on, LIMIT_S)
            assert self.is_on, ended(self.runs[-1].process)

    # ---- incidents ---------------------------------------------------------------------------------------

    def kinds(self) -> list[Callable[[Random], str]]:
        """What can happen now, as often as it is likely."""
        always = [self.suspend, self.reset]
        match self:
            case Readout(is_on=False):
                return [*always, *[self.start] * 5, self.cut]
            case Readout(moves=False):
                return [*always, *[self.heal] * 4, self.stop, self.kill, self.give_up]
            case _:
                hostile = [self.forge, self.crowd, self.operate]
                return [*always, self.stop, self.kill, self.cut, self.fill, self.kill_board, *hostile]

    def start(self, dice: Random) -> str:
        out = self.disk.folder / f"run-{len(self.runs):03}"
        boards = [first_board(k) for k in range(SOFTWARE + 1)]
        options = ("--ip", SERVER_IP, "--out", out, "--flush", 50, "--metrics", METRICS_AT, *PATIENT, *RING)
        self.repair()
        self.runs.append(Run(out, self.network.recv(*boards, *options)))
        self.flows(dice)
        return f"run {len(self.runs) - 1}"

    def stop(self, dice: Random) -> str:
        """The network or the disk may be well again before or after the signal."""
        run, is_late = self.runs[-1], dice.random() < 0.5
        if not is_late:
            self.repair()
        run.process.send_signal(signal.SIGINT)
        read_until(run.process, "coming to its end")
        self.repair()
        result = ended(run.process, LIMIT_S)
        run.report = result.json()
        faults = run.report["faults"]
        assert run.has_killed_boards or (result.status, faults) == (0, []), f"{faults}\n{result.stderr[-3000:]}"
        self.keep(run)
        return f"run {len(self.runs) - 1}, {len(run.stored.numbers)} events"

    def kill(self, dice: Random) -> str:
        run = self.runs[-1]
        run.excuse = "a receiver that was killed"
        run.process.kill()
        run.process.wait()
        self.recover(run)
        return f"run {len(self.runs) - 1}, {len(run.stored.numbers)} events on the disk"

    def give_up(self, dice: Random) -> str:
        """A second signal while the network is cut or the disk full: what the report calls stored is on the disk."""
        run = self.runs[-1]
        run.excuse, run.gave_up = "a receiver that was told to give up", True
        run.process.send_signal(signal.SIGINT)
        read_until(run.process, "coming to its end")
        run.process.send_signal(signal.SIGINT)
        result = ended(run.process, LIMIT_S)
        faults, counters = result.json()["faults"], result.json()["readout"]["receiver"]
        self.recover(run)
        assert counters["events_stored"] == len(run.stored.numbers), f"{faults}, {len(run.stored.numbers)} events"
        return f"run {len(self.runs) - 1}, {len(run.stored.numbers)} events on the disk: {'; '.join(faults)}"

    def recover(self, run: Run) -> None:
        """The files of a receiver that has not closed them."""
        self.free()
        check = [self.network.binary, "check", "--recover", run.out]
        subprocess.run(check, capture_output=True, check=False)
        self.keep(run)

    def cut(self, dice: Random) -> str:
        ends, how = dice.choice(["b", "c", "s", "bc"]), dice.choice([self.network.cut, self.network.unplug])
        for end in ends:
            how(end)
        self.dark |= set(ends)
        time.sleep(span_s(dice))  # the outage itself
        return f"{how.__name__} {ends}"

    def heal(self, dice: Random) -> str:
        was = [*sorted(self.dark), *(["the disk"] if self.is_full else [])]
        self.repair()
        self.flows(dice)
        return ", ".join(was)

    def repair(self) -> None:
        for end in self.dark:
            self.network.heal(end)
        self.dark = set()
        self.free()

    def fill(self, dice: Random) -> str:
        stalls = self.network.metrics(METRICS_AT)["store_stalls"]
        self.disk.fill()
        self.is_full = True
        until("storage that waits", lambda: self.network.metrics(METRICS_AT)["store_stalls"] > stalls, LIMIT_S)
        return "the disk"

    def free(self) -> None:
        self.disk.free()
        self.is_full = False

    def suspend(self, dice: Random) -> str:
        names = ["receiver", "software", "gateware"]
        at = dice.randrange(3)
        process = [self.runs[-1].process if self.is_on else self.verilated, self.senders[0], self.verilated][at]
        process.send_signal(signal.SIGSTOP)
        time.sleep(span_s(dice))  # the suspension itself
        process.send_signal(signal.SIGCONT)
        self.flows(dice)
        return names[at]

    def reset(self, dice: Random) -> str:
        """Of single clock domains of the verilated board, several times in a row."""
        domains = [dice.choice(["input 0", "input 1", "front-end"]) for _ in range(dice.randrange(1, 4))]
        for domain in domains:
            self.verilated.stdin.write(f"reset {domain}\n")
            self.verilated.stdin.flush()
            reported = read_until(self.verilated, "was reset")
            self.resets += 1
            lost = re.search(r"has lost (\d+) fragments", reported)
            self.parts_lost += int(lost[1]) if lost else 0
        self.flows(dice)
        return ", ".join(domains)

    def kill_board(self, dice: Random) -> str:
        """One in software begins anew with the event that the detector is at."""
        self.senders[1].kill()
        self.senders[1].wait()
        command = [self.network.binary, "ctl", "get", first_board(0), "qp[0].messages_ok", "--json"]
        reported = json.loads(self.network.output("s", *map(str, command)))
        taken = reported["boards"][0]["registers"]["qp[0].messages_ok"]["number"]
        begin = taken + 2 * RING[1] + 1
        self.runs[-1].has_killed_boards = True
        self.senders[1] = self.software(KILLED, 1, begin)
        return f"from event {begin} on"

    def forge(self, dice: Random) -> str:
        """Congestion notifications in the receiver's name: a rate falls to its least for as long as they come."""
        board, forger = first_board(dice.randrange(SOFTWARE + 1)), Forger(self.network)
        try:
            frame = forger.notification(SERVER_IP, board)
            sent = forger.forge(frame, 0.3 + span_s(dice)) if frame else 0
        finally:
            forger.close()
        self.flows(dice)
        return f"{sent} notifications to {board}"

    def crowd(self, dice: Random) -> str:
        """Silent connections to the receiver's metrics; they stay until others take their places."""
        count = dice.randrange(1, 100)
        with self.network.inside("s"):
            self.silent = [socket.create_connection(METRICS_AT.split(":")) for _ in range(count)]
        self.flows(dice)
        return f"{count} connections"

    def operate(self, dice: Random) -> str:
        """Two operators set the verilated board at the same time, as it sends."""
        board, number = first_board(GATEWARE), dice.getrandbits(16)
        fields = {"scratch": number, "cc[3].control.g_shift": 1 + number % 15}
        command = (self.network.binary, "ctl", "set", board, "--patience", "60s", "--journal", "/dev/null")
        both = [self.network.start("s", *map(str, command), f"{name}={value}") for name, value in fields.items()]
        for operator in both:
            result = ended(operator, LIMIT_S)
            assert result.status == 0, result
        command = (self.network.binary, "ctl", "get", board, *fields, "--patience", "60s", "--json")
        reported = json.loads(self.network.output("s", *map(str, command)))
        got = {name: value["number"] for name, value in reported["boards"][0]["registers"].items()}
        assert got == fields, got
        self.flows(dice)
        return f"{fields}"

    # ---- the account -------------------------------------------------------------------------------------

    def keep(self, run: Run) -> None:
        """Every byte that was stored is right; the small disk has room for the next run."""
        run.stored = stored(run.out, self.sent, {GATEWARE: GATEWARE})
        run.out = Path(shutil.move(run.out, self.kept / run.out.name)) if run.out.exists() else run.out

    def settled(self) -> None:
        """Each event is in one run, or its cause is known, and `penstock check` names it."""
        following, marked, lost, causes = 0, 0, [], set()
        for number, run in enumerate(self.runs):
            numbers = run.stored.numbers
            if numbers:
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"run {number}"
                gap = range(following, numbers[0])
                causes |= {"a board that was killed"} if numbers[0] in self.sent.begun[KILLED] else set()
                assert numbers[0] >= following and (not gap or causes), f"events {gap} before run {number}"
                if gap:
                    print(f"events {gap} before run {number} are lost: {', '.join(sorted(causes))}")
                lost += gap
                following, causes = numbers[-1] + 1, set()
            causes |= {run.excuse} if run.excuse else set()
            lacking = {source for sources in run.stored.missing.values() for source in sources}
            assert run.gave_up or lacking <= ({KILLED} if run.has_killed_boards else set()), f"run {number}: {lacking}"
            assert all(source == GATEWARE for _, source, _ in run.stored.marked)
            marked += sum(marks != {"dropped"} for marks in run.stored.marked.values())
        incomplete = sum(len(run.stored.missing) for run in self.runs)
        print(f"{following} events, {len(lost)} lost, {incomplete} incomplete")
        print(f"{marked} parts cut or missing, {self.parts_lost} lost by digitisers in {self.resets} resets")
        # An event whose samples had left the digitiser may still have been on its way through the input.
        assert marked <= self.parts_lost + self.resets
        check = [self.network.binary, "check", "--json", *(run.out for run in self.runs if run.stored.numbers)]
        reported = json.loads(subprocess.run(check, capture_output=True, check=False).stdout)
        found = sum(file["events_incomplete"] for file in reported["files"])
        assert (reported["events_missing"], found) == (len(lost), incomplete), reported

    def ended(self, dice: Random) -> None:
        self.repair()
        if not self.is_on:
            self.start(dice)
        self.stop(dice)
        self.settled()
        for process in (*self.senders, self.verilated):
            process.send_signal(signal.SIGINT)
            ended(process)


def test_each_event_is_stored_once_or_lost_with_a_cause_whatever_happens_to_one_server(bridged, recorded, tmp_path):
    with disks([tmp_path / "disk"]) as [disk]:
        readout = Readout(bridged, disk, recorded)
        Course("one_server", 14).run(readout)


def test_each_event_is_in_one_place_or_lost_with_a_server_in_trouble_whatever_happens_to_a_farm(
    bridged, recorded, tmp_path
):
    with disks([tmp_path / f"disk{server}" for server in range(Farm.SERVERS)]) as small:
        farm = Farm(bridged, small, recorded)
        Course("farm", 6).run(farm)
