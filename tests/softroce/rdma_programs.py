# SPDX-License-Identifier: Apache-2.0
"""Programs over librdmacm for the Soft-RoCE machine: Debian's, unmodified, and `rdma_*.c`, compiled here.

Promise: the packages are downloaded once and unpacked, never installed; a program is compiled again when its source
changes.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from kernel import ImageError, run

HERE = Path(__file__).parent
SOURCES = (HERE / "rdma_peer.c", HERE / "rdma_window.c")
PACKAGES = ("rdmacm-utils", "librdmacm1", "librdmacm-dev", "libibverbs-dev")
PROGRAMS = ("cmtime", "ucmatose", "rping")
LIBRARY = "usr/lib/x86_64-linux-gnu/librdmacm.so.1"


def programs(folder: Path, verbs: Path) -> dict[str, Path | str | bytes]:
    """What the machine gets of them: path there to file here. `verbs` is libibverbs."""
    if shutil.which("cc") is None:
        raise ImageError("programs over librdmacm need a C compiler, as the gateware does: apt-get install gcc")
    tree = unpacked(folder / "rdmacm")
    library = (tree / LIBRARY).resolve()
    files: dict[str, Path | str | bytes] = {f"/bin/{name}": tree / "usr/bin" / name for name in PROGRAMS}
    for source in SOURCES:
        files[f"/bin/{source.stem}"] = compiled(source, tree, (library, verbs))
    return files | {f"/{LIBRARY}": library}


def compiled(source: Path, tree: Path, libraries: tuple[Path, Path]) -> Path:
    """The program of a C file."""
    program, stamp = tree / source.stem, tree / f"{source.stem}.key"
    key = hashlib.blake2b(source.read_bytes() + libraries[0].read_bytes()).hexdigest()
    if not program.exists() or not stamp.exists() or stamp.read_text() != key:
        flags = ("-O2", "-Wall", "-Wextra", "-I", str(tree / "usr/include"))
        run(["cc", *flags, "-o", str(program), str(source), *map(str, libraries)])
        stamp.write_text(key)
    return program


def unpacked(folder: Path) -> Path:
    """The packages' files."""
    tree = folder / "tree"
    if not tree.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            work = Path(name)
            try:
                run(["apt-get", "download", *PACKAGES], cwd=work)
            except ImageError as error:
                raise ImageError(f"{error}\nthe list of packages may be old: `sudo apt-get update`") from error
            for package in sorted(work.glob("*.deb")):
                run(["dpkg", "-x", package.name, "tree"], cwd=work)
            (work / "tree").rename(tree)
    return tree
