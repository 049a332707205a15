# SPDX-License-Identifier: Apache-2.0
"""Citations in comments, docstrings and pages exist: files of this repository, and documents in the list of papers.

A path is relative to the citing file's folder or one above it; a path from the repository's root must be complete.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from citations import Tree, cited_paths, comments
from conftest import ROOT
from test_links import TRACKED

# Files that comments name and git does not keep.
MADE = {
    "penstock_regblock.sv",
    "penstock_regs_pkg.sv",
    "penstock_regs.rs",
    "penstock_map.rs",
    "qcn_switch_map.rs",
    "penstock_regs.py",
    "app.css",
}
FOREIGN = {
    "Encodings.md": "the Parquet format",
    "platforms/xilinx_kcu105.py": "litex-boards",
    "docs/system/i386/microvm.rst": "QEMU",
    "docs/interop/qmp-spec": "QEMU",
}
# Documents that anybody finds by these names; all others are in the table of papers.
STANDARD = r"RFC \d+|IEEE|IBTA|W3C|Apache License|manual"
SECTION = re.compile(r"sections? (?:[IVX]+\b|\d)|parameter page")


def text_of(path: Path) -> str:
    """The text of a file, empty for one that is none."""
    content = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b""
    return "" if b"\0" in content else content.decode(errors="replace")


@cache
def tree() -> Tree:
    """The files that may be cited."""
    return Tree(TRACKED)


@cache
def all_comments() -> dict[Path, list[tuple[int, str]]]:
    """The comments of each file that has some."""
    return {path: found for path in TRACKED if (found := comments(path, text_of(path)))}


def papers() -> list[str]:
    """The names by which docs/papers.md lets papers be cited."""
    table = text_of(Path("docs/papers.md"))
    return re.findall(r"^\| ([A-Z][^|]*?) \|", table, re.MULTILINE)


def paragraphs(path: Path) -> list[tuple[int, str]]:
    """The comments of a file, those of successive lines together, without what marks them."""
    joined: list[tuple[int, int, str]] = []
    for line, text in all_comments()[path]:
        plain = " ".join(re.sub(r"^\s*(?://[/!]?|#|--|\*)", "", part) for part in text.splitlines())
        if joined and joined[-1][1] + 1 == line and path.suffix != ".md":
            begin, _, before = joined.pop()
            joined.append((begin, line, f"{before} {plain}"))
        else:
            joined.append((line, line + text.count("\n"), plain))
    return [(begin, re.sub(r"\s+", " ", text)) for begin, _, text in joined]


def test_every_file_that_a_comment_cites_exists() -> None:
    lost = [
        f"{path}:{line + below}: {word}"
        for path in all_comments()
        for line, text in all_comments()[path]
        for below, word in cited_paths(text, tree().roots)
        if word not in MADE and word not in FOREIGN and not tree().has(word, path)
    ]
    assert not lost, "\n".join(lost)


def test_a_document_that_is_cited_by_section_is_a_standard_or_in_the_table_of_papers() -> None:
    """The document is named at most 60 characters before its section, with no other document in between."""
    cited = re.compile("|".join([STANDARD, *map(re.escape, papers())]))
    unknown = []
    for path in all_comments():
        for line, text in paragraphs(path):
            for match in SECTION.finditer(text):
                before = text[max(0, match.start() - 60) : match.start()]
                if not cited.search(before) or before.lower().endswith("design "):
                    unknown.append(f"{path}:{line}: {before}{match[0]}")
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("the same steps as `rtl/cc/qcn_step.sv`", "rtl/cc/qcn_step.sv"),
        ("see no_such_module.sv.", "no_such_module.sv"),
        ("replayed by `crates/*/tests/no_such.rs`", "crates/*/tests/no_such.rs"),
        ("[notes](docs/{board,no_such}.md)", "docs/no_such.md"),
        ("`tb/<module>/no_such.py` of each", "tb/*/no_such.py"),
    ],
)
def test_a_path_that_leads_nowhere_is_found(text: str, word: str) -> None:
    found = [path for _, path in cited_paths(text, tree().roots)]
    assert [path for path in found if not tree().has(path, Path("crates/cc/src/lib.rs"))] == [word]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "a.rs",
            'let s = "// no"; // yes\nlet t: &\'a str = r#"" // no"#; /* and\nyes */',
            ["// yes", "/* and\nyes */"],
        ),
        ("a.py", '"""yes"""\nx = "# no"  # yes\n', ["yes", "# yes"]),
        ("a.toml", 'x = "a # no" # yes', ["# yes"]),
        ("a.sh", "echo ${x#no} '# no' # yes", ["# yes"]),
        ("a.ts", "const x = `// no`; // yes", ["// yes"]),
    ],
)
def test_comments_are_separated_from_strings(name: str, text: str, found: list[str]) -> None:
    assert [comment for _, comment in comments(Path(name), text)] == found
