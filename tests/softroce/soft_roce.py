# SPDX-License-Identifier: Apache-2.0
"""The Soft-RoCE machine as fixtures, imported by `tests/conftest.py`: built if necessary, restored once per module."""

import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import build
import pytest
from kernel import ImageError
from machine import Image, Machine, MachineError
from veth import Network, first_board

BOARDS = 8
RELAY = Path(__file__).with_name("relay.py")


@pytest.fixture(scope="session")
def image(built: Path) -> Image:
    """The image with the programs of the tree under test."""
    if platform.machine() != "x86_64" or shutil.which("apt-get") is None:
        pytest.fail("the Soft-RoCE machine is made of Debian packages for x86-64: run its tests there", pytrace=False)
    try:
        return build.build(built)
    except (ImageError, MachineError) as error:
        pytest.fail(f"no Soft-RoCE machine: {error}", pytrace=False)


@pytest.fixture(scope="module")
def machine(image: Image) -> Iterator[Machine]:
    """A running machine, shared by all tests of a module: leave it as you found it.

    It takes a second to restore one, and an emulated processor costs the others' time while it idles.
    """
    with Machine(image) as running:
        yield running


@pytest.fixture
def joined(
    namespaces: None, machine: Machine, built: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Network]:
    """Addresses for this number of boards in a namespace that is joined to the machine's Ethernet.

    A parameter is the share of frames of RoCEv2 that are lost on the way, or shares of those that are lost, duplicated
    and reordered.
    """
    faults = getattr(request, "param", 0)
    shares = map(str, faults if isinstance(faults, tuple) else (faults,))
    network = Network(built / "penstock", tmp_path / "state")
    machine.check("ip route add 10.77.1.0/24 dev eth0")
    try:
        network.make(BOARDS, ip=None)
        relay = network.start("s", sys.executable, str(RELAY), "veth0", *machine.ethernet(), *shares)
        assert relay.stdout.readline() == "joined\n", relay.stderr.read()
        yield network
    finally:
        network.delete()
        # The next ones have other MAC addresses.
        machine.check("; ".join(f"arp -d {first_board(k)} 2>/dev/null" for k in range(BOARDS)) + "; true")
        machine.check("ip route del 10.77.1.0/24 dev eth0")
