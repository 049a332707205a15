// SPDX-License-Identifier: SHL-2.1
// The length of a stage of QCN's timer and byte counter: their periods with jitter, halved after fast
// recovery. Runs in parallel with cc_step, stage by stage; equal to crates/cc/src/{qcn,lfsr}.rs to the bit.
// IEEE 802.1Qau; the QCN hardware evaluation's parameter page (both counters +-30 %).
//
//   1 the words come in          4 factor   1 - jitter .. 1 + jitter
//   2 which length to draw       5 multiply period * factor, in two halves
//   3 random byte * jitter       6 round
module qcn_lengths
  import penstock_pkg::*;
  import cc_pkg::*;
(
  input logic       clk,

  input logic       in_valid,
  input qp_t        in_qp,
  input logic       in_fresh,  // the LFSR starts at the seed
  input qcn_state_t in_state,

  input  logic        s1_valid,
  input  logic [31:0] s1_seed,  // parameters
  input  logic [6:0]  s1_jitter,
  input  logic        s1_live,  // neither idle nor cut
  input  logic [31:0] s1_timer_period,
  input  logic [31:0] s1_byte_period,
  input  logic        s1_timer_half,
  input  logic        s1_byte_half,
  output qcn_state_t  s1_state,  // as it was; its LFSR means nothing after a fresh start
  output logic        s1_timer_undrawn,
  output logic        s1_byte_undrawn,

  input logic s2_valid,
  input logic s2_timer_over,  // a new length is to be drawn at the next visit
  input logic s2_bytes_over,

  input  logic       s3_valid,
  input  logic       s4_valid,
  input  logic       s5_valid,
  output qcn_state_t out_state
);

  // Eight shifts of the Galois LFSR x^32 + x^22 + x^2 + x + 1.
  function automatic logic [31:0] drawn(input logic [31:0] lfsr);
    logic [31:0] value;
    value = lfsr;
    for (int i = 0; i < 8; i++) value = (value >> 1) ^ (value[0] ? 32'h8020_0003 : '0);
    return value;
  endfunction

  // Keeps the LFSRs of neighbouring queue pairs far apart (2^32 / golden ratio); a table, not a multiplier.
  function automatic logic [15:0][31:0] multiples(input logic [31:0] step);
    logic [15:0][31:0] table_;
    for (int i = 0; i < 16; i++) table_[i] = step * 32'(i);
    return table_;
  endfunction
  localparam logic [31:0] Spread = 32'h9E37_79B9;
  localparam logic [15:0][31:0] SpreadLow = multiples(Spread);
  localparam logic [15:0][31:0] SpreadHigh = multiples(Spread << 4);

  // ---- 1 ----------------------------------------------------------------------------------------
  logic        s1_fresh_q;
  logic [31:0] s1_spread_q;

  always_ff @(posedge clk) begin
    if (in_valid) begin
      s1_state <= in_state;
      s1_timer_undrawn <= in_state.timer_limit == '0;
      s1_byte_undrawn <= in_state.byte_limit == '0;
      s1_fresh_q <= in_fresh;
      s1_spread_q <= SpreadLow[in_qp[3:0]] + SpreadHigh[in_qp[7:4]];
    end
  end

  // ---- 2: which length --------------------------------------------------------------------------
  qcn_state_t s2_q;           // a length that is drawn is its period until the end
  logic       s2_timer_q, s2_bytes_q;  // at most one of the two is drawn
  logic       s2_behind_q;             // the byte counter's turn is at the next visit
  logic       s2_half_q;
  logic [7:0] s2_random_q;
  logic [6:0] s2_jitter_q;

  always_ff @(posedge clk) begin
    if (s1_valid) begin
      automatic logic timer = s1_live && s1_timer_undrawn && s1_timer_period != '0;
      automatic logic [31:0] start = s1_seed ^ s1_spread_q;
      s2_q <= s1_state;
      if (s1_fresh_q) s2_q.lfsr <= {start[31:1], start[0] || start == '0};  // zero would stay zero
      // a period of 0 leaves a length undrawn
      if (s1_live && s1_timer_undrawn) s2_q.timer_limit <= s1_timer_period;
      if (s1_live && s1_byte_undrawn) s2_q.byte_limit <= s1_byte_period;
      s2_timer_q <= timer;
      s2_bytes_q <= s1_live && s1_byte_undrawn && s1_byte_period != '0 && !timer;
      s2_behind_q <= s1_byte_undrawn && timer;
      s2_half_q <= timer ? s1_timer_half : s1_byte_half;
      s2_random_q <= 8'(drawn(s1_state.lfsr));
      s2_jitter_q <= s1_jitter;
    end
  end

  // ---- 3: jitter --------------------------------------------------------------------------------
  qcn_state_t  s3_q;
  logic        s3_timer_q, s3_bytes_q, s3_half_q;
  logic [7:0]  s3_spread_q;  // 0 .. 2 jitter
  logic [6:0]  s3_jitter_q;

  always_ff @(posedge clk) begin
    if (s2_valid) begin
      s3_q <= s2_q;
      if (s2_timer_q || s2_bytes_q) s3_q.lfsr <= drawn(s2_q.lfsr);
      if (s2_timer_over) s3_q.timer_limit <= '0;
      if (s2_bytes_over || s2_behind_q) s3_q.byte_limit <= '0;
      s3_timer_q <= s2_timer_q;
      s3_bytes_q <= s2_bytes_q;
      s3_half_q <= s2_half_q;
      s3_spread_q <= 8'((16'(s2_random_q) * 16'({s2_jitter_q, 1'b1})) >> 8);
      s3_jitter_q <= s2_jitter_q;
    end
  end

  // ---- 4: factor --------------------------------------------------------------------------------
  qcn_state_t  s4_q;
  logic        s4_timer_q, s4_bytes_q, s4_half_q;
  logic [8:0]  s4_factor_q;  // 256 = 1
  logic [31:0] s4_period_q;

  always_ff @(posedge clk) begin
    if (s3_valid) begin
      s4_q <= s3_q;
      s4_timer_q <= s3_timer_q;
      s4_bytes_q <= s3_bytes_q;
      s4_half_q <= s3_half_q;
      s4_factor_q <= 9'd256 - 9'(s3_jitter_q) + 9'(s3_spread_q);
      s4_period_q <= s3_timer_q ? s3_q.timer_limit : s3_q.byte_limit;
    end
  end

  // ---- 5: multiply ------------------------------------------------------------------------------
  qcn_state_t  s5_q;
  logic        s5_timer_q, s5_bytes_q, s5_half_q;
  logic [24:0] s5_high_q, s5_low_q;

  always_ff @(posedge clk) begin
    if (s4_valid) begin
      s5_q <= s4_q;
      s5_timer_q <= s4_timer_q;
      s5_bytes_q <= s4_bytes_q;
      s5_half_q <= s4_half_q;
      s5_high_q <= 25'(s4_period_q[31:16]) * 25'(s4_factor_q);
      s5_low_q <= 25'(s4_period_q[15:0]) * 25'(s4_factor_q);
    end
  end

  // ---- 6: round ---------------------------------------------------------------------------------
  // Rounded up and held at the highest value.
  function automatic logic [31:0] length(input logic [24:0] high, input logic [24:0] low, input logic half);
    logic [41:0] sum;
    sum = {1'b0, high, 16'b0} + 42'(low) + (half ? 42'd511 : 42'd255);
    if (half) sum >>= 1;
    return sum[41:40] != '0 ? '1 : sum[39:8];
  endfunction

  always_ff @(posedge clk) begin
    if (s5_valid) begin
      out_state <= s5_q;
      if (s5_timer_q) out_state.timer_limit <= length(s5_high_q, s5_low_q, s5_half_q);
      if (s5_bytes_q) out_state.byte_limit <= length(s5_high_q, s5_low_q, s5_half_q);
    end
  end
endmodule
