# SPDX-License-Identifier: Apache-2.0
"""The board tops: register addresses are right, every port has a pin or is listed as unused, Yosys elaborates them."""

import re
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "rtl" / "syn"), str(REPO / "tb" / "lib")]

import yosys  # noqa: E402

import rtl  # noqa: E402

BOARDS = REPO / "rtl" / "boards"
PORT = re.compile(r"^\s*(?:input|output)\s+logic\s*(?:\[(\d+):0\])?\s*(\w+)", re.M)
PHYSICAL = {"kcu105": "xxv_ethernet_0", "vcu118": "cmac_usplus_0", "mpf300_eval": "pf_10gbaser"}
PHYSICAL |= {"ecpix5": "EHXPLLL", "versa_ecp5": "EHXPLLL", "versa_basex": "DCUA"}
ANALOG = re.compile(r"sma_|refclk_[pn]$")  # pins of a SERDES, which have no level to choose


def test_own_address_goes_to_the_registers_of_the_map():
    rtl.generate()
    sys.path.insert(0, str(rtl.GENERATED))
    from penstock_regs import REGISTERS

    text = (BOARDS / "board_address.sv").read_text()
    written = {name: int(at, 16) for name, at in re.findall(r"(Local\w+)\s*= 18'h(\w+)", text)}
    names = {"LocalMacHi": "local_mac_hi", "LocalMacLo": "local_mac_lo", "LocalIp": "local_ip"}
    assert written == {short: REGISTERS[name][0] for short, name in names.items()}


def pins(board: str) -> set[str]:
    """The pins of a board top, bit by bit."""
    text = (BOARDS / board / f"{board}.sv").read_text()
    header = text[text.index(f"module {board}") : text.index("\n);")]
    found = set()
    for high, name in PORT.findall(header):
        found |= {f"{name}[{i}]" for i in range(int(high) + 1)} if high else {name}
    return found


@pytest.mark.parametrize("board", rtl.BOARDS)
def test_every_port_has_a_pin_or_is_named_as_unassigned(board):
    constraints = next(
        path for kind in ("xdc", "pdc", "lpf") for path in (BOARDS / board).glob(f"*.{kind}")
    ).read_text()
    placed = re.findall(r"PACKAGE_PIN \w+.*?\[get_ports \{?([\w\[\]]+)\}?\]", constraints)
    placed += re.findall(r"set_io -port_name \{?([\w\[\]]+)\}? -pin_name", constraints)
    placed += re.findall(r"^LOCATE COMP \"(\S+)\" SITE", constraints, re.M)
    admitted = re.search(r"NOT ASSIGNED.*?:\n#\s+(.*)", constraints)
    open_pins = admitted[1].split(", ") if admitted else []
    assert len(placed) == len(set(placed))
    assert set(placed) | set(open_pins) == pins(board)
    assert not set(placed) & set(open_pins)
    locations = re.findall(r"(?:PACKAGE_PIN |-pin_name |SITE \")(\w+)", constraints)
    assert len(locations) == len(set(locations)), "two ports on one pin"
    levels = re.findall(r"^IOBUF PORT \"(\S+)\" IO_TYPE=", constraints, re.M)
    digital = [pin for pin in placed if not ANALOG.match(pin)]
    assert not levels or sorted(levels) == sorted(digital), "a pin of an ECP5 without its level"


@pytest.mark.parametrize("board", rtl.BOARDS)
def test_yosys_elaborates_the_board_with_black_boxes(board):
    """One of them whole; of the others what is around the core."""
    rtl.generate()
    core = () if board == "kcu105" else ("--blackboxed-module penstock_core",)
    read = yosys.read(board, {"N_QP": 1}, rtl.module(board)[0], *core)
    log = yosys.run([read, "hierarchy -check", f"select -list t:{PHYSICAL[board]}"])
    assert f"{board}/u_" in log
