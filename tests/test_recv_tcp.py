# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --backend tcp`: boards' streams over the kernel's TCP, from `penstock send --protocol tcp` and from
plain sockets.

Promise checked: stored events equal the sent ones; a slow consumer makes boards wait; strangers are refused, damage is
counted and skipped; boards reconnect.
"""

import os
import random
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bridged import stored
from processes import killed
from veth import LIMIT_S, METRICS, SERVER_IP, Network, ended, first_board, sums, until, verified

DATA = Path(__file__).resolve().parents[1] / "data/lst1_run2008/modules.npz"
PORT = 10_000
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
RUNS = int(os.environ.get("PENSTOCK_RUNS", "6"))
pytestmark = pytest.mark.usefixtures("namespaces")


def boards(count: int) -> list[str]:
    return [first_board(k) for k in range(count)]


def recv(network: Network, *options: object) -> subprocess.Popen:
    fixed = ["--backend", "tcp", "--poll", "event", "--event-timeout", "5000", "--linger", "50", "--json"]
    process = network.start("s", str(network.binary), "recv", *fixed, *map(str, options))
    listens = f":{PORT:04X} 00000000:0000 0A"
    until("listener", lambda: listens in shown(network, "/proc/net/tcp") or process.poll() is not None)
    return process


def shown(network: Network, file: str) -> str:
    """A file of /proc as the server's namespace has it."""
    command = ["ip", "netns", "exec", f"{network.name}-s", "cat", file]
    return subprocess.run(command, capture_output=True, text=True).stdout


def send(network: Network, *options: object) -> subprocess.Popen:
    return network.send("--protocol", "tcp", "--connect", SERVER_IP, *map(str, options))


def sent_bytes(network: Network, *options: object) -> bytearray:
    """What the first board sends, as a socket of ours reads it. Its address is the kernel's."""
    with network.inside("s"), socket.create_server((SERVER_IP, PORT)) as server:
        server.settimeout(LIMIT_S)
        sender = send(network, *options, "--payload", "counter", "--stack", "sockets")
        connection, stream = server.accept()[0], bytearray()
    with connection:
        while part := connection.recv(65536):
            stream.extend(part)
    ended(sender)
    return stream


def test_recorded_events_arrive_byte_exact_over_loss_copies_disorder_and_damage(wire, recorded, tmp_path):
    events = 40
    faults = ("--loss", 0.01, "--duplicate", 0.01, "--reorder", 0.01, "--corrupt", 0.01, "--rto", 50)
    receiver = recv(wire, *boards(3), "--data", DATA, "--events", events, "--out", tmp_path / "run")
    options = ("--boards", 3, "--payload", "recorded", "--data", DATA, "-n", events, "--mss", 4000)
    received, sent = verified(receiver, send(wire, *options, *faults))
    builder, check = received["readout"]["builder"], received["readout"]["check"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (events, 0)
    assert (check["fragments"], check["fragments_differing"]) == (3 * events, 0)
    assert sums(received, "resynchronised") == 0
    assert sum(board["retransmitted"] for board in sent["boards"]) > 0
    table = pq.read_table(tmp_path / "run")
    assert table["event_number"].to_pylist() == list(range(events))
    for event, fragments in enumerate(table["fragments"].to_pylist()):
        assert fragments == [recorded[event % len(recorded), board::3].tobytes() for board in range(3)]


@pytest.mark.parametrize("length", [64, 3000, 131_000])
def test_fragments_of_every_size_are_found_in_the_stream(wire, length):
    events = 500 if length < 10_000 else 60
    receiver = recv(wire, *boards(2), "--payload", "counter", "--events", events)
    sender = send(wire, "--boards", 2, "--payload", "counter", "-n", events, "-l", length)
    received = verified(receiver, sender)[0]
    assert received["readout"]["builder"]["events_complete"] == events
    assert all(pattern["messages_wrong"] == 0 for pattern in received["readout"]["pattern"])
    assert [ring["bytes_written"] for ring in received["readout"]["rings"]] == [events * (length + 40)] * 2


def test_64_boards_from_a_file(wire, tmp_path):
    file = tmp_path / "boards.toml"
    file.write_text(f'[[board]]\nname = "m"\nip = "{first_board()}"\ncount = 64\n')
    ring = ("--slots", 8, "--slot-size", 4096)
    receiver = recv(wire, "--file", file, "--events", 20, *ring)
    sender = send(wire, "--boards", 64, "-n", 20, "-l", 2000, "--ring", 1 << 16)
    report = verified(receiver, sender)[0]
    assert report["readout"]["builder"]["events_complete"] == 20
    assert report["counters"]["connections_accepted"] == 64 and report["backend"] == "tcp"


def test_a_slow_consumer_holds_the_board_back_and_nothing_is_lost(wire):
    options = ("--consumer-rate", 4, "--slots", 4, "--slot-size", 65536, "--events", 300)
    receiver = recv(wire, *boards(1), *options)
    sender = send(wire, "-n", 300, "-l", 50_000, "--ring", 1 << 20)
    received, sent = verified(receiver, sender)
    assert received["readout"]["builder"]["events_complete"] == 300
    assert sent["boards"][0]["lives"] == 1 and sent["boards"][0]["messages"] == 300


def test_strangers_are_refused_and_damage_is_passed_over(wire):
    """Plain sockets: the kernel's own TCP sends what a board would, and what none would."""
    wire.address("b", first_board())
    wire.address("b", "10.77.5.5")
    stream = sent_bytes(wire, "-n", 10, "-l", 1000)
    message = 8 + 1040

    receiver = recv(wire, *boards(1), "--first-event", 0, "--metrics", METRICS, "--slot-size", 2048)
    with wire.inside("b"):
        stranger = socket.create_connection((SERVER_IP, PORT), source_address=("10.77.5.5", 0))
        board = socket.create_connection((SERVER_IP, PORT), source_address=(first_board(), 0))
    stranger.settimeout(LIMIT_S)
    assert stranger.recv(1) == b""
    stranger.close()
    damaged = bytearray(stream)
    damaged[3 * message] ^= 1  # the header of message 3
    damaged[5 * message + 500] ^= 1  # the payload of message 5
    for at in range(0, len(damaged), 333):
        board.sendall(damaged[at : at + 333])
    wire.counted(8, "fragments_good")
    board.close()
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    report = result.json()
    counters = report["boards"][0]["counters"]
    assert (counters["resynchronised"], counters["bytes_skipped"]) == (1, message)
    assert counters["messages_refused"] == 0
    assert report["readout"]["receiver"]["fragments_crc_error"] == 1
    assert report["counters"]["connections_refused"] == 1
    assert report["readout"]["builder"]["events_complete"] == 8


def taken_by_the_kernel(network: Network, board: str) -> int:
    """Bytes of a board's stream that the server's kernel has acknowledged."""
    command = ["ip", "netns", "exec", f"{network.name}-s", "ss", "-tinH", "dst", board]
    reported = subprocess.run(command, capture_output=True, text=True).stdout
    return sum(int(count) for count in re.findall(r"bytes_received:(\d+)", reported))


def test_a_few_messages_that_the_kernel_takes_and_the_receiver_refuses_are_a_fault_at_both_ends(wire):
    """The kernel acknowledges all of them before the receiver looks at the first."""
    [board], length = boards(1), 5000
    receiver = recv(wire, board, "--slot-size", 4096, "--first-event", 0)
    receiver.send_signal(signal.SIGSTOP)
    sender = send(wire, "-n", 10, "-l", length, "--slot-size", 8192, "--linger", int(LIMIT_S * 1000))
    taken = lambda: taken_by_the_kernel(wire, board) >= 10 * (length + 48)  # noqa: E731
    until("all of it", lambda: taken() or sender.poll() is not None)
    receiver.send_signal(signal.SIGCONT)
    refused = ended(sender)
    why = f"a message of {length + 40} bytes, and slots of 4096"
    assert refused.status == 1 and any(why in fault for fault in refused.json()["faults"]), refused
    receiver.send_signal(signal.SIGINT)
    received = ended(receiver)
    assert received.status == 1 and any(why in fault for fault in received.json()["faults"]), received


@pytest.mark.parametrize("stack", ["emulator", "sockets"])
def test_messages_longer_than_a_slot_are_refused_by_name_at_both_ends(wire, stack):
    """Other boards go on; neither end ends with status 0."""
    # More than the kernel takes before the receiver has read the first.
    length, slot = 5000, 4096
    first, second = boards(2)
    if stack == "sockets":
        wire.address("b", first)
    receiver = recv(wire, first, second, "--slot-size", slot, "--first-event", 0, "--metrics", METRICS, "--outage", 2)
    refused = ended(send(wire, "-n", 5000, "-l", length, "--slot-size", 8192, "--stack", stack))
    why = f"a message of {length + 40} bytes, and slots of {slot}: `penstock recv --slot-size {length + 40}`"
    assert refused.status == 1, refused
    assert any("cannot take its messages" in fault and why in fault for fault in refused.json()["faults"]), refused
    other = wire.start(
        "b",
        *map(str, (wire.binary, "send", "--protocol", "tcp", "--iface", "veth1", "--ip", second, "--first-source", 1)),
        *map(str, ("--connect", SERVER_IP, "-n", 20, "-l", 1000, "--json")),
    )
    assert ended(other).status == 0
    wire.counted(20, "fragments_good")
    receiver.send_signal(signal.SIGINT)
    received = ended(receiver)
    report = received.json()
    assert received.status == 1 and report["boards"][0]["counters"]["messages_refused"] == 1, received
    assert any(
        fault.startswith(f"{first} came up once and sent nothing") and why in fault for fault in report["faults"]
    )


def test_what_cannot_work_is_refused_by_name(wire):
    holder = recv(wire, *boards(1))
    second = ended(wire.start("s", str(wire.binary), "recv", "--backend", "tcp", *boards(1)))
    assert second.status == 2 and f"TCP port {PORT}" in second.stderr and "--port" in second.stderr
    holder.send_signal(signal.SIGINT)
    ended(holder)
    pool = ended(wire.start("s", str(wire.binary), "recv", "--backend", "tcp", "--srq", "64", *boards(1)))
    assert pool.status == 2 and "--srq" in pool.stderr


def test_what_is_printed_of_a_receiver_that_no_board_reaches_is_about_tcp(wire):
    result = ended(wire.start("s", str(wire.binary), "recv", "--backend", "tcp", "--seconds", "0.2", *boards(2)))
    assert result.status == 1
    reported = result.stderr + result.stdout
    assert f"TCP at port {PORT} of each of this machine's addresses" in reported and "GID" not in reported
    for board in boards(2):
        assert f"fault: {board} never came up: has not asked for a connection" in reported


def test_messages_that_come_byte_by_byte_are_found(wire):
    """Segments of one byte each, as Nagle's algorithm keeps senders from making them."""
    wire.address("b", first_board())
    stream = sent_bytes(wire, "-n", 20, "-l", 50)
    receiver = recv(wire, *boards(1), "--payload", "counter", "--events", 20)
    with wire.inside("b"):
        board = socket.create_connection((SERVER_IP, PORT), source_address=(first_board(), 0))
    board.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in stream:
        board.sendall(bytes([byte]))
    report = verified(receiver)[0]
    board.close()
    assert report["readout"]["builder"]["events_complete"] == 20
    assert [pattern["messages_wrong"] for pattern in report["readout"]["pattern"]] == [0]
    assert (sums(report, "resynchronised"), sums(report, "bytes_skipped")) == (0, 0)


def test_the_end_of_a_message_does_not_wait_for_a_delayed_acknowledgement(wire):
    """By Nagle's algorithm the short last segment waits until the kernel has acknowledged the full one before it. If
    that takes until the next message is written, its bytes are in no segment of their own. A busy machine may be that
    late, too, but not in each of the rounds."""
    events, length, mss = 24, 4160, 4160  # with the headers: a segment and some bytes
    counter, alone = ("--payload", "counter"), []
    while len(alone) < 20 and max(alone, default=0) < events:
        receiver = recv(wire, *boards(1), *counter, "--events", events)
        sender = send(wire, *counter, "-n", events, "--rate", 25, "-l", length, "--mss", mss)
        received, sent = verified(receiver, sender)
        assert received["readout"]["builder"]["events_complete"] == events
        alone.append(sent["boards"][0]["segments"] - events)
    assert alone[-1] >= events, f"ends of {events} messages in a segment of their own: {alone}"


def test_a_receiver_that_stands_still_for_two_seconds_closes_the_window_and_loses_nothing(wire):
    """CMS-TCP section 3.3: Linux is not a real-time OS. What waits fills the kernel's buffer and the board's ring."""
    events, length = 3000, 50_000  # more than both hold; 500 a second, so that the stall falls into the flow
    receiver = recv(wire, *boards(1), "--payload", "counter", "--events", events, "--metrics", METRICS)
    sender = send(wire, "-n", events, "--rate", 500, "-l", length, "--payload", "counter", "--ring", 1 << 20)
    wire.counted(10, "fragments_good")
    receiver.send_signal(signal.SIGSTOP)
    time.sleep(2)  # no condition is waited for: the stall itself
    receiver.send_signal(signal.SIGCONT)
    received, sent = verified(receiver, sender)
    assert received["readout"]["builder"]["events_complete"] == events
    assert [pattern["messages_wrong"] for pattern in received["readout"]["pattern"]] == [0]
    [board] = sent["boards"]
    assert board["lives"] == 1 and board["messages"] == events
    assert board["window_closed"] > 0 and board["window_probes"] > 0


def test_a_board_that_is_killed_and_comes_back_has_its_events_waited_for_again(wire):
    """No RST comes from a front end without power: its next connection ends the one before."""
    receiver = recv(wire, *boards(2), "--outage", 2, "--metrics", METRICS)
    common = ("send", "--protocol", "tcp", "--iface", "veth1", "--connect", SERVER_IP, "--rate", 200, "-l", 1000)

    def board(source: int, first_event: int = 0) -> subprocess.Popen:
        here = ("--ip", first_board(source), "--first-source", source, "--first-event", first_event, "--json")
        return wire.start("b", *map(str, (wire.binary, *common, *here)))

    stays, goes = board(0), board(1)
    wire.counted(50, "events_complete")
    killed(goes)
    wire.counted(1, "events_incomplete")
    returns = board(1, int(wire.metrics()[f'board_messages{{board="{first_board()}"}}']))
    wire.counted(2, "board_connections", first_board(1))
    before = wire.metrics()["events_complete"]
    wire.counted(before + 50, "events_complete")
    receiver.send_signal(signal.SIGINT)
    report = ended(receiver).json()
    for process in (stays, returns):
        process.send_signal(signal.SIGINT)
        ended(process)
    assert report["counters"]["connections_accepted"] == 3
    assert sums(report, "resynchronised") == 0


def test_a_receiver_that_is_killed_and_started_again_gets_what_its_kernel_had_not_acknowledged(wire):
    """The board opens its stream again by itself, and goes on in order; each event comes from there on."""
    first = recv(wire, *boards(1), "--metrics", METRICS)
    sender = send(wire, "--rate", 500, "-l", 2000, "--payload", "counter")
    wire.counted(50, "events_complete")
    killed(first)
    again = recv(wire, *boards(1), "--metrics", METRICS, "--events", 200)
    report = verified(again)[0]
    sender.send_signal(signal.SIGINT)
    [board] = ended(sender).json()["boards"]
    builder = report["readout"]["builder"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (200, 0)
    assert board["lives"] == 2


def test_runs_follow_one_another_without_a_gap_under_boards_that_never_stop(wire, tmp_path):
    """What the kernel had acknowledged after a run's end is in the next one, whatever ends a run, and when."""
    print(f"PENSTOCK_SEED={SEED}")
    dice, following, kept = random.Random(SEED), 0, 0
    sender = send(wire, "--boards", 4, "--rate", 1000, "-l", 2000, "--payload", "counter")
    for run in range(RUNS):
        end = dice.choice(["--events", "Ctrl-C"])
        limit = ("--events", dice.randrange(1, 200)) if end == "--events" else ()
        receiver = recv(wire, *boards(4), *limit, "--out", tmp_path / str(run), "--metrics", METRICS)
        if end == "Ctrl-C":
            wire.counted(dice.randrange(1, 100), "events_complete")
            receiver.send_signal(signal.SIGINT)
        [report] = verified(receiver)
        builder = report["readout"]["builder"]
        assert (builder["before_begin"], builder["after_end"], sums(report, "messages_between_runs")) == (0, 0, 0)
        assert min(kept, 1) <= sums(report, "messages_of_last_run") <= kept
        kept = sums(report, "messages_for_next_run")
        numbers, incomplete = stored(tmp_path / str(run))
        assert not incomplete and numbers == list(range(following, following + len(numbers))), f"run {run}, by {end}"
        following = numbers[-1] + 1
    sender.send_signal(signal.SIGINT)
    ended(sender)


def test_boards_that_were_done_have_what_their_kernel_acknowledged_in_the_run_in_which_they_go_on(wire, tmp_path):
    """They had acknowledgements of everything when the first run ended."""
    receiver = recv(wire, *boards(2), "--events", 10, "--out", tmp_path / "first")
    sender = send(wire, "--boards", 2, "-n", 30, "-l", 1000)
    [first], _ = verified(receiver), verified(sender)
    assert sums(first, "messages_for_next_run") == 2 * 20
    again = recv(wire, *boards(2), "--events", 15, "--out", tmp_path / "second")
    sender = send(wire, "--boards", 2, "--first-event", 30, "-n", 5, "-l", 1000)
    [second], _ = verified(again), verified(sender)
    assert (sums(second, "messages_of_last_run"), sums(second, "messages_for_next_run")) == (2 * 15, 2 * 10)
    third = recv(wire, *boards(2), "--events", 15, "--out", tmp_path / "third")
    verified(third, send(wire, "--boards", 2, "--first-event", 35, "-n", 5, "-l", 1000))
    numbers = [stored(tmp_path / run)[0] for run in ("first", "second", "third")]
    assert numbers == [list(range(10)), list(range(10, 25)), list(range(25, 40))]


def test_what_was_kept_of_a_board_that_begins_again_is_in_no_run_and_named(wire, tmp_path):
    """So is what a receiver without a state file cannot keep."""
    receiver = recv(wire, *boards(1), "--events", 10)
    sender = send(wire, "-n", 30, "-l", 1000)
    verified(receiver, sender)
    receiver = recv(wire, *boards(1), "--events", 5, "--out", tmp_path / "run", "--state", "none")
    sender = send(wire, "-n", 9, "-l", 1000)
    [received, _] = [ended(receiver), ended(sender)]
    assert (
        received.status == 0 and "4 of events 5 to 8 that came after the run's end are in no run" in received.stderr
    ), received
    assert sums(received.json(), "messages_between_runs") == 4
    again = recv(wire, *boards(1), "--events", 5, "--out", tmp_path / "again")
    sender = send(wire, "-n", 5, "-l", 1000)
    received = ended(again)
    assert received.status == 0 and "20 of events 10 to 29, is in no run: it begins at event 0" in received.stderr
    assert sums(received.json(), "messages_between_runs") == 20
    assert stored(tmp_path / "again") == (list(range(5)), [])
    ended(sender)


def test_a_board_that_reconnects_while_its_slots_are_full_loses_nothing_of_what_was_acknowledged(wire):
    """What the kernel has of its first connection comes before the second one."""
    board = first_board()
    wire.address("b", board)
    stream = sent_bytes(wire, "-n", 60, "-l", 1000)
    message = 8 + 1040
    options = ("--payload", "counter", "--events", 60, "--slots", 2, "--slot-size", 2048, "--consumer-rate", 0.1)
    receiver = recv(wire, board, *options)
    for part in (stream[: 30 * message], stream[30 * message :]):
        with wire.inside("b"):
            one = socket.create_connection((SERVER_IP, PORT), source_address=(board, 0))
        one.sendall(part)
        until("bytes", lambda: taken_by_the_kernel(wire, board) >= 30 * message)
        one.shutdown(socket.SHUT_WR)
    [report] = verified(receiver)
    assert report["readout"]["builder"]["events_complete"] == 60
    assert report["counters"]["connections_accepted"] == 2
