# SPDX-License-Identifier: Apache-2.0
"""The front end at 2.5 Gb/s keeps every promise of `lib/front_end.py`, over two PCS and code groups between them."""

from lib import basex
from lib.front_end import ALL
from lib.runner import Bench

BENCH = Bench(
    top="penstock_basex",
    configs=[{"CLK_KHZ": 39_062, "N_QP": 4, "RING_BYTES": 65536, "SLOTS": 64}],
    sources=[basex.front_end()],
)

globals().update({test.name: test for test in ALL})
