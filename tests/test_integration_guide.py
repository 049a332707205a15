# SPDX-License-Identifier: Apache-2.0
"""docs/integration.md: what it repeats of the gateware is what the gateware has."""

import re
import sys
from pathlib import Path

import gateware_text
import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import rtl  # noqa: E402

GUIDE = (REPO / "docs" / "integration.md").read_text()


def table(mark: str) -> list[list[str]]:
    """The cells of the table after a mark, without its two head lines."""
    lines = GUIDE[GUIDE.index(mark) :].splitlines()[1:]
    rows = [
        line.strip("|").split("|") for line in lines[: next(i for i, s in enumerate(lines) if not s.startswith("|"))]
    ]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.mark.parametrize("struct", ["desc_t", "cpl_t"])
def test_fields_are_where_the_package_puts_them(struct):
    written = [(name, bits) for bits, name, _ in table(f"<!-- fields: {struct} -->")]
    fields = gateware_text.fields(struct)
    assert written == [(name, f"{high}:{low}" if high > low else f"{high}") for name, high, low in fields]


def test_completion_codes_are_those_of_the_package():
    package = (REPO / "rtl" / "lib" / "penstock_pkg.sv").read_text()
    codes = re.findall(r"(Wc\w+)\s*=\s*8'd(\d+)", package)
    assert [(name, code) for code, name, _ in table("<!-- values: wc_status_e -->")] == codes


def test_parameters_are_those_of_the_tops():
    section = GUIDE[GUIDE.index("| parameter |") : GUIDE.index("What a build costs")]
    named = re.findall(r"^\| `(\w+)`", section, re.M)
    for top in ("penstock_xgmii", "penstock_100g"):
        assert named == gateware_text.parameters(top)


def test_registers_that_the_guide_names_exist():
    rtl.generate()
    ids = set()
    for table_file in (REPO / "build" / "gen").glob("*.xml"):
        ids |= set(re.findall(r'id="(\w+?)\d*"', table_file.read_text()))
        ids |= set(re.findall(r'id="(\w+)"', table_file.read_text()))
    groups = "connection|services|port|source|events|event_input|timing|destination|flow_control|requester|keep_alive"
    named = re.findall(rf"`((?:{groups})(?:\.\w+)+)`", GUIDE)
    assert named
    missing = [name for name in named for part in name.split(".") if not {part, f"{part}_lo"} & ids]
    assert missing == []
