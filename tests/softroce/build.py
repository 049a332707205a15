# SPDX-License-Identifier: Apache-2.0
"""Builds the Soft-RoCE machine: `.venv/bin/python tests/softroce/build.py [--update]`.

Promise: the image in build/softroce/ matches the present files; a stale image is rebuilt, and the reason is printed.
"""

import argparse
import fcntl
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import gpu
import initrd
import kernel
import qemu
import rdma_programs
from machine import Image, Machine, MachineError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/softroce"
TARGET = ROOT / "target/release"
PROGRAMS = ("penstock", "examples/verbs_sink")
PACKAGES = ("busybox-static", "ibverbs-providers", "iproute2", "libibverbs1")  # whose files initrd.py takes


def build(target: Path = TARGET, update: bool = False, log: Callable[[str], None] = print) -> Image:
    """The image with the programs of this folder of cargo's; quick when nothing has changed.

    `update` takes Debian's present kernel even if an older one is there. Raises ImageError, MachineError.
    """
    programs = [target / name for name in PROGRAMS]
    for program in programs:
        if not program.exists():
            raise kernel.ImageError(f"{program} is missing: `cargo build --release --workspace --all-targets`")
    with locked(FOLDER):
        unpacked = None if update else kernel.have(FOLDER)
        if unpacked is None:
            log("softroce: downloading Debian's kernel (70 MB)")
            unpacked = kernel.fetch(FOLDER)
        files = initrd.contents(unpacked, programs)
        files |= gpu.libraries(FOLDER, initrd.verbs_library())
        files |= rdma_programs.programs(FOLDER, initrd.verbs_library())
        parts = {path: digest(source) for path, source in files.items()}
        parts["kernel"] = unpacked.version
        parts["qemu"] = qemu.version()
        parts["options"] = digest(" ".join([*qemu.OPTIONS, qemu.KERNEL_ARGUMENTS]))
        image = Image(unpacked, FOLDER / "initrd.cpio", FOLDER / "snapshot")
        reason = stale(parts, image)
        if reason:
            log(f"softroce: making the machine: {reason}")
            make(image, initrd.archive(files), parts, log)
    return image


def versions() -> list[str]:
    """What comes into the machine from outside the tree: kernel, emulator and Debian's packages. Downloads nothing."""
    unpacked = kernel.have(FOLDER)
    packages = kernel.run(["dpkg-query", "-W", *PACKAGES]).splitlines()
    return [unpacked.version if unpacked else kernel.available(), qemu.version(), *packages]


def stale(parts: dict[str, str], image: Image) -> str | None:
    """Why the image must be made again; None if it is good."""
    was = stamped()
    if not (was and image.initrd.exists() and image.snapshot.exists()):
        return "there is none yet"
    changed = sorted(name for name in {*parts, *was} if parts.get(name) != was.get(name))
    return f"{', '.join(changed[:4])}{' ...' * (len(changed) > 4)} changed" if changed else None


def stamped() -> dict[str, str]:
    """What the image was made of; empty if it is not known."""
    try:
        return json.loads((FOLDER / "stamp.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}


def make(image: Image, archive: bytes, parts: dict[str, str], log: Callable[[str], None]) -> None:
    """Writes the archive, boots it once, and keeps the booted machine as the snapshot. The stamp comes last."""
    stamp = FOLDER / "stamp.json"
    stamp.unlink(missing_ok=True)
    image.snapshot.unlink(missing_ok=True)
    image.initrd.write_bytes(archive)
    started = time.monotonic()
    machine = Machine(image, cold=True)
    log(f"softroce: booted in {machine.ready_s:.1f} s")
    machine.save()
    stamp.write_text(json.dumps(parts, indent=1))
    megabytes = image.snapshot.stat().st_size / 1e6
    log(f"softroce: snapshot of {megabytes:.0f} MB, {time.monotonic() - started:.1f} s in all")


def digest(source: Path | str | bytes) -> str:
    """The identity of a file, link or text."""
    data = source.read_bytes() if isinstance(source, Path) else source if isinstance(source, bytes) else source.encode()
    return hashlib.blake2b(data, digest_size=12).hexdigest()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One builder at a time; the others wait, and then find the image good."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the Soft-RoCE machine into build/softroce/.")
    parser.add_argument("--target", type=Path, default=TARGET, help="cargo's folder of the programs to put into it")
    parser.add_argument("--update", action="store_true", help="take Debian's present kernel")
    arguments = parser.parse_args()
    try:
        image = build(arguments.target, arguments.update)
        with Machine(image) as machine:
            print(f"softroce: ready in {machine.ready_s:.2f} s, kernel {machine.check('cat /proc/version').split()[2]}")
            print(machine.check("rdma link").strip())
    except (kernel.ImageError, MachineError) as error:
        print(f"softroce: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
