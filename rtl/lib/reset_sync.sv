// SPDX-License-Identifier: SHL-2.1
// Synchronises a signal of another clock, or an asynchronous one, to `clk` with STAGES flip-flops.
// For resets and slow levels (buttons, switches, link status), bit by bit: not for multi-bit words. `d` comes from a
// flip-flop or a pin, at most inverted: other logic can glitch while its inputs change, and `clk` would take the glitch.
module reset_sync #(
  parameter int unsigned STAGES = 3
) (
  input  logic clk,
  input  logic d,
  output logic q
);
  if (STAGES < 2) begin : gen_bad_stages
    $fatal(1, "%m: STAGES = %0d, must be 2 or more", STAGES);
  end

(* ASYNC_REG = "TRUE" *) logic [STAGES-1:0] stage_q;

  always_ff @(posedge clk) stage_q <= {stage_q[STAGES-2:0], d};

  assign q = stage_q[STAGES-1];
endmodule
