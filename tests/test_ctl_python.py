# SPDX-License-Identifier: Apache-2.0
"""`penstock.boards`: registers as attributes, blocks as arrays, on boards in software."""

import subprocess
import sys

import pytest
from board_server import BOARD_IP
from ctl import boards
from test_ctl import network, verilated  # noqa: F401
from test_python_module import environment, installed, snippets  # noqa: F401

CODE = """
import json
import os
import pickle
import sys
import warnings
from pathlib import Path
import numpy as np
from penstock.boards import Board, BoardError, OperatorWarning, RegisterError

board = Board(sys.argv[1], patience=20)
assert (board.queue_pairs, board.clock_khz, board.data_width) == (4, 156250, 64), board
assert board.scratch == 0 and str(board.id) == str(0x5053544B)
board.scratch = 7
assert int(board.scratch) == 7
board.cc[0].rate_ai = "40Mbps"
assert board.cc[0].rate_ai.text == "40Mbps" and abs(board.cc[0].rate_ai.quantity - 40e6) < 10
rate = board.cc[0].rate_ai
assert abs(float(rate) - 40e6) < 10 and int(rate) == int(rate.quantity) and rate == rate.quantity != rate.number
board.cc[0].rate_ai = 80e6  # a float is a quantity
assert board.cc[0].rate_ai.text == "80Mbps" and {"rate_ai", "control"} <= set(dir(board.cc[0]))
assert {"cc", "qp", "local_ip"} <= set(dir(board)) and "traffic_class" in dir(board.flow_control)
board.cc[1].rate_ai = rate
assert board.cc[1].rate_ai.number == rate.number and board.cc[1].rate_ai == rate
assert board.qp[3].state == "reset" and board.qp[3].state == 0 and board.qp[3].state != "rts"
assert bool(board.scratch) and not board.qp[3].state and board.scratch and "abcdefgh"[board.scratch] == "h"
assert len(board.qp) == 4 and [pair.state.text for pair in board.qp] == ["reset"] * 4
assert board.qp[-1] == board.qp[3] and board.qp[3] in board.qp and board.cc[0] not in board.qp
assert repr(board.qp[3]) == f"<qp[3] of {sys.argv[1]}>"
board.flow_control.traffic_class = 5
assert board.flow_control.traffic_class == 5 and board.flow_control.pfc_en == 1
assert board.qp[3].state.text == "reset"
assert len(board.read("qp[0-3].state")) == 4 and "source.count" in board.read("source")
assert len(board.qp[0].read()) > 20
words = np.arange(40, dtype=np.uint32)
for n, word in enumerate(words):
    board.write(f"replay_block[{n // 16}].word{n % 16}", int(word))
block = board.block("replay_block[0].word0", 4096)
assert block.shape == (4096,) and block.dtype == np.uint32 and (block[:40] == words).all() and not block[40:].any()

def refused(kind, what):
    try:
        what()
    except kind as error:
        return str(error)
    raise AssertionError("not refused")

assert "no such register" in refused(AttributeError, lambda: board.nothing)
assert "there are qp[0] to qp[3]" in refused(IndexError, lambda: board.qp[4])
assert "len(qp)" in refused(TypeError, lambda: 3 in board.qp)
assert "has no copies" in refused(TypeError, lambda: list(board.flow_control))
assert "name one of them" in refused(TypeError, lambda: bool(board.flow_control))
assert "compare one of them" in refused(TypeError, lambda: board.flow_control == 5)
assert "its bits are .number" in refused(TypeError, lambda: hex(rate))
for error in (RegisterError("range", "cc[0].rate_ai", "too much"), BoardError("silent", None, "no answer")):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error)), again
assert "0bps to 319.9999999Gbps" in refused(ValueError, lambda: board.write("cc[0].rate_ai", 1e12))
assert "read-only" in refused(ValueError, lambda: board.write("id", 1))
assert "force=True" in refused(ValueError, lambda: board.write("local_ip", "10.0.0.9"))
lines = [json.loads(line) for line in Path(os.environ["XDG_STATE_HOME"], "penstock/ctl.jsonl").read_text().splitlines()]
first = [lines[0][key] for key in ("board", "register", "old", "new", "result")]
assert first == [sys.argv[1], "scratch", "0x00000000", "0x00000007", "written"] and "@" in lines[0]["operator"]
assert {line["register"] for line in lines} >= {"scratch", "cc[0].rate_ai", "flow_control", "replay_block[2].word7"}
other = Board(sys.argv[1], patience=20, journal="own.jsonl")
other.write("qp[3].state", "rts")  # of a queue pair in reset: breaks nothing
assert "breaks a run" in refused(RegisterError, lambda: other.write("qp[3].state", "reset"))
other.write("qp[3].state", "reset", force=True)
assert [json.loads(line)["new"] for line in open("own.jsonl")] == ["0x00000003", "0x00000000"]
assert "journal=FILE" in refused(BoardError, lambda: Board(sys.argv[1], journal="/proc/none/j").write("scratch", 1))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    board.write("operator_ended", 50)
assert [w.category for w in told] == [OperatorWarning] and "began to change" in str(told[0].message)
board.write("scratch", 8, force=True)
assert board.scratch == 8
assert "no answer" in refused(OSError, lambda: Board(sys.argv[2], patience=0.2))
assert "register map" in refused(OSError, lambda: Board(sys.argv[3]))
bare = Board(sys.argv[4])
assert (bare.options.qcn, bare.options.source, bare.options.services) == (0, 0, 1)
lacks = refused(RegisterError, lambda: bare.write("source.count", 5))
assert lacks.startswith(f"{sys.argv[4]}: source.count: ") and "without message source (WITH_SOURCE is 0)" in lacks
assert "no IPv4 address" in refused(ValueError, lambda: Board("10.0.0"))
print("done")
"""


@pytest.fixture
def group(built):
    with boards(built, 4, "--dead", "1", "--wrong-map", "2", "--bare", "3") as group:
        yield group


def printed(installed, folder, code, *words, python=(sys.executable,)) -> str:  # noqa: F811
    """What a script prints; the journal of its writes is in the folder."""
    done = subprocess.run(
        [*python, "-c", code, *words],
        env={**environment(installed), "XDG_STATE_HOME": str(folder / "state")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_registers_are_attributes_and_blocks_are_arrays(group, installed, tmp_path):  # noqa: F811
    assert printed(installed, tmp_path, CODE, *(group.address(n) for n in range(4))) == "done\n"


def test_the_snippet_of_the_page_runs_but_for_the_address(group, installed, tmp_path):  # noqa: F811
    (snippet,) = (snippet for snippet in snippets() if "Board(" in snippet)
    assert '"10.0.0.2"' in snippet
    code = snippet.replace("10.0.0.2", group.address(0)) + "print(board.cc[0].rate_ai.text)"
    assert printed(installed, tmp_path, code) == "40Mbps\n"


VERILATED = """
import sys
import numpy as np
from penstock.boards import Board, RegisterError

board = Board(sys.argv[1], patience=60)
assert board.queue_pairs == 4 and board.clock_khz == 156250 and int(board.id) == 0x5053544B, board
assert board.local_ip.text == sys.argv[1]
board.cc[1].rate_ai = "40Mbps"
assert board.cc[1].rate_ai.text == "40Mbps" and abs(board.cc[1].rate_ai.quantity - 40e6) < 10
board.flow_control.traffic_class = 5
assert board.flow_control.traffic_class == 5 and board.flow_control.pfc_en == 1
words = np.arange(1, 41, dtype=np.uint32) * 0x01010101
for n, word in enumerate(words):
    board.write(f"replay_block[{n // 16}].word{n % 16}", int(word))
block = board.block("replay_block[0].word0", 4096)  # twelve packets: all of the memory
assert block.shape == (4096,) and block.dtype == np.uint32 and (block[:40] == words).all()
assert (block[16:32] == board.block("replay_block[1].word0", 16)).all()
try:
    board.write("id", 1)
except ValueError as error:
    assert "read-only" in str(error)
else:
    raise AssertionError("not refused")
board.qp[3].state = "rts"
assert board.qp[3].state.text == "rts"
try:
    board.qp[3].state = "reset"
except RegisterError as error:
    assert "breaks a run" in str(error)
else:
    raise AssertionError("not refused")
board.write("qp[3].state", "reset", force=True)
assert board.qp[3].state.text == "reset"
print("done")
"""


def test_a_verilated_board_has_the_same_registers_and_blocks(verilated, network, installed, tmp_path):  # noqa: F811
    python = network.command(sys.executable)
    assert printed(installed, tmp_path, VERILATED, BOARD_IP, python=python) == "done\n"
