# SPDX-License-Identifier: Apache-2.0
"""The machine's root file system: a cpio archive written here, so that neither root nor `cpio` is needed.

Promise: the same input files give the same output bytes.
Source: linux/Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import re
import stat
from collections.abc import Sequence
from pathlib import Path

from kernel import MODULES, ImageError, Kernel, run

HERE = Path(__file__).parent
APPLETS = """
    sh mount mkdir insmod ifconfig ip arp stty cat echo ls sleep usleep kill sha256sum dd hexdump dmesg head tail wc cp
    rm mv grep ps free poweroff ping true false date setsid nc test seq tr printf sed
"""
CONSOLE = (5, 1)
LIB = "/usr/lib/x86_64-linux-gnu"


def find(name: str, *folders: str) -> Path:
    """A file of a Debian package, looked up where the releases have put it."""
    for folder in folders:
        for path in sorted(Path(folder).glob(name)):
            return path
    raise ImageError(f"{name} is missing in {', '.join(folders)}: run `make setup`, which says what to install")


def libraries(binary: Path) -> dict[str, Path]:
    """The shared libraries of a program, by the path at which the program looks for them; none of a static one."""
    found = re.findall(r"(/\S+) \(0x", run(["sh", "-c", 'ldd "$0" || true', str(binary)]))
    return {path: Path(path).resolve() for path in found}


def verbs_library() -> Path:
    """The real libibverbs."""
    return find("libibverbs.so.1", LIB).resolve()


def contents(kernel: Kernel, programs: Sequence[Path]) -> dict[str, Path | str | bytes]:
    """What the archive holds: path in the machine to a file here, to the target of a link, or to its bytes."""
    lib = LIB
    # The provider is found by libibverbs at run time, hence it is in no `ldd`.
    provider = find("librxe-rdmav*.so", f"{lib}/libibverbs")
    rdma = find("rdma", "/usr/bin", "/usr/sbin", "/sbin")
    verbs = verbs_library()
    busybox = find("busybox", "/usr/bin", "/bin")
    files: dict[str, Path | str | bytes] = {
        "/init": HERE / "init.sh",
        "/bin/busybox": busybox,
        "/bin/rdma": rdma,
        "/bin/job": HERE / "job.sh",
        f"{lib}/libibverbs.so.1": verbs,
        f"{lib}/libibverbs/{provider.name}": provider,
        "/etc/libibverbs.d/rxe.driver": find("rxe.driver", "/etc/libibverbs.d"),
    }
    files |= {f"/bin/{applet}": "busybox" for applet in APPLETS.split()}
    files |= {f"/bin/{program.name}": program for program in programs}
    files["/modules/order"] = MODULES.encode()
    files |= {f"/modules/{name}.ko": kernel.module(name) for name in MODULES.split()}
    for program in (busybox, rdma, verbs, provider, *programs):
        files |= libraries(program)
    return files


def archive(files: dict[str, Path | str | bytes]) -> bytes:
    """The files as a cpio archive of the kind "newc", with their folders and /dev/console."""
    out = Cpio()
    folders = {parent for path in files for parent in Path(path).parents} | {
        Path(name) for name in ("/dev", "/proc", "/sys", "/tmp")
    }
    for folder in sorted(folders - {Path("/")}):
        out.add(str(folder), stat.S_IFDIR | 0o755)
    out.add("/dev/console", stat.S_IFCHR | 0o600, device=CONSOLE)
    for path, source in sorted(files.items()):
        if isinstance(source, str):
            out.add(path, stat.S_IFLNK | 0o777, source.encode())
        else:
            out.add(path, stat.S_IFREG | 0o755, source if isinstance(source, bytes) else source.read_bytes())
    return out.finish()


class Cpio:
    """Writes "newc" archives; all times are 0, all owners root."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._inode = 0

    def add(self, path: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._inode += 1
        name = path.lstrip("/").encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        self._out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        self._pad()
        self._out += data
        self._pad()

    def finish(self) -> bytes:
        self.add("TRAILER!!!", 0)
        return bytes(self._out)

    def _pad(self) -> None:
        self._out += bytes(-len(self._out) % 4)
