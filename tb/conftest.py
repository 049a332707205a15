# SPDX-License-Identifier: Apache-2.0
"""Longest tests first, so that no core waits for a late test; benches of one model do not run in parallel."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lib import rtl

TOPS = rtl.RTL / "top"


def pytest_collection_modifyitems(items: list) -> None:
    """Whole front ends, end-to-end runs, the rest; what shares a model with another comes after it."""
    built = set()

    def rank(item) -> int:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "bench" not in parameters:
            return 2 if item.path.stem == "test_run" else 4
        model = parameters["bench"].model(parameters["config"])
        if not (TOPS / f"{parameters['bench'].top}.sv").exists():
            return 3
        again = model in built
        built.add(model)
        return 1 if again else 0

    ranks = {item: rank(item) for item in items}
    items.sort(key=ranks.__getitem__)
