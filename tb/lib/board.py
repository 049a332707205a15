# SPDX-License-Identifier: Apache-2.0
"""The gateware as its user sees it: registers, work requests with their payloads, completions."""

import logging
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from lib import cable, structs
from lib.axi_memory import AxiMemory
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.rc_peer import QPN_BASE, Peer
from lib.register_map import Registers, unpack
from lib.roce import LOCAL_IP, LOCAL_MAC, PEER_IP, PEER_MAC, ip_int, mac_int

RESET, INIT, RTR, RTS, SQD, ERR = 0, 1, 2, 3, 4, 6  # enum ibv_qp_state
SUCCESS, FLUSH_ERR, REM_ACCESS, RETRY_EXC = 0, 5, 10, 12
MTU_4096 = 5


class Board:
    """A top out of reset; `open` makes a queue pair ready to send to queue pair `qp` of the peer."""

    def __init__(self, dut, first_psn: dict[int, int], peer: type[Peer] = Peer):
        self.dut, self.first_psn = dut, first_psn
        self.registers = Registers(dut)
        self.descriptors = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_desc"), dut.clk, dut.rst)
        self.data = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_data"), dut.clk, dut.rst)
        self.completions = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_cpl"), dut.clk, dut.rst)
        self.peer = peer(dut, first_psn)
        self.line = cable.line()

    async def set_up(self) -> None:
        write = self.registers.write
        await write("local_mac_hi", mac_int(LOCAL_MAC) >> 32)
        await write("local_mac_lo", mac_int(LOCAL_MAC) & 0xFFFFFFFF)
        await write("local_ip", ip_int(LOCAL_IP))
        await write("qpn_base", QPN_BASE)
        for qp in self.first_psn:
            await self.open(qp)

    async def open(self, qp: int, mtu: int = MTU_4096, ack_timeout: int | None = None, retry_cnt: int = 7) -> None:
        """`ack_timeout` as in the register; unless it is given the line carries a whole ring in that time."""
        if ack_timeout is None:
            ack_timeout = 5 if self.line.gbps >= 10 else 9
        write = self.registers.write
        await write("qp.state", RESET, qp)
        await write("qp.dst_mac_hi", mac_int(PEER_MAC) >> 32, qp)
        await write("qp.dst_mac_lo", mac_int(PEER_MAC) & 0xFFFFFFFF, qp)
        await write("qp.dst_ip", ip_int(PEER_IP), qp)
        await self.registers.write_fields("qp.flow", qp, udp_sport=0xC000 + qp, tos=2)
        await write("qp.dest_qpn", qp, qp)
        await write("qp.rkey", 0x1234, qp)
        transport = {"mtu": mtu, "ack_timeout": ack_timeout, "retry_cnt": retry_cnt, "rnr_retry": 7}
        await self.registers.write_fields("qp.transport", qp, **transport)
        await write("qp.init_psn", self.first_psn[qp], qp)
        await write("qp.state", RTS, qp)
        for _ in range(1000):
            if await self.state(qp) == RTS:
                return
        raise AssertionError(f"queue pair {qp} does not become ready to send")

    async def state(self, qp: int) -> int:
        return await self.field("qp.state", "state", qp)

    async def post(
        self, qp: int, payload: bytes, tag: int, raddr: int | None = None, imm: int | None = None, series: bool = False
    ) -> None:
        """A WRITE to `raddr`, or a SEND; the payload may wait in the source's queue."""
        word = structs.pack(
            "desc_t", qp=qp, verb=raddr is None, with_imm=imm is not None, length=len(payload), raddr=raddr or 0,
            imm=imm or 0, tag=tag, series=series,
        )  # fmt: skip
        await self.descriptors.send(AxiStreamFrame(word.to_bytes(22, "little")))
        await self.data.send(AxiStreamFrame(payload))

    async def completion(self) -> tuple[int, int, int]:
        """Queue pair, tag, status of the next completion."""
        cpl = structs.unpack("cpl_t", int.from_bytes((await self.completions.recv()).tdata, "little"))
        return cpl["qp"], cpl["tag"], cpl["status"]

    async def count(self, name: str) -> int:
        return await self.registers.read(f"counters.{name}")

    async def field(self, name: str, field: str, qp: int) -> int:
        return unpack(name, await self.registers.read(name, qp))[field]


async def start(dut, first_psn: dict[int, int], peer: type[Peer] = Peer) -> Board:
    """Clock, reset, addresses, and the named queue pairs opened at their first PSN."""
    cocotb.start_soon(Clock(dut.clk, cable.line().clock_ps, "ps").start())
    dut.rst.value = dut.m_axi_rst.value = 1
    board = Board(dut, first_psn, peer)
    if os.environ.get("PARAM_STORE") == "1":  # the send rings are in this memory, which takes its time
        rings = sum(int(os.environ.get(f"PARAM_{name}", "0")) for name in ("N_QP", "N_STREAMS"))
        size = rings * int(os.environ["PARAM_RING_BYTES"]) + (1 << 20)
        board.memory = AxiMemory(dut, random.Random(1), size, lambda rng: rng.randrange(20, 60), clock_ns=6)
    for model in (
        "s_axil",
        "s_axis_desc",
        "s_axis_data",
        "m_axis_cpl",
        "xgmii_rxd",
        "xgmii_txd",
        "gmii_rxd",
        "m_axis_tx",
        "s_axis_rx",
    ):
        logging.getLogger(f"cocotb.{dut._name}.{model}").setLevel(logging.WARNING)  # a line per frame is too many
    for _ in range(8):
        await RisingEdge(dut.clk)
    dut.rst.value = dut.m_axi_rst.value = 0
    for _ in range(300):  # tables clear themselves
        await RisingEdge(dut.clk)
    await board.set_up()
    return board
