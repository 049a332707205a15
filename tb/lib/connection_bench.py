# SPDX-License-Identifier: Apache-2.0
"""The connection manager with its surroundings, for the benches of both roles: registers, lookups, the network."""

from dataclasses import dataclass
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ReadOnly, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteSlave, Region

from lib import connection as cm
from lib.connection import Info, Message
from lib.register_map import address
from lib.runner import Bench, seed

# Both roles are benches of one model.
BENCH = Bench(
    top="connection_manager_bench",
    sources=[Path(__file__).parents[1] / "connection_manager/connection_manager_bench.sv"],
    configs=[{"N_QP": n, "CLK_KHZ": 100} for n in (1, 4, 256)],
)

CYCLES_PER_MS = 100
TIMEOUT_MS, RETRIES = 3, 2
LOCAL_IP, QPN_BASE = 0x0A000002, 0xBEEF00
SERVER_IP, OTHER_IP, DATA_IP = 0x0A000001, 0x0A000063, 0x0A010001
MAC = 0x021122334455
FLOW, TRANSPORT = 0x6A0000, 0x7775
RESET, INIT, RTR, RTS, ERR = 0, 1, 2, 3, 6
PEER = Info(qpn=0x123456, psn=0xABCDEF, rkey=0xC0FFEE01, base=0x7F0012345000, ip=SERVER_IP)
STEP_OPEN, STEP_DONE, STEP_NONE = 1, 4, 0
FAIL_SILENT, FAIL_NO_QP, FAIL_NAK, FAIL_SERVER, FAIL_ADDRESS, FAIL_STATE = range(1, 7)


class RegisterBlock(Region):
    """Memory in the place of the register block; `stuck` queue pairs never become ready to send."""

    def __init__(self):
        super().__init__(1 << 18)
        self.bytes = bytearray(1 << 18)
        self.writes: list[tuple[int, int]] = []
        self.stuck = False

    async def _read(self, where, length, **kwargs):
        return bytes(self.bytes[where : where + length])

    async def _write(self, where, data, **kwargs):
        word = int.from_bytes(data, "little")
        self.writes.append((where, word))
        state = where >= address("qp.state") and where % 0x100 == address("qp.state") % 0x100
        if not (self.stuck and state and word == RTS):
            self.bytes[where : where + len(data)] = data

    def word(self, name: str, index: int = 0) -> int:
        where = address(name, index)
        return int.from_bytes(self.bytes[where : where + 4], "little")

    def qp(self, name: str, index: int) -> int:
        return self.word(f"qp.{name}", index)


@dataclass
class Sent:
    data: bytes
    message: Message
    ip: int
    dport: int
    sport: int


class Board:
    """The manager with its surroundings: register block, address resolution, the network."""

    def __init__(self, dut):
        self.dut = dut
        self.registers = RegisterBlock()
        self.arp_answers = True
        self.looked_up: list[int] = []
        self.sent: Queue[Sent] = Queue()
        self.loss, self.rng = 0.0, seed()
        self.emitted = 0  # messages, those that are lost on their way too

    @classmethod
    async def start(cls, dut, listen: int = 1, reopen: int = 0) -> "Board":
        board = cls(dut)
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        slave = AxiLiteSlave(AxiLiteBus.from_prefix(dut, "m_axil"), dut.clk, dut.rst, target=board.registers)
        pauses = board.rng.choices([0, 1], k=97)
        slave.write_if.b_channel.set_pause_generator(iter(pauses * 10000))
        dut.rst.value = 1
        dut.local_ip.value, dut.qpn_base.value = LOCAL_IP, QPN_BASE
        dut.s_axis_cm_tvalid.value = dut.found_valid.value = dut.qp_err_valid.value = dut.lookup_ready.value = 0
        dut.qp_stop_valid.value = 0
        dut.m_axis_cm_tready.value = 0
        board.configure(listen=listen, reopen=reopen)
        for _ in range(4):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        cocotb.start_soon(board.resolve())
        cocotb.start_soon(board.take())
        return board

    server_ip = SERVER_IP  # whom the board asks

    def configure(self, open_qp=None, close_qp=None, listen=1, reopen=0, engaged=0, keep=0, per_address=0, offered=0):
        """cm_cfg_t, highest member first."""
        qp = open_qp if open_qp is not None else close_qp or 0
        members = [
            (listen, 1),
            (reopen, 1),
            (engaged, 1),
            (keep, 1),
            (per_address, 8),
            (offered, 8),
            (self.server_ip, 32),
            (cm.REQUEST_PORT, 16),
            (TIMEOUT_MS, 16),
            (RETRIES, 4),
        ]
        members += [(FLOW, 32), (TRANSPORT, 32), (open_qp is not None, 1), (close_qp is not None, 1), (qp, 8)]
        word = 0
        for value, width in members:
            word = word << width | int(value)
        self.dut.cfg.value = word

    async def command(self, reopen=0, **what):
        """Pulses cm_cfg_t.open or .close."""
        self.configure(reopen=reopen, **what)
        await RisingEdge(self.dut.clk)
        self.configure(reopen=reopen)

    async def resolve(self):
        """Answers lookups after a while."""
        while True:
            await RisingEdge(self.dut.lookup_valid)
            await RisingEdge(self.dut.clk)
            self.looked_up.append(int(self.dut.lookup_ip.value))
            self.dut.lookup_ready.value = 1
            await RisingEdge(self.dut.clk)
            self.dut.lookup_ready.value = 0
            for _ in range(self.rng.randrange(1, 9)):
                await RisingEdge(self.dut.clk)
            self.dut.found_valid.value = 1
            self.dut.found.value = self.arp_answers
            self.dut.found_mac.value = MAC
            await RisingEdge(self.dut.clk)
            self.dut.found_valid.value = 0

    async def take(self):
        """What the manager sends, after random stalls."""
        data, ways = b"", set()
        while True:
            if not self.dut.m_axis_cm_tvalid.value:
                await RisingEdge(self.dut.m_axis_cm_tvalid)
            self.dut.m_axis_cm_tready.value = self.rng.random() < 0.6
            await ReadOnly()
            whole, way = b"", (0, 0, 0)
            if self.dut.m_axis_cm_tvalid.value and self.dut.m_axis_cm_tready.value:
                data += self.dut.m_axis_cm_tdata.value.to_unsigned().to_bytes(2, "little")
                ways.add(tuple(int(getattr(self.dut, f"cm_tx_{way}").value) for way in ("ip", "dport", "sport")))
                if self.dut.m_axis_cm_tlast.value:
                    assert len(ways) == 1, "the way holds for all beats of a message"
                    whole, way, data = data, ways.pop(), b""
            await RisingEdge(self.dut.clk)
            if whole:
                self.emit(whole, *way)

    def emit(self, data: bytes, ip: int, dport: int, sport: int):
        """A message that the manager has sent."""
        assert len(data) == 64
        self.emitted += 1
        if self.rng.random() >= self.loss:
            self.sent.put_nowait(Sent(data, Message.unpack(data), ip, dport, sport))

    async def deliver(self, message: Message | bytes, ip: int = SERVER_IP):
        if self.rng.random() < self.loss:
            return
        data = message if isinstance(message, bytes) else message.pack()
        self.dut.cm_rx_ip.value = ip
        for at in range(0, 64, 2):
            while self.rng.random() < 0.2:
                await RisingEdge(self.dut.clk)
            self.dut.s_axis_cm_tdata.value = int.from_bytes(data[at : at + 2], "little")
            self.dut.s_axis_cm_tlast.value = at == 62
            self.dut.s_axis_cm_tvalid.value = 1
            ready = False
            while not ready:
                await ReadOnly()
                ready = bool(self.dut.s_axis_cm_tready.value)
                await RisingEdge(self.dut.clk)
            self.dut.s_axis_cm_tvalid.value = 0

    async def answer(self) -> Sent:
        return await with_timeout(self.sent.get(), 200, "us")

    async def exchange(self, message: Message, ip: int = SERVER_IP) -> Message:
        """A request and its answer, which must go where it says."""
        await self.deliver(message, ip)
        sent = await self.answer()
        assert (sent.ip, sent.sport, sent.message.port) == (ip, cm.REQUEST_PORT, cm.REQUEST_PORT)
        assert sent.dport == (message.port or cm.REPLY_PORT)
        assert sent.message.request == message.request
        assert sent.message.other == message.sender
        return sent.message

    async def opened(self, peer: Info = PEER) -> Info:
        """A queue pair ready to send to `peer`, opened as FEROCE's host software does; our side of it."""
        reply = await self.exchange(Message(cm.OPEN_QP, peer, port=cm.REQUEST_PORT), peer.ip)
        assert reply.answer == cm.ACK
        assert self.registers.qp("state", index(reply.sender)) == RTS
        return reply.sender

    def status(self) -> dict[str, int]:
        word = int(self.dut.status.value)
        return {"busy": word >> 15 & 1, "step": word >> 12 & 7, "fail": word >> 8 & 15, "qp": word & 255}

    def probes_idle(self) -> bool:
        """Whether idle queue pairs are to ask their peers for a sign of life."""
        return bool(int(self.dut.status.value) >> 16)

    async def settled(self, limit_ms: int = 100) -> dict[str, int]:
        for _ in range(limit_ms * CYCLES_PER_MS):
            await RisingEdge(self.dut.clk)
            if not self.status()["busy"]:
                return self.status()
        raise AssertionError(f"still busy after {limit_ms} ms: {self.status()}")

    async def fail_qp(self, qp: int):
        self.dut.qp_err_qp.value = qp
        self.dut.qp_err_valid.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.qp_err_valid.value = 0
        self.registers.bytes[address("qp.state", qp)] = ERR

    async def stop_qp(self, qp: int):
        """Software writes ERR into a queue pair's state."""
        self.dut.qp_stop_qp.value = qp
        self.dut.qp_stop_valid.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.qp_stop_valid.value = 0
        self.registers.bytes[address("qp.state", qp)] = ERR


def index(info: Info) -> int:
    assert info.qpn & ~0xFF == QPN_BASE
    return info.qpn & 0xFF
