# SPDX-License-Identifier: Apache-2.0
"""The graph of which file of a crate uses names of which other file.

A path counts for the file in which the name is defined: a re-export is not a use, so that `crate::live::Page` is a use
of `live/page.rs`. What a parent declares and re-exports is not yet used by it. `#[cfg(test)]` items are left out, as
they are not part of the crate. Methods are left out too: they are found by their type and not by a name.
Source: The Rust Reference, "Paths", "Use declarations" and "Modules" (edition 2021).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ITEMS = {"fn", "struct", "enum", "trait", "type", "const", "static", "union"}
CLOSING = {"{": "}", "(": ")", "[": "]"}
TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<text>(?:br|r)(?P<hash>\#*)".*?"(?P=hash)|b?"(?:\\.|[^"\\])*"|b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'])')"""
    r"""|(?P<word>'?\$?[A-Za-z_]\w*|r\#\w+)|(?P<mark>::|.)""",
    re.DOTALL | re.VERBOSE,
)


class Unresolved(Exception):
    """A path that leads nowhere: the reader of the source has missed something."""


@dataclass(eq=False)
class Module:
    """A module: its file (that of the outermost module for one in braces), and what its scope holds."""

    file: Path
    parent: "Module | None" = None
    inline: bool = False
    children: dict[str, "Module"] = field(default_factory=dict)
    items: set[str] = field(default_factory=set)
    # What `use` binds: the paths of a name, those of globs under "*".
    uses: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    reexports: set[str] = field(default_factory=set)
    paths: set[tuple[str, ...]] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    # Items of its own that a macro makes have no name here.
    has_macros: bool = False

    def walk(self) -> Iterator["Module"]:
        yield self
        for child in self.children.values():
            yield from child.walk()

    def root(self) -> "Module":
        return self if self.parent is None else self.parent.root()


def tokens(source: str) -> list[str]:
    """Words and marks; `::` is one, texts and comments are none."""
    kinds = ((match.lastgroup, match.group()) for match in TOKEN.finditer(source))
    return [text for kind, text in kinds if kind in ("word", "mark")]


def skip_group(words: list[str], at: int) -> int:
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(words):
        depth += (words[at] in CLOSING) - (words[at] in CLOSING.values())
        at += 1
        if depth == 0:
            break
    return at


def skip_item(words: list[str], at: int) -> int:
    """The position after an item: after its semicolon, or its braces."""
    while at < len(words) and words[at] not in (";", "{"):
        at = skip_group(words, at) if words[at] in CLOSING else at + 1
    return skip_group(words, at) if at < len(words) and words[at] == "{" else at + 1


def use_tree(words: list[str], at: int, prefix: tuple[str, ...]) -> tuple[list[tuple[str, tuple[str, ...]]], int]:
    """The names that a tree of `use` binds, each with its path; "*" for a glob."""
    path = prefix
    while at < len(words):
        word = words[at]
        if word == "::":
            at += 1
        elif word == "{":
            bound: list[tuple[str, tuple[str, ...]]] = []
            at += 1
            while words[at] != "}":
                more, at = use_tree(words, at, path)
                bound += more
                at += words[at] == ","
            return bound, at + 1
        elif word == "*":
            return [("*", path)], at + 1
        elif word == "as":
            return [(words[at + 1], path)], at + 2
        elif word in (",", "}", ";"):
            break
        else:
            path = path[:-1] if word == "self" and len(path) > len(prefix) else (*path, word)
            if word == "self" and prefix and path == (*prefix, "self"):
                path = prefix
            at += 1
    return [(path[-1], path)], at


class Reader:
    """Reads one file into its modules."""

    def __init__(self, module: Module, folder: Path) -> None:
        self.words = tokens(module.file.read_text())
        self.scope(module, folder, 0, len(self.words))

    def scope(self, module: Module, folder: Path, at: int, end: int) -> None:
        """Items from `at` to `end`; files of its modules lie in `folder`."""
        depth, words = 0, self.words
        while at < end:
            word = words[at]
            if word == "#" and at + 1 < end and words[at + 1] in ("[", "!"):
                behind = skip_group(words, at + 1 + (words[at + 1] == "!"))
                attribute = words[at + 2 : behind]
                if attribute[:3] in (["cfg", "(", "test"], ["cfg", "(", "all"]) and "test" in attribute[:5]:
                    while words[behind] == "#":
                        behind = skip_group(words, behind + 1)
                    at = skip_item(words, behind)
                    continue
                at += 1
            elif word == "use":
                at = self.use(module, at, depth)
            elif word == "mod" and depth == 0 and words[at + 2] == ";":
                self.child(module, folder, words[at + 1])
                at += 3
            elif word == "mod" and depth == 0 and words[at + 2] == "{":
                name, behind = words[at + 1], skip_group(words, at + 2)
                inner = module.children[name] = Module(module.file, module, inline=True)
                self.scope(inner, folder / name, at + 3, behind - 1)
                at = behind
            elif word == "macro_rules" and words[at + 1] == "!":
                module.items.add(words[at + 2])
                at += 3
            elif word in ITEMS and depth == 0:
                module.items.add(words[at + 1])
                at += 1
            elif re.match(r"[A-Za-z_$]", word):
                at = self.path(module, at, depth)
            else:
                depth += (word in CLOSING) - (word in CLOSING.values())
                at += 1

    def use(self, module: Module, at: int, depth: int) -> int:
        bound, behind = use_tree(self.words, at + 1, ())
        before = self.words[at - 1] if at else ""
        for name, path in bound:
            module.uses.setdefault(name, []).append(path)
            if depth == 0 and before in ("pub", ")"):
                module.reexports.add(name)
        return behind + 1

    def child(self, module: Module, folder: Path, name: str) -> None:
        flat, nested = folder / f"{name}.rs", folder / name / "mod.rs"
        child = module.children[name] = Module(flat if flat.exists() else nested, module)
        Reader(child, folder / name)

    def path(self, module: Module, at: int, depth: int) -> int:
        """A path in code, and the words of it."""
        words, path = self.words, [self.words[at]]
        is_member = at > 0 and words[at - 1] == "."
        at += 1
        while at + 1 < len(words) and words[at] == "::" and re.match(r"\w", words[at + 1]):
            path.append(words[at + 1])
            at += 2
        if depth == 0 and at < len(words) and words[at] == "!":
            module.has_macros = True
        if not is_member:
            module.words.add(path[0])
            if len(path) > 1:
                module.paths.add(tuple(path))
        return at


def resolve(module: Module, path: tuple[str, ...], seen: frozenset = frozenset()) -> set[Module] | None:
    """The modules that `path`, seen from `module`, leads into; None: out of the crate."""
    key = (id(module), path)
    if key in seen:
        return None
    seen |= {key}
    here, at = module, 0
    while at < len(path):
        word, first = path[at], at == 0
        if word in ("crate", "$crate"):
            here = module.root()
        elif word == "self":
            pass
        elif word == "super":
            here = here.parent or here
        elif word in here.children:
            here = here.children[word]
        elif word in here.items:
            return {here}
        elif word in here.uses:
            found = [resolve(here, (*bound, *path[at + 1 :]), seen) for bound in here.uses[word]]
            inside = [modules for modules in found if modules is not None]
            return set().union(*inside) if inside else None
        else:
            return resolve_hidden(here, path[at:], first, seen)
        at += 1
    return set()  # a module: what is used of it is seen where it is used


def resolve_hidden(here: Module, path: tuple[str, ...], first: bool, seen: frozenset) -> set[Module] | None:
    """A name that comes by a glob, or out of a macro; the first of a path may be another crate's."""
    for glob in here.uses.get("*", []):
        found = resolve(here, (*glob, *path), seen) if glob and glob[0] in ("crate", "self", "super") else None
        if found:
            return found
    if first:
        return None
    if here.has_macros or here.inline:
        return {here}
    raise Unresolved(f"{here.file}: no `{path[0]}` in it")


def uses(module: Module) -> set[Path]:
    """Files whose names the code of one module uses."""
    found: set[Module] = set()
    for name, paths in module.uses.items():
        # Re-exported names are used only where the code has them too.
        if name == "*":
            continue
        if name not in module.reexports or name in module.words:
            for path in paths:
                found |= resolve(module, path) or set()
    for path in module.paths:
        found |= resolve(module, path) or set()
    for glob in module.uses.get("*", []):
        if glob[0] in ("crate", "self", "super") and "*" not in module.reexports:
            for word in module.words - module.items - module.children.keys() - module.uses.keys():
                with suppress(Unresolved):  # a name of another scope
                    found |= resolve(module, (*glob, word)) or set()
    return {other.file for other in found} - {module.file}


def crate_of(root: Path) -> Module:
    """The crate with `root` as `lib.rs` or `main.rs`."""
    crate = Module(root)
    Reader(crate, root.parent)
    return crate


def facade(root: Path) -> set[str]:
    """Names that files of a crate import from its re-exports, which are for other crates: `FILE: NAME`."""
    crate = crate_of(root)
    return {
        f"{module.file.name}: {path[1]}"
        for module in crate.walk()
        for paths in module.uses.values()
        for path in paths
        if module is not crate and path[:1] == ("crate",) and len(path) == 2 and path[1] in crate.reexports
    }


def of_crate(root: Path) -> dict[Path, set[Path]]:
    """For each file of a crate: the files whose names it uses."""
    crate = crate_of(root)
    graph: dict[Path, set[Path]] = {}
    for module in crate.walk():
        graph.setdefault(module.file, set()).update(uses(module))
    return graph
