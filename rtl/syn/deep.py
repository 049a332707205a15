# SPDX-License-Identifier: Apache-2.0
"""The ways of a module that no mapping makes shorter: what has to be pipelined for a faster clock.

    python rtl/syn/deep.py roce_tx N_QP=4 [--levels 8]

In the netlists of docs/synthesis.md only the deepest way is as short as the mapper can make it: on all others it saves
LUTs, until they are as deep. Here it saves none, so a way that is printed has more levels than its logic needs.
Minutes for a front end.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "rtl" / "syn"), str(REPO / "tb" / "lib")]

import levels  # noqa: E402
import synth  # noqa: E402
import yosys  # noqa: E402

import rtl  # noqa: E402

STARTS = 3  # of the ways to one register, that are named


def table(ways: list[levels.Depth]) -> str:
    """Markdown: a row for each register or port, with the deepest way to it and where the ways to its bits begin."""
    of_register = defaultdict(list)
    for way in ways:
        of_register[_word(way.end)].append(way)
    lines = ["| levels | chains, DSPs | bits | to | from |", "|---|---|---|---|---|"]
    for end, found in of_register.items():
        starts = list(dict.fromkeys(f"`{_word(way.start)}`" for way in found))
        more = [f"{len(starts) - STARTS} more"] if len(starts) > STARTS else []
        deepest = found[0]
        lines.append(
            f"| {deepest.levels} | {deepest.chains}, {deepest.dsps} | {len(found)} | `{end}` |"
            f" {', '.join([*starts[:STARTS], *more])} |"
        )
    return "\n".join(lines)


def _word(bit: str) -> str:
    """The name of a register from that of its bit."""
    return re.sub(r"\[\d+\]$", "", bit)


def setting(text: str) -> tuple[str, int]:
    """A parameter as it is typed, NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals or not value.isdigit():
        raise argparse.ArgumentTypeError(f"{text}: allowed is NAME=VALUE with an integer, such as N_QP=4")
    return name, int(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("top", help="a module of rtl/")
    parser.add_argument("params", nargs="*", type=setting, metavar="NAME=VALUE", help="its parameters")
    parser.add_argument("--levels", type=int, default=8, help="of ways that are short enough (8)")
    options = parser.parse_args()
    file = next(iter(rtl.module(options.top)), None)
    if not file:
        print(f"deep: rtl/ has no module {options.top}", file=sys.stderr)
        return 2
    for name, _ in options.params:  # Yosys passes over those that are not there
        if not re.search(rf"\bparameter\b[^=]*\b{re.escape(name)}\b\s*=", file.read_text()):
            print(f"deep: {options.top} has no parameter {name}", file=sys.stderr)
            return 2
    try:
        module = synth.netlist(options.top, dict(options.params), for_depth=True)
    except yosys.YosysError as error:
        print(f"deep: {error}", file=sys.stderr)
        return 2
    ways = levels.deeper_than(module, options.levels)
    print(table(ways) if ways else f"no way of {options.top} has more than {options.levels} levels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
