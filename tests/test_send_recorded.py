# SPDX-License-Identifier: Apache-2.0
"""`penstock send --data` with a recorded file of odd times and empty fragments, over RoCEv2 and TCP.

Promise checked: stored events have the recorded times to the nanosecond and the bytes of each source, empty ones too.
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from veth import SERVER_IP, ended, first_board

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from penstock import recorded

BOARDS = 2
LISTENS = ":2710 00000000:0000 0A"  # a socket on port 10000, without a peer
# Times that a double would round; the last two are equal.
TIMES_NS = [1_700_000_000_433_502_912, 1_700_000_000_433_503_000, 1_700_000_000_433_503_100, 1_700_000_000_433_503_100]
SENDERS = {"roce": (), "tcp": ("--protocol", "tcp", "--stack", "sockets", "--connect", SERVER_IP)}
BACK_ENDS = {"roce": ("packet", "--iface", "veth0"), "tcp": ("tcp",)}


def write(path: Path) -> list[recorded.Event]:
    """Events of three modules, of which board 0 has the first and the third; its fragment of event 2 has no byte."""
    modules = [[b"a", b"bc", b"def"], [b"ghij", b"k", b""], [b"", b"lm", b""], [b"n", b"", b"o"]]
    events = [recorded.Event(100 + 7 * k, TIMES_NS[k], 3, modules[k]) for k in range(len(TIMES_NS))]
    recorded.write(path, events, [4, 5, 9])
    return events


@pytest.mark.parametrize("protocol", SENDERS)
def test_recorded_times_and_fragments_without_bytes_are_stored_as_they_are(network, tmp_path, protocol):
    events = write(tmp_path / "events.npz")
    boards = [first_board(k) for k in range(BOARDS)]
    options = [*boards, "--data", tmp_path / "events.npz", "--events", len(events), "--out", tmp_path / "run", "--json"]
    command = [network.binary, "recv", "--backend", *BACK_ENDS[protocol], *options, "--event-timeout", 5000]
    receiver = network.start("s", *map(str, command))
    if protocol == "tcp":
        network.sees(LISTENS, "tcp")
    sender = network.send(
        *map(str, ("--boards", BOARDS, "--payload", "recorded", "--data", tmp_path / "events.npz", "-n", len(events))),
        *SENDERS[protocol],
    )
    for process in (receiver, sender):
        result = ended(process)
        assert result.status == 0, f"{result.stdout}\n{result.stderr}"
    table = pq.read_table(tmp_path / "run")
    assert table["timestamp_ns"].to_pylist() == TIMES_NS
    assert table["fragments"].to_pylist() == [
        [b"".join(event.modules[board::BOARDS]) for board in range(BOARDS)] for event in events
    ]
