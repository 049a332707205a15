# SPDX-License-Identifier: Apache-2.0
"""No cyclic imports, direct or indirect, in each crate, each Python package, and the live page."""

from pathlib import Path

import pytest
import rust_imports
from conftest import ROOT
from import_graph import Graph, cycles, of_python, of_typescript, rooms

CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))
PYTHON = ("python/penstock", "figures", "tb/lib", "tests", "tests/softroce", "regs", "rtl/formal", "rtl/syn")


def root_of(crate: Path) -> Path:
    return next(path for path in (crate / "src/lib.rs", crate / "src/main.rs") if path.exists())


def of_crate(crate: Path) -> Graph:
    return rust_imports.of_crate(root_of(crate))


def named(graph: Graph, root: Path) -> set[str]:
    """The cycles by the names of their files."""
    return {" > ".join(str(path.relative_to(root)) for path in cycle) for cycle in cycles(graph)}


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_crate_has_an_import_cycle(crate: Path) -> None:
    graph = of_crate(crate)
    assert set(graph) == set((crate / "src").rglob("*.rs")), "all files of the crate are read"
    assert named(graph, ROOT) == set()


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_folder_of_a_crate_uses_a_neighbour_that_uses_it(crate: Path) -> None:
    graph = of_crate(crate)
    folders = {path.parent for path in graph}
    assert {cycle for folder in folders for cycle in named(rooms(graph, folder), ROOT)} == set()


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_file_of_a_crate_imports_from_the_crate_s_re_exports(crate: Path) -> None:
    assert rust_imports.facade(root_of(crate)) == set()


def test_an_import_from_a_re_export_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\npub use a::{A, C as D};\n",
        "a.rs": "pub struct A;\npub struct C;\n",
        "b.rs": "use crate::a::A;\nuse crate::{a, D};\n",
    }
    (tmp_path / "src").mkdir()
    for name, text in files.items():
        (tmp_path / "src" / name).write_text(text)
    assert rust_imports.facade(tmp_path / "src/lib.rs") == {"b.rs: D"}


@pytest.mark.parametrize("folder", PYTHON)
def test_no_python_package_has_an_import_cycle(folder: str) -> None:
    graph = of_python(ROOT / folder)
    assert graph, "it has files"
    assert named(graph, ROOT) == set()


def test_the_live_page_has_no_import_cycle() -> None:
    graph = of_typescript(ROOT / "web/src")
    assert graph[ROOT / "web/src/main.ts"], "its imports are read"
    assert named(graph, ROOT) == set()


def planted(folder: Path, files: dict[str, str]) -> set[str]:
    """The cycles of a crate of these files."""
    for name, text in files.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return named(of_crate(folder), folder / "src")


def test_two_modules_that_use_each_other_are_a_cycle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\npub use a::A;\n",
        "a.rs": "use crate::b::{self, B};\npub struct A(B);\n",
        "b.rs": "pub struct B;\nfn of(a: &crate::A) {}\n",
    }
    assert planted(tmp_path, files) == {"a.rs > b.rs > a.rs"}


def test_a_cycle_over_three_modules_is_reported_by_their_names(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a; mod b; mod c;",
        "a.rs": "pub struct A; fn a() { crate::b::b() }",
        "b.rs": "use super::c; pub fn b() { c::c() }",
        "c.rs": "use super::a as first; pub fn c() -> first::A { first::A }",
    }
    assert planted(tmp_path, files) == {"a.rs > b.rs > c.rs > a.rs"}


def test_a_child_and_the_parent_that_uses_it_are_a_cycle(tmp_path: Path) -> None:
    files = {
        "main.rs": "mod room;\nfn main() { room::run() }\n",
        "room/mod.rs": "mod part;\npub const WIDTH: u32 = 1;\npub fn run() { part::go() }\n",
        "room/part.rs": "pub fn go() { super::WIDTH; }\n",
    }
    assert planted(tmp_path, files) == {"room/mod.rs > room/part.rs > room/mod.rs"}


def test_what_a_parent_only_declares_and_hands_on_is_no_cycle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod room;\npub use room::Part;\n",
        "room/mod.rs": "mod part;\nmod other;\npub const WIDTH: u32 = 1;\npub use part::Part;\npub use other::Other;\n",
        "room/part.rs": "use super::{Other, WIDTH};\npub struct Part([Other; WIDTH as usize]);\n",
        "room/other.rs": 'pub struct Other; // not super::Part, nor "crate::Part"\n',
    }
    assert planted(tmp_path, files) == set()


def test_what_a_crate_is_tested_by_is_no_part_of_it(tmp_path: Path) -> None:
    tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"
    files = {"lib.rs": "mod a; mod b;", "a.rs": f"pub struct A;\n{tests}", "b.rs": "pub struct B(crate::a::A);"}
    assert planted(tmp_path, files) == set()


def test_two_folders_that_use_each_other_by_other_files_are_a_cycle_of_folders(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a; mod b;",
        "a/mod.rs": "mod low; mod high; pub use low::Low;",
        "a/low.rs": "pub struct Low;",
        "a/high.rs": "use crate::b::B; struct High(B);",
        "b.rs": "use crate::a::Low; pub struct B(Low);",
    }
    assert planted(tmp_path, files) == set()
    src = tmp_path / "src"
    assert named(rooms(of_crate(tmp_path), src), src) == {"a > b.rs > a"}
    assert named(rooms(of_crate(tmp_path), src / "a"), src) == set()


def test_a_path_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    with pytest.raises(rust_imports.Unresolved, match="no `B` in it"):
        planted(tmp_path, {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B;", "b.rs": "struct C;"})


def test_modules_of_python_and_typescript_that_import_each_other_are_a_cycle(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text(f"from {tmp_path.name}.a import A\n")
    (tmp_path / "a.py").write_text("from . import b\n")
    (tmp_path / "b.py").write_text(f"def late():\n    from {tmp_path.name}.a import A\n")
    assert named(of_python(tmp_path), tmp_path) == {"a.py > b.py > a.py"}
    (tmp_path / "a.ts").write_text('import type { B } from "./b";\n')
    (tmp_path / "b.ts").write_text('export * from "./a";\n')
    assert named(of_typescript(tmp_path), tmp_path) == {"a.ts > b.ts > a.ts"}
