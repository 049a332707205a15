# SPDX-License-Identifier: Apache-2.0
"""What pip calls for `pip install .` (PEP 517): sets up the tools of the build, calls cargo, packs the wheel."""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from contents import REPOSITORY, version
from wheel_package import pack, write_metadata


def _target() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"


def prepare_metadata_for_build_wheel(folder: str, settings: dict | None = None) -> str:
    """Writes the metadata alone, without a build."""
    return write_metadata(Path(folder))


def build_wheel(folder: str, settings: dict | None = None, metadata: str | None = None) -> str:
    """Builds the command and the compiled half; takes what `make demo` takes, and installs the same tools."""
    subprocess.run(["sh", "tools/setup.sh", "build"], cwd=REPOSITORY, stdout=sys.stderr, check=True)
    cargo = ["cargo", "build", "--release", "--locked", "--workspace"]
    subprocess.run(cargo, cwd=REPOSITORY, stdout=sys.stderr, check=True)
    return pack(_target(), Path(folder)).name


def build_sdist(folder: str, settings: dict | None = None) -> str:
    """The committed files, which are what a build needs."""
    name = f"penstock-{version()}"
    archive = subprocess.run(
        ["git", "archive", "--format=tar", f"--prefix={name}/", "HEAD"], cwd=REPOSITORY, capture_output=True, check=True
    )
    path = Path(folder) / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as packed, tarfile.open(fileobj=BytesIO(archive.stdout)) as committed:
        for member in committed:
            packed.addfile(member, committed.extractfile(member))
        text = f"Metadata-Version: 2.4\nName: penstock\nVersion: {version()}\n".encode()
        info = tarfile.TarInfo(f"{name}/PKG-INFO")
        info.size = len(text)
        packed.addfile(info, BytesIO(text))
    return path.name
