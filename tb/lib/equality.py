# SPDX-License-Identifier: Apache-2.0
"""Compares a verilated module with its model, bit for bit, at millions of events per minute: no cocotb, over a pipe.

The model, an example of a crate, writes a random history; `steps.cpp` in the bench's folder drives the harness with it
and ends at the first difference.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lib import rtl
from lib.models import made, settings, tools
from lib.rust_model import model
from lib.toolchain import REPO, verilator_root

CXX_FLAGS = "-O2 -fno-semantic-interposition"


@dataclass(frozen=True)
class Equality:
    """What is compared with what."""

    folder: Path  # of `steps.cpp` and the harness
    harness: str  # the top module, and its file
    example: str

    def run(self, arguments: Iterable[str | int], replay: str) -> str:
        """Compares; returns what was compared. Raises AssertionError at the first difference, with how to replay it."""
        history = subprocess.Popen(
            [model(self.example), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False
        )
        started = time.monotonic()
        gateware = subprocess.run([self._gateware()], stdin=history.stdout, capture_output=True, text=True)
        history.stdout.close()
        reported = history.stderr.read().decode().strip()
        history.wait()
        replay = f"replay with: python {self.folder.relative_to(REPO)}/equality.py {replay}"
        assert gateware.returncode == 0, f"gateware and model differ; {replay}\n{gateware.stdout}"
        assert history.returncode == 0, f"the history is not complete: {reported}; {replay}"
        return f"{reported}; {gateware.stdout.strip()} in {time.monotonic() - started:.1f} s"

    def _gateware(self) -> Path:
        """The program of the verilated harness."""
        rtl.generate()
        steps = self.folder / "steps.cpp"
        files = rtl.sources(self.harness, [self.folder / f"{self.harness}.sv"])
        command = ["--cc", "--exe", "--build", "-O3", "--no-timing", "-Wno-fatal"]
        command += ["--x-assign", "fast", "--x-initial", "fast", "-CFLAGS", CXX_FLAGS]
        parts = [tools(), *command, settings(files), steps, *files]
        made_in = made(self.folder.name, parts, lambda folder: self._build(folder, command, steps, files))
        return made_in / "steps"

    def _build(self, folder: Path, command: list[str], steps: Path, files: list[Path]) -> None:
        root = verilator_root()
        (folder / "settings.vlt").write_text(settings(files))
        words = [root / "bin" / "verilator_bin", *command, "-Mdir", folder, "-o", "steps", folder / "settings.vlt"]
        words += [*rtl.include_options(), *rtl.compiled(files), steps, "--top-module", self.harness]
        environment = {**os.environ, "VERILATOR_ROOT": str(root)}
        result = subprocess.run(words, env=environment, capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"the harness does not build:\n{result.stdout[-4000:]}{result.stderr[-4000:]}")


def in_chunks(run: Callable[[int, int], str], seed: int, events: int, chunk: int) -> int:
    """Calls `run` with a seed and a number of events until all have been compared; returns the exit status."""
    for part in range(-(-events // chunk)):
        try:
            print(run(seed + part, min(chunk, events - part * chunk)), flush=True)
        except AssertionError as difference:
            print(difference, file=sys.stderr)
            return 1
    return 0
