# SPDX-License-Identifier: Apache-2.0
"""The live view of `penstock recv`, seen through a pseudo-terminal.

Promise checked: it is drawn only on a terminal, fits any size, even while the size changes, and restores the terminal.
"""

import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import threading
from contextlib import contextmanager

from veth import LIMIT_S, ended, first_board, until

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
CONTROLS = re.compile(r"\x1b\[[0-9;]*[mK]|\r")


class Terminal:
    """A pseudo-terminal as a process's standard error; what it has been sent."""

    def __init__(self, columns: int, rows: int) -> None:
        self.ours, self.theirs = os.openpty()
        self.seen = b""
        self.resize(columns, rows)
        threading.Thread(target=self.read, daemon=True).start()

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> None:
        try:
            while data := os.read(self.ours, 65536):
                self.seen += data
        except OSError:
            pass  # the last process that had it is gone

    def wait_for(self, what: str, since: int = 0) -> None:
        until(f"{what!r} on the screen", lambda: what.encode() in self.seen[since:])

    def pages(self, since: int = 0) -> list[list[str]]:
        """The pages that were drawn whole, as lines."""
        whole = self.seen[since:].decode(errors="replace").split("\x1b[H")[1:-1]
        return [CONTROLS.sub("", page.split("\x1b[J")[0]).split("\n") for page in whole]

    def pages_since(self, since: int) -> list[list[str]]:
        """The same, two of them or more, however long a loaded machine takes."""
        until("two pages", lambda: len(self.pages(since)) >= 2)
        return self.pages(since)


@contextmanager
def receiver(network, terminal: Terminal, *options: object, term: str = "xterm-256color"):
    fixed = ["ip", "netns", "exec", f"{network.name}-s", network.binary, "recv", "--iface", "veth0", "--state", "none"]
    env = {**os.environ, "TERM": term}
    command = list(map(str, (*fixed, *options)))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal.theirs, text=True, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_it_is_drawn_in_any_size_and_gives_the_terminal_back(network):
    terminal = Terminal(100, 30)
    sender = network.send("--boards", 2, "-l", 3000, "--rate", 200, "--ack-timeout", 16)
    boards = (first_board(0), first_board(1), "10.77.5.5")
    with receiver(network, terminal, *boards, "--bring-up", 600) as process:
        terminal.wait_for("boards 2 of 3 up")
        terminal.wait_for("OPEN_QP")
        for columns, rows in [(100, 30), (7, 3), (200, 60)]:
            terminal.resize(columns, rows)
            terminal.pages_since(len(terminal.seen))  # one that was begun before is not measured
            pages = terminal.pages_since(len(terminal.seen))
            for page in pages:
                assert len(page) <= rows and max(map(len, page)) <= columns, (columns, rows, page)
        text = "\n".join(pages[-1])
        assert (
            re.search(r"events \d+ complete", text) and re.search(r"RNR \d+", text) and f"{first_board(1)} " in text
        ), text
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 1, "one board never came up"
    assert terminal.seen.count(ENTER) == terminal.seen.count(LEAVE) == 1
    begun = terminal.seen.index(ENTER)
    assert b"\x1b" not in terminal.seen[:begun] and terminal.seen.index(LEAVE) > begun
    after = terminal.seen[terminal.seen.index(LEAVE) :].decode()
    assert "interrupted: coming to its end" in after and "not up: 10.77.5.5" not in after.split("interrupted")[0]
    assert "BW average[Gb/sec]" in stdout and "\x1b" not in stdout
    sender.send_signal(signal.SIGINT)
    assert ended(sender).status == 0


def test_a_second_interrupt_gives_it_back_too_and_json_and_dumb_terminals_never_take_it(network):
    terminal = Terminal(80, 24)
    with receiver(network, terminal, "10.77.5.5") as process:
        terminal.wait_for("boards 0 of 1 up")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=LIMIT_S)
    assert LEAVE in terminal.seen
    for options, name in ((("--json",), "xterm"), ((), "dumb")):
        terminal = Terminal(80, 24)
        with receiver(network, terminal, "10.77.5.5", "--seconds", 0.5, *options, term=name) as process:
            process.wait(timeout=LIMIT_S)
        assert ENTER not in terminal.seen and b"\x1b[H" not in terminal.seen, terminal.seen
