// SPDX-License-Identifier: SHL-2.1
// Promises of the code on the line, for any symbols that 1000BASE-X has, in any order: each code group is the symbol's;
// it has four to six ones, and the running disparity that follows from the bits alone is the one that it was encoded
// for; an idle makes it negative; no more than five bits in a row are equal; and a comma is nowhere but at the
// beginning of an even code group, so that a receiver cannot align to anything else.
module pcs_encoder_props
  import pcs_pkg::*;
(
  input logic        clk,
  input logic        rst,
  input pair_t [3:0] s_data,
  input logic [19:0] groups,
  input pair_t       pair_q,
  input pair_t       next_q,
  input pair_t       line_q,
  input logic        flips_even_q,
  input logic        flips_odd_q,
  input logic        is_idle_q,
  input logic        plus_q,
  input logic        even_plus_q,
  input logic        odd_plus_q
);
  localparam logic [3:0] Old = 4'd8;  // cycles after a reset in which what was there before has left

  logic started_q = 1'b0;
  logic [3:0] age_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (rst) age_q <= '0;
    else if (age_q != Old) age_q <= age_q + 4'd1;
  end
  always_comb if (!started_q) assume (rst);

  function automatic logic is_symbol(symbol_t symbol);
    return !symbol.control || symbol.octet inside {OctetStart, OctetEnd, OctetExtend, OctetError};
  endfunction

  function automatic logic is_pair(pair_t pair);
    return is_symbol(pair.odd) && (is_symbol(pair.even) || pair.even == Comma);
  endfunction

  always_comb for (int i = 0; i < 4; i++) assume (is_pair(s_data[i]));

  // ---- what has left ------------------------------------------------------------------------------
  pair_t  was_q;          // the pair whose code groups `groups` are
  logic   was_idle_q;     // of those whose second symbol is chosen
  logic   line_idle_q;
  logic   plus, middle;   // by the bits alone: in front of `groups`, and between the two
  logic   plus_line_q;
  logic [19:0] before_q;  // the groups before
  logic        before_comma_q;
  group_t even, odd;

  assign even = reversed(groups[9:0]);
  assign odd  = reversed(groups[19:10]);
  assign plus = plus_line_q;

  function automatic logic behind(group_t group, logic disparity);
    logic [1:0] left;
    left = leaves(group);
    return left[1] || (disparity && !left[0]);
  endfunction

  assign middle = behind(even, plus);

  always_ff @(posedge clk) begin
    was_q       <= line_q;
    line_idle_q <= is_idle_q;
    was_idle_q  <= line_idle_q;
    before_q    <= groups;
    before_comma_q <= was_q.even == Comma;
    // Until all is known, the disparity that the encoder has.
    plus_line_q <= age_q == Old ? behind(odd, middle) : even_plus_q;
  end

  logic [19:0] equal_ones, equal_zeros, five, is_comma;
  logic [39:0] seen;
  assign seen = {groups, before_q};
  for (genvar i = 0; i < 20; i++) begin : gen_window
    assign five[i]        = &seen[i+:5];
    assign equal_ones[i]  = &seen[i+:6];
    assign equal_zeros[i] = ~|seen[i+:6];
    assign is_comma[i]    = seen[i+:7] == 7'b1111100 || seen[i+:7] == 7'b0000011;
  end

  // Five or six ones, or four, of a group.
  function automatic logic is_even(group_t group);
    return $countones(group) >= 4 && $countones(group) <= 6;
  endfunction

  always_ff @(posedge clk) if (started_q && !rst && age_q == Old) begin
    a_even : assert (decode(even) == was_q.even);
    a_odd : assert (decode(odd) == was_q.odd);
    a_ones : assert (is_even(even) && is_even(odd));
    a_disparity : assert (encode(was_q.even, plus) == even && encode(was_q.odd, middle) == odd);
    if (was_idle_q) a_idle : assert (!behind(odd, middle) && was_q.even == Comma
      && was_q.odd == data(plus ? OctetIdle1 : OctetIdle2));
    a_run : assert (equal_ones == '0 && equal_zeros == '0);
    a_comma : assert (is_comma[19:1] == '0 && (!is_comma[0] || before_comma_q));

    c_idle1 : cover (was_idle_q && plus);
    c_five : cover (five != '0);
    c_plus : cover (plus && middle && behind(odd, middle));
    c_end : cover (was_q.even == special(OctetEnd) && was_q.odd == special(OctetExtend));
  end

  // ---- what the encoder holds: such symbols, and the line's disparity; stage by stage after a reset ---------------
  always_comb if (started_q) begin
    if (age_q >= 4'd1) a_0_pair : assert (is_pair(pair_q));
    if (age_q >= 4'd2) a_0_next : assert (is_pair(next_q));
    if (age_q >= 4'd3) a_0_line : assert (is_pair(line_q));
    if (age_q >= 4'd4) a_0_was : assert (is_pair(was_q));
    if (age_q >= 4'd1) begin
      a_0_flips : assert (flips_even_q == flips(next_q.even) && flips_odd_q == flips(next_q.odd)
        && is_idle_q == (next_q == Idle2));
    end
    if (age_q >= 4'd2) begin
      a_0_idle : assert (!line_idle_q || line_q == {data(even_plus_q ? OctetIdle1 : OctetIdle2), Comma});
      a_0_odd : assert (odd_plus_q == (even_plus_q ^ flips(line_q.even)));
      a_0_plus : assert (plus_q == (!line_idle_q && (even_plus_q ^ flips(line_q.even) ^ flips(line_q.odd))));
    end
    if (age_q >= 4'd3) a_0_was_idle : assert (!was_idle_q || was_q == {data(plus ? OctetIdle1 : OctetIdle2), Comma});
    if (age_q >= 4'd4) begin
      a_0_groups : assert (even == encode(was_q.even, plus) && odd == encode(was_q.odd, middle));
      a_0_behind : assert (even_plus_q == behind(odd, middle));
    end
  end
endmodule

bind pcs_encoder pcs_encoder_props u_props (.*);
