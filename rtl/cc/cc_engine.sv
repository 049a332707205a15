// SPDX-License-Identifier: SHL-2.1
// Congestion control of all queue pairs: a reaction point, DCQCN or QCN, and a pacer for each.
// Visits every queue pair once per round of max(N_QP, 16) cycles; one pipeline serves them all.
// AdvCam sections II and V; Zhu et al., SIGCOMM 2015; IEEE 802.1Qau.
module cc_engine
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 4,
  // sets of parameters, a power of two: never more than queue pairs; the low bits of a choice's group count
  parameter int unsigned N_GROUPS = N_QP < CcGroups ? N_QP : CcGroups,
  parameter bit WITH_QCN = 1'b1,
  parameter bit BLOCK = 1'b0,  // rows in block RAM, for slow clocks
  parameter int unsigned PacketCyclesLog2 = 9  // of 4096 bytes; the default at 8 bytes a cycle
) (
  input logic clk,
  input logic rst,

  // parameters: the law of a group, and the words for each stage of a visit (cc_step)
  output group_t                     law_group,
  input  law_e                       law,
  output cc_select_t  [CcStages-1:0] select,
  input  cc_params_t  [CcStages-1:0] params,
  input  qcn_params_t [CcStages-1:0] qcn_params,

  // the law and the group of a queue pair, from its next visit; after reset its group 0 and its law
  input logic       choice_valid,
  input qp_t        choice_qp,
  input cc_choice_t choice,

  // a queue pair starts afresh: at its start rate, alpha = 1, from its next visit
  input logic init_valid,
  input qp_t  init_qp,

  // a notification arrived; of several in one round, CNPs count as one and the last feedback counts
  input  logic      cnp_valid,
  input  qp_t       cnp_qp,
  input  logic      cnm_valid,
  input  qp_t       cnm_qp,
  input  feedback_t cnm_feedback,
  output logic      cnp_ignored,  // a pulse for one that did not cut: in the cooldown, or another law's
  output logic      cnp_clamped,  // a pulse for one that cut nothing: R_min is above the line rate

  // what bounds their effect (cnp_bound): a visit begins, its floor is there a cycle later; it ends
  output logic       visit_valid,
  output qp_t        visit_qp,
  input  cnp_level_t floor,
  output logic       visited_valid,
  output qp_t        visited_qp,
  output logic       visited_low,  // DCQCN holds its rate at a quarter of the line or below

  // a packet starts, with all its bytes on the wire
  input logic        sent_valid,
  input qp_t         sent_qp,
  input logic [15:0] sent_bytes,

  input logic [N_QP-1:0] backlog,  // has a packet that could start
  input logic paused,  // pause or PFC holds the transmitter

  output logic [N_QP-1:0] eligible,  // may start a packet

  // one queue pair's state, in the next cycle
  input  qp_t        st_qp,
  output cc_status_t st,

  // rates over time
  input  cc_sampling_t sampling,
  output logic [127:0] m_axis_sample_tdata,  // cc_sample_t
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,
  output logic         sample_dropped
);

  if (N_QP == 0 || N_QP > 256 || (N_QP & (N_QP - 1)) != 0) begin : gen_check
    $fatal(1, "%m: N_QP = %0d: allowed are 1, 2, 4 ... 256", N_QP);
  end

  if (N_GROUPS != 1 && N_GROUPS != 2 && N_GROUPS != CcGroups) begin : gen_check_groups
    $fatal(1, "%m: N_GROUPS = %0d: allowed are 1, 2 and %0d", N_GROUPS, CcGroups);
  end

  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned RoundLog2 = N_QP > 16 ? $clog2(N_QP) : 4;

  // A build uses the low bits of a queue-pair index.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [QpW-1:0] index(input qp_t qp);
    return N_QP > 1 ? qp[QpW-1:0] : '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- the round --------------------------------------------------------------------------------
  logic [RoundLog2-1:0] slot_q;
  logic visit;
  assign visit = !rst && 32'(slot_q) < N_QP;
  assign visit_qp = N_QP > 1 ? qp_t'(slot_q) : '0;
  assign visit_valid = visit;

  always_ff @(posedge clk) begin
    slot_q <= slot_q + 1'b1;
    if (rst) slot_q <= '0;
  end

  // ---- events that wait for a visit -------------------------------------------------------------
  logic [N_QP-1:0] cnp_q, cnm_q;
  logic [N_QP-1:0] init_q;   // all after reset, so that the state RAM needs none
  logic [N_QP-1:0] chose_q;  // software has chosen since reset, so the choice RAM needs none either

  always_ff @(posedge clk) begin
    if (visit) begin
      cnp_q[index(visit_qp)] <= 1'b0;
      cnm_q[index(visit_qp)] <= 1'b0;
      init_q[index(visit_qp)] <= 1'b0;
    end
    if (cnp_valid) cnp_q[index(cnp_qp)] <= 1'b1;
    if (cnm_valid) cnm_q[index(cnm_qp)] <= 1'b1;
    if (init_valid) init_q[index(init_qp)] <= 1'b1;
    if (choice_valid) chose_q[index(choice_qp)] <= 1'b1;
    if (rst) begin
      cnp_q <= '0;
      cnm_q <= '0;
      chose_q <= '0;
      init_q <= '1;
    end
  end

  cc_choice_t chosen;
  feedback_t  feedback;

  ram_sdp #(.W($bits(cc_choice_t)), .DEPTH(N_QP)) u_choices (
    .clk,
    .wr_en(choice_valid), .wr_addr(index(choice_qp)), .wr_data(choice),
    .rd_en(visit), .rd_addr(index(visit_qp)), .rd_data(chosen)
  );
  ram_sdp #(.W($bits(feedback_t)), .DEPTH(N_QP)) u_feedback (
    .clk,
    .wr_en(cnm_valid), .wr_addr(index(cnm_qp)), .wr_data(cnm_feedback),
    .rd_en(visit), .rd_addr(index(visit_qp)), .rd_data(feedback)
  );

  // ---- state of all queue pairs -----------------------------------------------------------------
  state_t      fetched_state, done_state;
  byte_count_t fetched_bytes, done_bytes;  // sent between the last two visits' ends: what the next visit counts
  logic        done;
  qp_t         done_qp;

  if (N_QP > 1) begin : gen_states
    ram_sdp #(.W(ByteCountW + $bits(state_t)), .DEPTH(N_QP), .BLOCK(BLOCK)) u_states (
      .clk,
      .wr_en(done), .wr_addr(index(done_qp)), .wr_data({done_bytes, done_state}),
      .rd_en(visit), .rd_addr(index(visit_qp)), .rd_data({fetched_bytes, fetched_state})
    );
  end else begin : gen_state
    // The step holds its answer until the next: there is the state of the one queue pair.
    assign fetched_state = done_state;
    always_ff @(posedge clk) if (done) fetched_bytes <= done_bytes;
  end

  logic fetched_q, fetched_init_q, fetched_cnp_q, fetched_cnm_q, fetched_chose_q, fetched_paused_q, fetched_idle_q;
  qp_t  fetched_qp_q;

  always_ff @(posedge clk) begin
    fetched_q <= visit;
    if (visit) begin
      fetched_qp_q <= visit_qp;
      fetched_init_q <= init_q[index(visit_qp)];
      fetched_cnp_q <= cnp_q[index(visit_qp)];
      fetched_cnm_q <= cnm_q[index(visit_qp)];
      fetched_chose_q <= chose_q[index(visit_qp)];
      fetched_paused_q <= paused;
      fetched_idle_q <= !backlog[index(visit_qp)];
    end
  end

  // ---- the visit --------------------------------------------------------------------------------
  cc_choice_t fetched_choice;
  happened_t  happened;
  logic       early, done_unlimited, done_cnp_ignored, done_clamped;
  qp_t        early_qp;

  assign fetched_choice = fetched_chose_q ? '{group: chosen.group & group_t'(N_GROUPS - 1), law: chosen.law} : '0;
  assign law_group = fetched_choice.group;
  assign happened = '{
    qp: fetched_qp_q, group: fetched_choice.group, law: chosen_law(fetched_choice.law, law),
    init: fetched_init_q, cnp: fetched_cnp_q, feedback: fetched_cnm_q ? feedback : '0,
    bytes: fetched_bytes, paused: fetched_paused_q, idle: fetched_idle_q, floor: floor
  };

  cc_step #(
    .VisitCyclesLog2(RoundLog2),
    .N_GROUPS(N_GROUPS),
    .WITH_QCN(WITH_QCN)
  ) u_step (
    .clk, .rst, .select, .params, .qcn_params,
    .in_valid       (fetched_q),
    .in_happened    (happened),
    .in_state       (fetched_state),
    .early_valid    (early),
    .early_qp,
    .out_valid      (done),
    .out_qp         (done_qp),
    .out_state      (done_state),
    .out_unlimited  (done_unlimited),
    .out_low        (visited_low),
    .out_cnp_ignored(done_cnp_ignored),
    .out_clamped    (done_clamped)
  );

  assign cnp_ignored = done && done_cnp_ignored;
  assign cnp_clamped = done && done_clamped;
  assign visited_valid = done;
  assign visited_qp = done_qp;

  // ---- the pacer --------------------------------------------------------------------------------
  pacer #(
    .N_QP     (N_QP),
    .BLOCK    (BLOCK),
    .RoundLog2(RoundLog2),
    .TurnLog2 (PacketCyclesLog2 + $clog2(N_QP))
  ) u_pacer (
    .clk, .rst,
    .sent_valid, .sent_qp, .sent_bytes, .backlog,
    .early_valid    (early),
    .early_qp,
    .grant_valid    (done),
    .grant_qp       (done_qp),
    .grant_rate     (done_state.c.rate_current),
    .grant_unlimited(done_unlimited),
    .grant_bytes    (done_bytes),
    .eligible
  );

  // ---- software's view --------------------------------------------------------------------------
  // With the state, the choice that this visit followed.
  cc_choice_t done_choice;
  cc_status_t done_status;
  assign done_status = status_of(done_state, done_choice);

  ram_sdp #(.W($bits(cc_choice_t)), .DEPTH(N_QP)) u_choices_shown (
    .clk,
    .wr_en(fetched_q), .wr_addr(index(fetched_qp_q)), .wr_data(fetched_choice),
    .rd_en(early), .rd_addr(index(early_qp)), .rd_data(done_choice)
  );
  if (N_QP > 1) begin : gen_status
    ram_sdp #(.W($bits(cc_status_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_status (
      .clk,
      .wr_en(done), .wr_addr(index(done_qp)), .wr_data(done_status),
      .rd_en(1'b1), .rd_addr(index(st_qp)), .rd_data(st)
    );
  end else begin : gen_one_status
    assign st = done_status;
    wire unused_st_qp = &{1'b0, st_qp};
  end

  cc_sampler u_sampler (
    .clk, .rst, .sampling,
    .visit_valid (done),
    .visit_qp    (done_qp),
    .visit_status(done_status),
    .m_axis_sample_tdata, .m_axis_sample_tvalid, .m_axis_sample_tready,
    .stat_dropped(sample_dropped)
  );

endmodule
