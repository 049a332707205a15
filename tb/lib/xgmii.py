# SPDX-License-Identifier: Apache-2.0
"""The XGMII as a plain list of octets, for what a well-behaved model cannot produce or measure.

An octet of the line is `(value, is_character)`. Models of frames come from cocotbext-eth; this
module only writes arbitrary octets to a bus and reads gaps back from one.
"""

import zlib

from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, RisingEdge

IDLE, START, TERM, ERROR = 0x07, 0xFB, 0xFD, 0xFE
LANES = 8


def with_fcs(frame: bytes) -> bytes:
    return frame + zlib.crc32(frame).to_bytes(4, "little")


def line_frame(octets: bytes) -> list[tuple[int, int]]:
    """A frame on the line, from /S/ to /T/; `octets` ends with its FCS."""
    head = [(START, 1)] + [(0x55, 0)] * 6 + [(0xD5, 0)]
    return head + [(o, 0) for o in octets] + [(TERM, 1)]


def idle(count: int) -> list[tuple[int, int]]:
    return [(IDLE, 1)] * count


async def drive_line(clk, data, ctrl, line: list[tuple[int, int]]) -> None:
    """Write the octets, eight a cycle; the last word is filled with idle."""
    line = line + idle(-len(line) % LANES)
    for at in range(0, len(line), LANES):
        word = line[at : at + LANES]
        data.value = int.from_bytes(bytes(o for o, _ in word), "little")
        ctrl.value = sum(c << lane for lane, (_, c) in enumerate(word))
        await RisingEdge(clk)
    data.value = int.from_bytes(bytes([IDLE] * LANES), "little")
    ctrl.value = (1 << LANES) - 1


async def read_frames(clk, data, ctrl, sink: Queue[bytes | None]) -> None:
    """Puts each frame into the queue, from the preamble to the FCS; None for a spoilt one."""
    octets: bytearray | None = None
    while True:
        await FallingEdge(clk)
        control = int(ctrl.value)
        if control == 0xFF and octets is None and int(data.value) & 0xFF == IDLE:
            continue
        word = int(data.value).to_bytes(LANES, "little")
        for lane, octet in enumerate(word):
            if not control >> lane & 1:
                if octets is not None:
                    octets.append(octet)
            elif octet == START:
                octets = bytearray([0x55])
            elif octets is not None:
                sink.put_nowait(bytes(octets) if octet == TERM else None)
                octets = None


class LineMonitor:
    """Records the octet positions of every /S/ and of the first character after each frame."""

    def __init__(self, clk, data, ctrl):
        self.clk, self.data, self.ctrl = clk, data, ctrl
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.errors = 0
        self.position = 0  # octets seen so far

    async def run(self) -> None:
        in_frame = False
        while True:
            await FallingEdge(self.clk)
            ctrl = int(self.ctrl.value)
            if ctrl != (0 if in_frame else 0xFF) or not in_frame:
                data = int(self.data.value)
                for lane in range(LANES):
                    octet = data >> 8 * lane & 0xFF
                    if not ctrl >> lane & 1:
                        assert in_frame, f"data octet {octet:#04x} outside a frame at octet {self.position + lane}"
                    elif octet == START:
                        assert lane in (0, 4) and not in_frame, f"/S/ in lane {lane}"
                        self.starts.append(self.position + lane)
                        in_frame = True
                    elif octet == ERROR:
                        self.errors += 1
                    elif in_frame:
                        assert octet == TERM, f"frame ends with {octet:#04x}"
                        self.ends.append(self.position + lane)
                        in_frame = False
                    else:
                        assert octet == IDLE, f"{octet:#04x} in the gap"
            self.position += LANES

    def gaps(self) -> list[int]:
        """Octets from each /T/ to the next /S/."""
        return [start - end for end, start in zip(self.ends, self.starts[1:], strict=False)]
