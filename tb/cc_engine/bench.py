# SPDX-License-Identifier: Apache-2.0
"""The congestion-control engine paces and reacts as in the papers (AdvCam II and VI, Zhu et al.)."""

import itertools
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time
from lib import structs
from lib.runner import Bench, seed

BENCH = Bench(
    top="cc_engine_harness",
    configs=[{"N_QP": 1}, {"N_QP": 4}],
    sources=[Path(__file__).parent / "cc_engine_harness.sv"],
)

N_QP = int(os.environ.get("PARAM_N_QP", "1"))
LINE = 8 << 24  # 10 Gb/s at 156.25 MHz
PACKET = 4186  # MTU 4096 with everything around it
ROUND = 16  # cycles
TURN = 512 * N_QP  # cycles
LATENCY = 40  # cycles within which a CNP has surely been acted upon

# cc_params_t of AdvCam Table II (times shortened in the tests); what is not here is 0
PARAMS = {
    "law": 1,
    "clamp_target": 1,
    "restart_timer": 1,
    "g_shift": 8,
    "stage_threshold": 5,
    "hyper_threshold": 10,
    "rate_ai": 644_245,
    "rate_hai": 1_288_490,
    "rate_min": 134_218,
    "rate_line": LINE,
    "rate_start": 0xFFFFFFFF,
    "decrease_interval": 469,
    "alpha_interval": 6_250,
    "increase_interval": 312_500,
}
# qcn_params_t of the QCN hardware evaluation's page
QCN_PARAMS = {
    "gd_shift": 7,
    "stage_threshold": 5,
    "jitter": 77,
    "rate_ai": 6_711,
    "rate_hai": 67_109,
    "rate_min": 6_711,
    "rate_line": LINE,
    "timer_period": 3_906_250,
    "byte_limit": 150_000,
    "seed": 1,
}
GROUPS = 4
OFF, DCQCN, QCN = 3, 1, 2  # law_choice_e


class Engine:
    """Drives the engine's ports, and counts what it lets out."""

    def __init__(self, dut):
        self.dut = dut
        self.sent = [0] * N_QP

    async def start(self, **params):
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for quiet in ("init", "choice", "cnp", "cnm", "sent"):
            getattr(dut, f"{quiet}_valid").value = 0
        dut.backlog.value = dut.paused.value = dut.sampling.value = 0
        dut.m_axis_sample_tready.value = 0
        self.groups, self.qcn_groups = [{} for _ in range(GROUPS)], [{} for _ in range(GROUPS)]
        dut.st_qp.value = 0
        self.configure(**params)
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, LATENCY)

    def configure(self, group: int = 0, **params):
        """DCQCN's parameters of one group, the others' stay."""
        self.groups[group] = params
        rows = [structs.pack("cc_params_t", **(PARAMS | given)) for given in self.groups]
        self.dut.params.value = sum(row << structs.width("cc_params_t") * i for i, row in enumerate(rows))
        rows = [structs.pack("qcn_params_t", **(QCN_PARAMS | given)) for given in self.qcn_groups]
        self.dut.qcn_params.value = sum(row << structs.width("qcn_params_t") * i for i, row in enumerate(rows))

    def configure_qcn(self, group: int = 0, **params):
        self.qcn_groups[group] = params
        self.configure(group, **self.groups[group])

    async def choose(self, law: int, group: int = 0, qp: int = 0):
        """Puts a queue pair under a law; returns once it is."""
        dut = self.dut
        dut.choice_qp.value, dut.choice.value = qp, structs.pack("cc_choice_t", group=group, law=law)
        dut.choice_valid.value = 1
        await RisingEdge(dut.clk)
        dut.choice_valid.value = 0
        await ClockCycles(dut.clk, LATENCY)

    async def cnm(self, feedback: int, qp: int = 0):
        """One QCN notification, acted upon."""
        dut = self.dut
        dut.cnm_qp.value, dut.cnm_feedback.value = qp, feedback
        dut.cnm_valid.value = 1
        await RisingEdge(dut.clk)
        dut.cnm_valid.value = 0
        await ClockCycles(dut.clk, LATENCY)

    @property
    def cycle(self) -> int:
        return round(get_sim_time("ns")) // 10

    async def cnp(self, qp: int = 0) -> bool:
        """One CNP; returns whether it was ignored."""
        dut = self.dut
        dut.cnp_qp.value = qp
        dut.cnp_valid.value = 1
        await RisingEdge(dut.clk)
        dut.cnp_valid.value = 0
        ignored = False
        for _ in range(LATENCY):
            await ReadOnly()
            ignored |= dut.cnp_ignored.value == 1
            await RisingEdge(dut.clk)
        return ignored

    async def status(self, qp: int = 0) -> dict[str, int]:
        self.dut.st_qp.value = qp
        await ClockCycles(self.dut.clk, 3)
        status = structs.unpack("cc_status_t", int(self.dut.st.value))
        status["stage"] = max(status["stage_timer"], status["stage_bytes"])
        return status

    async def send(self, qps: list[int], cycles: int, packet: int = PACKET):
        """Keep all these queue pairs backlogged on one wire, served in turn."""
        dut, end, turn = self.dut, self.cycle + cycles, 0
        dut.backlog.value = sum(1 << qp for qp in qps)
        while self.cycle < end:
            eligible = int(dut.eligible.value)
            ready = [qp for qp in qps[turn:] + qps[:turn] if eligible >> qp & 1]
            if not ready:
                await dut.eligible.value_change
                continue
            turn = qps.index(ready[0]) + 1
            dut.sent_qp.value = ready[0]
            dut.sent_bytes.value = packet
            dut.sent_valid.value = 1
            await RisingEdge(dut.clk)
            dut.sent_valid.value = 0
            self.sent[ready[0]] += packet
            await ClockCycles(dut.clk, -(-packet // 8) - 1)
        dut.backlog.value = 0


def wire_bytes(rate: int, cycles: int) -> float:
    return rate * cycles / (1 << 24)


@cocotb.test()
async def a_flow_that_saw_no_cnp_is_never_held_back(dut):
    engine = Engine(dut)
    await engine.start()
    await engine.send([0], 60_000)
    assert engine.sent[0] >= 8 * 60_000 * 0.998  # packets start on whole cycles: 524 instead of 523.25
    status = await engine.status()
    fresh = {"rate_current": LINE, "rate_target": LINE, "alpha": 65536, "stage": 0, "cnp_handled": 0, "limited": 0}
    assert status.items() >= fresh.items(), status


@cocotb.test()
async def the_first_cnp_halves_the_rate_and_a_second_in_the_cooldown_is_ignored(dut):
    engine = Engine(dut)
    await engine.start()
    qp = N_QP - 1
    assert not await engine.cnp(qp)
    status = await engine.status(qp)
    assert (status["rate_current"], status["rate_target"], status["alpha"]) == (LINE // 2, LINE, 65536)
    assert await engine.cnp(qp)
    assert (await engine.status(qp))["cnp_handled"] == 1
    await ClockCycles(dut.clk, 469)
    assert not await engine.cnp(qp)
    status = await engine.status(qp)
    assert (status["rate_current"], status["rate_target"], status["cnp_handled"]) == (LINE // 4, LINE // 2, 2)
    if N_QP > 1:
        assert (await engine.status(0))["rate_current"] == LINE, "a CNP of one flow touched another"


@cocotb.test()
async def the_wire_carries_exactly_the_rate(dut):
    rng = seed()
    engine = Engine(dut)
    await engine.start(increase_interval=0, alpha_interval=0, decrease_interval=0)
    qps = list(range(N_QP))
    await engine.send(qps, 2_000)
    for qp in qps:
        for _ in range(rng.randint(3, 5)):  # so that all together fit the line
            await engine.cnp(qp)
    before, begin = list(engine.sent), engine.cycle
    await engine.send(qps, 100_000, rng.choice([350, 1114, PACKET]))
    cycles = engine.cycle - begin
    for qp in qps:
        rate = (await engine.status(qp))["rate_current"]
        sent, earned = engine.sent[qp] - before[qp], wire_bytes(rate, cycles)
        slack = wire_bytes(rate, 2 * ROUND + (TURN if N_QP > 1 else 0)) + PACKET
        assert abs(sent - earned) <= slack, f"qp {qp}: {sent}, earned {earned}, rate {rate}"


@cocotb.test()
async def a_flow_that_had_nothing_to_send_has_nothing_saved(dut):
    engine = Engine(dut)
    await engine.start(increase_interval=0, decrease_interval=0)
    for _ in range(8):
        await engine.cnp()
    rate = (await engine.status())["rate_current"]
    await ClockCycles(dut.clk, 100_000)
    begin = engine.cycle
    await engine.send([0], 20_000)
    assert engine.sent[0] <= wire_bytes(rate, engine.cycle - begin + 2 * ROUND) + PACKET


@cocotb.test()
async def recovery_reaches_line_rate_and_releases_the_limiter(dut):
    engine = Engine(dut)
    await engine.start(increase_interval=200, rate_ai=LINE // 20, rate_hai=LINE // 10)
    await engine.cnp()
    await ClockCycles(dut.clk, 200 * 45)
    status = await engine.status()
    assert status["rate_current"] == status["rate_target"] == LINE
    await engine.send([0], 20_000)
    assert engine.sent[0] >= 8 * 20_000 * 0.998


@cocotb.test()
async def the_byte_counter_recovers_without_a_timer(dut):
    engine = Engine(dut)
    await engine.start(increase_interval=0, byte_threshold=3 * PACKET, stage_counting=1)
    await engine.cnp()
    await engine.send([0], 40_000)
    await ClockCycles(dut.clk, LATENCY)
    status = await engine.status()
    assert status["stage"] == engine.sent[0] // (3 * PACKET)


@cocotb.test()
async def init_gives_a_fresh_flow_and_the_law_can_be_switched_off(dut):
    engine = Engine(dut)
    await engine.start()
    fresh = await engine.status()
    await engine.cnp()
    dut.init_qp.value = 0
    dut.init_valid.value = 1
    await RisingEdge(dut.clk)
    dut.init_valid.value = 0
    await ClockCycles(dut.clk, LATENCY)
    assert await engine.status() == fresh
    await engine.cnp()
    engine.configure(law=0)
    await ClockCycles(dut.clk, LATENCY)
    assert await engine.cnp(), "a CNP acted with the law off"
    await engine.send([0], 20_000)
    assert engine.sent[0] >= 8 * 20_000 * 0.998
    assert (await engine.status())["rate_current"] == LINE


@cocotb.test()
async def each_queue_pair_follows_its_own_law_with_its_group_of_parameters(dut):
    engine = Engine(dut)
    await engine.start()
    groups = min(GROUPS, N_QP)  # there are no more of them than queue pairs: the low bits of a choice count
    engine.configure(2 % groups, rate_min=3 << 24, decrease_interval=0)
    engine.configure_qcn(1 % groups, gd_shift=6)
    qp = N_QP - 1
    await engine.choose(QCN, 1, qp)
    assert await engine.cnp(qp), "a CNP acted on a flow under QCN"
    await engine.cnm(16, qp)
    status = await engine.status(qp)
    assert (status["rate_current"], status["choice.law"], status["limited"]) == (LINE * 3 // 4, QCN, 1)
    assert status["choice.group"] == 1 % groups
    if N_QP > 1:
        assert (await engine.status(0))["rate_current"] == LINE
    await engine.choose(DCQCN, 2, qp)
    status = await engine.status(qp)
    assert (status["rate_current"], status["limited"]) == (LINE, 0), "another law starts afresh"
    for _ in range(4):
        await engine.cnp(qp)
    assert (await engine.status(qp))["rate_current"] == 3 << 24, "the lowest rate of group 2"
    await engine.choose(OFF, 0, qp)
    assert await engine.cnp(qp)
    assert (await engine.status(qp))["rate_current"] == LINE


@cocotb.test()
async def qcn_recovers_by_timer_and_freezes_it_while_paused(dut):
    engine = Engine(dut)
    await engine.start()
    engine.configure_qcn(timer_period=400, byte_limit=0)
    await engine.choose(QCN)
    await engine.cnm(63)
    cut = (await engine.status())["rate_current"]
    assert cut == LINE - LINE * 63 // 128
    dut.paused.value = 1
    await ClockCycles(dut.clk, 4_000)
    status = await engine.status()
    assert (status["rate_current"], status["stage_timer"]) == (cut, 0)
    dut.paused.value = 0
    await ClockCycles(dut.clk, 4_000)
    status = await engine.status()
    assert status["stage_timer"] >= 7 and status["rate_current"] > LINE * 0.98


@cocotb.test()
async def qcn_recovers_by_its_byte_counter(dut):
    engine = Engine(dut)
    await engine.start()
    engine.configure_qcn(timer_period=0, byte_limit=10_000)
    await engine.choose(QCN)
    await engine.cnm(63)
    await engine.send([0], 20_000)
    stages = (await engine.status())["stage_bytes"]
    assert engine.sent[0] / 14_000 - 1 <= stages <= engine.sent[0] / 3_500, f"{stages} after {engine.sent[0]} bytes"


@cocotb.test()
async def the_sampling_port_gives_each_queue_pair_at_its_rate_and_drops_what_is_not_taken(dut):
    engine = Engine(dut)
    await engine.start()
    await engine.cnp(N_QP - 1)
    interval = 156  # 1 MHz
    dut.sampling.value = structs.pack("cc_sampling_t", interval=interval, first=0, last=255)
    dut.m_axis_sample_tready.value = 1
    samples, dropped = [], 0
    for _ in range(interval * 10):
        await RisingEdge(dut.clk)
        if dut.m_axis_sample_tvalid.value == 1:
            samples.append(structs.unpack("cc_sample_t", int(dut.m_axis_sample_tdata.value)))
        assert dut.sample_dropped.value == 0
    assert 9 * N_QP <= len(samples) <= 10 * N_QP
    for i, sample in enumerate(samples):
        qp = sample["qp"]
        assert qp == i % N_QP
        rate = LINE // 2 if qp == N_QP - 1 else LINE
        assert [sample[name] for name in ("rate_current", "rate_target", "alpha")] == [rate, LINE, 65536]
    times = [sample["cycle"] for sample in samples[::N_QP]]
    assert all(abs(b - a - interval) <= 16 for a, b in itertools.pairwise(times)), times
    dut.m_axis_sample_tready.value = 0
    for _ in range(interval * 40):
        await RisingEdge(dut.clk)
        dropped += dut.sample_dropped.value == 1
    assert dropped >= 40 * N_QP - 16 - N_QP
