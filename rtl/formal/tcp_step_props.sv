// SPDX-License-Identifier: SHL-2.1
// The effect of one event on the four sequence numbers of a TCP stream, at any position in the 32 bits. `row` is any
// row that satisfies the invariant; `next` must satisfy it again, so it always holds:
//
//    una <= nxt <= max <= written <= una + 2^30;   the timer runs exactly while data is unacknowledged
//
// Nothing is sent beyond the peer's window except the one byte that probes a closed window, and only written data is
// sent; una moves only to data that was sent and that the peer acknowledges, so that nothing is overwritten earlier;
// each expired timer sends a segment or ends the stream. A router's message shortens segments only when one times out
// before anything is acknowledged, never below 536 bytes, and until ten minutes have passed. RFC 9293 sections 3.4, 3.8.6, 3.10.7; RFC 6298 section 5; RFC
// 5961; RFC 5927 section 7.2.
//
// The sequence numbers are given as offsets from one another. This covers all cases, and shows the solver that only
// differences matter.
module tcp_step_props
  import tcp_pkg::*;
#(
  parameter int unsigned KIND = 0  // of the event, tcp_event_e: one proof each
) (
  input tcp_event_t  any_event,
  input tcp_row_t    any_row,
  input tcp_seq_t    nxt, max, written, ack,  // from una
  input tcp_params_t params,
  input tcp_tick_t   now, deadline
);
  tcp_event_t event_in;
  tcp_row_t row, next;
  tcp_facts_t facts;
  tcp_actions_t actions;
  tcp_room_t room, room_after;
  tcp_choice_t choice, choice_after;
  tcp_segment_t after;
  logic starts;

  always_comb begin
    event_in      = any_event;
    event_in.kind = tcp_event_e'(KIND);
    row           = any_row;
    row.nxt       = row.una + nxt;
    row.max       = row.una + max;
    row.written   = row.una + written;
    if (KIND inside {TcpSegment, TcpPathMtu}) event_in.ack = row.una + ack;
  end

  tcp_room u_room (.*);
  tcp_pick u_pick (.*);
  tcp_facts u_facts (.*);
  tcp_step dut (.*);

  tcp_room u_room_after (.row(next), .params, .room(room_after));
  tcp_pick u_after (.room(room_after), .choice(choice_after));
  assign after = tcp_next_segment(next, choice_after);

  logic was_up, is_up, was_live, is_live;
  assign was_up   = row.state == TcpEstablished;
  assign is_up    = next.state == TcpEstablished;
  assign was_live = was_up || row.state == TcpSynSent;
  assign is_live  = is_up || next.state == TcpSynSent;

  tcp_seq_t next_nxt, next_max, next_written, moved, sent_at, sent_to;
  assign next_nxt     = next.nxt - next.una;
  assign next_max     = next.max - next.una;
  assign next_written = next.written - next.una;
  assign moved        = next.una - row.una;
  assign sent_at      = actions.send.seq - row.una;
  assign sent_to      = sent_at + 32'(actions.send.len);

  always_comb begin
    // What software may set, and the states that there are.
    assume (params.mss >= 14'(TcpMinMss) && params.receive_window != '0);
    assume (row.state inside {TcpClosed, TcpSynSent, TcpEstablished});
    if (KIND == TcpWritten) assume (!event_in.ack[31]);
    // The invariant.
    if (was_up) begin
      assume (nxt <= max && max <= written && written <= TcpMaxHeld);
      assume (row.timer_on == (written != '0));
      assume (!row.probing || written != '0);
      assume (row.mss >= 14'(TcpMinMss));
      assume (row.too_long == '0 || (row.too_long >= 14'(TcpDefaultMss) && row.too_long < row.mss));
      assume (!row.shortened || row.whole_mss > row.mss);
    end
    if (row.state == TcpSynSent) begin
      assume (nxt == 32'd1 && max == 32'd1 && written != '0 && written <= TcpMaxHeld);
      assume (row.timer_on && !row.resend && !row.repairing && !row.probing);
      assume (row.too_long == '0 && !row.shortened);
    end
    if (row.state == TcpClosed) assume (!row.timer_on);
  end

  // The peer's place after a segment (RFC 9293 section 3.10.7.4: what is new to us of its data, and a FIN after that).
  tcp_seq_t data_end, rcv_after;
  assign data_end = event_in.seq + 32'(event_in.len);
  always_comb begin
    rcv_after = row.rcv_nxt;
    if (!tcp_before(row.rcv_nxt, event_in.seq) && tcp_before(row.rcv_nxt, data_end)) rcv_after = data_end;
    if (actions.opened) rcv_after = event_in.seq + 32'd1;
  end

  // The segments of the peer that count (RFC 9293 section 3.10.7.4): those without a gap before them, which acknowledge
  // something from una to max.
  tcp_seq_t seg_at, seg_last;
  logic in_order, counts;
  assign seg_at   = event_in.seq - row.rcv_nxt;
  assign seg_last = seg_at + 32'(event_in.len) + 32'(event_in.flags.fin) - 32'd1;
  assign in_order = seg_at == '0 || (seg_at[31] && seg_last < 32'(params.receive_window));
  assign counts   = was_up && KIND == TcpSegment && in_order && event_in.flags.ack && !event_in.flags.rst
                    && !event_in.flags.syn && ack <= max;

  // The messages of routers that count (RFC 5927 sections 4.1 and 7.2).
  logic limits;
  tcp_row_t limited;
  assign limits = was_up && row.too_long == '0 && ack < max && max - ack > 32'(event_in.options.mss)
                  && event_in.options.mss < 16'(row.mss) && event_in.options.mss >= TcpDefaultMss;
  always_comb begin
    limited          = row;
    limited.too_long = next.too_long;
  end

  logic hastens;
  assign hastens = was_up && KIND == TcpSegment && event_in.seq + 32'd1 == row.rcv_nxt && event_in.len == '0
                   && event_in.flags.ack && !event_in.flags.rst && !event_in.flags.syn && !event_in.flags.fin
                   && row.backoff != '0 && max != '0;

  logic expired, stays;
  assign expired = KIND == TcpTick && row.timer_on && !tcp_before(now, deadline);
  assign stays   = was_up && is_up;

  always_comb begin
    // The invariant again.
    if (is_up) begin
      a_nxt : assert (next_nxt <= next_max);
      a_max : assert (next_max <= next_written);
      a_written : assert (next_written <= TcpMaxHeld);
      a_timer : assert (next.timer_on == (next_written != '0));
      a_probing : assert (!next.probing || next_written != '0);
      a_mss : assert (next.mss >= 14'(TcpMinMss));
      a_limit : assert (next.too_long == '0 || (next.too_long >= 14'(TcpDefaultMss) && next.too_long < next.mss));
      a_whole : assert (!next.shortened || next.whole_mss > next.mss);
    end
    if (next.state == TcpSynSent) begin
      a_opening : assert (next_nxt == 32'd1 && next_max == 32'd1 && next_written != '0 && next_written <= TcpMaxHeld
                          && next.timer_on && !next.resend && !next.repairing && !next.probing
                          && next.too_long == '0 && !next.shortened);
    end
    a_state : assert (next.state inside {TcpClosed, TcpSynSent, TcpEstablished});
    if (next.state == TcpClosed) a_closed : assert (!next.timer_on);

    // Nothing beyond the window is sent but a probe's byte, nothing that was not written, nothing out of order.
    if (actions.send.valid && actions.send.len != '0) begin
      a_0_sends : assert (stays && KIND == TcpTransmit && !actions.send.flags.syn && !actions.send.flags.rst);
      a_1_from : assert (sent_at <= max);
      a_2_to : assert (sent_to <= written && sent_at <= sent_to);
      a_3_window : assert (sent_to <= 32'(row.window) || (row.window == '0 && sent_at == '0 && sent_to == 32'd1));
      a_4_max : assert (next_max == (sent_to > max ? sent_to : max));
      a_5_mss : assert (actions.send.len <= row.mss);
      a_again : assert (actions.counts.retransmitted == (sent_at < max));
    end else if (stays) a_6_max : assert (next_max == max - moved);

    // una moves only to what an acknowledgement names of what was sent.
    if (stays) a_7_una : assert (moved <= max && (moved == '0 || (KIND == TcpSegment && event_in.flags.ack
                                                                 && event_in.ack == next.una)));
    if (stays && moved != '0 && next_written != '0) a_restarts : assert (starts);  // RFC 6298 section 5.3
    if (stays) a_8_reported : assert (32'(actions.acknowledged) == moved);
    a_9_acknowledged : assert (32'(actions.acknowledged) <= max || !was_up);
    if (stays) a_user : assert (next.written == row.written || (KIND == TcpWritten
                                && next.written == row.written + event_in.ack));

    // Bytes that fit are taken.
    if (KIND == TcpWritten && was_up)
      a_fits : assert (actions.counts.ignored == (33'(written) + 33'(event_in.ack) > 33'(TcpMaxHeld)));

    // A router's message about a longer segment under way is kept, and changes nothing else.
    if (KIND == TcpPathMtu) begin
      a_keeps : assert (next.too_long == (limits ? event_in.options.mss[13:0] : row.too_long));
      a_counted : assert (actions.counts.ignored == !limits);
      a_nothing : assert (next == limited && !starts);
    end
    // It is forgotten when data is acknowledged, and applied when a segment times out.
    if (stays && moved != '0) a_forgets : assert (next.too_long == '0);
    if (stays && next.mss < row.mss)
      a_shortens : assert (expired && actions.counts.timeout && actions.counts.path_mtu && next.mss == row.too_long
                           && next.shortened && next.path_at == now[31:24]);
    if (stays && next.mss > row.mss)
      a_restores : assert (KIND == TcpTick && now[31:24] - row.path_at >= TcpPathAgain && !next.shortened
                           && next.mss == row.whole_mss);
    if (stays && row.shortened) a_kept : assert (!next.shortened || next.whole_mss == row.whole_mss);
    if (stays && !row.shortened) a_kept_first : assert (!next.shortened || next.whole_mss == row.mss);
    if (stays && KIND == TcpTick && row.shortened && now[31:24] - row.path_at >= TcpPathAgain && !expired)
      a_ends : assert (!next.shortened);
    if (KIND == TcpSegment && is_up && (actions.opened || (was_up && event_in.flags.ack && !event_in.flags.syn
                                                           && !actions.counts.bad_ack && !actions.counts.out_of_window
                                                           && !event_in.flags.rst)))
      a_rcv_nxt : assert (next.rcv_nxt == rcv_after);

    // A closed window lasts until the peer's next segment at most; a forged one, which misses the next sequence number
    // or acknowledges what was not sent, changes nothing that holds data back or gives up.
    if (counts && is_up)
      a_window : assert (next.window == (seg_at == '0 ? 30'(event_in.window) << row.shift : row.window));
    if (stays && !counts && KIND == TcpSegment)
      a_forged : assert (next.window == row.window && next.max_window == row.max_window && next.una == row.una
                         && next.probing == row.probing && next.tries == row.tries
                         && next.backoff == row.backoff && next.resend == (row.resend || hastens));
    // RFC 9293 section 3.8.4: a keep-alive probe, one before RCV.NXT, shows that the peer can be reached.
    if (hastens) a_hastens : assert (next.resend);

    // A connection ends by name, and a stranger's RST or SYN ends none (RFC 5961).
    a_ended : assert ((actions.ended != TcpNotEnded) == (was_live && !is_live));
    if (actions.ended == TcpReset) a_reset : assert (event_in.flags.rst && event_in.seq == row.rcv_nxt);
    if (was_up && KIND == TcpSegment && event_in.seq != row.rcv_nxt && event_in.len == '0)
      a_blind : assert (stays);
    if (was_up && KIND == TcpSegment && event_in.flags.syn && !event_in.flags.rst) a_syn : assert (stays);

    // nxt goes back only for a loss, and only without back-off.
    if (stays && next.nxt - row.una < nxt)
      a_back : assert (!params.back_off && (actions.counts.timeout || row.probing));

    // Progress: an expired timer sends, or ends the stream; the tries run out unless an acknowledgement arrives.
    if (expired && is_live) a_sends : assert (after.valid && next.timer_on && starts);
    if (expired && was_live && !is_live)
      a_gives_up : assert (params.give_up != '0 && row.tries >= params.give_up && actions.ended == TcpTimedOut);
    if (actions.counts.timeout && row.tries != '1) a_tries : assert (next.tries == row.tries + 8'd1);
    if (stays && next.tries < row.tries) a_tries_fall : assert (KIND == TcpSegment && event_in.flags.ack);

    c_wraps : cover (KIND != TcpTransmit || (stays && actions.send.len > 14'd100 && actions.send.seq[31]
                                             && !next.nxt[31]));
    c_acks : cover (KIND != TcpSegment || (stays && moved > 32'd1000 && next.una < row.una));
    c_closes : cover (KIND != TcpSegment || (actions.counts.window_closed && stays));
    c_fast : cover (KIND != TcpSegment || actions.counts.fast_retransmit);
    c_reopens : cover (KIND != TcpSegment || (stays && row.probing && !next.probing && next_written != '0));
    c_comes_up : cover (KIND != TcpSegment || (actions.opened && next_written > 32'd1000));
    c_probe : cover (KIND != TcpTick || (stays && actions.counts.probe && next.window == '0));
    c_gives_up : cover (KIND != TcpTick || actions.ended == TcpTimedOut);
    c_writes : cover (KIND != TcpWritten || (stays && next_written == TcpMaxHeld && next.timer_on && !row.timer_on));
    c_opens : cover (KIND != TcpOpen || next.state == TcpSynSent);
    c_limits : cover (KIND != TcpPathMtu || next.too_long == 14'd536);
    c_forgets : cover (KIND != TcpSegment || (stays && row.too_long != '0 && next.too_long == '0));
    c_shortens : cover (KIND != TcpTick || (actions.counts.path_mtu && next.mss == 14'd536));
    c_restores : cover (KIND != TcpTick || (stays && next.mss > row.mss));
  end
endmodule
