# SPDX-License-Identifier: Apache-2.0
"""Runs Yosys (the `pyosys` wheel) in a separate process, reading SystemVerilog with its slang front end."""

import subprocess
import sys
from pathlib import Path

import rtl

PROGRAM = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.stdin.read().splitlines():
    libyosys.run_pass(command, design)
"""


class YosysError(RuntimeError):
    """A command failed; the message holds the end of what Yosys said."""


def run(commands: list[str]) -> str:
    """Runs commands on one design and returns the log."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(commands),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if result.returncode != 0:
        tail = "\n".join(result.stdout.splitlines()[-20:])
        raise YosysError(f"yosys ended with {result.returncode} on {commands[0]!r}:\n{tail}")
    return result.stdout


# A LUT costs the same whatever its inputs, as the tables count it; `synth_xilinx` itself takes small ones for cheaper,
# since two may share a site (sites.py). Seven and eight inputs are two and four LUTs and a MUXF.
# `abc9.W` is what a LUT and the net behind it take, in picoseconds. The delays of carry chains, block RAMs and DSPs in
# Yosys' models are those of 7-series, where a LUT takes 124 ps and a net several hundred. At the 300 that
# `synth_xilinx` takes for UltraScale+ a chain or a block RAM is as long as many LUTs, and the mapper lets all other
# ways grow up to that: the transmit side then has 10 levels for 1 % fewer LUTs, instead of 6.
MAP_LUTS = """\
opt_expr -mux_undef -noclkinv
read_verilog -icells -lib -specify +/xilinx/abc9_model.v
scratchpad -set abc9.W 1000
abc9 -luts 6:5,10,20
clean
xilinx_srl -fixed -minlen 3
techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6
xilinx_dffopt
opt_lut_ins -tech xilinx"""


# Every way as short as the mapper finds it: without the last three options it saves LUTs on all but the deepest.
FOR_DEPTH = "scratchpad -set abc9.script +&scorr;&sweep;&dc2;&dch,-f,-r;&ps;&if,{W},-q,-F,0,-A,0"

# As `synth_xilinx` does it for xcup.
FIND_MEMORY = """\
memory_libmap -logic-cost-rom 0.015625 -lib +/xilinx/lutrams_xcu.txt -lib +/xilinx/brams_xc4v.txt -D HAS_SIZE_36 \
-D HAS_MIXWIDTH_SDP -D HAS_ADDRCE -no-auto-huge"""
MAP_MEMORY = """\
techmap -map +/xilinx/lutrams_xc5v_map.v
techmap -map +/xilinx/brams_xcu_map.v"""
# A block RAM's contents cost nothing, and Yosys takes two seconds for each that differ.
FORGET_CONTENTS = "setparam -unset INIT t:$__XILINX_BLOCKRAM_*"


def synthesise(top: str, *options: str, contents: bool = False, for_depth: bool = False) -> list[str]:
    """The commands that map a design that has been read to UltraScale+, out of context: no pads, no clock buffers.

    Only with `contents` do block RAMs keep their initial contents: to simulate the netlist. `for_depth` maps for the
    fewest levels on every way, with more LUTs.
    """
    flow = " ".join(["synth_xilinx -family xcup -noiopad -noclkbuf", *options, f"-top {top} -run"])
    before, between, behind = f"{flow} begin:map_memory", f"{flow} map_ffram:map_luts", f"{flow} finalize:"
    memory = [*FIND_MEMORY.splitlines(), *([] if contents else [FORGET_CONTENTS]), *MAP_MEMORY.splitlines()]
    luts = [*([FOR_DEPTH] if for_depth else []), *MAP_LUTS.splitlines()]
    return [before, *memory, between, *luts, behind]


def read(top: str, params: dict[str, int], source: Path, *more: str) -> str:
    """The command that reads `top` from its file and finds all other modules by name."""
    rtl.generate()
    settings = [f"-G {name}={value}" for name, value in params.items()]
    folders = [f"-y {folder}" for folder in rtl.FOLDERS]
    files = [str(path) for path in (*rtl.packages(), source)]
    return " ".join(["read_slang --top", top, *settings, *folders, *rtl.include_options(), "-Y .sv", *more, *files])
