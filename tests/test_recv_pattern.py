# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --payload`: test patterns of the verilated board and of software front ends, checked as they arrive.

Promise checked: the data of the gateware's source is verified to the bit, without fragment headers; data that differs
from the pattern gives exit status 1 with the position. The model of the patterns is tb/lib/source_model.py, bit by bit.
"""

import itertools
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from veth import ended, first_board

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tb"))

from lib.source_model import prbs31_bytes  # noqa: E402

BOARD = "10.77.9.9"  # no address of the namespace's kernel
RING = ("--slots", 16, "--slot-size", 4096)


def board(network, *options: str):
    fixed = ("--packet", "veth1", "--ip", BOARD, "--slots", 16, "--slot-size", 4096, "--mtu", 1024, "--stay", "--json")
    return network.start("b", *map(str, (network.binary, "board", *fixed, *options)))


@pytest.mark.parametrize(
    ("sends", "expects", "length"), [("prbs", "prbs", 1001), ("counter", "counter", 1600), ("prbs", "counter", 999)]
)
def test_the_gatewares_own_messages_are_followed_to_the_bit(network, sends, expects, length):
    source = board(network, f"--{sends}", f"{length}x40")
    receiver = network.recv(BOARD, "--payload", expects, "--bare", "--messages", 40, "--mtu", 1024, *RING)
    result = ended(receiver)
    source.send_signal(signal.SIGINT)
    found = result.json()["readout"]["pattern"]
    assert [(board["messages"], board["bytes"]) for board in found] == [(40, 40 * length)]
    if sends == expects:
        assert (result.status, result.json()["faults"]) == (0, [])
        assert found[0]["errors"] == found[0]["gaps"] == 0
    else:
        assert result.status == 1 and found[0]["errors"] > 0
        assert any("first in message 0, byte" in fault for fault in result.json()["faults"])


def test_payloads_of_fragments_are_compared_and_are_those_of_the_model(network, tmp_path):
    for payload in ("prbs", "counter"):
        out = tmp_path / payload
        sender = network.send("--boards", 2, "-n", 30, "-l", 700, "--payload", payload)
        options = ("--events", 30, "--event-timeout", 5000, "--out", out, "--payload", payload)
        received = ended(network.recv(first_board(0), first_board(1), *options))
        assert received.status == 0, received.stdout + received.stderr
        assert [board["messages"] for board in received.json()["readout"]["pattern"]] == [30, 30]
        assert ended(sender).status == 0
    for source, fragments in enumerate(zip(*pq.read_table(tmp_path / "prbs")["fragments"].to_pylist(), strict=True)):
        model = bytes(itertools.islice(prbs31_bytes(source + 1, True), 30 * 700))
        assert b"".join(fragments) == model
    words = [n.to_bytes(8, "little") for n in range(30 * 88)]
    first = pq.read_table(tmp_path / "counter")["fragments"].to_pylist()
    assert [event[0] for event in first] == [b"".join(words[n * 88 : n * 88 + 88])[:700] for n in range(30)]
