# SPDX-License-Identifier: Apache-2.0
"""Penstock in Python: laboratories as objects, runs as tables and plots, parameter sweeps, and the search for good
parameters. Quantities are strings with their units, as in scenario files: "10Gbps", "4us", "150KB".
"""

from penstock.lab import Scenario, run
from penstock.points import RunError
from penstock.results import Run, Series
from penstock.sweeping import sweep
from penstock.tuning import tune

__all__ = ["Run", "RunError", "Scenario", "Series", "run", "sweep", "tune"]


def __getattr__(name: str) -> str:
    if name == "__version__":  # of the compiled half, which sweeps and searches do without
        from penstock import _native

        return _native.__version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
