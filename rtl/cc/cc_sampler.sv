// SPDX-License-Identifier: SHL-2.1
// Streams the rates of queue pairs: one sample of each from `first` to `last` every `interval` cycles,
// taken at the end of its visit, so a sample is the rate that the pacer uses (AdvCam figure 14).
// A sample for which the stream has no room is dropped and counted; nothing waits for the stream.
module cc_sampler
  import penstock_pkg::*;
#(
  parameter int unsigned FifoDepth = 16
) (
  input logic clk,
  input logic rst,

  input cc_sampling_t sampling,

  input logic       visit_valid,  // a visit has ended; each round's first is queue pair 0's
  input qp_t        visit_qp,
  input cc_status_t visit_status,

  output logic [127:0] m_axis_sample_tdata,  // cc_sample_t
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,
  output logic         stat_dropped
);

  // ---- when -------------------------------------------------------------------------------------
  // From a tick on, the visits of one whole round are sampled.
  logic [31:0] cycle_q, elapsed_q;  // elapsed: 1 .. interval
  logic due_q, sampling_q;
  wire off = sampling.interval == '0;
  wire tick = !off && elapsed_q >= sampling.interval;
  wire round_start = visit_valid && visit_qp == '0;

  always_ff @(posedge clk) begin
    cycle_q <= cycle_q + 32'd1;
    elapsed_q <= tick || off ? 32'd1 : elapsed_q + 32'd1;
    if (round_start) begin
      sampling_q <= due_q;
      due_q <= 1'b0;
    end
    if (tick) due_q <= 1'b1;
    if (rst) begin
      cycle_q <= '0;
      elapsed_q <= 32'd1;
      {due_q, sampling_q} <= '0;
    end
  end

  // ---- what -------------------------------------------------------------------------------------
  cc_sample_t sample;
  assign sample = '{
    cycle: cycle_q, reserved: '0, qp: visit_qp, alpha: visit_status.alpha,
    rate_target: visit_status.rate_target, rate_current: visit_status.rate_current
  };

  wire marked = round_start ? due_q : sampling_q;
  wire take = visit_valid && marked && visit_qp >= sampling.first && visit_qp <= sampling.last;
  logic room;
  logic [$clog2(FifoDepth):0] level;

  block_fifo #(.W(128), .DEPTH(FifoDepth)) u_samples (
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

  wire unused = &{1'b0, level, visit_status};
endmodule
