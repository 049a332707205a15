# SPDX-License-Identifier: Apache-2.0
"""Starts QEMU and controls it: the microvm's options, its monitor, and the host's time stamp counter.

Promise: a QEMU process ends with the process that started it. Source: QEMU's docs/system/i386/microvm.rst and
docs/interop/qmp-spec.
"""

import ctypes
import json
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from kernel import ImageError, Kernel

BINARY = "qemu-system-x86_64"
ADDRESS = "10.77.0.1"
MAC = "52:54:00:77:00:01"
OPTIONS = (
    "-M microvm,acpi=on,pcie=off,rtc=on,pit=on,pic=on,isa-serial=on -global virtio-mmio.force-legacy=false "
    # Nehalem has SSE 4.2; with newer models TCG copies memory two to three times slower. RDRAND, with random.trust_cpu,
    # fills the kernel's pool at once: without it the first getrandom waits for as long as 20 s.
    "-accel tcg,thread=multi -cpu Nehalem,+rdrand -smp 1 -m 512M -nodefaults -no-user-config -nographic -no-reboot "
    "-serial file:console.log -chardev socket,id=cmd,path=cmd.sock,server=on,wait=off -device isa-serial,chardev=cmd "
    "-qmp unix:qmp.sock,server=on,wait=off "
    "-netdev dgram,id=n0,local.type=unix,local.path=vm.sock,remote.type=unix,remote.path=host.sock "
    f"-device virtio-net-device,netdev=n0,mac={MAC},mrg_rxbuf=on,ctrl_vlan=off,rx_queue_size=1024,"
    "csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_ecn=off,"
    "host_tso4=off,host_tso6=off,host_ufo=off,host_ecn=off"
).split()
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check rcupdate.rcu_expedited=1 "
    f"random.trust_cpu=on rdinit=/init address={ADDRESS}/24"
)


def version() -> str:
    """QEMU's version; a snapshot is of one version."""
    if shutil.which(BINARY) is None:
        raise ImageError(f"{BINARY} is missing: run `make setup`, which says what to install")
    line = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    return line.splitlines()[0]


def tsc_khz() -> int:
    """Frequency of the time stamp counter in kHz: without it the kernel calibrates, and hangs on most boots.

    Measured, by calling RDTSC from here; where the system forbids that, the figure of /proc/cpuinfo.
    """
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except PermissionError:
        found = re.search(r"cpu MHz\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text())
        if not found:
            raise ImageError("/proc/cpuinfo has no `cpu MHz`: the machine needs an x86-64 host") from None
        return round(float(found[1]) * 1e3)
    code.write(bytes.fromhex("0f3148c1e2204809d0c3"))  # rdtsc; shl rdx, 32; or rax, rdx; ret
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    clock = time.CLOCK_MONOTONIC_RAW

    def sample() -> tuple[int, int]:
        """Both clocks at one instant: the closest of some pairs."""
        pairs = [(time.clock_gettime_ns(clock), rdtsc(), time.clock_gettime_ns(clock)) for _ in range(20)]
        before, ticks, after = min(pairs, key=lambda pair: pair[2] - pair[0])
        return (before + after) // 2, ticks

    start = sample()
    time.sleep(0.05)
    end = sample()
    return round((end[1] - start[1]) * 1e6 / (end[0] - start[0]))


def start(folder: Path, kernel: Kernel, initrd: Path, incoming: Path | None = None) -> subprocess.Popen[bytes]:
    """Starts QEMU in `folder`, booting or waiting to take over from a snapshot."""
    command = [BINARY, *OPTIONS, "-kernel", str(kernel.vmlinux), "-initrd", str(initrd)]
    command += ["-append", f"{KERNEL_ARGUMENTS} tsc_early_khz={tsc_khz()}"]
    if incoming:
        command += ["-incoming", f"exec:cat '{incoming}'"]
    with (folder / "qemu.log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent
        )


def _die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def connect(path: Path, process: subprocess.Popen[bytes], deadline: float) -> socket.socket:
    """A stream to one of QEMU's sockets, as soon as it is there."""
    while True:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.connect(str(path))
            return stream
        except (FileNotFoundError, ConnectionRefusedError):
            stream.close()
        if process.poll() is not None:
            raise ImageError(f"QEMU ended with {process.returncode}:\n{(path.parent / 'qemu.log').read_text()[-2000:]}")
        if time.monotonic() > deadline:
            raise ImageError(f"QEMU runs but does not open {path.name}; see {path.parent / 'qemu.log'}")
        time.sleep(0.005)


class Monitor:
    """QEMU's monitor (QMP)."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream.makefile("rw")
        self._stream.readline()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> dict:
        """The answer to a command; events that come in between are left aside."""
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        while line := self._stream.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise ImageError(f"QEMU refuses `{command}`: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise ImageError(f"QEMU closed its monitor at `{command}`")

    def migrate(self, to: Path, deadline: float) -> None:
        """Writes the stopped machine's state into a file."""
        self.execute("stop")
        self.execute("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.execute("migrate", uri=f"exec:cat > '{to}'")
        self._wait("query-migrate", {"completed"}, deadline)

    def resume(self, deadline: float) -> None:
        """Lets a machine run whose state comes from a file."""
        self._wait("query-status", {"paused", "prelaunch", "postmigrate"}, deadline)
        self.execute("cont")

    def _wait(self, query: str, states: set[str], deadline: float) -> None:
        while (state := self.execute(query).get("status")) not in states:
            if state == "failed" or time.monotonic() > deadline:
                raise ImageError(f"QEMU's `{query}` says {state} instead of {' or '.join(sorted(states))}")
            time.sleep(0.01)
