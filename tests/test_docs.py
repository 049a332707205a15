# SPDX-License-Identifier: Apache-2.0
"""The pages as a site: `make docs` builds every page without a warning, and the site loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from live_page import browse

sys.path += [str(ROOT / "tools"), str(ROOT)]

import parameter_tables
from diagrams import DIAGRAMS

from figures import measured


def test_the_site_has_every_page_and_loads_nothing(built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", site]
    environment = {**os.environ, "PENSTOCK": str(built / "penstock"), "PENSTOCK_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    made = {path.stem: path.read_text() for path in site.glob("*.html")}
    assert pages <= made.keys()
    for name, html in made.items():
        loaded = re.findall(
            r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* rel="(?:stylesheet|preload)"[^>]* href="([^"]+)"',
            html,
        )
        assert [link for pair in loaded for link in pair if re.match(r"(https?:)?//", link)] == [], name
    assert "penstock.boards.RegisterError" in made["python-api"] and "penstock.Scenario" in made["python-api"]
    found = browse("site", f"file://{site}/index.html", "RegisterError")
    assert "python-api.html" in found["found"][0] and found["foreign"] == [] and found["errors"] == [], found
    options = made["options"]
    assert all(f">penstock {name}<" in options for name in ("recv", "ctl set", "sweep", "figures"))
    assert "--slot-size" in options and "--trials" in options
    registers = made["registers"]
    assert all(f">{name}<" in registers for name in ("counters", "cc[0-3]", "qp[0-255]"))
    maps = "".join((ROOT / f"build/gen/{name}_regs.py").read_text() for name in ("penstock", "qcn_switch"))
    for name in re.findall(r'^    "([\w.]+)":', maps, re.MULTILINE):
        assert f"<strong>{name.rpartition('.')[2]}</strong>" in registers, name


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_that_of_its_source_and_on_a_page(name: str) -> None:
    assert (ROOT / f"docs/images/{name}.svg").read_text() == DIAGRAMS[name].svg(), "run tools/diagrams.py"
    assert any(f"(images/{name}.svg)" in page.read_text() for page in (ROOT / "docs").glob("*.md"))


def test_the_blocks_of_the_gateware_s_diagram_are_modules() -> None:
    modules = {path.stem for path in (ROOT / "rtl").glob("*/*.sv")}
    titles = {title for _, _, title, _, kind in DIAGRAMS["gateware"].boxes.values() if kind != "outside"}
    assert titles <= modules, titles - modules


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


def test_the_readme_shows_the_numbers_that_the_figures_give() -> None:
    """`make figures-check` makes these rows again."""
    lines = re.findall(r"^\| (DCQCN \w+)[^|]*\|(.+)\|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [law for law, _ in lines] == ["DCQCN on", "DCQCN off"]
    rows = {row["quantity"]: row["Penstock"] for row in measured.read(measured.FIGURES)["shallow"]}
    quantities = ("goodput stored", "Jain's index", "retransmissions", "drops", "byte-exact")
    for law, line in lines:
        cells = [cell.strip().replace("yes", "1") for cell in line.split("|")]
        assert cells == [rows[f"{law}, {quantity}"] for quantity in quantities]


def test_the_messages_of_troubleshooting_are_those_of_the_program() -> None:
    """Each quoted message, or counter, of the first column is in a source file."""
    rows = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    assert len(quoted) > 10
    sources = "".join(re.sub(r"\\\n\s*", "", path.read_text()) for path in (ROOT / "crates").rglob("src/**/*.rs"))
    assert [text for text in quoted if text not in sources] == []


def test_the_parameters_of_congestion_control_are_on_the_page_as_they_are_described() -> None:
    page = parameter_tables.PAGE.read_text()
    made = page
    for group in parameter_tables.SECTIONS:
        assert (made := parameter_tables.with_rows(made, group)) == page, (
            "run .venv/bin/python tools/parameter_tables.py"
        )
