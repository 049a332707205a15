// SPDX-License-Identifier: SHL-2.1
// The rules of the RC requester: one operation on one queue pair's row, combinational.
// All operations of a queue pair are here: first the effects of the operation, then the new value of each field
// of the row. requester_facts makes the comparisons; the pipeline around both only moves rows.
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
  logic unused;  // `row` is that of op.qp; unused here: the peer's address
  assign unused = &{1'b0, op.qp, op.ack, cfg};

  logic live, before_rts, may_open;
  assign live       = is_live(row.state);
  assign before_rts = row.state == QpReset || row.state == QpInit || row.state == QpRtr;
  assign may_open   = row.open_pending && facts.empty;

  // ---- the rules: the effects of the operation, one wire each; clauses of IBTA volume 1 ----------------------
  // A row begins anew after reset, and when a queue pair that shall enter RTS has nothing of its past left
  // (10.3.1): at a visit outside messages, or at a load, since a message that begins after the command waits for it.
  logic inits, opens, fresh;
  assign inits = op.kind == DoInit;
  assign opens = may_open && (op.kind == DoLoad || (op.kind == DoVisit && !in_message));
  assign fresh = inits || opens;

  // 9.7.5.1: an ACK or NAK of a packet that is outstanding acknowledges all packets before it.
  logic acks, progress;
  assign acks     = op.kind == DoAck && facts.in_window;
  assign progress = acks && facts.progress;

  // 9.7.7.2: what an acknowledgement has of the peer's receive buffers. One that is outside the window and has
  // nothing new about them is stale.
  logic unlimited, refreshed, stale, credited;
  assign unlimited = op.ack.kind == AckOk ? op.ack.value == CreditsUnlimited : row.unlimited;
  assign refreshed = unlimited != row.unlimited || (!unlimited && facts.credits);
  assign stale     = op.kind == DoAck && !facts.in_window && !(facts.repeats_last && refreshed);
  assign credited  = op.kind == DoAck && !stale;

  // 9.7.5.2: the kinds of NAK. The last three end the message.
  logic nak_sequence, nak_not_ready, nak_invalid, nak_access, nak_operation;
  assign nak_sequence  = acks && op.ack.kind == AckNakSeq;
  assign nak_not_ready = acks && op.ack.kind == AckRnr;
  assign nak_invalid   = acks && op.ack.kind == AckInvReq;
  assign nak_access    = acks && op.ack.kind == AckAccess;
  assign nak_operation = acks && op.ack.kind == AckRemOp;

  // 9.7.6.1.3: the ACK timer has run out; or the RNR timer, after which the packet goes again (9.7.5.2.8).
  logic expires, times_out, resumes;
  assign expires   = op.kind == DoVisit && facts.expired && !may_open;
  assign times_out = expires && !row.rnr_wait;
  assign resumes   = expires && row.rnr_wait;

  // 9.9.2: a timeout or a gap costs a retry; progress renews the retries.
  logic retries, retry_spent;
  logic [2:0] retry_left;
  assign retry_left  = progress ? cfg.retry_cnt : row.retry_left;
  assign retries     = times_out || (nak_sequence && !facts.repeated);
  assign retry_spent = retries && retry_left == '0;

  // 9.7.5.2.8: a receiver that is not ready names a time to wait, and costs an RNR retry (9.9.2).
  logic rnr_nak_new, rnr_wait_start, rnr_spent;
  logic [2:0] rnr_left;
  assign rnr_left     = progress ? cfg.rnr_retry : row.rnr_left;
  assign rnr_nak_new = nak_not_ready && !(facts.repeated && row.rnr_wait);
  assign rnr_wait_start        = rnr_nak_new && rnr_left != '0;
  assign rnr_spent    = rnr_nak_new && rnr_left == '0;

  // Go back N: the packet at una is the next one again.
  logic rewinds;
  assign rewinds = resumes || rnr_wait_start || (retries && !retry_spent);

  // 9.7.7.2: beyond its credits a queue pair sends only what an acknowledgement must follow: a packet with
  // nothing outstanding before it (the probe), and one after packets without AckReq.
  logic limited, blocked, blocks, sends;
  assign limited = nxt_consumes && !row.unlimited && facts.beyond;
  assign blocked = limited && !facts.at_una && facts.requested_all;
  assign blocks  = op.kind == DoSend && facts.can_send && blocked;
  assign sends   = op.kind == DoSend && facts.can_send && !blocked;

  // 9.7.5.1: request an ACK whenever no later packet is sure to do so; and often enough that the ring frees early.
  logic ack_request;
  assign ack_request = nxt_is_last || limited || row.nxt[2:0] == '1 || facts.last_ready
                || (facts.again && facts.last_again);

  // The segmenter has filled the slot at wr, with a packet or with the end of a message of a wrong length.
  logic commits, poisons;
  assign commits = op.kind == DoCommit;
  assign poisons = commits && op.bad && live && !row.poisoned;

  // The slot at tail is free again when its packet is acknowledged, or will not be sent.
  logic frees;
  assign frees = op.kind == DoRelease && facts.can_release && !tail_in_use;

  // A peer that is idle for long is probed: the segmenter gets an empty message.
  logic keeps;
  assign keeps = op.kind == DoVisit && row.state == QpRts && facts.empty && !row.timer_on && !in_message
                 && facts.silent && keep_room;

  // 10.3.1, 9.9.2: the queue pair leaves RTS or SQD by a command, or for ERR because a message fails: one with a wrong
  // length when all before it are complete.
  logic closes, bad_length, leaves;
  wc_status_e leave_status;
  assign closes     = op.kind == DoCmd && live && (op.state == QpReset || op.state == QpErr);
  assign bad_length = (poisons && facts.empty) || (frees && facts.to_poison);
  assign leaves     = closes || bad_length || nak_invalid || nak_access || nak_operation || retry_spent || rnr_spent;

  always_comb begin
    leave_status = WcFlushErr;
    if (bad_length) leave_status = WcLocLenErr;
    if (nak_invalid) leave_status = WcRemInvReq;
    if (nak_access) leave_status = WcRemAccess;
    if (nak_operation) leave_status = WcRemOp;
    if (retry_spent) leave_status = WcRetryExc;
    if (rnr_spent) leave_status = WcRnrRetryExc;
  end

  always_comb begin
    outcome = '{
      left_rts:       leaves,
      failed:         op.kind == DoCmd ? op.state == QpErr && row.state != QpErr : leaves,
      keep_alive:     keeps,
      send:           sends,
      ack_req:        sends && ack_request,
      retransmit:     sends && facts.again,
      freed:          frees,
      complete:       frees && tail_is_last,
      status:         WcSuccess,
      packet_seq_err: nak_sequence,
      rnr_nak:        nak_not_ready,
      timeout:        times_out,
      stale_ack:      stale
    };
    if (op.kind == DoRelease && !facts.acked) outcome.status = row.err_reported ? WcFlushErr : row.err_status;
  end

  // ---- the new row: PSNs and message numbers -----------------------------------------------------
  psn_t base, after_nxt, after_tail, start;  // base: first PSN that is unacknowledged after this
  ssn_t base_ssn;
  assign start      = opens ? cfg.init_psn : '0;
  assign base       = acks ? facts.upto : row.una;
  assign base_ssn   = progress ? ssn_t'(op.ack.msn) + 1'b1 : row.una_ssn;
  assign after_nxt  = row.nxt + 1'b1;
  assign after_tail = row.tail + 1'b1;

  // The timer runs from the last progress, while a packet with AckReq has no ACK.
  logic starts;
  tick_t ticks;
  assign starts = rnr_wait_start
                  || (((progress && facts.requested_beyond) || (sends && ack_request && !row.timer_on)) && cfg.ack_timeout != '0);
  assign ticks  = rnr_wait_start ? tick_t'(RnrTicks[op.ack.value]) : ack_ticks(cfg.ack_timeout);

  always_comb begin
    next.tail     = frees ? after_tail : row.tail;
    next.una      = frees && !facts.acked ? after_tail : base;
    next.nxt      = sends ? after_nxt : rewinds || (acks && facts.passes_nxt) ? base : row.nxt;
    next.sent_end = sends && !facts.again ? after_nxt : row.sent_end;
    next.req_end  = sends && ack_request ? after_nxt : rewinds || (acks && facts.passes_req) ? base : row.req_end;
    next.wr       = row.wr + psn_t'(commits);
    next.poison   = poisons ? row.wr : row.poison;
    next.una_ssn  = base_ssn;
    next.ssn      = rewinds || (acks && facts.passes_nxt) ? base_ssn : row.ssn + ssn_t'(sends && nxt_is_last);
    next.lsn      = row.lsn;
    if (credited && !unlimited && (row.unlimited || facts.credits)) next.lsn = facts.limit;
    // The first packet of this message was taken, and with it a receive buffer.
    if (sends && facts.at_una && !nxt_is_first && facts.beyond) next.lsn = row.ssn;
    if (fresh) begin
      next.tail     = start;
      next.una      = start;
      next.nxt      = start;
      next.sent_end = start;
      next.req_end  = start;
      next.wr       = start;
      next.una_ssn  = ssn_t'(1);
      next.ssn      = ssn_t'(1);
    end

  // ---- the timer, retries -------------------------------------------------------------------------
    next.retry_left = rnr_wait_start ? cfg.retry_cnt : retry_left - 3'(retries && rewinds);
    next.rnr_left   = rnr_left - 3'(rnr_wait_start && cfg.rnr_retry != 3'd7);  // 7: without end
    next.rnr_wait   = rnr_wait_start || (row.rnr_wait && !progress && !rewinds && !leaves);
    next.timer_on   = row.timer_on;
    if (starts) next.timer_on = 1'b1;
    else if (progress || rewinds || leaves) next.timer_on = 1'b0;
    if (leaves || (rewinds && !rnr_wait_start)) next.timer_on = 1'b0;
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
      // Transitions that the verbs do not define are ignored, but the short cuts from RESET to RTR and RTS are taken.
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
    end else if (leaves) next.state = QpErr;
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
      // Until the peer has answered its buffers are unknown; without a buffer it sends RNR NAKs.
      next.unlimited    = 1'b1;
      next.credit_wait  = 1'b0;
      next.err_status   = WcFlushErr;
      next.err_reported = 1'b0;
    end
  end
endmodule
