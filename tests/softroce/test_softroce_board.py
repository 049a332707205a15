# SPDX-License-Identifier: Apache-2.0
"""The gateware itself, verilated, against the kernel's rdma_rxe."""

from dataclasses import replace
from pathlib import Path

import pytest
from board_case import BoardCase, expected_hash, run

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    "write_imm, PSNs that wrap": BoardCase(),
    "messages of many packets": BoardCase(length=100_000, messages=3, slots=4),
    "small packets": BoardCase(length=4000, messages=8, slots=8, mtu=256),
    "a slow consumer": BoardCase(length=4096, messages=12, slots=4, sink={"until_refused": True, "receives": 2}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_prbs_of_the_gateware_lands_byte_for_byte(machine, built, case):
    done = run(machine, built / "penstock", case)
    ends = [completion[2] for completion in done.received["completions"]]
    assert ends == ["Success"] * case.messages and done.received["faults"] == [None]
    assert done.board["messages"]["ok"] == case.messages and not done.board["messages"]["failed"]
    if "until_refused" in case.sink:
        assert done.board["counters"]["rnr_nak"] > 0
    else:
        assert done.ring_hash == expected_hash(case)


def switched(machine, penstock, scenario: str, case: BoardCase) -> dict:
    """The board's report of a run through the emulated switch, in which nothing may be lost."""
    options = ("--switch", str(ROOT / "scenarios" / f"{scenario}.toml"))
    done = run(machine, penstock, replace(case, options=options))
    ends = [completion[2] for completion in done.received["completions"]]
    assert ends == ["Success"] * case.messages and done.ring_hash == expected_hash(case)
    assert done.board["messages"] == {"ok": case.messages, "failed": 0, "errors": {}, "first_error": None}
    assert not done.board["counters"]["packets_retransmitted"]
    switch = done.board["switch"]
    assert len(switch["notifications"]) == done.board["queue_pairs"][0]["cnps_handled"] > 0
    return switch


def test_figure_9_the_first_cnp_halves_the_rate_and_later_ones_cut_less(machine, built):
    """AdvCam VI B: alpha = 1, about 0.8, about 0.3."""
    case = BoardCase(length=16384, messages=20, slots=20)
    cuts = switched(machine, built / "penstock", "advcam-9", case)["cuts"]
    for cut in cuts:
        print("{at_us:.0f} us, alpha {alpha:.3f}: from {before_gbps:.2f} to {after_gbps:.2f} Gb/s".format(**cut))
        assert cut["after_gbps"] == pytest.approx(cut["before_gbps"] * (1 - cut["alpha"] / 2), rel=1e-3)
    first, second, third = (cut["alpha"] for cut in cuts)
    assert (first, cuts[0]["before_gbps"], cuts[0]["after_gbps"]) == (1, 10, 5)
    assert 0.7 < second < 0.9 and 0.2 < third < 0.4


@pytest.mark.parametrize("scenario, length, least", [("advcam-9-staircase", 49152, 3), ("advcam-9-storm", 16384, 20)])
def test_a_staircase_of_thresholds_and_a_storm_of_cnps_lose_no_work_request(machine, built, scenario, length, least):
    case = BoardCase(length=length, messages=24, slots=24, mtu=1024)
    assert len(switched(machine, built / "penstock", scenario, case)["notifications"]) >= least
