// SPDX-License-Identifier: SHL-2.1
// Congestion points of one switch with words as ports, driven by a C++ program (steps.cpp), a frame at a time.
module congestion_point_harness
  import switch_pkg::*;
(
  input  logic              clk,
  input  logic              rst,
  input  logic [11:0][31:0] params,  // q_eq, w, jitter, seed, sample_bytes

  input  logic        in_valid,
  input  logic [1:0]  in_point,
  input  logic [15:0] in_bytes,
  input  logic [23:0] in_queue,

  output logic [3:0]       busy,
  output logic [3:0]       out_valid,
  output logic [3:0][31:0] out_feedback,
  output logic [3:0][31:0] out_queue,
  output logic [3:0][31:0] out_queue_old
);
  // The words of a parameter are wider than the parameter.
  // verilator lint_off UNUSEDSIGNAL
  qcn_point_cfg_t cfg;
  always_comb begin
    cfg.q_eq   = params[0][QueueBytesW-1:0];
    cfg.w      = params[1][WeightW-1:0];
    cfg.jitter = params[2][7:0];
    cfg.seed   = params[3];
    for (int i = 0; i < 8; i++) cfg.sample_bytes[i] = params[4+i][QueueBytesW-1:0];
  end

  localparam logic [3:0][7:0] Index = {8'd255, 8'd31, 8'd1, 8'd0};  // as in the example `congestion_points`
  for (genvar i = 0; i < 4; i++) begin : gen_point
    qcn_sample_t out;
    congestion_point #(.INDEX(Index[i])) u_point (
      .clk,
      .rst,
      .cfg,
      .in_valid (in_valid && in_point == 2'(i)),
      .in_bytes,
      .in_queue,
      .busy     (busy[i]),
      .out_valid(out_valid[i]),
      .out
    );
    assign out_feedback[i]  = 32'(out.feedback);
    assign out_queue[i]     = 32'(out.queue_now);
    assign out_queue_old[i] = 32'(out.queue_old);
  end
endmodule
