// SPDX-License-Identifier: SHL-2.1
// The inputs that the rules of tcp_step need from a row before its event: comparisons of sequence numbers, windows and
// times, the segment that may be sent, the round trip after an acknowledgement; combinational. They take a separate
// cycle in tcp_engine. RFC 9293: 3.4 (sequence numbers); RFC 5961: 5.2; RFC 6298: 2.2, 2.3; RFC 7323: 2.3.
module tcp_facts
  import tcp_pkg::*;
(
  input  tcp_event_t  event_in,
  input  tcp_row_t    row,
  input  tcp_choice_t choice,    // of the row
  input  tcp_tick_t   deadline,  // of its timer
  input  tcp_params_t params,
  input  tcp_tick_t   now,
  output tcp_facts_t  facts
);
  logic unused;
  assign unused = &{1'b0, event_in, row, params};

  // ---- the peer's sequence numbers; SYN and FIN count one each, and of an opening the SYN alone ----------------
  logic opening;
  logic [16:0] seg_len;
  tcp_seq_t after_all;
  assign opening   = event_in.kind == TcpOpen || row.state == TcpSynSent;
  assign seg_len   = (opening ? 17'd0 : 17'(event_in.len)) + 17'(event_in.flags.syn || opening)
                     + 17'(event_in.flags.fin && !opening);
  assign after_all = event_in.seq + 32'(seg_len);

  // From RCV.NXT: the segment, and the end of all that it counts.
  logic [31:0] starts_at, ends_at;
  assign starts_at = event_in.seq - row.rcv_nxt;
  assign ends_at   = starts_at + 32'(seg_len);

  logic starts_inside, ends_inside;
  assign starts_inside = starts_at[31:16] == '0 && starts_at[15:0] < params.receive_window;
  assign ends_inside   = ends_at[31:16] == '0 && ends_at[15:0] <= params.receive_window && ends_at != '0;

  // ---- the peer's window ---------------------------------------------------------------------------------------
  tcp_window_t window;
  assign window = 30'(event_in.window) << row.shift;

  // ---- RFC 6298 in the scaled integers of Jacobson 1988, appendix A; the first measurement has nothing before it ----
  logic [31:0] since;
  logic [26:0] rtt;
  assign since = now - row.timed_at;
  assign rtt   = since[31:27] == '0 ? since[26:0] : '1;

  // ---- the acknowledgement, or what a router names ---------------------------------------------------------------
  // It is between una and max; the oldest acknowledgement that counts is una - max_window (RFC 5961 section 5.2). With
  // the user's bytes in its place, and what is written in that of the window, the sum is what the row would hold.
  logic [31:0] acked, before_max, above;
  logic ack_reaches_una, ack_is_max, ack_beyond, max_is_written;
  assign acked           = event_in.ack - row.una;
  assign before_max      = row.max - event_in.ack;
  assign above           = acked + (event_in.kind == TcpWritten ? row.written : 32'(row.max_window));
  assign ack_reaches_una = !acked[31];
  assign ack_is_max      = before_max == '0;
  assign ack_beyond      = before_max[31];
  assign max_is_written  = row.max == row.written;

  always_comb begin
    facts.has_len     = seg_len != '0;
    facts.in_window   = (event_in.flags.rst ? starts_inside : starts_at == '0) || (starts_at[31] && ends_inside);
    facts.at_rcv_nxt  = starts_at == '0;
    facts.is_keep_alive = starts_at == '1 && seg_len == '0;
    facts.after_all   = after_all;

    facts.ack_valid           = !ack_beyond && !above[31];
    facts.ack_reaches_una     = ack_reaches_una;
    facts.ack_is_una          = acked == '0;
    facts.ack_is_max          = ack_is_max;
    facts.ack_is_written      = ack_is_max && max_is_written;
    facts.ack_passes_nxt      = tcp_before(row.nxt, event_in.ack);
    facts.ack_reaches_recover = !tcp_before(event_in.ack, row.recover);
    facts.ack_reaches_timed   = !tcp_before(event_in.ack, row.timed_seq);
    facts.acked               = acked;

    facts.window        = window;
    facts.window_same   = window == row.window;
    facts.window_larger = window > row.max_window;

    facts.error       = {1'b0, rtt} - {1'b0, row.measured ? row.srtt[29:3] : 27'd0};
    facts.rttvar_left = row.rttvar - 29'(row.rttvar[28:2]);

    facts.fits            = !event_in.ack[31] && above <= TcpMaxHeld;
    facts.path_mtu_counts = ack_reaches_una && !ack_beyond && before_max > 32'(event_in.options.mss)
                            && event_in.options.mss < 16'(row.mss) && event_in.options.mss >= TcpDefaultMss;

    facts.expired        = row.timer_on && !tcp_before(now, deadline);
    facts.spent          = params.give_up != '0 && row.tries >= params.give_up;
    facts.path_over      = now[31:24] - row.path_at >= TcpPathAgain;
    facts.challenge_over = !tcp_before(now, row.challenge_at);

    facts.idle           = choice.idle;
    facts.max_is_written = max_is_written;
    facts.window_closed  = row.window == '0;

    facts.segment = tcp_next_segment(row, choice);
    facts.again   = choice.again;
  end
endmodule
