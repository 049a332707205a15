# SPDX-License-Identifier: Apache-2.0
"""The import graph of the files of a Python package or of the live page, and its cycles."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

Graph = dict[Path, set[Path]]


def of_python(folder: Path) -> Graph:
    """The Python files of `folder`: a package that imports itself by its name, or modules that import each other's."""
    files = {folder.name if path.stem == "__init__" else path.stem: path for path in folder.glob("*.py")}
    uses = {path: {files[name] for name in imported(path, folder.name) if name in files} for path in files.values()}
    return {path: used - {path} for path, used in uses.items()}


def imported(path: Path, package: str) -> Iterator[str]:
    """Names of modules of the package, wherever in the file they are imported."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.ImportFrom):
            module = [*([package] if node.level else []), *(node.module or "").split(".")]
            inside = [name for name in module if name]
            if inside == [package]:
                yield from (alias.name for alias in node.names)
            elif inside:
                yield inside[1] if inside[0] == package else inside[0]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                yield rest[0] if rest and first == package else first


def of_typescript(folder: Path) -> Graph:
    """The TypeScript files of `folder`; their imports begin with `./`; types count too."""
    files = set(folder.glob("*.ts"))
    graph = {}
    for path in files:
        names = re.findall(r"""(?:from|import)\s*\(?\s*["']\./([\w./-]+)["']""", path.read_text())
        graph[path] = {folder / f"{name}.ts" for name in names} & files
    return graph


def cycles(graph: Graph) -> list[list[Path]]:
    """One shortest cycle of each knot: of each set of files in which every one reaches every other one."""
    reach = {path: reached(graph, path) for path in graph}
    knots = {frozenset(other for other in reach[path] if path in reach[other]) for path in graph if path in reach[path]}
    return sorted(shortest_cycle(graph, knot) for knot in knots)


def rooms(graph: Graph, folder: Path) -> Graph:
    """What lies directly in `folder`: its files, and each of its folders as one; not the file that declares them."""
    inside = {path: folder / path.relative_to(folder).parts[0] for path in graph if path.is_relative_to(folder)}
    inside = {path: room for path, room in inside.items() if room.name not in ("mod.rs", "lib.rs", "main.rs")}
    found: Graph = {room: set() for room in inside.values()}
    for path, room in inside.items():
        found[room] |= {inside[used] for used in graph[path] if used in inside} - {room}
    return found


def reached(graph: Graph, start: Path) -> set[Path]:
    found: set[Path] = set()
    ahead = list(graph[start])
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += graph[path]
    return found


def shortest_cycle(graph: Graph, knot: frozenset[Path]) -> list[Path]:
    """The files of the shortest cycle in a knot, the first one repeated at the end."""
    found = (way_back(graph, knot, path) for path in sorted(knot))
    return min(found, key=len)


def way_back(graph: Graph, knot: frozenset[Path], start: Path) -> list[Path]:
    ways = [[start]]
    seen: set[Path] = set()
    for way in ways:
        for path in sorted(graph[way[-1]] & knot):
            if path == start:
                return [*way, start]
            if path not in seen:
                seen.add(path)
                ways.append([*way, path])
    raise AssertionError(f"{start} is in no cycle")
