# SPDX-License-Identifier: Apache-2.0
"""The congestion-control engine paces and reacts as the papers say (AdvCam II and VI, Zhu et al.)."""

import itertools
import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotb.utils import get_sim_time
from lib.runner import Bench, seed

BENCH = Bench(top="cc_engine", configs=[{"N_QP": 1}, {"N_QP": 4}])

N_QP = int(os.environ.get("PARAM_N_QP", "1"))
LINE = 8 << 24  # 10 Gb/s at 156.25 MHz
PACKET = 4186  # MTU 4096 with everything around it
CREDIT_CAP = 8192
LATENCY = 40  # cycles within which a CNP has surely been acted upon

# cc_params_t from its most significant field: name, bits, AdvCam Table II (times shortened in the tests)
PARAMS = [
    ("law", 2, 1),
    ("clamp_target", 1, 1),
    ("two_counters", 1, 0),
    ("g_shift", 4, 8),
    ("stage_threshold", 4, 5),
    ("hyper_threshold", 8, 10),
    ("rate_ai", 32, 644_245),
    ("rate_hai", 32, 1_288_490),
    ("rate_min", 32, 134_218),
    ("rate_line", 32, LINE),
    ("decrease_interval", 32, 469),
    ("alpha_interval", 32, 6_250),
    ("increase_interval", 32, 312_500),
    ("byte_threshold", 32, 0),
]
STATUS = [("cnp_handled", 32), ("stage", 8), ("alpha", 17), ("rate_target", 32), ("rate_current", 32)]


class Engine:
    """Drives the engine's ports, and counts what it lets out."""

    def __init__(self, dut):
        self.dut = dut
        self.sent = [0] * N_QP

    async def start(self, **params):
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for valid in (dut.init_valid, dut.cnp_valid, dut.sent_valid):
            valid.value = 0
        dut.st_qp.value = 0
        self.configure(**params)
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, LATENCY)

    def configure(self, **params):
        unknown = params.keys() - {name for name, _, _ in PARAMS}
        assert not unknown, f"no such parameters: {unknown}"
        word = 0
        for name, bits, default in PARAMS:
            word = word << bits | params.get(name, default)
        self.dut.params.value = word

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
        word, status = int(self.dut.st.value), {}
        for name, bits in STATUS:
            status[name] = word & ((1 << bits) - 1)
            word >>= bits
        return status

    async def send(self, qps: list[int], cycles: int, packet: int = PACKET):
        """Keep all these queue pairs backlogged on one wire, served in turn."""
        dut, end, turn = self.dut, self.cycle + cycles, 0
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


def wire_bytes(rate: int, cycles: int) -> float:
    return rate * cycles / (1 << 24)


@cocotb.test()
async def a_flow_that_saw_no_cnp_is_never_held_back(dut):
    engine = Engine(dut)
    await engine.start()
    await engine.send([0], 60_000)
    assert engine.sent[0] >= 8 * 60_000 * 0.998  # packets start on whole cycles: 524 instead of 523.25
    status = await engine.status()
    assert status == {"rate_current": LINE, "rate_target": LINE, "alpha": 65536, "stage": 0, "cnp_handled": 0}


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
        assert earned - CREDIT_CAP - PACKET <= sent <= earned + CREDIT_CAP + PACKET, f"qp {qp}: {sent}, earned {earned}"


@cocotb.test()
async def a_flow_that_waited_bursts_by_the_cap_and_no_more(dut):
    engine = Engine(dut)
    await engine.start(increase_interval=0, decrease_interval=0)
    for _ in range(8):
        await engine.cnp()
    rate = (await engine.status())["rate_current"]
    await ClockCycles(dut.clk, 100_000)
    begin = engine.cycle
    await engine.send([0], 20_000)
    assert engine.sent[0] <= wire_bytes(rate, engine.cycle - begin) + CREDIT_CAP + PACKET


@cocotb.test()
async def figure_9_later_cuts_are_smaller(dut):
    """AdvCam VI: threshold 5 Gb/s, window 5000 cycles, cooldown; alpha falls between the CNPs."""
    engine = Engine(dut)
    await engine.start(g_shift=4, alpha_interval=2_500, increase_interval=10_000, decrease_interval=500)
    window, threshold, cooldown = 5_000, 5_000 * 4, 20_000
    cuts, cooled_at = [], 0
    for _ in range(20):
        before = engine.sent[0]
        await engine.send([0], window)
        if engine.sent[0] - before > threshold + PACKET and engine.cycle >= cooled_at:
            was = await engine.status()
            assert not await engine.cnp()
            now = await engine.status()
            cuts.append(1 - now["rate_current"] / was["rate_current"])
            assert abs(cuts[-1] - was["alpha"] / 131072) < 1e-4
            cooled_at = engine.cycle + cooldown
    print("cuts:", ", ".join(f"{cut:.3f}" for cut in cuts))
    assert len(cuts) >= 3 and cuts[0] == 0.5, cuts
    assert all(later < earlier for earlier, later in itertools.pairwise(cuts)), cuts


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
    await engine.start(increase_interval=0, byte_threshold=3 * PACKET, two_counters=1)
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
