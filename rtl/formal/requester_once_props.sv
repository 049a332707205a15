// SPDX-License-Identifier: SHL-2.1
// The requester of a build without retransmission (RETRANSMIT = 0 of roce_tx): its rules are the same, and what it does
// not keep of a row never has another value. `row` is any row of such a build that satisfies the invariant
// (requester_rules_pkg); `next` is again one. So every packet leaves once, and a NAK, a receiver that is not ready and
// a timeout each end the queue pair, with all before them acknowledged. What requester_step_props and
// requester_progress_props prove of any row and any retry_cnt holds for these rows, too.
// IBTA volume 1, 9.7.5 (acknowledgements), 9.9.2 (requester errors).
module requester_once_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import requester_rules_pkg::*;
(
  input op_t     any_op,
  input qp_row_t any_row,
  input psn_t    una, req_end, nxt, poison, wr,  // from the tail
  input psn_t    ack_psn,                        // from una
  input qp_cfg_t any_cfg,
  input tick_t   now,
  input logic [31:0] keep_alive_ticks,
  input logic    keep_room, nxt_is_first, nxt_consumes,
  input logic    nxt_is_last, tail_is_last, tail_in_use, in_message
);
  op_t op;
  qp_row_t row, next;
  qp_cfg_t cfg;
  outcome_t outcome;

  // The row, its table and the facts as requester.sv gives them to the rules.
  always_comb begin
    op           = any_op;
    row          = any_row;
    row.una      = row.tail + una;
    row.req_end  = row.tail + req_end;
    row.nxt      = row.tail + nxt;
    row.poison   = row.tail + poison;
    row.wr       = row.tail + wr;
    row          = sent_once(row);
    op.ack.psn   = row.una + ack_psn;
    cfg          = without_retries(any_cfg);
  end

  facts_t all_facts, facts;
  requester_facts u_facts (.facts(all_facts), .*);
  assign facts = facts_sent_once(all_facts);
  requester_step dut (.*);

  logic was, is, lost, expired;
  assign was     = is_live(row.state) && op.kind != DoInit;
  assign is      = is_live(next.state);
  assign lost    = outcome.packet_seq_err || outcome.rnr_nak || outcome.timeout;
  assign expired = op.kind == DoVisit && row.timer_on && $signed(now - row.deadline) >= 36'sd0;
  always_comb begin
    assume (op.kind == DoInit || row_checks(row) == '1);
    assume (may_do(op, row));

    // Fields that are not kept. Only a rewind uses una_ssn, and a row outside RTS and SQD sends nothing.
    if (is) a_once : assert (next.sent_end == next.nxt && next.retry_left == '0 && next.rnr_left == '0 && !next.rnr_wait);
    if (was && op.kind == DoAck && all_facts.in_window)
      a_nothing_rewound : assert (!all_facts.passes_nxt && !all_facts.repeated);
    if (was) a_nothing_again : assert (!all_facts.again);
    a_no_repetition : assert (!outcome.retransmit);
    if (was && is) a_forward : assert (next.nxt == row.nxt + psn_t'(outcome.send));

    // The first loss ends the queue pair, by name; the packets before a NAK's PSN are acknowledged.
    if (lost) begin
      a_ends : assert (was && next.state == QpErr && outcome.failed && outcome.left_rts);
      a_named : assert (next.err_status == (outcome.rnr_nak ? WcRnrRetryExc : WcRetryExc));
      if (op.kind == DoAck) a_acknowledged : assert (next.una == op.ack.psn && next.tail == row.tail && next.wr == row.wr);
    end
    if (was && expired) a_expires : assert (lost);
    if (was && op.kind == DoAck && ack_psn < nxt - una && op.ack.kind inside {AckNakSeq, AckRnr})
      a_nak_ends : assert (lost);

    c_nak : cover (outcome.packet_seq_err && next.una != row.una && next.una != row.nxt && row.tail > row.wr);
    c_rnr : cover (outcome.rnr_nak && any_cfg.rnr_retry == 3'd7);
    c_timeout : cover (outcome.timeout && any_cfg.retry_cnt == 3'd7);
    c_probe : cover (was && is && outcome.send && nxt_consumes && !row.unlimited && outcome.ack_req);
  end
endmodule
