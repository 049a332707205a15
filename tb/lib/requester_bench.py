# SPDX-License-Identifier: Apache-2.0
"""Shared by the benches of roce_tx: its structs in Python, and a harness with a responder per queue pair."""

import itertools
import logging
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, Event, FallingEdge, RisingEdge, Timer, with_timeout
from cocotb.utils import get_sim_time

from lib import structs
from lib.axis import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from lib.responder import CREDITS, OPCODES, UNLIMITED, Ack, Faults, FaultyNetwork, Packet, Reply, Responder
from lib.runner import seed

CLOCK_NS = 10
ACK_LATENCY = 60  # cycles from an acknowledgement's arrival until the requester surely knows of it
RESET, INIT, RTR, RTS, SQD, ERR = 0, 1, 2, 3, 4, 6  # enum ibv_qp_state
QPN_BASE = 0x5A1700
SUCCESS, LOC_LEN, FLUSH, REM_INV, REM_ACCESS, REM_OP, RETRY_EXC, RNR_EXC = 0, 1, 5, 9, 10, 11, 12, 13
WRITE, SEND = "write", "send"

COUNTERS = [
    "packets_sent",
    "packets_retransmitted",
    "packet_seq_err",
    "rnr_nak",
    "local_ack_timeout_err",
    "stale_acks",
    "messages_ok",
    "messages_err",
]


def hashed_port(local_qpn: int, dest_qpn: int) -> int:
    """UDP source port of a queue pair whose row names none."""
    mixed = local_qpn ^ (dest_qpn << 12 & 0xFFF000 | dest_qpn >> 12)
    return 0xC000 | (mixed & 0x3FFF) ^ mixed >> 14


@dataclass
class Request:
    """A message as the user hands it in; `stream` is what really arrives when it differs from `length`."""

    qp: int
    data: bytes
    verb: str = WRITE
    imm: int | None = None
    tag: int = 0
    raddr: int = 0
    length: int | None = None

    @property
    def consumes(self) -> bool:
        """A receive buffer of the peer."""
        return self.verb == SEND or self.imm is not None

    def descriptor(self) -> bytes:
        length = len(self.data) if self.length is None else self.length
        word = structs.pack(
            "desc_t", qp=self.qp, verb=self.verb == SEND, with_imm=self.imm is not None, length=length,
            raddr=self.raddr, imm=self.imm or 0, tag=self.tag,
        )  # fmt: skip
        return word.to_bytes(22, "little")


@dataclass
class CreditCheck:
    """Holds a requester to IBTA 9.7.7.2: what it may send under the credits it has been given."""

    una: int
    limit: int | None = None  # SSN up to which messages have a receive buffer; None: not limited
    limited_at: int = 0  # cycle in which the first limit came
    ssn: int = 1  # of the next new packet
    ssns: dict[int, int] = field(default_factory=dict)  # by PSN
    ack_requested: dict[int, int] = field(default_factory=dict)  # AckReq by PSN
    probes: int = 0

    def acknowledged(self, reply: Reply, cycle: int) -> None:
        upto = (reply.psn + (reply.kind == Ack.OK)) & 0xFFFFFF
        if 0 < (upto - self.una) & 0xFFFFFF < 1 << 23:
            self.una = upto
        if reply.kind == Ack.OK and reply.value == UNLIMITED:
            self.limit = None
        elif reply.kind == Ack.OK:
            if self.limit is None:
                self.limit, self.limited_at = 0, cycle
            self.limit = max(self.limit, reply.msn + CREDITS[reply.value])

    def sent(self, hdr: dict[str, int], consumes: Callable[[int], bool]) -> None:
        psn, (_, first, last, _) = hdr["psn"], OPCODES[hdr["opcode"]]
        if psn not in self.ssns:
            self.ssns[psn] = self.ssn
            self.ssn += last
        ssn, self.ack_requested[psn] = self.ssns[psn], hdr["ack_req"]
        decided_before = hdr["decided"] < self.limited_at + ACK_LATENCY
        if self.limit is None or ssn <= self.limit or not consumes(ssn) or decided_before:
            return
        where = f"psn {psn:#x} of message {ssn}, limit {self.limit}"
        if psn == self.una and not first:
            self.limit = ssn  # its first packet took a buffer
        elif psn == self.una:
            assert hdr["ack_req"], f"{where}: a probe that asks for no acknowledgement"
            self.probes += 1
        else:
            assert hdr["ack_req"] and not first and not self.ack_requested[psn - 1 & 0xFFFFFF], (
                f"{where}: beyond the credits"
            )


@dataclass
class Peer:
    """One queue pair as the bench sees it: its configuration, its responder, what came back."""

    qp: int
    mtu_code: int
    row: dict[str, int]
    responder: Responder
    headers: list[dict[str, int]] = field(default_factory=list)
    completions: list[tuple[int, int]] = field(default_factory=list)  # (tag, status)
    silent: bool = False
    posted: list[Request] = field(default_factory=list)
    check: CreditCheck | None = None

    @property
    def mtu(self) -> int:
        return 128 << self.mtu_code

    def consumes(self, ssn: int) -> bool:
        return ssn <= len(self.posted) and self.posted[ssn - 1].consumes


class Harness:
    """roce_tx_bench, a faulty network, and a peer per open queue pair."""

    def __init__(self, dut, rng: random.Random, faults: Faults | None = None):
        self.dut = dut
        self.rng = rng
        self.network = FaultyNetwork(rng, faults or Faults())
        self.peers: dict[int, Peer] = {}
        self.of_qpn: dict[int, Peer] = {}  # also those that were closed: their last packet may still come
        self.failed: list[int] = []  # queue pairs that fell into the error state
        self.completions: list[tuple[int, int, int]] = []  # (qp, tag, status) of all, as they came
        self.sent_bytes = 0
        self.wire_bytes = 0
        self.decided: deque[int] = deque()  # cycles in which packets were chosen whose headers have not left
        self.acks: Queue[tuple[int, Reply]] = Queue()
        self.moved = Event()
        self.broken: AssertionError | None = None
        self.tags = itertools.count(rng.getrandbits(24))

    async def start(self) -> "Harness":
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, CLOCK_NS, "ns").start())
        for name in ("ack", "ack_valid", "table_wr", "table_qp", "table_row", "cmd_valid", "cmd_qp", "cmd_state"):
            getattr(dut, name).value = 0
        dut.tx_paused.value = 0
        dut.qpn_base.value = QPN_BASE
        dut.cut_through.value = 0
        dut.keep_alive_ticks.value = 0
        dut.st_qp.value = 0
        dut.st_count.value = 0
        dut.clear_counters.value = 0
        dut.latency_rd.value = 0
        dut.cc_eligible.value = (1 << len(dut.cc_eligible)) - 1
        dut.rst.value = 1
        self.desc = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_desc"), dut.clk, dut.rst)
        self.data = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_data"), dut.clk, dut.rst)
        self.cpl = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_cpl"), dut.clk, dut.rst)
        self.hdr = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_hdr"), dut.clk, dut.rst)
        self.payload = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        for stream in (
            "s_axis_desc",
            "s_axis_data",
            "m_axis_cpl",
            "m_axis_hdr",
            "m_axis",
        ):  # a line per frame is too many
            logging.getLogger(f"cocotb.{dut._name}.{stream}").setLevel(logging.WARNING)
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        for task in (
            self._packets,
            self._completions,
            self._drive_acks,
            self._watch_sent,
            self._watch_unread,
            self._watch_failed,
        ):
            cocotb.start_soon(task())
        return self

    def stall(self, probability: float) -> None:
        """Every stream pauses at random."""
        for stream in (self.desc, self.data, self.cpl, self.hdr, self.payload):
            stream.set_pause_generator(self.rng.random() < probability for _ in itertools.count())

    # ---- queue pairs -----------------------------------------------------------------------------

    async def command(self, qp: int, state: int) -> None:
        self.dut.cmd_valid.value, self.dut.cmd_qp.value, self.dut.cmd_state.value = 1, qp, state
        await RisingEdge(self.dut.clk)
        self.dut.cmd_valid.value = 0
        await RisingEdge(self.dut.clk)

    async def open(self, qp: int, mtu_code: int = 3, **row: int) -> Peer:
        """Writes a random row (except given fields), and requests RTS."""
        drawn = {name: self.rng.getrandbits(width) for name, (_, width) in structs.fields("qp_cfg_t").items()}
        drawn |= {"mtu": mtu_code, "ack_timeout": 6, "retry_cnt": 7, "rnr_retry": 7} | row
        dut = self.dut
        dut.table_wr.value, dut.table_qp.value, dut.table_row.value = 1, qp, structs.pack("qp_cfg_t", **drawn)
        await RisingEdge(dut.clk)
        dut.table_wr.value = 0
        responder = Responder(psn=drawn["init_psn"], mtu=128 << mtu_code, rkey=drawn["rkey"])
        peer = self.peers[qp] = self.of_qpn[drawn["dest_qpn"]] = Peer(qp, mtu_code, drawn, responder)
        peer.check = CreditCheck(drawn["init_psn"])
        await self.command(qp, RTS)
        return peer

    async def status(self, qp: int) -> dict[str, int]:
        self.dut.st_qp.value = qp
        await ClockCycles(self.dut.clk, 3)
        counts = []
        for index in range(len(COUNTERS) + 2):
            self.dut.st_count.value = index
            await ClockCycles(self.dut.clk, 2)
            counts.append(int(self.dut.st_value.value))
        status = dict(zip(COUNTERS, counts, strict=False))
        status["bytes_acked"] = counts[-1] << 32 | counts[-2]
        live = ("state", "drained", "una", "nxt", "wr")
        return status | {n: int(getattr(self.dut, f"st_{n}").value) for n in live}

    async def latency(self, address: int) -> int:
        """A word of the latency histogram."""
        self.dut.latency_rd.value, self.dut.latency_addr.value = 1, address
        await RisingEdge(self.dut.clk)
        self.dut.latency_rd.value = 0
        while self.dut.latency_ack.value != 1:
            await RisingEdge(self.dut.clk)
        return int(self.dut.latency_data.value)

    async def wait_state(self, qp: int, state: int, cycles: int = 20000) -> None:
        for _ in range(cycles // 20):
            if (await self.status(qp))["state"] == state:
                return
            await ClockCycles(self.dut.clk, 17)
        raise AssertionError(f"queue pair {qp} did not reach state {state} in {cycles} cycles")

    # ---- messages --------------------------------------------------------------------------------

    def request(self, qp: int, size: int, **fields) -> Request:
        rng = self.rng
        fields.setdefault("verb", rng.choice([WRITE, SEND]))
        fields.setdefault("imm", rng.choice([None, rng.getrandbits(32)]))
        return Request(qp, rng.randbytes(size), tag=next(self.tags), raddr=rng.getrandbits(64), **fields)

    def submit(self, request: Request) -> Request:
        if request.qp in self.peers:
            self.peers[request.qp].posted.append(request)
        self.desc.send_nowait(AxiStreamFrame(request.descriptor()))
        if request.data:
            self.data.send_nowait(AxiStreamFrame(request.data))
        return request

    async def completed(self, count: int, cycles: int = 60000) -> None:
        """Waits until `count` completions have come, in all."""

        async def wait():
            while len(self.completions) < count:
                self.check()
                self.moved.clear()
                await self.moved.wait()

        await with_timeout(wait(), cycles * CLOCK_NS, "ns")
        self.check()

    def check(self) -> None:
        if self.broken:
            raise self.broken

    def verify(self, requests: list[Request]) -> None:
        """Every message arrived once, in order, byte for byte, and completed once, in order."""
        self.check()
        for qp, peer in self.peers.items():
            mine = [r for r in requests if r.qp == qp]
            assert peer.completions == [(r.tag, SUCCESS) for r in mine], f"completions of queue pair {qp}"
            assert len(peer.responder.messages) == len(mine), f"messages of queue pair {qp}"
            for got, r in zip(peer.responder.messages, mine, strict=True):
                assert (got.verb, got.imm, got.data) == (r.verb, r.imm, r.data)
                assert got.va == (r.raddr if r.verb == WRITE else None)

    # ---- tasks -----------------------------------------------------------------------------------

    async def _packets(self) -> None:
        """Takes each packet off the framer's ports, checks its addressing, gives it to the network."""
        try:
            while True:
                beat = await self.hdr.recv()
                hdr = structs.unpack("tx_hdr_t", int.from_bytes(bytes(beat.tdata), "little"))
                payload = bytes((await self.payload.recv()).tdata) if hdr["payload_len"] else b""
                peer = self.of_qpn[hdr["dest_qpn"]]
                for name in ("dst_mac", "dst_ip", "tos"):
                    assert hdr[name] == peer.row[name], name
                assert hdr["udp_sport"] == (peer.row["udp_sport"] or hashed_port(QPN_BASE + peer.qp, hdr["dest_qpn"]))
                assert len(payload) == hdr["payload_len"]
                self.wire_bytes += 82 + 16 * hdr["has_reth"] + 4 * hdr["has_imm"] + (len(payload) + 3) // 4 * 4
                now = get_sim_time("ns") // CLOCK_NS
                peer.headers.append(hdr | {"cycle": now, "decided": self.decided.popleft()})
                peer.check.sent(
                    peer.headers[-1], lambda ssn, p=peer: ssn <= len(p.posted) and p.posted[ssn - 1].consumes
                )
                reth = [hdr[n] if hdr["has_reth"] else None for n in ("va", "rkey", "dma_len")]
                imm = hdr["imm"] if hdr["has_imm"] else None
                packet = Packet(hdr["opcode"], hdr["psn"], bool(hdr["ack_req"]), payload, *reth, imm)
                for delay in self.network.arrivals():
                    cocotb.start_soon(self._arrive(peer, packet, delay))
                self.moved.set()
        except AssertionError as error:
            self._break(error)

    async def _arrive(self, peer: Peer, packet: Packet, delay: int) -> None:
        await Timer(delay * CLOCK_NS, "ns")
        if peer.silent or self.peers.get(peer.qp) is not peer:
            return
        try:
            replies = peer.responder.receive(packet)
        except AssertionError as error:
            self._break(error)
            return
        for reply in replies:
            for back in self.network.arrivals():
                cocotb.start_soon(self._reply(peer, reply, back))

    async def _reply(self, peer: Peer, reply: Reply, delay: int) -> None:
        await Timer(delay * CLOCK_NS, "ns")
        if self.peers.get(peer.qp) is peer:
            self.acks.put_nowait((peer.qp, reply))

    def acknowledge(self, qp: int, kind: Ack, psn: int, value: int | None = None, msn: int = 0) -> None:
        """One acknowledgement by hand."""
        if value is None:
            value = UNLIMITED if kind == Ack.OK else 0
        self.acks.put_nowait((qp, Reply(kind, psn & 0xFFFFFF, value, msn)))

    async def _drive_acks(self) -> None:
        while True:
            qp, reply = await self.acks.get()
            if qp in self.peers:
                self.peers[qp].check.acknowledged(reply, get_sim_time("ns") // CLOCK_NS)
            self.dut.ack.value = structs.pack(
                "ack_event_t", qp=qp, kind=reply.kind, psn=reply.psn, value=reply.value, msn=reply.msn & 0xFFFFFF
            )
            self.dut.ack_valid.value = 1
            await RisingEdge(self.dut.clk)
            self.dut.ack_valid.value = 0

    async def _completions(self) -> None:
        while True:
            cpl = structs.unpack("cpl_t", int.from_bytes(bytes((await self.cpl.recv()).tdata), "little"))
            qp, status, tag = cpl["qp"], cpl["status"], cpl["tag"]
            self.peers[qp].completions.append((tag, status))
            self.completions.append((qp, tag, status))
            self.moved.set()

    async def _watch_sent(self) -> None:
        while True:
            await RisingEdge(self.dut.sent_valid)
            self.decided.append(get_sim_time("ns") // CLOCK_NS)
            await RisingEdge(self.dut.clk)
            self.sent_bytes += int(self.dut.sent_bytes.value)

    async def _watch_unread(self) -> None:
        """Packets whose memory answered with an error: their headers do not leave."""
        while True:
            await RisingEdge(self.dut.store_read_error)
            await FallingEdge(self.dut.clk)
            while self.dut.store_read_error.value == 1:
                self.decided.popleft()
                await FallingEdge(self.dut.clk)

    async def _watch_failed(self) -> None:
        while True:
            await RisingEdge(self.dut.qp_err_valid)
            await RisingEdge(self.dut.clk)
            self.failed.append(int(self.dut.qp_err_qp.value))

    def _break(self, error: AssertionError) -> None:
        self.broken = self.broken or error
        self.moved.set()


def some_length(rng, mtu: int) -> int:
    """Mostly a few packets; multiples of the MTU and their neighbours as often as anything else."""
    packets = rng.choice([1, 1, 2, 3, 5])
    return max(1, packets * mtu + rng.choice([0, 0, 1, -1, 3, -rng.randrange(mtu), -rng.randrange(mtu)]))


async def random_traffic(
    dut,
    faults: Faults,
    messages: int,
    stall: float,
    mtu_codes=(1, 1, 2, 3),
    rnr: float = 0.0,
    cut_through: int = 0,
    ack_timeouts=(5, 6),
):
    rng = seed()
    h = await Harness(dut, rng, faults).start()
    dut.cut_through.value = cut_through
    h.stall(stall)
    for qp in range(4):
        near_wrap = (1 << 24) - 1 - rng.randrange(20)
        code = rng.choice(mtu_codes)
        peer = await h.open(qp, mtu_code=code, ack_timeout=rng.choice(ack_timeouts), init_psn=near_wrap)
        peer.responder.refuse = lambda packet: Ack.RNR if rng.random() < rnr else None
    requests = []
    for _ in range(messages):
        qp = rng.randrange(4)
        requests.append(h.submit(h.request(qp, some_length(rng, h.peers[qp].mtu))))
    await h.completed(messages, cycles=400000)
    h.verify(requests)
    await ClockCycles(dut.clk, 20)
    assert h.sent_bytes == h.wire_bytes, "bytes charged to congestion control"
    for qp in range(4):
        status = await h.status(qp)
        assert status["messages_ok"] == sum(r.qp == qp for r in requests)
        assert status["bytes_acked"] == sum(len(r.data) for r in requests if r.qp == qp)
        assert status["packets_sent"] == len(h.peers[qp].headers)
        assert status["una"] == status["nxt"] == status["wr"] == h.peers[qp].responder.psn
    return h


def statuses_of(h: Harness, requests: list[Request]) -> dict[int, int]:
    """Each message's status by its tag, for queue pairs 0 to 3: they complete in order, and successes have arrived."""
    delivered = [m.data for peer in h.of_qpn.values() for m in peer.responder.messages]
    statuses = {}
    for qp in range(4):
        mine = [c for c in h.completions if c[0] == qp]
        assert [tag for _, tag, _ in mine] == [r.tag for r in requests if r.qp == qp], f"queue pair {qp}"
        statuses |= {tag: status for _, tag, status in mine}
    for r in requests:
        assert statuses[r.tag] != SUCCESS or r.data in delivered, f"message {r.tag} completed, but never arrived"
    return statuses
