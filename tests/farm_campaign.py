# SPDX-License-Identifier: Apache-2.0
"""Incidents of a farm: three servers that share the events of two verilated boards and two in software, kept in step by
`penstock farm`.

Promise checked: each event is stored by its server, every byte as it was sent, or is named as lost and was a server's
that has been in trouble in that run; a run begins after every other run with the event after its end, and ends at one
event for all.
"""

import json
import shutil
import signal
import subprocess
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from bridged import Bridged
from campaign import LIMIT_S, Disk, Sent, span_s, stored
from conftest import DATA
from veth import ended, until

RING = ("--slots", 8, "--slot-size", 16384)
# Machines that are busy elsewhere make boards, heartbeats and servers slow.
PATIENCE = ("--board-patience", "30s", "--heartbeat-patience", "60s", "--start-patience", "100s", "--look", "200ms")
# A receiver that has come late waits at the end for what its predecessor had; it cannot know that.
PATIENCE_MS = 30_000
HOME = "10.77.0.9"  # the coordinator's
VERBS = ("write-imm", "send-imm")  # of each verilated board: a receiver takes either
SOFTWARE, LENGTH = 2, 1500  # boards in software after those, and bytes of their fragments
INTERVAL_NS = 20_000


@dataclass
class Run:
    """One run: where its receivers have written, and which servers have been in trouble."""

    name: str
    folders: dict[int, list[Path]] = field(default_factory=dict)
    troubled: set[int] = field(default_factory=set)


class Farm:
    SERVERS = 3
    ENDS = "stu"

    def __init__(self, network: Bridged, disks: list[Disk], recorded: np.ndarray) -> None:
        self.network, self.disks, self.sent = network, disks, Sent(recorded, LENGTH)
        self.folder = disks[0].folder.parent
        self.table, self.file = self.folder / "servers.toml", self.folder / "farm.toml"
        self.addresses = [f"10.77.0.{server + 1}" for server in range(self.SERVERS)]
        self.boards = [f"10.77.9.{board + 1}" for board in range(len(VERBS) + SOFTWARE)]
        ends = dict(zip(self.ENDS, ([address] for address in self.addresses), strict=True))
        network.join({**ends, "b": [], "c": [], "d": self.boards[len(VERBS) :]}, HOME)
        self.write([1] * self.SERVERS, None)
        self.senders = [*(self.board(at, end) for at, end in enumerate("bc")), self.software()]
        self.runs: list[Run] = []
        self.is_on = False
        self.receivers: dict[int, subprocess.Popen] = {}
        self.coordinator: subprocess.Popen | None = None
        # The event with which the next run begins, where that is known, and one below which it does not.
        self.following: int | None = 0
        self.least = 0

    def write(self, weights: list[int], unused: int | None) -> None:
        """The file of the farm."""
        self.weights, self.unused = weights, unused
        text = f'servers = "servers.toml"\n[[board]]\nip = "{self.boards[0]}"\ncount = {len(self.boards)}\n'
        for server, ip in enumerate(self.addresses):
            text += f'[[server]]\nnumber = {server}\nip = "{ip}"\nmetrics = "{ip}:9100"\n'
            text += f"weight = {weights[server]}\nuse = {str(server != unused).lower()}\n"
        (self.folder / "next.toml").write_text(text)
        (self.folder / "next.toml").rename(self.file)

    # ---- processes ---------------------------------------------------------------------------------------

    def board(self, at: int, end: str) -> subprocess.Popen:
        here = ("--packet", "veth1", "--ip", self.boards[at], "--share", f"{at}/64", "--verb", VERBS[at])
        events = ("--events", 1_000_000, "--by-event", "--data", DATA, "--interval", f"{INTERVAL_NS}ns")
        command = (self.network.binary, "board", *here, *events, *RING, "--ack-timeout", 6, "--retry-cnt", 7, "--json")
        return self.network.start(end, *map(str, command))

    def software(self) -> subprocess.Popen:
        first = len(VERBS)
        here = ("--iface", "veth1", "--ip", self.boards[first], "--first-source", first, "--boards", SOFTWARE)
        # A receiver that has no processor for half a second, on a busy machine, is not dead: 8 x 0.54 s.
        events = ("--by-event", "--rate", 1e9 / INTERVAL_NS, "-l", LENGTH, "--ack-timeout", 17)
        return self.network.start("d", *map(str, (self.network.binary, "send", "--json", *here, *events, *RING)))

    def coordinate(self, *options: str) -> None:
        command = (self.network.binary, "farm", self.file, "--json", *PATIENCE, *options)
        self.coordinator = self.network.start("m", *map(str, command))

    def receive(self, server: int) -> None:
        folders = self.runs[-1].folders.setdefault(server, [])
        folders.append(self.disks[server].folder / f"{self.runs[-1].name}.{len(folders)}")
        ip = self.addresses[server]
        share = ("--servers", self.table, "--server", server, "--metrics", f"{ip}:9100", "--out", folders[-1])
        fixed = (
            "--iface",
            "veth0",
            "--backend",
            "packet",
            "--poll",
            "event",
            "--json",
            "--linger",
            50,
            "--state",
            "none",
        )
        wait = ("--event-timeout", PATIENCE_MS, "--flush", 50)
        command = (self.network.binary, "recv", *self.boards, *fixed, *share, *wait, *RING)
        self.receivers[server] = self.network.start(self.ENDS[server], *map(str, command))

    def metric(self, server: int, name: str) -> float:
        metrics = self.network.metrics(f"{self.addresses[server]}:9100", self.ENDS[server])
        return metrics.get(name, 0)

    def flows(self) -> None:
        """Every server completes events."""
        used = [server for server in self.receivers if server != self.unused]
        before = {server: self.metric(server, "events_complete") for server in used}
        for server, least in before.items():
            until(
                f"events of server {server}",
                lambda s=server, n=least: self.metric(s, "events_complete") > n + 1,
                LIMIT_S,
            )

    def some(self, dice: Random) -> list[int]:
        return dice.sample(range(self.SERVERS), dice.choice([1, 1, 2, 3]))

    def processes(self) -> dict[str, subprocess.Popen]:
        receivers = {f"receiver {server}": process for server, process in self.receivers.items()}
        boards = {f"board {at}": process for at, process in enumerate(self.senders)}
        return {**({"coordinator": self.coordinator, **receivers} if self.is_on else {}), **boards}

    @property
    def run(self) -> Run:
        return self.runs[-1]

    def describe(self) -> str:
        """The tables, and what boards and servers say of themselves."""
        query = (self.network.binary, "ctl", "get", ",".join(self.boards), "destination", "qp", "--patience", "20s")
        boards = self.network.start("m", *map(str, query)) if self.is_on else None
        metrics = [
            f"{self.network.metrics(f'{ip}:9100', end)}" for ip, end in zip(self.addresses, self.ENDS, strict=True)
        ]
        return "\n".join([f"{self.tables()}", *metrics, ended(boards).stdout if boards else ""])

    # ---- incidents ---------------------------------------------------------------------------------------

    def kinds(self) -> list[Callable[[Random], str]]:
        """What can happen now."""
        if not self.is_on:
            return [self.begin]
        return [self.end, self.abandon, self.kill, self.fill, self.suspend, self.cut, self.leave, self.weigh]

    def begin(self, dice: Random) -> str:
        """The run begins with the event after the last run's end."""
        last = self.runs[-1].name if self.runs else None
        self.coordinate("--begin")
        until("the file of servers", lambda: self.tables().get("run") not in (None, last), LIMIT_S)
        self.runs.append(Run(self.tables()["run"]))
        for server in range(self.SERVERS):
            self.receive(server)
        self.is_on = True
        self.flows()
        begin, _ = self.span()
        assert self.following in (None, begin) and begin >= self.least, f"{begin} after {self.following}, {self.least}"
        return f"run {len(self.runs)} at event {begin}"

    def end(self, dice: Random) -> str:
        """At one event for all; every receiver ends by itself."""
        requests = self.network.start("m", str(self.network.binary), "farm", str(self.file), "--end")
        results = {server: ended(process, LIMIT_S) for server, process in self.receivers.items()}
        output = [ended(process, LIMIT_S) for process in (requests, self.coordinator)]
        assert [process.status for process in output] == [0, 0] or self.run.troubled, output
        self.is_on = False
        for server, result in results.items():
            assert "is another server's: refused" not in result.stderr, f"{result.stderr}\n{output[1].stdout}"
            faults = result.json()["faults"]
            assert self.run.troubled or not faults, f"server {server}: {faults}\n{result.stderr}\n{output[1].stdout}"
        reports = [f"server {server}: {result.stderr}" for server, result in results.items()]
        return self.settled("\n".join([output[1].stdout, *reports]))

    def kill(self, dice: Random) -> str:
        """Some servers, the coordinator too or not; they come back together or one after the other."""
        servers, is_alone, is_joint = self.some(dice), dice.random() < 0.7, dice.random() < 0.5
        for server in servers:
            self.receivers[server].kill()
            self.receivers[server].wait()
        self.run.troubled |= set(servers)
        if not is_alone:
            self.coordinator.kill()
            self.coordinator.wait()
        time.sleep(span_s(dice))  # they are away
        for server in servers:
            self.receive(server)
            if not is_joint:
                time.sleep(dice.random())  # the distance of their returns
        if not is_alone:
            self.coordinate()
        self.flows()
        with_whom = "" if is_alone else " and the coordinator"
        return f"{servers}{with_whom}, back {'together' if is_joint else 'one by one'}"

    def leave(self, dice: Random) -> str:
        """The coordinator ends, or is killed, and another one goes on."""
        is_killed = dice.random() < 0.5
        self.coordinator.send_signal(signal.SIGKILL if is_killed else signal.SIGINT)
        self.coordinator.communicate()
        self.coordinate()
        self.flows()
        return "killed" if is_killed else "ended"

    def abandon(self, dice: Random) -> str:
        """Everything is killed; the next run begins behind what was stored."""
        for process in (self.coordinator, *self.receivers.values()):
            process.kill()
            process.communicate()
        self.run.troubled |= set(range(self.SERVERS))
        text = self.settled()
        self.table.rename(self.folder / f"abandoned-{len(self.runs)}.toml")
        self.is_on = False
        return text

    def weigh(self, dice: Random) -> str:
        """Other weights, or a server out of use."""
        weights, unused = [dice.randrange(1, 4) for _ in range(self.SERVERS)], dice.choice([None, 0, 1, 2])
        # What is on its way to a server that is taken out may be lost.
        self.run.troubled |= {unused} - {None}
        self.write(weights, unused)
        self.flows()
        return f"{weights}, without {unused}"

    def fill(self, dice: Random) -> str:
        server = dice.choice([server for server in range(self.SERVERS) if server != self.unused])
        stalls = self.metric(server, "store_stalls")
        self.disks[server].fill()
        self.run.troubled.add(server)
        until("storage that waits", lambda: self.metric(server, "store_stalls") > stalls, LIMIT_S)
        time.sleep(span_s(dice))  # it is full
        self.disks[server].free()
        self.flows()
        return f"the disk of server {server}"

    def suspend(self, dice: Random) -> str:
        servers = self.some(dice)
        for server in servers:
            self.receivers[server].send_signal(signal.SIGSTOP)
        self.run.troubled |= set(servers)
        time.sleep(span_s(dice))  # the suspension itself
        for server in servers:
            self.receivers[server].send_signal(signal.SIGCONT)
        self.flows()
        return f"servers {servers}"

    def cut(self, dice: Random) -> str:
        """Of servers, or of a board or both in software, which all servers miss."""
        servers, is_board = self.some(dice), dice.random() < 0.3
        ends = [dice.choice("bcd")] if is_board else [self.ENDS[server] for server in servers]
        self.run.troubled |= set(range(self.SERVERS) if is_board else servers)
        for end in ends:
            self.network.cut(end)
        time.sleep(span_s(dice))  # the outage itself
        for end in ends:
            self.network.heal(end)
        self.flows()
        return f"a board at {ends[0]}" if is_board else f"servers {servers}"

    # ---- the account -------------------------------------------------------------------------------------

    def tables(self) -> dict:
        with suppress(FileNotFoundError):
            return tomllib.loads(self.table.read_text())
        return {}

    def span(self) -> tuple[int, int | None]:
        """The first event of a run, and the one after its last."""
        found = self.tables().get("change", [])
        begin = next((change["first"] for change in found if change.get("begin")), 0)
        return begin, next((change["first"] for change in found if change.get("end")), None)

    def owner(self, event: int) -> int | None:
        tables = self.tables()
        all_of = [{"first": 0, "live": tables["live"]}, *tables.get("change", [])]
        rows = next(table["live"] for table in reversed(all_of) if table["first"] <= event)
        return rows[event % len(rows)] if rows else None

    def settled(self, reports: str = "") -> str:
        """Every event of the run that has ended; `reports`: those of coordinator and receivers, for a failure."""
        begin, self.following = self.span()
        folders = [folder for of in self.run.folders.values() for folder in of if folder.exists()]
        check = [self.network.binary, "check", "--recover", "--servers", self.table, "--json", *folders]
        result = subprocess.run(check, capture_output=True, text=True, check=False)
        assert result.returncode in (0, 1), result.stderr
        report = json.loads(result.stdout)
        assert not any(report["misplaced"].values()), report["misplaced"]
        lost = {number: of["server"] for of in report["missing_of"] for number in of["numbers"]}
        kept: dict[int, int] = {}
        incomplete: dict[int, list[int]] = {}
        for server, of in self.run.folders.items():
            for folder in of:
                found = stored(folder, self.sent, {0: 0, 1: 1})
                assert not found.marked and not kept.keys() & set(found.numbers), "each event once"
                kept |= dict.fromkeys(found.numbers, server)
                incomplete |= found.missing
                shutil.rmtree(folder, ignore_errors=True)
        stop = max(kept, default=begin - 1) + 1 if self.following is None else self.following
        assert sorted([*kept, *lost]) == list(range(begin, stop)), f"{begin} to {stop}: {lost}"
        self.least = stop
        owners = {event: self.owner(event) for event in (*kept, *lost)}
        assert all(owners[event] == server for event, server in kept.items()), "each at its server"
        in_trouble = {owners[event] for event in (*lost, *incomplete)}
        if not in_trouble <= self.run.troubled:
            lacks = f"lost: {lost}\nincomplete: {incomplete}\n{reports}"
            raise AssertionError(f"{in_trouble} have lost events, {self.run.troubled} were in trouble\n{lacks}")
        lacking = dict(Counter(source for sources in incomplete.values() for source in sources))
        text = f"events {begin} to {stop - 1}, {len(lost)} lost, {len(incomplete)} incomplete"
        text += f" for want of boards {lacking}" if incomplete else ""
        return f"{text}, servers {self.run.troubled or 'none'} were in trouble"

    def ended(self, dice: Random) -> None:
        """The last run, in which nothing happens, is clean."""
        if self.is_on:
            print(f"end: {self.end(dice)}")
        print(f"begin: {self.begin(dice)}; end: {self.end(dice)}")
        for process in self.senders:
            process.send_signal(signal.SIGINT)
            ended(process)
