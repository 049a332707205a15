// SPDX-License-Identifier: SHL-2.1
// The inputs that the rules of requester_step need from a row before its operation: comparisons of PSNs, message
// numbers and times, combinational. They take a separate cycle, in which the packet's metadata are fetched.
// IBTA volume 1: 9.7.5 (acknowledgements), 9.7.7.2 (end-to-end credits).
module requester_facts
  import penstock_pkg::*;
  import roce_tx_pkg::*;
(
  input  op_t     op,
  input  qp_row_t row,
  input  tick_t   now,
  input  logic [31:0] keep_alive_ticks,  // 0: never
  output facts_t  facts
);
  logic unused;  // `row` is that of op.qp
  assign unused = &{1'b0, op, row};

  psn_t after_nxt, upto, progress;
  ssn_t limit;
  assign after_nxt = row.nxt + 1'b1;
  // A NAK names the first PSN that did not arrive, which acknowledges all before it.
  assign upto      = op.ack.kind == AckOk ? op.ack.psn + 1'b1 : op.ack.psn;
  assign progress  = upto - row.una;
  assign limit     = ssn_t'(op.ack.msn) + (op.ack.kind == AckOk ? credits(op.ack.value) : '0);

  always_comb begin
    facts.upto         = upto;
    facts.in_window    = is_live(row.state) && op.ack.psn - row.una < row.sent_end - row.una;
    facts.repeats_last = is_live(row.state) && op.ack.kind == AckOk && upto == row.una;
    facts.progress     = progress != '0;
    facts.passes_nxt   = row.nxt - row.una < progress;
    facts.passes_req   = row.req_end - row.una < progress;
    facts.requested_beyond = !(row.req_end - row.una < progress) && row.req_end != upto;
    facts.repeated     = row.nxt == op.ack.psn;

    facts.limit   = limit;
    facts.credits = ssn_after(limit, row.lsn);
    facts.beyond  = ssn_after(row.ssn, row.lsn);

    facts.can_send    = can_send(row);
    facts.again       = row.nxt != row.sent_end;
    facts.last_ready  = after_nxt == send_end(row);
    facts.last_again  = after_nxt == row.sent_end;
    facts.at_una      = row.nxt == row.una;
    facts.requested_all   = row.req_end == row.nxt;

    facts.can_release = can_release(row);
    facts.acked       = row.tail != row.una;
    facts.to_poison   = row.poisoned && row.tail + 1'b1 == row.poison;
    facts.empty       = row.tail == row.wr;

    facts.expired     = row.timer_on && $signed(now - row.deadline) >= 36'sd0;
    facts.silent      = keep_alive_ticks != '0 && now - row.deadline >= 36'(keep_alive_ticks);
  end
endmodule
