// SPDX-License-Identifier: SHL-2.1
// Congestion control of all queue pairs: a DCQCN reaction point and a pacer for each.
// Visits every queue pair once per round of max(N_QP, 16) cycles; one pipeline serves them all.
// AdvCam sections II and V; Zhu et al., SIGCOMM 2015; design section 3.
module cc_engine
  import penstock_pkg::*;
  import cc_pkg::*;
#(
    parameter int unsigned N_QP = 4
) (
    input logic       clk,
    input logic       rst,
    input cc_params_t params,

    // a queue pair starts afresh: line rate, alpha = 1, full credit, from its next visit
    input logic init_valid,
    input qp_t  init_qp,

    // a CNP arrived; several in one round count as one
    input  logic cnp_valid,
    input  qp_t  cnp_qp,
    output logic cnp_ignored,  // a pulse for one that did not cut: in the cooldown, or the law is off

    // a packet starts, with all its bytes on the wire
    input logic        sent_valid,
    input qp_t         sent_qp,
    input logic [15:0] sent_bytes,

    output logic [N_QP-1:0] eligible,  // may start a packet

    // one queue pair's state, in the next cycle
    input  qp_t        st_qp,
    output cc_status_t st
);

  if (N_QP == 0 || N_QP > 256 || (N_QP & (N_QP - 1)) != 0) begin : gen_check
    $fatal(1, "%m: N_QP = %0d: allowed are 1, 2, 4 ... 256", N_QP);
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
  qp_t  visit_qp;
  assign visit = !rst && 32'(slot_q) < N_QP;
  assign visit_qp = qp_t'(slot_q);

  always_ff @(posedge clk) begin
    slot_q <= slot_q + 1'b1;
    if (rst) slot_q <= '0;
  end

  // ---- what waits for a visit -------------------------------------------------------------------
  logic [N_QP-1:0] cnp_q;
  logic [N_QP-1:0] init_q;  // all after reset, so that the state RAM needs none

  always_ff @(posedge clk) begin
    if (visit) begin
      cnp_q[index(visit_qp)] <= 1'b0;
      init_q[index(visit_qp)] <= 1'b0;
    end
    if (cnp_valid) cnp_q[index(cnp_qp)] <= 1'b1;
    if (init_valid) init_q[index(init_qp)] <= 1'b1;
    if (rst) begin
      cnp_q <= '0;
      init_q <= '1;
    end
  end

  // ---- state of all queue pairs -----------------------------------------------------------------
  dcqcn_state_t states[N_QP];

  logic        fetched_q;
  qp_t         fetched_qp_q;
  dcqcn_state_t fetched_state_q;
  logic        fetched_init_q, fetched_cnp_q;
  byte_count_t fetched_bytes_q, take_bytes;

  always_ff @(posedge clk) begin
    fetched_q <= visit;
    if (visit) begin
      fetched_qp_q <= visit_qp;
      fetched_state_q <= states[index(visit_qp)];
      fetched_init_q <= init_q[index(visit_qp)];
      fetched_cnp_q <= cnp_q[index(visit_qp)];
      fetched_bytes_q <= take_bytes;
    end
  end

  always_ff @(posedge clk) st <= status_of(states[index(st_qp)]);

  // ---- the visit --------------------------------------------------------------------------------
  logic         done;
  qp_t          done_qp;
  dcqcn_state_t done_state;
  logic         done_unlimited, done_cnp_ignored;

  dcqcn_step #(
      .VisitCyclesLog2(RoundLog2)
  ) u_step (
      .clk,
      .rst,
      .params,
      .in_valid       (fetched_q),
      .in_qp          (fetched_qp_q),
      .in_state       (fetched_state_q),
      .in_init        (fetched_init_q),
      .in_cnp         (fetched_cnp_q),
      .in_bytes       (fetched_bytes_q),
      .out_valid      (done),
      .out_qp         (done_qp),
      .out_state      (done_state),
      .out_unlimited  (done_unlimited),
      .out_cnp_ignored(done_cnp_ignored)
  );

  always_ff @(posedge clk) if (done) states[index(done_qp)] <= done_state;

  assign cnp_ignored = done && done_cnp_ignored;

  // ---- the pacer --------------------------------------------------------------------------------
  pacer #(
      .N_QP     (N_QP),
      .RoundLog2(RoundLog2)
  ) u_pacer (
      .clk,
      .rst,
      .sent_valid,
      .sent_qp,
      .sent_bytes,
      .take_valid     (visit),
      .take_qp        (visit_qp),
      .take_bytes,
      .grant_valid    (done),
      .grant_qp       (done_qp),
      .grant_rate     (done_state.rate_current),
      .grant_unlimited(done_unlimited),
      .eligible
  );

endmodule
