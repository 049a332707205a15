# SPDX-License-Identifier: Apache-2.0
"""An AXI4 memory with latency: cocotbext-axi's AxiSlave with latency, pauses and error responses.

A write reaches the memory when its response leaves, a read sees the memory as it is when its address arrives: so
a read before the response of a write returns the old data. It is reset by `m_axi_rst`, or by `rst` where there is none:
responses to what came before its reset do not come.
"""

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import RisingEdge, Timer
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiBus, AxiSlave
from cocotbext.axi.constants import AxiResp


class Fault(Exception):
    """Makes the slave answer SLVERR."""


@dataclass
class Delayed:
    """Replaces a response channel: passes responses on, in order, `latency()` cycles later.

    `take()` is called when a response comes, and what it returns when that response leaves.
    """

    channel: object
    latency: Callable[[], int]
    clock_ns: int
    take: Callable[[], Callable[[object], None]] = lambda: lambda item: None

    def __post_init__(self):
        self._transaction_obj = self.channel._transaction_obj
        self.begin()

    def begin(self) -> None:
        self.queue: Queue = Queue()
        self.pending = 0  # that have not left
        self._task = cocotb.start_soon(self._forward())

    def clear(self) -> None:
        self._task.cancel()
        self.channel.clear()
        self.begin()

    async def send(self, item) -> None:
        due = int(get_sim_time("ps")) + self.latency() * self.clock_ns * 1000
        self.queue.put_nowait((due, item, self.take()))
        self.pending += 1

    async def _forward(self) -> None:
        while True:
            due, item, leaves = await self.queue.get()
            if (left := due - int(get_sim_time("ps"))) > 0:
                await Timer(left, "ps")
            await self.channel.send(item)
            self.pending -= 1
            leaves(item)


class AxiMemory:
    """`latency(rng)` in cycles, for each direction; `fault(address, is_write)` says which accesses answer SLVERR."""

    def __init__(self, dut, rng: random.Random, size: int, latency=lambda rng: 20, clock_ns: int = 10):
        self.mem = bytearray(rng.randbytes(size))
        self.fault: Callable[[int, bool], bool] = lambda address, is_write: False
        self.read_latency = self.write_latency = latency
        self.touched: set[int] = set()  # pages of 4 KiB that were written
        self.reads = self.writes = self.most_reads = self.most_writes = 0  # outstanding
        self._open: list[tuple[int, bytes]] = []  # of the burst that is coming in
        reset = dut.m_axi_rst if hasattr(dut, "m_axi_rst") else dut.rst
        self.slave = slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi"), dut.clk, reset, target=self)
        self._b, self._r = slave.write_if.b_channel, slave.read_if.r_channel
        for part in (slave.write_if, slave.read_if):
            part.log.setLevel("ERROR")
        slave.write_if.b_channel = Delayed(self._b, lambda: self.write_latency(rng), clock_ns, self._close)
        slave.read_if.r_channel = Delayed(self._r, lambda: self.read_latency(rng), clock_ns)
        cocotb.start_soon(self._forget(reset))

    def stall(self, rng: random.Random, probability: float) -> None:
        """Every channel pauses at random, or none does."""
        for channel in (self.slave.write_if.aw_channel, self.slave.write_if.w_channel, self._b,
                        self.slave.read_if.ar_channel, self._r):  # fmt: skip
            channel.set_pause_generator(
                (rng.random() < probability for _ in itertools.count()) if probability else None
            )
            channel.pause = False

    def pending(self) -> tuple[int, int]:
        """Words of reads, and writes, whose responses have not left."""
        return self.slave.read_if.r_channel.pending, self.slave.write_if.b_channel.pending

    def hold(self, held: bool) -> None:
        for channel in (self.slave.write_if.aw_channel, self.slave.write_if.w_channel, self.slave.read_if.ar_channel):
            channel.pause = held

    async def take_data_first(self, clk) -> None:
        """Takes an address of a write only when data is offered or there, as a slave may (AMBA AXI4, A3.3.1)."""
        aw, w = self.slave.write_if.aw_channel, self.slave.write_if.w_channel
        while True:
            aw.pause = not w.bus.wvalid.value and w.empty()
            await RisingEdge(clk)

    # ---- called by the slave ------------------------------------------------------------------------

    async def write(self, address: int, data: bytes) -> None:
        if not self._open:
            self.writes += 1
            self.most_writes = max(self.most_writes, self.writes)
        self._open.append((address, data))
        if self.fault(address, True):
            raise Fault

    async def read(self, address: int, length: int) -> bytes:
        if self.fault(address, False):
            raise Fault
        return bytes(self.mem[address : address + length])

    def _close(self) -> Callable[[object], None]:
        operations, self._open = self._open, []
        return functools.partial(self._apply, operations)

    def _apply(self, operations: list[tuple[int, bytes]], b) -> None:
        self.writes -= bool(operations)
        if b.bresp == AxiResp.OKAY:
            for address, data in operations:
                assert address + len(data) <= len(self.mem), f"write to 0x{address:X}, behind the memory"
                self.mem[address : address + len(data)] = data
                self.touched.add(address >> 12)

    async def _forget(self, reset) -> None:
        while True:
            await RisingEdge(reset)
            self._open, self.writes = [], 0
