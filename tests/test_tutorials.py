# SPDX-License-Identifier: Apache-2.0
"""The pages docs/tutorial-*.md: their commands, run as printed in one shell, print the lines that the pages show.

Namespaces and the TAP device get names of this process, so that the tests of two checkouts can run at a time.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT_S


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block of a page, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


def workplace(folder: Path) -> Path:
    """A folder that has what the pages use of Penstock's own, by the names that it has there."""
    (folder / ".venv").symlink_to(sys.prefix)
    for name in ("python", "dissector"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def follow(page: str, built: Path, folder: Path, within: list[str], rename: dict[str, str]) -> None:
    """Types a page's commands and saves its files, then looks for each line that the page shows.

    A page names each file that is to be saved in the sentence before it. `within` is a command in front of the shell.
    """
    text = (ROOT / "docs" / page).read_text()
    names = re.findall(r"Save this as `([\w.]+)`", text)
    files = [content for language, content in blocks(page) if language == "toml"]
    for name, content in zip(names, files, strict=True):
        (folder / name).write_text(content)
    script = "set -e\n" + "".join(content for language, content in blocks(page) if language == "sh")
    for old, new in rename.items():
        assert old in script
        script = script.replace(old, new)
    path = f"{built}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*within, "bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    shown = [line for language, content in blocks(page) if language == "text" for line in content.splitlines()]
    assert shown
    for line in shown:
        assert line in printed, f"{page} shows {line!r}, which is not printed: {done}"


@pytest.mark.usefixtures("namespaces")
def test_the_tutorial_of_receiving(built: Path, tmp_path: Path) -> None:
    prefix = f"daq{os.getpid()}-"
    try:
        follow("tutorial-receive.md", built, workplace(tmp_path), [], {"daq-": prefix})
    finally:
        for end in ("server", "boards"):  # gone by the page's own last commands unless it failed
            subprocess.run(["ip", "netns", "del", prefix + end], capture_output=True, check=False)


@pytest.mark.usefixtures("namespaces")
def test_the_tutorial_of_the_gateware(built: Path, tmp_path: Path) -> None:
    namespace = f"gw{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    try:
        follow("tutorial-gateware.md", built, workplace(tmp_path), ["ip", "netns", "exec", namespace], {})
    finally:
        subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
    capture = subprocess.run(
        ["tshark", "-X", f"lua_script:{ROOT}/dissector/penstock.lua", "-r", tmp_path / "board.pcapng"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "OPEN_QP, answer ACK" in capture.stdout
    [(_, bench)] = [block for block in blocks("tutorial-gateware.md") if block[0] == "bash"]
    done = subprocess.run(bench, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0 and " passed" in done.stdout, done


def test_the_tutorial_of_planning(built: Path, tmp_path: Path) -> None:
    follow("tutorial-network.md", built, workplace(tmp_path), [], {})
    assert (tmp_path / "out/report.html").stat().st_size > 0
