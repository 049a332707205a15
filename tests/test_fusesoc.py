# SPDX-License-Identifier: Apache-2.0
"""`penstock.core`: FuseSoC reads it, sets up each of its targets, and it names every file of the gateware.

FuseSoC works in a copy of the committed files, where nothing is generated: a clean clone.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "tools"), str(REPO / "tb" / "lib")]

import write_core  # noqa: E402
from toolchain import verilator_root  # noqa: E402

SCRIPTS = {"lint": "*.vc", "kcu105": "*.tcl", "vcu118": "*.tcl", "mpf300_eval": "*.tcl"}
SCRIPTS |= {"ecpix5": "*.tcl", "versa_ecp5": "*.tcl", "versa_basex": "*.tcl"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git has, with what is being worked on."""
    folder = tmp_path_factory.mktemp("clone")
    names = subprocess.check_output(["git", "ls-files", "rtl", "regs", "tools", "penstock.core"], cwd=REPO, text=True)
    for name in names.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, folder / name)
    return folder


def fusesoc(clone: Path, *arguments: str, folder: Path) -> str:
    """Runs FuseSoC over the clone, in a folder where it may leave what it likes."""
    programs = Path(sys.executable).parent
    path = os.pathsep.join([str(programs), str(verilator_root() / "bin"), os.environ["PATH"]])
    command = [programs / "fusesoc", "--cores-root", clone, *arguments]
    environment = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
    result = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_the_core_file_is_that_of_the_folders():
    assert write_core.CORE.read_text() == write_core.text(), "stale: run .venv/bin/python tools/write_core.py"


def test_fusesoc_finds_the_core_and_its_targets(clone, tmp_path):
    shown = fusesoc(clone, "core", "show", "penstock", folder=tmp_path)
    assert all(target in shown for target in ("default", *SCRIPTS))


@pytest.mark.parametrize("target", SCRIPTS)
def test_a_target_is_set_up_with_all_its_files(clone, target, tmp_path):
    build = str(tmp_path / "build")
    fusesoc(clone, "run", f"--target={target}", "--setup", "--build-root", build, "penstock", folder=tmp_path)
    script = "".join(path.read_text() for path in (tmp_path / "build").rglob(SCRIPTS[target]))
    top = "penstock_xgmii" if target == "lint" else target
    expected = ["penstock_pkg", "penstock_regblock", "penstock_core", top]
    assert [name for name in expected if f"{name}.sv" not in script] == []
    assert script.index("penstock_regs_pkg.sv") < script.index("cc_pkg.sv") < script.index("penstock_core.sv")
    assert not (clone / "build").exists()


def test_the_lint_target_runs(clone, tmp_path):
    fusesoc(clone, "run", "--target=lint", "--build-root", str(tmp_path / "build"), "penstock", folder=tmp_path)
