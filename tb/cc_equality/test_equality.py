# SPDX-License-Identifier: Apache-2.0
"""Ten million random events under each law leave gateware and model with the same state, bit for bit."""

import importlib.util
import os
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("cc_equality", Path(__file__).parent / "equality.py")
equality = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(equality)


@pytest.mark.parametrize("law", equality.LAWS)
def test_gateware_and_model_agree_on_every_bit(law: str) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", "1"))
    events = int(os.environ.get("PENSTOCK_CC_EVENTS", "10000000"))
    print(equality.run(law, seed, events))
