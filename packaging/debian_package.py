# SPDX-License-Identifier: Apache-2.0
"""The Debian package: the command that operates readouts, its manual and completions, and a service for receivers.

python packaging/debian_package.py --binary target/release/penstock --out dist
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from contents import LICENCES, REPOSITORY, install, needed, packed, version

DESCRIPTION = """\
 Receives from detector front ends over RDMA, packet sockets, AF_XDP or TCP,
 builds and checks events, stores them as Parquet; operates boards over IPbus.
 .
 The laboratory (run, board, switch, sweep, tune, figures) is in the wheel."""


def architecture() -> str:
    """This machine's, in Debian's words."""
    requested = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return requested.stdout.strip()


def control(root: Path, command: Path) -> str:
    """The control file (deb-control(5)) of the files below `root`."""
    glibc = ".".join(map(str, needed(command).get("GLIBC", (2, 34))))
    depends = [f"libc6 (>= {glibc})"]
    if "GLIBCXX" in needed(command):
        depends.append("libstdc++6 (>= 12)")
    if "GCC" in needed(command):
        depends.append("libgcc-s1")
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    lines = {
        "Package": "penstock",
        "Version": version(),
        "Section": "science",
        "Priority": "optional",
        "Architecture": architecture(),
        "Maintainer": "The Penstock authors <penstock@localhost>",
        "Installed-Size": str(size // 1024),
        "Depends": ", ".join(depends),
        "Suggests": "libibverbs1, librdmacm1, python3",
        "Description": f"congestion-aware RDMA front end for detector readout\n{DESCRIPTION}",
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def changed() -> float:
    """When the sources changed last, in seconds: the time of all files of the package."""
    requested = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=REPOSITORY, capture_output=True, check=False)
    return float(requested.stdout) if requested.returncode == 0 else (REPOSITORY / "CHANGELOG.md").stat().st_mtime


def pack(binary: Path, out: Path, compression: str = "xz") -> Path:
    """Packs a built command; returns the package. `compression` is one of dpkg-deb's."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "penstock"
        install(binary, root / "usr")
        zsh = root / "usr/share/zsh"
        (zsh / "site-functions").rename(zsh / "vendor-completions")  # where Debian's zsh looks
        for page in (root / "usr/share/man").rglob("*.1"):
            page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
            page.unlink()
        pages = root / "usr/share/doc/penstock"
        pages.mkdir(parents=True)
        for name, as_name in LICENCES.items():
            shutil.copy(REPOSITORY / name, pages / as_name)
        shutil.copy(REPOSITORY / "packaging/copyright", pages / "copyright")
        (pages / "CHANGELOG.md.gz").write_bytes(gzip.compress((REPOSITORY / "CHANGELOG.md").read_bytes(), mtime=0))
        unit = root / "usr/lib/systemd/system/penstock-recv@.service"
        unit.parent.mkdir(parents=True)
        shutil.copy(REPOSITORY / "packaging/penstock-recv@.service", unit)
        for path in root.rglob("*"):
            path.chmod(0o755 if path.is_dir() or path == root / "usr/bin/penstock" else 0o644)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(control(root, root / "usr/bin/penstock"))
        path = out / f"penstock_{version()}_{architecture()}.deb"
        options = ["--root-owner-group", f"-Z{compression}", "--build"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(int(changed()))}
        subprocess.run(["dpkg-deb", *options, root, path], env=environment, stdout=sys.stderr, check=True)
    return path


if __name__ == "__main__":
    built = REPOSITORY / "target/release/penstock"
    sys.exit(packed("Pack a Debian package around a built command.", "--binary", built, pack))
