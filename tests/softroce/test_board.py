# SPDX-License-Identifier: Apache-2.0
"""The gateware itself, verilated, against the kernel's rdma_rxe."""

import pytest
from board_case import BoardCase, expected_hash, run

CASES = {
    "write_imm, PSNs that wrap": BoardCase(),
    "send": BoardCase(options=("--verb", "send")),
    "messages of many packets": BoardCase(length=100_000, messages=3, slots=4),
    "small packets": BoardCase(length=4000, messages=8, slots=8, mtu=256),
    "a slow consumer": BoardCase(length=4096, messages=12, slots=4, sink={"delay_us": 5000, "receives": 2}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_prbs_of_the_gateware_lands_byte_for_byte(machine, built, case):
    done = run(machine, built / "penstock", case)
    ends = [completion[2] for completion in done.received["completions"]]
    assert ends == ["Success"] * case.messages and done.received["faults"] == [None]
    assert done.board["messages"]["ok"] == case.messages and not done.board["messages"]["failed"]
    if "delay_us" in case.sink:
        assert done.board["counters"]["rnr_nak"] > 0
    else:
        assert done.ring_hash == expected_hash(case)
