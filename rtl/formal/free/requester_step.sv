// SPDX-License-Identifier: SHL-2.1
// Replaces requester_step in proofs about the modules around it: any next row and any outcome that the rules
// of requester_rules_pkg allow, which requester_step_props proves.
module requester_step
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import requester_rules_pkg::*;
(
  input  op_t       op,
  input  qp_row_t   row,
  input  qp_cfg_t   cfg,
  input  facts_t    facts,
  input  tick_t     now,
  input  logic      keep_room,
  input  logic      nxt_is_first,
  input  logic      nxt_is_last,
  input  logic      nxt_consumes,
  input  logic      tail_is_last,
  input  logic      tail_in_use,
  input  logic      in_message,
  output qp_row_t   next,
  output outcome_t  outcome
);
  logic expired;
  anything #(.W($bits(qp_row_t))) u_next (.value(next));
  anything #(.W($bits(outcome_t))) u_outcome (.value(outcome));
  anything u_expired (.value(expired));
  wire unused = &{1'b0, cfg, now, facts, keep_room, nxt_is_first, nxt_consumes, nxt_is_last, nxt_consumes, tail_is_last};

  always_comb begin
    if (op.kind == DoInit || (row_checks(row) == '1 && may_do(op, row)))
      assume (row_checks(next) == '1 && step_checks(op, row, next, outcome, expired, tail_in_use, in_message) == '1);
  end
endmodule
