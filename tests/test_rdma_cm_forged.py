# SPDX-License-Identifier: Apache-2.0
"""`penstock recv --cm rdma`, and `send`, against messages of the connection manager that neither sends.

Promise checked: each is counted and answered as the standard says, within the bounds of docs/rdma-cm.md; boards come up
and run meanwhile.
"""

import itertools
import struct
import threading
from collections import Counter

import pytest
from rdma_mads import DREP, DREQ, MAD_LEN, MRA, REJ, REP, REQ, RTU, Answer, Host, ids, mad, req
from veth import METRICS, SERVER_IP, ended, first_board, until, verified

pytestmark = pytest.mark.usefixtures("namespaces")
CM = ("--cm", "rdma")
STRANGER, LISTED = "10.77.3.9", "10.77.3.10"


def listening(network, *boards: str):
    receiver = network.recv(*boards, *CM, "--metrics", METRICS, "--event-timeout", 5000)
    until("metrics", network.metrics)
    return receiver


def interrupted(receiver) -> dict:
    receiver.send_signal(2)
    return ended(receiver).json()


def test_a_stranger_is_answered_with_the_reason_and_changes_nothing(network):
    receiver, host = listening(network, LISTED), Host(network, STRANGER)
    refused = host.exchange(REQ, req(STRANGER, 0x51, qpn=9), transaction=77)
    assert (refused.attribute, refused.reason, refused.transaction, refused.remote) == (REJ, 28, 77, 0x51)
    refused = host.exchange(REP, ids(0xA, 0xB))
    assert (refused.attribute, refused.reason, refused.local, refused.remote) == (REJ, 6, 0xB, 0xA)
    assert refused.data[8] >> 6 == 1, "it rejects the REP"
    assert host.exchange(DREQ, ids(0xA, 0xB))[:4] == (DREP, 1, 0xB, 0xA)
    for attribute in (RTU, DREP, MRA, REJ):
        assert host.exchange(attribute, ids(0xA, 0xB)) is None, hex(attribute)
    report = interrupted(receiver)
    assert report["cm_strangers"] == 7 and report["boards"][0]["lives"] == 0
    counters = report["counters"]
    assert (counters["rdma_cm_requests"], counters["rdma_cm_refused"], counters["rdma_cm_unknown"]) == (0, 2, 5)


def test_messages_that_are_cut_or_of_another_kind_are_counted(network):
    receiver, host = listening(network, LISTED), Host(network, LISTED)
    good = mad(REQ, req(LISTED, 0x51))
    cut = [host.frame(good[:length]) for length in range(0, MAD_LEN, 4)]
    # Performance management, an earlier class, Get, LAP; another Q_Key, queue pair, opcode.
    kinds = [host.frame(mad(REQ, req(LISTED, 1), header=header)) for header in (b"\1\4\2\3", b"\1\7\1\3", b"\1\7\2\1")]
    kinds += [host.frame(mad(0x19, b"")), host.frame(good, qkey=1), host.frame(good, source_qpn=2)]
    kinds += [host.frame(good, opcode=0x04), host.frame(good + bytes(4))]
    host.send(*cut, *kinds)
    assert list(host.answers()) == []
    report = interrupted(receiver)
    assert report["counters"]["rdma_cm_malformed"] == len(cut) + len(kinds)
    assert report["counters"]["rdma_cm_requests"] == report["boards"][0]["lives"] == 0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"port": 1}, 8),
        ({"service": 1}, 9),
        ({"mtu": 0}, 26),
        ({"mtu": 3}, 26),
        ({"pkey": 0x8001}, 5),
        ({"ip": 6}, 5),
        ({"qpn": 1}, 5),
    ],
)
def test_a_request_that_cannot_be_met_is_rejected_with_its_reason(network, changed, reason):
    receiver, host = listening(network, LISTED), Host(network, LISTED)
    answer = host.exchange(REQ, req(LISTED, 0x51, **changed))
    assert (answer.attribute, answer.reason, answer.remote) == (REJ, reason, 0x51)
    if changed.get("mtu") == 0:
        assert (answer.data[9] >> 1, answer.data[12]) == (1, 5), "the server's path MTU: 4096"
    report = interrupted(receiver)
    assert report["counters"]["rdma_cm_refused"] == 1 and report["boards"][0]["lives"] == 0


def test_repeated_messages_have_the_same_answer_and_wrong_identifiers_end_nothing(network):
    receiver, host = listening(network, LISTED), Host(network, LISTED)
    request = req(LISTED, 0x51)
    first = host.exchange(REQ, request)
    assert first.attribute == REP
    again = host.exchange(REQ, request)
    assert again == first, "no other queue pair"
    assert host.exchange(REQ, req(LISTED, 0x51, psn=6)).reason == 30, "the identifier is in use"
    for _ in range(3):
        assert host.exchange(RTU, ids(0x51, first.local)) is None
    network.counted(1, "boards_up")
    for wrong in (ids(0x52, first.local), ids(0x51, first.local ^ 1)):
        assert host.exchange(DREQ, wrong + struct.pack(">I", first.qpn << 8)).attribute == DREP
    assert host.exchange(DREQ, ids(0x51, first.local) + struct.pack(">I", (first.qpn ^ 1) << 8)) is None
    stranger = Host(network, STRANGER)
    stranger.exchange(DREQ, ids(0x51, first.local) + struct.pack(">I", first.qpn << 8))
    assert network.metrics()["boards_up"] == 1
    for _ in range(2):
        answer = host.exchange(DREQ, ids(0x51, first.local) + struct.pack(">I", first.qpn << 8), transaction=5)
        assert answer[:4] == (DREP, 5, first.local, 0x51)
    until("end", lambda: network.metrics()["boards_up"] == 0)
    report = interrupted(receiver)
    counters = report["counters"]
    assert report["boards"][0]["lives"] == 1
    assert (counters["rdma_cm_established"], counters["rdma_cm_disconnected"]) == (1, 1)
    assert counters["rdma_cm_repeated"] >= 2


def test_one_address_holds_no_more_connections_than_it_may(network):
    receiver, host = listening(network, LISTED), Host(network, LISTED)
    seen = Counter()

    def request(n: int) -> Answer:
        answer = host.exchange(REQ, req(LISTED, 0x100 + n, qpn=0x100 + n))
        seen[answer.attribute, answer.reason if answer.attribute == REJ else 0] += 1
        return answer

    for n in range(50):
        request(n)
    assert seen[REP, 0] > 0 and seen[REJ, 1] > 40, f"no queue pair is available: {seen}"
    numbers = itertools.count(50)
    until("room", lambda: request(next(numbers)).attribute == REP)
    interrupted(receiver)


def test_a_board_answers_strangers_with_the_reason_and_sends_on(network):
    board = first_board()
    host = Host(network, STRANGER, to=board)
    flood = [host.frame(b""), *[host.frame(mad(DREQ, ids(n, n))) for n in range(1000)]]
    sender = network.send("-l", 1000, "--rate", 100, "--connect", SERVER_IP, *CM)
    receiver = network.recv(board, *CM, "--event-timeout", 5000, "--metrics", METRICS)
    network.counted(5, "events_complete")
    assert host.exchange(REQ, req(STRANGER, 0x51)).reason == 8, "nothing listens"
    assert host.exchange(REP, ids(0xA, 0xB)).reason == 6
    assert host.exchange(DREQ, ids(0xA, 0xB))[:4] == (DREP, 1, 0xB, 0xA)
    host.send(*flood)
    network.counted(network.metrics()["events_complete"] + 50, "events_complete")
    for process in (receiver, sender):
        process.send_signal(2)
    received, sent = verified(receiver, sender)
    assert received["boards"][0]["lives"] == sent["boards"][0]["lives"] == 1
    assert (sent["cm_strangers"], sent["rdma_cm_malformed"], sent["rdma_cm_refused"]) == (1003, 1, 2)
    assert sent["rdma_cm_dropped"] > 0


def test_boards_come_up_and_run_while_a_stranger_floods_queue_pair_1(network):
    host, over = Host(network, STRANGER), threading.Event()
    frames = [host.frame(mad(REQ, req(STRANGER, n, qpn=n))) for n in range(2, 66)]
    frames += [host.frame(mad(DREQ, ids(n, n))) for n in range(16)] + [host.frame(b"")]

    def flood() -> None:
        while not over.wait(0.001):
            host.send(*frames)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        boards = [first_board(k) for k in range(2)]
        sender = network.send("--boards", 2, "-n", 200, "-l", 1000, "--rate", 200, "--connect", SERVER_IP, *CM)
        receiver = network.recv(*boards, *CM, "--events", 200, "--event-timeout", 5000, "--bring-up", 60)
        received, sent = verified(receiver, sender)
    finally:
        over.set()
        thread.join()
    counters = received["counters"]
    assert received["readout"]["builder"]["events_complete"] == 200
    assert [board["lives"] for board in received["boards"]] == [1, 1]
    assert received["cm_strangers"] > 1000 and counters["rdma_cm_malformed"] > 10
    answered = received["cm_strangers"] - counters["rdma_cm_dropped"]
    print(f"{received['cm_strangers']} messages of strangers in {received['seconds']:.2f} s, {answered} answered")
    turns = received["seconds"] / 0.002
    assert answered <= 4 * (turns + 1), "four in each turn"
    assert [board["messages"] for board in sent["boards"]] == [200, 200]
