// SPDX-License-Identifier: SHL-2.1
// The rules of the RC requester: one operation on one queue pair's row, combinational.
// Everything that may happen to a queue pair is here; the pipeline around it only moves rows.
// IBTA volume 1: 9.7.5 (acknowledgements), 9.7.6.1.3 (ACK timer), 9.9.2 (requester errors).
module requester_step
  import penstock_pkg::*;
  import roce_tx_pkg::*;
(
  input  op_t       op,
  input  qp_row_t   row,
  input  qp_cfg_t   cfg,
  input  tick_t     now,
  input  logic      nxt_is_last,   // the packet at nxt ends its message
  input  logic      tail_is_last,  // the packet at tail ends its message
  input  logic      tail_in_use,   // the packet at tail is being read
  input  logic      in_message,    // the segmenter is inside a message of this queue pair
  output qp_row_t   next,
  output outcome_t  outcome
);
  logic unused;  // `row` is that of op.qp; the peer's address is none of our business
  assign unused = &{1'b0, op.qp, cfg};

  // ---- transitions that several operations share -------------------------------------------------

  // Leave QpRts: what is not acknowledged will fail, its first message with `status`.
  function automatic qp_row_t leave_rts(qp_row_t r, qp_state_e to, wc_status_e status);
    leave_rts              = r;
    leave_rts.state        = to;
    leave_rts.err_status   = status;
    leave_rts.err_reported = 1'b0;
    leave_rts.poisoned     = 1'b0;
    leave_rts.rnr_wait     = 1'b0;
    leave_rts.timer_on     = 1'b0;
  endfunction

  // The timer measures from the last progress, while a packet that asked for an ACK has none.
  function automatic qp_row_t start_timer(qp_row_t r);
    start_timer          = r;
    start_timer.timer_on = r.req_end != r.una && cfg.ack_timeout != '0;
    start_timer.deadline = now + ack_ticks(cfg.ack_timeout) + 36'd1;
  endfunction

  // Everything before `upto` has arrived. It may lie beyond a rewound nxt.
  function automatic qp_row_t acknowledge(qp_row_t r, psn_t upto);
    psn_t progress;
    progress    = upto - r.una;
    acknowledge = r;
    if (progress != '0) begin
      if (r.nxt - r.una < progress) acknowledge.nxt = upto;
      if (r.req_end - r.una < progress) acknowledge.req_end = upto;
      acknowledge.una        = upto;
      acknowledge.retry_left = cfg.retry_cnt;
      acknowledge.rnr_left   = cfg.rnr_retry;
      acknowledge.rnr_wait   = 1'b0;
      acknowledge            = start_timer(acknowledge);
    end
  endfunction

  // Go back N: send again from the first unacknowledged packet.
  function automatic qp_row_t rewind(qp_row_t r);
    rewind          = r;
    rewind.nxt      = r.una;
    rewind.req_end  = r.una;
    rewind.rnr_wait = 1'b0;
    rewind.timer_on = 1'b0;
  endfunction

  function automatic qp_row_t retry(qp_row_t r);
    if (r.retry_left == '0) retry = leave_rts(r, QpErr, WcRetryExc);
    else begin
      retry            = rewind(r);
      retry.retry_left = r.retry_left - 1'b1;
    end
  endfunction

  function automatic qp_row_t wait_for_receiver(qp_row_t r, logic [4:0] code);
    if (r.rnr_left == '0) wait_for_receiver = leave_rts(r, QpErr, WcRnrRetryExc);
    else begin
      wait_for_receiver          = rewind(r);
      wait_for_receiver.rnr_wait = 1'b1;
      wait_for_receiver.timer_on = 1'b1;
      wait_for_receiver.deadline = now + 36'(RnrTicks[code]) + 36'd1;
      // The peer answers. A receiver that is slow for long must not use up the retries, a loss now and then.
      wait_for_receiver.retry_left = cfg.retry_cnt;
      if (cfg.rnr_retry != 3'd7) wait_for_receiver.rnr_left = r.rnr_left - 1'b1;  // 7: without end
    end
  endfunction

  // ---- one function an operation -----------------------------------------------------------------

  function automatic qp_row_t fresh_row();
    fresh_row            = '0;
    fresh_row.mtu        = Mtu4096;
    fresh_row.state      = QpReset;
    fresh_row.err_status = WcFlushErr;
  endfunction

  function automatic qp_row_t opened_row();
    opened_row            = fresh_row();
    opened_row.state      = QpRts;
    opened_row.mtu        = valid_mtu(cfg.mtu);
    opened_row.tail       = cfg.init_psn;
    opened_row.una        = cfg.init_psn;
    opened_row.nxt        = cfg.init_psn;
    opened_row.sent_end   = cfg.init_psn;
    opened_row.wr         = cfg.init_psn;
    opened_row.req_end    = cfg.init_psn;
    opened_row.retry_left = cfg.retry_cnt;
    opened_row.rnr_left   = cfg.rnr_retry;
  endfunction

  // RESET and ERR take effect at once, RTS (only from RESET) when nothing of the past is left.
  function automatic qp_row_t command(qp_row_t r, qp_state_e to);
    command = r;
    if (to == QpRts) command.open_pending = r.state == QpReset;
    else begin
      if (r.state == QpRts) command = leave_rts(r, to, WcFlushErr);
      command.state        = to;
      command.open_pending = 1'b0;
    end
  endfunction

  function automatic qp_row_t commit(qp_row_t r, logic bad);
    commit    = r;
    commit.wr = r.wr + 1'b1;
    if (bad && r.state == QpRts && !r.poisoned) begin
      commit.poisoned = 1'b1;
      commit.poison   = r.wr;
      if (r.tail == r.wr) commit = leave_rts(commit, QpErr, WcLocLenErr);  // nothing before it
    end
  endfunction

  function automatic qp_row_t acked(qp_row_t r);
    logic repeated;
    // Already rewound to this PSN and nothing sent since: a copy, or the NAK of a packet behind it.
    repeated = r.nxt == op.ack.psn;
    // A NAK names the first PSN that did not arrive, which acknowledges all before it.
    acked = acknowledge(r, op.ack.kind == AckOk ? op.ack.psn + 1'b1 : op.ack.psn);
    unique case (op.ack.kind)
      AckNakSeq: if (!repeated) acked = retry(acked);
      AckRnr: if (!(repeated && r.rnr_wait)) acked = wait_for_receiver(acked, op.ack.value);
      AckInvReq: acked = leave_rts(acked, QpErr, WcRemInvReq);
      AckAccess: acked = leave_rts(acked, QpErr, WcRemAccess);
      AckRemOp: acked = leave_rts(acked, QpErr, WcRemOp);
      default: ;
    endcase
  endfunction

  function automatic qp_row_t sent(qp_row_t r, logic ack_req, logic again);
    sent     = r;
    sent.nxt = r.nxt + 1'b1;
    if (!again) sent.sent_end = sent.nxt;
    if (ack_req) begin
      sent.req_end = sent.nxt;
      if (!r.timer_on) sent = start_timer(sent);
    end
  endfunction

  function automatic qp_row_t released(qp_row_t r, logic ok, logic is_last);
    released      = r;
    released.tail = r.tail + 1'b1;
    if (!ok) begin
      released.una = released.tail;
      if (is_last) released.err_reported = 1'b1;
    end
    if (r.poisoned && released.tail == r.poison) released = leave_rts(released, QpErr, WcLocLenErr);
  endfunction

  // ---- the step ------------------------------------------------------------------------------------
  logic expired, in_window, was_acked, may_open;
  psn_t after_nxt;
  assign expired   = row.timer_on && $signed(now - row.deadline) >= 36'sd0;
  assign in_window = op.ack.psn - row.una < row.sent_end - row.una;
  assign was_acked = row.tail != row.una;
  assign may_open  = row.open_pending && row.tail == row.wr;
  assign after_nxt = row.nxt + 1'b1;

  always_comb begin
    next    = row;
    outcome = '0;
    unique case (op.kind)
      DoInit: next = fresh_row();
      DoCmd: next = command(row, op.state);
      DoCommit: next = commit(row, op.bad);
      // A message that begins behind an RTS command waits for it, so it may open the queue pair.
      DoLoad: if (may_open) next = opened_row();
      DoVisit:
        if (may_open && !in_message) next = opened_row();
        else if (expired) begin
          outcome.timeout = !row.rnr_wait;
          next            = row.rnr_wait ? rewind(row) : retry(row);
        end
      DoAck:
        if (row.state != QpRts || !in_window) outcome.stale_ack = 1'b1;
        else begin
          outcome.packet_seq_err = op.ack.kind == AckNakSeq;
          outcome.rnr_nak        = op.ack.kind == AckRnr;
          next                   = acked(row);
        end
      DoSend:
        if (can_send(row)) begin
          outcome.send       = 1'b1;
          outcome.retransmit = row.nxt != row.sent_end;
          // Ask whenever no later packet is sure to ask; and often enough that the ring frees early.
          outcome.ack_req    = nxt_is_last || row.nxt[3:0] == '1 || after_nxt == send_end(row)
                               || (outcome.retransmit && after_nxt == row.sent_end);
          next               = sent(row, outcome.ack_req, outcome.retransmit);
        end
      DoRelease:
        if (can_release(row) && !tail_in_use) begin
          outcome.freed    = 1'b1;
          outcome.complete = tail_is_last;
          outcome.status   = was_acked ? WcSuccess : row.err_reported ? WcFlushErr : row.err_status;
          next             = released(row, was_acked, tail_is_last);
        end
    endcase
    outcome.left_rts = row.state == QpRts && next.state != QpRts && op.kind != DoInit;
    outcome.failed   = row.state != QpErr && next.state == QpErr && op.kind != DoInit;
  end
endmodule
