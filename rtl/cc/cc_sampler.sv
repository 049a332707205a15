// SPDX-License-Identifier: SHL-2.1
// Streams the rates of queue pairs: one sample of each from `first` to `last` every `interval` cycles,
// taken at the end of its visit, so a sample is what the pacer works with (AdvCam figure 14).
// A sample for which the stream has no room is dropped and counted; nothing ever waits for the stream.
module cc_sampler
  import penstock_pkg::*;
#(
    parameter int unsigned FifoDepth = 16
) (
    input logic clk,
    input logic rst,

    input cc_sampling_t sampling,

    input logic       round_start,  // the first visit of a round begins
    input logic       visit_begins,
    input logic       visit_valid,  // a visit has ended
    input qp_t        visit_qp,
    input cc_status_t visit_status,

    output logic [127:0] m_axis_sample_tdata,  // cc_sample_t
    output logic         m_axis_sample_tvalid,
    input  logic         m_axis_sample_tready,
    output logic         stat_dropped
);

  // ---- when -------------------------------------------------------------------------------------
  // From a tick on, the visits of one whole round are sampled, as they end in the order they began.
  logic [31:0] cycle_q, elapsed_q;
  logic due_q, sampling_q;
  wire tick = sampling.interval != '0 && elapsed_q >= sampling.interval - 32'd1;

  always_ff @(posedge clk) begin
    cycle_q <= cycle_q + 32'd1;
    elapsed_q <= tick || sampling.interval == '0 ? '0 : elapsed_q + 32'd1;
    if (round_start) begin
      sampling_q <= due_q;
      due_q <= 1'b0;
    end
    if (tick) due_q <= 1'b1;
    if (rst) begin
      {cycle_q, elapsed_q} <= '0;
      {due_q, sampling_q} <= '0;
    end
  end

  // Which of the visits in flight are sampled: a bit each, in order.
  logic marked;
  logic marks_ready, mark_valid;
  logic [4:0] marks_level;
  sync_fifo #(.W(1), .DEPTH(16)) u_marks (
      .clk, .rst,
      .s_data (round_start ? due_q : sampling_q),
      .s_valid(visit_begins),
      .s_ready(marks_ready),
      .m_data (marked),
      .m_valid(mark_valid),
      .m_ready(visit_valid),
      .level  (marks_level)
  );

  // ---- what -------------------------------------------------------------------------------------
  cc_sample_t sample;
  assign sample = '{
      cycle: cycle_q, reserved: '0, qp: visit_qp, alpha: visit_status.alpha,
      rate_target: visit_status.rate_target, rate_current: visit_status.rate_current
  };

  wire take = visit_valid && marked && visit_qp >= sampling.first && visit_qp <= sampling.last;
  logic room;
  logic [$clog2(FifoDepth):0] level;

  sync_fifo #(.W(128), .DEPTH(FifoDepth)) u_samples (
      .clk, .rst,
      .s_data (sample),
      .s_valid(take),
      .s_ready(room),
      .m_data (m_axis_sample_tdata),
      .m_valid(m_axis_sample_tvalid),
      .m_ready(m_axis_sample_tready),
      .level
  );

  always_ff @(posedge clk) stat_dropped <= take && !room && !rst;

  wire unused = &{1'b0, marks_ready, mark_valid, marks_level, level, visit_status};
endmodule
