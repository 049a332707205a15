"""Runs every `tb/*/bench.py` in every configuration it names; with `NETLIST=1`, on their mapped netlists."""

import importlib.util
import os
from pathlib import Path

import pytest
from lib.runner import Bench, BenchError, run, synthesised


def benches() -> list:
    found = []
    for path in sorted(Path(__file__).parent.glob("*/bench.py")):
        spec = importlib.util.spec_from_file_location(f"bench_{path.parent.name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        several: list[Bench] = getattr(module, "BENCHES", [])
        for bench in several or [module.BENCH]:
            for config in bench.configs:
                name = [path.parent.name, *([bench.top] if several else [])]
                label = "-".join([*name, *(f"{k}{v}" for k, v in config.items())])
                found.append(pytest.param(path.parent.name, bench, config, id=label))
    return found


@pytest.mark.parametrize("name,bench,config", benches())
def test_bench(name: str, bench: Bench, config: dict[str, int]) -> None:
    try:
        run(name, bench, config, synthesised(bench, config) if os.environ.get("NETLIST") else None)
    except BenchError as error:
        pytest.fail(str(error), pytrace=False)
