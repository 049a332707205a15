# SPDX-License-Identifier: Apache-2.0
"""The CRC of any byte string, cut into words with any short word at its end, is zlib's."""

import os
import zlib

import cocotb
from cocotb.triggers import Timer
from lib.runner import Bench, seed

BENCH = Bench(top="crc32_word", configs=[{"DATA_W": 64}, {"DATA_W": 512}])
BYTES = int(os.environ.get("PARAM_DATA_W", "64")) // 8


async def crc_of(dut, rng, data: bytes) -> int:
    state = 0xFFFFFFFF
    for at in range(0, len(data), BYTES):
        word = data[at : at + BYTES]
        filler = rng.randbytes(BYTES - len(word))  # what lies past n_bytes must not matter
        dut.crc_in.value = state
        dut.data.value = int.from_bytes(word + filler, "little")
        dut.n_bytes.value = len(word)
        await Timer(1, "ns")
        state = int(dut.crc_out.value)
    return state ^ 0xFFFFFFFF


@cocotb.test()
async def every_length_agrees_with_zlib(dut):
    rng = seed()
    for length in range(1, 3 * BYTES + 1):
        data = rng.randbytes(length)
        assert await crc_of(dut, rng, data) == zlib.crc32(data), f"{length} bytes: {data.hex()}"


@cocotb.test()
async def a_long_frame_agrees_with_zlib(dut):
    rng = seed()
    for _ in range(20):
        data = rng.randbytes(rng.randint(60, 9018))
        assert await crc_of(dut, rng, data) == zlib.crc32(data), f"{len(data)} bytes"


@cocotb.test()
async def a_frame_with_its_own_fcs_leaves_the_residue(dut):
    rng = seed()
    for _ in range(20):
        data = rng.randbytes(rng.randint(60, 200))
        whole = data + zlib.crc32(data).to_bytes(4, "little")
        assert await crc_of(dut, rng, whole) ^ 0xFFFFFFFF == 0xDEBB20E3
