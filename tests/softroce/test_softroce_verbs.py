# SPDX-License-Identifier: Apache-2.0
"""The verbs back end and our requester against the kernel's rdma_rxe: arrival, states, and comparison byte for byte."""

import json
import subprocess

import pytest
from verbs_case import HOST_IP, HOST_MAC, VERBS, Case, Message, Outcome, run, sink_plan, source_plan


@pytest.fixture
def transfer(machine, built, tmp_path):
    """Runs a case in the session's machine."""

    def go(case: Case) -> Outcome:
        return run(machine, built / "examples/rc_source", tmp_path, case)

    return go


def in_turn(verb: str, count: int, length: int, slots: int = 16) -> list[Message]:
    """Messages around the ring; a SEND takes receives in order, so its slot is where a WRITE of its number would go.

    Plain WRITEs make no completion; one WRITE WITH IMMEDIATE at the end says that they are there.
    """
    messages = [Message(verb, length, slot=n % slots, imm=n) for n in range(count)]
    return messages + [Message("write_imm", 1, slot=count % slots)] * (verb == "write")


def test_the_device_is_found_and_named_with_its_gid(transfer):
    outcome = transfer(Case(in_turn("send", 1, 64)))
    assert outcome.found == "rxe0 port 1, GID 1 10.77.0.1 (RoCE v2, IPv4) on eth0, path MTU up to 4096"


@pytest.mark.parametrize("mtu", [256, 512, 1024, 2048, 4096])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_at_every_mtu_arrives_byte_for_byte(transfer, verb, mtu):
    lengths = [1, mtu - 1, mtu, mtu + 1, 5 * mtu + 3]
    messages = [Message(verb, length, slot=n, imm=n + 7) for n, length in enumerate(lengths)]
    case = Case(messages + [Message("write_imm", 1, slot=9)] * (verb == "write"), mtu=mtu)
    transfer(case).assert_clean(case)


@pytest.mark.parametrize("verb", ["write_imm", "send"])
def test_a_message_of_three_megabytes_and_a_half_arrives(transfer, verb):
    case = Case([Message(verb, 3_500_001)], mtu=4096, slots=1, slot_bytes=3_600_000)
    transfer(case).assert_clean(case)


def test_psns_wrap(transfer):
    case = Case(in_turn("write_imm", 20, 3000), psn=(1 << 24) - 25, mtu=1024)
    transfer(case).assert_clean(case)


FAULTS = {
    "loss": {"loss": 0.03},
    "duplication": {"duplicate": 0.2},
    "reordering": {"reorder": 0.05},
    "corruption": {"corrupt": 0.03},
    "all": {"loss": 0.01, "duplicate": 0.05, "reorder": 0.02, "corrupt": 0.01},
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("verb", ["write_imm", "send_imm"])
def test_faults_on_the_way_are_repaired(transfer, verb, faults):
    case = Case(in_turn(verb, 40, 9000), faults=faults, seed=5)
    outcome = transfer(case)
    assert any(outcome.sent["faults"].values()), "no fault was made"
    outcome.assert_clean(case)


@pytest.mark.parametrize("verb", ["write_imm", "send"])
def test_a_slow_consumer_holds_the_sender_by_rnr_and_loses_nothing(transfer, verb):
    case = Case(in_turn(verb, 12, 4000, slots=4), slots=4, sink={"receives": 2, "until_refused": True})
    outcome = transfer(case)
    assert "rnr_nak: 0" not in outcome.sent["counters"][0]
    arrived = [(*c[:1], *c[2:]) for c in outcome.received["completions"]]
    assert [c[1] for c in arrived] == ["Success"] * 12
    assert [end[2] for end in outcome.sent["completions"]] == ["Success"] * 12


@pytest.mark.parametrize("shared", [False, True], ids=["rings", "pool"])
def test_what_was_acknowledged_and_is_not_yet_taken_when_a_queue_pair_is_closed_is_reported(transfer, shared):
    messages = [Message("send_imm", 500 + n, slot=n // 2, qp=n % 2, imm=n) for n in range(20)]
    sink = {"unpolled": True, "shared": shared, "receives": 24}  # of a pool each queue pair has a quarter at first
    case = Case(messages, qps=2, slots=48, sink=sink, dump=False)
    outcome = transfer(case)
    assert [end[2] for end in outcome.sent["completions"]] == ["Success"] * 20, "the machine has acknowledged all"
    came = [tuple(completion) for completion in outcome.received["last"] if completion[2] == "Success"]
    for qp in range(2):
        of_qp = [(completion[4], completion[5]) for completion in came if completion[0] == qp]
        assert of_qp == [(n, 500 + n) for n in range(qp, 20, 2)]
    posted = 24 if shared else 48
    assert len(outcome.received["last"]) == posted, "what was not filled is told too: the driver has flushed a ring's"


def test_many_queue_pairs_send_into_one_pool_that_is_smaller_than_what_they_send(transfer):
    qps = 24
    messages = [Message("send_imm", 2000 + 100 * qp + n, qp=qp, imm=n) for n in range(6) for qp in range(qps)]
    sink = {"shared": True, "receives": 48, "until_refused": True}
    case = Case(messages, qps=qps, slots=48, slot_bytes=8192, faults={"loss": 0.01}, seed=11, sink=sink, timeout_s=40)
    outcome = transfer(case)
    outcome.assert_clean(case)
    assert not all("rnr_nak: 0," in counters for counters in outcome.sent["counters"]), "the pool was empty at times"
    assert outcome.received["srq_limit_reached"] > 0, "the limit was reached before that"
    ends = [completion[1] for completion in outcome.received["completions"]]
    assert set(ends) == set(range(48)), "every receive was posted again"


def test_a_write_into_a_pool_is_refused_and_ends_no_other_queue_pair(transfer):
    messages = [Message("write_imm", 100, arrives=False), Message("send", 100, qp=1)]
    sink = {"shared": True, "messages": 1}
    outcome = transfer(Case(messages, qps=2, sink=sink, dump=False, timeout_s=10))
    ends = sorted(end[2] for end in outcome.sent["completions"])
    assert ends == ["RemAccessErr", "Success"], outcome.sent
    assert [c[0] for c in outcome.received["completions"] if c[2] == "Success"] == [1]


REFUSED = {
    "a wrong key": Message("write_imm", 100, rkey_xor=0x100, arrives=False),
    "an address behind the ring": Message("write_imm", 100, slot=15, offset=(1 << 16) - 50, arrives=False),
    "an address in front of the ring": Message("write_imm", 100, offset=-1, arrives=False),
}


@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED)
def test_a_forbidden_write_changes_no_memory_and_the_queue_pair_opens_again(transfer, bad):
    case = Case([Message("write_imm", 500, slot=1, imm=3), bad], timeout_s=10, sink={"messages": 2})
    outcome = transfer(case)
    assert [end[2] for end in outcome.sent["completions"]] == ["Success", "RemAccessErr"]
    assert "ERR" in outcome.received["faults"][0], outcome.received
    assert outcome.hashes == outcome.expected
    good = Case(case.messages[:1])
    transfer(good).assert_clean(good)


def test_a_send_that_is_too_long_ends_both_sides_with_an_error(transfer):
    outcome = transfer(Case([Message("send", 5000)], slot_bytes=4096, dump=False, timeout_s=10))
    assert outcome.sent["completions"][0][2] in ("RemInvReqErr", "RemOpErr", "RemAccessErr")
    assert outcome.received["faults"][0] or outcome.received["completions"][0][2] != "Success"


def test_four_queue_pairs_at_once_keep_their_rings_apart(transfer):
    messages = [Message("write_imm", 6000 + 10 * qp, slot=n % 16, qp=qp, imm=n) for n in range(16) for qp in range(4)]
    case = Case(messages, qps=4, mtu=2048, faults={"loss": 0.01, "reorder": 0.01}, seed=3)
    transfer(case).assert_clean(case)


def test_a_queue_pair_opens_and_closes_a_hundred_times(machine, built, tmp_path):
    lives = 100
    case = Case([Message("write_imm", 3000, slot=2, imm=9)], slots=4, sink={"lives": lives}, dump=False)
    payload = tmp_path / "payload"
    payload.write_bytes(bytes(3000))
    machine.check(f"arp -s {HOST_IP} {HOST_MAC}")
    source = [built / "examples/rc_source"]
    qpns = set()
    with subprocess.Popen(source, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as peer:
        for line in machine.lines(f"verbs_sink '{json.dumps(sink_plan(case))}'"):
            if "qps" in (report := json.loads(line or "{}")):
                qpns.add(report["qps"][0]["qpn"])
                print(json.dumps(source_plan(machine, payload, case, report["qps"])), file=peer.stdin, flush=True)
                assert json.loads(peer.stdout.readline())["completions"] == [[17, 0, "Success"]]
            elif report:
                assert report["completions"] == [[0, 0, "Success", "write_imm", 9, 3000]]
    assert len(qpns) == lives, "each life has a number of its own"


@pytest.mark.parametrize("mode", ["busy", "event", "hybrid:200"])
def test_every_way_to_poll_takes_every_completion(transfer, mode):
    case = Case(in_turn("write_imm", 60, 2000, slots=16), sink={"poll": mode})
    transfer(case).assert_clean(case)


def test_no_device_or_address_that_is_not_there_is_opened(machine):
    def error(plan: str) -> str:
        result = machine.run(f"verbs_sink '{plan}'")
        assert result.status == 1
        return result.output

    assert "there is no RDMA device mlx5_0; there are: rxe0" in error('{"device": "mlx5_0"}')
    assert "no active port with a RoCE v2 GID of 10.9.9.9" in error('{"gid": "10.9.9.9"}')
    assert "rxe0 port 1 GID 0 fe80::" in error('{"gid": "0"}')
    nobody = '{"ip": "10.77.0.99", "qpn": 1, "psn": 0, "mtu": 1024, "rnr_us": 10}'
    assert "nobody answers ARP for 10.77.0.99" in error(f'{{"qps": [{nobody}]}}')


def test_the_library_is_loaded_at_run_time_and_missed_with_a_clear_message(machine):
    try:
        machine.check("for it in /lib/*/libibverbs.so.1 /usr/lib/*/libibverbs.so.1; do mv $it $it.hidden; done; true")
        result = machine.run("verbs_sink '{}'")
    finally:
        machine.check("for it in /lib/*/*.hidden /usr/lib/*/*.hidden; do mv $it ${it%.hidden}; done; true")
    assert result.status == 1 and "libibverbs.so.1 is not on this machine" in result.output
