# SPDX-License-Identifier: Apache-2.0
"""The comments of source files, and the paths that a text cites.

Comments are found by each language's lexical rules, because a path in a string need not name a file of the repository.
"""

import ast
import fnmatch
import io
import os
import re
import tokenize
from itertools import product
from pathlib import Path

DOUBLE, SINGLE = r'"(?:\\.|[^"\\])*"', r"'(?:\\.|[^'\\\n])*'"
SLASHES, HASH = r"(?P<comment>//[^\n]*|/\*.*?\*/)", r"(?P<comment>(?:^|(?<=\s))#[^\n]*)"


def _lexer(*tokens: str) -> re.Pattern[str]:
    """Finds strings and comments; the latter are the group `comment`."""
    return re.compile("|".join(tokens), re.MULTILINE | re.DOTALL)


C_LIKE = _lexer(DOUBLE, r"'(?:\\.|[^'\\\n])'", SLASHES)  # one character at most: a Rust lifetime has no end
RUST = _lexer(r'\br(?P<hashes>#*)".*?"(?P=hashes)', DOUBLE, r"'(?:\\.|[^'\\\n])'", SLASHES)
SCRIPT = _lexer(DOUBLE, SINGLE, r"`(?:\\.|[^`\\])*`", SLASHES)
SHELL = _lexer(r'"(?:\\.|[^"\\\n])*"', SINGLE, HASH)
TOML = _lexer('""".*?"""', r'"(?:\\.|[^"\\\n])*"', r"'[^'\n]*'", HASH)
LEXERS = {
    **dict.fromkeys((".sv", ".svh", ".rdl", ".vlt", ".c", ".cpp", ".h", ".cu", ".css"), C_LIKE),
    ".rs": RUST,
    **dict.fromkeys((".ts", ".mjs"), SCRIPT),
    **dict.fromkeys((".sh", ".xdc", ".sdc", ".pdc", "Makefile", "run", ".gitignore"), SHELL),
    ".toml": TOML,
    **dict.fromkeys((".vhd", ".lua"), _lexer(r'"[^"\n]*"', SINGLE, r"(?P<comment>--[^\n]*)")),
    ".html": _lexer("(?P<comment><!--.*?-->)"),
}


def comments(path: Path, text: str) -> list[tuple[int, str]]:
    """The comments of a source file with the line each begins in: all of a Markdown page; none for a file of data."""
    if path.suffix == ".md":
        return [(1, text)]
    if path.suffix in (".py", ".pyi"):
        return _python(text)
    lexer = LEXERS.get(path.suffix or path.name)
    found = lexer.finditer(text) if lexer else ()
    return [(text.count("\n", 0, match.start()) + 1, match["comment"]) for match in found if match["comment"]]


def _python(text: str) -> list[tuple[int, str]]:
    """Comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            docstring := ast.get_docstring(node, clean=False)
        ):
            found.append((node.body[0].lineno, docstring))
    return sorted(found)


# Kinds of files that only people write: a name that ends so is a file of the repository, whatever folder is named.
KINDS = ("cpp", "css", "cu", "lua", "md", "mjs", "pdc", "py", "rdl", "rs", "sdc", "sh", "sv", "ts", "vhd", "vlt", "xdc")
SOURCES = {f".{kind}" for kind in KINDS}
BUILT = {"build", "target", "out", "node_modules", ".venv"}  # folders that git does not keep
WORD = re.compile(r"(?<![\w/:@$~])[\w.*{},-]+(?:/[\w.*{},-]*)*(?![/(])")


def cited_paths(text: str, roots: set[str]) -> list[tuple[int, str]]:
    """The paths in a text, each with its line, the first being 0.

    A path is what begins with one of `roots`, the folders in the repository's root, or ends as a source file does.
    Placeholders in angle brackets become `*`.
    """
    text = re.sub(r"<[\w ]+>", "*", text)
    found = []
    for match in WORD.finditer(text):
        word = match[0].rstrip(".,-").removeprefix("./")
        parts = word.split("/")
        begins, ends = len(parts) > 1 and parts[0] in roots, Path(word).suffix in SOURCES
        if (begins or ends) and BUILT.isdisjoint(parts):
            line = text.count("\n", 0, match.start())
            found += [(line, path) for path in spelled_out(word)]
    return found


def spelled_out(word: str) -> list[str]:
    """The paths given by a word with alternatives in braces."""
    parts = [part.split(",") for part in re.split(r"[{}]", word)]
    return ["".join(choice) for choice in product(*parts)]


class Tree:
    """The files that git keeps."""

    def __init__(self, files: list[Path]) -> None:
        self.roots = {path.parts[0] for path in files if len(path.parts) > 1}
        self.places = {str(place) for path in files for place in (path, *path.parents)}
        self.endings = {"/".join(Path(place).parts[n:]) for place in self.places for n in range(len(Path(place).parts))}

    def has(self, word: str, page: Path) -> bool:
        """Whether `page` may cite a file or folder so: from its own folder, from one above, or by the end of a path.

        A path that begins in the repository's root has to be whole.
        """
        from_above = [os.path.normpath(folder / word) for folder in page.parents]
        short = [] if word.split("/")[0] in self.roots and "/" in word else [word.rstrip("/")]
        if "*" in word:
            return any(fnmatch.filter(self.places, path) for path in from_above) or any(
                fnmatch.filter(self.endings, path) for path in short
            )
        return not self.places.isdisjoint(from_above) or not self.endings.isdisjoint(short)
