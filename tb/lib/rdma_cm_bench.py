# SPDX-License-Identifier: Apache-2.0
"""Both connection managers with their surroundings, and peers of the standard one."""

from collections import Counter
from pathlib import Path

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, ValueChange, with_timeout
from cocotb.utils import get_sim_time

from lib import mads
from lib.connection_bench import LOCAL_IP, QPN_BASE, SERVER_IP, Board
from lib.mads import Answer
from lib.register_map import address
from lib.runner import Bench

BENCH = Bench(
    top="rdma_cm_bench",
    sources=[Path(__file__).parents[1] / "rdma_cm/rdma_cm_bench.sv"],
    # The slow clock is for timers, the fast one for long series of messages without any.
    configs=[{"N_QP": n, "CLK_KHZ": khz} for n, khz in ((1, 100), (4, 100), (4, 100_000), (256, 1000))],
)

PORT, MTU_CODE = 17185, 5
LOCAL_MAC = 0x02505354_4B02
GUID = (LOCAL_MAC & 0xFFFFFFFF) << 32 | LOCAL_IP
TICK_CYCLES = 104  # of 1.048576 ms, with CLK_KHZ 100
STATS = ["request", "refused", "repeated", "unknown", "ignored", "established", "disconnected", "silent", "malformed"]


class RdmaBoard(Board):
    """Queue pair n has the window (n << 20, (n + 1) << 12 bytes, key 0x1000 + n, 1 + n READs, at most 16)."""

    def __init__(self, dut):
        super().__init__(dut)
        self.answers: Queue[Answer] = Queue()
        self.counts: Counter[str] = Counter()
        self.mad_loss = 0.0
        self.n_qp = int(dut.N_QP.value)
        for qp in range(self.n_qp):
            self.window(qp, (qp + 1) << 12)

    @classmethod
    async def start(cls, dut, listen: int = 1, reopen: int = 0) -> "RdmaBoard":
        dut.rdma_port.value, dut.local_mac.value = PORT, LOCAL_MAC
        dut.s_axis_mad_tvalid.value = 0
        board = await super().start(dut, listen, reopen)
        cocotb.start_soon(board.count())
        await ClockCycles(dut.clk, 16 * board.n_qp + 40)
        return board

    def window(self, qp: int, length: int):
        words = {
            "read_base_lo": qp << 20 & 0xFFFFFFFF,
            "read_base_hi": qp << 20 >> 32,
            "read_length_lo": length & 0xFFFFFFFF,
            "read_length_hi": length >> 32,
            "read_rkey": 0x1000 + qp,
            "read_depth": min(1 + qp, 16),
        }
        for name, word in words.items():
            where = address(f"qp.{name}", qp)
            self.registers.bytes[where : where + 4] = word.to_bytes(4, "little")

    async def count(self):
        """The pulses of the counters."""
        while True:
            pulses = int(self.dut.stat_rdma.value)
            if not pulses:
                await ValueChange(self.dut.stat_rdma)
            await RisingEdge(self.dut.clk)
            pulses = int(self.dut.stat_rdma.value)
            self.counts.update(name for i, name in enumerate(reversed(STATS)) if pulses >> i & 1)

    def emit(self, data: bytes, ip: int, dport: int, sport: int):
        """FEROCE's messages go to `sent`, MADs to `answers`."""
        if dport != mads.UDP_PORT:
            super().emit(data, ip, dport, sport)
            return
        answer = Answer(ip, data)
        assert (len(data), sport) == (mads.BYTES, mads.SOURCE_PORT)
        assert data == mads.payload(LOCAL_IP, ip, answer.mad), "headers and ICRC"
        self.emitted += 1
        if self.rng.random() >= self.mad_loss:
            self.answers.put_nowait(answer)

    async def deliver_mad(self, payload: bytes, ip: int = SERVER_IP):
        """A datagram's payload as the services hand it on."""
        self.dut.mad_rx_ip.value = ip
        for at in range(0, len(payload), 2):
            self.dut.s_axis_mad_tdata.value = int.from_bytes(payload[at : at + 2], "little")
            self.dut.s_axis_mad_tlast.value = at + 2 >= len(payload)
            self.dut.s_axis_mad_tvalid.value = 1
            ready = False
            while not ready:
                await ReadOnly()
                ready = bool(self.dut.s_axis_mad_tready.value)
                await RisingEdge(self.dut.clk)
            self.dut.s_axis_mad_tvalid.value = 0

    async def post(self, attribute: int, data: bytes, ip: int = SERVER_IP, transaction: int = 1):
        await self.deliver_mad(mads.payload(ip, LOCAL_IP, mads.mad(attribute, data, transaction)), ip)

    async def settled_mads(self):
        """Until the last message has had its effect: a DREQ of nobody is answered after it."""
        marker = 0xFEDCBA98
        await self.post(mads.DREQ, mads.dreq(marker, marker, 0), 0x0A0A0A0A, transaction=marker)
        self.counts["unknown"] -= 1
        found = []
        while True:
            answer = await with_timeout(self.answers.get(), 20, "ms")
            if answer.transaction == marker:
                return found
            found.append(answer)

    async def answer_after(self, ticks: int) -> Answer:
        """The next answer, which a timer sends; while a message is sent ticks are lost."""
        began = get_sim_time("ns")
        answer = await with_timeout(self.answers.get(), (ticks + 24) * TICK_CYCLES * 10, "ns")
        assert (get_sim_time("ns") - began) / (TICK_CYCLES * 10) >= ticks - 2, "too early"
        return answer

    async def no_answer(self, ticks: int):
        await ClockCycles(self.dut.clk, ticks * TICK_CYCLES)
        assert self.answers.empty()

    async def exchange_mad(
        self, attribute: int, data: bytes, ip: int = SERVER_IP, transaction: int = 1
    ) -> list[Answer]:
        """All answers to a message."""
        await self.post(attribute, data, ip, transaction)
        return await self.settled_mads()

    async def agreed(self, local: int = 0x51, ip: int = SERVER_IP, **changed) -> Answer:
        """The REP to a REQ."""
        answers = await self.exchange_mad(mads.REQ, mads.req(ip, LOCAL_IP, local, **changed), ip)
        assert [answer.attribute for answer in answers] == [mads.REP]
        assert (answers[0].ip, answers[0].remote) == (ip, local)
        return answers[0]

    def state(self, qp: int) -> int:
        return self.registers.qp("state", qp)


def queue_pair(rep: Answer) -> int:
    assert rep.qpn & ~0xFF == QPN_BASE
    return rep.qpn & 0xFF
