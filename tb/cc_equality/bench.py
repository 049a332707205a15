# SPDX-License-Identifier: Apache-2.0
"""The congestion-control engine and its Rust model agree to the bit under random events: laws, pacer, choices."""

import os
import subprocess
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from lib.runner import Bench
from lib.rust_model import model
from lib.toolchain import REPO

BENCH = Bench(
    top="cc_replay",
    configs=[{"N_QP": 1}, {"N_QP": 4}, {"N_QP": 64}],
    sources=[Path(__file__).parent / "cc_replay.sv"],
)
ROUNDS = 500  # of one episode; the replay holds 1024
VISITS = int(os.environ.get("PENSTOCK_CC_VISITS", "100000"))


def write_history(seed: int, n_qp: int, episodes: int) -> Path:
    """Let the model play a random history; returns the file it is written to."""
    path = REPO / "build" / "tb" / f"cc_history_{n_qp}.txt"
    with path.open("w") as out:
        subprocess.run([model("history"), *map(str, (seed, n_qp, episodes, ROUNDS))], stdout=out, check=True)
    return path


@cocotb.test()
async def gateware_and_model_agree_on_every_state_bit(dut):
    seed, n_qp = int(os.environ["PENSTOCK_SEED"]), int(os.environ["PARAM_N_QP"])
    episodes = max(1, VISITS // (n_qp * ROUNDS))
    print(f"seed {seed}: replay with PENSTOCK_SEED={seed}")
    path = write_history(seed, n_qp, episodes)
    dut.path.value = int.from_bytes(str(path).encode(), "big")
    dut.play.value = 0
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    await ClockCycles(dut.clk, 4)
    dut.play.value = 1
    await RisingEdge(dut.done)
    assert int(dut.visits.value) == n_qp * ROUNDS * episodes
    assert int(dut.errors.value) == 0, f"{int(dut.errors.value)} differences, seed {seed}; the first are printed above"
