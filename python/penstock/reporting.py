# SPDX-License-Identifier: Apache-2.0
"""The output of `penstock sweep`, `tune` and `figures`: text, or with `--json` one object.

Promise: valid JSON for all numbers (NaN and infinity are null); a closed pipe is not a fault.
Source: docs/sweeps.md describes the objects.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.points import RunError

SCHEMA = 1  # of the objects


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`-J, --json`, as every command of Penstock has it."""
    parser.add_argument("-J", "--json", action="store_true", help="print the results as JSON")


def parser_of(command: str, description: str, *, sets: str, out: str) -> argparse.ArgumentParser:
    """The options of a command that runs a scenario many times; `sets` is the help of `--set`, `out` the default."""
    parser = argparse.ArgumentParser(prog=f"penstock {command}", description=description, allow_abbrev=False)
    parser.add_argument("scenario", help="scenario file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE[,VALUE...]", help=sets)
    parser.add_argument("--out", default=out, help="folder for the results (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="processes at a time (default: one for each core)")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the results of another scenario in that folder"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_json_option(parser)
    return parser


def report(command: str, work: Callable[[], str]) -> int:
    """Prints what `work` returns. The exit status is 0, 2 for a wrong request, 130 after Ctrl-C, or that of a run that
    broke off.
    """
    try:
        text = work()
    except RunError as error:
        print(f"penstock {command}: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print(f"penstock {command}: interrupted; the same command again goes on from here", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"penstock {command}: {error}", file=sys.stderr)
        return 2
    return print_result(text)


def as_json(kind: str, content: Mapping[str, object]) -> str:
    """The object: `schema`, `kind`, and the results of the command."""
    return json.dumps({"schema": SCHEMA, "kind": kind, **_finite(dict(content))}, indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    """The value with null for each number that JSON has not."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):  # NumPy's numbers
        return _finite(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


WIDTH = 80  # columns of a terminal that a table fits


def as_table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int = WIDTH) -> str:
    """Lines of a table, numbers to the right. Columns beyond `width` continue below, with the first column repeated."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *cells, strict=True)]
    right = [not any(isinstance(row[n], str) for row in rows) for n in range(len(names))]
    blocks, block, used = [], [0], widths[0]
    for n in range(1, len(names)):
        if used + 2 + widths[n] > width and len(block) > 1:
            blocks.append(block)
            block, used = [0], widths[0]
        block.append(n)
        used += 2 + widths[n]
    lines: list[str] = []
    for columns in [*blocks, block]:
        lines += [""] if lines else []
        for texts in [list(names), *cells]:
            padded = [texts[n].rjust(widths[n]) if right[n] else texts[n].ljust(widths[n]) for n in columns]
            lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_result(text: str) -> int:
    """Prints a result and returns the exit status: 0, even if the pipe is closed; 1 if it cannot be written."""
    status = 0
    try:
        print(text)
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"error: cannot write to standard output: {error.strerror}", file=sys.stderr)
            status = 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
    return status
