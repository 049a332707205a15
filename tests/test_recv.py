# SPDX-License-Identifier: Apache-2.0
"""`penstock recv` and `penstock send` over a veth pair between two namespaces: the packet back end without a NIC.

Promise checked: stored events are byte for byte what was sent, despite loss, slow consumers, crashes and forged frames.
"""

import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from processes import killed
from veth import (
    LIMIT_S,
    METRICS,
    SERVER_IP,
    Network,
    complete_once_all_are_there,
    ended,
    first_board,
    read_until,
    sums,
    until,
    verified,
)

DATA = Path(__file__).resolve().parents[1] / "data/lst1_run2008/modules.npz"
pytestmark = pytest.mark.usefixtures("namespaces")


# Machines that run tests may stand still for a while; what is checked is not how fast they are. An ACK timeout of code
# 16 or more has boards wait for seconds before they give a connection up.
PATIENT = ("--event-timeout", 5000)
WITH_METRICS = ("--metrics", METRICS)


def boards(count: int) -> list[str]:
    return [first_board(k) for k in range(count)]


@pytest.mark.usefixtures("either_socket")
def test_recorded_events_arrive_byte_exact_over_loss_copies_disorder_and_damage(network, recorded, tmp_path):
    events = 60
    faults = ("--loss", 0.02, "--duplicate", 0.01, "--reorder", 0.01, "--corrupt", 0.01, "--ack-timeout", 14)
    sender = network.send("--boards", 3, "--payload", "recorded", "--data", DATA, "-n", events, *faults)
    receiver = network.recv(*boards(3), "--data", DATA, "--events", events, "--out", tmp_path / "run", *PATIENT)
    received, sent = verified(receiver, sender)
    builder, check = received["readout"]["builder"], received["readout"]["check"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (events, 0)
    assert (check["fragments"], check["fragments_differing"]) == (3 * events, 0)
    assert sums(received, "out_of_sequence") > 0 and received["counters"]["rx_icrc_encapsulated"] > 0
    assert sum(board["retransmitted_pkts"] for board in sent["boards"]) > 0

    table = pq.read_table(tmp_path / "run")
    assert table["event_number"].to_pylist() == list(range(events))
    for event, fragments in enumerate(table["fragments"].to_pylist()):
        assert fragments == [recorded[event % len(recorded), board::3].tobytes() for board in range(3)]


def test_64_boards_from_a_file_and_a_dead_one_is_named_with_the_step_it_did_not_take(network, tmp_path):
    file = tmp_path / "boards.toml"
    file.write_text(f'[[board]]\nname = "m"\nip = "{first_board()}"\ncount = 64\n')
    ring = ("--slots", 8, "--slot-size", 4096)
    sender = network.send("--boards", 64, "-n", 20, "-l", 2000, "--ack-timeout", 16, *ring)
    report = verified(network.recv("--file", file, "--events", 20, *ring, *PATIENT), sender)[0]
    assert report["readout"]["builder"]["events_complete"] == 20
    assert [board["name"] for board in report["boards"]] == [f"m{k}" for k in range(64)]

    file.write_text(file.read_text() + '[[board]]\nname = "gone"\nip = "10.77.2.1"\n')
    sender = network.send("--boards", 64, "-l", 2000, *ring)
    # A machine that is busy with other tests may bring a board up seconds later than another.
    receiver = network.recv("--file", file, "--bring-up", 20, *ring)
    reported = read_until(receiver, "not up:")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    sender.send_signal(signal.SIGINT)
    assert result.status == 1
    faults = [fault for fault in result.json()["faults"] if fault.startswith("gone")]
    assert len(faults) == 1 and faults[0].startswith("gone (10.77.2.1) never came up: no answer to OPEN_QP")
    assert "nothing worked before" in faults[0]
    assert "64 of 65 boards are up after 20" in reported and "not up: gone (10.77.2.1): no answer" in reported, reported
    assert (reported + result.stderr).count("10.77.2.1") == 1, "told once, however often it is tried"
    assert ended(sender).status == 0


@pytest.mark.parametrize("by", ["--seconds", "--events", "Ctrl-C"])
def test_a_run_ends_between_events_while_boards_go_on(network, by):
    sender = network.send("--boards", 3, "-l", 20000, "--cc", "off", "--ack-timeout", 16, "--loss", 0.002)
    limit = {"--seconds": ("--seconds", 5), "--events": ("--events", 100)}.get(by, ())
    receiver = network.recv(*boards(3), *limit, *PATIENT, *WITH_METRICS)
    if by == "Ctrl-C":
        network.counted(50, "events_complete")
        receiver.send_signal(signal.SIGINT)
    report = verified(receiver)[0]
    sender.send_signal(signal.SIGINT)
    builder = report["readout"]["builder"]
    assert builder["events_complete"] > 0 and builder["events_incomplete"] == 0 and report["faults"] == []
    assert by != "--events" or builder["events_complete"] == 100, "neither fewer nor more"
    assert verified(sender)[0]["faults"] == []


def test_a_slow_consumer_stalls_boards_by_rnr_and_loses_nothing(network):
    sender = network.send("--boards", 2, "-n", 60, "-l", 20000, "--slots", 4, "--slot-size", 32768)
    ring = ("--slots", 4, "--slot-size", 32768)
    receiver = network.recv(*boards(2), "--events", 60, "--consumer-rate", 4, *ring, "--event-timeout", 5000)
    received, sent = verified(receiver, sender)
    assert received["readout"]["builder"]["events_complete"] == 60
    assert sums(received, "out_of_buffer") > 0
    assert all(board["rnr_nak"] > 0 for board in sent["boards"])
    assert received["seconds"] > 60 * 2 * 20000 / 4e6 * 0.9, "no faster than the consumer"


@pytest.mark.usefixtures("either_socket")
def test_boards_send_into_one_pool_and_one_that_writes_is_refused_with_the_reason(network):
    # 16 slots are the least for 8 boards; rings of 64 slots each would be 512.
    sender = network.send("--boards", 8, "-n", 60, "-l", 6000, "--send-verb", "--rate", 100)
    received, sent = verified(network.recv(*boards(8), "--events", 60, "--srq", 16, *PATIENT), sender)
    builder = received["readout"]["builder"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (60, 0)
    assert [board["messages"] for board in sent["boards"]] == [60] * 8
    assert sums(received, "rx_send_requests") == 480
    assert received["latency"]["samples"] == 480, "each message counts once, however many are taken at a time"

    sender = network.send("--boards", 1, "-l", 3000)
    result = ended(network.recv(first_board(), "--srq", 8, "--seconds", 3))
    sender.send_signal(signal.SIGINT)
    assert "boards must SEND into a shared pool" in result.stderr, result
    assert result.status == 1 and "times and sent nothing" in result.json()["faults"][0]
    assert ended(sender).json()["boards"][0]["messages"] == 0


def test_boards_at_full_speed_that_overrun_a_small_pool_lose_nothing(network):
    # An ACK timeout of a second: a board that it wakes has stood still for want of an RNR NAK, not of a processor.
    sender = network.send("--boards", 16, "-n", 300, "-l", 6000, "--send-verb", "--ack-timeout", 18)
    pool = ("--srq", 32, "--srq-copies", 64)
    received, sent = verified(network.recv(*boards(16), "--events", 300, *pool, *PATIENT), sender)
    builder = received["readout"]["builder"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (300, 0)
    assert sums(received, "out_of_buffer") > 0, "the pool was empty"
    assert [board["local_ack_timeout_err"] for board in sent["boards"]] == [0] * 16
    assert [board["messages"] for board in sent["boards"]] == [300] * 16


def test_a_disk_that_fills_stops_the_boards_and_the_run_is_whole_when_there_is_room(network, built, tmp_path):
    """A real disk: a tmpfs of 40 MB with 28 MB of ballast, which goes overboard when the board has been stopped."""
    disk, kept, events = tmp_path / "disk", tmp_path / "kept", 2500
    disk.mkdir()
    # `ip netns exec` gives a process mounts of its own: nobody else sees this disk, and it goes with the process.
    script = (
        'mount -t tmpfs -o size=40m none "$0" && head -c 28000000 /dev/zero > "$0/ballast" && "$@";'
        f" status=$?; cp -r {disk}/run {kept}; exit $status"
    )
    ring = ("--slots", 8, "--slot-size", 16384)
    command = (
        "sh",
        "-c",
        script,
        disk,
        built / "penstock",
        "recv",
        "--backend",
        "packet",
        "--iface",
        "veth0",
        "--json",
    )
    command += (*WITH_METRICS, *PATIENT)
    receiver = network.start("s", *map(str, (*command, *boards(1), "--events", events, "--out", disk / "run", *ring)))
    sender = network.send("-n", events, "-l", 10_000, "--rate", 1000, "--ack-timeout", 16, *ring)
    reported = next((line for line in receiver.stderr if "storage waits" in line), "nothing")
    assert "No space left on device" in reported, reported
    network.counted(1, "board_out_of_buffer", first_board())
    assert sender.poll() is None, "the board waits"
    Path(f"/proc/{receiver.pid}/root{disk}/ballast").unlink()
    received, sent = verified(receiver, sender)
    readout = received["readout"]
    assert (readout["receiver"]["store_stalls"], readout["builder"]["events_complete"]) == (1, events)
    assert sums(received, "out_of_buffer") > 0 and sent["boards"][0]["rnr_nak"] > 0
    assert pq.read_table(kept)["event_number"].to_pylist() == list(range(events))
    proof = subprocess.run([built / "penstock", "check", kept, "--payload", "prbs"], capture_output=True, text=True)
    assert proof.returncode == 0, proof.stdout


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_run(network, tmp_path):
    # Root may write anywhere but on a file system that is read-only; the mount is this process's own.
    script = 'mount -t tmpfs -o ro none "$0" && exec "$@"'
    command = (network.binary, "recv", "--iface", "veth0", first_board(), "--seconds", "0.1", "--out", tmp_path)
    result = ended(network.start("s", "sh", "-c", script, str(tmp_path), *map(str, command)))
    assert (result.status, f"{tmp_path}: cannot be written to: Read-only file system" in result.stderr) == (2, True), (
        result
    )


def test_a_last_acknowledgement_that_is_lost_is_requested_again_and_given(network):
    # A board that never hears that its last message was taken waits for ever for another server. So many boards that
    # one of them loses it whatever the order of frames (all but two in 10,000 times), and none spends its retries.
    count = 24
    sender = network.send("--boards", count, "-n", 20, "-l", 3000, "--ack-loss", 0.3, "--ack-timeout", 15)
    receiver = network.recv(*boards(count), "--events", 20, "--linger", 3000, *PATIENT)
    received, sent = verified(receiver, sender)
    assert received["readout"]["builder"]["events_complete"] == 20
    assert [board["messages"] for board in sent["boards"]] == [20] * count
    assert sums(received, "duplicate_request") > 0 and sum(b["local_ack_timeout_err"] for b in sent["boards"]) > 0


def test_by_default_an_event_waits_for_a_packet_that_is_lost_twice(network):
    # So slow that a lost packet is sent again by the ACK timer of 67 ms alone; one in a hundred is lost twice.
    events, count = 60, 12
    sender = network.send("--boards", count, "-n", events, "-l", 1000, "--rate", 10, "--loss", 0.1)
    # A board whose last ACK was lost sends again after 67 ms, or later on a busy machine: the server lingers longer.
    receiver = network.recv(*boards(count), "--first-event", 0, "--events", events, "--linger", 2000)
    received, sent = verified(receiver, sender)
    builder = received["readout"]["builder"]
    assert (builder["events_complete"], builder["events_incomplete"]) == (events, 0)
    assert sum(board["local_ack_timeout_err"] for board in sent["boards"]) > 0.08 * events * count


@pytest.mark.usefixtures("either_socket")
@pytest.mark.parametrize("victim", ["receiver", "sender"])
def test_either_side_is_killed_and_started_again_without_a_hand_at_the_other(network, victim, tmp_path):
    sending = ("--boards", 2, "-l", 3000, "--rate", 500, "--ack-timeout", 16)
    sender = network.send(*sending)
    receiver = network.recv(*boards(2), "--keep-alive", 200, *WITH_METRICS)
    network.counted(200, "events_complete")
    if victim == "receiver":
        killed(receiver)
        again = ("--events", 200, "--keep-alive", 200, "--out", tmp_path / "again", *PATIENT)
        # Of the events around the crash some fragments have died with the first receiver; the others are whole.
        readout = ended(network.recv(*boards(2), *again)).json()["readout"]
        assert readout["builder"]["strays_late"] == 0
        assert complete_once_all_are_there(tmp_path / "again") == readout["builder"]["events_complete"]
        assert readout["receiver"]["fragments_crc_error"] == readout["receiver"]["fragments_malformed"] == 0
        sender.send_signal(signal.SIGINT)
        assert all(board["lives"] == 2 for board in ended(sender).json()["boards"])
    else:
        killed(sender)
        # A little behind where it was, as the metrics are a moment old.
        before = int(network.metrics()[f'board_messages{{board="{first_board()}"}}'])
        network.send(*sending, "--first-event", before + 200)
        for board in boards(2):
            network.counted(2, "board_connections", board)
        taken = network.metrics()["events_complete"]
        network.counted(taken + 100, "events_complete")
        receiver.send_signal(signal.SIGINT)
        report = ended(receiver).json()
        assert [board["lives"] for board in report["boards"]] == [2, 2]
        assert report["readout"]["receiver"]["fragments_crc_error"] == 0


@pytest.mark.parametrize("opener", ["server", "boards"])
def test_a_sender_that_is_left_running_serves_one_run_after_another(network, opener, tmp_path):
    """Runs that end by their number of events, and one that an operator ends."""
    by_boards = opener == "boards"
    sender = network.send(
        "--boards", 3, "-l", 2000, "--rate", 200, "--ack-timeout", 16, *(("--connect", SERVER_IP) if by_boards else ())
    )
    listening = ("--listen",) if by_boards else ()
    runs = 4
    for run in range(runs):
        common = (*boards(3), *listening, "--out", tmp_path / str(run), *PATIENT)
        if run == 1:
            receiver = network.recv(*common, *WITH_METRICS)
            network.counted(100, "events_complete")
            receiver.send_signal(signal.SIGINT)
            result = ended(receiver)
        else:
            result = ended(network.recv(*common, "--events", 200))
        readout = result.json()["readout"]
        assert readout["receiver"]["fragments_crc_error"] == readout["receiver"]["fragments_malformed"] == 0
        if run != 1:  # the operator may end a run between two fragments of an event
            complete_once_all_are_there(tmp_path / str(run))
    sender.send_signal(signal.SIGINT)
    assert all(board["lives"] == runs for board in ended(sender).json()["boards"])


def test_boards_that_open_by_themselves_are_served_and_sends_land_in_their_slots(network):
    for verb in ((), ("--send-verb",)):
        receiver = network.recv(*boards(3), "--listen", "--events", 50, "--keep-alive", 50, *PATIENT)
        network.sees("4321")
        # So slow that the server probes the boards in between.
        sender = network.send(
            "--boards", 3, "-n", 50, "-l", 5000, "--rate", 60, "--ack-timeout", 16, "--connect", SERVER_IP, *verb
        )
        received, sent = verified(receiver, sender)
        assert all(board["lives"] == 1 for board in sent["boards"])
        assert received["readout"]["builder"]["events_complete"] == 50
        assert sums(received, "rx_send_requests" if verb else "rx_write_requests") == 150


def test_boards_that_are_killed_slow_nobody_down_and_are_waited_for_again_when_they_are_back(network, tmp_path):
    rate, timeout_s = 1500, 2
    common = ("send", "--iface", "veth1", "--boards", 2, "-l", 1000, "--rate", rate, "--ack-timeout", 16, "--json")

    def send(source: int, first_event: int = 0) -> subprocess.Popen:
        here = ("--ip", first_board(source), "--first-source", source, "--first-event", first_event)
        return network.start("b", *map(str, (network.binary, *common, *here)))

    def further(events: int, of: str) -> float:
        """The time until this number of further events is stored, in seconds."""
        begun, before = time.monotonic(), network.metrics()[of]
        network.counted(before + events, of)
        return time.monotonic() - begun

    staying, dying = send(0), send(2)
    out = ("--out", tmp_path / "run", "--flush", 100)
    receiver = network.recv(*boards(4), "--keep-alive", 100, "--outage", timeout_s, *out, *WITH_METRICS)
    network.counted(1000, "events_complete")
    killed(dying)
    network.counted(100, "events_incomplete")
    # 64 slots in each timeout would be all if each event waited for the dead.
    assert further(3000, "events_incomplete") < 3000 / 64 * timeout_s / 2, "the rate stays up"
    # It begins again where the others are by now, as a board does that is triggered with them.
    again = send(2, int(network.metrics()[f'board_messages{{board="{first_board(0)}"}}']))
    for board in boards(4)[2:]:
        network.counted(2, "board_connections", board)
    further(3000, "events_complete")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    for sender in (staying, again):
        sender.send_signal(signal.SIGINT)
        assert ended(sender).status == 0
    report = result.json()
    assert result.status == 1 and [board["lives"] for board in report["boards"]] == [1, 1, 2, 2], result
    table = pq.read_table(tmp_path / "run", columns=["event_number", "complete", "missing"]).to_pydict()
    complete, builder = table["complete"], report["readout"]["builder"]
    assert table["event_number"] == list(range(len(complete))), "each event once, in order"
    assert (complete.count(True), complete.count(False)) == (builder["events_complete"], builder["events_incomplete"])
    assert table["missing"].count([2, 3]) > 3000
    assert all(complete[-1000:]), "they are waited for when they are back"


FORGER = """
import random, sys
from scapy.all import Ether, IP, UDP, Raw, sendp, sniff
from scapy.contrib.roce import BTH, AETH
iface, server, board = sys.argv[1:]
seen = sniff(iface=iface, filter="udp dst port 4791", count=400, timeout=60)
rng = random.Random(7)
forged = []
for frame in seen[:200]:
    frame = frame.copy()
    kind = rng.randrange(4)
    if kind == 0:
        frame[IP].src = "10.77.3.9"                  # in-window, right key: a stranger's address
    elif kind == 1:
        frame[BTH].dqpn ^= rng.randrange(1, 1 << 24)  # a queue pair that nobody has
    elif kind == 2:
        frame = Ether(bytes(frame))[Ether] / b""
        frame[UDP].payload = Raw(rng.randbytes(rng.randrange(0, 200)))
    del frame[IP].chksum, frame[UDP].chksum, frame[UDP].len, frame[IP].len
    if BTH in frame:
        frame[BTH].icrc = None
    forged.append(frame)
sendp(forged, iface=iface, verbose=0)
print(len(forged))
"""


@pytest.mark.usefixtures("either_socket")
def test_forged_frames_of_strangers_change_nothing(network):
    sender = network.send("--boards", 1, "-l", 3000, "--rate", 300, "--ack-timeout", 16)
    receiver = network.recv(first_board(), *PATIENT)
    network.sees("12B7")
    python = str(Path(__file__).resolve().parents[1] / ".venv/bin/python")
    forger = ended(network.start("b", python, "-c", FORGER, "veth1", SERVER_IP, first_board()))
    assert forger.stdout.strip() == "200", forger.stderr
    receiver.send_signal(signal.SIGINT)
    received = verified(receiver)[0]
    sender.send_signal(signal.SIGINT)
    sent = verified(sender)[0]
    assert received["readout"]["builder"]["events_complete"] > 100
    assert sums(received, "dropped_wrong_peer") > 10
    assert received["counters"]["dropped_unknown_qpn"] > 10 and received["counters"]["rx_malformed"] > 10
    assert sent["boards"][0]["lives"] == 1 and received["boards"][0]["lives"] == 1
    assert sums(received, "resp_invalid_requests") + sums(received, "resp_remote_access_errors") == 0


@pytest.mark.parametrize("ring", [("--slots", 32), ("--slots", 128), ("--slot-size", 65536), ("--slot-size", 262144)])
def test_boards_whose_ring_has_other_slots_are_refused_by_name_and_nothing_looks_damaged(network, ring):
    sender = network.send("--boards", 2, "-l", 3000, "--rate", 300, *ring)
    receiver = network.recv(*boards(2), "--payload", "prbs", *PATIENT, *WITH_METRICS)
    for board in boards(2):
        network.counted(3, "board_connections", board)
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    sender.send_signal(signal.SIGINT)
    report = result.json()
    why = "do both ends have slots of the same size and number?"
    for board in boards(2):
        # The first write into a longer ring, or into one of longer slots, may leave the region.
        ended_by = tuple(f"{board}: its queue pair was ended: {what} of 3040" for what in ("write", "access"))
        reported = [fault for fault in report["faults"] if fault.startswith(ended_by)]
        assert len(reported) == 1 and why in reported[0], report["faults"]
    logged = [line for line in result.stderr.splitlines() if " WARN " in line and why in line]
    assert result.status == 1 and len(logged) == 2, "a line for each board, however often it is opened again"
    assert report["readout"]["receiver"]["fragments_crc_error"] == 0
    assert not any(ring["completions_refused"] or ring["writes_refused"] for ring in report["readout"]["rings"])


def test_a_board_with_a_longer_path_mtu_is_a_fault_that_names_it(network):
    sender = network.send("--boards", 1, "-l", 3000, "--rate", 300)
    receiver = network.recv(first_board(), "--mtu", 1024)
    read_until(receiver, "queue pair in error: opcode 0x0b with 3040 bytes of payload at MTU 1024")
    receiver.send_signal(signal.SIGINT)
    result = ended(receiver)
    sender.send_signal(signal.SIGINT)
    assert result.status == 1 and "do both ends use the same path MTU?" in result.json()["faults"][0]


def test_files_of_an_earlier_run_are_reported(network, tmp_path):
    reported = []
    for first in 0, 3:
        sender = network.send("--boards", 1, "-n", 3, "--first-event", first)
        receiver = network.recv(first_board(), "--events", 3, "--out", tmp_path / "run", *PATIENT)
        reported.append("event files of an earlier run (1) are there" in ended(receiver).stderr)
        ended(sender)
    assert reported == [False, True]


def test_an_interface_too_small_for_the_packets_is_warned_of(network):
    subprocess.run(["ip", "-n", f"{network.name}-s", "link", "set", "veth0", "mtu", "1500"], check=True)
    reported = ended(network.recv(first_board(), "--seconds", 0.1)).stderr
    assert "WARNING: veth0 has MTU 1500, a path MTU of 4096 needs 4176" in reported and "--mtu 1024" in reported
    assert "WARNING" not in ended(network.recv(first_board(), "--seconds", 0.1, "--mtu", 1024)).stderr


@pytest.mark.usefixtures("either_socket")
def test_an_interface_that_goes_down_for_a_while_costs_no_event(network):
    sender = network.send("--boards", 2, "-n", 600, "-l", 2000, "--rate", 400, "--ack-timeout", 18)
    receiver = network.recv(*boards(2), "--events", 600, "--keep-alive", 200, *PATIENT, *WITH_METRICS)
    network.counted(100, "events_complete")
    subprocess.run(["ip", "-n", f"{network.name}-s", "link", "set", "veth0", "down"], check=True)
    read_until(receiver, "veth0 is down; boards wait until it is up again")
    subprocess.run(["ip", "-n", f"{network.name}-s", "link", "set", "veth0", "up"], check=True)
    result = ended(receiver)
    assert result.status == 0, result
    report = result.json()
    assert (report["readout"]["builder"]["events_complete"], report["counters"]["link_downed"]) == (600, 1)
    assert ended(sender).json()["boards"][0]["messages"] == 600


@pytest.mark.usefixtures("either_socket")
@pytest.mark.parametrize(("poll", "first"), [("event", "down"), ("event", "up"), ("busy", "up")])
def test_an_interface_that_is_gone_ends_the_run_with_its_report_and_all_that_has_come(network, tmp_path, poll, first):
    network.send("--boards", 2, "-l", 2000, "--rate", 400)
    receiver = network.recv(*boards(2), "--out", tmp_path / "run", "--flush", 60000, *PATIENT, *WITH_METRICS, poll=poll)
    network.counted(100, "events_complete")
    if first == "down":  # then it goes without a word, and frames from before still lie in the ring
        receiver.send_signal(signal.SIGSTOP)
        before = network.received("veth0")
        until("frames", lambda: network.received("veth0") > before)
    subprocess.run(["ip", "-n", f"{network.name}-s", "link", "set", "veth0", first], check=True)
    receiver.send_signal(signal.SIGCONT)
    if first == "down":
        read_until(receiver, "veth0 is down")
    subprocess.run(["ip", "-n", f"{network.name}-s", "link", "del", "veth0"], check=True)
    result = ended(receiver)
    report = result.json()
    assert result.status == 1 and report["faults"][0].startswith("veth0: waiting for frames"), result
    complete = pq.read_table(tmp_path / "run")["complete"].to_pylist()
    assert complete.count(True) == report["readout"]["builder"]["events_complete"] > 0


def limited(network: Network, descriptors: int, *options: object) -> subprocess.Popen:
    limit = ("prlimit", f"--nofile={descriptors}", str(network.binary))
    return network.start("s", *limit, "recv", "--iface", "veth0", "--json", "--linger", "50", *map(str, options))


def test_without_descriptors_boards_wait_or_go_on_and_the_reason_is_named(network, tmp_path):
    result = ended(limited(network, 5, first_board(), "--state", "none"))
    assert result.status == 2 and "Too many open files" in result.stderr and "ulimit -n" in result.stderr, result.stderr

    # Consumers take all that are left; then a file is full, and there is none for the next.
    socket = tmp_path / "events"
    out = ("--out", tmp_path / "run", "--file-size", "1MB", "--serve", socket)
    receiver = limited(network, 40, *boards(2), "--events", 400, *out, *PATIENT)
    network.sees("12B7")
    holder = (
        "import socket, sys, time\nheld = []\n"
        "for _ in range(60):\n"
        "    held.append(socket.socket(socket.AF_UNIX)); held[-1].connect(sys.argv[1])\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    consumers = network.start("s", "python3", "-c", holder, str(socket), stdin=subprocess.PIPE)
    assert consumers.stdout.readline() == "held\n"
    until("descriptors in use", lambda: len(list(Path(f"/proc/{receiver.pid}/fd").iterdir())) == 40)
    sender = network.send("--boards", 2, "-n", 400, "-l", 10_000, "--ack-timeout", 16)
    assert [board["messages"] for board in verified(sender)[0]["boards"]] == [400, 400], "boards that are open go on"
    reported = read_until(receiver, "events are held")
    assert receiver.poll() is None, "what is acknowledged is not given up"
    consumers.communicate()
    result = ended(receiver)
    assert result.status == 0 and "Too many open files" in reported, (reported, result)
    assert result.json()["readout"]["builder"]["events_complete"] == 400
    assert pq.read_table(tmp_path / "run").num_rows == 400


def test_the_kernel_does_not_refuse_the_port(network):
    receiver = network.recv(first_board(), *PATIENT)
    network.sees("12B7")
    sender = network.send("-n", 100, "-l", 1000, "--ack-timeout", 16)
    probe = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], 4791));"
        "s.send(b'x'); s.settimeout(0.3)\ntry: s.recv(1)\nexcept TimeoutError: print('silent')\n"
    )
    text = ended(network.start("b", "python3", "-c", probe, SERVER_IP)).stdout
    assert text.startswith("silent"), "no ICMP port unreachable"
    sent = ended(sender)
    receiver.send_signal(signal.SIGINT)
    received = ended(receiver)
    assert (sent.status, received.status) == (0, 0), (sent, received)
    assert received.json()["readout"]["builder"]["events_complete"] == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["recv"], "no boards"),
        (["recv", "10.0.0.2"], "--backend packet needs --iface"),
        (["recv", "10.0.0.2", "--iface", "nosuch0"], "nosuch0: no such interface"),
        (["recv", "10.0.0.2", "--iface", "lo", "--throughput", "10", "--latency", "100", "--slots", "4"], "955 slots"),
        (["recv", "10.0.0.2", "--iface", "lo", "--slots", "4000000", "--slot-size", "1000000"], "are free"),
        (["recv", "10.0.0.2", "--iface", "lo", "--srq", "3"], "1 boards need at least 4 slots"),
        (["recv", "10.0.0.2", "--iface", "lo", "--mtu", "1000"], "allowed are 256"),
        (["recv", "10.0.0.2", "--iface", "lo", "--numa", "77"], "no NUMA node 77; it has: "),
        (["recv", "10.0.0.2", "--iface", "lo", "--numa", "nic"], "lo does not say at which NUMA node it is"),
        (["send", "--iface", "lo", "--ip", "127.0.0.1", "-l", "200000"], "must fit"),
        (["recv", "--iface", "lo", "--file", "/dev/null"], "/dev/null: there is no [[board]] in it"),
        (["send", "--iface", "lo", "--ip", "127.0.0.1", "--loss", "2"], "--loss 2: allowed"),
        (
            ["send", "--iface", "lo", "--ip", "127.0.0.1", "--first-event", str(2**64 - 20), "-n", "40"],
            f"--first-event {2**64 - 20}: 40 events from there on go beyond",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_the_value_and_what_to_do(built, options, message):
    result = subprocess.run([built / "penstock", *options], capture_output=True, text=True, timeout=LIMIT_S)
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr
