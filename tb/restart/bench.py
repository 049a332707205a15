# SPDX-License-Identifier: Apache-2.0
"""Every reset of every top, at random moments amid traffic, alone and together, with memories and peers that stay up.

Whatever a reset cuts, no byte at a peer differs from what was given for its place, and what is given after the reset
is delivered whole. `make soak` has all front ends, with `PENSTOCK_ALL_SIZES=1`.
"""

import os
from pathlib import Path

from lib.event_board import TIMED
from lib.runner import Bench
from lib.tops import WIDTHS
from restart import events, front_end
from restart.events import resets_of_inputs_and_front_end_give_no_event_the_samples_of_another
from restart.front_end import resets_of_front_end_and_memory_at_any_moment_change_no_byte
from restart.limiter import resets_of_the_limiter_change_no_byte_that_passes
from restart.switch import resets_of_the_switch_let_no_wrong_frame_through

BENCHES_FOLDER = Path(__file__).parents[1]
SWITCH = BENCHES_FOLDER / "penstock_switch" / "penstock_switch_lines.sv"
SWITCH_1G = BENCHES_FOLDER / "switch_management" / "penstock_switch_1g_lines.sv"
BENCHES = [
    Bench("penstock_xgmii", [{"CLK_KHZ": 156_250, **front_end.PARAMETERS}]),
    Bench("penstock_xgmii", [{"CLK_KHZ": 156_250, **events.PARAMETERS}]),
    Bench("penstock_xgmii", [{**WIDTHS[0].configs[0], **TIMED}]),
    Bench("penstock_switch_lines", [{"MANAGEMENT": 1}], [SWITCH]),
    Bench("penstock_switch_1g_lines", sources=[SWITCH_1G]),
    Bench("penstock_dcqcn", [{"DATA_W": 64}]),
]
if os.environ.get("PENSTOCK_ALL_SIZES"):
    BENCHES += [
        Bench("penstock_1g", [{"CLK_KHZ": 62_500, **front_end.PARAMETERS}]),
        Bench("penstock_100g", [{"CLK_KHZ": 322_266, **front_end.PARAMETERS}]),
    ]
__all__ = [
    "resets_of_front_end_and_memory_at_any_moment_change_no_byte",
    "resets_of_inputs_and_front_end_give_no_event_the_samples_of_another",
    "resets_of_the_limiter_change_no_byte_that_passes",
    "resets_of_the_switch_let_no_wrong_frame_through",
]
