# SPDX-License-Identifier: Apache-2.0
"""The Soft-RoCE machine itself: it comes up, runs commands, says what failed, and is remade when it is stale."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import build
import initrd
import pytest
import qemu
from machine import Image, Machine, MachineError, frames


def test_a_restored_machine_has_soft_roce_on_an_interface_of_4200_bytes(machine):
    assert "rxe0/1 state ACTIVE" in machine.check("rdma link")
    assert "mtu 4200" in machine.check("ip link show eth0")
    gids = machine.check("cat /sys/class/infiniband/rxe0/ports/1/gids/*").split()
    assert "0000:0000:0000:0000:0000:ffff:0a4d:0001" in gids


def test_commands_give_their_output_and_status_and_run_in_the_background(machine):
    assert machine.run("echo out; echo err >&2; exit 7") == machine.run("printf 'out\\nerr\\n'; (exit 7)")
    assert machine.run("exit 7").status == 7
    machine.start("slow", "sh -c 'sleep 0.3; echo done; exit 3'")
    assert machine.check("echo meanwhile") == "meanwhile\n"
    result = machine.wait("slow")
    assert (result.status, result.output) == (3, "done\n")
    with pytest.raises(MachineError, match="`false` ended with 1"):
        machine.check("false")


def test_a_big_output_comes_whole(machine):
    assert len(machine.check("dd if=/dev/zero bs=64k count=2 2>/dev/null | tr '\\0' x")) == 1 << 17


def test_frames_cross_the_sockets_both_ways(machine):
    with frames(machine) as end:
        end.settimeout(10)
        arp = bytes.fromhex("0806 0001 0800 06 04 0001 52540077ff02 0a4d0002 000000000000 0a4d0001")
        end.send(b"\xff" * 6 + bytes.fromhex("52540077ff02") + arp + bytes(18))
        while (reply := end.recv(9000))[12:14] != b"\x08\x06" or reply[:6] == b"\xff" * 6:
            pass
        assert reply[22:28] == bytes.fromhex(qemu.MAC.replace(":", ""))


def test_a_machine_that_does_not_come_up_names_the_last_step_that_worked(image, tmp_path):
    files = initrd.contents(image.kernel, [])
    broken = tmp_path / "broken.cpio"
    broken.write_bytes(initrd.archive({**files, "/modules/rdma_rxe.ko": b"no module"}))
    with pytest.raises(MachineError, match=r"last step that worked: FAILED: module rdma_rxe"):
        Machine(Image(image.kernel, broken, tmp_path / "none"))


def test_a_stale_image_is_named_with_what_has_changed(image):
    parts = build.stamped()
    assert build.stale(parts, image) is None
    assert build.stale({**parts, "/bin/penstock": "another", "qemu": "9"}, image) == "/bin/penstock, qemu changed"
    gone = Image(image.kernel, image.initrd, image.snapshot.with_name("gone"))
    assert build.stale(parts, gone) == "there is none yet"


def test_qemu_dies_with_the_process_that_started_it(image):
    script = f"""
        import sys; sys.path.insert(0, {str(Path(build.__file__).parent)!r})
        import pathlib, time, kernel
        from machine import Image, Machine
        paths = [pathlib.Path(p) for p in {[str(image.kernel.folder), str(image.initrd), str(image.snapshot)]!r}]
        machine = Machine(Image(kernel.Kernel(paths[0]), *paths[1:]))
        print(machine._process.pid, machine.folder, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    pid, folder = parent.stdout.readline().split()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX":
        assert time.monotonic() < deadline, "QEMU outlives its parent"
        time.sleep(0.02)
    subprocess.run(["rm", "-r", folder], check=True)
    assert os.path.exists(image.snapshot)
