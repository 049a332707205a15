// SPDX-License-Identifier: SHL-2.1
// The rules of the RC requester: one operation on one queue pair's row, combinational.
// Everything that may happen to a queue pair is here: first what the operation does, then field by field what
// that makes of the row. What has to be compared is requester_facts; the pipeline around both only moves rows.
// IBTA volume 1: 9.7.5 (acknowledgements), 9.7.6.1.3 (ACK timer), 9.9.2 (requester errors).
module requester_step
  import penstock_pkg::*;
  import roce_tx_pkg::*;
(
  input  op_t       op,
  input  qp_row_t   row,
  input  facts_t    facts,
  input  qp_cfg_t   cfg,
  input  tick_t     now,
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
  assign unused = &{1'b0, op.qp, op.ack, cfg};

  logic live, before_rts, may_open;
  assign live       = is_live(row.state);
  assign before_rts = row.state == QpReset || row.state == QpInit || row.state == QpRtr;
  assign may_open   = row.open_pending && facts.empty;

  // ---- what the operation does --------------------------------------------------------------------
  logic inits, opens, acks, credited, retries, waits, rewinds, sends, blocks, frees, commits, poisons, leaves, keeps;
  logic progress, limited, blocked, stale, refreshed, unlimited, asks;
  qp_state_e  leave_to;
  wc_status_e leave_status;
  logic [2:0] retry_left, rnr_left;  // an acknowledgement that brings something renews them

  assign progress   = acks && facts.progress;
  assign retry_left = progress ? cfg.retry_cnt : row.retry_left;
  assign rnr_left   = progress ? cfg.rnr_retry : row.rnr_left;

  // What an acknowledgement says about the peer's receive buffers.
  assign unlimited = op.ack.kind == AckOk ? op.ack.value == CreditsUnlimited : row.unlimited;
  assign refreshed = unlimited != row.unlimited || (!unlimited && facts.credits);
  assign stale     = !facts.in_window && !(facts.repeats_last && refreshed);

  // Beyond its credits a queue pair sends only what an acknowledgement must follow: a packet with
  // nothing outstanding before it (the probe), and one behind packets that have not asked for an ACK.
  assign limited = nxt_consumes && !row.unlimited && facts.beyond;
  assign blocked = limited && !facts.at_una && facts.asked_all;
  // Ask whenever no later packet is sure to ask; and often enough that the ring frees early.
  assign asks    = nxt_is_last || limited || row.nxt[2:0] == '1 || facts.last_ready
                   || (facts.again && facts.last_again);

  always_comb begin
    {inits, opens, acks, credited, retries, waits, rewinds, sends, blocks, frees, commits, poisons, leaves, keeps} = '0;
    leave_to     = QpErr;
    leave_status = WcFlushErr;
    outcome      = '0;
    unique case (op.kind)
      DoInit: inits = 1'b1;
      DoCmd: begin
        leaves   = live && (op.state == QpReset || op.state == QpErr);
        leave_to = op.state;
      end
      DoCommit: begin
        commits      = 1'b1;
        poisons      = op.bad && live && !row.poisoned;
        leaves       = poisons && facts.empty;  // nothing before it
        leave_status = WcLocLenErr;
      end
      // A message that begins behind an RTS command waits for it, so it may open the queue pair.
      DoLoad: opens = may_open;
      DoVisit: begin  // these three exclude each other: `in_message`, which comes late, decides little
        opens = may_open && !in_message;
        if (facts.expired && !may_open) begin
          outcome.timeout = !row.rnr_wait;
          retries         = !row.rnr_wait;
          rewinds         = row.rnr_wait;
        end
        keeps = row.state == QpRts && facts.empty && !row.timer_on && !in_message && facts.silent && keep_room;
        outcome.keep_alive = keeps;
      end
      DoAck: begin
        outcome.stale_ack = stale;
        credited          = !stale;
        if (facts.in_window) begin
          outcome.packet_seq_err = op.ack.kind == AckNakSeq;
          outcome.rnr_nak        = op.ack.kind == AckRnr;
          acks                   = 1'b1;
          unique case (op.ack.kind)
            AckNakSeq:  retries = !facts.repeated;
            AckRnr:     waits = !(facts.repeated && row.rnr_wait);
            AckInvReq:  {leaves, leave_status} = {1'b1, WcRemInvReq};
            AckAccess:  {leaves, leave_status} = {1'b1, WcRemAccess};
            AckRemOp:   {leaves, leave_status} = {1'b1, WcRemOp};
            default: ;
          endcase
        end
      end
      DoSend: begin
        blocks             = facts.can_send && blocked;
        sends              = facts.can_send && !blocked;
        outcome.send       = sends;
        outcome.retransmit = sends && facts.again;
        outcome.ack_req    = sends && asks;
      end
      DoRelease: begin
        frees            = facts.can_release && !tail_in_use;
        leaves           = frees && facts.to_poison;
        leave_status     = WcLocLenErr;
        outcome.freed    = frees;
        outcome.complete = frees && tail_is_last;
        outcome.status   = facts.acked ? WcSuccess : row.err_reported ? WcFlushErr : row.err_status;
      end
    endcase

    // Go back N, unless the retries are spent.
    if (retries) begin
      rewinds = retry_left != '0;
      if (!rewinds) {leaves, leave_status} = {1'b1, WcRetryExc};
    end
    if (waits) begin
      rewinds = rnr_left != '0;
      waits   = rewinds;
      if (!rewinds) {leaves, leave_status} = {1'b1, WcRnrRetryExc};
    end
    outcome.left_rts = leaves;
    outcome.failed   = op.kind == DoCmd ? op.state == QpErr && row.state != QpErr : leaves;
  end

  // ---- what that makes of the row: PSNs and message numbers --------------------------------------
  psn_t base, after_nxt, after_tail, start;  // base: first PSN that is unacknowledged after this
  ssn_t base_ssn;
  logic fresh;
  assign fresh      = inits || opens;
  assign start      = opens ? cfg.init_psn : '0;
  assign base       = acks ? facts.upto : row.una;
  assign base_ssn   = progress ? ssn_t'(op.ack.msn) + 1'b1 : row.una_ssn;
  assign after_nxt  = row.nxt + 1'b1;
  assign after_tail = row.tail + 1'b1;

  // The timer measures from the last progress, while a packet that asked for an ACK has none.
  logic starts;
  tick_t ticks;
  assign starts = waits || (((progress && facts.asked_beyond) || (sends && asks && !row.timer_on)) && cfg.ack_timeout != '0);
  assign ticks  = waits ? tick_t'(RnrTicks[op.ack.value]) : ack_ticks(cfg.ack_timeout);

  always_comb begin
    next.tail     = frees ? after_tail : row.tail;
    next.una      = frees && !facts.acked ? after_tail : base;
    next.nxt      = sends ? after_nxt : rewinds || (acks && facts.passes_nxt) ? base : row.nxt;
    next.sent_end = sends && !facts.again ? after_nxt : row.sent_end;
    next.req_end  = sends && asks ? after_nxt : rewinds || (acks && facts.passes_req) ? base : row.req_end;
    next.wr       = row.wr + psn_t'(commits);
    next.poison   = poisons ? row.wr : row.poison;
    next.una_ssn  = base_ssn;
    next.ssn      = rewinds || (acks && facts.passes_nxt) ? base_ssn : row.ssn + ssn_t'(sends && nxt_is_last);
    next.lsn      = row.lsn;
    if (credited && !unlimited && (row.unlimited || facts.credits)) next.lsn = facts.limit;
    // The first packet of this message was taken, and with it a receive buffer.
    if (sends && facts.at_una && !nxt_is_first && facts.beyond) next.lsn = row.ssn;
    if (fresh) begin
      {next.tail, next.una, next.nxt, next.sent_end, next.req_end, next.wr} = {6{start}};
      {next.una_ssn, next.ssn} = {2{ssn_t'(1)}};
    end

  // ---- the timer, retries -------------------------------------------------------------------------
    next.retry_left = waits ? cfg.retry_cnt : retry_left - 3'(retries && rewinds);
    next.rnr_left   = rnr_left - 3'(waits && cfg.rnr_retry != 3'd7);  // 7: without end
    next.rnr_wait   = waits || (row.rnr_wait && !progress && !rewinds && !leaves);
    next.timer_on   = row.timer_on;
    if (starts) next.timer_on = 1'b1;
    else if (progress || rewinds || leaves) next.timer_on = 1'b0;
    if (leaves || (rewinds && !waits)) next.timer_on = 1'b0;
    next.deadline = row.deadline;
    if (starts) next.deadline = now - ~ticks;  // and one more, the present one being partly over
    else if (progress || opens || keeps) next.deadline = now;
    if (fresh) begin
      next.retry_left = cfg.retry_cnt;
      next.rnr_left   = cfg.rnr_retry;
      next.rnr_wait   = 1'b0;
      next.timer_on   = 1'b0;
    end

  // ---- the rest ------------------------------------------------------------------------------------
    next.state        = row.state;
    next.open_pending = row.open_pending;
    if (op.kind == DoCmd) begin
      // RESET and ERR take effect at once, RTS from RESET, INIT or RTR when nothing of the past is left.
      // Transitions that verbs do not know are ignored, but the short cuts from RESET to RTR and RTS are taken.
      unique case (op.state)
        QpInit, QpRtr:
          if (before_rts) begin
            next.state        = op.state;
            next.open_pending = 1'b0;
          end
        QpRts:
          if (row.state == QpSqd) next.state = QpRts;
          else next.open_pending = before_rts;
        QpSqd: if (row.state == QpRts) next.state = QpSqd;
        default: begin  // RESET, ERR
          next.state        = op.state;
          next.open_pending = 1'b0;
        end
      endcase
    end else if (leaves) next.state = leave_to;
    next.mtu          = row.mtu;
    next.poisoned     = (row.poisoned || poisons) && !leaves;
    next.midway       = (sends && !facts.again ? !nxt_is_last : row.midway) && !leaves;
    next.unlimited    = credited ? unlimited : row.unlimited;
    next.credit_wait  = blocks || (row.credit_wait && !credited && !rewinds && !leaves);
    next.err_status   = leaves ? leave_status : row.err_status;
    next.err_reported = (row.err_reported || (frees && !facts.acked && tail_is_last)) && !leaves;
    if (fresh) begin
      next.state        = inits ? QpReset : QpRts;
      next.open_pending = 1'b0;
      next.mtu          = valid_mtu(cfg.mtu);
      next.poisoned     = 1'b0;
      next.midway       = 1'b0;
      // Until the peer has spoken its buffers are not known; if it has none, it says RNR.
      next.unlimited    = 1'b1;
      next.credit_wait  = 1'b0;
      next.err_status   = WcFlushErr;
      next.err_reported = 1'b0;
    end
  end
endmodule
