# SPDX-License-Identifier: Apache-2.0
"""Pause and PFC frames, made by scapy (IEEE 802.3 annex 31B, IEEE 802.1Q clause 36)."""

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether

CONTROL_MAC = "01:80:c2:00:00:01"
PEER_MAC = "02:00:00:00:00:07"
MIN_FRAME = 60


def _frame(control, dst: str) -> bytes:
    return bytes(Ether(dst=dst, src=PEER_MAC, type=0x8808) / control).ljust(MIN_FRAME, b"\0")


def pause(quanta: int, dst: str = CONTROL_MAC) -> bytes:
    return _frame(MACControlPause(pause_time=quanta), dst)


def pfc(quanta: dict[int, int], dst: str = CONTROL_MAC) -> bytes:
    """PFC frame that sets the classes named in `quanta` and leaves the others alone."""
    fields = {f"c{c}_enabled": 1 for c in quanta} | {f"c{c}_pause_time": q for c, q in quanta.items()}
    return _frame(MACControlClassBasedFlowControl(**fields), dst)
