# SPDX-License-Identifier: Apache-2.0
"""`penstock board`, the verilated gateware, plugged into the machine's Ethernet.

Promise: the machine's memory is compared with the defined data of the gateware's source (ITU-T O.150), made here.
"""

import hashlib
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import qemu
from machine import Machine
from verbs_case import HOST_IP, HOST_MAC

QPN, PSN = 0x200, 0xFFFFF0  # the gateware's first queue pair; its PSNs wrap after 16 packets


@dataclass
class BoardRun:
    """What the board and the machine say, and the ring's hash."""

    board: dict[str, Any]
    received: dict[str, Any]
    ring_hash: str


@dataclass
class BoardCase:
    """One run of `penstock board` with its own PRBS-31."""

    length: int = 16384
    messages: int = 16
    slots: int = 16
    mtu: int = 4096
    options: tuple[str, ...] = ()
    sink: dict[str, Any] = field(default_factory=dict)
    timeout_s: float = 240


def run(machine: Machine, penstock: Path, case: BoardCase) -> BoardRun:
    """Opens a ring in the machine, runs the board against it, and takes both reports."""
    plan = {
        "qps": [{"ip": HOST_IP, "qpn": QPN, "psn": PSN, "mtu": case.mtu, "rnr_us": 640}],
        "slots": case.slots,
        "slot_bytes": case.length,
        "receives": case.slots,
        "messages": case.messages,
        "timeout_s": case.timeout_s,
        "dump": "/tmp/ring",
        **case.sink,
    }
    machine.check(f"arp -s {HOST_IP} {HOST_MAC}; rm -f /tmp/ring*")
    machine.start("sink", f"verbs_sink '{json.dumps(plan)}'")
    end = json.loads(machine.check("job line sink 1 120"))["qps"][0]
    command = [str(penstock), "board", "--unix", ",".join(machine.ethernet())]
    command += ["--ip", f"{HOST_IP}/24", "--mac", HOST_MAC, "--peer-ip", qemu.ADDRESS, "--peer-mac", qemu.MAC]
    command += ["--connect", f"qpn={end['qpn']},psn={PSN},rkey={end['rkey']},va={end['base']}"]
    command += ["--prbs", f"{case.length}x{case.messages}", "--slots", str(case.slots)]
    command += ["--slot-size", str(case.length), "--mtu", str(case.mtu), "--json", *case.options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=case.timeout_s + 30, check=False)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    result = machine.wait("sink", case.timeout_s)
    assert result.status == 0, machine.run("job err sink").output
    ring_hash = machine.check("sha256sum /tmp/ring0").split()[0]
    return BoardRun(json.loads(done.stdout), json.loads(result.output.splitlines()[-1]), ring_hash)


def expected_hash(case: BoardCase) -> str:
    """The hash of the ring after all messages of the PRBS, which continues from message to message."""
    data = prbs31(case.length * case.messages).tobytes()
    ring = bytearray(case.slots * case.length)
    for message in range(case.messages):
        slot = message % case.slots
        start = slot * case.length
        ring[start : start + case.length] = data[message * case.length : (message + 1) * case.length]
    return hashlib.sha256(ring).hexdigest()


def prbs31(count: int) -> np.ndarray:
    """`count` bytes of the inverted PRBS-31 that follows 31 ones, the first bit the least significant (O.150 5.8).

    Bit n is the sum of bits n - 28 and n - 31; squared, of bits n - 28 s and n - 31 s for every power s of two.
    """
    bits = np.ones(31 + 8 * count, dtype=np.uint8)
    at = 31
    while at < len(bits):
        step = 1 << max(at // 31, 1).bit_length() - 1
        size = min(28 * step, len(bits) - at)
        bits[at : at + size] = bits[at - 28 * step :][:size] ^ bits[at - 31 * step :][:size]
        at += size
    return ~np.packbits(bits[31:], bitorder="little")
