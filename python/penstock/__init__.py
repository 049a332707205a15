# SPDX-License-Identifier: Apache-2.0
"""Penstock in Python: runs as tables and pictures, sweeps over parameters, the search for good ones."""

from penstock.points import RunError
from penstock.results import Run, Series
from penstock.sweeping import sweep
from penstock.tuning import tune

__all__ = ["Run", "RunError", "Series", "sweep", "tune"]
