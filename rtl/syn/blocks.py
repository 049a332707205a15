# SPDX-License-Identifier: Apache-2.0
"""The cost of each block of the 10G front end by itself: a reader can omit blocks that an endpoint does not have.

    python rtl/syn/blocks.py [--only roce_tx] [--saved] [--docs]

Each block is synthesised alone and flat at 64 bit and N_QP = 4, a minute or so each; the sum is near the row of the
whole in synth.py. A second table has the modules of the path of events, a third the transmit side of one queue pair
with and without retransmission. Rows are saved in build/synth/blocks as soon as
they are made; `--saved` uses saved rows, of any version of the gateware, and makes none. `--docs` puts the rows into
docs/measured/synthesis.json; rows of blocks that were not chosen stay as they are there.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

import levels
import synth
import yosys

import rtl
from figures import measured

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
    ("event_counters", {}, "97 counters"),
    ("slow_control", QPS, "ARP, ICMP, UDP, IPbus, connection manager"),
    ("congestion_control", QPS, "DCQCN, QCN, pacers, samples"),
    ("message_input", QPS, "sources (PRBS, counter, replay), rings, destination table"),
    ("latency_histogram", QPS, "histogram of each queue pair"),
    ("transfer_meter", QPS, "meters of each queue pair"),
]
# Modules of the path of events, and with what parameters.
EVENT_BLOCKS = [
    ("fragment_builder", {"DATA_W": 64, "TABLE": 1}, "64 bits, with a table of parts"),
    ("fragment_builder", {"DATA_W": 512, "TABLE": 1}, "512 bits, with a table of parts"),
    ("event_merger", {"DATA_W": 64, "N_IN": 1}, "64 bits, 1 input"),
    ("event_merger", {"DATA_W": 64, "N_IN": 4}, "64 bits, 4 inputs"),
    ("event_merger", {"DATA_W": 64, "N_IN": 16}, "64 bits, 16 inputs"),
    ("event_merger", {"DATA_W": 512, "N_IN": 4}, "512 bits, 4 inputs"),
    ("async_fifo", {"W": 73, "DEPTH": 16}, "16 words of 73 bits"),
    ("event_timing", {}, "triggers, busy, time"),
    ("tai_clock", {}, "the clock in it"),
    ("rdma_cm", QPS, "the passive side of the standard connection manager, for 4 queue pairs (`WITH_RDMA_CM`)"),
    ("fragment_keeper", QPS, "64 bits, 256 fragments kept for the server of each of 4 queue pairs (`PULL_SLOTS`)"),
]
# The transmit side, with what differs between them.
ONCE = {"RETRANSMIT": 0, "RING_BYTES": 16_384, "SLOTS": 64}
TRANSMIT_BLOCKS = [
    ("roce_tx", {"N_QP": 1}, "one queue pair, ring of 256 KiB"),
    ("roce_tx", {"N_QP": 1, **ONCE}, "without retransmission, ring of 16 KiB, 64 packets in flight"),
    ("roce_tx", {"N_QP": 1, **ONCE, "SLOTS": 1024}, "the same with 1024 packets in flight"),
]
KEPT = synth.KEPT / "blocks"
WHOLE = "blocks"  # the table of a whole front end, which ends with the sum
TABLES = {WHOLE: BLOCKS, "event blocks": EVENT_BLOCKS, "transmit blocks": TRANSMIT_BLOCKS}
SUM = "**sum**"

Block = tuple[str, dict[str, int], str]  # module, its parameters, what the table says of it


def label(block: Block) -> str:
    """What the files of a block's rows begin with."""
    name, params, _ = block
    return name + "".join(f"_{key}{value}" for key, value in params.items() if (key, value) not in QPS.items())


def measure(block: Block) -> dict:
    """The row of one block; kept, and taken from there while its logic and what measures it are the same."""
    name, params, what = block
    found = synth.logic(name, params)
    kept = KEPT / f"{label(block)}_{synth.version(found)}.json"
    if not kept.exists():
        module = synth.netlist(name, params)
        depth = levels.deepest(module)
        costs = {"sites": synth.sites_of(module), **synth.cost(synth.kinds(module))}
        row = {**{c: costs[c] for c in synth.COLUMNS.values()}, "max_levels": depth.levels, "rtl": found[:8]}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(row))
    return {"block": name, "what": what} | json.loads(kept.read_text())


def saved(block: Block) -> dict | None:
    """The newest kept row of a block, if there is one."""
    files = sorted(KEPT.glob(f"{label(block)}_{'?' * 16}.json"), key=os.path.getmtime)
    return {"block": block[0], "what": block[2]} | json.loads(files[-1].read_text()) if files else None


def page_rows(rows: list[dict]) -> list[measured.Row]:
    """Rows of docs/synthesis.md."""
    return [
        {
            "block": row["block"],
            "what it does": row["what"],
            **{heading: row[column] for heading, column in synth.COLUMNS.items()},
            "levels": row["max_levels"],
            "RTL": row["rtl"],
        }
        for row in rows
    ]


def total(rows: Sequence[measured.Row]) -> measured.Row:
    """The sum of these blocks."""
    sums = {heading: sum(row[heading] for row in rows) for heading in synth.COLUMNS}
    return {"block": SUM, "what it does": None, **sums, "levels": max(row["levels"] for row in rows), "RTL": None}


def with_total(name: str, rows: Sequence[measured.Row]) -> list[measured.Row]:
    """The rows of a table; those of a whole front end end with their sum."""
    blocks = [row for row in rows if row["block"] != SUM]
    return [*blocks, total(blocks)] if name == WHOLE else blocks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="blocks with this word in their name")
    parser.add_argument("--saved", action="store_true", help="rows that are kept, of any version; make none")
    parser.add_argument("--docs", action="store_true", help="put the rows into docs/measured/synthesis.json")
    options = parser.parse_args()
    rtl.generate()
    chosen = {name: [block for block in blocks if options.only in block[0]] for name, blocks in TABLES.items()}
    try:
        found = {name: [saved(b) if options.saved else measure(b) for b in blocks] for name, blocks in chosen.items()}
    except yosys.YosysError as error:
        sys.exit(f"blocks: {error}")
    rows = {name: [row for row in table_rows if row] for name, table_rows in found.items()}
    if not any(rows.values()):
        there = ", ".join(dict.fromkeys(name for blocks in TABLES.values() for name, *_ in blocks))
        print(f"blocks: nothing to show for {options.only!r}; there are {there}")
        return 2
    for name, table_rows in rows.items():
        if not table_rows:
            continue
        made = page_rows(table_rows)
        print(measured.markdown(with_total(name, made)))
        if options.docs:
            order = [(block, what) for block, _, what in TABLES[name]]
            measured.put(name, made, order)
            measured.put(name, with_total(name, measured.read()[name]), [*order, (SUM, None)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
