# SPDX-License-Identifier: Apache-2.0
"""The 25G front end keeps every promise of `lib/front_end.py`."""

from lib.front_end import ALL
from lib.runner import Bench

BENCH = Bench(top="penstock_25g", configs=[{"N_QP": 16, "RING_BYTES": 65536, "SLOTS": 64}])

globals().update({test.name: test for test in ALL})
