# SPDX-License-Identifier: Apache-2.0
"""Errors of the Python package reach other processes whole: one that cannot be unpickled breaks a process pool."""

import importlib
import inspect
import pickle
import pkgutil
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))

import penstock

# The compiled half; what runs when it is imported; what needs ctapipe.
LEFT_OUT = ("_native", "__main__", "ctapipe_source")
# What an argument of this type is in the test.
SAMPLES = {"int": 7, "str": "text", "str | None": None}


def errors() -> list[type[BaseException]]:
    names = [module.name for module in pkgutil.walk_packages(penstock.__path__, "penstock.")]
    modules = [importlib.import_module(name) for name in names if name.split(".")[-1] not in LEFT_OUT]
    found = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    return sorted(
        (kind for kind in found if issubclass(kind, BaseException) and kind.__module__.startswith("penstock")),
        key=lambda kind: kind.__qualname__,
    )


def test_every_error_is_the_same_after_the_way_to_another_process() -> None:
    kinds = errors()
    assert {"RegisterError", "BoardError", "RunError", "Refused"} <= {kind.__name__ for kind in kinds}
    for kind in kinds:
        parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
        named = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        arguments = [SAMPLES[inspect.formatannotation(one.annotation)] for one in named] or ["text"]
        error = kind(*arguments)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error)), kind
        assert "text" in str(error), kind


@pytest.mark.parametrize("status", [400, 409])
def test_a_refusal_keeps_its_answer(status: int) -> None:
    from penstock.run_control import Refused

    error = pickle.loads(pickle.dumps(Refused(status, "no run", state="idle")))
    assert (error.status, error.answer, str(error)) == (status, {"error": "no run", "state": "idle"}, "no run")
