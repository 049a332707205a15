# SPDX-License-Identifier: Apache-2.0
"""How tests are spread over processes: what a module shares is made once, in one of them."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, connected

SHARED = """
import pytest
from pathlib import Path

@pytest.fixture(scope="module")
def costly():
    with Path(__file__).with_suffix(".made").open("a") as made:
        made.write("once\\n")

@pytest.fixture(scope="module")
def result(costly):
    pass

@pytest.mark.parametrize("number", range(6))
def test_first(number, costly): pass

@pytest.mark.parametrize("number", range(6))
def test_second(number, result): pass
"""


def test_a_fixture_of_a_module_is_made_once_whatever_the_number_of_processes(tmp_path: Path) -> None:
    files = [tmp_path / "test_one.py", tmp_path / "test_other.py"]
    for file in files:
        file.write_text(SHARED)
    options = ["-q", "-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "-p", "conftest", *files]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "24 passed" in done.stdout, done.stdout + done.stderr
    assert [file.with_suffix(".made").read_text() for file in files] == ["once\n"] * 2


def test_fixtures_that_one_test_uses_together_are_of_one_group() -> None:
    groups = connected([{"a"}, {"b", "c"}, {"d"}, {"a", "b"}])
    assert sorted(map(sorted, groups)) == [["a", "b", "c"], ["d"]]
