# SPDX-License-Identifier: Apache-2.0
"""`penstock send` against packets that its server has not sent.

Promise checked: each is counted under the name of its reason, changes nothing and gets no answer (docs/security.md).
"""

import signal
import sys

from veth import METRICS, SERVER_IP, ended, first_board

EACH = 100

FORGER = """
import sys
from scapy.all import Ether, IP, UDP, Raw, sendp, sniff
from scapy.contrib.roce import AETH, BTH, cnp
server, each = sys.argv[1], int(sys.argv[2])
[seen] = sniff(iface="veth0", filter=f"udp dst port 4791 and src host {server}", count=1, timeout=60)
def forged(src=server, dst=seen[IP].dst, qpn=seen[BTH].dqpn, psn=seen[BTH].psn, syndrome=0, bth=None):
    inner = bth or BTH(opcode=0x11, dqpn=qpn, psn=psn) / AETH(syndrome=syndrome)
    ip = IP(src=src, dst=dst, tos=2, flags="DF") / UDP(sport=0xC000, dport=4791, chksum=0)
    return Ether(bytes(Ether(src=seen.src, dst=seen.dst) / ip / inner))
stranger = "10.77.3.9"
damaged = bytearray(bytes(forged()))
damaged[-1] ^= 1
kinds = [
    forged(src=stranger), forged(src=stranger, syndrome=0x60), forged(src=stranger, bth=cnp(seen[BTH].dqpn)),
    forged(qpn=seen[BTH].dqpn ^ 1), forged(psn=seen[BTH].psn - 0x100000 & 0xFFFFFF), forged(dst="10.77.1.200"),
    Ether(bytes(damaged)), forged(bth=Raw(bytes(6))),
]
sendp([frame for frame in kinds for _ in range(each)], iface="veth0", verbose=0)
"""


def test_forged_acknowledgements_naks_and_cnps_are_counted_by_their_reason(network):
    network.socket = "ring"  # packets of AF_XDP are not seen as they leave
    sender = network.send("-l", "3000", "--rate", "300")
    receiver = network.recv(first_board(), "--metrics", METRICS)
    network.counted(10, "events_complete")
    forger = ended(network.start("s", sys.executable, "-c", FORGER, SERVER_IP, str(EACH)))
    assert forger.status == 0, forger.stderr
    # What the forger sent has been taken before these are acknowledged.
    network.counted(network.metrics()["events_complete"] + 100, "events_complete")
    receiver.send_signal(signal.SIGINT)
    assert ended(receiver).status == 0
    sender.send_signal(signal.SIGINT)
    sent = ended(sender).json()
    [board] = sent["boards"]
    assert board["dropped_wrong_peer"] == 3 * EACH, "ACK, NAK and CNP of a stranger"
    assert board["dropped_not_for_us"] == EACH and board["stale_acks"] >= EACH
    assert sent["dropped_unknown_qpn"] >= EACH, "to no front end of this process"
    assert sent["rx_icrc_encapsulated"] == EACH and sent["rx_malformed"] == EACH
    assert (board["rp_cnp_received"], board["lives"]) == (0, 1)
    assert board["packet_seq_err"] < EACH, "no forged NAK was obeyed, though a busy machine may lose a packet"
