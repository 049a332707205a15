# SPDX-License-Identifier: Apache-2.0
"""`penstock.core`: FuseSoC reads it, sets up each of its targets, and it names every file of the gateware."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "tools"), str(REPO / "tb" / "lib")]

import write_core  # noqa: E402

import rtl  # noqa: E402

SCRIPTS = {"lint": "*.vc", "kcu105": "*.tcl", "vcu118": "*.tcl", "mpf300_eval": "*.tcl"}
SCRIPTS |= {"ecpix5": "*.tcl", "versa_ecp5": "*.tcl"}


def fusesoc(*arguments: str, folder: Path) -> str:
    """Runs FuseSoC over this repository, in a folder where it may leave what it likes."""
    command = [Path(sys.executable).with_name("fusesoc"), "--cores-root", REPO, *arguments]
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_the_core_file_is_what_the_folders_say():
    rtl.generate()
    assert write_core.CORE.read_text() == write_core.text(), "stale: run .venv/bin/python tools/write_core.py"


def test_fusesoc_knows_the_core_and_its_targets(tmp_path):
    shown = fusesoc("core", "show", "penstock", folder=tmp_path)
    assert all(target in shown for target in ("default", *SCRIPTS))


@pytest.mark.parametrize("target", SCRIPTS)
def test_a_target_is_set_up_with_all_its_files(target, tmp_path):
    rtl.generate()
    build = str(tmp_path / "build")
    fusesoc("run", f"--target={target}", "--setup", "--build-root", build, "penstock", folder=tmp_path)
    script = "".join(path.read_text() for path in (tmp_path / "build").rglob(SCRIPTS[target]))
    top = "penstock_xgmii" if target == "lint" else target
    wanted = ["penstock_pkg", "penstock_regblock", "penstock_core", top]
    assert [name for name in wanted if f"{name}.sv" not in script] == []
    assert script.index("penstock_regs_pkg.sv") < script.index("penstock_core.sv")
