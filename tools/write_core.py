# SPDX-License-Identifier: Apache-2.0
"""Writes `penstock.core`, the FuseSoC description (CAPI2) of the gateware, from the folders that tb/lib/rtl.py names.

    .venv/bin/python tools/write_core.py

FuseSoC needs every file by name; this script makes the list. tests/test_fusesoc.py fails when the file is stale.
"""

import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import rtl  # noqa: E402

CORE = REPO / "penstock.core"
HEAD = """CAPI=2:
# SPDX-License-Identifier: SHL-2.1
# Made by tools/write_core.py. A generator makes the register block from regs/penstock.rdl; it needs a `python3` with
# systemrdl-compiler.
name: penstock::penstock:0.1.0
description: RoCEv2 front end with DCQCN and QCN, 1G to 100G
"""
TARGETS = """
parameters:
  N_QP:
    datatype: int
    paramtype: vlogparam
    description: Queue pairs, 1 to 256
  CLK_KHZ:
    datatype: int
    paramtype: vlogparam
    description: Clock of penstock_xgmii, 156250 for 10G (the default), 390625 for 25G
  RING_BYTES:
    datatype: int
    paramtype: vlogparam
    description: Payload kept per queue pair, a power of two
  SLOTS:
    datatype: int
    paramtype: vlogparam
    description: Packets per queue pair that wait for an acknowledgement, a power of two
  RETRANSMIT:
    datatype: int
    paramtype: vlogparam
    description: 0 for queue pairs that send each packet once, with rings of a few packets

generators:
  penstock_registers:
    interpreter: python3
    command: tools/fusesoc_registers.py
    description: The register block, its package and the registers' addresses

generate:
  registers:
    generator: penstock_registers
    position: prepend  # packages before the modules that use them

targets:
  default: &default
    description: The gateware for use in another core
    generate: [registers]
    filesets: [rtl]
    toplevel: penstock_xgmii
    parameters: [N_QP, CLK_KHZ, RING_BYTES, SLOTS, RETRANSMIT]

  dcqcn:
    description: The DCQCN limiter alone, between a RoCE engine and its MAC
    generate: [registers]
    filesets: [rtl]
    toplevel: penstock_dcqcn

  switch:
    description: The QCN switch at 10 Gb/s, with its management port
    generate: [registers]
    filesets: [rtl]
    toplevel: penstock_switch

  switch_1g:
    description: The QCN switch at 1 Gb/s, with its management port
    generate: [registers]
    filesets: [rtl]
    toplevel: penstock_switch_1g

  lint:
    <<: *default
    description: Verilator's linter over the 10G front end
    filesets: [rtl, waivers]
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wall]

  kcu105:
    description: AMD KCU105, 10G; add the IP xxv_ethernet_0 and jtag_axi_0 (see their files in rtl/boards/blackbox)
    generate: [registers]
    filesets: [rtl, board, kcu105]
    toplevel: kcu105
    parameters: [N_QP]
    default_tool: vivado
    tools:
      vivado:
        part: xcku040-ffva1156-2-e

  vcu118:
    description: AMD VCU118, 100G; add the IP cmac_usplus_0 and jtag_axi_0 (see their files in rtl/boards/blackbox)
    generate: [registers]
    filesets: [rtl, board, vcu118]
    toplevel: vcu118
    parameters: [N_QP]
    default_tool: vivado
    tools:
      vivado:
        part: xcvu9p-flga2104-2L-e

  mpf300_eval:
    description: PolarFire Evaluation Kit, 10G; add the component pf_10gbaser (see its file in rtl/boards/blackbox)
    generate: [registers]
    filesets: [rtl, board, mpf300_eval]
    toplevel: mpf300_eval
    parameters: [N_QP]
    default_tool: libero
    tools:
      libero:
        family: PolarFire
        die: MPF300TS
        package: FCG1152
        speed: "-1"

  ecpix5: &ecp5
    description: LambdaConcept ECPIX-5 85F, 1G; open tools build it by `make bitstream BOARD=ecpix5`
    generate: [registers]
    filesets: [rtl, board, ecpix5]
    toplevel: ecpix5
    parameters: [N_QP]
    default_tool: diamond
    tools:
      diamond:
        part: LFE5UM5G-85F-8BG554I

  versa_ecp5:
    <<: *ecp5
    description: Lattice ECP5-5G Versa, 1G; open tools build it by `make bitstream BOARD=versa_ecp5`
    generate: [registers]
    filesets: [rtl, board, versa_ecp5]
    toplevel: versa_ecp5
    tools:
      diamond:
        part: LFE5UM5G-45F-8BG381C

  versa_basex:
    <<: *ecp5
    description: The same board, 2500BASE-X on its SMA connectors; `make bitstream BOARD=versa_basex`
    generate: [registers]
    filesets: [rtl, board, versa_basex]
    toplevel: versa_basex
    tools:
      diamond:
        part: LFE5UM5G-45F-8BG381C
"""


def ordered(folders: list[Path]) -> list[Path]:
    """The files of these folders: what is included, then packages, each after those that it needs, then modules."""
    included = [path for folder in folders for path in sorted(folder.glob("*.svh"))]
    packages = [path for path in rtl.packages() if path.parent in folders]
    modules = [path for folder in folders for path in sorted(folder.glob("*.sv")) if path not in packages]
    return included + packages + modules


def fileset(name: str, files: list[Path]) -> str:
    """One fileset; the type of each file follows from its ending, SystemVerilog where none is given."""
    kinds = {ending: f"file_type: {ending[1:].upper()}" for ending in (".pdc", ".sdc", ".lpf")}
    kinds |= {".xdc": "file_type: xdc", ".vlt": "file_type: vlt", ".svh": "is_include_file: true"}
    lines = [f"  {name}:", "    files:"]
    for path in files:
        kind = kinds.get(path.suffix)
        where = path.relative_to(REPO).as_posix()
        lines.append(f"      - {where}: {{{kind}}}" if kind else f"      - {where}")
    return "\n".join([*lines, "    file_type: systemVerilogSource", ""])


def text() -> str:
    """What `penstock.core` has to say now."""
    boards = rtl.RTL / "boards"
    sets = [
        fileset("rtl", ordered([rtl.RTL / name for name in rtl.ROOMS])),
        fileset("waivers", [rtl.RTL / "verilator.vlt"]),
        fileset("board", ordered([boards])),
    ]
    for name in rtl.BOARDS:
        constraints = [p for ending in ("xdc", "pdc", "sdc", "lpf") for p in (boards / name).glob(f"*.{ending}")]
        sets.append(fileset(name, [*ordered([boards / name]), *constraints]))
    return HEAD + "\nfilesets:\n" + "\n".join(sets) + TARGETS


if __name__ == "__main__":
    rtl.generate()
    CORE.write_text(text())
    print(f"written: {CORE}")
