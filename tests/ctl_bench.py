# SPDX-License-Identifier: Apache-2.0
"""`penstock ctl` with 1,000 boards in software on loopback addresses, compared with uHAL's client.

    .venv/bin/python tests/bench.py --part ctl

The boards are one process (`responders`), the command another: on a machine of two cores each has one. Times are those
of the whole command, from start to end. Where the boards take a core ("CPU of the boards in software"), it is they that
limit the rate of samples; the CPU time of a sample is the command's in any case.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ctl import Boards, Ctl, boards
from measuring import BUILD, BUILT, ROOT, row, shell

BOARDS, CAMERA, OF_UHAL = 1000, 265, 100
REGISTERS = 100
SAMPLED_S = 10
UHAL = """
import sys, time, uhal
uhal.disableLogging()
table, names = sys.argv[1], sys.argv[3:]
uris = sys.argv[2].split(",")
boards = [uhal.getDevice(uri, f"ipbusudp-2.0://{uri}:50001", f"file://{table}") for uri in uris]
begin = time.monotonic()
for board in boards:
    values = [board.getNode(name).read() for name in names]
    board.dispatch()
    [int(value) for value in values]
print(time.monotonic() - begin)
"""
READ = ["id", "version", "build", "clock", "map_hash", "local_ip", "link_status", "source.status", "port.link"]


def timed(ctl: Ctl, *words: object) -> float:
    begin = time.monotonic()
    ctl.run(*words)
    return time.monotonic() - begin


def configuration(group: Boards, folder: Path, value: int) -> Path:
    """`REGISTERS` words of each board."""
    keys = [f"replay_block.{n // 16}.word{n % 16} = {value + n}" for n in range(REGISTERS)]
    each = [f'[[board]]\naddress = "{group.address(n)}"' for n in range(group.count)]
    file = folder / "boards.toml"
    file.write_text("\n".join(["[all]", *keys, *each, ""]))
    return file


def cpu_s(pid: int) -> float:
    """CPU time of a process that runs: fields 14 and 15 of proc(5)'s stat, after the name in brackets."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def sampled(ctl: Ctl, group: Boards, folder: Path) -> Iterator[dict]:
    """How often the command samples these boards, and what it takes."""
    before, boards_before = resource.getrusage(resource.RUSAGE_CHILDREN), cpu_s(group.process.pid)
    ctl.run("sample", group.all, "--interval", "1ms", "--time", f"{SAMPLED_S}s", "--out", folder / "sampled")
    after, boards_after = resource.getrusage(resource.RUSAGE_CHILDREN), cpu_s(group.process.pid)
    summary = json.loads((folder / "sampled/summary.json").read_text())
    seconds, taken = summary["seconds"], sum(board["samples"] for board in summary["boards"])
    cpu = sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))
    rate = taken / group.count / seconds
    yield row(f"ctl sample of {CAMERA} boards: samples of a board", rate, "1/s", 990, "higher")
    yield row("the same: CPU time of a sample", 1e6 * cpu / taken, "us", 3.8, "lower")
    yield row("the same: CPU of one core", 100 * cpu / seconds, "%", 100, "lower")
    boards_percent = 100 * (boards_after - boards_before) / seconds
    yield row("the same: CPU of the boards in software", boards_percent, "%", None, "lower")
    yield row("the same: samples missed", 100 * (1 - rate / 1000), "%", None, "lower")


def beside_uhal(ctl: Ctl, group: Boards) -> float:
    """The ratio of uHAL's time for the same registers of the same boards, with tables already loaded."""
    table = ROOT / "build/gen/penstock.xml"
    addresses = ",".join(group.address(n) for n in range(group.count))
    command = [sys.executable, "-c", UHAL, str(table), addresses, *READ]
    theirs = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return theirs / timed(ctl, "get", group.all, *READ, "-J")


def rows() -> Iterator[dict]:
    """Status, configuration, samples, and the registers that uHAL reads, too."""
    shell(f"{BUILD} -p penstock-ipbus --example responders")
    with tempfile.TemporaryDirectory(prefix="penstock-ctl-") as name:
        folder = Path(name)
        ctl = Ctl(BUILT / "penstock", folder)
        with boards(BUILT, BOARDS) as group:
            status_s = min(timed(ctl, "status", group.all, "-J") for _ in range(3))
            apply_s = min(timed(ctl, "apply", configuration(group, folder, 1000 * n)) for n in range(1, 4))
        yield row("ctl status of 1,000 boards", status_s, "s", 2, "lower")
        yield row("ctl apply of 100 registers to each of 1,000 boards", apply_s, "s", 5, "lower")
        with boards(BUILT, CAMERA, "--busy") as group:
            yield from sampled(ctl, group, folder)
        with boards(BUILT, OF_UHAL) as group:
            of_uhal = beside_uhal(ctl, group)
        yield row("uHAL's time for the registers of 100 boards, in that of ctl get", of_uhal, "", None, "higher")
