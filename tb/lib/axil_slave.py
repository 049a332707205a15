# SPDX-License-Identifier: Apache-2.0
"""Registers as an AXI4-Lite slave in Python, on cocotbext-axi: words that keep what is written, or refuse."""

import logging
from collections.abc import Callable

from cocotbext.axi import AxiLiteBus, AxiLiteSlave
from cocotbext.axi.address_space import Region


class RegisterSlave(Region):
    """A word at every byte address that `allowed` accepts; all other addresses answer SLVERR.

    `fifo_at`: writes there append to `fifo`, reads take its first word away (or 0).
    """

    def __init__(self, dut, prefix: str, allowed: Callable[[int], bool], fifo_at: int | None = None):
        super().__init__(2**18)
        self.words: dict[int, int] = {}
        self.fifo: list[int] = []
        self.writes = 0
        self.allowed, self.fifo_at = allowed, fifo_at
        self.slave = AxiLiteSlave(AxiLiteBus.from_prefix(dut, prefix), dut.clk, dut.rst, target=self)
        logging.getLogger(f"cocotb.{dut._name}.{prefix}").setLevel(logging.CRITICAL)

    async def read(self, address: int, length: int, **kwargs) -> bytes:
        where = address & ~3
        if not self.allowed(where):
            raise ValueError(f"no register at 0x{where:05X}")
        word = (self.fifo.pop(0) if self.fifo else 0) if where == self.fifo_at else self.words.get(where, 0)
        return word.to_bytes(4, "little")[address & 3 :][:length]

    async def write(self, address: int, data: bytes, **kwargs) -> None:
        where = address & ~3
        if not self.allowed(where):
            raise ValueError(f"no register at 0x{where:05X}")
        assert len(data) == 4, "IPbus knows whole words only"
        self.writes += 1
        word = int.from_bytes(data, "little")
        if where == self.fifo_at:
            self.fifo.append(word)
        else:
            self.words[where] = word
