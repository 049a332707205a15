# SPDX-License-Identifier: Apache-2.0
"""Registers by name over cocotbext-axi's AXI-Lite master, with the generated map.

Names are those of `regs/penstock.rdl`: `local_ip`, `cc.rate_ai`, `counters.packets_sent`, `qp.dst_ip`.
"""

import importlib.util
from functools import cache

from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from lib.rtl import GENERATED


@cache
def generated():
    """The module that regs/generate.py wrote; loaded late, as benches are collected before it exists."""
    spec = importlib.util.spec_from_file_location("penstock_regs", GENERATED / "penstock_regs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def address(name: str, qp: int = 0) -> int:
    """Byte address; `qp` is the number in an array: queue pair, or group of parameters (`cc.`, `qcn.`)."""
    stride = getattr(generated(), f"{name.split('.')[0].upper()}_STRIDE", 0)
    return generated().REGISTERS[name][0] + qp * stride


def pack(name: str, **fields: int) -> int:
    """Word of a register from its fields; the others are 0."""
    places = generated().REGISTERS[name][1]
    word = 0
    for field, value in fields.items():
        low, width = places[field]
        assert 0 <= value < 1 << width, f"{name}.{field} = {value} does not fit in {width} bits"
        word |= value << low
    return word


def unpack(name: str, word: int) -> dict[str, int]:
    return {f: word >> low & (1 << width) - 1 for f, (low, width) in generated().REGISTERS[name][1].items()}


class Registers:
    """One word per access; `ok=False` expects SLVERR instead of an answer."""

    def __init__(self, dut):
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)

    async def read(self, name: str, qp: int = 0) -> int:
        return await self.read_address(address(name, qp))

    async def read_address(self, where: int) -> int:
        answer = await self.master.read(where, 4)
        assert int(answer.resp) == 0, f"read of 0x{where:05X} answers {answer.resp!r}"
        return int.from_bytes(answer.data, "little")

    async def write(self, name: str, word: int, qp: int = 0) -> None:
        answer = await self.master.write(address(name, qp), word.to_bytes(4, "little"))
        assert int(answer.resp) == 0, f"write of {name} answers {answer.resp!r}"

    async def write_fields(self, name: str, qp: int = 0, **fields: int) -> None:
        await self.write(name, pack(name, **fields), qp)

    async def refused(self, where: int, word: int | None = None) -> bool:
        """Whether an access is answered with SLVERR; a write when a word is given."""
        if word is None:
            return int((await self.master.read(where, 4)).resp) == 2
        return int((await self.master.write(where, word.to_bytes(4, "little"))).resp) == 2
