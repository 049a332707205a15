# SPDX-License-Identifier: Apache-2.0
"""Ten million frames into four queues give the same samples and feedback in gateware and model."""

import importlib.util
import os
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("congestion_point", Path(__file__).parent / "equality.py")
equality = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(equality)


def test_gateware_and_model_sample_the_same_frames_with_the_same_feedback() -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", "1"))
    frames = int(os.environ.get("PENSTOCK_CC_EVENTS", "10000000"))
    print(equality.run(seed, frames))
