// SPDX-License-Identifier: SHL-2.1
// Lets the frames of one AXI-Stream through at the rate that DCQCN or QCN allows: one reaction point and one pacer for all of it.
// A frame pays at its end, when its length is known, and the next one begins when the credit is not negative; so over any
// time there pass the pacer's bounds (pacer) and one frame more. Nothing is stored and no beat is late: while the limiter
// is not at work, frames follow each other without a gap.
module stream_limiter
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter  int unsigned DATA_W   = 64,
  parameter  int unsigned WITH_QCN = 0,
  localparam int unsigned Bytes    = DATA_W / 8
) (
  input logic clk,
  input logic rst,

  input cc_params_t  params,      // one set
  input qcn_params_t qcn_params,  // with WITH_QCN
  input logic [15:0] overhead,    // bytes of a frame in addition to those of the stream

  input logic      cnp,        // a notification of DCQCN has come
  input logic      cnm_valid,  // one of QCN
  input feedback_t cnm_feedback,
  input logic      paused,     // pause or PFC holds the transmitter

  input  logic [Bytes-1:0] s_axis_tkeep,  // from lane 0 on, all ones but in a frame's last beat
  input  logic             s_axis_tvalid,
  output logic             s_axis_tready,
  input  logic             s_axis_tlast,
  output logic             m_axis_tvalid,
  input  logic             m_axis_tready,

  output cc_status_t status,
  output logic       frame  // a pulse for each that has passed
);
  localparam int unsigned BytesW = $clog2(Bytes + 1);

  // ---- the gate: open from the beat with which a frame begins to its end ------------------------------------
  logic eligible, inside_q, begun_q, open;
  assign open          = inside_q || begun_q || eligible;
  assign m_axis_tvalid = s_axis_tvalid && open;
  assign s_axis_tready = m_axis_tready && open;
  assign frame         = m_axis_tvalid && m_axis_tready && s_axis_tlast;

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) inside_q <= !s_axis_tlast;
    begun_q <= m_axis_tvalid && !m_axis_tready;  // shown once, it stays until it is taken
    if (rst) begin
      inside_q <= 1'b0;
      begun_q <= 1'b0;
    end
  end

  // ---- how long a frame is; at most 65535 bytes are counted --------------------------------------------------
  logic [15:0] before_q, so_far;  // its bytes before this beat, with the overhead
  logic [BytesW-1:0] beat_bytes;  // of a last beat: the place of its last byte
  logic [16:0] bytes, with_beat;
  assign so_far    = inside_q ? before_q : overhead;
  assign bytes     = {1'b0, so_far} + 17'(beat_bytes);
  assign with_beat = {1'b0, so_far} + 17'(Bytes);

  always_comb begin
    beat_bytes = '0;
    for (int unsigned i = 0; i < Bytes; i++)
      if (s_axis_tkeep[i] && (i == Bytes - 1 || !s_axis_tkeep[(i+1)%Bytes])) beat_bytes |= BytesW'(i + 1);
  end

  always_ff @(posedge clk) if (m_axis_tvalid && m_axis_tready) before_q <= with_beat[16] ? '1 : with_beat[15:0];

  // ---- the reaction point ---------------------------------------------------------------------------------------
  cc_pkg::group_t unused_group;
  cc_pkg::cc_select_t [cc_pkg::CcStages-1:0] unused_select;
  logic unused_ignored, unused_clamped, unused_sample_valid, unused_sample_dropped;
  logic [127:0] unused_sample;
  logic unused_visit, unused_visited, unused_low;
  qp_t  unused_visit_qp, unused_visited_qp;

  cc_engine #(
    .N_QP(1),
    .WITH_QCN(WITH_QCN == 1),
    .PacketCyclesLog2($clog2(4096 / Bytes))
  ) u_engine (
    .clk,
    .rst,
    .law_group(unused_group),
    .law      (law_e'(params.law)),
    .select   (unused_select),
    .params   ({cc_pkg::CcStages{params}}),
    .qcn_params({cc_pkg::CcStages{qcn_params}}),
    .choice_valid(1'b0),
    .choice_qp   ('0),
    .choice      ('0),
    .init_valid(1'b0),
    .init_qp   ('0),
    .cnp_valid   (cnp),
    .cnp_qp      ('0),
    .cnm_valid   (WITH_QCN == 1 && cnm_valid),
    .cnm_qp      ('0),
    .cnm_feedback,
    .cnp_ignored (unused_ignored),
    .cnp_clamped (unused_clamped),
    .visit_valid  (unused_visit),
    .visit_qp     (unused_visit_qp),
    .floor        ('0),
    .visited_valid(unused_visited),
    .visited_qp   (unused_visited_qp),
    .visited_low  (unused_low),
    .sent_valid(frame),
    .sent_qp   ('0),
    .sent_bytes(bytes[16] ? '1 : bytes[15:0]),
    .backlog   (s_axis_tvalid),  // inside a frame too: what it earns while it passes is not lost
    .paused,
    .eligible,
    .st_qp('0),
    .st   (status),
    .sampling('0),
    .m_axis_sample_tdata (unused_sample),
    .m_axis_sample_tvalid(unused_sample_valid),
    .m_axis_sample_tready(1'b0),
    .sample_dropped      (unused_sample_dropped)
  );

  wire unused = &{1'b0, unused_visit, unused_visited, unused_low, unused_visit_qp, unused_visited_qp, unused_group, unused_select, unused_ignored, unused_clamped, unused_sample, unused_sample_valid,
    unused_sample_dropped};
endmodule
