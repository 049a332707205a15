# SPDX-License-Identifier: Apache-2.0
"""The front end at 1 Gb/s keeps every promise of `lib/front_end.py`, over its GMII with three clocks."""

from lib.front_end import ALL
from lib.tops import GIGABIT

BENCH = GIGABIT

globals().update({test.name: test for test in ALL})
