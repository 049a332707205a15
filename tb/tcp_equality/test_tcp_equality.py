# SPDX-License-Identifier: Apache-2.0
"""Ten million random events leave gateware and model with the same rows and the same actions, bit for bit."""

import importlib.util
import os
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("tcp_equality", Path(__file__).parent / "equality.py")
equality = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(equality)


def test_gateware_and_model_agree_on_every_bit() -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", "1"))
    events = int(os.environ.get("PENSTOCK_TCP_EVENTS", "10000000"))
    print(equality.run(seed, events))
