# SPDX-License-Identifier: Apache-2.0
"""Queue pairs that only answer follow commands as those of a requester without messages; ERR is reported once."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from lib.board import ERR, INIT, RESET, RTR, RTS, SQD
from lib.runner import Bench, seed

BENCH = Bench(top="answering_states", configs=[{"N_QP": 1}, {"N_QP": 16}])


def after(state: int, command: int) -> int:
    """IBTA volume 1, 10.3.1, with the short cuts from RESET; other transitions have no effect."""
    if command in (RESET, ERR):
        return command
    allowed = {INIT: (RESET, INIT, RTR), RTR: (RESET, INIT, RTR), RTS: (RESET, INIT, RTR, RTS, SQD), SQD: (RTS, SQD)}
    return command if state in allowed[command] else state


@cocotb.test()
async def states_follow_commands_in_any_order(dut):
    rng, n_qp = seed(), int(os.environ["PARAM_N_QP"])
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    dut.cmd_valid.value = dut.cmd_qp.value = dut.cmd_state.value = dut.st_qp.value = 0
    await ClockCycles(dut.clk, 2)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    states, seen = [RESET] * n_qp, set()
    for _ in range(4000):
        command = rng.choice([RESET, INIT, RTR, RTS, RTS, SQD, ERR]) if rng.random() < 0.7 else None
        qp, looked_at = rng.randrange(min(n_qp, 3)), rng.randrange(n_qp)
        dut.cmd_valid.value, dut.cmd_qp.value = command is not None, qp
        dut.cmd_state.value = command or 0
        dut.st_qp.value = looked_at
        expected = states[looked_at]
        failed = qp if command == ERR and states[qp] != ERR else None
        if command is not None:
            seen.add((states[qp], command))
            states[qp] = after(states[qp], command)
        await FallingEdge(dut.clk)
        assert int(dut.st_state.value) == expected
        assert int(dut.qp_err_valid.value) == (failed is not None)
        assert failed is None or int(dut.qp_err_qp.value) == failed
    assert len(seen) == 6 * 6
