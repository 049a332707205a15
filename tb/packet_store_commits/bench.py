# SPDX-License-Identifier: Apache-2.0
"""No commit passes before its slot is written, none overtakes another, and a load waits only for its own."""

from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from lib.runner import Bench, seed

BENCH = Bench(top="packet_store_commits", configs=[{"N_QP": 1}, {"N_QP": 16}])


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for name in ("s_commit_valid", "s_commit_qp", "s_commit_bad", "s_load_valid", "s_load_qp", "s_load_next_qp",
                 "written", "written_bad", "m_commit_ready", "m_load_ready", "op_qp"):  # fmt: skip
        getattr(dut, name).value = 0
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0


@cocotb.test()
async def commits_pass_in_order_when_written_and_loads_wait_for_those_of_their_queue_pair(dut):
    rng = seed()
    await start(dut)
    n_qp = int(dut.N_QP.value)
    accepted: deque[tuple[int, int]] = deque()  # (queue pair, bad), not yet passed
    answers: deque[int] = deque()  # of the store, not yet used
    unwritten = passed = free_loads = 0
    offered = None
    next_load = 0
    for cycle in range(6000):
        # late in the run the store answers rarely, so that commits pile up
        if offered is None and rng.random() < 0.5:
            offered = (rng.randrange(n_qp), int(rng.random() < 0.2))
        dut.s_commit_valid.value = int(offered is not None)
        if offered:
            dut.s_commit_qp.value, dut.s_commit_bad.value = offered
        answer = rng.random() < (0.6 if cycle < 3000 else 0.2) and unwritten > 0
        bad = int(rng.random() < 0.1)
        dut.written.value, dut.written_bad.value = int(answer), bad
        load, next_load, op = next_load, rng.randrange(n_qp), rng.randrange(n_qp)
        dut.s_load_next_qp.value = next_load
        dut.s_load_valid.value, dut.s_load_qp.value, dut.op_qp.value = 1, load, op
        ready = rng.random() < 0.7
        dut.m_commit_ready.value = int(ready)
        await ReadOnly()
        waiting = {qp for qp, _ in accepted} | ({offered[0]} if offered else set())
        if load in waiting:
            assert dut.m_load_valid.value == 0, "a load overtakes a commit of its queue pair"
        if op in waiting:
            assert dut.op_waits.value == 1
        if not waiting:
            assert dut.m_load_valid.value == 1 and dut.op_waits.value == 0, "waits for nothing"
        free_loads += dut.m_load_valid.value == 1 and bool(accepted)
        if dut.m_commit_valid.value == 1:
            assert accepted and answers, "a commit passes before its slot is written"
            got = (int(dut.m_commit_qp.value), int(dut.m_commit_bad.value))
            assert got == (accepted[0][0], accepted[0][1] | answers[0])
        took = offered is not None and dut.s_commit_ready.value == 1
        leaves = dut.m_commit_valid.value == 1 and ready
        await RisingEdge(dut.clk)
        if leaves:
            accepted.popleft()
            answers.popleft()
            passed += 1
        if took:
            accepted.append(offered)
            offered = None
            unwritten += 1
        if answer:
            answers.append(bad)
            unwritten -= 1
    assert passed > 1000
    assert n_qp == 1 or free_loads > 0, "loads of other queue pairs pass"
