# SPDX-License-Identifier: Apache-2.0
"""`penstock ctl`: boards in software that lose packets, vanish and are reset, and the verilated board with uHAL."""

import json
import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from board_server import BOARD_IP, SERVER_IP, Network
from ctl import DEADLINE_S, Boards, Ctl, boards
from processes import killed
from test_board import ADDRESSES, Board, wait_for
from veth import until

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python"))

from penstock.results import Run  # noqa: E402


@pytest.fixture
def ctl(penstock, tmp_path) -> Ctl:
    return Ctl(penstock.binary, tmp_path / "state")


@pytest.fixture
def start(built):
    """Starts boards in software, and ends them."""
    running = []

    def begin(count: int, *options: str) -> Boards:
        running.append(Boards(built, count, *options))
        return running[-1]

    yield begin
    for group in running:
        group.close()


# ---- the verilated board ------------------------------------------------------------------------------------------


@pytest.fixture
def network(namespaces):
    network = Network(f"pstk-ctl-{os.getpid()}")
    yield network
    network.close()


@pytest.fixture
def verilated(network, penstock):
    """A verilated board on a TAP device of the network's namespace."""
    command = [str(penstock.binary), "board", "--json", "--ip", BOARD_IP, "--tap", "pstk0"]
    board = Board(network.command(*command))
    wait_for(network, "pstk0")
    network.run("ip", "addr", "add", f"{SERVER_IP}/24", "dev", "pstk0")
    network.run("ip", "link", "set", "pstk0", "mtu", "9000", "up")
    yield board
    board.process.kill()
    board.process.communicate()


# One packet alone comes first: Linux may send packets that wait for the board's Ethernet address after later ones, and
# uHAL wants its replies in order.
UHAL = """
import json, sys, uhal
uhal.disableLogging()
board = uhal.getDevice("penstock", f"ipbusudp-2.0://{sys.argv[1]}:50001", f"file://{sys.argv[2]}")
board.setTimeoutPeriod(60000)
board.getNode("id").read()
board.dispatch()
names = [n for n in board.getNodes() if not board.getNode(n).getNodes()]
values = {name: board.getNode(name).read() for name in names}
board.dispatch()
print(json.dumps({name: int(value) for name, value in values.items()}))
"""
PATIENCE = ("--patience", "60s")  # of a board that makes its cycles in software, on a machine with other work
# What may move between two looks.
COUNTS = ("counters.", "stalled", "messages", "bytes_acked", "timing.time_", "timing.busy_cycles", "timing.veto_cycles")
LIVE = (*COUNTS, ".alpha", ".stage", ".rate_current", ".rate_target")


def test_every_register_reads_as_uhal_reads_it_in_one_dispatch(verilated, network, penstock, tmp_path):
    """47,000 nodes, fields among them: 270 packets, of which uHAL has 16 under way and repeats none."""
    ctl = Ctl(penstock.binary, tmp_path, network.command())
    seen = json.loads(network.run(sys.executable, "-c", UHAL, BOARD_IP, str(ADDRESSES)))
    assert len(seen) > 40_000
    fields_of: dict[str, dict[str, int]] = {}
    for node, number in seen.items():
        register, _, field = node.rpartition(".")
        fields_of.setdefault(register, {})[field] = number
    listed = ctl.run("registers", "-J").json["registers"]
    top = [register["name"] for register in listed if "." not in register["name"]]
    groups = {r["name"].split(".")[0].split("[")[0] for r in listed if "." in r["name"]}
    # Long blocks and histograms are left out; of what has a row for each queue pair the first is compared.
    arrays = {"qp", "ring", "meter"}
    whole = sorted(groups - arrays - {"replay_block", "hook_block", "latency", "latency_bins"})
    names = [*top, *whole, *(f"{array}[0]" for array in sorted(arrays))]
    found = ctl.run("get", BOARD_IP, *names, "-J", *PATIENCE).board(BOARD_IP)["registers"]
    compared = 0
    for name, value in found.items():
        if any(part in name for part in LIVE):
            continue
        uhal_name = name.replace("[", "").replace("]", "")
        masks = {f["name"]: (f["low"], f["width"]) for r in listed if same(r["name"], name) for f in r["fields"]}
        if uhal_name in seen:
            assert value["number"] == seen[uhal_name], name
            compared += 1
        for field, number in fields_of.get(uhal_name, {}).items():
            low, width = masks[field]
            word = value["number"] << low if len(masks) == 1 else value["number"]
            assert word >> low & (1 << width) - 1 == number, f"{name}.{field}"
            compared += 1
    assert compared > 200, compared


def same(listed: str, name: str) -> bool:
    """`cc[0-3].rate_ai` lists `cc[2].rate_ai`."""
    if "[" not in listed:
        return listed == name
    return listed.split("[")[0] == name.split("[")[0] and listed.split("].")[-1] == name.split("].")[-1]


def test_settings_with_units_are_read_by_uhal_and_queue_pairs_are_closed(verilated, network, penstock, tmp_path):
    ctl = Ctl(penstock.binary, tmp_path, network.command())
    status = ctl.run("status", BOARD_IP, "-J", *PATIENCE).board(BOARD_IP)
    assert status["build"]["queue_pairs"] == 4 and status["link"] == "up" and status["ip"] == BOARD_IP
    ctl.run("set", BOARD_IP, "cc[1].rate_ai=40Mbps", "flow_control.traffic_class=5", "qp[2].state=rts", *PATIENCE)
    seen = json.loads(network.run(sys.executable, "-c", UHAL, BOARD_IP, str(ADDRESSES)))
    assert seen["cc1.rate_ai"] == round(40e6 / 8 / 156.25e6 * 2**24)
    assert seen["flow_control.traffic_class"] == 5
    got = ctl.run("get", BOARD_IP, "qp.state", "cc[1].rate_ai", "-J", *PATIENCE).board(BOARD_IP)["registers"]
    assert got["qp[2].state"]["text"] == "rts" and got["cc[1].rate_ai"]["text"] == "40Mbps"
    refused = ctl.run("close", BOARD_IP, *PATIENCE, status=2)
    assert "[2]" in refused.err and "--force" in refused.err
    ctl.run("close", BOARD_IP, "--force", *PATIENCE)
    assert ctl.run("status", BOARD_IP, "-J", *PATIENCE).board(BOARD_IP)["queue_pairs"] == ["reset"] * 4
    changed = {(line["register"], line["new"]) for line in ctl.written() if line["result"] == "written"}
    assert ("qp[2].state", "0x00000003") in changed and ("qp[2].state", "0x00000000") in changed


# ---- boards in software ---------------------------------------------------------------------------------------------


def test_status_finds_the_boards_of_a_range_and_names_those_that_are_not_fit(start, ctl):
    group = start(6, "--wrong-map", "2", "--dead", "4")
    done = ctl.run("status", group.all, "-J", "--patience", "300ms", status=1)
    assert [board["board"] for board in done.json["boards"]] == [group.address(n) for n in (0, 1, 3, 5)]
    assert done.json["silent_addresses"] == 1
    [(register, message)] = done.faults(group.address(2))
    assert register is None and "its register map is 0x" in message and "use the program of" in message
    named = ctl.run("status", group.address(4), "--patience", "300ms", status=1)
    assert f"{group.address(4)}: no answer to" in named.err


def test_a_board_with_another_map_is_not_written_to(start, ctl):
    group = start(2, "--wrong-map", "0")
    done = ctl.run("set", group.all, "scratch=7", "-J", status=1)
    assert [board["board"] for board in done.json["boards"]] == [group.address(1)]
    assert "its register map is" in done.faults(group.address(0))[0][1]
    assert [line["board"] for line in ctl.written()] == [group.address(1)]


def test_what_cannot_be_written_is_refused_before_anything_is(start, ctl):
    board = start(1).address(0)
    for setting, words in [
        ("cc[0].rate_ai=1Tbps", ["cc[0].rate_ai=1Tbps", "0bps to 319.9999999Gbps"]),
        ("cc.rate_io=1", ["there is no such register", "cc[0].rate_ai"]),
        ("id=1", ["id is read-only"]),
        ("qp[9].congestion.law=off", ["4 copies on this board, 0 to 3"]),
        ("local_ip=10.0.0.9", ["local_ip", "--force", "nothing was written"]),
        ("flow_control.traffic_class=8", ["takes 0 to 7"]),
        ("scratch", ["REGISTER=VALUE"]),
    ]:
        reported = ctl.run("set", board, "scratch=5", setting, status=2).err
        assert all(word in reported for word in words), reported
    assert ctl.run("get", board, "scratch", "-J").board(board)["registers"]["scratch"]["number"] == 0
    assert ctl.written() == []
    for boards_, words in [("10.0.0", "no IPv4 address"), (f"{board},{board}", "stands twice"), ("@/none", "/none")]:
        assert words in ctl.run("status", boards_, status=2).err


def test_what_a_build_lacks_is_shown_and_its_settings_are_refused_by_board_and_register(start, ctl, tmp_path):
    group = start(2, "--bare", "1")
    full, bare = group.address(0), group.address(1)
    reported = ctl.run("status", group.all, "-J")
    builds = {board["board"]: board["build"] for board in reported.json["boards"]}
    parts = ("qcn", "source", "services", "retransmission")
    assert [[build[part] for part in parts] for build in (builds[full], builds[bare])] == [
        [True, True, True, True],
        [False, False, True, False],
    ]
    shown = ctl.run("status", group.all).out
    assert shown.startswith("2 boards: 2 up; queue pairs: 8 reset\n\n")
    for text, count in (("4 queue pairs", 2), ("4 queue pairs, QCN, source", 1), ("pairs, no retransmission", 1)):
        assert shown.count(text) == count, shown
    for setting, register, part in [
        ("cc[2].control.law=qcn", "cc[2].control", "QCN (WITH_QCN is 0)"),
        ("qp[1].congestion.law=qcn", "qp[1].congestion", "QCN (WITH_QCN is 0)"),
        ("qcn[0].timer_period=1ms", "qcn[0].timer_period", "QCN (WITH_QCN is 0)"),
        ("qp[1].transport.rnr_retry=7", "qp[1].transport", "retransmission (RETRANSMIT is 0)"),
        ("connection.transport.retry_cnt=3", "connection.transport", "retransmission (RETRANSMIT is 0)"),
        ("source.count=5", "source.count", "message source (WITH_SOURCE is 0)"),
        ("replay_block[0].word0=5", "replay_block[0].word0", "message source (WITH_SOURCE is 0)"),
    ]:
        refused = ctl.run("set", group.all, "scratch=5", setting, status=2).err
        words = (f"{bare}: {register}: ", f"is built without {part}", "leave the setting out", "nothing was written")
        assert all(word in refused for word in words), refused
        ctl.run("set", full, setting)
    assert not {line["register"] for line in ctl.written()} & {"scratch"}
    assert {line["board"] for line in ctl.written()} == {full}
    # What the build takes all the same: another law, and what reads so already.
    ctl.run("set", bare, "cc[0].control.law=off", "source.count=0", "--force")
    file = tmp_path / "boards.toml"
    boards_ = "".join(f'[[board]]\naddress = "{address}"\n' for address in (full, bare))
    file.write_text(f'[all]\nsource.interval = "1ms"\n{boards_}')
    for command in ("diff", "apply"):
        refused = ctl.run(command, file, status=2).err
        assert f"{bare}: source.interval: this board's gateware is built without message source" in refused
    # Commands: the others start.
    done = ctl.run("source", "start", group.all, "-J", status=1)
    assert done.json["boards"] == [full] and done.faults(full) == []
    [(register, message)] = done.faults(bare)
    assert register == "source.command" and "is built without message source (WITH_SOURCE is 0)" in message
    assert [line for line in ctl.written() if line["board"] == bare and line["register"].startswith("source")] == []


def test_every_write_is_in_the_journal_with_the_old_word(start, ctl):
    group = start(2)
    ctl.run("set", group.all, "scratch=7")
    ctl.run("set", group.address(1), "scratch=9", "flow_control.pfc_en=0")
    lines = [(line["board"], line["register"], line["old"], line["new"], line["result"]) for line in ctl.written()]
    first, second = group.address(0), group.address(1)
    assert lines == [
        (first, "scratch", "0x00000000", "0x00000007", "written"),
        (second, "scratch", "0x00000000", "0x00000007", "written"),
        (second, "scratch", "0x00000007", "0x00000009", "written"),
        (second, "flow_control", "0x00000033", "0x00000031", "written"),
    ]
    assert all("@" in line["operator"] and line["time"].endswith("Z") for line in ctl.written())


def test_the_mark_of_an_operator_who_was_cut_off_is_reported_and_expires(start, ctl):
    board = start(1).address(0)
    # What a program leaves that was killed in the middle: it has begun and not ended.
    ctl.run("set", board, "operator_begun=5", "operator_ip=10.1.2.3", status=None)
    assert "10.1.2.3" in ctl.run("status", board, "-J").board(board)["operator"]
    ctl.run("set", board, "scratch=1", "--force")
    ctl.run("set", board, "operator_begun=50", "operator_ip=10.1.2.3", status=None)
    ctl.run("set", board, "scratch=2")
    assert ctl.run("status", board, "-J").board(board)["operator"] is None
    noted = [line["result"] for line in ctl.written() if line["register"] == "operator_ended"]
    assert noted == [
        "taken over from 10.1.2.3 by --force",
        "taken over from 10.1.2.3, whose mark has not moved for 10 s",
    ]


def test_operators_at_once_take_turns(start, ctl):
    boards = start(3)
    environment = {**os.environ, "XDG_STATE_HOME": str(ctl.journal)}
    names = ["scratch=7", "flow_control.traffic_class=5", "cc[0].rate_ai=1Mbps", "cc[1].rate_ai=2Mbps"]
    running = [
        subprocess.Popen(ctl.command("set", boards.all, name), stderr=subprocess.PIPE, env=environment)
        for name in names
    ]
    for name, process in zip(names, running, strict=True):
        _, errors = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, f"{name}: {errors}"
    for number in range(3):
        board = ctl.run("status", boards.all, "-J").board(boards.address(number))
        assert board["operator"] is None, "nobody is left"


CONFIGURATION = """
[all]
flow_control.traffic_class = 4
cc.profile = "penstock"
cc.share = "39Mbps"
connection.control.offered = 2
source.length_min = "9000B"
destination = { live = [0, 1], first = 100 }

"""


def configured(group: Boards, path: Path, extra: str = "") -> Path:
    file = path / "boards.toml"
    tables = [f'[[board]]\naddress = "{group.address(n)}"\nring.0.slots = {64 + n}\n' for n in range(group.count)]
    file.write_text(CONFIGURATION + extra + "\n".join(tables))
    return file


def test_apply_sets_all_boards_and_a_second_time_there_is_nothing_to_do(start, ctl, tmp_path):
    group = start(5)
    file = configured(group, tmp_path)
    before = ctl.run("diff", file, status=1).out
    assert f"{group.address(0)} and 4 more  flow_control" in before and "5 boards differ, 0 are" in before
    assert ctl.written() == [], "diff writes nothing"
    assert ctl.run("apply", file).out.endswith("5 boards are set and read back, 0 were as the file says\n")
    assert ctl.run("apply", file).out == "nothing to write: 5 boards are as the file says\n"
    assert ctl.run("diff", file).out == "0 boards differ, 5 are as the file says\n"
    names = ["flow_control.traffic_class", "ring[0].slots", "destination.status", "cc[3].rate_ai", "server[1]"]
    got = ctl.run("get", group.address(3), *names, "-J").board(group.address(3))["registers"]
    assert got["flow_control.traffic_class"]["number"] == 4 and got["ring[0].slots"]["number"] == 67
    assert got["destination.status"]["fields"]["live"] == "2"
    assert got["server[1].entry"]["fields"] == {"qp": "1", "live": "1"}
    assert got["cc[3].rate_ai"]["quantity"] == pytest.approx(39e6 / 256, rel=1e-3)


EVENT_INPUTS = """
[all.events]
enable = 0b11
timeout = 50000
limit = 4096

[all.events.control]
by_event = 1
verb = 1

"""


def test_apply_sets_the_event_inputs_of_each_board_and_refuses_those_that_a_build_lacks(start, ctl, tmp_path):
    group, bare = start(2, "--inputs", "2"), start(1)
    file = tmp_path / "boards.toml"
    sections = [f'[[board]]\naddress = "{group.address(n)}"\nevents.source_id = {40 + n}\n' for n in range(2)]
    file.write_text(EVENT_INPUTS + "\n".join(sections))
    differing = ctl.run("diff", file, status=1).out
    assert "events.enable" in differing and "events.source_id" in differing and "2 boards differ, 0 are" in differing
    ctl.run("apply", file)
    assert ctl.run("apply", file).out == "nothing to write: 2 boards are as the file says\n"
    assert ctl.run("diff", file).out == "0 boards differ, 2 are as the file says\n"
    registers = ("enable", "timeout", "limit", "source_id", "control.by_event", "control.verb")
    for number in range(2):
        board = group.address(number)
        got = ctl.run("get", board, *(f"events.{register}" for register in registers), "-J").board(board)["registers"]
        assert [got[f"events.{register}"]["number"] for register in registers] == [3, 50000, 4096, 40 + number, 1, 1]
    written = len(ctl.written())
    text = file.read_text()
    for lacking, part in [
        (
            text.replace("0b11", "0b111"),
            f"{group.address(0)}: events.enable: this board's gateware is built without input 2 (N_IN",
        ),
        (
            text + f'[[board]]\naddress = "{bare.address(0)}"\n',
            f"{bare.address(0)}: events.enable: this board's gateware is built without detector inputs (N_IN",
        ),
    ]:
        file.write_text(lacking)
        for command in ("diff", "apply"):
            reported = ctl.run(command, file, status=2).err
            assert part in reported and "nothing was written" in reported, reported
    assert len(ctl.written()) == written


def test_a_file_that_is_wrong_is_reported_by_line_and_nothing_is_written(start, ctl, tmp_path):
    group = start(2)
    file = configured(group, tmp_path, 'cc.rate_io = 1\nid = 3\nsampling.range.first = "300"\n')
    reported = ctl.run("apply", file, status=2).err
    for words in [
        "boards.toml:",
        "there is no such register",
        "id is read-only",
        "sampling.range.first=300: the register takes 0 to 255",
    ]:
        assert words in reported, reported
    text = file.read_text()
    file.write_text(text + f'[[board]]\naddress = "{group.address(0)}"\n')
    assert f"address = {group.address(0)}: the board of line" in ctl.run("apply", file, status=2).err
    assert ctl.written() == []


def test_boards_that_vanish_in_the_middle_are_named_and_the_others_are_set(start, ctl, tmp_path):
    group = start(6, "--mute", "1,4")
    file = configured(group, tmp_path)
    done = ctl.run("apply", file, "-J", "--patience", "500ms", status=1)
    assert {board["board"] for board in done.json["boards"] if board["done"]} == {
        group.address(n) for n in (0, 2, 3, 5)
    }
    for number in (1, 4):
        assert any("no answer to" in message for _, message in done.faults(group.address(number)))


def test_a_board_that_refuses_a_word_gets_its_old_settings_again(start, ctl, tmp_path):
    group = start(3)
    file = configured(group, tmp_path, 'access.allow = "127.0.0.0/8"\n')
    board = group.address(1)
    ctl.run("set", board, "access.control.locked=1", "--force")
    done = ctl.run("apply", file, "-J", status=1)
    faults = done.faults(board)
    assert any(register == "access_entry[0].ip" and "refuses to write" in message for register, message in faults)
    assert any("rolled back" in message for _, message in faults)
    got = ctl.run("get", board, "flow_control.traffic_class", "ring[0].slots", "-J").board(board)["registers"]
    assert got["flow_control.traffic_class"]["number"] == 3 and got["ring[0].slots"]["number"] == 0
    unchanged = ctl.run("get", group.address(2), "flow_control.traffic_class", "-J").board(group.address(2))
    assert unchanged["registers"]["flow_control.traffic_class"]["number"] == 4


def test_a_list_that_would_shut_this_host_out_is_refused(start, ctl, tmp_path):
    group = start(1)
    file = configured(group, tmp_path, 'access.allow = "10.0.0.0/8"\n')
    assert "would shut this host out" in ctl.run("apply", file, status=2).err


def test_a_percent_of_lost_packets_changes_nothing_but_time(start, ctl, tmp_path):
    group = start(40, "--loss", "0.01", "--seed", "7")
    file = configured(group, tmp_path)
    ctl.run("apply", file, "--patience", "20s")
    for _ in range(3):
        assert ctl.run("diff", file, "--patience", "20s").out.startswith("0 boards differ, 40 are")
    assert ctl.run("counters", group.all, "--patience", "20s", "-J").status == 0


def test_sources_are_started_and_stopped_and_counters_are_shown(start, ctl):
    group = start(3)
    ctl.run("source", "start", group.all)
    assert all(board["source_runs"] for board in ctl.run("status", group.all, "-J").json["boards"])
    ctl.run("source", "stop", group.all)
    assert not any(board["source_runs"] for board in ctl.run("status", group.all, "-J").json["boards"])
    ctl.run("reset", group.all)
    counted = ctl.run("counters", group.address(0), "--queue-pairs", "-J").board(group.address(0))["counters"]
    assert counted["tx_frames"] == 0 and counted["qp[3].messages_ok"] == 0


def test_watch_shows_each_change_once(start, ctl):
    board = start(1, "--busy").address(0)
    done = ctl.run("watch", board, "qp[0].rate_current", "scratch", "--interval", "5ms", "--looks", "40", "-J")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert sum(line["register"] == "scratch" for line in lines) == 1
    values = [line["value"]["number"] for line in lines if line["register"] == "qp[0].rate_current"]
    assert len(values) > 2 and all(a != b for a, b in pairwise(values))


def watching(ctl: Ctl, *words: object) -> tuple[subprocess.Popen, list[dict]]:
    """A `watch` that runs, and its lines as they come."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(ctl.command("watch", *words, "--interval", "10ms", "-J"), **pipes)
    lines: list[dict] = []
    threading.Thread(target=lambda: lines.extend(map(json.loads, process.stdout)), daemon=True).start()
    return process, lines


def of_board(lines: list[dict], board: str) -> list[int]:
    return [line["value"]["number"] for line in lines if line["board"] == board]


def test_watch_waits_for_no_silent_board(start, ctl):
    """It is asked for an hour: one wait for it would end the test."""
    lost, stays = start(1, "--busy"), start(1, "--busy")
    boards_ = f"{lost.address(0)},{stays.address(0)}"
    process, lines = watching(ctl, boards_, "qp[0].rate_current", "--patience", "3600s")
    try:
        until("both boards", lambda: len({line["board"] for line in lines}) == 2)
        lost.close()
        before = len(of_board(lines, stays.address(0)))
        until("twenty changes of the other board", lambda: len(of_board(lines, stays.address(0))) >= before + 20)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
    finally:
        killed(process)


def test_watch_reports_a_silent_board_once_and_prints_its_values_when_it_is_back(start, ctl):
    group = start(1)
    board = group.address(0)
    process, lines = watching(ctl, board, "scratch", "--patience", "100ms")
    try:
        until("its value", lambda: of_board(lines, board) == [0])
        group.close()
        assert f"{board}: no answer to" in process.stderr.readline()
        group.begin(group.built)
        until("its value after it has returned", lambda: of_board(lines, board) == [0, 0])
        ctl.run("set", board, "scratch=7")
        until("its new value", lambda: of_board(lines, board)[-1] == 7)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 1
        assert "no answer" not in process.stderr.read()
    finally:
        killed(process)


def test_registers_are_listed_with_what_they_mean(ctl):
    reported = ctl.run("registers", "rate_ai").out
    assert "cc[0-3].rate_ai" in reported and "R_AI" in reported and "a rate, 40Mbps" in reported
    assert "no register has" in ctl.run("registers", "nothing-like-it", status=2).err
    every = ctl.run("registers", "-J").json
    assert every["map_hash"].startswith("0x") and len(every["registers"]) > 200


def test_the_boards_of_two_tests_differ(built):
    with boards(built, 2) as first, boards(built, 2) as second:
        assert first.first != second.first


SOFT = """
import sys, uhal
uhal.disableLogging()
board = uhal.getDevice("soft", f"ipbusudp-2.0://{sys.argv[1]}:50001", f"file://{sys.argv[2]}")
board.getNode("scratch").write(0xCAFE0123)
board.getNode("flow_control.traffic_class").write(5)
values = [board.getNode(name).read() for name in ("id", "scratch", "flow_control.traffic_class", "build.n_qp")]
board.dispatch()
print(*(f"{int(value):x}" for value in values))
board.getClient().read(0x3F)
try:
    board.dispatch()
except uhal.exception as error:
    print("bus error on read" in str(error))
"""


def test_a_board_in_software_answers_uhal_as_the_gateware_does(start):
    board = start(1).address(0)
    command = [sys.executable, "-c", SOFT, board, str(ADDRESSES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["5053544b", "cafe0123", "5", "4", "True"], done.stderr


def test_sampled_boards_are_a_run_with_trace_report_and_pictures_and_a_reset_is_found(start, ctl, tmp_path):
    group = start(15, "--busy", "--reset", "1:80")  # more than have a panel of their own in a picture
    out = tmp_path / "sampled"
    done = ctl.run("sample", group.all, "--interval", "2ms", "--time", "4s", "--out", out, "-J", status=1)
    [(register, message)] = done.faults(group.address(1))
    assert register is None and "was reset before" in message and "its counts went back" in message
    boards_ = {board["name"]: board for board in done.json["boards"]}
    assert len(boards_[group.address(1)]["resets_s"]) == 1 and not boards_[group.address(0)]["resets_s"]
    run = Run(out)
    for name in run.boards:
        current, alpha = run.series(name, "rate_current_bps"), run.series(name, "alpha")
        assert len(current.value) == boards_[name]["samples"] > 50
        assert current.value.max() <= 10e9 and (alpha.value == 1).all()
        assert (current.time_ms[1:] > current.time_ms[:-1]).all()
    command = [sys.executable, "-m", "penstock.plots", str(out)]
    drawn = subprocess.run(command, cwd=ROOT / "python", capture_output=True, text=True, timeout=300, check=False)
    assert drawn.stdout.split() == [str(out / "throughput.png"), str(out / "alpha.png")], drawn.stderr
    assert (out / "report.html").stat().st_size > 10_000
    command = [str(ctl.binary), "figures", "--sampled", str(out), "--board", group.address(2), "--out", str(out)]
    environment = {**os.environ, "PENSTOCK_PYTHON": sys.executable}
    drawn = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert f"| advcam-13 | climbs of {group.address(2)} |" in drawn.stdout, drawn.stderr
    assert all((out / f"advcam-{number}.png").exists() for number in (12, 13, 14))
    refused = ctl.run("sample", group.all, "--queue-pairs", "4", status=2)
    assert "has 4, 0 to 3" in refused.err
