// SPDX-License-Identifier: SHL-2.1
// Promises of QCN's congestion point with Q_eq, w and jitter of the QCN hardware evaluation, and any queue, table and
// seed, if settings do not change: a message has |F_b| from 1 to 63, only for a queue that is above Q_eq or has
// grown; |F_b| is 63 times the clipped congestion over its highest value, rounded down; a frame is sampled only after
// as many octets as the sample before it has drawn, by a factor of 1 - jitter to 1 + jitter; a sample makes the point
// busy for 12 cycles.
module congestion_point_props
  import switch_pkg::*;
(
  input logic           clk,
  input logic           rst,
  input qcn_point_cfg_t cfg,
  input logic           in_valid,
  input logic [15:0]    in_bytes,
  input logic           busy,
  input logic           out_valid,
  input qcn_sample_t    out,
  input logic [2:0]     state_q,
  input logic           fresh_q,
  input logic signed [QueueBytesW+2:0] until_q,
  input queue_bytes_t   queue_q,
  input queue_bytes_t   queue_old_q,
  input logic signed [QueueBytesW:0] growth_q,
  input logic signed [QueueBytesW:0] excess_q,
  input logic [WeightW:0] twice_q,
  input logic signed [QueueBytesW+WeightW+3:0] weighed_q,
  input logic [QueueBytesW+WeightW:0] clipped,
  input logic [QueueBytesW+WeightW:0] divisor,
  input logic [QueueBytesW+WeightW+6:0] rest_q,
  input logic [QueueBytesW+WeightW+6:0] part_q,
  input logic [2:0]     bit_q,
  input logic [5:0]     feedback_q,
  input logic [8:0]     factor_q,
  input logic [QueueBytesW+8:0] scaled_q
);
  localparam int unsigned W = QueueBytesW + WeightW + 7;
  localparam int unsigned SinceW = QueueBytesW + 3;
  localparam logic [2:0] StWait = 3'd0, StDiffer = 3'd1, StWeigh = 3'd2, StClip = 3'd3, StDivide = 3'd4, StDraw = 3'd5,
    StScale = 3'd6, StSet = 3'd7;

  // Constants, because products of two variables are beyond the solver; the bench compares others with the model.
  localparam int unsigned QEq = 33_000, Weight = 2, Lowest = QEq * (2 * Weight + 1), Jitter = 77;

  logic started_q = 1'b0;
  qcn_point_cfg_t cfg_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    cfg_q     <= cfg;
  end
  always_comb begin
    if (!started_q) assume (rst);
    else if (!rst) assume (cfg == cfg_q);
    if (busy) assume (!in_valid);
    assume (cfg.q_eq == QueueBytesW'(QEq) && cfg.w == WeightW'(Weight) && cfg.jitter == 8'(Jitter));
  end

  // ---- the division ----------------------------------------------------------------------------
  logic [W-1:0] divided_q;  // 63 times the clipped congestion
  logic [W-1:0] taken_q;    // of it, so far
  logic [W-1:0] product;    // |F_b| so far, times the divisor
  logic [5:0]   placed;     // |F_b| so far, in its place
  assign placed = state_q == StDivide ? feedback_q << (bit_q + 3'd1) : feedback_q;

  always_comb begin
    product = '0;
    for (int i = 0; i < 6; i++) if (placed[i]) product = product + (W'(Lowest) << i);
  end

  always_ff @(posedge clk) begin
    if (state_q == StClip) begin
      divided_q <= {clipped, 6'b0} - W'(clipped);
      taken_q   <= '0;
    end
    if (state_q == StDivide && rest_q >= part_q) taken_q <= taken_q + part_q;
  end

  // ---- octets between samples ------------------------------------------------------------------
  logic [SinceW-1:0] since_q, length_q;   // since the last sample; due from it to the next
  logic [3:0] busy_q;                     // cycles of this sample so far

  always_ff @(posedge clk) begin
    if (in_valid) begin
      since_q <= since_q + SinceW'(in_bytes);
      if (fresh_q) length_q <= SinceW'(cfg.sample_bytes[0]);
    end
    if (state_q == StSet) begin
      since_q  <= '0;
      length_q <= SinceW'((34'(scaled_q) + 34'd255) >> 8);
    end
    busy_q <= busy ? busy_q + 4'd1 : '0;
    if (rst) begin
      since_q <= '0;
      busy_q  <= '0;
    end
  end

  always_comb if (started_q && !rst) begin
    a_range : assert (!out_valid || out.feedback != '0);
    if (state_q == StDivide) begin
      a_part : assert (bit_q <= 3'd5 && part_q == W'(Lowest) << bit_q);
      a_placed : assert (feedback_q < 6'd32 >> bit_q && rest_q < W'(Lowest) << (bit_q + 3'd1));
    end
    if (state_q >= StDraw) a_floor : assert (rest_q < W'(Lowest));
    if (state_q >= StDivide) begin
      a_quantised : assert (taken_q + rest_q == divided_q);
      a_product : assert (taken_q == product);
    end
    if (state_q == StWeigh) a_twice : assert (32'(twice_q) == 2 * Weight + 1);
    if (state_q == StWeigh || state_q == StClip) begin
      a_growth : assert ((growth_q > 0) == (queue_q > queue_old_q) && (excess_q > 0) == (queue_q > cfg.q_eq));
    end
    if (state_q >= StClip) a_lowest : assert (W'(divisor) == W'(Lowest));
    if (state_q == StClip) a_weighed : assert (weighed_q == (QueueBytesW + WeightW + 4)'(growth_q) * Weight);
    if (state_q >= StDivide && !(queue_q > queue_old_q || queue_q > cfg.q_eq)) begin
      a_nothing : assert (divided_q == '0);
    end
    if (out_valid) a_congested : assert (out.queue_now > out.queue_old || out.queue_now > cfg.q_eq);
    if (state_q == StScale) a_factor : assert (factor_q >= 9'(256 - Jitter) && factor_q <= 9'(256 + Jitter));
    if (state_q == StWait && !fresh_q) begin
      a_until : assert (since_q + SinceW'(until_q) == length_q && until_q >= 0
        && since_q <= length_q && 32'(length_q) <= 2 ** (QueueBytesW + 1));
    end
    if (fresh_q) a_fresh : assert (state_q == StWait && since_q == '0);
    if (state_q == StDiffer) a_interval : assert (since_q >= length_q);  // with the sampled frame
    a_busy : assert (busy_q <= 4'd12 && (!busy || busy_q < 4'd12));
    if (busy) begin
      a_when : assert (busy_q == (state_q < StDivide ? 4'(state_q) - 4'd1 : state_q == StDivide ? 4'd8 - 4'(bit_q)
        : 4'(state_q) + 4'd4));
    end
    c_long : cover (state_q == StWeigh && queue_q > queue_bytes_t'(1_000_000));
    c_empty : cover (state_q == StWeigh && queue_q == '0);
    c_last_bit : cover (state_q == StDivide && bit_q == '0 && rest_q >= part_q);
    c_silent : cover (state_q == StSet && feedback_q == '0);
    c_message : cover (out_valid && out.feedback == 6'd63);
    c_second : cover (state_q == StDiffer && queue_old_q != '0 && length_q > SinceW'(200));
  end
endmodule

bind congestion_point congestion_point_props u_props (
  .state_q(state_q),
  .*
);
