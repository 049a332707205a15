# SPDX-License-Identifier: Apache-2.0
"""Names use the verbs of the field, not those of people who talk to each other (CONTRIBUTING.md)."""

import ast
import re

import pytest
from conftest import ROOT

TALK = "told|tells|said|says|asked|asks|knows|hears|heeds|believes|doubts|judges"
# Allowed in names that are sentences, those of tests.
SHORT = "tell|ask|heard|own|others|obeys|shows"
# A comment to the end of the line, a string, a character.
NOT_CODE = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', re.DOTALL)
TALKING = re.compile(
    rf"\b(?:(?:[a-z0-9]+_)*(?:{TALK})(?:_[a-z0-9]+)*|(?:[a-z0-9]+_){{0,2}}(?:{SHORT})(?:_[a-z0-9]+){{0,2}})\b"
)
# A comment on an item that begins so lacks its subject.
WITHOUT_SUBJECT = re.compile(
    r"^(?!\s*//)[^\n]*\n\s*/// ((?:Of|Since when|By (?:board|source|stream))\b[^\n]*)", re.MULTILINE
)
CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))


@pytest.mark.parametrize("crate", CRATES)
def test_no_name_of_the_crate_talks(crate: str) -> None:
    found = {}
    for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
        if names := sorted(set(TALKING.findall(NOT_CODE.sub(" ", path.read_text())))):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


PYTHON = ("python", "tools", "figures", "regs", "rtl/syn", "rtl/formal", "packaging")


def names_in(source: str) -> set[str]:
    """Every name of a Python file, attributes and parameters included."""
    kinds = {ast.Name: "id", ast.arg: "arg", ast.keyword: "arg", ast.Attribute: "attr", ast.ClassDef: "name"}
    kinds |= {ast.FunctionDef: "name", ast.AsyncFunctionDef: "name"}
    return {getattr(node, kinds[type(node)]) or "" for node in ast.walk(ast.parse(source)) if type(node) in kinds}


@pytest.mark.parametrize("folder", PYTHON)
def test_no_name_of_the_python_code_talks(folder: str) -> None:
    talking = re.compile(rf"_*(?:[a-z0-9]+_)*(?:{TALK})(?:_[a-z0-9]+)*", re.IGNORECASE)
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        if names := sorted(filter(talking.fullmatch, names_in(path.read_text()))):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


def test_names_of_python_code_are_found_wherever_they_stand() -> None:
    assert names_in("def f(told): x.said = told\nclass A: asked: int\n") == {
        "f",
        "told",
        "x",
        "said",
        "A",
        "asked",
        "int",
    }


def test_no_name_of_the_gateware_talks() -> None:
    talking = re.compile(rf"\b(?:[a-zA-Z0-9]+_)*(?:{TALK}|heard)(?:_[a-z0-9]+)*\b")
    files = [path for path in (ROOT / "rtl").rglob("*.sv*") if "formal" not in path.parts]
    names = {path.name: set(talking.findall(NOT_CODE.sub(" ", path.read_text()))) for path in files}
    assert {name: found for name, found in names.items() if found} == {}


@pytest.mark.parametrize("crate", CRATES)
def test_comments_of_the_crate_have_subjects(crate: str) -> None:
    found = {}
    for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
        if comments := WITHOUT_SUBJECT.findall(path.read_text()):
            found[str(path.relative_to(ROOT))] = comments
    assert found == {}


def test_a_comment_without_subject_is_found() -> None:
    code = "struct A {\n    /// Of the rings.\n    a: u8,\n    /// The rings,\n    /// Of these one.\n    b: u8,\n}\n"
    assert WITHOUT_SUBJECT.findall(code) == ["Of the rings."]


def test_the_rule_finds_a_name_and_leaves_comments_and_texts_alone() -> None:
    code = 'fn was_told(header: u8, own: u8) {} // the header says so\nlet text = "nobody \\"asked\\"";'
    assert TALKING.findall(NOT_CODE.sub(" ", code)) == ["was_told", "own"]
    sentence = "fn each_input_gets_its_own_bytes_in_order() {}"
    assert TALKING.findall(sentence) == []
