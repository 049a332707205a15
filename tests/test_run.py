# SPDX-License-Identifier: Apache-2.0
"""`penstock run`, end to end: recorded events through the verilated gateware and a congested switch into Parquet.

Promises checked: every event is complete and byte-exact for any behaviour of links, server and congestion control;
one seed replays one run; a run that cannot succeed ends by itself with a reason; stored events are never lost.
pyarrow and NumPy compare stored events with the recorded file, without code of this project.
"""

import json
import signal
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import FAST, SCENARIO, TIMEOUT_S, Penstock, Run
from veth import until

BOARDS = 3
MODULE_BYTES = 1142
# A loss costs one of these; 8 in a row without progress are more than the switch can hold up a packet.
SHORT_TIMEOUT = "qp.ack_timeout=524.288us"


def assert_recorded(run: Run, recorded: np.ndarray, events: int, boards: int = BOARDS) -> None:
    """The first `events` events are there, in order, whole, and equal the recorded bytes (which repeat)."""
    rows = run.events().to_pylist()
    assert [row["event_number"] for row in rows] == list(range(events))
    for row in rows:
        assert row["complete"] and row["sources"] == list(range(boards)) and row["missing"] == []
        event = recorded[row["event_number"] % len(recorded)]
        for board, payload in enumerate(row["fragments"]):
            assert payload == event[board::boards].tobytes(), f"event {row['event_number']}, board {board}"
    times = [row["timestamp_ns"] for row in rows]
    assert times == sorted(times)


def assert_parts(run: Run) -> None:
    """Each board's table names whole parts, side by side, which are all of its payload (docs/fragments.md)."""
    for row in run.events().to_pylist():
        for payload, table in zip(row["fragments"], row["parts"], strict=True):
            entries = list(struct.iter_unpack("<BxHII4x", table))
            ends = [offset + length for _, _, offset, length in entries]
            assert [number for number, *_ in entries] == list(range(len(entries))) and len(entries) > 1
            assert all(flags == 0 for _, flags, _, _ in entries)
            assert [offset for _, _, offset, _ in entries] == [0, *ends[:-1]] and ends[-1] == len(payload)
            assert all(length % MODULE_BYTES == 0 and length > 0 for *_, length in entries)


def assert_verified(run: Run, recorded: np.ndarray, events: int, boards: int = BOARDS) -> None:
    """The run says that all went well, and it did."""
    assert run.status == 0, run.stdout + run.stderr
    server = run.summary()["readout"]
    assert (server["events_complete"], server["events_incomplete"], server["byte_exact"]) == (events, 0, True)
    assert run.of_boards("messages_ok") == [events] * boards and run.of_boards("messages_error") == [0] * boards
    assert run.of_boards("counters.messages_done") == [events] * boards
    assert run.of_boards("triggers.received") == run.of_boards("triggers.accepted") == [events] * boards
    assert_recorded(run, recorded, events, boards)


# ---- the demo ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(penstock: Penstock, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The demo with DCQCN and plots, short."""
    return penstock.run(tmp_path_factory.mktemp("demo"), "replay.events=10", options=())


def test_demo_is_byte_exact(demo: Run, recorded: np.ndarray) -> None:
    assert_verified(demo, recorded, 10)
    assert_parts(demo)
    assert demo.of_boards("counters.event_messages") == [10] * BOARDS, "the gateware makes every message"


def test_stored_events_of_the_demo_pass_the_check(penstock: Penstock, demo: Run) -> None:
    command = [str(penstock.binary), "check", str(demo.out / "events.parquet")]
    reported = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert reported.returncode == 0, reported.stdout + reported.stderr


def test_demo_prints_its_tables(demo: Run) -> None:
    for word in (
        "board0",
        "board2",
        "goodput",
        "CNPs",
        "retransmissions",
        "completions",
        "marks",
        "drops",
        "peak queue",
        "events 10 complete, 0 incomplete",
        "byte-exact: yes",
        "Jain's index",
        "simulated",
    ):
        assert word in demo.stdout, demo.stdout


def test_demo_leaves_plots(demo: Run) -> None:
    for name in ("throughput.png", "alpha.png", "queue.png"):
        picture = (demo.out / name).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 5_000, f"{name}: {len(picture)} bytes"


def test_demo_is_congested_and_the_limiter_works(demo: Run) -> None:
    [switch] = demo.summary()["switches"]
    assert switch["ports"][BOARDS]["ecn_marked"] > 0
    assert all(n > 0 for n in demo.of_boards("cnps"))
    dropped = [switch[f"dropped_{why}"] for why in ("buffer", "threshold", "headroom")]
    assert demo.of_boards("retransmissions") == [0] * BOARDS and dropped == [0, 0, 0]


def test_trace_follows_every_board_and_the_switch(demo: Run) -> None:
    trace = demo.trace()
    assert trace.schema.names == ["time_ps", "node", "channel", "metric", "value"]
    columns = {name: np.asarray(trace[name].to_pylist()) for name in ("node", "metric", "value", "time_ps")}
    for board in range(BOARDS):
        of_board = columns["node"] == f"board{board}"
        for metric in ("rate_current_bps", "rate_target_bps", "alpha", "wire_throughput_bps"):
            assert (of_board & (columns["metric"] == metric)).sum() > 50
        rates = columns["value"][of_board & (columns["metric"] == "rate_current_bps")]
        assert rates[0] == pytest.approx(10e9 / BOARDS, rel=1e-3)
        assert rates.min() == pytest.approx(15 / 16 * 10e9 / BOARDS, rel=1e-3), "cuts end at 15/16 of the share"
        assert rates.max() > rates[0]
        times = columns["time_ps"][of_board & (columns["metric"] == "alpha")]
        assert (np.diff(times.astype(np.int64)) > 0).all()
    queue = columns["value"][(columns["node"] == "switch") & (columns["metric"] == "queue_bytes")]
    assert queue.max() > 15e3, "the demo is an incast"


def test_json_option_prints_the_summary_and_nothing_else(penstock: Penstock, tmp_path: Path) -> None:
    run = penstock.run(tmp_path, "replay.events=1", *FAST, options=("--no-plots", "--json"))
    assert run.status == 0 and json.loads(run.stdout) == run.summary()


# ---- one seed, one run ---------------------------------------------------------------------------------------------

FAULTS = (
    "link.loss=1e-3",
    "link.reorder=1e-3",
    "link.duplicate=1e-3",
    "link.corrupt=1e-3",
    "link.corrupt_undetected=1e-3",
    "link.jitter=2us",
    SHORT_TIMEOUT,
)


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(penstock: Penstock, tmp_path: Path) -> None:
    def results(name: str, seed: int) -> tuple[bytes, bytes, dict]:
        run = penstock.run(tmp_path / name, "replay.events=3", f"run.seed={seed}", *FAST, *FAULTS)
        assert run.status == 0, run.stdout + run.stderr
        summary = run.summary()
        del summary["timing"], summary["settings"]
        return (run.out / "trace.parquet").read_bytes(), (run.out / "events.parquet").read_bytes(), summary

    first, again, other = results("first", 7), results("again", 7), results("other", 8)
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_the_laboratorys_hosts_send_the_same_bytes_in_the_boards_place(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    run = penstock.run(tmp_path, "replay.events=20", "replay.sender=software", "link.loss=1e-3", SHORT_TIMEOUT)
    assert run.status == 0, run.stdout + run.stderr
    summary = run.summary()
    assert (summary["readout"]["events_complete"], summary["readout"]["byte_exact"]) == (20, True)
    assert "boards" not in summary and sum(flow["retransmissions"] for flow in summary["flows"]) > 0
    assert_recorded(run, recorded, 20)


def test_gateware_and_software_make_the_same_fragments_of_the_same_samples(penstock: Penstock, tmp_path: Path) -> None:
    """Header and CRC-32C of a fragment, whichever side of the wire made them; only gateware has parts.

    Its clock counts cycles of 6.4 ns and begins within one of them: an event's time is that of its trigger so far.
    """
    gateware, software = (
        penstock.run(tmp_path / sender, "replay.events=5", f"replay.sender={sender}", *FAST)
        for sender in ("gateware", "software")
    )
    same = ["event_number", "sources", "fragments", "crc32c"]
    assert gateware.events().select(same) == software.events().select(same)
    times = (run.events()["timestamp_ns"].to_pylist() for run in (gateware, software))
    assert all(abs(of_gateware - of_trigger) < 16 for of_gateware, of_trigger in zip(*times, strict=True))
    assert set(software.events()["parts"].combine_chunks().flatten().to_pylist()) == {b""}
    assert_parts(gateware)


# ---- boards with TCP -------------------------------------------------------------------------------------------------

WORSE_FAULTS = (
    "link.loss=0.02",
    "link.reorder=0.01",
    "link.duplicate=0.01",
    "link.corrupt=0.01",
    "link.corrupt_undetected=0.01",
    "link.jitter=2us",
)
TCP = ("replay.protocol=simple-tcp", "tcp.min_rto=300us", "tcp.delayed_ack=20us", *FAST)


def slot_bytes(run: Run) -> list[int]:
    """What each board's messages have written into the receiver's slots."""
    return [ring["bytes_written"] for ring in run.summary()["readout"]["rings"]]


def test_boards_of_tcp_send_the_same_events_and_one_seed_gives_one_result(penstock: Penstock, tmp_path: Path) -> None:
    """The front ends open their streams in simulated time; two runs are equal, and their events those of RoCE."""
    runs = [penstock.run(tmp_path / name, "replay.events=5", *TCP) for name in ("one", "other")]
    roce = penstock.run(tmp_path / "roce", "replay.events=5", *FAST)
    for run in runs:
        assert run.status == 0, run.stdout + run.stderr
        for end in run.summary()["readout"]["queue_pairs"]:
            assert end["connections_opened"] == 1 and end["resynchronised"] == end["connections_reset"] == 0
    assert runs[0].events() == runs[1].events()
    first, second = (
        {key: value for key, value in run.summary().items() if key not in ("timing", "path")} for run in runs
    )
    assert first == second
    same = ["event_number", "sources", "fragments", "crc32c"]
    assert runs[0].events().select(same) == roce.events().select(same)
    assert slot_bytes(runs[0]) == slot_bytes(roce), "each byte of a message is written into its slot once"
    assert_parts(runs[0])
    [meters] = runs[0].summary()["boards"][0]["meters"]
    assert meters["bytes"] > 5 * BOARDS and 0 < meters["throughput_gbps"] < 10


def test_events_over_tcp_are_exact_over_losses_and_a_slow_consumer(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    slow = ("readout.slots=2", "readout.consumer_rate=600MB/s", "replay.rate=100kHz", "tcp.receive_buffer=16KiB")
    run = penstock.run(tmp_path, "replay.events=8", "link.loss=0.01", *slow, *TCP)
    assert_verified(run, recorded, 8)
    assert sum(run.of_boards("retransmissions")) > 0
    assert sum(meters["resent"] for board in run.summary()["boards"] for meters in board["meters"]) > 0
    assert run.summary()["readout"]["goodput_gbps"] < 1.05 * 0.6 * 8 * 8 / 7


@pytest.mark.parametrize("protocol", ["simple-tcp", "rc"])
def test_a_board_that_reaches_the_receiver_late_loses_no_event(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray, protocol: str
) -> None:
    """Its link is down for the first 350 us: two SYNs are lost, and the stream opens when nine triggers have come.

    An event's time is that of its trigger none the less, so that the board's fragments belong to their events.
    """
    text = SCENARIO.read_text().replace("../data", str(SCENARIO.parents[1] / "data"))
    scenario = tmp_path / "late.toml"
    scenario.write_text(f'{text}\n[[change]]\nlink = "board1-switch"\nuntil = "350us"\nloss = 1.0\n')
    two = ("topology.boards=2", "readout.slot_size=320KiB")
    settings = (*TCP, f"replay.protocol={protocol}", SHORT_TIMEOUT, "replay.events=12", *two)
    late = penstock.run(tmp_path / "late", *settings, scenario=scenario)
    assert_verified(late, recorded, 12, boards=2)
    times = late.events()["timestamp_ns"].to_pylist()
    assert times == penstock.run(tmp_path / "soon", *settings).events()["timestamp_ns"].to_pylist()
    assert len([time for time in times if time < 900_000]) > 5, "events before the stream is open"


def test_events_of_tcp_boards_are_exact_over_every_fault_of_links(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    """So many faults that one of the handshake's six segments is lost or damaged, or opens a stream late."""
    run = penstock.run(tmp_path, "replay.events=12", *WORSE_FAULTS, *TCP)
    assert_verified(run, recorded, 12)
    assert run.summary()["readout"]["dropped_frames"]["not_roce"] > 0, "no segment with a flipped bit is taken"


def test_what_tcp_boards_cannot_do_is_refused(penstock: Penstock, tmp_path: Path) -> None:
    for settings, reported in (
        (("replay.protocol=simple-tcp", "cc.law=qcn"), "no law limits the streams of verilated boards"),
        ((*TCP, "tcp.mss=9000"), "tcp.mss = 9000: a front end sends segments of 64 to 8960 bytes"),
        ((*TCP, "link.rate=40Gbps"), "no board of this program has a line of 40Gbps with TCP"),
    ):
        run = penstock.run(tmp_path, "replay.events=1", *settings)
        assert run.status == 2 and reported in run.stderr, run.stderr


# ---- software with TCP -----------------------------------------------------------------------------------------------

SOFTWARE = ("replay.sender=software", *TCP)


def test_software_over_tcp_sends_the_fragments_of_rdma_and_one_seed_gives_one_result(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    runs = [penstock.run(tmp_path / name, "replay.events=20", *SOFTWARE) for name in ("one", "other")]
    rdma = penstock.run(tmp_path / "rdma", "replay.events=20", "replay.sender=software", *FAST)
    for run in runs:
        assert run.status == 0, run.stdout + run.stderr
        summary = run.summary()
        assert (summary["readout"]["events_complete"], summary["readout"]["byte_exact"]) == (20, True)
        assert_recorded(run, recorded, 20)
        for end in summary["readout"]["queue_pairs"]:
            assert end["connections_opened"] == 1 and end["resynchronised"] == end["connections_reset"] == 0
        assert {flow["protocol"] for flow in summary["flows"]} == {"simple-tcp"} and "boards" not in summary
        assert all(flow["packets"] > 0 and flow["complete"] for flow in summary["flows"])
    for name in ("events.parquet", "trace.parquet"):
        assert (runs[0].out / name).read_bytes() == (runs[1].out / name).read_bytes()
    assert runs[0].events().drop_columns(["missing"]) == rdma.events().drop_columns(["missing"])
    assert slot_bytes(runs[0]) == slot_bytes(rdma)
    trace = runs[0].trace().to_pylist()
    for board in range(BOARDS):
        last = {row["metric"]: row["value"] for row in trace if row["node"] == f"board{board}"}
        assert last["window_bytes"] > 0 and last["smoothed_rtt_us"] > 0 and last["tx_payload_bytes"] > 20 * 90_000
        fills = [row["value"] for row in trace if (row["node"], row["metric"]) == (f"board{board}", "ring_fill_bytes")]
        assert max(fills) > 0 and fills[-1] == 0, "all is acknowledged at the end"


def test_software_over_tcp_is_exact_over_faults_a_slow_consumer_and_a_receiver_that_stalls(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    """A stall longer than the timeout, too: the window closes, and is probed until it opens."""
    slow = ("readout.slots=2", "readout.consumer_rate=300MB/s", "replay.rate=100kHz", "tcp.receive_buffer=16KiB")
    stall = ("tcp.stall_start=2ms", "tcp.stall_time=3ms")
    faults = [fault for fault in FAULTS if fault.startswith("link.")]
    run = penstock.run(tmp_path, "replay.events=12", *slow, *stall, *faults, *SOFTWARE)
    assert run.status == 0, run.stdout + run.stderr
    summary = run.summary()
    assert (summary["readout"]["events_complete"], summary["readout"]["byte_exact"]) == (12, True)
    assert_recorded(run, recorded, 12)
    assert all(flow["retransmissions"] > 0 for flow in summary["flows"])
    assert sum(flow["timeouts"] for flow in summary["flows"]) > 0
    assert sum(end["segments_out_of_order"] for end in summary["readout"]["queue_pairs"]) > 0
    assert summary["readout"]["dropped_frames"]["not_roce"] > 0, "no segment with a flipped bit is taken"
    assert summary["readout"]["goodput_gbps"] < 1.05 * 0.3 * 8 * 12 / 11
    fragments = run.trace().to_pylist()
    windows = {row["value"] for row in fragments if row["metric"] == "window_bytes"}
    assert min(windows) < 8960 < max(windows), "the window closes and opens"
    stalled = [
        row["value"]
        for row in fragments
        if (row["node"], row["metric"]) == ("network", "throughput_bps")
        and 2_200_000_000 < row["time_ps"] < 5_000_000_000
    ]
    assert len(stalled) > 100
    # The storage still takes what was read before: a receive buffer of each board at most, of 840 kB without a stall.
    assert sum(stalled) * 20e-6 / 8 <= BOARDS * 16_384, "nothing is read while the receiver stalls"


def test_software_over_tcp_follows_qcn_and_a_full_send_buffer_loses_fragments(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    points = ("switch.qcn.enabled=true", "switch.buffer=2MB", "replay.rate=100kHz")
    options = [setting for setting in SOFTWARE if not setting.startswith("cc.")]
    run = penstock.run(tmp_path / "qcn", "replay.events=40", *options, "cc.law=qcn", *points)
    assert run.status == 0, run.stdout + run.stderr
    assert_recorded(run, recorded, 40)
    assert sum(flow["feedbacks"] for flow in run.summary()["flows"]) > 0

    full = ("tcp.send_buffer=250KB", "replay.trigger=periodic", "replay.rate=1MHz", "readout.event_timeout=1ms")
    run = penstock.run(tmp_path / "full", "replay.events=10", *SOFTWARE, *full)
    assert run.status == 1
    summary = run.summary()
    assert [flow["refused"] for flow in summary["flows"]] == [8] * BOARDS, "two fragments fit"
    assert (summary["readout"]["events_complete"], summary["readout"]["byte_exact"]) == (2, True)
    assert_recorded(run, recorded, 2)


# ---- whatever happens on the way, every event arrives ----------------------------------------------------------------


def test_events_are_exact_with_the_limiter_off(penstock: Penstock, tmp_path: Path, recorded: np.ndarray) -> None:
    shallow = ("switch.buffer=500KB", "switch.kmin=50KB", "switch.kmax=200KB")
    run = penstock.run(tmp_path, "replay.events=12", "replay.rate=100kHz", *shallow, *FAST)
    assert_verified(run, recorded, 12)
    assert sum(run.of_boards("paused_s")) > 0, "three line rates into one must need flow control"
    assert run.summary()["readout"]["goodput_gbps"] > 9


def test_events_are_exact_over_faulty_links(penstock: Penstock, tmp_path: Path, recorded: np.ndarray) -> None:
    run = penstock.run(tmp_path, "replay.events=3", *WORSE_FAULTS, SHORT_TIMEOUT, *FAST)
    assert_verified(run, recorded, 3)
    assert all(n > 0 for n in run.of_boards("retransmissions"))
    summary = run.summary()
    seen_by_server = summary["readout"]["dropped_frames"]
    assert summary["switches"][0]["fcs_errors"] > 0 and seen_by_server["rx_icrc_encapsulated"] > 0
    assert sum(pair["duplicate_request"] for pair in summary["readout"]["queue_pairs"]) > 0


def test_events_are_exact_over_a_link_that_loses_one_frame_in_twenty(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    run = penstock.run(tmp_path, "replay.events=5", "link.loss=0.05", SHORT_TIMEOUT, *FAST)
    assert_verified(run, recorded, 5)


def test_a_slow_consumer_stops_the_boards_and_loses_nothing(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    slow = ("readout.slots=2", "readout.consumer_rate=600MB/s", "qp.rnr_delay=40us", "replay.rate=100kHz")
    run = penstock.run(tmp_path, "replay.events=8", *slow, *FAST)
    assert_verified(run, recorded, 8)
    assert sum(run.of_boards("counters.rnr_nak")) > 0
    assert run.summary()["readout"]["goodput_gbps"] < 1.05 * 0.6 * 8 * 8 / 7  # the last slots wait for nobody


def test_boards_that_wait_for_a_late_one_go_on_when_it_has_come(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    """The last fragment of an event frees a slot of every board, not only of the one that sent it."""
    late = (
        "link.at.board2-switch.delay=300us",
        "switch.pfc=false",
        "readout.slots=2",
        "qp.rnr_delay=40us",
        "replay.rate=100kHz",
    )
    run = penstock.run(tmp_path, "replay.events=4", *late, *FAST)
    assert_verified(run, recorded, 4)
    assert all(n > 0 for n in run.of_boards("counters.rnr_nak")[:2])
    assert run.summary()["simulated_s"] < 10e-3, "the timeout of an incomplete event is 100 ms"


def test_waiting_for_a_slow_consumer_uses_up_no_retries(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    """Now and then a loss, for as long as the receiver is not ready: only silence in a row may end a queue pair."""
    slow = ("readout.slots=2", "readout.consumer_rate=60MB/s", "qp.rnr_delay=20us", "replay.rate=100kHz")
    lossy = ("link.loss=2e-2", "qp.ack_timeout=65.536us", "topology.boards=1", "readout.slot_size=320KiB")
    run = penstock.run(tmp_path, "replay.events=4", *slow, *lossy, "qp.retry_cnt=3", "trace.interval=0us", *FAST)
    assert_verified(run, recorded, 4, boards=1)
    assert sum(run.of_boards("counters.local_ack_timeout_err")) > 3


@pytest.mark.parametrize("mtu", [256, 1024])
def test_events_are_exact_at_every_mtu(penstock: Penstock, tmp_path: Path, recorded: np.ndarray, mtu: int) -> None:
    run = penstock.run(tmp_path, "replay.events=6", f"qp.mtu={mtu}", "link.loss=1e-4", SHORT_TIMEOUT, *FAST)
    assert_verified(run, recorded, 6)
    fragment = 32 + 89 * MODULE_BYTES + 4 * 16 + 16  # header, modules of board 0, parts, trailer
    assert run.of_boards("counters.packets_sent")[0] >= 6 * -(-fragment // mtu)


@pytest.mark.parametrize("boards", [1, 8])
def test_events_are_exact_with_any_number_of_boards(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray, boards: int
) -> None:
    run = penstock.run(tmp_path, "replay.events=4", f"topology.boards={boards}", "readout.slot_size=320KiB", *FAST)
    assert_verified(run, recorded, 4, boards)


def test_results_of_an_earlier_run_do_not_stay(penstock: Penstock, tmp_path: Path) -> None:
    for name in ("trace.parquet", "alpha.png"):
        (tmp_path / name).write_text("of an earlier run")
    run = penstock.run(tmp_path, "replay.events=1", "trace.interval=0us", *FAST)
    assert run.status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.parquet", "summary.json"]


# ---- runs that cannot succeed, or are not let -----------------------------------------------------------------------


def test_a_vanished_server_ends_the_run_with_error_completions(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray
) -> None:
    vanish = ("readout.vanish_at=1ms", "qp.ack_timeout=131.072us", "qp.retry_cnt=3")
    run = penstock.run(tmp_path, "replay.events=8", *vanish, *FAST)
    assert run.status == 1
    assert run.summary()["end"] == "done"
    for board in run.summary()["boards"]:
        assert board["messages_ok"] + board["messages_error"] == 8 and board["messages_error"] > 0
        assert "retry count exceeded" in board["first_error"]
        assert f"{board['name']}: queue pair 0 ended in error" in run.stdout
    stored = run.events().filter(run.events()["complete"]).num_rows
    assert stored == run.summary()["readout"]["events_complete"] < 8
    assert run.trace().num_rows > 0


@pytest.mark.parametrize(("kind", "sender"), [(signal.SIGINT, "gateware"), (signal.SIGTERM, "software")])
def test_an_interrupted_run_keeps_what_was_built(
    penstock: Penstock, tmp_path: Path, recorded: np.ndarray, kind: signal.Signals, sender: str
) -> None:
    one_board = ("topology.boards=1", "readout.slot_size=320KiB", f"replay.sender={sender}")
    process = penstock.start(tmp_path, "replay.events=100000", "replay.rate=100kHz", *one_board, *FAST)
    part = tmp_path / "events.parquet.partial"

    def over() -> bool:
        return process.poll() is not None or (part.exists() and part.stat().st_size >= 1_000_000)

    until("stored events", over, TIMEOUT_S)
    process.send_signal(kind)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, stdout + stderr
    assert "interrupted" in stdout and "interrupted" in stderr
    run = Run(process.returncode, stdout, stderr, tmp_path)
    rows = run.events()
    whole = rows.filter(rows["complete"]).num_rows
    assert 0 < whole < 100_000 and whole == run.summary()["readout"]["events_complete"]
    assert run.summary()["end"] == "interrupted" and run.summary()["readout"]["byte_exact"]
    for row in rows.slice(0, whole).to_pylist():
        event = recorded[row["event_number"] % len(recorded)]
        assert row["fragments"] == [event.tobytes()]
    assert run.trace().num_rows > 0
    assert not part.exists()


# ---- asked wrongly ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("cc.lew=off", ["cc.lew", "unknown key", "law"]),
        ("link.rate=10", ["link.rate = 10", "no unit", "10Gbps"]),
        ("link.delay=4parsec", ["link.delay", "parsec", "us"]),
        ("link.loss=2", ["link.loss = 2", "0 to 1"]),
        ("qp.mtu=1500", ["qp.mtu = 1500", "1024"]),
        ("topology.boards=0", ["from", "board*"]),
        ("topology.boards=300", ["300 hosts", "1 to 265"]),
        ("link.at.board7.delay=4us", ["board7", "board0-switch, board1-switch"]),
        ("readout.slots=1", ["readout.slots = 1", "from 2"]),
        ("readout.slot_size=64KiB", ["readout.slot_size", "64KiB", "101752"]),
        ("replay.file=nowhere.npz", ["nowhere.npz", "cannot read"]),
        ("cc", ["no `=`", "section.key=value"]),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_allowed(
    penstock: Penstock, tmp_path: Path, setting: str, words: list[str]
) -> None:
    assert_refused(penstock.run(tmp_path / "out", setting), words)


def assert_refused(run: Run, words: list[str]) -> None:
    """Exit status 2, a message with these words and no sign of a panic; no results."""
    assert run.status == 2, run.stdout + run.stderr
    assert run.stderr.startswith(("error: ", "warning: ")) and "panicked" not in run.stderr
    missing = [word for word in words if word not in run.stderr]
    assert not missing, f"{missing} not in: {run.stderr}"
    assert not run.out.is_dir() or not list(run.out.glob("*.json"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[run]\nseed = 1\n[readout]\n[boardz]\ncount = 3\n", [":4: boardz: unknown key", "readout"]),
        ("[run]\nseed = 1\n[readout]\n[link]\ndelay = '4 parsec'\n", [":5: link.delay", "parsec", "us"]),
        ("[run]\nseed = 1\n", ["topology.kind", "the topology is missing"]),
        ("[run]\nseed = 1\n[server]\nslots = 64\n", [":3: server", "unknown key", "readout"]),
        ("[run]\nkind = 'emulated-switch'\n", [":2: run.kind", "penstock board --switch"]),
        ("[run\nseed = 1\n", [":1:", "not TOML"]),
    ],
)
def test_a_wrong_scenario_is_refused_with_its_line(
    penstock: Penstock, tmp_path: Path, text: str, words: list[str]
) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(text)
    assert_refused(penstock.run(tmp_path / "out", scenario=scenario), ["scenario.toml", *words])


def test_a_scenario_that_is_not_there_is_refused(penstock: Penstock, tmp_path: Path) -> None:
    assert_refused(penstock.run(tmp_path / "out", scenario=tmp_path / "none.toml"), ["none.toml", "No such file"])


@pytest.mark.parametrize("damage", ["truncated", "corrupt", "empty"])
def test_a_damaged_data_file_is_refused_by_name(penstock: Penstock, tmp_path: Path, damage: str) -> None:
    data = bytearray((Path(__file__).parents[1] / "data/lst1_run2008/modules.npz").read_bytes())
    match damage:
        case "truncated":
            del data[len(data) // 2 :]
        case "corrupt":
            data[2_000_000:2_000_008] = bytes(8)
        case "empty":
            data.clear()
    file = tmp_path / "damaged.npz"
    file.write_bytes(data)
    assert_refused(penstock.run(tmp_path / "out", f"replay.file={file}"), ["damaged.npz", "copy"])


@pytest.mark.parametrize("place", ["a file", "below a file", "a folder without files", "taken"])
def test_results_that_could_not_be_written_are_refused_before_the_run(
    penstock: Penstock, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "taken/events.parquet").mkdir(parents=True)
    out = {
        "a file": tmp_path / "file",
        "below a file": tmp_path / "file/out",
        "a folder without files": Path("/proc/self"),  # not writable even for root
        "taken": tmp_path / "taken",
    }[place]
    assert_refused(penstock.run(out, "replay.events=100000"), [str(out)])


@pytest.mark.parametrize("words", [[], ["run"], ["run", "x.toml", "--frobnicate"], ["fly"]])
def test_a_wrong_command_line_is_refused_with_its_usage(penstock: Penstock, words: list[str]) -> None:
    done = subprocess.run([penstock.binary, *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 2 and "Usage: penstock" in done.stderr
