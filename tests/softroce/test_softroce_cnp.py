# SPDX-License-Identifier: Apache-2.0
"""The kernel's rdma_rxe has no part of DCQCN: it neither sends CNPs nor reacts to any.

Promise checked: CNPs pass the machine's stack to rdma_rxe, which neither counts nor answers them; its queue pair
continues; a packet with a congestion mark is acknowledged without a CNP (docs/softroce.md).
"""

import json
from collections.abc import Iterator

import pytest
import qemu
from machine import Machine, frames
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from verbs_case import HOST_IP, HOST_MAC

QPN, PSN, CNPS, LENGTH = 17, 1000, 20, 64
ACKNOWLEDGE, ANSWER_S = 0x11, 20
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


def lower(ecn: int = 2, dscp: int = 26) -> Packet:
    ip = IP(src=HOST_IP, dst=qemu.ADDRESS, tos=dscp << 2 | ecn, id=0)
    return Ether(src=HOST_MAC, dst=qemu.MAC) / ip / UDP(sport=0xC000, dport=4791, chksum=0)


def counters(machine: Machine) -> dict[str, int]:
    """Those of the port, and what the stack has handed to UDP sockets."""
    lines = [line.split(":") for line in machine.check(f"cd {COUNTERS} && grep . *").splitlines()]
    counted = {name: int(value) for name, value in lines if name != "lifespan"}
    udp = [line.split()[1:] for line in machine.check("grep ^Udp: /proc/net/snmp").splitlines()]
    received = int(machine.check("cat /sys/class/net/eth0/statistics/rx_packets"))
    return counted | {"eth0": received} | {f"udp.{name}": int(value) for name, value in zip(*udp, strict=True)}


@pytest.fixture
def end(machine: Machine) -> Iterator[dict]:
    """A queue pair in the machine that awaits one SEND."""
    machine.check(f"arp -s {HOST_IP} {HOST_MAC}")
    peer = {"ip": HOST_IP, "qpn": QPN, "psn": PSN, "mtu": 1024, "rnr_us": 640}
    plan = {"qps": [peer], "slots": 2, "slot_bytes": 4096, "receives": 2, "messages": 2, "timeout_s": 60}
    machine.start("sink", f"verbs_sink '{json.dumps(plan)}'")
    yield json.loads(machine.check("job line sink 1 120"))["qps"][0]


def test_rdma_rxe_neither_counts_nor_answers_cnps_and_its_queue_pair_continues(machine: Machine, end: dict) -> None:
    def send(psn: int, ecn: int) -> list[Packet]:
        """A SEND; the frames that come until it is acknowledged."""
        bth = BTH(opcode=4, dqpn=end["qpn"], psn=psn, ackreq=1)
        link.send(bytes(lower(ecn) / bth / Raw(bytes(LENGTH))))
        answers = []
        while not answers or AETH not in answers[-1]:
            answers.append(Ether(link.recv(9216)))
        return answers

    with frames(machine) as link:
        link.settimeout(ANSWER_S)
        send(PSN, ecn=2)
        before = counters(machine)
        for _ in range(CNPS):
            link.send(bytes(lower(dscp=48) / cnp(end["qpn"])))
        answers = send(PSN + 1, ecn=3)
        after = counters(machine)
    change = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert change.pop("eth0") >= CNPS + 1, "ARP may come, too"
    assert change == {"udp.InDatagrams": CNPS + 1, "rcvd_pkts": 1, "rdma_recvs": 1, "sent_pkts": 1}
    assert [answer[BTH].opcode for answer in answers if BTH in answer] == [ACKNOWLEDGE]
    received = json.loads(machine.wait("sink", 60).output.splitlines()[-1])
    assert [c[2] for c in received["completions"]] == ["Success"] * 2 and received["faults"] == [None]
