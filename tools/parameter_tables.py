#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/lab.md for the parameters of congestion control, from regs/congestion.rdl.

python tools/parameter_tables.py    writes them in the place of those that are there; says whether any differed
"""

import re
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "regs"))

from generate import compile_map  # noqa: E402
from parameters import Parameter, parameters_of  # noqa: E402
from register_model import read_map  # noqa: E402

PAGE = REPO / "docs" / "lab.md"
SECTIONS = {"cc": "\n## `[cc]`\n", "qcn": "\n### `[cc.qcn]`\n"}
UNITS_OF_ZERO = {"time": "0ps", "bytes": "0B"}


def default(p: Parameter) -> str:
    if p.field.parameter.quantity == "jitter":
        return f"{p.reset / 256:.1f}"
    if p.field.parameter.quantity:
        return f'"1/{1 << p.reset}"'
    if p.field.parameter.preset:
        return f'"{p.field.parameter.preset}"' if p.preset is not None else p.field.parameter.preset
    if p.kind == "choice":
        return f'"{dict(p.field.values)[p.reset]}"'
    return ("false", "true")[p.reset] if p.kind == "flag" else str(p.reset)


def meaning(p: Parameter, keys: set[str]) -> str:
    text = p.field.parameter.meaning or p.field.desc
    first = text.split()[0]
    if re.fullmatch("[A-Z][a-z]+", first):
        text = text[0].lower() + text[1:]
    text = re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda name: f"`{name[0]}`" if name[0] in keys else name[0], text)
    if p.kind in UNITS_OF_ZERO:
        text = re.sub(r"\b0: ", f'"{UNITS_OF_ZERO[p.kind]}": ', text)
    return text.removesuffix(".")


def rows(group: str) -> dict[str, str]:
    """By key."""
    [registers] = [found for found in read_map(compile_map().top) if found.name == group]
    named = [p for p in parameters_of(registers) if p.field.parameter.key]
    keys = {p.field.parameter.key for p in named}
    return {p.field.parameter.key: f"| `{p.field.parameter.key}` | {default(p)} | {meaning(p, keys)} |" for p in named}


def with_rows(page: str, group: str) -> str:
    """The page with the rows of a group: first those of other keys as they are, then the parameters."""
    head, _, rest = page.partition(SECTIONS[group])
    before, table, after = re.split(r"(\| key \|.*\n\|-.*\n(?:\|.*\n)*)", rest, maxsplit=1)
    made = rows(group)
    kept = [line for line in table.splitlines() if line.split("`")[1:2] == [] or line.split("`")[1] not in made]
    return head + SECTIONS[group] + before + "\n".join([*kept, *made.values()]) + "\n" + after


def main() -> int:
    page = PAGE.read_text()
    made = page
    for group in SECTIONS:
        made = with_rows(made, group)
    PAGE.write_text(made)
    print(f"{PAGE.relative_to(REPO)}: {'as it was' if made == page else 'rows written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
