# SPDX-License-Identifier: Apache-2.0
"""The front ends at 10, 25 and 100 Gb/s with the parameters that their benches share: each is built once.

A bench of the front ends has `BENCHES = TOPS`: its tests must hold at every rate and width. The front end at 1 Gb/s has
the same core at 64 bits; the promises of `lib/front_end.py` are tested on it as well.

That at 25 Gb/s is the one at 10 Gb/s with a faster clock and more queue pairs. So benches of what lies behind the line
take `BENCHES = WIDTHS`: 25 Gb/s is among them with `PENSTOCK_ALL_SIZES=1` (`make soak`).
"""

import os

from lib.runner import Bench

TOPS = [
    Bench(top="penstock_xgmii", configs=[{"CLK_KHZ": 156_250, "N_QP": 4, "RING_BYTES": 65536, "SLOTS": 64}]),
    Bench(top="penstock_xgmii", configs=[{"CLK_KHZ": 390_625, "N_QP": 16, "RING_BYTES": 65536, "SLOTS": 64}]),
    Bench(top="penstock_100g", configs=[{"CLK_KHZ": 322_266, "N_QP": 4, "RING_BYTES": 262144, "SLOTS": 128}]),
]
WIDTHS = TOPS if os.environ.get("PENSTOCK_ALL_SIZES") else [TOPS[0], TOPS[2]]
GIGABIT = Bench(top="penstock_1g", configs=[{"CLK_KHZ": 62_500, "N_QP": 4, "RING_BYTES": 65536, "SLOTS": 64}])
