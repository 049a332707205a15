# SPDX-License-Identifier: Apache-2.0
"""The smallest and the largest number of queue pairs carry data from the first and the last of them."""

from lib.front_end import SHORT
from lib.runner import Bench

BENCH = Bench(
    top="penstock_10g",
    configs=[
        {"N_QP": 1, "RING_BYTES": 65536, "SLOTS": 64},
        {"N_QP": 256, "RING_BYTES": 16384, "SLOTS": 16},
    ],
)

globals().update({test.name: test for test in SHORT})
