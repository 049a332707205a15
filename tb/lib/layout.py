# SPDX-License-Identifier: Apache-2.0
"""The one indentation of our SystemVerilog and the one naming of its generate blocks, checked line by line.

- Two spaces for each block (`begin`, `case`, `module`, ... to its end) and for each list whose bracket ends a line.
- A line that closes such a block or list has the indentation of the line that opened it.
- A continuation line of a statement is at least two spaces deeper; its alignment is free.
- The name of a generate block begins with `gen_`. No tabs, no spaces at the end of a line.

The package indices that `make setup` uses have no formatter for SystemVerilog.
"""

import re
from dataclasses import dataclass
from pathlib import Path

STEP = 2
BLOCKS = {"begin": "end", "module": "endmodule", "package": "endpackage", "function": "endfunction", "task": "endtask"}
BRACKETS = {"(": ")", "{": "}", "[": "]"}
CLOSES = {*BLOCKS.values(), *BRACKETS.values(), "endcase"}
PROCESSES = {"always", "always_ff", "always_comb", "always_latch", "initial", "final"}
TOKEN = re.compile(r"[A-Za-z_$][\w$]*|\S")
NOT_CODE = re.compile(r'"(?:\\.|[^"\\])*"|//.*')


@dataclass
class Level:
    """A block or bracket that is open, and the statement (or item of a list) under way in it."""

    opener: str
    closer: str
    indent: int  # of the line that opened it
    hanging: bool = True  # its content begins in a line of its own
    procedural: bool = False  # it belongs to a process or a function
    under_way: bool = False
    start: int = 0  # indentation of the statement's first line
    process: bool = False  # the statement is a process
    case: bool = False  # `case` has come, and not yet the `)` of its expression


def complaints(path: Path, text: str) -> list[str]:
    """Each line out of place, as `file:line: what is wrong and what is right`; empty when there is none."""
    found: list[str] = []
    levels = [Level("", "", -STEP)]
    for number, line in enumerate(text.splitlines(), 1):
        code = NOT_CODE.sub(lambda match: '""' if match[0][0] == '"' else "", line).strip()
        wrong = ["tab, or spaces at the end of the line"] if "\t" in line or line != line.rstrip() else []
        if code and code[0] != "`":
            tokens = TOKEN.findall(code)
            indent = len(line) - len(line.lstrip())
            wrong += misplaced(levels[-1], tokens[0], indent)
            wrong += walk(levels, tokens, indent)
        found += [f"{path}:{number}: {what}" for what in wrong]
    if len(levels) > 1:
        found.append(f"{path}: `{levels[-1].opener}` has no `{levels[-1].closer}`")
    return found


def misplaced(level: Level, first: str, indent: int) -> list[str]:
    """The error in the indentation of a line whose first token is `first`."""
    inner = level.indent + STEP
    if not level.hanging:
        right, at_least = level.indent + 1, True
    elif first in CLOSES or (first in "#(" and level.opener == "module"):
        right, at_least = level.indent, False
    elif first == "else":
        right, at_least = inner, True
    elif level.under_way:
        right, at_least = (inner if level.opener in BRACKETS else level.start + STEP), True
    else:
        right, at_least = inner, False
    if indent == right or (at_least and indent > right):
        return []
    return [f"indented by {indent}, must be {'at least ' if at_least else ''}{right}"]


def walk(levels: list[Level], tokens: list[str], indent: int) -> list[str]:
    """Follows the blocks and brackets that a line opens and closes; what is wrong with their names."""
    wrong = []
    for place, token in enumerate(tokens):
        level = levels[-1]
        if token in CLOSES:
            if token != level.closer:
                return [*wrong, f"`{token}` where `{level.closer}` is expected"]
            levels.pop()
            level = levels[-1]
            if token not in BRACKETS.values():
                level.under_way = False
            elif level.case:
                level.case = False
                levels.append(Level("case", "endcase", indent, procedural=level.procedural))
            continue
        if token == ";" or (token == "," and level.opener in BRACKETS):
            level.under_way = False
            continue
        before = tokens[max(place - 2, 0) : place]
        if before == ["begin", ":"]:
            if not level.procedural and not token.startswith("gen_"):
                wrong.append(f"generate block `{token}`, its name must begin with gen_")
            continue
        if token == ":" and before[-1:] == ["begin"]:
            continue
        if not level.under_way:
            level.under_way, level.start, level.process = True, indent, token in PROCESSES
        level.case = level.case or token in ("case", "casez")
        if token in BLOCKS:
            procedural = level.procedural or level.process or token in ("function", "task")
            levels.append(Level(token, BLOCKS[token], indent, procedural=procedural))
        elif token in BRACKETS:
            levels.append(Level(token, BRACKETS[token], indent, place == len(tokens) - 1, level.procedural))
    return wrong
