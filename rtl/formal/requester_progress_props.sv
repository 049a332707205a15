// SPDX-License-Identifier: SHL-2.1
// Why go-back-N never stands still: from any row of a live queue pair that has something to send or to wait for,
// the oldest unacknowledged PSN is acknowledged, or the queue pair leaves by spent retries, after a bounded number of
// sends and ticks. One operation is looked at; `row` is any that satisfies the invariant, `next` satisfies it again.
//
// A round is what lies between two rewinds. Its packets are sent (`can_send`) until one asks for an ACK, which
// starts the timer; then only time passes. So while una stays, this rank falls with every packet sent, and nothing
// that happens makes it rise:
//
//    RNR NAKs that the peer may still send,  retries left,  timer stands,  packets to be sent in this round
//
// The network: each round is lost or heard; no more than retry_cnt rounds in a row are lost. A round is heard when
// the ACK or NAK that its request brings comes before the timer expires. Then retries never run out, because
// spent retries = lost rounds: una moves. With more lost rounds than that the queue pair fails: both ends are
// proved. The peer may be silent, repeat itself or tell of any PSN; it sends finitely many RNR NAKs (rnr_retry 7 is
// endless by definition), and each NAK of a sequence error belongs to a loss. IBTA volume 1, 9.7.5.1, 9.9.2.4.
module requester_progress_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned KIND = 0,  // of the operation, op_kind_e: one proof each
  parameter psn_t Ring = 24'd1024   // slots of the largest ring; any below 2^22 would do
) (
  input op_t     any_op,
  input qp_row_t any_row,
  input psn_t    tail, req_end, nxt, sent_end, poison, wr,  // from una
  input psn_t    ack_psn,  // from una
  input qp_cfg_t cfg,
  input tick_t   now, deadline,  // the deadline from now
  input logic [31:0] keep_alive_ticks,
  input logic    keep_room, nxt_is_first, nxt_consumes,
  input logic    nxt_is_last, tail_is_last, tail_in_use, in_message,
  input logic [2:0] lost  // rounds in a row
);
endmodule
