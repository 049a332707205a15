"""Runs every `tb/*/bench.py` in every configuration it names; with `NETLIST=1` or `x`, on their netlists."""

import importlib.util
import os
from pathlib import Path

import pytest
from lib.netlist import Netlist, NetlistError, synthesised
from lib.runner import Bench, BenchError, run


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


def netlist(bench: Bench, config: dict[str, int]) -> Netlist | None:
    """What the bench runs on instead of the RTL, if the environment says so: `NETLIST=1`, or `NETLIST=x`, four states.

    A bench that looks inside its top has nothing to look at in a netlist.
    """
    netlist = os.environ.get("NETLIST")
    if not netlist:
        return None
    if netlist not in ("1", "x"):
        pytest.fail(f"NETLIST={netlist}: allowed are 1 (Verilator, X is random) and x (Icarus, four states)")
    if bench.inside:
        pytest.skip(f"looks at {', '.join(bench.inside)}")
    return Netlist(synthesised(bench.top, config, *bench.sources[-1:]), four_state=netlist == "x")


@pytest.mark.parametrize("name,bench,config", benches())
def test_bench(name: str, bench: Bench, config: dict[str, int]) -> None:
    try:
        run(name, bench, config, netlist(bench, config))
    except (BenchError, NetlistError) as error:
        pytest.fail(str(error), pytrace=False)
