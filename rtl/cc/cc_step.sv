// SPDX-License-Identifier: SHL-2.1
// One visit of a queue pair under whichever law: the two laws side by side, the queue pair's taken.
// Takes a visit every cycle and answers Latency cycles later; equal to Flow::visit of crates/cc to
// the bit. Another law than the last visit's starts afresh (design section 3).
module cc_step
  import penstock_pkg::*;
  import cc_pkg::*;
#(
    parameter int unsigned VisitCyclesLog2 = 4,  // a queue pair is visited every 2^n cycles
    parameter int unsigned N_GROUPS = CcGroups,
    parameter bit WITH_QCN = 1'b1,  // without it, a queue pair that chooses QCN is not limited
    localparam int unsigned Latency = WITH_QCN ? 6 : 5
) (
    input logic                       clk,
    input logic                       rst,
    input cc_params_t  [N_GROUPS-1:0] params,
    input qcn_params_t [N_GROUPS-1:0] qcn_params,

    input logic        in_valid,
    input happened_t   in_happened,
    input state_word_t in_state,

    output logic        early_valid,  // a cycle ahead of the answer
    output qp_t         early_qp,

    output logic        out_valid,
    output qp_t         out_qp,
    output state_word_t out_state,
    output logic        out_unlimited,
    output logic        out_cnp_ignored
);

  // ---- who comes out next -----------------------------------------------------------------------
  logic [Latency-1:1] valid_q;
  qp_t qp_q[1:Latency-1];

  always_ff @(posedge clk) begin
    valid_q <= rst ? '0 : {valid_q[Latency-2:1], in_valid};
    qp_q[1] <= in_happened.qp;
    for (int i = 2; i < int'(Latency); i++) qp_q[i] <= qp_q[i-1];
  end
  assign early_valid = valid_q[Latency-1];
  assign early_qp = qp_q[Latency-1];

  // ---- DCQCN, and no law ------------------------------------------------------------------------
  typedef struct packed {
    qp_t         qp;
    state_word_t state;
    logic        unlimited;
    logic        cnp_ignored;
  } answer_t;

  answer_t dcqcn;
  logic dcqcn_valid;

  dcqcn_step #(
      .VisitCyclesLog2(VisitCyclesLog2),
      .N_GROUPS(N_GROUPS)
  ) u_dcqcn (
      .clk, .rst, .params, .in_valid, .in_happened, .in_state,
      .out_valid      (dcqcn_valid),
      .out_qp         (dcqcn.qp),
      .out_state      (dcqcn.state),
      .out_unlimited  (dcqcn.unlimited),
      .out_cnp_ignored(dcqcn.cnp_ignored)
  );

  answer_t answer;
  assign {out_qp, out_state, out_unlimited, out_cnp_ignored} = answer;

  // ---- QCN --------------------------------------------------------------------------------------
  if (WITH_QCN) begin : gen_qcn
    answer_t qcn, dcqcn_q;
    logic [Latency:1] is_qcn_q;

    always_ff @(posedge clk) begin
      is_qcn_q <= {is_qcn_q[Latency-1:1], in_happened.law == LawQcn};
      if (dcqcn_valid) dcqcn_q <= dcqcn;
    end

    qcn_step #(
        .VisitCyclesLog2(VisitCyclesLog2),
        .N_GROUPS(N_GROUPS)
    ) u_qcn (
        .clk, .rst, .params(qcn_params), .in_valid, .in_happened, .in_state,
        .out_valid      (out_valid),
        .out_qp         (qcn.qp),
        .out_state      (qcn.state),
        .out_unlimited  (qcn.unlimited),
        .out_cnp_ignored(qcn.cnp_ignored)
    );

    assign answer = is_qcn_q[Latency] ? qcn : dcqcn_q;
  end else begin : gen_no_qcn
    assign out_valid = dcqcn_valid;
    assign answer = dcqcn;
    wire unused = &{1'b0, qcn_params};
  end

endmodule
