# SPDX-License-Identifier: Apache-2.0
"""Names use the verbs of the field, not those of people who talk to each other (CONTRIBUTING.md)."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import ROOT

TALK = re.compile(
    "(?:un)?told|tell(?:s|ing)?|said|says?|ask(?:s|ed|ing)?|knew|knows|heed(?:s|ed)?|hears?|believe[sd]?|doubt(?:s|ed)?|judge[sd]?"
    "|obeys|want(?:s|ed)?|speaks?|spoke"
)
# Words that are allowed in names that are sentences, those of tests.
SHORT = re.compile("known|(?:un)?heard|own|others|shows")
SENTENCE = 6  # words
# Names that are public already: fields of registers, keys and kinds of reports.
PUBLISHED = {"own_numbers", "OWN_NUMBERS", "events_wanted", "not_known_from", "BoardObeys", "own_goodput_gbps"}
# An attribute of `Best`, which is a key of its report; methods of Optuna.
OF_PACKAGE = frozenset({"own", "ask", "tell"})
# A comment, a string, a character.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|r(#+)".*?"\1|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', re.DOTALL)
TEMPLATE = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)  # a text of TypeScript, with the expressions in it
# A comment on an item that begins so lacks its subject. Help texts, which clap takes from comments, name an option.
WITHOUT_SUBJECT = re.compile(
    r"^(?!\s*//)[^\n]*\n\s*/// ((?:As|At|Before|Behind|Between|By|For|In|Of|On|Over|Since|To|Under|With|Without)\b"
    r"(?! --)[^\n]*)",
    re.MULTILINE,
)
CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))
PYTHON = ("tests", "tb", "python", "tools", "figures", "regs", "rtl", "packaging", "examples", "docs", "fuzz")


def talks(name: str) -> bool:
    """Whether a name of any spelling has a verb of people; one that is a sentence may have some words more."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    rules = (TALK,) if len(words) >= SENTENCE else (TALK, SHORT)
    return name not in PUBLISHED and any(rule.fullmatch(word) for rule in rules for word in words)


def talking(files: Iterable[Path], names, allowed: frozenset[str] = frozenset()) -> dict[str, list[str]]:
    """Each file's names that talk."""
    found = {path: sorted(filter(talks, set(names(path.read_text())) - allowed)) for path in sorted(files)}
    return {str(path.relative_to(ROOT)): names for path, names in found.items() if names}


def names_of_code(source: str) -> list[str]:
    """Every name of a file in Rust, C++ or SystemVerilog, whose comments and texts are left out."""
    return re.findall(r"\b[A-Za-z_]\w*", NOT_CODE.sub(" ", source))


def names_of_page(source: str) -> list[str]:
    """Every name of a TypeScript file, likewise."""
    return names_of_code(TEMPLATE.sub(" ", NOT_CODE.sub(" ", source)))


def names_of_python(source: str) -> set[str]:
    """Every name of a Python file, attributes and parameters included."""
    kinds = {ast.Name: "id", ast.arg: "arg", ast.keyword: "arg", ast.Attribute: "attr", ast.ClassDef: "name"}
    kinds |= {ast.FunctionDef: "name", ast.AsyncFunctionDef: "name"}
    return {getattr(node, kinds[type(node)]) or "" for node in ast.walk(ast.parse(source)) if type(node) in kinds}


@pytest.mark.parametrize("crate", [*(f"crates/{crate}" for crate in CRATES), "fuzz"])
def test_no_name_of_the_crate_talks(crate: str) -> None:
    parts = ("src", "tests", "examples", "benches", "fuzz_targets", "build.rs")
    files = [path for part in parts for path in [ROOT / crate / part, *(ROOT / crate / part).rglob("*.rs")]]
    assert talking((path for path in files if path.is_file()), names_of_code) == {}


@pytest.mark.parametrize("folder", PYTHON)
def test_no_name_of_the_python_code_talks(folder: str) -> None:
    allowed = OF_PACKAGE if folder == "python" else frozenset()
    assert talking((ROOT / folder).rglob("*.py"), names_of_python, allowed) == {}


@pytest.mark.parametrize("folder", ["rtl", "tb"])
def test_no_name_of_the_gateware_talks(folder: str) -> None:
    files = [path for ending in ("sv", "svh", "cpp", "h") for path in (ROOT / folder).rglob(f"*.{ending}")]
    assert talking(files, names_of_code) == {}


def test_no_name_of_the_live_page_talks() -> None:
    assert talking((ROOT / "web/src").rglob("*.ts"), names_of_page) == {}


@pytest.mark.parametrize("crate", CRATES)
def test_comments_of_the_crate_have_subjects(crate: str) -> None:
    found = {}
    for path in sorted((ROOT / "crates" / crate).rglob("*.rs")):
        if comments := WITHOUT_SUBJECT.findall(path.read_text()):
            found[str(path.relative_to(ROOT))] = comments
    assert found == {}


def test_a_comment_without_subject_is_found() -> None:
    code = (
        "struct A {\n    /// Of the rings.\n    a: u8,\n    /// The rings,\n    /// Of these one.\n    b: u8,\n"
        "    /// As in the header.\n    c: u8,\n    /// With --seconds: the end.\n    d: u8,\n}\n"
    )
    assert WITHOUT_SUBJECT.findall(code) == ["Of the rings.", "As in the header."]


@pytest.mark.parametrize(
    "name", ["was_told", "TOLD", "Asked", "wants_all", "known", "is_known", "begin_known", "own", "IsKnown", "say"]
)
def test_a_name_that_talks_is_found(name: str) -> None:
    assert talks(name)


@pytest.mark.parametrize(
    "name", ["knowledge", "task", "unknown", "owner", "each_input_gets_its_own_bytes_in_order", "own_numbers", "header"]
)
def test_a_name_of_the_field_is_none_that_talks(name: str) -> None:
    assert not talks(name)


def test_a_sentence_may_not_talk_either() -> None:
    assert talks("test_a_board_that_is_wrong_is_told_of_at_once")


def test_names_are_found_wherever_they_stand_and_comments_and_texts_left_alone() -> None:
    code = 'fn was_told(header: u8) {} // the header says so\nlet text = r#"nobody "asked""#; let c = \'"\'; b("own");'
    assert set(names_of_code(code)) == {"fn", "was_told", "header", "u8", "let", "text", "c", "b"}
    assert names_of_code("a /* it says\nso */ <= 8'(told); // it asks") == ["a", "told"]
    assert names_of_page("const a = `${told} said`; /** What is known. */ b(asks);") == ["const", "a", "b", "asks"]
    assert names_of_python("def f(told): x.said = told\nclass A: asked: int\n") == {
        "f",
        "told",
        "x",
        "said",
        "A",
        "asked",
        "int",
    }
