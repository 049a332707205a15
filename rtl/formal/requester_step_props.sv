// SPDX-License-Identifier: SHL-2.1
// What one operation of the requester does to the five PSNs of a ring, wherever in the 24 bits they
// stand. `row` is any that satisfies the invariant; `next` must satisfy it again, so it holds always.
//
//    tail <= una <= req_end <= nxt <= sent_end <= send_end <= wr <= tail + ring,   modulo 2^24
//
// IBTA volume 1, 9.7.5 (acknowledgements); diagram in roce_tx_pkg.
//
// The PSNs are given to the module as offsets from one another. That loses no case, and the solver sees
// that only differences matter.
module requester_step_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned KIND = 0,  // of the operation, op_kind_e: one proof each
  parameter psn_t Ring = 24'd65536  // slots of the largest ring; any below 2^22 would do
) (
  input op_t     any_op,
  input qp_row_t any_row,
  input psn_t    una, req_end, nxt, sent_end, poison, wr,  // from the tail
  input psn_t    ack_psn,  // from una
  input qp_cfg_t cfg,
  input tick_t   now,
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

  requester_step dut (.*);

  // Each PSN follows its neighbour, seen from the tail: distances do not know where the wrap is.
  function automatic logic in_order(input psn_t tail, input psn_t first, input psn_t second);
    return first - tail <= second - tail;
  endfunction

  typedef struct packed {
    logic una, req_end, nxt, sent_end, upto, wr, ring, poison, state;
  } row_checks_t;

  function automatic row_checks_t checks(input qp_row_t r);
    logic rts;
    rts             = is_live(r.state);
    checks.ring     = r.wr - r.tail <= Ring;
    checks.una      = in_order(r.tail, r.una, r.wr);
    checks.req_end  = !rts || in_order(r.tail, r.una, r.req_end);
    checks.nxt      = !rts || in_order(r.tail, r.req_end, r.nxt);
    checks.sent_end = !rts || in_order(r.tail, r.nxt, r.sent_end);
    checks.upto     = !rts || in_order(r.tail, r.sent_end, send_end(r));
    checks.wr       = !rts || in_order(r.tail, send_end(r), r.wr);
    checks.poison   = !r.poisoned || (rts && r.poison != r.wr && r.poison != r.tail);
    checks.state    = (rts || r.state inside {QpReset, QpInit, QpRtr, QpErr}) && (rts || !r.timer_on) && !(rts && r.open_pending);
  endfunction

  always_comb begin
    assume (op.kind == DoInit || checks(row) == '1);
    // The segmenter fills a slot only while one is free, and software asks only for states there are.
    if (op.kind == DoCommit) assume (row.wr - row.tail < Ring);
    if (op.kind == DoCmd) assume (op.state inside {QpReset, QpInit, QpRtr, QpRts, QpSqd, QpErr});
  end

  logic stays;  // live (RTS or SQD) before and after, and not opened anew
  assign stays = is_live(row.state) && is_live(next.state) && op.kind != DoInit;

  row_checks_t after;
  assign after = checks(next);

  logic expired;
  assign expired = op.kind == DoVisit && row.timer_on && $signed(now - row.deadline) >= 36'sd0;

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
