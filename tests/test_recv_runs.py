# SPDX-License-Identifier: Apache-2.0
"""Beginnings, ends and outages of runs of `penstock recv`, with software boards that never stop.

Promise checked: a run begins and ends between two events on all boards; what a board still holds is lost neither
between runs nor in an outage. The seed of a random test is printed. `PENSTOCK_SEED` sets it, `PENSTOCK_RUNS` the number
of starts and stops, `PENSTOCK_CUTS` that of cuts of up to 30 s (`make soak`).
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bridged import Bridged, stored
from campaign import setting
from veth import METRICS, SERVER_IP, ended, first_board, read_until, until

pytestmark = pytest.mark.usefixtures("namespaces")
WITH_METRICS = ("--metrics", METRICS)
SLOTS = 64  # of a board, by default


SEED = setting("SEED", 1)


@pytest.fixture
def dice() -> random.Random:
    print(f"PENSTOCK_SEED={SEED}")
    return random.Random(SEED)


@pytest.fixture
def bridged(built: Path, tmp_path: Path) -> Iterator[Bridged]:
    network = Bridged(built / "penstock", tmp_path / "state", name=f"brdg{os.getpid()}")
    try:
        yield network
    finally:
        network.delete()


def boards(count: int) -> list[str]:
    return [first_board(k) for k in range(count)]


def good(process, out: Path) -> tuple[list[int], dict]:
    """Ends well with complete events alone, and nothing between runs: the numbers of its events, and its report."""
    result = ended(process)
    report = result.json()
    details = json.dumps([report["faults"], report["readout"]["builder"], report["boards"]], indent=1)
    assert result.status == 0, f"{details}\n{result.stderr}"
    numbers, incomplete = stored(out)
    assert not incomplete and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return numbers, report


# Options of the boards and of the receiver, and the boards' shares of the server's line.
CASES = {
    "rings": (("--rate", 400), (), None),
    "pool": (("--rate", 400, "--send-verb"), ("--srq", 64), None),
    "slowly": (("--rate", 25), (), None),
    "as fast as they can": ((), (), None),
    "read": (("--rate", 400, "--pull"), ("--pull",), None),
    "read slowly": (("--rate", 25, "--pull"), ("--pull",), None),
    "read as fast as they can": (("--pull",), ("--pull",), None),
    "with weights": ((), ("--line", "200Mbps"), (1, 1, 6, 1, 1, 1, 2, 1)),
    "pool with weights": (("--send-verb",), ("--srq", 64, "--line", "200Mbps"), (1, 1, 6, 1, 1, 1, 2, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_runs_follow_one_another_without_a_gap_while_boards_never_stop(network, dice, tmp_path, case):
    """Each run ends by Ctrl-C at any moment, by its time, or by its number of events."""
    of_boards, of_receiver, weights = CASES[case]
    file = tmp_path / "boards.toml"
    entries = [
        f'[[board]]\nip = "{ip}"\nweight = {weight}\n' for ip, weight in zip(boards(8), weights or [1] * 8, strict=True)
    ]
    file.write_text("".join(entries))
    sender = network.send("--boards", 8, "-l", 8000, *of_boards)
    following, runs = 0, setting("RUNS", 6 if case in ("rings", "pool", "read") else 3)
    for run in range(runs):
        out = tmp_path / str(run)
        end = dice.choice(["--seconds", "--events", "Ctrl-C"])
        limit = {"--seconds": (dice.uniform(0.3, 0.6),), "--events": (dice.randrange(1, 150),)}.get(end)
        if "slowly" in case and end == "--events":
            limit = (dice.randrange(1, 30),)
        # At its end a run waits for boards whose last ACK may be lost; here none is.
        options = (*((end, *limit) if limit else ()), *of_receiver, "--out", out, *WITH_METRICS)
        receiver = network.recv("--file", file, *options)
        if end == "Ctrl-C":
            network.counted(dice.randrange(1, 30 if "slowly" in case else 100), "events_complete")
            receiver.send_signal(signal.SIGINT)
        if end == "--seconds":  # a busy machine may not have brought all boards up in that time
            until("end", lambda process=receiver: process.poll() is not None)
            if not list(out.glob("*.parquet")):
                continue
        numbers, report = good(receiver, out)
        builder = report["readout"]["builder"]
        assert (builder["before_begin"], builder["after_end"]) == (0, 0), "no event is between two runs"
        assert numbers[0] == following, f"run {run}, ended by {end}"
        assert end != "--events" or len(numbers) == limit[0]
        following = numbers[-1] + 1
        assert report["boards"][0]["lives"] == 1
        assert weights is None or report["shares"], "boards have been told their shares"
    sender.send_signal(signal.SIGINT)
    assert ended(sender).status == 0


@pytest.mark.parametrize("bring_up", ["0.2", "60"])
def test_a_run_begins_with_the_first_event_that_boards_have_that_come_up_later_and_apart(bridged, tmp_path, bring_up):
    """The receiver first, then boards from event 0 on, then boards whose first event is a later one."""
    bridged.make(3, 3)
    out = tmp_path / "run"
    receiver = bridged.recv(*boards(6), "--bring-up", bring_up, "--out", out, *WITH_METRICS)
    if bring_up == "0.2":
        read_until(receiver, "0 of 6 boards are up")
    first = bridged.boards("b", 3, "-l", 1000, "--rate", 200)
    bridged.counted(3, "boards_up")
    second = bridged.boards("c", 3, "-l", 1000, "--rate", 200, "--first-event", 25)
    bridged.counted(50, "events_complete")
    receiver.send_signal(signal.SIGINT)
    numbers, report = good(receiver, out)
    builder = report["readout"]["builder"]
    assert numbers[0] == 25 and builder["before_begin"] == 3 * 25, builder
    for sender in (first, second):
        sender.send_signal(signal.SIGINT)
        assert ended(sender).status == 0


def outage(bridged, ports: str, seconds: float) -> None:
    """Cuts ports of the bridge for so long, once all boards send and events come.

    Complete events may be made of what came before the last outage. A board whose slots have not been used
    several times since may still wait for an acknowledgement, and then has one long outage instead of two.
    """
    metrics = bridged.metrics()
    for name in [name for name in metrics if name.startswith("board_messages{")]:
        until(f"messages of {name}", lambda name=name: bridged.metrics()[name] > metrics[name] + 3 * SLOTS)
    taken = bridged.metrics().get("events_complete", 0)
    bridged.counted(taken + 100, "events_complete")
    for port in ports:
        bridged.cut(port)
    time.sleep(seconds)  # the outage itself
    for port in ports:
        bridged.heal(port)


@pytest.mark.parametrize("ports", ["b", "s", "bc"])
def test_an_outage_costs_no_event(bridged, dice, tmp_path, ports):
    """A bridge's port is down for longer than queue pairs live: that of some boards, of all, of the server."""
    bridged.make(2, 2)
    out = tmp_path / "run"
    senders = [bridged.boards(end, 2, "-l", 2000, "--rate", 300) for end in "bc"]
    receiver = bridged.recv(*boards(4), "--out", out, *WITH_METRICS)
    for outage_s in (0.4, 1.5, *(dice.uniform(0, 29) for _ in range(setting("CUTS", 0)))):
        outage(bridged, ports, outage_s)
    taken = bridged.metrics()["events_complete"]
    bridged.counted(taken + 100, "events_complete")
    receiver.send_signal(signal.SIGINT)
    numbers, report = good(receiver, out)
    assert numbers[0] == 0 and max(board["lives"] for board in report["boards"]) > 1, "queue pairs have failed"
    for sender in senders:
        sender.send_signal(signal.SIGINT)
        assert ended(sender).status == 0


@pytest.mark.parametrize(("stack", "ports"), [("emulator", "b"), ("emulator", "s"), ("sockets", "s")])
def test_an_outage_over_tcp_costs_no_event(bridged, dice, tmp_path, stack, ports):
    """What the kernel's TCP has sent in vain it sends again at intervals that double; here that is after `--outage`."""
    addresses = 2 if stack == "sockets" else 0  # the emulator's addresses are not the kernel's
    bridged.make(addresses, addresses)
    bridged.pin_server_mac()
    bridged.second, out = 2, tmp_path / "run"
    cuts = [dice.uniform(0, 29) for _ in range(setting("CUTS", 0))]
    waits = ("--outage", 10) if not cuts else ()
    tcp = ("--backend", "tcp", "--json", "--linger", 50, "--out", out, *WITH_METRICS, *waits, *boards(4))
    receiver = bridged.start("s", *map(str, (bridged.binary, "recv", *tcp)))
    stream = ("--protocol", "tcp", "--stack", stack, "--connect", SERVER_IP, "-l", 2000, "--rate", 300)
    senders = [bridged.boards(end, 2, *stream) for end in "bc"]
    for outage_s in cuts or [6.5]:
        outage(bridged, ports, outage_s)
    taken = bridged.metrics()["events_complete"]
    bridged.counted(taken + 200, "events_complete")
    receiver.send_signal(signal.SIGINT)
    numbers, report = good(receiver, out)
    assert numbers[0] == 0 and report["readout"]["builder"]["events_incomplete"] == 0
    for sender in senders:
        sender.send_signal(signal.SIGINT)
        ended(sender)
