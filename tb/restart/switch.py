# SPDX-License-Identifier: Apache-2.0
"""The QCN switch, whose stations go on while it is reset. At 1 Gb/s each line has clocks of its own."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource, XgmiiFrame, XgmiiSink, XgmiiSource
from lib.runner import seed
from scapy.layers.l2 import Ether

PORTS = range(2)
# Frames to it never leave a switch (IEEE 802.1Q 8.6.3): a frame that leaves by another's address is seen.
LINK_LOCAL = bytes.fromhex("0180c2000000")
CORE_PS, OCTET_PS = 16_000, (7_998, 8_002)  # at 1 Gb/s; PHYs 250 ppm off


class Stations:
    """One at each port; they are not reset. Sources and sinks of whole frames, and all that was ever sent."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.is_gmii = hasattr(dut, "gmii_tx_clk")
        # GMII goes octet by octet, which takes the simulator longer.
        self.rounds, self.many, self.longest = (8, 6, 500) if self.is_gmii else (12, 12, 1500)
        self.octets = 8 if self.is_gmii else 1  # cycles of the core in the time of eight octets, about
        self.frame = GmiiFrame if self.is_gmii else XgmiiFrame

        def pins(*names: str) -> list[tuple]:
            return [tuple(getattr(dut, f"{name}_{port}") for name in names) for port in PORTS]

        if self.is_gmii:
            self.sources = [GmiiSource(*line) for line in pins("rxd", "rx_er", "rx_dv", "rx_clk")]
            self.sinks = [GmiiSink(*line, dut.gmii_tx_clk) for line in pins("txd", "tx_er", "tx_en")]
        else:
            self.sources = [XgmiiSource(*line, dut.clk) for line in pins("rxd", "rxc")]
            self.sinks = [XgmiiSink(*line, dut.clk) for line in pins("txd", "txc")]
        for model in (*self.sources, *self.sinks):
            model.log.setLevel("ERROR")
        self.sent: set[bytes] = set()
        self.cut = 0

    def start(self) -> None:
        clocks = [(self.dut.clk, CORE_PS)]
        if self.is_gmii:
            clocks += [(self.dut.gmii_tx_clk, 8_000)]
            clocks += [(getattr(self.dut, f"rx_clk_{port}"), OCTET_PS[port]) for port in PORTS]
        for clock, period in clocks:
            cocotb.start_soon(Clock(clock, period, "ps").start())

    async def send(self, count: int) -> list[list[bytes]]:
        """Frames from each to the other one, and to nobody; those that each is to receive."""
        due: list[list[bytes]] = [[], []]
        for _ in range(count):
            for port in PORTS:
                head = bytes(Ether(src=f"02:00:00:00:01:{port:02x}", dst=f"02:00:00:00:01:{1 - port:02x}", type=0x88B5))
                to_nobody = self.rng.random() < 0.4
                head = LINK_LOCAL + head[6:] if to_nobody else head
                frame = head + self.rng.randbytes(self.rng.randrange(46, self.longest))
                if not to_nobody:
                    self.sent.add(frame)
                    due[1 - port].append(frame)
                await self.sources[port].send(self.frame.from_payload(frame))
        return due

    def take(self, port: int) -> list[bytes]:
        """The whole frames that have come: each is one that was sent."""
        whole = []
        while not self.sinks[port].empty():
            frame = self.sinks[port].recv_nowait()
            marks = frame.error if self.is_gmii else frame.ctrl
            if any(marks or []) or len(frame.data) < 72 or not frame.check_fcs():
                self.cut += 1
                continue
            whole.append(bytes(frame.get_payload()))
            assert whole[-1] in self.sent, "a frame that nobody sent to a station"
        return whole


@cocotb.test(timeout_time=4, timeout_unit="ms", skip=not {"PARAM_N_QP", "PARAM_DATA_W"}.isdisjoint(os.environ))
async def resets_of_the_switch_let_no_wrong_frame_through(dut):
    rng = seed()
    stations, amid = Stations(dut, rng), 0
    stations.start()
    for number in range(stations.rounds):
        dut.rst.value = 1
        await ClockCycles(dut.clk, rng.randrange(1, 8) if number else 8)
        dut.rst.value = 0
        while not all(source.idle() for source in stations.sources):
            await ClockCycles(dut.clk, 10)
        await ClockCycles(dut.clk, 400 * stations.octets)
        for port in PORTS:
            stations.take(port)
        due = await stations.send(stations.many)
        while any(sink.count() < len(frames) for sink, frames in zip(stations.sinks, due, strict=True)):
            await ClockCycles(dut.clk, 50)
        assert [stations.take(port) for port in PORTS] == due
        await stations.send(stations.many)
        await ClockCycles(dut.clk, rng.randrange(1500))
        amid += not all(source.idle() for source in stations.sources)
        for source in stations.sources if rng.random() < 0.5 else []:
            source.clear()  # only the rest of the frame on the line comes after the reset
    dut._log.info(f"{amid} resets amid frames, {stations.cut} frames cut")
    assert amid > stations.rounds // 2 and stations.cut
