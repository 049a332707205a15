# SPDX-License-Identifier: Apache-2.0
"""The cost of each block of the 10G front end by itself: a reader can omit blocks that an endpoint does not have.

    python rtl/syn/blocks.py [--only roce_tx] [--saved] [--docs]

Each block is synthesised alone and flat at 64 bit and N_QP = 4, a minute or so each; the sum is near the row of the
whole in synth.py. Rows are saved in build/synth/blocks as soon as they are made; `--saved` uses saved rows, of
any version of the gateware, and makes none. `--docs` puts the table into docs/synthesis.md; rows of blocks that were
not chosen stay as they are there.
"""

import argparse
import json
import os
import sys

import levels
import synth
import yosys

import rtl

QPS = {"N_QP": 4}
# Blocks of penstock_core and the MAC, and what each does.
BLOCKS = [
    ("mac_xgmii", {}, "MAC, link faults"),
    ("eth_port", {}, "pause and PFC both ways, VLAN"),
    ("roce_rx", {}, "ICRC check, receive parser"),
    ("ack_receiver", QPS, "peer, window of acknowledgements"),
    ("roce_tx", QPS, "segmenter, packet store, go-back-N, counters of queue pairs"),
    ("roce_framer", {}, "headers"),
    ("icrc_append", {}, "ICRC"),
    ("qp_table", QPS, "rows of queue pairs"),
    ("registers", QPS, "register block"),
    ("event_counters", {}, "83 counters"),
    ("slow_control", QPS, "ARP, ICMP, UDP, IPbus, connection manager"),
    ("congestion_control", QPS, "DCQCN, QCN, pacers, samples"),
    ("message_input", QPS, "sources (PRBS, counter, replay), rings, destination table"),
    ("latency_histogram", QPS, "histogram of each queue pair"),
    ("transfer_meter", QPS, "meters of each queue pair"),
]
KEPT = synth.KEPT / "blocks"
MARK = "<!-- blocks: made by rtl/syn/blocks.py with --docs -->\n"
COLUMNS = ("lut", "sites", "ff", "bram", "uram", "dsp")


def measure(name: str, params: dict[str, int]) -> dict:
    """The row of one block; kept, and taken from there while its logic and what measures it are the same."""
    found = synth.logic(name, params)
    kept = KEPT / f"{name}_{synth.version(found)}.json"
    if not kept.exists():
        module = synth.netlist(name, params)
        depth = levels.deepest(module)
        costs = {"sites": synth.sites_of(module), **synth.cost(synth.kinds(module))}
        row = {"block": name, **{c: costs[c] for c in COLUMNS}, "max_levels": depth.levels, "rtl": found[:8]}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(row))
    return json.loads(kept.read_text())


def saved(name: str) -> dict | None:
    """The newest kept row of a block, if there is one."""
    files = sorted(KEPT.glob(f"{name}_{'?' * 16}.json"), key=os.path.getmtime)
    return json.loads(files[-1].read_text()) if files else None


def table(rows: list[dict]) -> str:
    """Markdown, with the sum."""
    what = {name: text for name, _, text in BLOCKS}
    lines = [
        "| block | what it does | LUT | sites | FF | BRAM (36k) | URAM | DSP | levels | RTL |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = " | ".join(f"{row[column]:g}" for column in (*COLUMNS, "max_levels"))
        lines.append(f"| `{row['block']}` | {what[row['block']]} | {figures} | {row['rtl']} |")
    sums = " | ".join(f"{sum(row[column] for row in rows):g}" for column in COLUMNS)
    lines.append(f"| **sum** | | {sums} | {max(row['max_levels'] for row in rows):g} | |")
    return "\n".join(lines) + "\n"


def on_page(page: str) -> dict[str, dict]:
    """The rows that the page's table has, by block."""
    rows = {}
    for line in page.partition(MARK)[2].splitlines()[2:]:
        if not line.startswith("| `"):
            break
        name, _, *figures, made_of = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = dict(zip((*COLUMNS, "max_levels"), map(float, figures), strict=True))
        rows[name.strip("`")] = {"block": name.strip("`"), **numbers, "rtl": made_of}
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="blocks with this word in their name")
    parser.add_argument("--saved", action="store_true", help="rows that are kept, of any version; make none")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/synthesis.md")
    options = parser.parse_args()
    rtl.generate()
    chosen = [(name, params) for name, params, _ in BLOCKS if options.only in name]
    try:
        found = [saved(name) if options.saved else measure(name, params) for name, params in chosen]
    except yosys.YosysError as error:
        sys.exit(f"blocks: {error}")
    rows = [row for row in found if row]
    if not rows:
        print(f"blocks: nothing to show for {options.only!r}; there are {', '.join(name for name, *_ in BLOCKS)}")
        return 2
    print(table(rows))
    if options.docs:
        page = synth.DOCS.read_text()
        known = on_page(page) | {row["block"]: row for row in rows}
        shown = [known[name] for name, *_ in BLOCKS if name in known]
        synth.DOCS.write_text(synth.with_table(page, table(shown), MARK))
    return 0


if __name__ == "__main__":
    sys.exit(main())
