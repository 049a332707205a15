# SPDX-License-Identifier: Apache-2.0
"""A netlist is proved equal to its design, and one LUT that differs is found."""

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "rtl" / "syn"), str(REPO / "tb" / "lib")]

import equivalence  # noqa: E402
import yosys  # noqa: E402


def test_a_netlist_equals_its_design():
    assert "Equivalence successfully proven!" in equivalence.prove("arbiter_rr", {})


def test_a_lut_with_another_table_is_found(monkeypatch):
    right = yosys.synthesise
    fault = "setparam -set INIT 16'h0000 t:LUT4"
    monkeypatch.setattr(yosys, "synthesise", lambda top, *options: [*right(top, *options), fault])
    with pytest.raises(yosys.YosysError, match=r"Found \d+ unproven"):
        equivalence.prove("arbiter_rr", {})


def test_an_unknown_block_is_refused_with_those_that_there_are(capsys):
    assert equivalence.main(["penstock_core"]) == 2
    assert "no block penstock_core; there are arbiter_rr, axis_register" in capsys.readouterr().err
