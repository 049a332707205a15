# SPDX-License-Identifier: Apache-2.0
"""The CRC of any byte string, cut into words with any short word at its end, is zlib's; CRC-32C is scapy's."""

import os
import zlib
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from lib.fragment import crc32c
from lib.runner import Bench, seed

BENCH = Bench(
    top="crc32_bench",
    configs=[
        {"DATA_W": 64, "STEP": 1},
        {"DATA_W": 512, "STEP": 4},
        {"DATA_W": 64, "STEP": 1, "TABLES": 0},
        {"DATA_W": 64, "STEP": 1, "CASTAGNOLI": 1},
        {"DATA_W": 512, "STEP": 4, "CASTAGNOLI": 1},
    ],
    sources=[Path(__file__).parent / "crc32_bench.sv"],
)
BYTES = int(os.environ.get("PARAM_DATA_W", "64")) // 8
STEP = int(os.environ.get("PARAM_STEP", "1"))
crc32 = crc32c if os.environ.get("PARAM_CASTAGNOLI") else zlib.crc32
# What a state is when a message has been followed by its own CRC.
RESIDUE = 0xB798B438 if os.environ.get("PARAM_CASTAGNOLI") else 0xDEBB20E3


async def crc_of(dut, data: bytes) -> int:
    dut.start.value = 1
    dut.move.value = 0
    await FallingEdge(dut.clk)
    dut.start.value = 0
    for at in range(0, len(data), BYTES):
        dut.data.value = int.from_bytes(data[at : at + BYTES], "little")
        dut.move.value = 1
        await FallingEdge(dut.clk)
    dut.move.value = 0
    dut.spare.value = -len(data) % BYTES // STEP
    for _ in range(2):  # the last word into the root, the root into the state
        await FallingEdge(dut.clk)
    return int(dut.state.value) ^ 0xFFFFFFFF


@cocotb.test()
async def every_length_agrees_with_a_library(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    for length in range(STEP, 3 * BYTES + 1, STEP):
        data = rng.randbytes(length)
        assert await crc_of(dut, data) == crc32(data), f"{length} bytes: {data.hex()}"


@cocotb.test()
async def a_long_frame_agrees_with_a_library(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    for _ in range(20):
        data = rng.randbytes(STEP * rng.randint(60 // STEP, 9018 // STEP))
        assert await crc_of(dut, data) == crc32(data), f"{len(data)} bytes"


@cocotb.test()
async def a_frame_with_its_own_fcs_leaves_the_residue(dut):
    rng = seed()
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    for _ in range(20):
        data = rng.randbytes(STEP * rng.randint(60 // STEP, 200 // STEP))
        whole = data + crc32(data).to_bytes(4, "little")
        assert await crc_of(dut, whole) ^ 0xFFFFFFFF == RESIDUE
