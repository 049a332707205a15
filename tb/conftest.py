# SPDX-License-Identifier: Apache-2.0
"""Longest tests first, so that no core waits for a late test; benches that have passed before are left out."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lib import bench_texts, models, rtl, runner

TOPS = rtl.RTL / "top"
PASSED: dict[str, str] = {}  # benches that have passed now, with their fingerprints


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "leave out what tb/passed.json has with the texts and tools that are here"
    parser.addoption("--changed", action="store_true", help=about)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("changed"):
        rtl.generate()
        before = bench_texts.RECORD.passed()
        left = [item for item in items if bench_of(item) in before.items()]
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)
    in_order(items)


def bench_of(item: pytest.Item) -> tuple[str, str | None] | None:
    """The label and the fingerprint of a bench's run, or of a comparison with a model; None of another test."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if "bench" in parameters:
        return item.callspec.id, bench_texts.fingerprint(parameters["name"], parameters["bench"], parameters["config"])
    if equality := getattr(getattr(item.module, "equality", None), "EQUALITY", None):
        return item.nodeid, bench_texts.of_equality(item.path.parent.name, equality)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Notes the fingerprint of a bench that nobody has edited while it ran."""
    with models.alone(runner.TB / "setup"):
        rtl.generate()
    bench_texts.read_again()
    before = bench_of(item)
    result = yield
    bench_texts.read_again()
    if before and before[1] and bench_of(item) == before:
        item.user_properties.append(before)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.passed and report.when == "call" and report.nodeid.startswith("tb/"):
        PASSED.update(report.user_properties)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Of processes that share the tests the one that all report to keeps what has passed."""
    if PASSED and not hasattr(session.config, "workerinput"):
        import test_benches

        benches = [parameters.id for parameters in test_benches.benches()]
        comparisons = [
            name for name in bench_texts.RECORD.passed() if (bench_texts.REPO / name.split("::")[0]).is_file()
        ]
        bench_texts.RECORD.add(PASSED, [*benches, *comparisons, *PASSED])


def in_order(items: list[pytest.Item]) -> None:
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
