# SPDX-License-Identifier: Apache-2.0
"""`penstock send --cm rdma` and `penstock recv --cm rdma` in two namespaces: the standard connection manager.

Promise checked: boards connect, run and disconnect, run after run and after a crash, over a link that loses frames;
strangers and ends that do not fit are rejected with the reason at both ends.
"""

import pytest
from processes import killed
from veth import METRICS, SERVER_IP, ended, first_board, sums, verified

pytestmark = pytest.mark.usefixtures("namespaces")
PATIENT = ("--event-timeout", 5000)
CM = ("--cm", "rdma")
TO_SERVER = ("--connect", SERVER_IP, *CM)


@pytest.mark.parametrize("verb", [(), ("--send-verb",)], ids=["write", "send"])
def test_two_runs_in_a_row_over_loss_have_each_event_once(network, tmp_path, verb):
    faults = ("--loss", 0.02, "--duplicate", 0.02, "--reorder", 0.02, "--ack-loss", 0.2, "--ack-timeout", 17)
    boards = [first_board(k) for k in range(3)]
    sender = network.send("--boards", 3, "-n", 60, "-l", 3000, *TO_SERVER, *faults, *verb)
    runs = [tmp_path / name for name in ("first", "second")]
    reports = [
        verified(network.recv(*boards, *CM, "--events", 30, "--payload", "prbs", "--out", run, *PATIENT))[0]
        for run in runs
    ]
    sent = verified(sender)[0]
    assert [report["readout"]["builder"]["events_complete"] for report in reports] == [30, 30]
    assert [board["messages"] for board in sent["boards"]] == [60] * 3
    assert all(board["lives"] >= 2 for board in sent["boards"]), "each run has a connection of its own"
    done = ended(network.start("s", str(network.binary), "check", "--json", *map(str, runs)))
    assert done.status == 0, done.stdout


def test_boards_that_announce_are_read_run_after_run(network):
    sender = network.send(
        "--pull", "--boards", 2, "-n", 120, "-l", 3000, *TO_SERVER, "--loss", 0.01, "--ack-loss", 0.01
    )
    boards = [first_board(k) for k in range(2)]
    for _ in range(2):
        receiver = network.recv("--pull", *boards, *CM, "--events", 60, "--payload", "prbs", *PATIENT)
        report = verified(receiver)[0]
        assert report["readout"]["builder"]["events_complete"] == 60
        assert sums(report, "pull_read") >= 120
    assert [board["messages"] for board in verified(sender)[0]["boards"]] == [120, 120]


@pytest.mark.parametrize("reader", ["recv", "send"])
def test_an_end_without_pull_is_named(network, reader):
    pull = {"recv": [], "send": [], reader: ["--pull"]}
    sender = network.send(*pull["send"], "-n", 5, "-l", 500, "--seconds", 4, *TO_SERVER)
    receiver = network.recv(*pull["recv"], first_board(), *CM, "--seconds", 5)
    trouble, received = ended(sender).json()["boards"][0]["trouble"], ended(receiver)
    if reader == "recv":
        assert trouble == f"{SERVER_IP}: rejected: insufficient responder resources", trouble
        assert "takes 0 READs at a time, this end has 16: set --pull at both ends or at neither" in received.stderr
    else:
        assert trouble == f"{SERVER_IP}: has no READs outstanding: set --pull at both ends or at neither", trouble


def test_a_board_that_is_not_in_the_list_is_rejected_and_the_others_run(network):
    sender = network.send("-n", 40, "-l", 500, "--rate", 20, *TO_SERVER)
    options = ["--iface", "veth1", "--ip", first_board(1), "--first-source", "1", "--seconds", "5", "--json"]
    stranger = network.start("b", str(network.binary), "send", *options, *TO_SERVER)
    received = verified(network.recv(first_board(), *CM, "--events", 40, *PATIENT), sender)[0]
    assert received["cm_strangers"] > 0 and received["boards"][0]["lives"] == 1
    report = ended(stranger).json()["boards"][0]
    assert report["lives"] == 0
    assert report["trouble"].startswith(f"{SERVER_IP}: "), report["trouble"]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (("--slots", 8), "set --slots and --slot-size equal at both ends"),
        (("--mtu", 1024), "both ends must have --mtu 4096"),
        (("--cm-port", 999), None),
    ],
    ids=["slots", "mtu", "port"],
)
def test_ends_that_do_not_fit_are_named(network, option, expected):
    sender = network.send("-n", 5, "-l", 500, "--seconds", 4, *TO_SERVER, *option)
    receiver = network.recv(first_board(), *CM, "--seconds", 5)
    report, received = ended(sender).json(), ended(receiver)
    trouble = report["boards"][0]["trouble"]
    assert trouble.startswith(f"{SERVER_IP}: rejected: "), trouble
    if expected is None:
        assert trouble.endswith("nothing listens at this port")
    else:
        assert expected in received.stderr, received.stderr


def test_a_server_that_was_killed_and_a_board_that_was_killed_are_connected_again(network, tmp_path):
    sender = network.send("-n", 400, "-l", 1000, "--rate", 100, *TO_SERVER)
    first = network.recv(first_board(), *CM, "--metrics", METRICS, "--out", tmp_path / "first", *PATIENT)
    network.counted(50, "board_messages", first_board())
    killed(first)
    second = network.recv(first_board(), *CM, "--events", 100, "--out", tmp_path / "second", *PATIENT)
    assert verified(second)[0]["readout"]["builder"]["events_complete"] == 100
    killed(sender)
    again = network.send("-n", 100, "-l", 1000, *TO_SERVER)
    verified(network.recv(first_board(), *CM, "--events", 100, *PATIENT), again)
