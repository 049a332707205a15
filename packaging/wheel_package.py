# SPDX-License-Identifier: Apache-2.0
"""The wheel: the Python package with its compiled half, and the command. One whose command only operates readouts, for
servers, has the local version "operating" (PEP 440).

    python packaging/wheel_package.py --built target/release --out dist

Packs what cargo has built, in seconds. maturin writes the metadata but does not pack: it can hold one crate's product,
and would compile the dependencies again with other features.
"""

import base64
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from contents import REPOSITORY, has_laboratory, install, needed, packed, version


def write_metadata(folder: Path, local: str = "") -> str:
    """Writes `penstock-VERSION.dist-info` into a folder, and returns its name. `local` is the local version."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = ["maturin", "pep517", "write-dist-info", "--metadata-directory", folder, "--interpreter", sys.executable]
    subprocess.run(command, cwd=REPOSITORY, env={**os.environ, "PATH": path}, stdout=sys.stderr, check=True)
    info = folder / f"penstock-{version()}.dist-info"
    if local:
        metadata = (info / "METADATA").read_text()
        (info / "METADATA").write_text(re.sub(r"(?m)^Version: .*$", rf"\g<0>{local}", metadata, count=1))
        info = info.rename(folder / f"penstock-{version()}{local}.dist-info")
    return info.name


def platform_tag(*files: Path) -> str:
    """The oldest `manylinux` that has the symbols of these files (PEP 600), x86-64 and others by their machine."""
    glibc = max(needed(file).get("GLIBC", (2, 17)) for file in files)
    return f"manylinux_{glibc[0]}_{glibc[1]}_{os.uname().machine}"


def pack(built: Path, out: Path) -> Path:
    """Packs `penstock` and `lib_native.so` of a cargo folder; returns the wheel.

    Raises FileNotFoundError if they are not built.
    """
    command, native = built / "penstock", built / "lib_native.so"
    for file in (command, native):
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing: `cargo build --release --locked --workspace` builds it")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        release = version() + (local := "" if has_laboratory(command) else "+operating")
        info = tree / write_metadata(tree, local)
        tag = f"cp311-abi3-{platform_tag(command, native)}"
        lines = re.sub(r"(?m)^Tag: .*$", f"Tag: {tag}", (info / "WHEEL").read_text())
        (info / "WHEEL").write_text(lines)
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "python/penstock", tree / "penstock", ignore=leave)
        subprocess.run(["strip", "--strip-unneeded", "-o", tree / "penstock/_native.abi3.so", native], check=True)
        data = tree / f"penstock-{release}.data"
        install(command, data / "data", data / "scripts")
        return _archive(tree, info, out / f"penstock-{release}-{tag}.whl")


def _archive(tree: Path, info: Path, wheel: Path) -> Path:
    """Writes the record of all files (binary distribution format, "The .dist-info directory"), and the archive."""
    record = info / "RECORD"
    rows = [[str(record.relative_to(tree)), "", ""]]
    files = sorted(file for file in tree.rglob("*") if file.is_file() and file != record)
    for file in files:
        content = file.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append([str(file.relative_to(tree)), f"sha256={digest}", str(len(content))])
    with record.open("w", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows(rows)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in [*files, record]:
            entry = zipfile.ZipInfo(str(file.relative_to(tree)))  # of 1980: the same files give the same wheel
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | file.stat().st_mode & 0o777) << 16
            archive.writestr(entry, file.read_bytes())
    return wheel


if __name__ == "__main__":
    sys.exit(packed("Pack a wheel from what cargo has built.", "--built", REPOSITORY / "target/release", pack))
