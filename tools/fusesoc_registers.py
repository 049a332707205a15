# SPDX-License-Identifier: Apache-2.0
"""FuseSoC's generator `penstock_registers`: makes the register block where FuseSoC builds, from `regs`.

FuseSoC calls it with a file that names the core to write (CAPI2, "Generators"). Needs Python with systemrdl-compiler.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "regs"))

import generate

WAIVERS = "penstock_registers.vlt"  # as in rtl/verilator.vlt, where the block has another path
FILES = ("penstock_regblock_pkg.sv", "penstock_regs_pkg.sv", "penstock_regblock.sv", "qcn_switch_regs_pkg.sv")


def named(request: str) -> str:
    """The name of the core that FuseSoC asks for; the only line of its YAML that matters here."""
    lines = (line.partition(":") for line in request.splitlines())
    return next(value.strip().strip("'\"") for key, _, value in lines if key == "vlnv")


def main() -> int:
    vlnv = named(Path(sys.argv[1]).read_text())
    folder = Path.cwd()
    generate.generate(folder, force=True)
    core = {
        "name": vlnv,
        "filesets": {
            "rtl": {"files": list(FILES), "file_type": "systemVerilogSource"},
            "waivers": {"files": [WAIVERS], "file_type": "vlt"},
        },
        "targets": {"default": {"filesets": ["rtl", "tool_verilator ? (waivers)"]}},
    }
    (folder / WAIVERS).write_text('`verilator_config\nlint_off -file "*penstock_regblock.sv"\n')
    # JSON is YAML, too.
    (folder / "penstock_registers.core").write_text(f"CAPI=2:\n{json.dumps(core, indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
