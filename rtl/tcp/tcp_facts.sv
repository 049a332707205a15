// SPDX-License-Identifier: SHL-2.1
// The inputs that the rules of tcp_step need from a row before its event: comparisons of sequence numbers, windows and
// times, the segment that may be sent, the round trip after an acknowledgement; combinational. They take a separate
// cycle in tcp_engine. RFC 9293: 3.4 (sequence numbers); RFC 5961: 5.2; RFC 6298: 2.2, 2.3; RFC 7323: 2.3.
module tcp_facts
  import tcp_pkg::*;
(
  input  tcp_event_t  event_in,
  input  tcp_row_t    row,
  input  tcp_params_t params,
  input  tcp_tick_t   now,
  output tcp_facts_t  facts
);
  logic unused;
  assign unused = &{1'b0, event_in, row, params};

  // ---- the peer's sequence numbers; SYN and FIN count one each -------------------------------------------------
  logic [16:0] seg_len;
  tcp_seq_t after_data, last;
  assign seg_len    = 17'(event_in.len) + 17'(event_in.flags.syn) + 17'(event_in.flags.fin);
  assign after_data = event_in.seq + 32'(event_in.len);
  assign last       = event_in.seq + 32'(seg_len) - 32'd1;

  function automatic logic in_range(tcp_seq_t seq, tcp_seq_t start, logic [15:0] window);
    return seq - start < 32'(window);
  endfunction

  logic takes_data;
  tcp_seq_t rcv_nxt;
  assign takes_data = !tcp_before(row.rcv_nxt, event_in.seq) && tcp_before(row.rcv_nxt, after_data);
  assign rcv_nxt    = takes_data ? after_data : row.rcv_nxt;

  // ---- the peer's window ---------------------------------------------------------------------------------------
  tcp_window_t window;
  assign window = 30'(event_in.window) << row.shift;

  // ---- RFC 6298 in the scaled integers of Jacobson 1988, appendix A: alpha = 1/8, beta = 1/4 -------------------
  logic [31:0] since;
  logic [26:0] rtt;
  logic [27:0] error, deviation;  // error: two's complement
  assign since     = now - row.timed_at;
  assign rtt       = since[31:27] == '0 ? since[26:0] : '1;
  assign error     = {1'b0, rtt} - {1'b0, row.srtt[29:3]};
  assign deviation = error[27] ? -error : error;

  // ---- the user's bytes ----------------------------------------------------------------------------------------
  logic [32:0] held;
  assign held = {1'b0, row.written - row.una} + {1'b0, event_in.ack};

  tcp_segment_t segment;
  tcp_pick u_pick (.row, .params, .segment);

  always_comb begin
    facts.has_len    = seg_len != '0;
    facts.in_window  = in_range(event_in.seq, row.rcv_nxt, params.receive_window)
                       || (seg_len != '0 && in_range(last, row.rcv_nxt, params.receive_window));
    facts.at_rcv_nxt = event_in.seq == row.rcv_nxt;
    facts.after_all  = event_in.seq + 32'(seg_len);
    facts.rcv_nxt    = rcv_nxt;
    facts.fin_next   = takes_data || after_data == row.rcv_nxt;

    facts.ack_valid           = !tcp_before(row.max, event_in.ack)
                                && !tcp_before(event_in.ack, row.una - 32'(row.max_window));
    facts.ack_reaches_una     = !tcp_before(event_in.ack, row.una);
    facts.ack_is_una          = event_in.ack == row.una;
    facts.ack_is_max          = event_in.ack == row.max;
    facts.ack_is_written      = event_in.ack == row.written;
    facts.ack_passes_nxt      = tcp_before(row.nxt, event_in.ack);
    facts.ack_reaches_recover = !tcp_before(event_in.ack, row.recover);
    facts.ack_reaches_timed   = !tcp_before(event_in.ack, row.timed_seq);
    facts.acked               = event_in.ack - row.una;

    facts.window_counts = !tcp_before(event_in.seq, row.wl1);
    facts.window        = window;
    facts.window_same   = window == row.window;
    facts.window_larger = window > row.max_window;

    facts.srtt   = row.measured ? row.srtt + {{2{error[27]}}, error} : {rtt, 3'b0};
    facts.rttvar = row.measured ? row.rttvar - 29'(row.rttvar[28:2]) + 29'(deviation) : {1'b0, rtt, 1'b0};

    facts.fits            = event_in.ack == '0 || held <= 33'(TcpMaxHeld);
    facts.path_mtu_counts = !tcp_before(event_in.seq, row.una) && tcp_before(event_in.seq, row.max)
                            && event_in.options.mss < 16'(row.mss) && event_in.options.mss >= TcpMinMss;

    facts.expired        = row.timer_on && !tcp_before(now, row.deadline);
    facts.spent          = params.give_up != '0 && row.tries >= params.give_up;
    facts.challenge_over = !tcp_before(now, row.challenge_at);

    facts.idle           = row.una == row.max;
    facts.una_is_written = row.una == row.written;
    facts.max_is_written = row.max == row.written;
    facts.window_closed  = row.window == '0;

    facts.segment = segment;
  end
endmodule
