# SPDX-License-Identifier: Apache-2.0
"""The three front ends with the parameters that their benches share, so that each is built once for all of them.

A bench of the front ends says `BENCHES = TOPS`: its tests hold at every rate and width, or are no promise.
"""

from lib.runner import Bench

TOPS = [
    Bench(top="penstock_10g", configs=[{"N_QP": 4, "RING_BYTES": 65536, "SLOTS": 64}]),
    Bench(top="penstock_25g", configs=[{"N_QP": 16, "RING_BYTES": 65536, "SLOTS": 64}]),
    Bench(top="penstock_100g", configs=[{"N_QP": 4, "RING_BYTES": 262144, "SLOTS": 128}]),
]
