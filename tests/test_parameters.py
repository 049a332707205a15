# SPDX-License-Identifier: Apache-2.0
"""Impossible parameters of a front end end its elaboration with their name, their value and what is allowed.

Each is tried on the module that refuses it, which every top has within it; only the clock's limit is a top's own.
"""

import re
import sys
from pathlib import Path

import gateware_text
import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tb" / "lib"))

import lint  # noqa: E402
import slang  # noqa: E402

import rtl  # noqa: E402

TCP = {"WITH_ROCE": 0, "WITH_TCP": 1, "RING_BYTES": 65536}
TIMED = {"N_IN": 1, "TIMING": 1}
IMPOSSIBLE = [
    ("penstock_core", {"N_QP": 0}, "a power of two, 1 to 256"),
    ("penstock_core", {"N_QP": 3}, "a power of two, 1 to 256"),
    ("penstock_core", {"CLK_KHZ": 0}, "1000 to 1000000"),
    ("penstock_core", {"WITH_QCN": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_CN_TAG": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_CN_TAG": 1, "WITH_QCN": 0}, "0 without QCN"),
    ("penstock_core", {"WITH_SOURCE": 2}, "must be 0 or 1"),
    ("penstock_core", {"RETRANSMIT": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_SERVICES": 0, "WITH_TCP": 1, "RING_BYTES": 65536}, "it must be 1: streams"),
    ("penstock_core", {"WITH_READ": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_READ": 1, "WITH_ROCE": 0, "WITH_TCP": 1, "RING_BYTES": 65536}, "that must be 1"),
    ("penstock_core", {"WITH_RECEIVE": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_RECEIVE": 1, "WITH_ROCE": 0, "WITH_TCP": 1, "RING_BYTES": 65536}, "that must be 1"),
    ("penstock_core", {"WITH_RDMA_CM": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_RDMA_CM": 1}, "services and one of these must be 1"),
    ("penstock_core", {"PULL_SLOTS": 64}, "these must be 1, 1, 0"),
    ("penstock_core", {"PULL_SLOTS": 96, "WITH_READ": 1}, "a power of two, 64 to 4096"),
    ("penstock_core", {"WITH_REQUESTER": 2}, "must be 0 or 1"),
    ("penstock_core", {"WITH_REQUESTER": 0}, "must be 1"),
    ("penstock_core", {"WITH_REQUESTER": 0, "WITH_READ": 1, "WITH_SOURCE": 1}, "these must be 0"),
    ("penstock_1g", {"CLK_KHZ": 10_000}, "19532 or more"),
    ("penstock_dcqcn", {"WITH_QCN": 2}, "must be 0 or 1"),
    ("segmenter", {"RING_BYTES": 5000}, "a power of two, 8192"),
    ("segmenter", {"SLOTS": 2048}, "a power of two, 2 to 1024"),
    ("roce_tx", {"RETRANSMIT": 0, "STORE": 1}, "on chip, STORE 0"),
    ("roce_tx", {"STORE": 2}, "0 .on chip. or 1"),
    ("roce_tx", {"AXI_ADDR_W": 12, "STORE": 1}, "20 to 64"),
    ("tcp_endpoint", {"STORE": 2}, "0 .on chip. or 1"),
    ("tcp_endpoint", {"AXI_ADDR_W": 17, "STORE": 1}, "18 to 64"),
    ("tcp_endpoint", {"RING_BYTES": 2048, "STORE": 1}, "powers of two from 4096"),
    ("transports", {"AXI_ADDR_W": 18, "STORE": 1, **TCP, "WITH_ROCE": 1}, "19 to 64"),
    ("transports", {"WITH_ROCE": 0}, "one of them 1"),
    ("transports", {"WITH_TCP": 2}, "each must be 0 or 1"),
    ("transports", {"N_STREAMS": 65, **TCP}, "1 to 64"),
    ("transports", {"WITH_TCP": 1, "WITH_READ": 1, "STORE": 1, "RING_BYTES": 65536}, "it must be 0"),
    ("event_source", {"N_IN": 17}, "0 .no inputs. to 16"),
    *(
        ("event_source", {"EVENT_BYTES": n, "N_IN": 1}, "a multiple of 64, from 64 to 8388608")
        for n in (0, 100, 8388608 + 64)
    ),
    ("event_source", {"TIMING": 1, "N_IN": 0}, "one detector input or more"),
    ("event_source", {"SECOND_NS": 5, **TIMED}, "10000 to 1000000000"),
    ("event_source", {"TRIGGERS": 48, **TIMED}, "a power of two, 16 to 32768"),
    ("event_source", {"HOOK": 3, "N_IN": 1}, "with inputs 1 .zero suppression. or 2"),
    ("event_source", {"HOOK": 1, "N_IN": 0}, "with inputs 1 .zero suppression. or 2"),
    ("event_source", {"STREAMING": 1, "N_IN": 1}, "must be 0, or 1 with TIMING 1"),
    ("event_source", {"STREAMING": 2, **TIMED}, "must be 0, or 1 with TIMING 1"),
]
# The first is in the list as well; slang itself refuses the other, a literal of more than 32 bits.
BY_VERILATOR = [
    ("penstock_core", {"N_QP": 3}, "a power of two, 1 to 256"),
    ("tcp_meter", {"RING_BYTES": 1 << 31}, "1073741824 or less"),
]


def name(case: tuple) -> str:
    return "-".join([case[0], *(f"{key}{value}" for key, value in case[1].items())])


@pytest.mark.parametrize("module, parameters, allowed", IMPOSSIBLE, ids=map(name, IMPOSSIBLE))
def test_an_impossible_value_is_refused_by_name_with_what_is_allowed(module, parameters, allowed, capfd):
    rtl.generate()
    slang.check([module], parameters)
    refused(parameters, allowed, [line for line in capfd.readouterr().err.splitlines() if "$fatal" in line])


@pytest.mark.parametrize("module, parameters, allowed", BY_VERILATOR, ids=map(name, BY_VERILATOR))
def test_verilator_which_takes_ten_times_as_long_refuses_it_too(module, parameters, allowed):
    rtl.generate()
    refused(parameters, allowed, [line for line in lint.lint((module, parameters)).splitlines() if "USERFATAL" in line])


def refused(parameters, allowed, reported):
    parameter, value = next(iter(parameters.items()))
    pattern = rf"{parameter}( is)? {value}\b.*{allowed}"
    assert any(re.search(pattern, line) for line in reported), f"{reported} lacks {pattern!r}"


def test_every_parameter_of_the_tops_is_tried():
    tried = {parameter for _, parameters, _ in [*IMPOSSIBLE, *BY_VERILATOR] for parameter in parameters}
    for top in ("penstock_xgmii", "penstock_100g"):
        assert set(gateware_text.parameters(top)) - tried == set()


def test_a_build_with_a_module_of_the_users_needs_that_module():
    rtl.generate()
    assert "user_hook" in lint.lint(("event_source", {"N_IN": 1, "HOOK": 2}))
