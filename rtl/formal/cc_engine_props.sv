// SPDX-License-Identifier: SHL-2.1
// Promises of the engine about time: every queue pair is visited, and gets its grant, once per round, exact to
// the cycle, under all conditions: none is skipped, none served twice. A round is max(N_QP, 16) cycles, so grants
// of rate x round add up to rate x time. The pacer relies on one more property: each grant is announced a
// cycle ahead (pacer_props). The first grant is that of a fresh start, for any contents of the state RAM.
//
// Only the ends of the pipeline are observed, so it may have any length below Latest; the induction is
// as deep as a round and the pipeline together. The results of visits are not part of this proof.
module cc_engine_props
  import penstock_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 2,
  parameter int unsigned Round = 16,
  parameter int unsigned Latest = 12  // cycles from a visit to its grant, at most
) (
  input logic clk,
  input logic rst,
  input logic visit,
  input qp_t  visit_qp,
  input logic early,
  input qp_t  early_qp,
  input logic done,
  input qp_t  done_qp,
  input state_t done_state
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  logic [QpW-1:0] any_qp, qp_q;
  anything #(.W(QpW)) u_any_qp (.value(any_qp));
  always_ff @(posedge clk) if (!started_q) qp_q <= any_qp;

  logic visits, grant, visited_q, granted_q, early_q;
  qp_t  early_qp_q;
  logic [8:0] since_visit_q, since_grant_q;  // cycles; since reset at first
  assign visits = visit && 32'(visit_qp) == 32'(qp_q);
  assign grant  = done && 32'(done_qp) == 32'(qp_q);

  always_ff @(posedge clk) begin
    since_visit_q <= visits ? 9'd1 : since_visit_q + 9'd1;
    since_grant_q <= grant ? 9'd1 : since_grant_q + 9'd1;
    visited_q     <= visited_q || visits;
    granted_q     <= granted_q || grant;
    early_q       <= early;
    early_qp_q    <= early_qp;
    if (rst) {visited_q, granted_q, early_q, since_visit_q, since_grant_q} <= '0;
  end

  always_comb if (started_q) begin
    a_in_range : assert ((!visit || 32'(visit_qp) < N_QP) && (!done || 32'(done_qp) < N_QP));
    if (visited_q) a_visits : assert (visits == (32'(since_visit_q) == Round));
    else a_first_visit : assert (32'(since_visit_q) < Round);
    if (granted_q) a_grants : assert (grant == (32'(since_grant_q) == Round));
    else a_first_grant : assert (32'(since_grant_q) < Round + Latest && (!visited_q || 32'(since_visit_q) <= Latest));
    if (grant) a_answers : assert (visited_q && 32'(since_visit_q) <= Latest);
    a_early : assert (done == early_q && (!done || done_qp == early_qp_q));
    if (grant && !granted_q)
      a_fresh : assert ({done_state.c.stage_timer, done_state.c.stage_bytes, done_state.c.cnp_handled} == '0);
    c_second : cover (granted_q && grant);
  end
endmodule

bind cc_engine cc_engine_props #(.N_QP(N_QP), .Round(1 << RoundLog2)) u_props (.*);
