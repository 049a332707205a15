# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: the built command, a run of it with its results, the recorded data."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/softroce"))

from soft_roce import image, joined, machine  # noqa: E402, F401
from veth import Network, allowed, ended, no_xdp  # noqa: E402

SCENARIO = ROOT / "scenarios/incast-3.toml"
DATA = ROOT / "data/lst1_run2008/modules.npz"
TIMEOUT_S = 1200  # a run that hangs fails its test instead of the whole session, on a machine under load, too

# At the line rate an event takes 0.25 ms of simulated time; with the limiter's slow recovery it takes ten times that.
FAST = ("cc.law=off",)


def pytest_configure() -> None:
    """Tests that are terminated end their processes and namespaces, as after Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@dataclass(frozen=True)
class Run:
    """One finished run of `penstock run` and its folder of results."""

    status: int
    stdout: str
    stderr: str
    out: Path

    def summary(self) -> dict:
        return json.loads((self.out / "summary.json").read_text())

    def events(self) -> pa.Table:
        return pq.read_table(self.out / "events.parquet")

    def trace(self) -> pa.Table:
        return pq.read_table(self.out / "trace.parquet")

    def of_boards(self, key: str) -> list:
        """One value of the summary per board; `counters.x` looks into the gateware's counters."""
        *inner, last = key.split(".")
        boards = self.summary()["boards"]
        return [(board[inner[0]] if inner else board)[last] for board in boards]


class Penstock:
    """The `penstock` command."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def command(self, out: Path, *settings: str, scenario: Path = SCENARIO, options: tuple[str, ...] = ()) -> list[str]:
        sets = [word for setting in settings for word in ("--set", setting)]
        return [str(self.binary), "run", str(scenario), "--out", str(out), *options, *sets]

    def run(
        self, out: Path, *settings: str, scenario: Path = SCENARIO, options: tuple[str, ...] = ("--no-plots",)
    ) -> Run:
        """Runs a scenario to its end."""
        command = self.command(out, *settings, scenario=scenario, options=options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        return Run(done.returncode, done.stdout, done.stderr, out)

    def start(self, out: Path, *settings: str) -> subprocess.Popen[str]:
        """Starts a scenario and leaves it running."""
        command = self.command(out, *settings, options=("--no-plots",))
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def shared_fixtures(item: pytest.Item) -> set[str]:
    """The fixtures of a whole module that a test uses, each with its file and parameter."""
    indices = item.callspec.indices if hasattr(item, "callspec") else {}
    used = {name: found[-1] for name, found in item._fixtureinfo.name2fixturedefs.items()}  # type: ignore[attr-defined]
    shared = [name for name, fixture in used.items() if fixture.scope == "module"]
    return {f"{item.path.stem}-{name}{indices.get(name, '')}" for name in shared}


def connected(sets: Iterable[set[str]]) -> list[set[str]]:
    """These sets, those that have something in common as one."""
    groups: list[set[str]] = []
    for some in sets:
        whole = some.union(*(group for group in groups if group & some))
        groups = [group for group in groups if not group & some] + [whole]
    return groups


# Before xdist reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A fixture of a whole module costs a run of the command, a model or a machine: one process makes it, for all tests.
    shared = {item: shared_fixtures(item) for item in items}
    name_of = {name: min(group) for group in connected(filter(None, shared.values())) for name in group}
    for item in items:
        if shared[item]:
            item.add_marker(pytest.mark.xdist_group(name_of[min(shared[item])]))
        # Two verilated boards each, which take all that two cores have: one after the other.
        if item.path.stem.startswith(("test_farm", "test_campaign")):
            item.add_marker(pytest.mark.xdist_group("farm"))


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of release binaries and examples, built from the tree under test.

    All targets at once: then cargo finds what `cargo test --release --workspace` has built, instead of building the
    dependencies again with other features. `PENSTOCK_BUILT` names a folder of binaries to be tested instead.
    """
    if given := os.environ.get("PENSTOCK_BUILT"):
        return Path(given)
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "--workspace", "--all-targets"]
    cargo += ["--features", "penstock-cli/gpu"]
    result = subprocess.run(cargo, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.fail(f"`{' '.join(cargo)}` ended with {result.returncode}:\n{result.stderr[-4000:]}", pytrace=False)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


@pytest.fixture(scope="session")
def namespaces() -> None:
    """This machine lets the tests make network namespaces."""
    missing = [name for name in ("ip", "ping") if not shutil.which(name)]
    if missing:
        pytest.fail(f"no {' and no '.join(missing)} here: `make setup` gets iproute2 and iputils-ping", pytrace=False)
    if not allowed():
        pytest.fail("network namespaces need root, on a machine that allows them", pytrace=False)


@pytest.fixture(scope="session")
def penstock(built: Path) -> Penstock:
    """The `penstock` command."""
    return Penstock(built / "penstock")


@pytest.fixture(scope="session")
def all_tops() -> Penstock:
    """The command with every front end."""
    folder = ROOT / "target/all-tops"
    build = ["cargo", "build", "--release", "--locked", "-p", "penstock-cli", "--features", "all-tops"]
    subprocess.run([*build, "--target-dir", folder], cwd=ROOT, check=True)
    return Penstock(folder / "release/penstock")


@pytest.fixture(scope="session")
def recorded() -> np.ndarray:
    """The recorded modules as their electronics sent them, read by NumPy alone: (events, modules, 1142) bytes."""
    arrays = np.load(DATA)
    counters, samples = arrays["counters"], arrays["frag"]
    return np.concatenate([counters, samples.reshape(*counters.shape[:2], -1).view(np.uint8)], axis=2)


@pytest.fixture(params=["ring", "xdp"])
def either_socket(network: Network, request: pytest.FixtureRequest) -> str:
    """The network's receivers use one socket of the packet back end, then the other.

    Where the kernel cannot do AF_XDP, a receiver that must use it is refused with the reason, and the test goes on with
    what it takes instead.
    """
    network.socket = request.param
    if request.param == "xdp" and (reason := no_xdp()):
        refused = ended(network.recv("10.77.1.1"))
        assert refused.status == 2 and reason in refused.stderr, refused
        network.socket = "auto"
    return request.param


@pytest.fixture
def network(namespaces: None, built: Path, tmp_path: Path):
    """A server and 64 boards' addresses, in two namespaces."""
    network = Network(built / "penstock", tmp_path / "state")
    try:
        network.make(64)
        yield network
    finally:
        network.delete()


@pytest.fixture
def wire(namespaces: None, built: Path, tmp_path: Path):
    """A veth pair whose board's end has no address: those of emulated boards are not the kernel's."""
    network = Network(built / "penstock", tmp_path / "state", name=f"wire{os.getpid()}")
    try:
        network.make(0)
        yield network
    finally:
        network.delete()
