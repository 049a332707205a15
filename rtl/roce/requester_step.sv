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
  input  logic [31:0] keep_alive_ticks,  // 0: never
  input  logic      keep_room,     // the segmenter can take a request for an empty message
  input  logic      nxt_is_first,  // the packet at nxt begins its message
  input  logic      nxt_is_last,   // the packet at nxt ends its message
  input  logic      nxt_consumes,  // its message takes a receive buffer of the peer
  input  logic      tail_is_last,  // the packet at tail ends its message
  input  logic      tail_in_use,   // the packet at tail is being read
  input  logic      in_message,    // the segmenter is inside a message of this queue pair
  output qp_row_t   next,
  output outcome_t  outcome
);
  logic unused;  // `row` is that of op.qp; the peer's address is none of our business
  assign unused = &{1'b0, op.qp, cfg};

  // ---- transitions that several operations share -------------------------------------------------

  // Leave QpRts or QpSqd: what is not acknowledged will fail, its first message with `status`.
  function automatic qp_row_t leave_rts(qp_row_t r, qp_state_e to, wc_status_e status);
    leave_rts              = r;
    leave_rts.state        = to;
    leave_rts.err_status   = status;
    leave_rts.err_reported = 1'b0;
    leave_rts.poisoned     = 1'b0;
    leave_rts.rnr_wait     = 1'b0;
    leave_rts.timer_on     = 1'b0;
    leave_rts.midway       = 1'b0;
    leave_rts.credit_wait  = 1'b0;
  endfunction

  // The timer measures from the last progress, while a packet that asked for an ACK has none.
  function automatic qp_row_t start_timer(qp_row_t r);
    start_timer          = r;
    start_timer.timer_on = r.req_end != r.una && cfg.ack_timeout != '0;
    start_timer.deadline = start_timer.timer_on ? now + ack_ticks(cfg.ack_timeout) + 36'd1 : now;
  endfunction

  // Everything before `upto` has arrived. It may lie beyond a rewound nxt.
  function automatic qp_row_t acknowledge(qp_row_t r, psn_t upto);
    psn_t progress;
    progress    = upto - r.una;
    acknowledge = r;
    if (progress != '0) begin
      acknowledge.una_ssn = ssn_t'(op.ack.msn) + 1'b1;
      if (r.nxt - r.una < progress) begin
        acknowledge.nxt = upto;
        acknowledge.ssn = acknowledge.una_ssn;
      end
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
    rewind             = r;
    rewind.nxt         = r.una;
    rewind.ssn         = r.una_ssn;
    rewind.req_end     = r.una;
    rewind.rnr_wait    = 1'b0;
    rewind.timer_on    = 1'b0;
    rewind.credit_wait = 1'b0;
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
    opened_row.deadline   = now;
    // Until the peer has spoken its buffers are not known; if it has none, it says RNR.
    opened_row.unlimited  = 1'b1;
    opened_row.ssn        = ssn_t'(1);
    opened_row.una_ssn    = ssn_t'(1);
  endfunction

  // RESET and ERR take effect at once, RTS from RESET, INIT or RTR when nothing of the past is left.
  // Transitions that verbs do not know are ignored, but the short cuts from RESET to RTR and RTS are taken.
  function automatic qp_row_t command(qp_row_t r, qp_state_e to);
    logic before_rts;
    before_rts = r.state == QpReset || r.state == QpInit || r.state == QpRtr;
    command    = r;
    unique case (to)
      QpInit, QpRtr:
        if (before_rts) begin
          command.state        = to;
          command.open_pending = 1'b0;
        end
      QpRts:
        if (r.state == QpSqd) command.state = QpRts;
        else command.open_pending = before_rts;
      QpSqd: if (r.state == QpRts) command.state = QpSqd;
      default: begin  // RESET, ERR
        if (is_live(r.state)) command = leave_rts(r, to, WcFlushErr);
        command.state        = to;
        command.open_pending = 1'b0;
      end
    endcase
  endfunction

  function automatic qp_row_t commit(qp_row_t r, logic bad);
    commit    = r;
    commit.wr = r.wr + 1'b1;
    if (bad && is_live(r.state) && !r.poisoned) begin
      commit.poisoned = 1'b1;
      commit.poison   = r.wr;
      if (r.tail == r.wr) commit = leave_rts(commit, QpErr, WcLocLenErr);  // nothing before it
    end
  endfunction

  // What an acknowledgement says about the peer's receive buffers.
  function automatic qp_row_t credited(qp_row_t r);
    ssn_t limit;
    limit                = ssn_t'(op.ack.msn) + (op.ack.kind == AckOk ? credits(op.ack.value) : '0);
    credited             = r;
    credited.credit_wait = 1'b0;
    if (op.ack.kind == AckOk) credited.unlimited = op.ack.value == CreditsUnlimited;
    if (!credited.unlimited && (r.unlimited || ssn_after(limit, r.lsn))) credited.lsn = limit;
  endfunction

  function automatic qp_row_t acked(qp_row_t r);
    logic repeated;
    // Already rewound to this PSN and nothing sent since: a copy, or the NAK of a packet behind it.
    repeated = r.nxt == op.ack.psn;
    // A NAK names the first PSN that did not arrive, which acknowledges all before it.
    acked = acknowledge(credited(r), op.ack.kind == AckOk ? op.ack.psn + 1'b1 : op.ack.psn);
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
    sent.ssn = r.ssn + ssn_t'(nxt_is_last);
    if (!again) begin
      sent.sent_end = sent.nxt;
      sent.midway   = !nxt_is_last;
    end
    // The first packet of this message was taken, and with it a receive buffer.
    if (r.nxt == r.una && !nxt_is_first && ssn_after(r.ssn, r.lsn)) sent.lsn = r.ssn;
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
  logic expired, in_window, repeats_last, was_acked, may_open, idle_for_long, limited, blocked;
  psn_t after_nxt;
  assign expired   = row.timer_on && $signed(now - row.deadline) >= 36'sd0;
  assign in_window = op.ack.psn - row.una < row.sent_end - row.una;
  // An acknowledgement of what is known to have arrived may still bring credits.
  assign repeats_last = op.ack.kind == AckOk && op.ack.psn == row.una - 1'b1;
  assign was_acked = row.tail != row.una;
  assign may_open  = row.open_pending && row.tail == row.wr;
  assign after_nxt = row.nxt + 1'b1;
  assign idle_for_long = row.state == QpRts && row.tail == row.wr && !row.timer_on && !in_message
                         && keep_alive_ticks != '0 && now - row.deadline >= 36'(keep_alive_ticks);
  // Beyond its credits a queue pair sends only what an acknowledgement must follow: a packet with
  // nothing outstanding before it (the probe), and one behind packets that have not asked for an ACK.
  assign limited = nxt_consumes && !row.unlimited && ssn_after(row.ssn, row.lsn);
  assign blocked = limited && row.nxt != row.una && row.req_end == row.nxt;

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
        end else if (idle_for_long && keep_room) begin
          outcome.keep_alive = 1'b1;
          next.deadline      = now;
        end
      DoAck:
        if (!is_live(row.state) || !in_window) begin
          if (is_live(row.state) && repeats_last) next = credited(row);
          outcome.stale_ack = next.lsn == row.lsn && next.unlimited == row.unlimited;
          if (outcome.stale_ack) next = row;
        end else begin
          outcome.packet_seq_err = op.ack.kind == AckNakSeq;
          outcome.rnr_nak        = op.ack.kind == AckRnr;
          next                   = acked(row);
        end
      DoSend:
        if (can_send(row) && blocked) next.credit_wait = 1'b1;
        else if (can_send(row)) begin
          outcome.send       = 1'b1;
          outcome.retransmit = row.nxt != row.sent_end;
          // Ask whenever no later packet is sure to ask; and often enough that the ring frees early.
          outcome.ack_req    = nxt_is_last || limited || row.nxt[3:0] == '1 || after_nxt == send_end(row)
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
    outcome.left_rts = is_live(row.state) && !is_live(next.state) && op.kind != DoInit;
    outcome.failed   = row.state != QpErr && next.state == QpErr && op.kind != DoInit;
  end
endmodule
