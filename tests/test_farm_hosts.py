# SPDX-License-Identifier: Apache-2.0
"""Two `penstock farm` of two hosts, each with a copy of the file of servers, and boards that are registers alone.

Promise checked: whichever was there first, the second one is refused and names the first; with `--take-over` it has the
boards and the first one ends, whether that lives or was killed; the one that was taken over is refused in its turn.
"""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from ctl import Boards, Ctl
from veth import Result, ended, until

OWNERS = {"here": 5, "there": 6}


@pytest.fixture
def boards(built):
    boards = Boards(built, 2)
    yield boards
    boards.close()


@pytest.fixture
def running():
    """Coordinators, which end with the test."""
    processes: list[subprocess.Popen] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("first", "second"), [("here", "there"), ("there", "here")])
def test_of_coordinators_on_two_hosts_the_second_is_refused_or_takes_all_boards_over(
    built, boards, running, tmp_path, first, second
):
    ctl = Ctl(built / "penstock", tmp_path / "journal")
    for host in OWNERS:
        (tmp_path / host).mkdir()
        text = f'servers = "servers.toml"\n[[board]]\nip = "{boards.address(0)}"\ncount = 2\n'
        (tmp_path / host / "farm.toml").write_text(f'{text}[[server]]\nnumber = 0\nip = "10.0.1.1"\n')

    def farm(host: str, *options: str) -> subprocess.Popen:
        command = [
            built / "penstock",
            "farm",
            tmp_path / host / "farm.toml",
            "--json",
            "--owner",
            OWNERS[host],
            *options,
        ]
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return process

    def owned(host: str) -> None:
        """Both boards have this host's coordinator as their owner."""

        def owners() -> set[int]:
            found = ctl.run("get", boards.all, "destination.owner", "--json").json["boards"]
            return {board["registers"]["destination.owner"]["number"] for board in found}

        until(f"boards of {host}", lambda: owners() == {OWNERS[host]})

    def copied(source: str, to: str) -> None:
        """As the page says: the second coordinator has a copy of the file of servers."""
        shutil.copy(table(source), table(to))

    def table(host: str) -> Path:
        return tmp_path / host / "servers.toml"

    def taken(result: Result, host: str) -> None:
        notices = [json.loads(line) for line in result.stdout.splitlines()]
        faults = {(notice["what"], notice["owner"]) for notice in notices if notice["is_fault"]}
        assert (result.status, faults) == (1, {("taken", OWNERS[host])}), result
        assert "--take-over" in result.stdout

    one = farm(first, "--begin")
    owned(first)
    copied(first, second)
    taken(ended(farm(second)), first)
    assert one.poll() is None
    # The first one lives, and ends when it is taken over; its successor is refused.
    two = farm(second, "--take-over")
    taken(ended(one), second)
    owned(second)
    taken(ended(farm(first)), second)
    # Killed, it has the boards still.
    two.kill()
    two.communicate()
    taken(ended(farm(first)), second)
    one = farm(first, "--take-over")
    owned(first)
    # Stopped, it gives them back, and nobody needs an option.
    one.send_signal(signal.SIGINT)
    assert ended(one).status == 0
    two = farm(second)
    owned(second)
    two.send_signal(signal.SIGINT)
    assert ended(two).status == 0
