# SPDX-License-Identifier: Apache-2.0
"""The throughput of the Soft-RoCE machine: `.venv/bin/python tests/softroce/speed.py [--json]`, a part of `make bench`.

Promise: "end to end" is payload that was compared byte for byte afterwards; "alone" is the rate of plain WRITEs
without a check, in the same run. Targets: at least 20 MB/s, or 80 % of the rate "alone".
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import build
import verbs_case
from machine import Machine
from measuring import row
from verbs_case import Case, Message

MTU, TOTAL, SLOT = 4096, 32 << 20, 1 << 16
COMMAND = ".venv/bin/python tests/softroce/speed.py"


def megabytes_per_second(machine: Machine, source: Path, folder: Path, case: Case) -> float:
    """Payload of a case over the time from its first frame to its last acknowledgement."""
    outcome = verbs_case.run(machine, source, folder, case)
    if case.dump:
        outcome.assert_clean(case)
    return sum(message.length for message in case.messages) / outcome.sent["seconds"] / 1e6


def rows(target: Path) -> list[dict]:
    """The figures, in the layout of tests/bench.py."""
    image = build.build(target, log=lambda text: print(text, file=sys.stderr))
    with Machine(image, cold=True) as machine:
        cold_s = machine.ready_s
    with Machine(image) as machine, tempfile.TemporaryDirectory() as name:
        source, folder = target / "examples/rc_source", Path(name)
        alone_messages = [Message("write", 1 << 20, slot=n * 16) for n in range(TOTAL >> 20)]
        shape = {"mtu": MTU, "slots": TOTAL // SLOT, "slot_bytes": SLOT, "timeout_s": 120}
        alone = Case([*alone_messages, Message("write_imm", 1)], dump=False, **shape)
        whole = Case([Message("write_imm", SLOT, slot=n, imm=n) for n in range(TOTAL // SLOT)], **shape)
        alone_rate = megabytes_per_second(machine, source, folder, alone)
        whole_rate = megabytes_per_second(machine, source, folder, whole)
        restored_s = machine.ready_s
    goal = min(20.0, 0.8 * alone_rate)
    found = [
        row("Soft-RoCE machine, cold boot", cold_s, "s", 6, "lower"),
        row("Soft-RoCE machine, restored", restored_s, "s", 1, "lower"),
        row("Soft-RoCE machine alone, WRITE, MTU 4096", alone_rate, "MB/s", None, "higher"),
        row("Soft-RoCE end to end, verified, MTU 4096", whole_rate, "MB/s", round(goal, 3), "higher"),
    ]
    return [{**entry, "value": round(entry["value"], 3), "command": COMMAND} for entry in found]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the Soft-RoCE machine.")
    parser.add_argument("--target", type=Path, default=build.TARGET, help="cargo's folder of programs")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = rows(arguments.target)
    if arguments.json:
        print(json.dumps(found))
        return 0
    for entry in found:
        print(f"{entry['name']:44} {entry['value']:8.3f} {entry['unit']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
