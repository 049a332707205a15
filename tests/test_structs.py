# SPDX-License-Identifier: Apache-2.0
"""The structs of the gateware as the benches use them (`tb/lib/structs.py`): read from the packages."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tb"))

from lib import rtl, structs

rtl.generate()


def test_fields_lie_where_the_package_puts_them():
    assert structs.width("cpl_t") == 64
    assert structs.fields("cpl_t") == {"tag": (32, 32), "reserved": (16, 16), "status": (8, 8), "qp": (0, 8)}
    assert structs.pack("cpl_t", tag=0x12345678, qp=0xFF, status=5) == 0x12345678_0000_05FF


def test_fields_of_a_struct_in_a_struct_are_named_with_a_dot():
    word = structs.pack("cc_status_t", choice__group=3, cnp_handled=7)
    assert word == 3 << 34 | 7
    found = structs.unpack("cc_status_t", word)
    assert (found["choice.group"], found["choice.law"], found["cnp_handled"]) == (3, 0, 7)


def test_a_value_that_does_not_fit_is_refused_with_its_field():
    with pytest.raises(ValueError, match=r"cpl_t\.qp = 256 does not fit 8 bits"):
        structs.pack("cpl_t", qp=256)


def test_a_name_of_two_packages_needs_the_package():
    with pytest.raises(KeyError, match="penstock_regblock_pkg::facts_t and roce_tx_pkg::facts_t"):
        structs.fields("facts_t")
    assert "upto" in structs.fields("roce_tx_pkg::facts_t")
