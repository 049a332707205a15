# SPDX-License-Identifier: Apache-2.0
"""The second front end of the linter refuses what it is there for, and nothing else of the same module."""

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "tb" / "lib")]

import slang  # noqa: E402

MODULE = """
module planted (input logic clk, input logic a, input logic b, output logic q);
  logic [1:0] count_q;
  logic both, both_q;
  {body}
  assign q = |count_q;
endmodule
"""
CROSSES = "always_ff @(posedge clk) both_q <= both; reset_sync u_count (.clk, .d({source}), .q(count_q[0]));"
CLEAN = "assign both = a && b; assign count_q[1] = 1'b0; "


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("assign both = a; always_ff @(posedge clk) {count_q, both_q} <= {both, a, b};", None),
        (
            "assign both = a; initial count_q = 0; always_ff @(posedge clk) {count_q, both_q} <= {both, a, b};",
            "planted",
        ),
        (CLEAN + CROSSES.format(source="both_q"), None),
        (CLEAN + CROSSES.format(source="!a"), None),
        (CLEAN + CROSSES.format(source="a && b"), "planted.u_count"),
        (CLEAN + CROSSES.format(source="!both"), "planted.u_count"),
    ],
)
def test_what_two_processes_drive_and_logic_before_a_synchroniser_are_refused(tmp_path, body, complaint):
    source = tmp_path / "planted.sv"
    source.write_text(MODULE.replace("{body}", body))
    found = slang.check(["planted"], {}, [source])
    assert bool(found) == bool(complaint) and all(complaint in line for line in found)
