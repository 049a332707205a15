# SPDX-License-Identifier: Apache-2.0
"""A mapped netlist does what its RTL does, from unknown registers and memories; faults planted in it are found.

One small block with block RAM, for `make test`; whole front ends are `make netlist`.
"""

import re
from pathlib import Path

import pytest
from lib.netlist import Netlist, synthesised
from lib.runner import Bench, BenchError, run

pytestmark = pytest.mark.xdist_group("netlist")  # they build and run in one folder, so one process runs them all

NAME, CONFIG = "block_fifo", {"W": 32, "DEPTH": 4}
BENCH = Bench(top=NAME, configs=[CONFIG])


@pytest.fixture(scope="module")
def mapped() -> Path:
    return synthesised(BENCH.top, CONFIG)


def planted(fault: str, mapped: Path, folder: Path, pattern: str, new: str) -> Netlist:
    """The netlist with a fault, the first match of a pattern replaced, in four states."""
    text, found = re.subn(pattern, new, mapped.read_text(), count=1)
    assert found, f"{mapped} has no {pattern}"
    changed = folder / f"{NAME}_{fault}.v"
    changed.write_text(text)
    return Netlist(changed, four_state=True)


def test_no_unknown_value_leaves_a_fifo_whose_memory_and_registers_begin_unknown(mapped: Path) -> None:
    run(NAME, BENCH, CONFIG, Netlist(mapped, four_state=True))


def test_a_lut_with_another_content_is_found(mapped: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="it_agrees_with_a_queue"):
        run(NAME, BENCH, CONFIG, planted("lut", mapped, tmp_path, r"LUT2 #\(\s*\.INIT\(4'h.", "LUT2 #(.INIT(4'h0"))


def test_a_register_without_its_reset_is_found(mapped: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="it_agrees_with_a_queue"):
        run(NAME, BENCH, CONFIG, planted("reset", mapped, tmp_path, r"\.R\(rst\)", ".R(1'b0)"))
