# SPDX-License-Identifier: Apache-2.0
"""All views of the register map agree, and the generator refuses unusable definitions."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from lib.register_map import generated
from lib.rtl import GENERATED, REPO, generate

SCRIPT = REPO / "regs" / "generate.py"


@pytest.fixture(scope="module", autouse=True)
def up_to_date():
    generate()


def nodes(parent: ET.Element, prefix: str, base: int):
    """(dotted name, byte address) of the registers below a uHAL node; `module` nodes are followed."""
    for node in parent:
        where = base + int(node.get("address", "0"), 16)
        name = prefix + node.get("id")
        if module := node.get("module"):
            yield from nodes(ET.parse(GENERATED / module.removeprefix("file://")).getroot(), name + ".", where)
        elif node.get("mask") is None and any(child.get("mask") is None for child in node):
            yield from nodes(node, name + ".", where)
        elif node.get("mask") is None:
            yield name, 4 * where


def test_the_uhal_table_has_every_register_at_its_address():
    table = dict(nodes(ET.parse(GENERATED / "penstock.xml").getroot(), "", 0))
    regs = generated()
    for name, (where, _) in regs.REGISTERS.items():
        group, _, register = name.rpartition(".")
        count = getattr(regs, f"{group.upper()}_COUNT", None)  # of an array of register files
        if count is None:
            assert table[name] == where
            continue
        for i in (0, 1, count - 1):
            assert table[f"{group}{i}.{register}"] == where + i * getattr(regs, f"{group.upper()}_STRIDE")


def test_the_rust_constants_have_every_register_at_its_address_and_every_field_in_its_place():
    constants, module = {}, ""
    for line in (GENERATED / "penstock_regs.rs").read_text().splitlines():
        if found := re.match(r"pub mod (\w+)", line):
            module = found[1]
        elif found := re.match(r"\s+pub const (\w+): u32 = (\w+);", line):
            constants[f"{module}.{found[1]}"] = int(found[2], 0)
        elif found := re.match(r"\s+pub const (\w+): Bits = Bits { low: (\d+), mask: (\w+) };", line):
            constants[f"{module}.{found[1]}"] = int(found[2]), int(found[3], 0)
    for name, (where, fields) in generated().REGISTERS.items():
        group, _, register = name.rpartition(".")
        key = f"{group or 'global'}.{register.upper()}"
        assert constants[key] == where - constants.get(f"{group}.BASE", 0)
        for field, (low, width) in fields.items():
            if (len(fields), width) == (1, 32):
                continue
            stem = key if field == register else f"{key}_{field.upper()}"
            assert constants[f"{stem}_BITS"] == (low, ((1 << width) - 1) << low)


def test_a_second_run_writes_nothing(tmp_path: Path):
    run = [sys.executable, SCRIPT, "--out", tmp_path / "gen"]
    assert "written" in subprocess.run(run, capture_output=True, text=True, check=True).stdout
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "gen").iterdir()}
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == ""
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "gen").iterdir()} == before


def test_a_register_without_a_description_is_refused_by_name(tmp_path: Path):
    folder = tmp_path / "regs"
    folder.mkdir()
    for source in SCRIPT.parent.glob("*.*"):
        text = source.read_text()
        (folder / source.name).write_text(text.replace('desc = "Peer\'s memory key."; ', ""))
    run = [sys.executable, folder / "generate.py", "--out", tmp_path / "gen"]
    result = subprocess.run(run, capture_output=True, text=True)
    assert result.returncode == 1
    assert "rkey: has no description; add" in result.stderr
    assert not (tmp_path / "gen" / "penstock_regs.rs").exists()
