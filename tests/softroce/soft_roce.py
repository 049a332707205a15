# SPDX-License-Identifier: Apache-2.0
"""The Soft-RoCE machine as fixtures, which `tests/conftest.py` knows: built if need be, restored once a session."""

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel import ImageError
from machine import Image, Machine, MachineError

import build


@pytest.fixture(scope="session")
def image(built: Path) -> Image:
    """The image with the programs of the tree under test."""
    if platform.machine() != "x86_64" or shutil.which("apt-get") is None:
        pytest.fail("the Soft-RoCE machine is made of Debian packages for x86-64: run its tests there", pytrace=False)
    try:
        return build.build(built)
    except (ImageError, MachineError) as error:
        pytest.fail(f"no Soft-RoCE machine: {error}", pytrace=False)


@pytest.fixture(scope="session")
def machine(image: Image) -> Iterator[Machine]:
    """A running machine, shared by all tests of the session: leave it as you found it."""
    with Machine(image) as running:
        yield running
