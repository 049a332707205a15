# SPDX-License-Identifier: Apache-2.0
"""Every link between the pages of this repository leads to an existing file and heading; every row of a table has as
many cells as its header.

Anchors are made of headings as GitHub makes them: lower case, no punctuation, blanks as hyphens, numbered if repeated.
Tables are read as GitHub reads them: a bar separates cells in code too, unless a backslash precedes it.
"""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

from conftest import ROOT

TRACKED = [Path(name) for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()]
PLACES = set(TRACKED) | {folder for path in TRACKED for folder in path.parents}
PAGES = [path for path in TRACKED if path.suffix == ".md"]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere; those that leave the repository are not followed."""
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page.parent / name).resolve().relative_to(ROOT.resolve()) if name else page
        if target not in PLACES or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    return lost


def test_every_link_of_a_page_leads_somewhere() -> None:
    assert {str(page): lost for page in PAGES if (lost := broken(page))} == {}


def cells(row: str) -> int:
    """How many cells a row of a table has."""
    return len(re.findall(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|"))) + 1


def crooked(text: str) -> list[str]:
    """The rows of tables that have more or fewer cells than their header, and the rule below a header likewise."""
    lines, found, width = text.splitlines(), [], 0
    for number, line in enumerate(lines):
        begins = number + 1 < len(lines) and re.fullmatch(r"\s*\|?[\s:|-]*-[\s:|-]*\|[\s:|-]*", lines[number + 1])
        if not line.lstrip().startswith("|"):
            width = 0
        elif begins and not width:
            width = cells(line)
        elif width and cells(line) != width:
            found.append(line)
    return found


def test_every_row_of_a_table_has_the_cells_of_its_header() -> None:
    assert {str(page): rows for page in PAGES if (rows := crooked(prose(page)))} == {}


def test_a_row_that_is_one_column_off_is_found() -> None:
    assert crooked("| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 | 3 |\n| 1 \\| 2 |\n") == ["| 1 | 2 | 3 |", "| 1 \\| 2 |"]
