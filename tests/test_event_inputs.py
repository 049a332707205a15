# SPDX-License-Identifier: Apache-2.0
"""A front end with too many detector inputs, an invalid event size or an unknown hook is rejected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tb" / "lib"))

from toolchain import verilator_root  # noqa: E402

import rtl  # noqa: E402


def elaborate(top: str, **parameters: int) -> str:
    """What Verilator says of a top with these parameters when it ends with an error."""
    rtl.generate()
    root = verilator_root()
    command = [root / "bin" / "verilator_bin", "--lint-only", "--timing", "--top-module", top]
    command += [f"-G{name}={value}" for name, value in parameters.items()]
    command += [*rtl.options(), *rtl.packages(), *rtl.module(top)]
    result = subprocess.run(
        command, env={**os.environ, "VERILATOR_ROOT": str(root)}, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    return result.stderr


@pytest.mark.parametrize("top", ["penstock_xgmii", "penstock_100g"])
def test_more_inputs_than_sixteen_end_elaboration_with_the_range(top):
    assert "N_IN is 17; it must be 0 (no inputs) to 16" in elaborate(top, N_IN=17)


@pytest.mark.parametrize("size", [0, 100, 8388608 + 64])
def test_an_event_size_that_no_build_can_have_ends_elaboration_with_the_range(size):
    text = elaborate("penstock_xgmii", N_IN=2, EVENT_BYTES=size)
    assert f"EVENT_BYTES is {size}; it must be a multiple of 64, from 64 to 8388608" in text


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"HOOK": 3, "N_IN": 2},
            "HOOK is 3 with N_IN 2; it must be 0, or with inputs 1 (zero suppression) or 2",
        ),
        ({"HOOK": 1}, "HOOK is 1 with N_IN 0; it must be 0, or with inputs 1 (zero suppression) or 2"),
        ({"STREAMING": 2, "N_IN": 2, "TIMING": 1}, "STREAMING is 2 with TIMING 1; it must be 0, or 1 with TIMING 1"),
        ({"STREAMING": 1, "N_IN": 2}, "STREAMING is 1 with TIMING 0; it must be 0, or 1 with TIMING 1"),
    ],
)
def test_a_hook_or_slices_that_no_build_can_have_end_elaboration_with_what_is_possible(parameters, message):
    assert message in elaborate("penstock_xgmii", **parameters)


def test_a_build_with_a_module_of_the_users_needs_that_module():
    assert "user_hook" in elaborate("penstock_xgmii", N_IN=1, HOOK=2)
