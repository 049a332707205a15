# SPDX-License-Identifier: Apache-2.0
"""The PCS of LiteEth as a Verilog module, `liteeth_pcs`: a peer that is not ours. Its package makes it."""

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

from lib.rtl import WRITTEN

# It negotiates for tens of milliseconds; a simulation has less. In seconds.
TIMES = {"check_period": 60e-6, "breaklink_time": 50e-6, "more_ack_time": 50e-6, "sgmii_ack_time": 20e-6}
LINT = ["CASEINCOMPLETE", "COMBDLY", "DECLFILENAME", "PROCASSINIT", "UNUSEDSIGNAL", "WIDTHEXPAND", "WIDTHTRUNC"]


def pcs() -> Path:
    """Its file; made again only when the packages or this module have changed."""
    made_from = [*map(version, ("liteeth", "litex", "migen")), Path(__file__).read_text()]
    file = WRITTEN / f"liteeth_pcs_{hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]}.v"
    if file.exists():
        return file

    from liteeth.phy import pcs_1000basex
    from litex.gen import LiteXModule
    from litex.gen.fhdl import verilog
    from migen import ClockDomain, Signal

    class Top(LiteXModule):
        def __init__(self):
            self.cd_eth_tx = ClockDomain()
            self.cd_eth_rx = ClockDomain()
            self.pcs = pcs = pcs_1000basex.PCS(lsb_first=True, **TIMES)
            self.ports = {s for domain in (self.cd_eth_tx, self.cd_eth_rx) for s in (domain.clk, domain.rst)}
            inputs = {"tbi_rx": pcs.tbi_rx, "tx_valid": pcs.sink.valid, "tx_data": pcs.sink.data}
            outputs = {"tbi_tx": pcs.tbi_tx, "link_up": pcs.link_up, "partner": pcs.lp_abi.o}
            outputs |= {"tx_ready": pcs.sink.ready}
            outputs |= {f"rx_{name}": getattr(pcs.source, name) for name in ("valid", "last", "data")}
            self.comb += pcs.source.ready.eq(1)
            for name, inside in (inputs | outputs).items():
                port = Signal(len(inside), name=name)
                self.comb += inside.eq(port) if name in inputs else port.eq(inside)
                self.ports.add(port)

    top = Top()
    made = verilog.convert(top, top.ports, name="liteeth_pcs", regs_init=True)
    text = made.main_source
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, contents in made.data_files.items():  # of its memory
        file.with_suffix(f".{name}").write_text(contents)
        text = text.replace(f'"{name}"', f'"{file.with_suffix(f".{name}")}"')
    waivers = "".join(f"/* verilator lint_off {name} */\n" for name in LINT)
    part = file.with_suffix(f".{os.getpid()}")  # another process may do the same
    part.write_text(f"{waivers}{text}")
    part.replace(file)
    return file
