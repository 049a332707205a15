# SPDX-License-Identifier: Apache-2.0
"""The VHDL example: GHDL accepts it, and its component matches the SystemVerilog top, port by port."""

import re
import subprocess
from pathlib import Path

import gateware_text

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "penstock_10g_example.vhd"
TOP = "penstock_xgmii"
VHDL_PORT = re.compile(r"^\s*(\w+)\s*:\s*(in|out)\s+(std_logic_vector\((.+?) downto 0\)|std_logic\b)", re.M)


def component() -> str:
    text = EXAMPLE.read_text()
    return text[text.index(f"component {TOP} is") : text.index(f"end component {TOP}")]


def test_component_has_exactly_the_ports_of_the_top():
    ways = {"in": "input", "out": "output"}
    declared = [(ways[way], name, high.replace(" ", "")) for name, way, _, high in VHDL_PORT.findall(component())]
    # VHDL has no local parameter of a component: the least width of the inputs' ports is written out.
    expected = [(way, name, high.replace("Inputs", "maximum(N_IN,1)")) for way, name, high in gateware_text.ports(TOP)]
    assert declared == expected


def test_component_has_exactly_the_parameters_of_the_top():
    generics = re.findall(r"^\s*(\w+)\s*: (?:positive|natural)", component(), re.M)
    assert generics == gateware_text.parameters(TOP)


def test_descriptor_is_packed_as_the_gateware_reads_it():
    text = EXAMPLE.read_text()
    packed = text[text.index("function descriptor") : text.index("end function descriptor")]
    named = [name for name in re.findall(r"-- (\w+)", packed) if name != "from"]
    assert named == [name for name, *_ in gateware_text.fields("desc_t")]


def test_ghdl_analyses_and_elaborates_the_example(tmp_path):
    for step in (["-a", "--std=08", EXAMPLE], ["-e", "--std=08", "-Wno-binding", "penstock_10g_example"]):
        result = subprocess.run(["ghdl", *step], cwd=tmp_path, text=True, capture_output=True)
        assert result.returncode == 0, result.stderr
        assert result.stderr == "", result.stderr
