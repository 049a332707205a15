# SPDX-License-Identifier: Apache-2.0
"""The lint of SystemVerilog's layout (`tb/lib/layout.py`): accepted layouts, and each fault that it must name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tb" / "lib"))

import layout

GOOD = """\
// A header (with a bracket
module adder
  import some_pkg::*;
#(
  parameter int unsigned W = 8
) (
  input  logic [W-1:0] a,
  output logic [W-1:0] sum_q
);
  for (genvar i = 0; i < 2; i++) begin : gen_lane
    assign lane[i] = a[i]
                     && !a[W-1];
  end

  always_comb begin
    unique casez (state_q)
      2'd0, 2'd1:
        if (a[0]) begin : anything
          next = '{
            wide: 1'b1,  // else (no statement
            low: f(a,
                   sum_q)
          };
        end else begin
          next = "begin";
        end
      default: next = '0;
    endcase
  end
`ifndef SYNTHESIS
  a_held : assert property (@(posedge clk) disable iff (rst)
    a |=> $stable(sum_q));
`endif
endmodule
"""

FAULTS = [
    ("  parameter int", "    parameter int", ":5: indented by 4, must be 2"),
    ("  import some", "import some", ":3: indented by 0, must be at least 2"),
    ("                     && !a", " && !a", ":12: indented by 1, must be at least 6"),
    ("      2'd0, 2'd1", "    2'd0, 2'd1", ":17: indented by 4, must be 6"),
    ("        if (a[0])", "      if (a[0])", ":18: indented by 6, must be at least 8"),
    ("            wide", "              wide", ":20: indented by 14, must be 12"),
    ("          };", "         };", ":23: indented by 9, must be 10"),
    ("    endcase", "      endcase", ":28: indented by 6, must be 4"),
    ("begin : gen_lane", "begin : g_lane", ":10: generate block `g_lane`, its name must begin with gen_"),
    ("1'b1,", "1'b1,\t", ":20: tab, or spaces at the end of the line"),
    ("    endcase\n", "", ":28: `end` where `endcase` is expected"),
    ("endmodule\n", "", "x.sv: `module` has no `endmodule`"),
]


def test_text_in_the_one_layout_passes():
    assert layout.complaints(Path("x.sv"), GOOD) == []


@pytest.mark.parametrize("right, wrong, complaint", FAULTS)
def test_a_line_out_of_place_is_named_with_what_is_right(right, wrong, complaint):
    assert right in GOOD
    found = layout.complaints(Path("x.sv"), GOOD.replace(right, wrong, 1))
    assert any(complaint in line for line in found), found
