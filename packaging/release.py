# SPDX-License-Identifier: Apache-2.0
"""Builds everything of a release into a folder, tests it there, and writes SHA256SUMS: `make release`.

    python packaging/release.py --out dist [--jobs N]

| file | contents |
|---|---|
| `penstock-VERSION-cp311-abi3-manylinux_2_34_x86_64.whl` | Python package and command, laboratory included |
| `penstock-VERSION+operating-cp311-abi3-manylinux_2_34_x86_64.whl` | the same with the command of servers |
| `penstock_VERSION_amd64.deb` | the command of servers, manual, completions, service |
| `penstock-VERSION-linux-x86_64-static.tar.gz` | the same, with a command that needs no library of the system |
| `penstock-VERSION.tar.gz` | sources |

Three builds of their own in `build/release`. `shared` has all and links the C++ library in, so that no symbol is newer
than those of AlmaLinux 9. `operating`, for servers, and `static` have no laboratory and are built without Verilator.
The static one has neither GPUs nor RDMA NICs, whose drivers are loaded at run time.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import backend
import debian_package
import wheel_package
from contents import LICENCES, REPOSITORY, install, needed, too_new, version

BUILDS = REPOSITORY / "build/release"
TARGET = "x86_64-unknown-linux-gnu"
# A static executable does not find getrandom(2) by its name and would read /dev/random, which an empty root lacks.
STATIC = ["-Ctarget-feature=+crt-static", '--cfg=getrandom_backend="linux_getrandom"']


# The commands that operate a readout, without the laboratory.
OPERATING = ["-p", "penstock-cli", "--no-default-features"]


class Failed(Exception):
    """A step of the release; the text says which and why."""


def run(*words: str | Path, **options: object) -> str:
    """What a command prints. Raises Failed with what it said otherwise."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Failed(f"`{' '.join(map(str, words))}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(name: str, flags: list[str], jobs: int, options: list[str]) -> Path:
    """Builds into a target folder of its own; the C++ library is linked in. Returns the folder of the executables."""
    library = run("g++", "-print-file-name=libstdc++.a").strip()
    flags = [f"-Lnative={Path(library).parent}", *flags]
    environment = {**os.environ, "CXXSTDLIB": "static=stdc++", "RUSTFLAGS": " ".join(flags)}
    cargo = ["cargo", "build", "--release", "--locked", f"--jobs={jobs}", f"--target={TARGET}"]
    folder = ["--target-dir", str(BUILDS / name)]
    print(f"release: {name} build", file=sys.stderr, flush=True)
    done = subprocess.run([*cargo, *folder, *options], cwd=REPOSITORY, env=environment, check=False)
    if done.returncode:
        raise Failed(f"{name}: cargo ended with {done.returncode}")
    return BUILDS / name / TARGET / "release"


def static_archive(binary: Path, out: Path) -> Path:
    """The files of a package with a static command, below a folder named after the version."""
    name = f"penstock-{version()}-linux-x86_64-static"
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / name
        install(binary, root)
        for source, licence in LICENCES.items():
            shutil.copy(REPOSITORY / source, root / licence)
        with tarfile.open(out / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(root, arcname=name)
    return out / f"{name}.tar.gz"


def check_symbols(folder: Path) -> None:
    """Raises Failed for a file that an older supported system cannot load."""
    for name in ("penstock", "lib_native.so"):
        if new := too_new(folder / name):
            raise Failed(f"{folder / name} asks for {', '.join(new)}, which AlmaLinux 9 does not have")


def check_static(archive: Path, simulator: Path) -> None:
    """The command of the archive runs alone: no library, no folder of this machine but its own.

    simulator: a command with the laboratory, whose run it verifies
    """
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(archive) as files:
            files.extractall(temporary, filter="data")
        [root] = Path(temporary).iterdir()
        if needed(root / "bin/penstock"):
            raise Failed(f"{archive}: its command needs libraries of the system")
        inside = ["chroot", root, "/bin/penstock"] if os.geteuid() == 0 else [root / "bin/penstock"]
        run(*inside, "--version")
        settings = ("--set", "replay.events=6", "--set", "cc.law=off", "--no-plots", "--out", root / "out")
        run(simulator, "run", REPOSITORY / "scenarios/incast-3.toml", *settings)
        run(*inside, "check", "/out/events.parquet" if os.geteuid() == 0 else root / "out/events.parquet")


def check_packages(built: Path) -> None:
    """The tests of packages, with these builds in place of cargo's own folder."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/test_package.py"]
    run(*command, cwd=REPOSITORY, env={**os.environ, "PENSTOCK_BUILT": str(built)})


def check_container() -> None:
    """The container file by a linter; building it needs the network and a builder."""
    run("npx", "--yes", "dockerfile-utils@0.16.3", "lint", REPOSITORY / "packaging/Containerfile")


def sums(files: list[Path], out: Path) -> None:
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (out / "SHA256SUMS").write_text("".join(lines))


def release(out: Path, jobs: int) -> list[Path]:
    """Makes all files. Raises Failed, OSError, subprocess.CalledProcessError."""
    out.mkdir(parents=True, exist_ok=True)
    check_container()
    built = build("shared", [], jobs, ["--workspace"])
    check_symbols(built)
    check_packages(built)
    operating = build("operating", [], jobs, [*OPERATING, "-p", "penstock-py"])
    check_symbols(operating)
    static = build("static", STATIC, jobs, OPERATING)
    archive = static_archive(static / "penstock", out)
    check_static(archive, built / "penstock")
    source = out / backend.build_sdist(str(out))
    wheels = [wheel_package.pack(folder, out) for folder in (built, operating)]
    files = [*wheels, debian_package.pack(operating / "penstock", out), archive, source]
    sums(files, out)
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description="Build and test everything of a release.", allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder (default: dist)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of cargo (default: one for each core)")
    arguments = parser.parse_args()
    try:
        for file in release(arguments.out.resolve(), arguments.jobs):
            print(file)
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
