# SPDX-License-Identifier: Apache-2.0
"""A running Soft-RoCE machine: boots or is restored, and runs commands; its Ethernet is a Unix datagram socket.

Promise: ready, or an error that says which step last worked; gone when closed, or with the process that made it.
Source: ../../docs/softroce.md (options, protocol of the serial line, pitfalls).
"""

import itertools
import json
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qemu
from kernel import ImageError, Kernel

BOOT_S = 180  # a cold boot takes 3 to 5 on an idle host, 30 on one with ten times as much to do as it can
RESEND_S = 2.0
ANSWER_S = 120.0  # a command in the machine takes seconds, on a host with much else to do ten times as many


class MachineError(Exception):
    """A command in the machine failed, or the machine is gone."""


class NotInTime(MachineError, TimeoutError):
    """A command in the machine does not begin or end in time."""


@dataclass(frozen=True)
class Result:
    """A command's exit status and what it printed, both streams together."""

    status: int
    output: str


@dataclass(frozen=True)
class Image:
    """What a machine is made of; `snapshot` need not be there."""

    kernel: Kernel
    initrd: Path
    snapshot: Path


class Machine:
    """One machine in a folder of its own under /tmp."""

    def __init__(self, image: Image, *, cold: bool = False) -> None:
        self._image = image
        self._ids = itertools.count(1)
        self.folder = Path(tempfile.mkdtemp(prefix="softroce-"))
        restored = image.snapshot.exists() and not cold
        started = time.monotonic()
        self._deadline = started + BOOT_S
        self._process = qemu.start(self.folder, image.kernel, image.initrd, image.snapshot if restored else None)
        try:
            self._monitor = qemu.Monitor(qemu.connect(self.folder / "qmp.sock", self._process, self._deadline))
            self._serial = qemu.connect(self.folder / "cmd.sock", self._process, self._deadline)
            self._buffer = b""
            if restored:
                self._monitor.resume(self._deadline)
                self._serial.sendall(b"\n")  # the first byte is lost
                self.run("true", timeout_s=BOOT_S)
            else:
                self._read_until(b"@READY\n", self._deadline)
        except (ImageError, MachineError) as error:
            last = self.last_step()
            self.close()
            raise MachineError(
                f"the Soft-RoCE machine does not come up; last step that worked: {last}\n{error}"
            ) from error
        self.ready_s = time.monotonic() - started

    def ethernet(self) -> tuple[str, str]:
        """The sockets of its Ethernet for one process to join: the one to bind, and the one that takes frames for it.

        The first is free: one that whoever joined before has left is removed.
        """
        host = self.folder / "host.sock"
        host.unlink(missing_ok=True)
        return str(host), str(self.folder / "vm.sock")

    def last_step(self) -> str:
        """The last step that the machine's first process has named on the console."""
        console = self.folder / "console.log"
        lines = console.read_text(errors="replace").splitlines() if console.exists() else []
        steps = [line for line in lines if line.startswith("softroce: ")]
        return (
            steps[-1].removeprefix("softroce: ") if steps else f"QEMU started ({' '.join(lines[-3:]) or 'no output'})"
        )

    def run(self, command: str, timeout_s: float = ANSWER_S) -> Result:
        """Runs one line of shell in the machine and waits for it.

        Raises MachineError if it does not end in time; what it has printed so far is in the message.
        """
        number = self._begin(command, timeout_s)
        end = f"\n@END {number} ".encode()
        output = self._read_until(end, time.monotonic() + timeout_s, command)
        status = self._read_until(b"\n", time.monotonic() + timeout_s, command)
        return Result(int(status), output.decode(errors="replace"))

    def lines(self, command: str, timeout_s: float = ANSWER_S) -> Iterator[str]:
        """The lines of a command's output as they come, each within `timeout_s`. Take all: it ends with the command.

        Raises MachineError if the command fails.
        """
        self._begin(command, timeout_s)
        tail = ""
        while not (line := self._read_until(b"\n", time.monotonic() + timeout_s, command)).startswith(b"@END "):
            tail = line.decode(errors="replace")
            yield tail
        if not line.endswith(b" 0"):
            raise MachineError(f"`{command}` ended with {line.split()[-1].decode()} in the machine:\n{tail}")

    def check(self, command: str, timeout_s: float = ANSWER_S) -> str:
        """The output of a command that must succeed."""
        result = self.run(command, timeout_s)
        if result.status:
            raise MachineError(f"`{command}` ended with {result.status} in the machine:\n{result.output}")
        return result.output

    def start(self, name: str, command: str) -> None:
        """Starts a command in the background, under a name."""
        self.check(f"job start {name} {command}")

    def wait(self, name: str, timeout_s: float = ANSWER_S) -> Result:
        """Waits for a background command; its output is what it wrote to its standard output."""
        status = self.run(f"job wait {name} {int(timeout_s)}", timeout_s + 10).status
        output = self.check(f"job out {name}")
        if status == 124:
            errors = self.run(f"job err {name}").output
            raise MachineError(
                f"{name} still runs after {timeout_s} s in the machine:\n{output[-2000:]}\n{errors[-2000:]}"
            )
        return Result(status, output)

    def json(self, command: str) -> Any:
        """The JSON document that a command prints."""
        return json.loads(self.check(command))

    def save(self) -> None:
        """Writes the snapshot from which the next machine is restored. This machine ends."""
        part = self._image.snapshot.with_suffix(".part")
        self._monitor.migrate(part, time.monotonic() + BOOT_S)
        self.close()
        part.rename(self._image.snapshot)

    def close(self) -> None:
        """Ends the machine and removes its folder. May be called twice."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, command: str, timeout_s: float) -> int:
        """Has the machine begin a command; its number. The serial line may lose bytes: sent again until it begins."""
        command = command.strip()
        if "\n" in command or not command.isascii():
            raise ValueError(f"a command is one line of ASCII, not {command!r}")
        number, deadline = next(self._ids), time.monotonic() + timeout_s
        while True:
            self._serial.sendall(f"\nRUN {number} {len(command)} {command}\n".encode())
            try:
                soon = min(deadline, time.monotonic() + RESEND_S)
                self._read_until(f"@BEGIN {number}\n".encode(), soon, command)
                return number
            except NotInTime:
                if time.monotonic() > deadline:
                    raise

    def _read_until(self, mark: bytes, deadline: float, doing: str = "boot") -> bytes:
        """What the serial line says up to a mark, which is taken too."""
        searched = 0
        while (at := self._buffer.find(mark, searched)) < 0:
            searched = max(0, len(self._buffer) - len(mark))
            self._serial.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._serial.recv(1 << 16)
            except TimeoutError:
                tail = self._buffer[-2000:].decode(errors="replace")
                raise NotInTime(f"`{doing}` does not end in the machine; it has printed:\n{tail}") from None
            if not data:
                raise MachineError(f"the machine is gone during `{doing}`; its last step: {self.last_step()}")
            self._buffer += data
        taken, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        return taken


def frames(machine: Machine) -> socket.socket:
    """The host's end of the machine's Ethernet: one datagram a frame, without FCS."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    local, remote = machine.ethernet()
    end.bind(local)
    end.connect(remote)
    return end
