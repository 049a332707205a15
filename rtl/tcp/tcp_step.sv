// SPDX-License-Identifier: SHL-2.1
// The rules of the simplified TCP: one event on one stream's row, combinational: first the effects of the event, then
// the new value of each field. tcp_facts makes the comparisons; tcp_timer computes the time at which a timer that
// `starts` expires; tcp_engine puts registers between them. Equal to simple_tcp::step in crates/transport, bit for bit.
// RFC 9293 (TCP), RFC 5681 and 6582 (fast retransmit), RFC 6298 (timer), RFC 5961 (blind injection), RFC 7323 (window
// scale), RFC 1191 and 5927 (path MTU), CMS-TCP section 3.1 (the subset that is kept).
module tcp_step
  import tcp_pkg::*;
(
  input  tcp_event_t   event_in,
  input  tcp_row_t     row,
  input  tcp_facts_t   facts,
  input  tcp_params_t  params,
  input  tcp_tick_t    now,
  output tcp_row_t     next,
  output logic         starts,  // the timer
  output tcp_actions_t actions
);
  tcp_flags_t flags;
  logic is_segment, unused;  // unused: control bits that mean nothing here
  assign unused = &{1'b0, event_in, params, facts, flags};
  assign flags  = event_in.flags;
  assign is_segment  = event_in.kind == TcpSegment;

  // ---- CLOSED, RFC 9293 section 3.10.7.1: every segment except an RST is answered by RST -------------------------
  logic stray, answers_stray;
  assign stray         = is_segment && row.state == TcpClosed;
  assign answers_stray = stray && !flags.rst && !row.reset_due;

  // ---- SYN_SENT, 3.10.7.3. A SYN without ACK would lead to SYN_RECEIVED, which this TCP has not. An ACK of another
  // SYN is of a former connection: the RST ends that at the peer, and the next SYN finds it free. -------------------
  logic opening, acks_syn, answers_former, refused, comes_up;
  assign opening        = is_segment && row.state == TcpSynSent;
  assign acks_syn       = flags.ack && facts.ack_is_max;
  assign answers_former = opening && flags.ack && !facts.ack_is_max && !flags.rst && !row.reset_due;
  assign refused        = opening && acks_syn && flags.rst;
  assign comes_up       = opening && acks_syn && !flags.rst && flags.syn;

  // RFC 9293 section 3.7.1 (MSS), RFC 7323 section 2.3 (a scale above 14 counts as 14).
  logic bad_option;
  logic [15:0] peer_mss;
  logic [3:0] peer_shift;
  assign bad_option = event_in.options.malformed
                      || (event_in.options.has_mss && event_in.options.mss < TcpMinMss)
                      || (event_in.options.has_scale && event_in.options.scale > TcpMaxScale);
  always_comb begin
    peer_mss = event_in.options.has_mss ? event_in.options.mss : TcpDefaultMss;
    if (peer_mss < TcpMinMss) peer_mss = TcpMinMss;
    if (peer_mss > 16'(params.mss)) peer_mss = 16'(params.mss);
    peer_shift = 4'd0;
    if (event_in.options.has_scale)
      peer_shift = event_in.options.scale > TcpMaxScale ? TcpMaxScale[3:0] : event_in.options.scale[3:0];
  end

  // ---- ESTABLISHED, 3.10.7.4, in its order: sequence number (no data is kept, so segments after a gap are dropped),
  // RST (RFC 5961 section 3.2: only the very next sequence number resets), SYN (RFC 5961 section 4.2: never ends a
  // connection), ACK (RFC 5961 section 5.2) -------------------------------------------------------------------------
  logic arrives, outside, in_window, resets, plain, bad_ack, takes, acks;
  assign arrives   = is_segment && row.state == TcpEstablished;
  assign outside   = arrives && !facts.in_window;
  assign in_window = arrives && facts.in_window;
  assign resets    = in_window && flags.rst && facts.at_rcv_nxt;
  assign plain     = in_window && !flags.rst && !flags.syn;
  assign bad_ack   = plain && flags.ack && !facts.ack_valid;
  assign takes     = plain && flags.ack && facts.ack_valid;
  assign acks      = takes && facts.ack_reaches_una;

  // RFC 5961 section 7: an ACK with our present state, at most one per interval.
  logic unproven, challenges;
  assign unproven     = (outside && !flags.rst) || (in_window && flags.rst && !facts.at_rcv_nxt)
                      || (in_window && !flags.rst && flags.syn) || bad_ack;
  assign challenges = unproven && (!row.challenge_held || facts.challenge_over);

  // RFC 9293 section 3.8.4: a keep-alive probe of the peer shows that it can be reached: unacknowledged data go
  // again now, and not when its doubled timeout is over.
  logic hastens;
  assign hastens = outside && facts.is_keep_alive && flags.ack && !flags.rst && row.backoff != '0 && !facts.idle;

  // The peer's data is acknowledged and dropped; its FIN ends the stream.
  logic has_data, finishes;
  assign has_data = takes && event_in.len != '0;
  assign finishes = takes && flags.fin;

  // SND.WL1 and SND.WL2 are not needed: of two segments at RCV.NXT the older one has an earlier acknowledgement, and one
  // from before it may be older than the present window.
  logic updates, open_after;
  assign updates    = acks && facts.at_rcv_nxt;
  assign open_after = updates ? facts.window != '0 : !facts.window_closed;

  // New data is acknowledged; a measured segment among it (RFC 6298 section 3); all that was written.
  logic advances, measures, empties, recovers, repairs;
  assign advances = acks && !facts.ack_is_una;
  assign measures = row.timing && (comes_up || (advances && facts.ack_reaches_timed));
  assign empties  = advances && facts.ack_is_written;
  assign recovers = advances && row.repairing && facts.ack_reaches_recover;
  assign repairs  = advances && row.repairing && !facts.ack_reaches_recover;

  // RFC 6298 section 2.2 and 2.3 in the scaled integers of Jacobson 1988, appendix A: alpha = 1/8, beta = 1/4.
  logic [29:0] srtt;
  logic [28:0] rttvar, deviation;
  assign deviation = {29{facts.error[27]}} ^ 29'($signed(facts.error));  // less one if the error is negative
  assign srtt      = row.measured ? row.srtt + 30'($signed(facts.error)) : {facts.error[26:0], 3'b0};
  assign rttvar    = row.measured ? facts.rttvar_left + deviation + 29'(facts.error[27]) : {facts.error, 1'b0};

  // RFC 5681 section 2 (duplicate; not of a closed window, whose probes are answered just like this) and 3.2.
  logic duplicate, fast;
  assign duplicate = acks && facts.ack_is_una && !facts.idle && !facts.has_len && facts.window_same
                     && facts.window != '0;
  assign fast      = duplicate && row.duplicates >= TcpDupThreshold - 2'd1 && !row.repairing;

  // RFC 9293 section 3.8.6.1: the peer lives; a window that was closed is open, what was sent into it may be gone.
  logic probed, reopens;
  assign probed  = acks && row.probing && !empties;
  assign reopens = probed && open_after;

  // ---- the timer: RFC 6298 section 5.4 to 5.6; RFC 9293 section 3.8.6.1 (a closed window), 3.8.3 (give-up) --------
  // With nothing under way data waits for the line, or for a window that is worth while (3.8.6.2.1, rule 4).
  logic expires, waits, prods, gives_up, times_out, probes, retransmits;
  assign expires     = event_in.kind == TcpTick && facts.expired;
  assign waits       = expires && row.state == TcpEstablished && facts.idle && !facts.window_closed;
  assign prods       = waits && (!facts.segment.valid || facts.segment.len == '0);
  assign gives_up    = expires && !waits && facts.spent;
  assign times_out   = expires && !waits && !facts.spent;
  assign probes      = times_out && row.state == TcpEstablished && facts.window_closed;
  assign retransmits = times_out && !probes;

  // ---- a segment goes out ----------------------------------------------------------------------------------------
  logic sends, sends_reset, sends_syn, sends_data, sends_again;
  tcp_seq_t seg_end;
  assign sends       = event_in.kind == TcpTransmit && facts.segment.valid;
  assign sends_reset = sends && facts.segment.flags.rst;
  assign sends_syn   = sends && facts.segment.flags.syn;
  assign sends_data  = sends && facts.segment.len != '0;
  assign sends_again = sends_data && facts.again;
  assign seg_end     = facts.segment.seq + 32'(facts.segment.len);

  // RFC 6298 section 3 (Karn): retransmitted data is not measured.
  logic times_syn, times_data;
  assign times_syn  = sends_syn && row.tries == '0;
  assign times_data = sends_data && !sends_again && !row.timing && !row.probing;

  // ---- the user: RFC 9293 section 3.10.1 (open), 3.10.5 (abort); a router: RFC 1191 section 4, RFC 5927 4.1 --------
  // A router's limit holds for longer segments under way, and is never below what all hosts take (RFC 1122 3.3.3).
  logic opens, aborts, writes, limits;
  assign opens    = event_in.kind == TcpOpen && row.state == TcpClosed;
  assign aborts   = event_in.kind == TcpAbort && row.state != TcpClosed;
  assign writes   = event_in.kind == TcpWritten && row.state != TcpClosed && facts.fits;
  assign limits   = event_in.kind == TcpPathMtu && row.state == TcpEstablished && row.too_long == '0
                    && facts.path_mtu_counts;

  // It is applied if a segment times out before anything is acknowledged (RFC 5927 section 7.2), and for ten minutes.
  logic shortens, restores;
  assign shortens = retransmits && row.state != TcpSynSent && row.too_long != '0;
  assign restores = event_in.kind == TcpTick && row.shortened && facts.path_over && !facts.expired;

  // ---- the end: the peer gets an RST unless it ended the connection ------------------------------------------------
  logic ends, sends_rst, fresh;
  assign ends  = aborts || refused || resets || finishes || gives_up;
  assign sends_rst = row.state == TcpEstablished && !resets;
  assign fresh = opens || ends;

  // ---- a loss: the segment at una goes again; without back-off all that is under way, unless the loss is only that
  // of one segment (CMS-TCP section 3.1) ---------------------------------------------------------------------------
  logic loses_more, loses, rewinds;
  assign loses_more = (reopens && !facts.ack_is_max) || (retransmits && row.state != TcpSynSent);
  assign loses      = fast || loses_more;
  assign rewinds    = loses_more && !params.back_off;

  assign starts = opens || (comes_up && !facts.max_is_written)
                  || (writes && facts.idle && facts.max_is_written && event_in.ack != '0) || waits
                  || times_out || sends_syn || (sends_data && facts.idle)
                  || (!finishes && (fast || (advances && !empties) || reopens));

  // ---- the new row: sequence numbers -------------------------------------------------------------------------------
  logic rcv_advances;
  assign rcv_advances = comes_up || takes || (answers_stray && !flags.ack);

  always_comb begin
    next = row;
    if (comes_up) next.una = row.max;
    if (advances) next.una = event_in.ack;

    if (advances && facts.ack_passes_nxt) next.nxt = event_in.ack;
    if (rewinds) next.nxt = acks ? event_in.ack : row.una;
    // A probe may be dropped, so what follows it begins with the same byte.
    if (sends_data && !(row.resend && row.probing) && tcp_before(row.nxt, seg_end)) next.nxt = seg_end;

    if (sends_data && tcp_before(row.max, seg_end)) next.max = seg_end;
    if (writes) next.written = row.written + event_in.ack;

    // RFC 7323 section 2.2: the window of a SYN is not scaled.
    if (comes_up) begin
      next.window     = 30'(event_in.window);
      next.max_window = 30'(event_in.window);
      next.shift      = peer_shift;
    end else if (updates) begin
      next.window = facts.window;
      if (facts.window_larger) next.max_window = facts.window;
    end
    if (comes_up) next.mss = peer_mss[13:0];
    if (restores) {next.mss, next.shortened} = {row.whole_mss, 1'b0};
    if (shortens) {next.mss, next.shortened, next.path_at} = {row.too_long, 1'b1, now[31:24]};
    if (shortens && !row.shortened) next.whole_mss = row.mss;
    if (limits) next.too_long = event_in.options.mss[13:0];
    if (shortens || advances) next.too_long = '0;

    // Data or FIN that come with a SYN are not taken: the peer sends them again.
    if (rcv_advances) next.rcv_nxt = facts.after_all;

  // ---- loss and repair ---------------------------------------------------------------------------------------------
    if (duplicate && row.duplicates != TcpDupThreshold) next.duplicates = row.duplicates + 2'd1;
    if (advances || times_out) next.duplicates = '0;

    if (recovers) next.repairing = 1'b0;
    if (loses) next.repairing = 1'b1;
    if (loses) next.recover = row.max;

    // RFC 6582 section 3.2, step 3: the next hole.
    if (repairs && params.back_off) next.resend = 1'b1;
    if (recovers || (advances && !row.repairing && !row.probing) || empties || reopens || sends_data)
      next.resend = 1'b0;
    if (loses || probes || prods || hastens) next.resend = 1'b1;

    if (empties || reopens) next.probing = 1'b0;
    if (probes) next.probing = 1'b1;

  // ---- the timer and the round trip --------------------------------------------------------------------------------
    if (times_out && row.tries != '1) next.tries = row.tries + 8'd1;
    if (comes_up || advances || probed) next.tries = '0;

    // RFC 6298 section 5: a timeout that follows the round trip stays doubled until it has measured one.
    if (times_out && (probes || params.back_off) && row.backoff != '1) next.backoff = row.backoff + 4'd1;
    if (comes_up || reopens || (advances && !row.probing && (measures || !params.adaptive))
        || (empties && row.probing)) next.backoff = '0;

    if (empties || comes_up) next.timer_on = 1'b0;
    if (starts) next.timer_on = 1'b1;

    if (measures || fast || times_out || sends_again) next.timing = 1'b0;
    if (times_syn || times_data) begin
      next.timing    = 1'b1;
      next.timed_seq = times_syn ? row.max : seg_end;
      next.timed_at  = now;
    end
    if (measures) begin
      next.measured = 1'b1;
      next.srtt     = srtt;
      next.rttvar   = rttvar;
    end

  // ---- due actions -------------------------------------------------------------------------------------------------
    if (retransmits && row.state == TcpSynSent) next.syn_due = 1'b1;
    if (sends_syn || comes_up) next.syn_due = 1'b0;
    if (comes_up || challenges || has_data) next.ack_due = 1'b1;
    if (sends && !sends_reset && !sends_syn) next.ack_due = 1'b0;

    if (answers_stray || answers_former) begin
      next.reset_due  = 1'b1;
      next.reset_acks = !flags.ack;
      next.reset_seq  = flags.ack ? event_in.ack : '0;
    end
    if (sends_reset) next.reset_due = 1'b0;

    if (challenges) begin
      next.challenge_held = params.challenge_interval != '0;
      next.challenge_at   = now + 32'(params.challenge_interval);
    end
    if (event_in.kind == TcpTick && facts.challenge_over) next.challenge_held = 1'b0;

    if (comes_up) next.state = TcpEstablished;

  // ---- a row restarts: an RST of the earlier connection is still sent -----------------------------------------------
    if (fresh) begin
      next            = '0;
      next.rcv_nxt    = rcv_advances ? facts.after_all : row.rcv_nxt;
      next.reset_due  = ends ? sends_rst : row.reset_due;
      next.reset_acks = ends ? sends_rst : row.reset_acks;
      next.reset_seq  = ends ? row.max : row.reset_seq;
    end
    if (opens) begin
      next.state    = TcpSynSent;
      next.una      = event_in.seq;
      next.nxt      = facts.after_all;
      next.max      = facts.after_all;
      next.written  = facts.after_all;
      next.recover  = facts.after_all;
      next.mss      = params.mss;
      next.syn_due  = 1'b1;
      next.timer_on = 1'b1;
    end
  end

  // ---- the actions -------------------------------------------------------------------------------------------------
  tcp_counts_t counts;
  always_comb begin
    counts = '{
      window_closed:   updates && facts.window == '0 && !facts.window_closed,
      path_mtu:        shortens,
      ignored:         stray || (opening && (acks_syn ? !flags.rst && !flags.syn : !flags.ack))
                       || (plain && !flags.ack) || (event_in.kind == TcpOpen && !opens)
                       || (event_in.kind == TcpAbort && !aborts) || (event_in.kind == TcpWritten && !writes)
                       || (event_in.kind == TcpPathMtu && !limits) || (advances && row.too_long != '0),
      peer_data:       has_data,
      bad_option:      comes_up && bad_option,
      bad_ack:         bad_ack || (opening && flags.ack && !facts.ack_is_max),
      out_of_window:   outside,
      challenge:       challenges,
      probe:           prods || probes,
      duplicate_ack:   duplicate,
      fast_retransmit: fast,
      timeout:         retransmits,
      retransmitted:   sends_again || (sends_syn && row.tries != '0),
      segment:         sends
    };
    actions = '{
      send:         sends ? facts.segment : '0,
      opened:       comes_up,
      ended:        TcpNotEnded,
      acknowledged: advances ? facts.acked[30:0] : '0,
      counts:       counts
    };
    if (refused) actions.ended = TcpRefused;
    if (resets) actions.ended = TcpReset;
    if (finishes) actions.ended = TcpFinished;
    if (gives_up) actions.ended = TcpTimedOut;
    if (aborts) actions.ended = TcpAborted;
  end
endmodule
