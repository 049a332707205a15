# SPDX-License-Identifier: Apache-2.0
"""Rates of answers to READs, and of WRITEs and SENDs that a front end receives: the loads of `tb/read_rate` that READs
outstanding do not limit, and those of `tb/receive_rate`. Of the loads that differ by MTU and queue pairs alone, the one
with the lowest share is a row. And the time from a READ's end to the begin of its answer, of `tb/front_end_read`."""

import json
import os
import re
from collections.abc import Iterable, Iterator

from measuring import ROOT, row, shell

RATE = re.compile(r"rate (\{.*\})")
FIRST_BYTE = re.compile(r"first byte of its answer: (\d+) cycles, (\d+) of the memory")
LINES = {"penstock_xgmii": "10G and 25G", "penstock_100g": "100G"}
SIZES = {1024: "1 kB", 5000: "5 kB", 1 << 16: "64 kB", 1 << 20: "1 MB"}
VERBS = {"WRITE": "WRITEs", "WRITE_IMM": "WRITEs with immediate", "SEND": "SENDs"}


def rows() -> Iterator[dict]:
    """Shares of what the packets' headers leave of the line."""
    os.environ["PENSTOCK_ALL_SIZES"] = "1"
    shell(".venv/bin/python -m pytest -q tb -k read_rate")
    shell(".venv/bin/python -m pytest -q tb -k receive_rate")
    reads = [found for found in logged("read_rate") if found["allowed"] == 1]
    for found in lowest(reads, "us"):
        yield share(found, "READs", f", next request after {found['us']} us")
    for found in lowest(logged("receive_rate"), "verb"):
        yield share(found, f"{VERBS[found['verb']]} received", "")
    shell(".venv/bin/python -m pytest -q tb -k front_end_read")
    yield from first_bytes()


def first_bytes() -> Iterator[dict]:
    """The worst of each top, without the cycles that the memory takes."""
    worst: dict[str, int] = {}
    for log in ROOT.glob("build/tb/front_end_read_*/run.log"):
        text = log.read_text()
        [top] = {top for top in LINES if f"cocotb.{top} " in text}
        cycles = [int(all_of_them) - int(memory) for all_of_them, memory in FIRST_BYTE.findall(text)]
        worst[top] = max([*cycles, worst.get(top, 0)])
    for top in LINES:
        name = f"{LINES[top]}, from a READ's end to the first byte of its answer, without its memory"
        yield row(name, worst[top], "cycles", 40, "lower")


def lowest(loads: Iterable[dict], kind: str) -> list[dict]:
    """By line, size, and what `kind` names."""
    groups: dict[tuple, list[dict]] = {}
    for found in loads:
        groups.setdefault((found["line"], found["size"], found[kind]), []).append(found)
    return [min(group, key=lambda found: found["filled"]) for group in groups.values()]


def logged(bench: str) -> Iterator[dict]:
    """The loads of its last runs, one configuration after the other."""
    for log in sorted(ROOT.glob(f"build/tb/{bench}_*/run.log")):
        yield from map(json.loads, RATE.findall(log.read_text()))


def share(found: dict, what: str, when: str) -> dict:
    """One load as a row."""
    line = found["line"] / 1000
    limit = line * found["size"] / found["wire_bytes"]
    queue_pairs = f"{found['queue_pairs']} QP{'s' if found['queue_pairs'] > 1 else ''}"
    name = (
        f"{line:g}G, {what} of {SIZES[found['size']]}, MTU {found['mtu']}, {queue_pairs}{when}: share of {limit:.3f} "
        "Gb/s possible"
    )
    goodput = found["filled"] * limit
    return row(
        name, round(100 * found["filled"], 3), "%", 99.95, "higher", goodput_gbps=round(goodput, 5),
        limit_gbps=round(limit, 5),
    )  # fmt: skip
