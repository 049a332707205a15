# SPDX-License-Identifier: Apache-2.0
"""Cargo compiles no crate again for what Python writes beside its sources."""

from pathlib import Path

import pytest


def test_no_build_script_watches_a_folder_of_python_files(built: Path) -> None:
    """The compiled modules appear there with the first call, even that of the build script itself."""
    if not (built / "build").is_dir():
        pytest.skip(f"{built} is no folder of cargo's")
    last_runs: dict[str, Path] = {}
    for output in sorted((built / "build").glob("penstock-*/output"), key=lambda path: path.stat().st_mtime):
        last_runs[output.parent.name.rpartition("-")[0]] = output
    assert {"penstock-board", "penstock-cc", "penstock-ipbus"} <= last_runs.keys()
    for package, output in last_runs.items():
        lines = [line.partition("=") for line in output.read_text().splitlines()]
        watched = [Path(value) for key, _, value in lines if key == "cargo::rerun-if-changed"]
        folders = [path for path in watched if path.is_dir() and list(path.glob("*.py"))]
        assert not folders, f"{package} watches {folders}"
