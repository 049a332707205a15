# SPDX-License-Identifier: Apache-2.0
"""Names use the verbs of the field, not those of people who talk to each other (CONTRIBUTING.md)."""

import re

import pytest
from conftest import ROOT

TALK = "told|tells|said|says|asked|asks|knows|hears|heeds|believes|doubts|judges"
# A comment to the end of the line, a string, a character.
NOT_CODE = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', re.DOTALL)
TALKING = re.compile(rf"\b(?:[a-z0-9]+_)*(?:{TALK})(?:_[a-z0-9]+)*\b")
CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))


@pytest.mark.parametrize("crate", CRATES)
def test_no_name_of_the_crate_talks(crate: str) -> None:
    found = {}
    for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
        if names := sorted(set(TALKING.findall(NOT_CODE.sub(" ", path.read_text())))):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


def test_the_rule_finds_a_name_and_leaves_comments_and_texts_alone() -> None:
    code = 'fn was_told(header: u8) {} // the header says so\nlet text = "nobody \\"asked\\"";'
    assert TALKING.findall(NOT_CODE.sub(" ", code)) == ["was_told"]
