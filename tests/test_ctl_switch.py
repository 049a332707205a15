# SPDX-License-Identifier: Apache-2.0
"""`penstock ctl switch`: QCN switches in software, operated by their own register map beside boards with another."""

import json
import re
import sys
from pathlib import Path

import pytest
from ctl import Ctl, boards

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "build/gen"))

import qcn_switch_regs  # noqa: E402

AT = {name: address for name, (address, _) in qcn_switch_regs.REGISTERS.items()}
BUILT = {"ports": 4, "queues": 2, "entries": 16}


def port(number: int, counter: str) -> int:
    return AT[f"port.{counter}"] + number * qcn_switch_regs.PORT_STRIDE


@pytest.fixture
def ctl(penstock, tmp_path) -> Ctl:
    return Ctl(penstock.binary, tmp_path / "state")


@pytest.fixture
def lan(built):
    """Two switches, the first with counts and a queue, and a board."""
    held = {
        port(0, "tx_frame"): 1000,
        port(2, "tx_frame"): 24,
        port(2, "tx_cnm"): 7,
        port(3, "tx_pfc"): 2,
        port(1, "rx_lost"): 3,
        AT["queue.octets"] + 5 * qcn_switch_regs.QUEUE_STRIDE: 33_333,
    }
    holds = ",".join(f"0:{address:#x}={word:#x}" for address, word in held.items())
    with boards(built, 3, "--switch", "0,1", "--holds", holds) as group:
        yield group


def test_status_and_counters_show_what_the_switches_do(lan, ctl):
    both = f"{lan.address(0)},{lan.address(1)}"
    first, second = ctl.run("switch", "status", both, "-J").json["boards"]
    assert first["build"] == BUILT and first["mac"] == "02:50:54:00:00:00" and first["learns"]
    assert (first["congestion_points"], first["q_eq"], first["pause"]) == ([0], 33_000, "no")
    assert (first["forwarded"], first["dropped"], first["notifications"], first["pauses"]) == (1024, 3, 7, 2)
    assert first["waiting"] == 33_333 and second["forwarded"] == 0
    shown = ctl.run("switch", "status", both).out
    assert "4 x 2" in shown and "queue 0, Q_eq 33000B" in shown and "33333B" in shown

    counted = ctl.run("switch", "counters", both, "-J").board(lan.address(0))["ports"]
    assert [entry["port"] for entry in counted] == [0, 1, 2, 3]
    assert (counted[2]["counters"]["tx_cnm"], counted[1]["counters"]["rx_lost"]) == (7, 3)
    # queue 5 of the switch is queue 1 of port 2
    assert [entry["counters"]["queue_1"] for entry in counted] == [0, 0, 33_333, 0]
    table = ctl.run("switch", "counters", lan.address(0)).out
    assert "tx_cnm" in table and "queue_1" in table and "rx_filtered" not in table
    assert "rx_filtered" in ctl.run("switch", "counters", lan.address(0), "--all").out


def test_registers_are_written_by_name_read_back_and_noted(lan, ctl):
    switch, other = lan.address(0), lan.address(1)
    output = ctl.run("switch", "set", f"{switch},{other}", "q_eq=40kB", "pause.pfc_en=1", "mac=02:00:00:00:00:07").out
    assert f"{switch}  q_eq  33000B -> 40000B" in output and f"{other}  pause  " in output
    read = ctl.run("switch", "get", switch, "q_eq", "pause", "mac", "port[2].tx_cnm", "-J").board(switch)["registers"]
    assert read["q_eq"]["number"] == 40_000 and read["pause"]["fields"]["pfc_en"] == "1"
    assert read["mac"]["text"] == "02:00:00:00:00:07" and read["port[2].tx_cnm"]["number"] == 7
    assert ctl.run("switch", "set", switch, "q_eq=40000").out == f"{switch}  as it was\n"
    assert ctl.run("switch", "status", switch, "-J").board(switch)["pause"] == "PFC"
    noted = [(line["board"], line["register"]) for line in ctl.written()]
    assert (switch, "q_eq") in noted and (other, "pause") in noted and len(noted) == 8
    watched = ctl.run("switch", "watch", switch, "q_eq", "--looks", "1", "-J").out
    assert json.loads(watched)["value"]["text"] == "40000B"


def test_addresses_are_entered_in_the_mac_table(lan, ctl):
    switch = lan.address(1)
    output = ctl.run("switch", "enter", switch, "15", "02:00:0a:00:00:02", "--port", "3").out
    assert output == f"{switch}: entry 15 is written\n"
    ctl.run("switch", "enter", switch, "15", "02:00:0a:00:00:03", "--port", "1", "--movable")
    ctl.run("switch", "enter", switch, "0", "--free")
    words = [(line["register"], int(line["new"], 16)) for line in ctl.written()]
    static, valid = 1 << 30, 1 << 31
    assert words == [
        ("entry_hi", 0x0200 | 3 << 16 | static | valid),
        ("entry_lo", 0x0A00_0002),
        ("entry_write", 15),
        ("entry_hi", 0x0200 | 1 << 16 | valid),
        ("entry_lo", 0x0A00_0003),
        ("entry_write", 15),
        ("entry_hi", 0),
        ("entry_lo", 0),
        ("entry_write", 0),
    ]
    for words, why in (
        (["16", "02:00:0a:00:00:02", "--port", "0"], "entry 16: its MAC table has entries 0 to 15"),
        (["0", "02:00:0a:00:00:02", "--port", "4"], "--port 4: it has ports 0 to 3"),
        (["0", "01:00:5e:00:00:02", "--port", "0"], "a group address"),
        (["0", "02:00", "--port", "0"], "MAC address"),
        (["0", "02:00:0a:00:00:02"], "--port"),
    ):
        assert why in ctl.run("switch", "enter", switch, *words, status=2).err
    refused = ctl.run("switch", "set", switch, "entry_write=3", status=2)
    assert "`penstock ctl switch enter`" in refused.err
    assert len(ctl.written()) == 9


def test_boards_and_switches_are_refused_by_name_where_the_other_is_meant(lan, ctl):
    switch, board = lan.address(0), lan.address(2)
    is_switch = "it is a QCN switch, and this is for boards: `penstock ctl switch` operates switches"
    is_board = "it is a board, and this is for QCN switches: `penstock ctl` without `switch` operates boards"
    for words in (
        ["status", switch],
        ["get", switch, "cc[0].rate_ai"],
        ["set", switch, "source.count=1"],
        ["counters", switch],
        ["source", "start", switch],
        ["close", switch, "--force"],
        ["reset", switch],
    ):
        assert is_switch in ctl.run(*words, status=1).err, words
    # The other devices of a list are served.
    mixed = f"{switch},{board}"
    status = ctl.run("switch", "status", mixed, "-J", status=1)
    assert [found["board"] for found in status.json["boards"]] == [switch]
    assert status.faults(board) == [(None, is_board)]
    for words in (
        ["get", board, "q_eq"],
        ["set", board, "q_eq=1B"],
        ["counters", board],
        ["enter", board, "0", "--free"],
    ):
        assert is_board in ctl.run("switch", *words, status=1).err, words
    assert ctl.run("status", mixed, "-J", status=1).faults(switch) == [(None, is_switch)]
    assert ctl.written() == []


def test_names_are_those_of_the_switch_map(lan, ctl):
    switch = lan.address(0)
    refused = ctl.run("switch", "get", switch, "cc[0].rate_ai", status=2).err
    assert "there is no such register" in refused and "`penstock ctl switch registers` lists all" in refused
    assert "4 copies on this switch, 0 to 3" in ctl.run("switch", "get", switch, "port[4]", status=2).err
    assert "read-only" in ctl.run("switch", "set", switch, "port[0].tx_frame=0", status=2).err
    assert "the register takes 0B to 16777215B" in ctl.run("switch", "set", switch, "q_eq=17MB", status=2).err
    listed = ctl.run("switch", "registers", "-J").json
    assert listed["map_hash"] == f"0x{qcn_switch_regs.MAP_HASH:08X}"
    names = {re.sub(r"\[0-\d+\]", "", entry["name"]) for entry in listed["registers"]}
    assert names == AT.keys()
    assert ctl.run("switch", "registers", "nothing_like_it", status=2).err.strip().endswith("in its name")
