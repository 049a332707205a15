// SPDX-License-Identifier: SHL-2.1
// Lengths of messages, uniform over min .. max: min + ((max - min + 1) * x) / 2^32
// with x the states of xorshift32 after `seed`, one for each message. One length per cycle.
// max <= min gives min; a length of 0, which no message can have, becomes 1. The first comes four cycles after `load`.
module random_lengths
  import source_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  logic        load,
  input  logic [31:0] seed,  // 0, the one state that stays for ever, means 1
  input  logic [31:0] min,
  input  logic [31:0] max,
  output logic [31:0] length,
  output logic        valid,
  input  logic        take
);
  logic [31:0] state_q, span_q, drawn_length;
  logic [1:0][1:0][31:0] parts_q;  // of the product: half i of the state with half j of the span
  logic [33:0] middle_q;
  logic [31:0] base_q;
  logic [32:0] range;  // max - min, its highest bit the borrow
  logic [3:0] valid_q;
  logic step, is_zero;

  assign step         = !valid || take;
  assign valid        = valid_q[3];
  assign drawn_length = base_q + 32'(middle_q[33:16]);
  // a + b is 0 exactly if a ^ b is (a | b) << 1: the sum's zeros need not wait for its carries.
  assign is_zero      = (base_q ^ 32'(middle_q[33:16])) == (base_q | 32'(middle_q[33:16])) << 1;
  assign range        = 33'(max) - 33'(min);

  always_ff @(posedge clk) begin
    if (step) begin
      state_q  <= drawn(state_q);
      for (int i = 0; i < 2; i++) begin
        for (int j = 0; j < 2; j++) parts_q[i][j] <= 32'(state_q[16*i+:16]) * 32'(span_q[16*j+:16]);
      end
      middle_q <= 34'(parts_q[0][1]) + 34'(parts_q[1][0]) + 34'(parts_q[0][0][31:16]);
      base_q   <= min + parts_q[1][1];
      length   <= is_zero ? 32'd1 : drawn_length;
      valid_q  <= {valid_q[2:0], 1'b1};
    end
    if (load) begin
      span_q  <= range[32] ? '0 : range[31:0] + 32'd1;  // a span of one gives min, as none does
      state_q <= seed == '0 ? 32'd1 : seed;
      valid_q <= '0;
    end
    if (rst) begin
      state_q <= 32'd1;
      span_q  <= '0;
      valid_q <= '0;
    end
  end

  wire unused = &{1'b0, middle_q[15:0], parts_q[0][0][15:0]};
endmodule
