// SPDX-License-Identifier: SHL-2.1
// Bench only: a station that sends frames of one length for ever, as fast as its reaction point allows. Its flow ID, in
// a CN-TAG, is 0, the queue pair of its engine.
module reaction_point
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter logic [47:0] Mac        = 48'h0200_0000_0000,
  parameter logic [47:0] To         = 48'h0200_0000_0200,
  parameter int unsigned FrameBytes = 1512,  // a multiple of 8
  parameter int unsigned Gap        = 3      // cycles of preamble, FCS and gap
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        run,
  input  qcn_params_t params,
  input  law_e        law,

  output logic [63:0] m_axis_tdata,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  input  logic        s_axis_tlast,
  output logic        received,    // pulse: a notification for this station
  output cc_status_t  status
);
  localparam int unsigned Beats = FrameBytes / 8;
  logic [7:0] beat_q;  // of the frame, then of the gap
  logic eligible, cnm_valid, begins;
  qp_t cnm_qp;
  feedback_t cnm_feedback;

  assign begins        = run && eligible;
  assign m_axis_tvalid = beat_q == '0 ? begins : 32'(beat_q) < Beats;
  assign m_axis_tlast  = 32'(beat_q) == Beats - 1;

  always_comb begin
    m_axis_tdata = '0;
    unique case (beat_q)
      8'd0: m_axis_tdata = {<<8{To, Mac[47:32]}};
      8'd1: m_axis_tdata = {<<8{Mac[31:0], 16'h22E9, 16'h0000}};
      8'd2: m_axis_tdata = {<<8{16'h88B5, 48'h0}};
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (beat_q != '0 || begins) beat_q <= 32'(beat_q) == Beats + Gap - 1 ? '0 : beat_q + 8'd1;
    if (rst) beat_q <= '0;
  end

  // verilator lint_off PINCONNECTEMPTY
  cnm_receiver #(.N_QP(1)) u_receiver (
    .clk,
    .rst,
    .local_mac(Mac),
    .ready    (1'b1),
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tvalid,
    .s_axis_tlast,
    .s_axis_tuser(1'b0),
    .cnm_valid,
    .cnm_qp,
    .cnm_feedback,
    .stat_rx_cnm   (received),
    .stat_not_ready()
  );

  cc_engine #(.N_QP(1)) u_engine (
    .clk,
    .rst,
    .law_group (),
    .law,
    .select    (),
    .params    ('0),
    .qcn_params({cc_pkg::CcStages{params}}),
    .choice_valid(1'b0),
    .choice_qp   ('0),
    .choice      ('0),
    .init_valid  (1'b0),
    .init_qp     ('0),
    .cnp_valid   (1'b0),
    .cnp_qp      ('0),
    .cnm_valid,
    .cnm_qp,
    .cnm_feedback,
    .cnp_ignored (),
    .cnp_clamped (),
    .visit_valid(), .visit_qp(), .floor('0), .visited_valid(), .visited_qp(), .visited_low(),
    .sent_valid  (m_axis_tvalid && m_axis_tlast),
    .sent_qp     ('0),
    .sent_bytes  (16'(FrameBytes + 8 * Gap)),
    .backlog     (run),
    .paused      (1'b0),
    .eligible,
    .st_qp ('0),
    .st    (status),
    .sampling            ('0),
    .m_axis_sample_tdata (),
    .m_axis_sample_tvalid(),
    .m_axis_sample_tready(1'b0),
    .sample_dropped      ()
  );
endmodule
