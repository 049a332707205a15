# SPDX-License-Identifier: Apache-2.0
"""Rates of answers to READs at 25 and 100 Gb/s: the loads of `tb/read_rate` that READs outstanding do not limit."""

import json
import os
import re
from collections.abc import Iterator

from measuring import ROOT, row, shell

RATE = re.compile(r"rate (\{.*\})")
SIZES = {1024: "1 kB", 5000: "5 kB", 1 << 16: "64 kB", 1 << 20: "1 MB"}


def rows() -> Iterator[dict]:
    """Shares of what the packets' headers leave of the line."""
    os.environ["PENSTOCK_ALL_SIZES"] = "1"
    shell(".venv/bin/python -m pytest -q tb -k read_rate")
    for log in sorted(ROOT.glob("build/tb/read_rate_*/run.log")):
        for found in map(json.loads, RATE.findall(log.read_text())):
            if found["allowed"] == 1:
                yield share(found)


def share(found: dict) -> dict:
    """One load as a row."""
    line = found["line"] / 1000
    limit = line * found["size"] / found["wire_bytes"]
    queue_pairs = f"{found['queue_pairs']} QP{'s' if found['queue_pairs'] > 1 else ''}"
    name = (
        f"{line:g}G, READs of {SIZES[found['size']]}, MTU {found['mtu']}, {queue_pairs}, next request after "
        f"{found['us']} us: share of {limit:.3f} Gb/s possible"
    )
    goodput = found["filled"] * limit
    return row(
        name, round(100 * found["filled"], 3), "%", 99.95, "higher", goodput_gbps=round(goodput, 5),
        limit_gbps=round(limit, 5),
    )  # fmt: skip
