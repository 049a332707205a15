# SPDX-License-Identifier: Apache-2.0
"""The smallest and the largest number of queue pairs carry data from the first and the last; so do rings in memory.

At 10 Gb/s; with `PENSTOCK_ALL_SIZES=1` (`make soak`) every front end is built in all sizes.
"""

import os

import cocotb
from lib.board import SUCCESS, start
from lib.cable import time_limit
from lib.front_end import SHORT
from lib.runner import Bench, seed
from lib.tops import TOPS

SIZES = [
    {"N_QP": 1, "RING_BYTES": 65536, "SLOTS": 64},
    {"N_QP": 256, "RING_BYTES": 16384, "SLOTS": 16},
    {"N_QP": 16, "RING_BYTES": 65536, "SLOTS": 64, "STORE": 1},
]
FRONT_ENDS = TOPS if os.environ.get("PENSTOCK_ALL_SIZES") else TOPS[:1]
BENCHES = [
    Bench(bench.top, [{"CLK_KHZ": bench.configs[0]["CLK_KHZ"], **size} for size in SIZES]) for bench in FRONT_ENDS
]

globals().update({test.name: test for test in SHORT})


@cocotb.test(**time_limit(1), skip=os.environ.get("PARAM_STORE") != "1")
async def a_message_waits_for_its_ack_in_the_memory_at_the_base_that_software_chose(dut):
    rng = seed()
    board = await start(dut, {0: 0, 15: 2})
    base = 0x4_0000
    await board.registers.write("store_base_lo", base)
    first, last = rng.randbytes(6000), rng.randbytes(4096)
    await board.post(0, first, 1, 0)
    assert await board.completion() == (0, 1, SUCCESS)
    await board.post(15, last, 2, 0)
    assert await board.completion() == (15, 2, SUCCESS)
    memory = board.memory.mem
    assert memory[base : base + 6000] == first  # slots of one MTU, slot = PSN
    at = base + 15 * 65536 + 2 * 4096
    assert memory[at : at + 4096] == last
    assert await board.count("store_write_errors") == await board.count("store_read_errors") == 0
