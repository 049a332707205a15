# SPDX-License-Identifier: Apache-2.0
"""Shared by the benches of `tcp_endpoint`: its ports, commands and messages, and the reports about its streams."""

from collections import Counter, deque
from collections.abc import Callable, Iterable

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_MAC, ip_int, mac_int
from lib.structs import pack, unpack

PORT_BASE = 40_000
PARAMETERS = {
    "mss": 1460,
    "receive_window": 65535,
    "nagle": 1,
    "back_off": 1,
    "adaptive": 1,
    "rto_initial": 800,
    "rto_min": 400,
    "rto_max": 5000,
    "give_up": 0,
    "challenge_interval": 500,
}


class TcpBed:
    """The endpoint without a network: a bench adds tasks that carry frames between `source`, `sink` and the peers."""

    def __init__(self, dut, rng, streams: int):
        self.dut, self.rng, self.loss = dut, rng, 0.0
        self.written = [bytearray() for _ in range(streams)]
        self.queue: deque = deque()  # (stream, message) to be sent
        self.state, self.acked = [0] * streams, [0] * streams
        self.ended = [0] * streams  # tcp_end_e, why it ended last
        self.homes: list[int] = []  # tcp_peer_t, that a stream is opened to
        self.counts: Counter = Counter()
        self.kinds: Counter = Counter()  # of received frames

    async def connect(self, peers: Iterable[tuple[str, int]], **changes: int) -> None:
        """Resets the endpoint with these parameters changed; the peers are IP addresses and ports, stream by stream."""
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        dut.rst.value = 1
        dut.local_mac.value, dut.local_ip.value = mac_int(LOCAL_MAC), ip_int(LOCAL_IP)
        dut.ttl.value, dut.tos.value, dut.port_base.value, dut.tx_paused.value = 64, 0, PORT_BASE, 0
        dut.params.value = pack("tcp_params_t", **{**PARAMETERS, **changes})
        for name in ("open_valid", "moved", "open_command", "abort_valid", "abort_stream", "peer", "s_msg_stream"):
            getattr(dut, name).value = 0
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.msg = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_msg"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        self.homes = [pack("tcp_peer_t", mac=mac_int(PEER_MAC), ip=ip_int(ip), port=port) for ip, port in peers]
        for task in (self._watch(), self._write()):
            cocotb.start_soon(task)

    async def open_stream(self, stream: int, iss: int) -> None:
        dut = self.dut
        dut.peer.value = self.homes[stream]
        dut.open_command.value, dut.open_valid.value = pack("tcp_opening_t", stream=stream, iss=iss), 1
        await RisingEdge(dut.clk)
        while not dut.open_ready.value:
            await RisingEdge(dut.clk)
        dut.open_valid.value = 0

    async def abort_stream(self, stream: int) -> None:
        dut = self.dut
        dut.abort_stream.value, dut.abort_valid.value = stream, 1
        await RisingEdge(dut.clk)
        while not dut.abort_ready.value:
            await RisingEdge(dut.clk)
        dut.abort_valid.value = 0

    def write(self, stream: int, message: bytes) -> None:
        self.written[stream] += message
        self.queue.append((stream, message))

    async def until(self, condition: Callable[[], bool], cycles: int) -> None:
        for _ in range(cycles):
            if condition():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"not within {cycles} cycles: {self.progress()}")

    def progress(self) -> str:
        """How far the streams have come."""
        written = [len(one) for one in self.written]
        return f"states {self.state}, written {written}, acknowledged {self.acked}, {self.counts}"

    def done(self, done: dict[str, int]) -> None:
        """An event has been served."""
        stream = done["stream"]
        self.state[stream] = done["state"]
        self.acked[stream] += done["actions.acknowledged"]
        self.ended[stream] = done["actions.ended"] or self.ended[stream]
        self.counts.update(name[15:] for name, v in done.items() if name.startswith("actions.counts.") and v)

    # ---- tasks -----------------------------------------------------------------------------------------------------
    async def _write(self) -> None:
        while True:
            while not self.queue:
                await RisingEdge(self.dut.clk)
            stream, message = self.queue.popleft()
            self.dut.s_msg_stream.value = stream
            await self.msg.send(AxiStreamFrame(message))
            await self.msg.wait()

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if (counts := int(dut.rx_counts.value)) != 0:
                self.kinds.update(name for name, value in unpack("tcp_rx_counts_t", counts).items() if value)
            if dut.done_valid.value:
                self.done(unpack("tcp_done_t", int(dut.done.value)))
