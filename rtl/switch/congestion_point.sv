// SPDX-License-Identifier: SHL-2.1
// QCN's congestion point of one output queue: selects the frames that are sampled and computes |F_b| of each.
// Promise: equal to `QcnCongestionPoint` of crates/cc to the bit. A frame that is not sampled takes one cycle; a
// sample makes the point busy for 12 cycles, in which no frame may enter the queue. Source: IEEE 802.1Qau clause 30.2.1.
//
//   F_b = (Q_eq - q) - w (q - q_old), clipped to [-Q_eq (2w + 1), 0] and quantised to 6 bits
//
//   arrival   octets until the next sample; at 0: q is kept
//   Differ    q - q_old, q - Q_eq, 2w + 1            Draw    random byte of the LFSR, factor 1 -+ jitter
//   Weigh     w (q - q_old), lowest = Q_eq (2w + 1)  Scale   sample_bytes[|F_b| / 8] * factor
//   Clip      63 * (-F_b)                            Set     octets until the next sample
//   Divide    by lowest, one bit a cycle
module congestion_point
  import switch_pkg::*;
#(
  parameter logic [7:0] INDEX = 8'd0  // sets the jitter of one switch's queues apart
) (
  input  logic           clk,
  input  logic           rst,
  input  qcn_point_cfg_t cfg,

  input  logic           in_valid,    // a frame enters the queue; not while busy
  input  logic [15:0]    in_bytes,
  input  queue_bytes_t   in_queue,    // octets in the queue with this frame

  output logic           busy,
  output logic           out_valid,   // pulse: send this feedback to the frame's source
  output qcn_sample_t    out
);
  localparam int unsigned UntilW   = QueueBytesW + 3;            // signed, jitter almost doubles the table's value
  localparam int unsigned LowestW  = QueueBytesW + WeightW + 1;
  localparam int unsigned SignedW  = LowestW + 3;
  localparam int unsigned DividedW = LowestW + 6;
  // Keeps the LFSRs of neighbouring queues far apart (2^32 / golden ratio).
  localparam logic [31:0] Spread = 32'h9E37_79B9 * 32'(INDEX);

  // Eight shifts of the Galois LFSR x^32 + x^22 + x^2 + x + 1.
  function automatic logic [31:0] drawn(input logic [31:0] lfsr);
    logic [31:0] value;
    value = lfsr;
    for (int i = 0; i < 8; i++) value = (value >> 1) ^ (value[0] ? 32'h8020_0003 : '0);
    return value;
  endfunction

  typedef enum logic [2:0] {StWait, StDiffer, StWeigh, StClip, StDivide, StDraw, StScale, StSet} state_e;

  state_e state_q;
  assign busy = state_q != StWait;

  // ---- state between samples -------------------------------------------------------------------
  logic signed [UntilW-1:0] until_q, until_d;  // octets until the next sample
  logic                     fresh_q;           // no frame has come since the reset
  queue_bytes_t             queue_old_q;
  logic [31:0]              lfsr_q, start;

  assign start   = cfg.seed ^ Spread;
  assign until_d = (fresh_q ? UntilW'(cfg.sample_bytes[0]) : until_q) - UntilW'(in_bytes);

  // ---- one sample ------------------------------------------------------------------------------
  queue_bytes_t               queue_q;
  logic signed [QueueBytesW:0] growth_q, excess_q;   // q - q_old, q - Q_eq
  logic [WeightW:0]           twice_q;               // 2w + 1
  logic signed [SignedW-1:0]  weighed_q;             // w (q - q_old)
  logic [LowestW-1:0]         lowest_q;
  logic signed [SignedW-1:0]  congestion;            // -F_b before it is clipped
  logic [LowestW-1:0]         clipped, divisor;
  logic [DividedW-1:0]        rest_q, part_q;        // of the division; the divisor in its place
  logic [2:0]                 bit_q;                 // to come
  logic [5:0]                 feedback_q;
  logic [8:0]                 factor_q;              // 256 = 1
  logic [QueueBytesW+8:0]     scaled_q;
  logic                       fits;

  assign congestion = weighed_q + SignedW'(excess_q);
  assign divisor    = lowest_q == '0 ? LowestW'(1) : lowest_q;
  assign fits       = rest_q >= part_q;

  always_comb begin
    clipped = LowestW'(congestion);
    if (congestion < 0) clipped = '0;
    else if (congestion > SignedW'({1'b0, divisor})) clipped = divisor;
  end

  always_ff @(posedge clk) begin
    out_valid <= 1'b0;
    unique case (state_q)
      StWait:
        if (in_valid) begin
          fresh_q <= 1'b0;
          until_q <= until_d;
          queue_q <= in_queue;
          if (until_d <= 0) state_q <= StDiffer;
        end
      StDiffer: begin
        growth_q <= $signed({1'b0, queue_q}) - $signed({1'b0, queue_old_q});
        excess_q <= $signed({1'b0, queue_q}) - $signed({1'b0, cfg.q_eq});
        twice_q  <= {cfg.w, 1'b1};
        state_q  <= StWeigh;
      end
      StWeigh: begin
        weighed_q <= SignedW'(growth_q) * $signed(SignedW'(cfg.w));
        lowest_q  <= LowestW'(cfg.q_eq) * LowestW'(twice_q);
        state_q   <= StClip;
      end
      StClip: begin
        rest_q     <= {clipped, 6'b0} - DividedW'(clipped);
        part_q     <= {1'b0, divisor, 5'b0};
        bit_q      <= 3'd5;
        feedback_q <= '0;
        state_q    <= StDivide;
      end
      StDivide: begin
        if (fits) rest_q <= rest_q - part_q;
        feedback_q <= {feedback_q[4:0], fits};
        part_q     <= part_q >> 1;
        bit_q      <= bit_q - 3'd1;
        if (bit_q == '0) state_q <= StDraw;
      end
      StDraw: begin
        lfsr_q   <= drawn(lfsr_q);
        factor_q <= 9'd256 - 9'(cfg.jitter) + 9'((17'(8'(drawn(lfsr_q))) * 17'({cfg.jitter, 1'b1})) >> 8);
        state_q  <= StScale;
      end
      StScale: begin
        scaled_q <= (QueueBytesW + 9)'(cfg.sample_bytes[feedback_q[5:3]]) * (QueueBytesW + 9)'(factor_q);
        state_q  <= StSet;
      end
      StSet: begin
        // rounded up
        until_q     <= UntilW'(({1'b0, scaled_q} + (QueueBytesW + 10)'(255)) >> 8);
        queue_old_q <= queue_q;
        out_valid   <= feedback_q != '0;
        out         <= '{feedback: feedback_q, queue_now: queue_q, queue_old: queue_old_q};
        state_q     <= StWait;
      end
    endcase
    if (rst) begin
      state_q     <= StWait;
      fresh_q     <= 1'b1;
      queue_old_q <= '0;
      lfsr_q      <= start == '0 ? 32'd1 : start;  // zero would stay zero
      out_valid   <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_not_busy : assert property (@(posedge clk) disable iff (rst) in_valid |-> !busy)
    else $error("%m: a frame came while a sample is computed");
`endif
endmodule
