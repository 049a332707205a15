# SPDX-License-Identifier: Apache-2.0
"""`penstock.boards`: registers as attributes, blocks as arrays, on boards in software."""

import subprocess
import sys

import pytest
from ctl import boards
from test_python_module import environment, installed, snippets  # noqa: F401

CODE = """
import sys
import numpy as np
from penstock.boards import Board

board = Board(sys.argv[1], patience=20)
assert (board.queue_pairs, board.clock_khz, board.data_width) == (4, 156250, 64), board
assert board.scratch == 0 and str(board.id) == str(0x5053544B)
board.scratch = 7
assert int(board.scratch) == 7
board.cc[0].rate_ai = "40Mbps"
assert board.cc[0].rate_ai.text == "40Mbps" and abs(board.cc[0].rate_ai.quantity - 40e6) < 10
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
assert "0 to 4294967295" in refused(ValueError, lambda: board.write("cc[0].rate_ai", "1Tbps"))
assert "read-only" in refused(ValueError, lambda: board.write("id", 1))
assert "force=True" in refused(ValueError, lambda: board.write("local_ip", "10.0.0.9"))
assert "no answer" in refused(OSError, lambda: Board(sys.argv[2], patience=0.2))
assert "register map" in refused(OSError, lambda: Board(sys.argv[3]))
assert "no IPv4 address" in refused(ValueError, lambda: Board("10.0.0"))
print("done")
"""


@pytest.fixture
def group(built):
    with boards(built, 3, "--dead", "1", "--wrong-map", "2") as group:
        yield group


def test_registers_are_attributes_and_blocks_are_arrays(group, installed, tmp_path):  # noqa: F811
    command = [sys.executable, "-c", CODE, *(group.address(n) for n in range(3))]
    done = subprocess.run(
        command, env=environment(installed), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_snippet_of_the_page_runs_but_for_the_address(group, installed, tmp_path):  # noqa: F811
    (snippet,) = (snippet for snippet in snippets() if "Board(" in snippet)
    assert '"10.0.0.2"' in snippet
    command = [sys.executable, "-c", snippet.replace("10.0.0.2", group.address(0)) + "print(board.cc[0].rate_ai.text)"]
    done = subprocess.run(
        command, env=environment(installed), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "40Mbps\n"), done.stderr
