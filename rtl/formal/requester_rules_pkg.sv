// SPDX-License-Identifier: SHL-2.1
// The invariant of every queue pair's row, and the guarantees of one operation on it to other modules.
// requester_step_props proves both for requester_step; proofs with its stand-in (free/) assume nothing else about it.
//
//    tail <= una <= req_end <= nxt <= sent_end <= send_end <= wr <= tail + ring,   modulo 2^24
package requester_rules_pkg;
  import penstock_pkg::*;
  import roce_tx_pkg::*;

  localparam psn_t Ring = 24'd65536;  // slots of the largest ring; any below 2^22 would do

  // Each PSN follows its neighbour, as distances from the tail, which do not change at the wrap.
  function automatic logic in_order(input psn_t tail, input psn_t first, input psn_t second);
    return first - tail <= second - tail;
  endfunction

  typedef struct packed {
    logic una, req_end, nxt, sent_end, upto, wr, ring, poison, state;
  } row_checks_t;

  function automatic row_checks_t row_checks(input qp_row_t r);
    logic rts;
    rts                 = is_live(r.state);
    row_checks.ring     = r.wr - r.tail <= Ring;
    row_checks.una      = in_order(r.tail, r.una, r.wr);
    row_checks.req_end  = !rts || in_order(r.tail, r.una, r.req_end);
    row_checks.nxt      = !rts || in_order(r.tail, r.req_end, r.nxt);
    row_checks.sent_end = !rts || in_order(r.tail, r.nxt, r.sent_end);
    row_checks.upto     = !rts || in_order(r.tail, r.sent_end, send_end(r));
    row_checks.wr       = !rts || in_order(r.tail, send_end(r), r.wr);
    row_checks.poison   = !r.poisoned || (rts && r.poison != r.wr && r.poison != r.tail);
    row_checks.state    = (rts || r.state inside {QpReset, QpInit, QpRtr, QpErr}) && (rts || !r.timer_on)
                          && !(rts && r.open_pending);
  endfunction

  // Preconditions of an operation: a free slot for a commit, and a defined state.
  function automatic logic may_do(input op_t op, input qp_row_t row);
    return (op.kind != DoCommit || row.wr - row.tail < Ring)
           && (op.kind != DoCmd || op.state inside {QpReset, QpInit, QpRtr, QpRts, QpSqd, QpErr});
  endfunction

  typedef struct packed {
    logic opens;  // only by a load or, outside messages, a visit, and when nothing of the past is left
    logic tail;   // moves by a release of a filled slot that is neither read nor filled, one at a time
    logic wr;     // moves by commits, one at a time, and the MTU not at all
    logic sends;  // the packet at nxt
    logic leaves; // is reported
    logic back;   // nxt goes back after a NAK or when a timer expires
  } step_checks_t;

  function automatic step_checks_t step_checks(input op_t op, input qp_row_t row, input qp_row_t next,
                                               input outcome_t outcome, input logic expired,
                                               input logic tail_in_use, input logic in_message);
    logic opened, empty;
    opened = op.kind == DoInit || (!is_live(row.state) && is_live(next.state));
    empty  = next.tail == next.wr && next.nxt == next.wr && !outcome.freed && !outcome.send;
    step_checks = '1;
    step_checks.leaves = outcome.left_rts == (op.kind != DoInit && is_live(row.state) && !is_live(next.state));
    if (opened) begin
      step_checks.opens = empty && next.mtu >= Mtu256 && next.mtu <= Mtu4096;
      if (op.kind != DoInit)
        step_checks.opens &= row.tail == row.wr && (op.kind == DoLoad || (op.kind == DoVisit && !in_message));
    end else begin
      step_checks.tail  = next.tail == row.tail + psn_t'(outcome.freed)
        && (!outcome.freed || (op.kind == DoRelease && row.tail != row.wr && !tail_in_use));
      step_checks.wr    = next.wr == row.wr + psn_t'(op.kind == DoCommit) && next.mtu == row.mtu;
      step_checks.sends = !outcome.send || (op.kind == DoSend && is_live(row.state) && is_live(next.state)
                                            && row.nxt != row.wr && next.nxt == row.nxt + 1'b1);
      if (is_live(row.state) && is_live(next.state)) begin
        step_checks.back = row.nxt - row.tail <= next.nxt - row.tail || expired || outcome.packet_seq_err
                           || outcome.rnr_nak;
      end
    end
  endfunction
endpackage
