// SPDX-License-Identifier: SHL-2.1
// Congestion control of the front end: notifications of both kinds, bounded in rate, and the engine.
// Connects its modules and contains no logic of its own. cnp_bound bounds what forged notifications do.
// Without WITH_QCN there is DCQCN alone: a queue pair that is set to QCN uses DCQCN and reads back DCQCN; QCN messages
// are ignored. CNPs come from the acknowledgement receiver, which has matched the peer; QCN messages come straight from the wire.
module congestion_control
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W   = 64,
  parameter int unsigned N_QP     = 4,
  parameter int unsigned CLK_KHZ  = 156250,
  parameter bit          WITH_QCN = 1'b1,
  parameter int unsigned CNP_LOOK_CYCLES = CLK_KHZ * 1000 >> cc_pkg::CnpLooksLog2  // benches have shorter seconds
) (
  input logic clk,
  input logic rst,

  input settings_t       settings,
  input logic [N_QP-1:0] ready,  // queue pairs that may send

  // a command to a queue pair, and the law that software chooses for it
  input logic       cmd_valid,
  input qp_t        cmd_qp,
  input qp_state_e  cmd_state,
  input logic       cc_choice_valid,
  input cc_choice_t cc_choice,

  input logic cnp_valid,
  input qp_t  cnp_qp,

  // frames from the wire
  input logic [DATA_W-1:0]   rx_tdata,
  input logic [DATA_W/8-1:0] rx_tkeep,
  input logic                rx_tvalid,
  input logic                rx_tlast,
  input logic                rx_tuser,

  // operations of the requester
  input  logic                  stat_valid,
  input  qp_t                   stat_qp,
  input  psn_t                  stat_psn,
  input  roce_tx_pkg::outcome_t stat,

  // the transmitter
  input  logic            sent_valid,
  input  qp_t             sent_qp,
  input  logic [15:0]     sent_bytes,
  input  logic [N_QP-1:0] backlog,
  input  logic            tx_paused,
  output logic [N_QP-1:0] cc_eligible,

  input  qp_t        st_qp,
  output cc_status_t st_cc,

  output logic [127:0] m_axis_sample_tdata,
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,

  output logic stat_cnm,
  output logic stat_cnm_not_ready,
  output logic stat_refused,
  output logic stat_ignored,
  output logic stat_clamped,
  output logic stat_overruled,
  output logic stat_sample_dropped
);

  // ---- notifications ------------------------------------------------------------------------------------
  logic cnm_valid;
  qp_t cnm_qp;
  feedback_t cnm_feedback;

  if (WITH_QCN) begin : gen_cnm
    cnm_receiver #(
      .DATA_W(DATA_W),
      .N_QP(N_QP)
    ) u_cnm_receiver (
      .clk,
      .rst,
      .local_mac(settings.local_mac),
      .ready,
      .s_axis_tdata (rx_tdata),
      .s_axis_tkeep (rx_tkeep),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tlast (rx_tlast),
      .s_axis_tuser (rx_tuser),
      .cnm_valid,
      .cnm_qp,
      .cnm_feedback,
      .stat_rx_cnm   (stat_cnm),
      .stat_not_ready(stat_cnm_not_ready)
    );
  end else begin : gen_no_cnm
    assign {cnm_valid, cnm_qp, cnm_feedback, stat_cnm, stat_cnm_not_ready} = '0;
    wire unused_frames = &{1'b0, ready, rx_tdata, rx_tkeep, rx_tvalid, rx_tlast, rx_tuser};
  end

  logic act_cnp_valid, act_cnm_valid;
  qp_t act_cnp_qp, act_cnm_qp;
  feedback_t act_cnm_feedback;

  cnp_limiter u_cnp_limiter (
    .clk,
    .rst,
    .interval(settings.cnp_interval),
    .burst   (settings.cnp_burst),
    .in_cnp_valid   (cnp_valid),
    .in_cnp_qp      (cnp_qp),
    .in_cnm_valid   (cnm_valid),
    .in_cnm_qp      (cnm_qp),
    .in_cnm_feedback(cnm_feedback),
    .cnp_valid   (act_cnp_valid),
    .cnp_qp      (act_cnp_qp),
    .cnm_valid   (act_cnm_valid),
    .cnm_qp      (act_cnm_qp),
    .cnm_feedback(act_cnm_feedback),
    .stat_refused
  );

  // ---- parameters -----------------------------------------------------------------------------------------
  cc_pkg::group_t law_group;
  law_e group_law, law;
  cc_choice_t choice;
  cc_pkg::cc_select_t [cc_pkg::CcStages-1:0] select;
  cc_params_t [cc_pkg::CcStages-1:0] params;
  qcn_params_t [cc_pkg::CcStages-1:0] qcn_params;

  cc_parameters u_parameters (
    .clk,
    .write(settings.cc_write),
    .law_group,
    .law(group_law),
    .select,
    .params,
    .qcn_params
  );

  always_comb begin
    law = group_law;
    choice = cc_choice;
    if (!WITH_QCN && group_law == LawQcn) law = LawDcqcn;
    if (!WITH_QCN && cc_choice.law == ChooseQcn) choice.law = ChooseDcqcn;
  end

  // ---- the bound on notifications -----------------------------------------------------------------------
  logic visit_valid, visited_valid, visited_low, init_valid;
  qp_t  visit_qp, visited_qp;
  cc_pkg::cnp_level_t floor;
  assign init_valid = cmd_valid && cmd_state == QpReset;  // a queue pair's next life begins afresh

  cnp_bound #(
    .N_QP       (N_QP),
    .CLK_KHZ    (CLK_KHZ),
    .LOOK_CYCLES(CNP_LOOK_CYCLES),
    .BLOCK      (CLK_KHZ <= BlockRowKhz)
  ) u_cnp_bound (
    .clk,
    .rst,
    .visit_valid,
    .visit_qp,
    .floor,
    .visited_valid,
    .visited_qp,
    .visited_low,
    .backlog,
    .paused   (tx_paused),
    .init_valid,
    .init_qp  (cmd_qp),
    .cnp_valid(act_cnp_valid),
    .cnp_qp   (act_cnp_qp),
    .stat_valid,
    .stat_qp,
    .stat_psn,
    .stat,
    .overruled(stat_overruled)
  );

  // ---- the engine ---------------------------------------------------------------------------------------
  // Its first visits begin queue pairs at the start rate, so they come after the parameters.
  cc_engine #(
    .N_QP(N_QP),
    .WITH_QCN(WITH_QCN),
    .BLOCK(CLK_KHZ <= BlockRowKhz),
    .PacketCyclesLog2($clog2(4096 / (DATA_W / 8)))
  ) u_cc_engine (
    .clk,
    .rst         (rst || !settings.cc_ready),
    .law_group,
    .law,
    .select,
    .params,
    .qcn_params,
    .choice_valid(cc_choice_valid),
    .choice_qp   (cmd_qp),
    .choice,
    .init_valid,
    .init_qp   (cmd_qp),
    .cnp_valid   (act_cnp_valid),
    .cnp_qp      (act_cnp_qp),
    .cnm_valid   (act_cnm_valid),
    .cnm_qp      (act_cnm_qp),
    .cnm_feedback(act_cnm_feedback),
    .cnp_ignored (stat_ignored),
    .cnp_clamped (stat_clamped),
    .visit_valid,
    .visit_qp,
    .floor,
    .visited_valid,
    .visited_qp,
    .visited_low,
    .sent_valid,
    .sent_qp,
    .sent_bytes,
    .backlog,
    .paused    (tx_paused),
    .eligible  (cc_eligible),
    .st_qp,
    .st        (st_cc),
    .sampling  (settings.sampling),
    .m_axis_sample_tdata,
    .m_axis_sample_tvalid,
    .m_axis_sample_tready,
    .sample_dropped(stat_sample_dropped)
  );

  wire unused = &{1'b0, settings};

endmodule
