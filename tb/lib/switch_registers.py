# SPDX-License-Identifier: Apache-2.0
"""The registers of a QCN switch by name (`regs/qcn_switch.rdl`), over the AXI4-Lite of a bench."""

import importlib.util
from functools import cache

from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from lib.rtl import GENERATED

SLVERR = 2


@cache
def generated():
    """The module that regs/generate.py wrote; loaded late, as benches are collected before it exists."""
    spec = importlib.util.spec_from_file_location("qcn_switch_regs", GENERATED / "qcn_switch_regs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def address(name: str, copy: int = 0) -> int:
    stride = getattr(generated(), f"{name.split('.')[0].upper()}_STRIDE", 0)
    return generated().REGISTERS[name][0] + copy * stride


class SwitchRegisters:
    """A master at the pins `s_axil`."""

    def __init__(self, dut):
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        for channel in (self.bus.write_if, self.bus.read_if):
            channel.log.setLevel("WARNING")

    async def read_at(self, at: int) -> tuple[int, int]:
        """The word and the response."""
        answer = await self.bus.read(at, 4)
        return int.from_bytes(answer.data, "little"), int(answer.resp)

    async def write_at(self, at: int, word: int, octets: int = 4) -> int:
        """The response."""
        return int((await self.bus.write(at, word.to_bytes(4, "little")[:octets])).resp)

    async def read(self, name: str, copy: int = 0) -> int:
        word, resp = await self.read_at(address(name, copy))
        assert resp == 0, f"{name} answers {resp}"
        return word

    async def write(self, name: str, word: int, copy: int = 0) -> None:
        resp = await self.write_at(address(name, copy), word)
        assert resp == 0, f"{name} answers {resp}"

    async def write_fields(self, name: str, **values: int) -> None:
        """The register with these fields changed."""
        word, fields = await self.read(name), generated().REGISTERS[name][1]
        for field, value in values.items():
            low, width = fields[field]
            word = word & ~((1 << width) - 1 << low) | value << low
        await self.write(name, word)

    async def write_mac(self, name: str, mac: str) -> None:
        """A MAC address into the registers NAME_hi and NAME_lo."""
        octets = bytes.fromhex(mac.replace(":", ""))
        await self.write(f"{name}_hi", int.from_bytes(octets[:2], "big"))
        await self.write(f"{name}_lo", int.from_bytes(octets[2:], "big"))

    async def enter(self, index: int, mac: str, port: int) -> None:
        """A static entry of the MAC table."""
        octets = bytes.fromhex(mac.replace(":", ""))
        await self.write_fields("entry_hi", mac=int.from_bytes(octets[:2], "big"), port=port, is_static=1, valid=1)
        await self.write("entry_lo", int.from_bytes(octets[2:], "big"))
        await self.write("entry_write", index)

    async def counters(self, port: int) -> dict[str, int]:
        """Those of a port that are not 0."""
        names = [name for name in generated().REGISTERS if name.startswith("port.")]
        counts = {name.removeprefix("port."): await self.read(name, port) for name in names}
        return {name: count for name, count in counts.items() if count}

    async def management_counters(self) -> dict[str, int]:
        """Those of the management port that are not 0."""
        first = address("management.rx_frame")
        names = [
            name for name, (at, _) in generated().REGISTERS.items() if name.startswith("management.") and at >= first
        ]
        counts = {name.removeprefix("management."): await self.read(name) for name in names}
        return {name: count for name, count in counts.items() if count}
