// SPDX-License-Identifier: SHL-2.1
// Selects the next segment of a stream: an RST, a SYN, data, an acknowledgement, in this order; combinational.
// RFC 9293: 3.8.6.2.1 (silly window avoidance), 3.7.4 (Nagle), 3.8.6.1 (probes); CMS-TCP section 3.1 (while
// a loss is repaired, only the lost segment is sent). Equal to simple_tcp/pick.rs.
module tcp_pick
  import tcp_pkg::*;
(
  input  tcp_row_t     row,
  input  tcp_params_t  params,
  output tcp_segment_t segment
);
  logic unused;  // of a row most fields say nothing here
  assign unused = &{1'b0, row, params};

  function automatic logic [31:0] least(logic [31:0] a, logic [31:0] b);
    return a <= b ? a : b;
  endfunction

  logic [31:0] sent, unsent, held, usable, full, probe;
  assign sent   = row.nxt - row.una;
  assign unsent = row.written - row.nxt;
  assign held   = row.written - row.una;
  assign full   = 32'(row.mss);
  // The peer may have shrunk its window to less than is under way.
  logic has_room;
  assign has_room = 32'(row.window) > sent;
  assign usable   = has_room ? 32'(row.window) - sent : '0;

  // One byte is sent even into a closed window: the answer reports the window (3.8.6.1).
  tcp_mss_t again_len, new_len;
  assign probe     = row.window == '0 ? 32'd1 : 32'(row.window);
  assign again_len = tcp_mss_t'(held <= full ? least(held, probe) : least(full, probe));
  assign new_len   = tcp_mss_t'(unsent <= full ? least(unsent, usable) : least(full, usable));

  // 3.7.4 and 3.8.6.2.1: a segment that is not full goes if it is all there is, or half of the largest window so
  // far; with Nagle's algorithm only when nothing is under way. What was sent before goes at any length.
  // What is asked of the least of three lengths is asked of all three: the answer does not wait for the least one.
  logic may_be_short, is_full, is_all, is_half, goes_again, goes_new;
  tcp_window_t half;
  assign half         = (row.max_window >> 1) + 30'(row.max_window[0]);
  assign may_be_short = row.una == row.max || !params.nagle;
  assign is_full      = full <= unsent && full <= usable;
  assign is_all       = unsent <= full && unsent <= usable;
  assign is_half      = full >= 32'(half) && unsent >= 32'(half) && usable >= 32'(half);
  assign goes_again   = row.resend && full != '0 && held != '0;
  assign goes_new     = !row.resend && !(row.repairing && params.back_off)
                        && full != '0 && unsent != '0 && has_room
                        && (row.nxt != row.max || is_full || (may_be_short && (is_all || is_half)));

  // 3.9.1.2: the last segment of the written data has PSH.
  logic has_data, ends_at_written;
  assign has_data        = goes_again || goes_new;
  assign ends_at_written = row.resend ? held <= full && held <= probe : is_all;

  always_comb begin
    segment = '0;
    if (row.reset_due) begin
      segment.valid     = 1'b1;
      segment.seq       = row.reset_seq;
      segment.ack       = row.reset_acks ? row.rcv_nxt : '0;
      segment.flags.rst = 1'b1;
      segment.flags.ack = row.reset_acks;
    end else if (row.state == TcpSynSent && row.syn_due) begin
      segment.valid     = 1'b1;
      segment.seq       = row.una;
      segment.flags.syn = 1'b1;
    end else if (row.state == TcpEstablished) begin
      segment.valid     = has_data || row.ack_due;  // else the other fields say nothing
      segment.seq       = !has_data ? row.max : row.resend ? row.una : row.nxt;
      segment.ack       = row.rcv_nxt;
      segment.flags.ack = 1'b1;
      segment.flags.psh = has_data && ends_at_written;
      segment.len       = !has_data ? '0 : row.resend ? again_len : new_len;
    end
  end
endmodule
