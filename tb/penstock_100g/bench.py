# SPDX-License-Identifier: Apache-2.0
"""The 100G front end behind a hard MAC keeps every promise of `lib/front_end.py`."""

from lib.front_end import ALL
from lib.runner import Bench

BENCH = Bench(top="penstock_100g", configs=[{"N_QP": 4, "RING_BYTES": 262144, "SLOTS": 128}])

globals().update({test.name: test for test in ALL})
