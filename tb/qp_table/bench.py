# SPDX-License-Identifier: Apache-2.0
"""The queue-pair table stores the values of software, serves every reader, and tracks the state of each queue pair."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from lib import structs
from lib.register_map import address, generated, pack
from lib.runner import Bench, seed

BENCH = Bench(
    top="qp_table",
    configs=[{"N_QP": 1, "N_PORTS": 2}, {"N_QP": 4, "N_PORTS": 2, "RETRANSMIT": 0}, {"N_QP": 256, "N_PORTS": 3}],
)

RESET, INIT, RTR, RTS, SQD, ERR = 0, 1, 2, 3, 4, 6  # enum ibv_qp_state
# qp_count_e, in its order
COUNTERS = [
    "packets_sent",
    "packets_retransmitted",
    "packet_seq_err",
    "rnr_nak",
    "local_ack_timeout_err",
    "stale_acks",
    "messages_ok",
    "messages_err",
    "bytes_acked_lo",
    "bytes_acked_hi",
]


def row_words(row: dict[str, int]) -> dict[str, int]:
    """The words software writes for one row."""
    return {
        "qp.dst_mac_hi": pack("qp.dst_mac_hi", dst_mac=row["dst_mac"] >> 32),
        "qp.dst_mac_lo": row["dst_mac"] & 0xFFFFFFFF,
        "qp.dst_ip": row["dst_ip"],
        "qp.flow": pack("qp.flow", udp_sport=row["udp_sport"], tos=row["tos"]),
        "qp.dest_qpn": row["dest_qpn"],
        "qp.rkey": row["rkey"],
        "qp.transport": pack("qp.transport", **{k: row[k] for k in ("mtu", "ack_timeout", "retry_cnt", "rnr_retry")}),
        "qp.init_psn": row["init_psn"],
    }


def random_row(rng) -> dict[str, int]:
    return {member: rng.getrandbits(width) for member, (_, width) in structs.fields("qp_cfg_t").items()}


def kept(row: dict[str, int]) -> dict[str, int]:
    """What the table makes of a row: without retransmission there are no retries."""
    return row | ({"retry_cnt": 0, "rnr_retry": 0} if os.environ.get("PARAM_RETRANSMIT") == "0" else {})


class Bus:
    """The register bus of ctrl_pkg: request for one cycle, answer later."""

    def __init__(self, dut):
        self.dut = dut

    async def access(self, name: str, qp: int, word: int = 0, write: bool = False, biten: int = 0xFFFFFFFF) -> int:
        where = address(name, qp) - generated().REGISTERS["qp.dst_mac_hi"][0]
        self.dut.req.value = structs.pack("reg_req_t", valid=1, is_wr=write, addr=where, wr_data=word, wr_biten=biten)
        await RisingEdge(self.dut.clk)
        self.dut.req.value = 0
        for _ in range(10):
            await ReadOnly()
            answer = structs.unpack("reg_rsp_t", int(self.dut.rsp.value))
            await RisingEdge(self.dut.clk)
            if answer["rd_ack"] or answer["wr_ack"]:
                assert answer["wr_ack"] == write != answer["rd_ack"], "read answered as write or write as read"
                return answer["rd_data"]
        raise AssertionError(f"{name} of queue pair {qp}: no answer in 10 cycles")

    async def read(self, name: str, qp: int) -> int:
        return await self.access(name, qp)

    async def write(self, name: str, qp: int, word: int, biten: int = 0xFFFFFFFF) -> None:
        await self.access(name, qp, word, True, biten)


async def start(dut) -> Bus:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for name in (
        "req",
        "cfg_qp",
        "cfg_rd",
        "qp_err_valid",
        "qp_err_qp",
        "st_state",
        "st_drained",
        "st_una",
        "st_nxt",
        "st_wr",
        "st_value",
        "st_cc",
    ):
        getattr(dut, name).value = 0
    dut.rst.value = 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return Bus(dut)


async def read_port(dut, port: int, qp: int) -> int:
    """A row as a module of the transport sees it: one cycle after the read strobe."""
    dut.cfg_qp.value = qp << 8 * port
    dut.cfg_rd.value = 1 << port
    await RisingEdge(dut.clk)
    dut.cfg_rd.value = 0
    await ReadOnly()
    width = structs.width("qp_cfg_t")
    row = int(dut.cfg.value) >> width * port & (1 << width) - 1
    await RisingEdge(dut.clk)
    return row


@cocotb.test()
async def a_row_written_word_by_word_reaches_the_bus_and_every_port(dut):
    rng, bus = seed(), await start(dut)
    n_qp, n_ports = int(dut.N_QP.value), int(dut.N_PORTS.value)
    rows = {qp: random_row(rng) for qp in rng.sample(range(n_qp), min(n_qp, 12))}
    for qp, row in rows.items():
        words = list(row_words(row).items())
        rng.shuffle(words)
        for name, word in words:
            await bus.write(name, qp, word)
    for qp, row in rows.items():
        for name, word in row_words(kept(row)).items():
            assert await bus.read(name, qp) == word, f"{name} of queue pair {qp}"
        expected = structs.pack("qp_cfg_t", **kept(row))
        for port in range(n_ports):
            assert await read_port(dut, port, qp) == expected, f"port {port}, queue pair {qp}"


@cocotb.test()
async def a_write_touches_only_the_enabled_bytes(dut):
    bus = await start(dut)
    await bus.write("qp.rkey", 0, 0x11223344)
    await bus.write("qp.rkey", 0, 0xAABBCCDD, biten=0x00FF00FF)
    assert await bus.read("qp.rkey", 0) == 0x11BB33DD


@cocotb.test()
async def queue_pairs_that_do_not_exist_read_zero_and_ignore_writes(dut):
    bus, n_qp = await start(dut), int(dut.N_QP.value)
    if n_qp == 256:
        return
    await bus.write("qp.rkey", 0, 0x5EED)
    await bus.write("qp.rkey", n_qp, 0xBAD)
    await bus.write("qp.state", n_qp, RTS)
    assert await bus.read("qp.rkey", n_qp) == 0
    assert await bus.read("qp.rkey", 0) == 0x5EED
    assert int(dut.ready.value) == 0


@cocotb.test()
async def commands_go_out_once_and_ready_follows_commands_and_failures(dut):
    bus, n_qp = await start(dut), int(dut.N_QP.value)
    commands = []

    async def watch():
        while True:
            await RisingEdge(dut.clk)
            await ReadOnly()
            if dut.cmd_valid.value:
                commands.append((int(dut.cmd_qp.value), int(dut.cmd_state.value)))

    cocotb.start_soon(watch())
    last = n_qp - 1
    await bus.write("qp.state", last, RTS)
    assert int(dut.ready.value) == 1 << last
    dut.qp_err_qp.value = last
    dut.qp_err_valid.value = 1
    await RisingEdge(dut.clk)
    dut.qp_err_valid.value = 0
    await RisingEdge(dut.clk)
    assert int(dut.ready.value) == 0
    for state, receives in ((RESET, 0), (INIT, 0), (RTR, 0), (RTS, 1), (SQD, 1), (RTS, 1), (ERR, 0)):
        await bus.write("qp.state", last, state)
        assert int(dut.ready.value) == receives << last, f"after state {state}"
    for no_state in (5, 7):
        await bus.write("qp.state", last, no_state)
    for _ in range(4):
        await RisingEdge(dut.clk)
    assert commands == [(last, s) for s in (RTS, RESET, INIT, RTR, RTS, SQD, RTS, ERR)]


@cocotb.test()
async def live_status_is_that_of_the_selected_queue_pair(dut):
    bus, n_qp = await start(dut), int(dut.N_QP.value)

    async def owners():
        """The transport and the engine: status of st_qp one cycle after it."""
        while True:
            await RisingEdge(dut.clk)
            qp = int(dut.st_qp.value)
            dut.st_state.value = SQD
            dut.st_drained.value = qp & 1
            dut.st_una.value = 0x100000 + qp
            dut.st_nxt.value = 0x200000 + qp
            dut.st_wr.value = 0x300000 + qp
            dut.st_cc.value = structs.pack(
                "cc_status_t", rate_current=0x08000000 - qp, rate_target=0x07000000 - qp, alpha=65536 - qp,
                stage_timer=qp & 0xFF, stage_bytes=qp & 1, limited=1, choice__group=3, choice__law=2,
                cnp_handled=1000 + qp,
            )  # fmt: skip
            dut.st_value.value = qp << 8 | int(dut.st_count.value)

    cocotb.start_soon(owners())
    for qp in {0, n_qp // 2, n_qp - 1}:
        assert await bus.read("qp.state", qp) == pack("qp.state", state=SQD, drained=qp & 1)
        assert await bus.read("qp.una_psn", qp) == 0x100000 + qp
        assert await bus.read("qp.nxt_psn", qp) == 0x200000 + qp
        assert await bus.read("qp.wr_psn", qp) == 0x300000 + qp
        assert await bus.read("qp.rate_current", qp) == 0x08000000 - qp
        assert await bus.read("qp.rate_target", qp) == 0x07000000 - qp
        assert await bus.read("qp.alpha", qp) == 65536 - qp
        more, less = max(qp & 0xFF, qp & 1), qp & 1
        assert await bus.read("qp.stage", qp) == 1 << 24 | less << 16 | (qp & 0xFF) << 8 | more
        assert await bus.read("qp.congestion", qp) == 3 << 4 | 2
        assert await bus.read("qp.rp_cnp_handled", qp) == 1000 + qp
        for i, name in enumerate(COUNTERS):
            assert await bus.read(f"qp.{name}", qp) == qp << 8 | i, name
