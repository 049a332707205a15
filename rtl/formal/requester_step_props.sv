// SPDX-License-Identifier: SHL-2.1
// The effect of one operation of the requester on the five PSNs of a ring, at any position in the 24 bits.
// `row` is any row that satisfies the invariant (requester_rules_pkg); `next` must satisfy it again, so it
// always holds. The guarantees used by other proofs (`step_checks`) are proved, too.
// IBTA volume 1, 9.7.5 (acknowledgements); diagram in roce_tx_pkg.
//
// The PSNs are given to the module as offsets from one another. This covers all cases, and shows the solver
// that only differences matter.
module requester_step_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import requester_rules_pkg::*;
#(
  parameter int unsigned KIND = 0  // of the operation, op_kind_e: one proof each
) (
  input op_t     any_op,
  input qp_row_t any_row,
  input psn_t    una, req_end, nxt, sent_end, poison, wr,  // from the tail
  input psn_t    ack_psn,  // from una
  input qp_cfg_t cfg,
  input tick_t   now, now_step,
  input logic [31:0] keep_alive_ticks,
  input logic    keep_room, nxt_is_first, nxt_consumes,
  input logic    nxt_is_last, tail_is_last, tail_in_use, in_message
);
  op_t op;
  qp_row_t row, next;
  outcome_t outcome;

  always_comb begin
    op           = any_op;
    op.kind      = op_kind_e'(KIND);
    row          = any_row;
    row.una      = row.tail + una;
    row.req_end  = row.tail + req_end;
    row.nxt      = row.tail + nxt;
    row.sent_end = row.tail + sent_end;
    row.poison   = row.tail + poison;
    row.wr       = row.tail + wr;
    op.ack.psn   = row.una + ack_psn;
  end

  facts_t facts;
  requester_facts u_facts (.*);
  requester_step dut (.now(now_step), .*);  // a cycle after the facts

  always_comb begin
    assume (op.kind == DoInit || row_checks(row) == '1);
    // The segmenter fills a slot only while one is free, and software requests only defined states.
    assume (may_do(op, row));
  end

  logic stays;  // live (RTS or SQD) before and after, and not opened anew
  assign stays = is_live(row.state) && is_live(next.state) && op.kind != DoInit;

  row_checks_t after;
  assign after = row_checks(next);

  logic expired;
  assign expired = op.kind == DoVisit && row.timer_on && $signed(now - row.deadline) >= 36'sd0;

  step_checks_t rules;
  assign rules = step_checks(op, row, next, outcome, expired, tail_in_use, in_message);

  psn_t forward;  // what an acknowledgement acknowledges
  assign forward = next.una - row.una;

  always_comb begin
    a_ring : assert (after.ring);
    a_una : assert (after.una);
    a_req_end : assert (after.req_end);
    a_nxt : assert (after.nxt);
    a_sent_end_before : assert (after.sent_end);
    a_send_end : assert (after.upto);
    a_wr : assert (after.wr);
    a_poison : assert (after.poison);
    a_state : assert (after.state);

    a_opens : assert (rules.opens);
    a_tail : assert (rules.tail);
    a_commits : assert (rules.wr);
    a_sends : assert (rules.sends);
    a_leaves : assert (rules.leaves);
    a_back : assert (rules.back);

    // An acknowledgement moves una forward, not beyond what was sent; a stale one changes nothing.
    if (op.kind == DoAck) a_ack_window : assert (forward <= row.sent_end - row.una || !is_live(row.state));
    if (op.kind == DoAck && forward != '0)
      a_ack_kept : assert (next.una == op.ack.psn + psn_t'(op.ack.kind == AckOk) && next.tail == row.tail);
    if (outcome.stale_ack) a_stale : assert (next == row);

    // Lemmas for the solver: the same from una, where an acknowledgement counts from.
    if (op.kind == DoAck && is_live(row.state)) begin
      a_b_tail : assert (next.tail == row.tail && next.wr == row.wr);
      a_b_nxt : assert (next.nxt - row.una <= row.sent_end - row.una && next.sent_end == row.sent_end);
      if (stays) a_b_req : assert (forward <= next.req_end - row.una && next.req_end - row.una <= next.nxt - row.una);
      a_c_nxt : assert (next.nxt - row.tail == (next.nxt - row.una) + una);
      a_c_req : assert (next.req_end - row.tail == (next.req_end - row.una) + una);
      a_c_una : assert (next.una - row.tail == forward + una);
    end

    // A slot is given back only by a release, one at a time, and by a good one only what was acknowledged.
    if (op.kind != DoInit && next.tail != row.tail)
      a_freed : assert ((outcome.freed && next.tail == row.tail + 1'b1) || (row.open_pending && row.tail == row.wr));
    if (outcome.freed && is_live(row.state)) a_unacknowledged_stays : assert (row.tail != row.una);
    if (op.kind == DoRelease && tail_in_use) a_in_use_stays : assert (next == row);
    if (outcome.complete) a_success : assert ((outcome.status == WcSuccess) == (row.tail != row.una)
                                              || (row.tail == row.una && row.err_status == WcSuccess));

    // A packet is sent in order, and is a repetition exactly when it was sent before.
    if (outcome.send) begin
      a_sent : assert (stays && next.nxt == row.nxt + 1'b1 && row.nxt != send_end(row));
      a_again : assert (outcome.retransmit == (row.nxt != row.sent_end)
                        && next.sent_end == (outcome.retransmit ? row.sent_end : row.nxt + 1'b1));
    end
    // nxt goes back only for a reason.
    if (stays && next.nxt - row.tail < row.nxt - row.tail)
      a_rewound : assert (outcome.packet_seq_err || outcome.rnr_nak || expired);
    // A timeout costs a retry, and the last one the queue pair: no endless repetition without progress.
    if (outcome.timeout) a_retries : assert (is_live(next.state) ? row.retry_left == next.retry_left + 3'd1
                                                                 : row.retry_left == '0);
    if (stays) a_sent_end : assert (next.sent_end - row.tail >= row.sent_end - row.tail);

    // Each where the PSNs wrap; for the operation that this proof is about.
    if (KIND == 6) begin
      c_ack : cover (stays && row.una > next.una && next.una < next.nxt && row.tail > row.wr);
      c_rewind : cover (outcome.packet_seq_err && stays && next.nxt > row.nxt && next.una != row.una);
    end
    if (KIND == 2) c_ring_full : cover (outcome.send && row.wr - row.tail == Ring && row.wr < row.nxt);
    if (KIND == 7) c_poisoned : cover (row.poisoned && outcome.freed && next.state == QpErr && next.tail == '0);
    if (KIND == 5) c_opens : cover (row.state == QpReset && next.state == QpRts && !in_message);
  end
endmodule
