# SPDX-License-Identifier: Apache-2.0
"""The QCN switch, whose stations go on while it is reset."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource
from lib.runner import seed
from scapy.layers.l2 import Ether

PORTS = range(2)
SETTLES = 100  # cycles in which its tables clear themselves, and frames that the reset cut are over
MANY = 12


class Stations:
    """One at each port; they are not reset. Sources and sinks of whole frames, and all that was ever sent."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        line = {name: [getattr(dut, f"{name}_{port}") for port in PORTS] for name in ("rxd", "rxc", "txd", "txc")}
        self.sources = [XgmiiSource(line["rxd"][port], line["rxc"][port], dut.clk) for port in PORTS]
        self.sinks = [XgmiiSink(line["txd"][port], line["txc"][port], dut.clk) for port in PORTS]
        for model in (*self.sources, *self.sinks):
            model.log.setLevel("ERROR")
        self.sent: set[bytes] = set()
        self.cut = 0

    async def send(self, count: int) -> list[list[bytes]]:
        """Frames from each to the other one; those that each is to receive."""
        due: list[list[bytes]] = [[], []]
        for _ in range(count):
            for port in PORTS:
                head = bytes(Ether(src=f"02:00:00:00:01:{port:02x}", dst=f"02:00:00:00:01:{1 - port:02x}", type=0x88B5))
                frame = head + self.rng.randbytes(self.rng.randrange(46, 1500))
                self.sent.add(frame)
                due[1 - port].append(frame)
                await self.sources[port].send(XgmiiFrame.from_payload(frame))
        return due

    def take(self, port: int) -> list[bytes]:
        """The whole frames that have come: each is one that was sent."""
        whole = []
        while not self.sinks[port].empty():
            frame = self.sinks[port].recv_nowait()
            if any(frame.ctrl or []) or len(frame.data) < 72 or not frame.check_fcs():
                self.cut += 1
                continue
            whole.append(bytes(frame.get_payload()))
            assert whole[-1] in self.sent, "a frame that nobody sent"
        return whole


@cocotb.test(timeout_time=2, timeout_unit="ms", skip="PARAM_MANAGEMENT" not in os.environ)
async def resets_of_the_switch_let_no_wrong_frame_through(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    stations, amid = Stations(dut, rng), 0
    for number in range(12):
        dut.rst.value = 1
        await ClockCycles(dut.clk, rng.randrange(1, 8) if number else 8)
        dut.rst.value = 0
        while not all(source.idle() for source in stations.sources):
            await ClockCycles(dut.clk, 10)
        await ClockCycles(dut.clk, 400)
        for port in PORTS:
            stations.take(port)
        due = await stations.send(MANY)
        while sum(sink.count() for sink in stations.sinks) < 2 * MANY:
            await ClockCycles(dut.clk, 50)
        assert [stations.take(port) for port in PORTS] == due
        await stations.send(MANY)
        await ClockCycles(dut.clk, rng.randrange(1500))
        amid += not all(source.idle() for source in stations.sources)
        for source in stations.sources if rng.random() < 0.5 else []:
            source.clear()  # only the rest of the frame on the line comes after the reset
    dut._log.info(f"{amid} resets amid frames, {stations.cut} frames cut")
    assert amid > 6 and stations.cut
