# SPDX-License-Identifier: Apache-2.0
"""The machine's kernel: a stock Debian kernel, downloaded once and taken apart, never installed.

Promise: `vmlinux` and the modules of one package, or an error that names the step and the command that helps.
Source: linux/Documentation/x86/boot.rst (where a bzImage keeps its payload).
"""

import bz2
import lzma
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

META_PACKAGE = "linux-image-amd64"  # the generic kernel; the cloud one has no rdma_rxe

# Loaded in this order. crc32-pclmul may refuse on an old CPU model; crc32_generic then does its work.
MODULES = """
    virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_mmio failover net_failover
    virtio_net crc32_generic crc32-pclmul udp_tunnel ip6_udp_tunnel ib_core ib_uverbs configfs
    ib_cm iw_cm rdma_cm rdma_ucm rdma_rxe
"""

_DECOMPRESS = {
    b"\xfd7zXZ\x00": lambda data: lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data),
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data),
    b"]\x00\x00": lambda data: lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
}


class ImageError(Exception):
    """The image cannot be made; the message says which step failed and what to do."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: `vmlinux` and `modules/*.ko` in `folder`, whose name is the package's with its version."""

    folder: Path

    @property
    def version(self) -> str:
        return self.folder.name

    @property
    def vmlinux(self) -> Path:
        return self.folder / "vmlinux"

    def module(self, name: str) -> Path:
        return self.folder / "modules" / f"{name}.ko"

    def complete(self) -> bool:
        return self.vmlinux.exists() and all(self.module(name).exists() for name in MODULES.split())


def run(command: list[str], cwd: Path | None = None) -> str:
    """The output of a command that must succeed."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise ImageError(f"`{command[0]}` is missing: run `make setup`, which says what to install") from missing
    if done.returncode:
        raise ImageError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def have(folder: Path) -> Kernel | None:
    """The kernel unpacked last, if one is whole."""
    kernels = [Kernel(path) for path in folder.glob("linux-image-*") if path.is_dir()]
    return max((k for k in kernels if k.complete()), key=lambda k: k.vmlinux.stat().st_mtime, default=None)


def available() -> str:
    """The version that `fetch` would give: Debian's present generic kernel."""
    shown = run(["apt-cache", "show", "--no-all-versions", META_PACKAGE])
    found = re.search(r"Depends: (linux-image-[\w.+-]+) \(= ([^)]+)\)", shown)
    if not found:
        raise ImageError(f"apt knows no kernel behind {META_PACKAGE}: run `sudo apt-get update`, then try again")
    return f"{found[1]}_{found[2]}_amd64"


def fetch(folder: Path) -> Kernel:
    """Downloads and unpacks Debian's present generic kernel (70 MB) into a folder of its own under `folder`."""
    depends = run(["apt-cache", "depends", "--important", META_PACKAGE])
    found = re.search(r"Depends: (linux-image-[\w.+-]+)", depends)
    if not found:
        raise ImageError(f"apt knows no kernel behind {META_PACKAGE}: run `sudo apt-get update`, then try again")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = Path(name)
        try:
            run(["apt-get", "download", found[1]], cwd=work)
        except ImageError as error:
            raise ImageError(f"{error}\nthe list of packages may be old: `sudo apt-get update`") from error
        package = next(work.glob("*.deb"))
        run(["dpkg", "-x", package.name, "tree"], cwd=work)
        unpacked = work / package.stem
        (unpacked / "modules").mkdir(parents=True)
        image = next((work / "tree/boot").glob("vmlinuz-*"))
        (unpacked / "vmlinux").write_bytes(vmlinux(image.read_bytes()))
        for module in MODULES.split():
            files = list((work / "tree").rglob(f"{module}.ko*"))
            if not files:
                raise ImageError(f"{package.name} has no module {module}: it is not the generic kernel")
            (unpacked / "modules" / f"{module}.ko").write_bytes(decompressed(files[0].read_bytes()))
        target = folder / package.stem
        shutil.rmtree(target, ignore_errors=True)
        unpacked.rename(target)
    return Kernel(target)


def decompressed(data: bytes) -> bytes:
    """`data`, unpacked if it begins like something packed."""
    for magic, decompress in _DECOMPRESS.items():
        if data.startswith(magic):
            return decompress(data)
    return data


def vmlinux(image: bytes) -> bytes:
    """The ELF file inside a bzImage: it boots without the slow self-extraction, which TCG would have to run."""
    if image[0x202:0x206] != b"HdrS":
        raise ImageError("the kernel package has no bzImage with a setup header; this recipe is for x86-64")
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    elf = decompressed(image[start : start + length])
    if not elf.startswith(b"\x7fELF"):
        raise ImageError(f"the kernel is packed in a way that is not known here: it begins with {elf[:6].hex()}")
    return elf
