// SPDX-License-Identifier: SHL-2.1
// Proof that go-back-N always makes progress: while sent data is unacknowledged, una moves, or the queue pair fails
// with exhausted retries, after a bounded number of sends and ticks. The proof considers one operation on any row that
// satisfies the invariant; `next` satisfies it again. IBTA volume 1, 9.7.5.1 (acknowledgements), 9.7.6.1.3, 9.9.2.4
// (retries).
//
// A round is the time between two rewinds. Packets leave (`can_send`) until one requests an ACK: one of 16 does.
// That starts the timer, whose deadline then stays constant. So, while una stays, this rank never rises, and falls with
// each packet sent before the timer runs, each timer that expires, and each RNR NAK:
//
//    RNR NAKs that the peer may still send | retries left | RNR wait > sending > waiting | packets until AckReq
//
// The network may lose, repeat, delay and invent acknowledgements. A round is lost when it ends in a timeout or in
// a NAK for a sequence error. Lost rounds in a row + retries left = retry_cnt, so the queue pair fails exactly when
// more than retry_cnt rounds in a row are lost; otherwise the rank implies that una moves. An
// acknowledgement of any outstanding PSN does move it. Assumed: ack_timeout is not 0 (never) and, with retry_cnt,
// constant; RNR NAKs end eventually (rnr_retry 7 has no other limit); operations that are due are executed
// (arbiter_rr).
module requester_progress_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter psn_t Ring = 24'd65536  // slots of the largest ring; any below 2^22 would do
) (
  input op_t     any_op,
  input qp_row_t any_row,
  input psn_t    used, req_end, nxt, sent_end, poison, wr,  // from una, `used` slots after it
  input psn_t    ack_psn,                                   // from una
  input qp_cfg_t cfg,
  input tick_t   now, left,                                 // ticks until the deadline
  input logic [31:0] keep_alive_ticks,
  input logic    keep_room, nxt_is_first, nxt_consumes,
  input logic    nxt_is_last, tail_is_last, tail_in_use, in_message,
  input logic [2:0] lost                                    // rounds in a row
);
  op_t op;
  qp_row_t row, next;
  outcome_t outcome;

  always_comb begin
    op           = any_op;
    row          = any_row;
    row.tail     = row.una - used;
    row.req_end  = row.una + req_end;
    row.nxt      = row.una + nxt;
    row.sent_end = row.una + sent_end;
    row.poison   = row.una + poison;
    row.wr       = row.una + wr;
    row.deadline = now + left;
    op.ack.psn   = row.una + ack_psn;
  end

  facts_t facts;
  requester_facts u_facts (.*);
  requester_step dut (.*);

  // ---- the invariant --------------------------------------------------------------------------------
  typedef enum logic [1:0] {PhWaiting, PhSending, PhRnrWait} phase_e;  // in the order of the rank
  typedef struct packed {
    logic timer, rnr, credit, ack_req;
  } checks_t;

  function automatic phase_e phase(input qp_row_t r);
    return r.rnr_wait ? PhRnrWait : r.timer_on ? PhWaiting : PhSending;
  endfunction

  function automatic checks_t checks(input qp_row_t r);
    checks.timer  = r.rnr_wait ? r.timer_on : r.timer_on == (r.req_end != r.una);
    checks.rnr    = !r.rnr_wait || (r.nxt == r.una && r.req_end == r.una && !r.credit_wait);
    // While it waits for credits, an ACK of all that is outstanding has been requested.
    checks.credit = !r.credit_wait || (r.nxt != r.una && r.req_end == r.nxt);
    // A packet without AckReq is followed by another one, even while the queue pair drains.
    checks.ack_req = r.nxt == r.req_end || (r.nxt != send_end(r) && (r.midway || r.nxt != r.sent_end));
  endfunction

  logic was, is;
  psn_t upto;
  assign was  = is_live(row.state);
  assign is   = is_live(next.state) && op.kind != DoInit;
  assign upto = row.poisoned ? poison : wr;
  always_comb begin
    assume (cfg.ack_timeout != '0);
    if (op.kind == DoCmd) assume (op.state inside {QpReset, QpInit, QpRtr, QpRts, QpSqd, QpErr});
    assume (row.state inside {QpReset, QpInit, QpRtr, QpRts, QpSqd, QpErr});
    assume (used <= Ring && wr <= Ring && used + wr <= Ring);  // and the order that requester_step_props proves
    if (was) assume (req_end <= nxt && nxt <= sent_end && sent_end <= upto && upto <= wr && !row.open_pending);
    if (op.kind == DoCommit) assume (used + wr < Ring);
    if (was) assume (checks(row) == '1 && 4'(row.retry_left) + 4'(lost) == 4'(cfg.retry_cnt));
    // A deadline is no further than the longest time that a timer is set to, and not 10 hours ago.
    if (was && row.timer_on)
      assume (left != {1'b1, 35'd0} && $signed(left) <= 36'sd1 + 36'($signed({1'b0, most(row.rnr_wait)})));
  end

  function automatic tick_t most(input logic rnr);
    return rnr ? 36'(RnrTicks[0]) : ack_ticks(cfg.ack_timeout);
  endfunction

  // ---- the rank -------------------------------------------------------------------------------------
  typedef struct packed {
    logic [2:0] retries;
    phase_e     phase;
    logic [2:0] unasked;
  } rank_t;

  function automatic rank_t rank(input qp_row_t r);
    rank = '{retries: r.retry_left, phase: phase(r), unasked: phase(r) == PhSending ? ~r.nxt[2:0] : '0};
  endfunction

  logic stays, moves, expired, lost_now;
  logic [2:0] lost_next;
  checks_t after;
  assign after   = checks(next);
  assign stays   = was && is;
  assign moves   = next.una != row.una;
  assign expired = op.kind == DoVisit && row.timer_on && $signed(left) <= 0;
  // A repeated NAK, after the rewind, means no other loss.
  assign lost_now = outcome.timeout || (outcome.packet_seq_err && nxt != ack_psn);
  always_comb begin
    lost_next = lost;
    // The peer that is not ready has received the packet; a repeated RNR NAK changes nothing.
    if (moves || !was || (outcome.rnr_nak && !(row.rnr_wait && nxt == ack_psn))) lost_next = '0;
    if (lost_now) lost_next = lost_next + 1'b1;
  end

  logic una_waits;  // for something
  assign una_waits = sent_end != '0 || (row.state == QpRts && upto != '0);

  always_comb begin
    if (is) begin
      a_timer : assert (after.timer);
      a_rnr : assert (after.rnr);
      a_credit : assert (after.credit);
      a_ack_req : assert (after.ack_req);
      a_retries : assert (4'(next.retry_left) + 4'(lost_next) == 4'(cfg.retry_cnt));
      if (next.timer_on) a_deadline : assert (next.deadline == row.deadline || $signed(next.deadline - now) <=
                                              36'sd1 + 36'($signed({1'b0, most(next.rnr_wait)})));
    end
    // Nothing sent waits for nothing; nor does what has been posted.
    if (was && una_waits) a_armed : assert (can_send(row) || row.timer_on);
    if (was && op.kind == DoSend && can_send(row) && !row.timer_on) a_sends : assert (outcome.send);
    // The rank.
    if (stays && !moves) begin
      if (!outcome.rnr_nak) a_never_rises : assert (rank(next) <= rank(row));
      if (expired || (outcome.send && !row.timer_on)) a_falls : assert (rank(next) < rank(row));
      if (phase(row) != PhSending && phase(next) == phase(row))
        a_deadline_stays : assert (next.deadline == row.deadline);
    end
    // An acknowledgement of something outstanding moves una, or names the PSN to begin again with.
    if (was && op.kind == DoAck && ack_psn < sent_end) begin
      if (op.ack.kind == AckOk) a_acknowledged : assert (is && next.una == op.ack.psn + 1'b1);
      else a_repeated : assert (!is || next.una == op.ack.psn);
    end
    // Nothing else moves it: what counts as acknowledged is.
    if (stays && moves) a_only_acks : assert (op.kind == DoAck && ack_psn < sent_end);
    // Spent retries, and nothing else, are more lost rounds in a row than retry_cnt.
    if (was && next.state == QpErr && next.err_status == WcRetryExc && op.kind != DoCmd)
      a_spent : assert (lost_now && (lost == cfg.retry_cnt || (moves && cfg.retry_cnt == '0)));
    if (was && outcome.timeout && lost == cfg.retry_cnt) a_ends : assert (next.state == QpErr);

    c_round : cover (stays && outcome.timeout && row.nxt < row.una && lost == 3'd6);
    c_probe : cover (stays && outcome.send && !row.timer_on && next.timer_on && nxt_consumes && !row.unlimited);
    c_drains : cover (stays && row.state == QpSqd && outcome.send && !next.midway && next.nxt == next.sent_end);
    c_spent : cover (was && next.state == QpErr && next.err_status == WcRetryExc && outcome.packet_seq_err);
  end
endmodule
