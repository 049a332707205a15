// SPDX-License-Identifier: SHL-2.1
// Words of eight symbols to code groups, two a cycle, the first at bits 9:0, whose bit 0 is first on the line.
// The second symbol of an idle is chosen here: /I1/ makes the running disparity negative, /I2/ leaves it so.
// A word is taken every four cycles; without one the line gets /V/.
// Source: IEEE 802.3 36.2.4.4 (running disparity), 36.2.4.12 (idle).
//
//   word --> pair --> disparity in front of both, kind of idle --> code groups
module pcs_encoder
  import pcs_pkg::*;
(
  input  logic              clk,
  input  logic              rst,
  input  pair_t [3:0]       s_data,  // [0] first on the line
  input  logic              s_valid,
  output logic              s_ready,
  output logic [19:0]       groups
);
  // Words come as fast as they go, with the jitter of a clock crossing: some cycles late is late enough for all.
  localparam logic [3:0] Late = 4'd8;

  logic [3:0] late_q;
  logic       runs;
  logic [1:0] place_q;
  pair_t      pair_q, next_q, line_q;
  logic       flips_even_q, flips_odd_q, is_idle_q;
  logic       plus_q, even_plus_q, odd_plus_q;

  assign runs    = late_q == Late;
  assign s_ready = runs && place_q == 2'd3;

  always_ff @(posedge clk) begin
    if (!s_valid) late_q <= '0;
    else if (!runs) late_q <= late_q + 4'd1;
    place_q <= runs ? place_q + 2'd1 : '0;

    pair_q <= runs && s_valid ? s_data[place_q] : {2{special(OctetError)}};

    // The next stage: the pair with everything but its disparity.
    next_q       <= pair_q;
    flips_even_q <= flips(pair_q.even);
    flips_odd_q  <= flips(pair_q.odd);
    is_idle_q    <= pair_q == Idle2;

    plus_q <= !is_idle_q && (plus_q ^ flips_even_q ^ flips_odd_q);

    if (rst) begin
      late_q  <= '0;
      place_q <= '0;
      plus_q  <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    line_q <= next_q;
    if (is_idle_q && plus_q) line_q.odd.octet <= OctetIdle1;
    even_plus_q <= plus_q;
    odd_plus_q  <= plus_q ^ flips_even_q;

    groups <= {reversed(encode(line_q.odd, odd_plus_q)), reversed(encode(line_q.even, even_plus_q))};
  end
endmodule
