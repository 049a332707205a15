# SPDX-License-Identifier: Apache-2.0
"""Shared by the benches of `read_responder`: the table of queue pairs that it reads, and how a bench waits.

Promise: a queue pair is answered from the same settings in each bench. A bench gives `mtu`, `windows` and `models`, one
for each queue pair.
"""

from collections.abc import Callable
from dataclasses import replace

from cocotb.triggers import RisingEdge, with_timeout

from lib import structs
from lib.read_model import Window

CLOCK_NS = 10


class ResponderBed:
    mtu: list[int]
    windows: list
    models: list
    window: Window  # as the gateware has read it last

    def __init__(self, dut) -> None:
        self.dut = dut
        self.ready = 0

    def open_with(self, qp: int, model: object) -> None:
        self.models[qp] = model
        self.ready |= 1 << qp
        self.dut.ready.value = self.ready

    def close(self, qp: int) -> None:
        self.models[qp] = None
        self.ready &= ~(1 << qp)
        self.dut.ready.value = self.ready

    def dest_qpn(self, qp: int) -> int:
        return 0x123400 + 7 * qp

    async def table(self) -> None:
        """Answers what the gateware reads of a queue pair."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if dut.cfg_rd.value == 1:
                qp = int(dut.cfg_qp.value)
                window = self.window = replace(self.windows[qp])
                dut.cfg.value = structs.pack(
                    "qp_cfg_t", dst_ip=qp + 1, dst_mac=qp + 2, dest_qpn=self.dest_qpn(qp), udp_sport=0xC000 + qp,
                    mtu=self.mtu[qp].bit_length() - 8,
                )  # fmt: skip
                dut.window.value = structs.pack(
                    "read_cfg_t", resources=window.resources, psn=window.psn, rkey=window.rkey, base=window.base,
                    length=window.length, **self.of_writes(window),
                )  # fmt: skip

    def of_writes(self, window) -> dict[str, int]:
        """The settings of a window that peers may write."""
        return {}

    async def until(self, condition: Callable[[], bool], cycles: int = 400_000) -> None:
        async def wait():
            while not condition():
                await RisingEdge(self.dut.clk)

        await with_timeout(wait(), cycles * CLOCK_NS, "ns")
