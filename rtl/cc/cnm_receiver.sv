// SPDX-License-Identifier: SHL-2.1
// Finds QCN's congestion notification messages among the received frames: |F_b| and the queue pair.
// Promise: each good frame for us gives at most one pulse, two cycles after its tlast (IEEE 802.1Qau).
//
//   0 destination MAC | 6 source | 12 0x22E9 (CN-TAG) | 14 flow: our queue pair | 16 0x22E7 (CNM) |
//   18 version 4, reserved 6, quantised feedback 6 | 20 CPID and the rest, unused here
module cnm_receiver
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N_QP   = 4,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input logic clk,
  input logic rst,

  input logic [47:0]     local_mac,
  input logic [N_QP-1:0] ready,  // queue pairs that may be sending

  input logic [DATA_W-1:0] s_axis_tdata,
  input logic [Bytes-1:0]  s_axis_tkeep,
  input logic              s_axis_tvalid,
  input logic              s_axis_tlast,
  input logic              s_axis_tuser,  // at tlast: the MAC found the frame bad

  output logic      cnm_valid,  // with |F_b| > 0
  output qp_t       cnm_qp,
  output feedback_t cnm_feedback,
  output logic      stat_rx_cnm,     // a message for a queue pair of ours
  output logic      stat_not_ready   // one for another
);
  localparam logic [15:0] EtherTypeCnm   = 16'h22E7;
  localparam int unsigned HeadBits = DATA_W > 192 ? DATA_W : 192;
  localparam int unsigned Beats    = HeadBits / DATA_W;
  localparam int unsigned BeatW    = $clog2(Beats + 1);
  localparam int unsigned QpW      = N_QP > 1 ? $clog2(N_QP) : 1;

  typedef struct packed {
    logic [47:0] dst;
    logic [47:0] src;
    logic [15:0] tag;
    logic [15:0] flow;
    logic [15:0] ethertype;
    logic [3:0]  version;
    logic [5:0]  reserved;
    feedback_t   feedback;
  } head_t;

  // ---- the frame's first bytes ------------------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  logic [HeadBits-1:0] head_q;  // whole beats, first byte of the frame on top
  head_t head;
  // verilator lint_on UNUSEDSIGNAL
  logic [BeatW-1:0] beat_q;     // held at Beats
  logic end_q, good_q;

  assign head = head_q[HeadBits-1-:$bits(head_t)];

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int i = 0; i < int'(Beats); i++)
        if (beat_q == BeatW'(i)) head_q[(int'(Beats)-1-i)*int'(DATA_W)+:DATA_W] <= {<<8{s_axis_tdata}};
      if (s_axis_tlast) beat_q <= '0;
      else if (beat_q != BeatW'(Beats)) beat_q <= beat_q + 1'b1;
      // the MAC lets no frame below 60 bytes pass, so the message is whole if its beats are
      good_q <= !s_axis_tuser && (32'(beat_q) + 32'd1 >= Beats)
          && (Beats > 1 || beat_q != '0 || s_axis_tkeep[Bytes>32?32:Bytes-1]);
    end
    end_q <= s_axis_tvalid && s_axis_tlast && !rst;
    if (rst) beat_q <= '0;
  end

  // ---- its contents -----------------------------------------------------------------------------
  wire message = end_q && good_q && head.dst == local_mac && head.tag == EtherTypeCnTag
      && head.ethertype == EtherTypeCnm && head.version == '0;
  wire ours = 32'(head.flow) < N_QP && ready[head.flow[QpW-1:0]];

  always_ff @(posedge clk) begin
    stat_rx_cnm <= message && ours && !rst;
    stat_not_ready <= message && !ours && !rst;
    cnm_valid <= message && ours && head.feedback != '0 && !rst;
    cnm_qp <= head.flow[7:0];
    cnm_feedback <= head.feedback;
  end
  wire unused = &{1'b0, s_axis_tkeep};
endmodule
