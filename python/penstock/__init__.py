# SPDX-License-Identifier: Apache-2.0
"""Penstock in Python: laboratories as objects, runs as tables and pictures, sweeps over parameters, the search for good
ones. Quantities are strings with their units, as in scenario files: "10Gbps", "4us", "150KB".
"""

from penstock._native import __version__
from penstock.lab import Result, Scenario, run
from penstock.points import RunError
from penstock.results import Run, Series
from penstock.sweeping import sweep
from penstock.tuning import tune

__all__ = ["Result", "Run", "RunError", "Scenario", "Series", "__version__", "run", "sweep", "tune"]
