# SPDX-License-Identifier: Apache-2.0
"""One transfer into the machine: our requester on this side, verbs over `rdma_rxe` on the other, memory compared.

Promise: an independent program hashes the bytes in the machine; faults on the link repeat with their seed.
"""

import hashlib
import json
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import qemu
from machine import Machine

HELD_UNTIL = "/tmp/sent"  # in the machine: our requester is done
HOST_IP, HOST_MAC = "10.77.0.2", "02:50:53:54:4b:02"
VERBS = ("write", "write_imm", "send", "send_imm")


@dataclass
class Message:
    """One message into slot `slot` of queue pair `qp`'s ring."""

    verb: str
    length: int
    slot: int = 0
    qp: int = 0
    imm: int = 0
    arrives: bool = True  # false: the machine must refuse it
    offset: int = 0  # from the beginning of the slot; may lead out of the ring
    rkey_xor: int = 0

    @property
    def completes(self) -> bool:
        return self.verb != "write"


@dataclass
class Case:
    """What is sent, and over what."""

    messages: list[Message]
    qps: int = 1
    mtu: int = 1024
    psn: int = 1000
    slots: int = 16
    slot_bytes: int = 1 << 16
    seed: int = 1
    faults: dict[str, float] = field(default_factory=dict)
    sink: dict[str, Any] = field(default_factory=dict)
    timeout_s: float = 20
    dump: bool = True


@dataclass
class Outcome:
    """What both sides say, and the hashes of the rings: as they are, and as they must be."""

    sent: dict[str, Any]
    received: dict[str, Any]
    found: str
    hashes: list[str]
    expected: list[str]

    def assert_clean(self, case: Case) -> None:
        """Every message arrived once, byte for byte, and every work request ended without error."""
        assert [end[2] for end in self.sent["completions"]] == ["Success"] * len(case.messages), self.sent
        completing = [message for message in case.messages if message.completes]
        assert not any(self.received["faults"]) and len(self.received["completions"]) == len(completing), self.received
        for qp in range(case.qps):
            arrived = [tuple(c[2:]) for c in self.received["completions"] if c[0] == qp]
            assert arrived == [_completion(message) for message in completing if message.qp == qp]
        assert self.hashes == self.expected, f"memory differs; seed {case.seed}"


def _completion(message: Message) -> tuple:
    opcode = "write_imm" if message.verb == "write_imm" else "send"
    return ("Success", opcode, message.imm if message.verb.endswith("imm") else None, message.length)


def run(machine: Machine, source: Path, folder: Path, case: Case) -> Outcome:
    """Runs a case. Raises MachineError if the machine's side does not end."""
    machine.check(f"arp -s {HOST_IP} {HOST_MAC}; rm -f /tmp/ring* {HELD_UNTIL}")
    plan = sink_plan(case) | {"hold_until": HELD_UNTIL}
    machine.start("sink", f"verbs_sink '{json.dumps(plan)}'")
    opened = json.loads(machine.check("job line sink 1 120"))
    payload = folder / "payload"
    data = random.Random(case.seed).randbytes(sum(message.length for message in case.messages))
    payload.write_bytes(data)
    sent = send(source, source_plan(machine, payload, case, opened["qps"]))
    machine.check(f"touch {HELD_UNTIL}")
    result = machine.wait("sink", case.timeout_s + 10)
    assert result.status == 0, machine.run("job err sink").output
    received = json.loads(result.output.splitlines()[-1])
    rings = " ".join(f"/tmp/ring{qp}" for qp in range(case.qps))
    hashes = machine.check(f"sha256sum {rings}").split()[::2] if case.dump else []
    return Outcome(sent, received, opened["found"], hashes, _expected(case, data) if case.dump else [])


def sink_plan(case: Case) -> dict:
    """The settings of the machine's side."""
    qps = [{"ip": HOST_IP, "qpn": 17 + qp, "psn": case.psn, "mtu": case.mtu, "rnr_us": 640} for qp in range(case.qps)]
    return {
        "qps": qps,
        "slots": case.slots,
        "slot_bytes": case.slot_bytes,
        "receives": case.slots,
        "messages": sum(message.completes and message.arrives for message in case.messages),
        "timeout_s": case.timeout_s,
        "dump": "/tmp/ring" if case.dump else None,
        **case.sink,
    }


def send(source: Path, plan: dict) -> dict:
    """Runs our requester with a plan; its report."""
    done = subprocess.run([source], input=json.dumps(plan), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def source_plan(machine: Machine, payload: Path, case: Case, ends: list[dict]) -> dict:
    """The settings of our requester, with the ends that the machine has opened."""
    local, remote = machine.ethernet()
    qps = [
        {"qpn": 17 + qp, "psn": case.psn, "peer_qpn": end["qpn"], "mtu": case.mtu, "messages": []}
        for qp, end in enumerate(ends)
    ]
    at = 0
    for message in case.messages:
        end = ends[message.qp]
        sent = {
            "verb": message.verb,
            "imm": message.imm,
            "at": at,
            "len": message.length,
            "va": end["base"] + message.slot * case.slot_bytes + message.offset,
            "rkey": end["rkey"] ^ message.rkey_xor,
        }
        qps[message.qp]["messages"].append(sent)
        at += message.length
    return {
        "local": local,
        "remote": remote,
        "ip": HOST_IP,
        "mac": _octets(HOST_MAC),
        "peer_ip": qemu.ADDRESS,
        "peer_mac": _octets(qemu.MAC),
        "payload": str(payload),
        "faults": {"seed": case.seed, **case.faults},
        "timeout_s": case.timeout_s,
        "qps": qps,
    }


def _expected(case: Case, data: bytes) -> list[str]:
    """The hashes of the rings after all messages, each in its slot."""
    if case.sink.get("shared"):
        return [hashlib.sha256(came).hexdigest() for came in _in_order(case, data)]
    rings = [bytearray(case.slots * case.slot_bytes) for _ in range(case.qps)]
    at = 0
    for message in case.messages:
        start = message.slot * case.slot_bytes + message.offset
        if message.arrives:
            rings[message.qp][start : start + message.length] = data[at : at + message.length]
        at += message.length
    return [hashlib.sha256(ring).hexdigest() for ring in rings]


def _in_order(case: Case, data: bytes) -> list[bytes]:
    """The messages of each queue pair, concatenated: the contents of a pool."""
    came, at = [b""] * case.qps, 0
    for message in case.messages:
        came[message.qp] += data[at : at + message.length]
        at += message.length
    return came


def _octets(mac: str) -> list[int]:
    return list(bytes.fromhex(mac.replace(":", "")))
