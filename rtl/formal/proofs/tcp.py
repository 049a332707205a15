# SPDX-License-Identifier: Apache-2.0
"""Proofs of the simplified TCP."""

from proof import Mutant, Proof

# tcp_step: one proof an event (tcp_event_e), likewise.
TCP_EVENTS: dict[int, tuple[Mutant, ...]] = {
    0: (Mutant("next.max      = facts.after_all;", "next.max      = event_in.seq;", "a_opening"),),
    1: (Mutant("if (aborts) actions.ended = TcpAborted;", "", "a_ended"),),
    2: (
        Mutant("above <= TcpMaxHeld;", "above <= TcpMaxHeld + 32'd1;", "a_written", "tcp_facts"),
        Mutant("above <= TcpMaxHeld;", "above < TcpMaxHeld;", "a_fits", "tcp_facts"),
        Mutant("(writes && facts.idle && facts.max_is_written && event_in.ack != '0)", "1'b0", "a_timer"),
    ),
    3: (
        Mutant("= !ack_beyond && !above[31];", "= !above[31];", "a_7_una", "tcp_facts"),
        Mutant("assign acks      = takes && facts.ack_reaches_una;", "assign acks      = takes;", "a_7_una"),
        Mutant(
            "resets    = in_window && flags.rst && facts.at_rcv_nxt;", "resets    = in_window && flags.rst;", "a_reset"
        ),
        Mutant("if (advances && facts.ack_passes_nxt) next.nxt = event_in.ack;", "", "a_nxt"),
        Mutant("if (empties || comes_up) next.timer_on = 1'b0;", "", "a_timer"),
        Mutant("(advances && !empties)", "1'b0", "a_restarts"),
        Mutant("(comes_up && !facts.max_is_written)", "1'b0", "a_timer"),
        Mutant("rcv_advances = comes_up || takes ||", "rcv_advances = comes_up || finishes ||", "a_rcv_nxt"),
        Mutant("(opening ? 17'd0 : 17'(event_in.len))", "17'(event_in.len)", "a_rcv_nxt", "tcp_facts"),
        Mutant("event_in.flags.rst ? starts_inside : starts_at == '0", "starts_inside", "a_forged", "tcp_facts"),
        Mutant("updates    = acks &&", "updates    = takes &&", "a_forged"),
        Mutant("updates    = acks &&", "updates    = acks && !row.probing &&", "a_window"),
        Mutant("updates    = acks && facts.at_rcv_nxt;", "updates    = acks;", "a_window"),
        Mutant("probed  = acks && row.probing", "probed  = in_window && row.probing", "a_forged"),
        Mutant("rewinds    = loses_more && !params.back_off;", "rewinds    = loses_more;", "a_back"),
        Mutant("if (shortens || advances) next.too_long", "if (shortens) next.too_long", "a_forgets"),
        Mutant("&& row.backoff != '0 && !facts.idle;", "&& !facts.idle;", "a_forged"),
        Mutant("(loses || probes || prods || hastens)", "(loses || probes || prods)", "a_hastens"),
        Mutant("starts_at == '1 && seg_len == '0", "starts_at == '1", "a_forged", "tcp_facts"),
    ),
    4: (
        Mutant("&& event_in.options.mss >= TcpDefaultMss", "", "a_limit", "tcp_facts"),
        Mutant("&& before_max > 32'(event_in.options.mss)", "", "a_keeps", "tcp_facts"),
        Mutant("ack_reaches_una && !ack_beyond && before", "!ack_beyond && before", "a_keeps", "tcp_facts"),
        Mutant("&& row.too_long == '0", "", "a_keeps"),
        Mutant("if (limits) next.too_long =", "if (limits) next.mss =", "a_nothing"),
    ),
    5: (
        Mutant("(loses || probes || prods || hastens)", "(loses || prods || hastens)", "a_sends"),
        Mutant("params.give_up != '0 && ", "", "a_gives_up", "tcp_facts"),
        Mutant("next.tries = row.tries + 8'd1;", "next.tries = row.tries;", "a_tries"),
        Mutant("shortens = retransmits &&", "shortens = event_in.kind == TcpTick &&", "a_shortens"),
        Mutant("row.shortened && facts.path_over &&", "row.shortened &&", "a_restores"),
        Mutant("facts.path_over && !facts.expired;", "1'b0;", "a_ends"),
        Mutant("facts.path_over && !facts.expired;", "facts.path_over;", "a_sends"),
        Mutant("if (shortens && !row.shortened) next.whole", "if (shortens) next.whole", "a_kept"),
    ),
    6: (
        Mutant("33'(row.window) - 33'(sent)", "33'(row.window)", "a_3_window", "tcp_room"),
        Mutant("row.window == '0 ? 30'd1 : row.window", "30'(row.mss)", "a_3_window", "tcp_room"),
        Mutant("if (is_all) choice.len = room.left[13:0];", "", "a_2_to", "tcp_pick"),
        Mutant("if (sends_data && tcp_before(row.max, seg_end)) next.max", "if (sends_data) next.max", "a_4_max"),
        Mutant("row.resend ? !idle : repeats;", "row.resend;", "a_again", "tcp_room"),
    ),
}

PROOFS = [
    Proof(
        "tcp_sender",
        {"N_STREAMS": 4, "CLK_KHZ": 10_000},
        depth=8,
        cycles=20,
        free=("ram_sdp", "tcp_engine"),
        mutants=(
            Mutant("(valid2_q || valid3) && same", "valid2_q && same", "a_read"),
            Mutant("if (issue) stream1_q", "if (!valid1_q) stream1_q", "a_read"),
            Mutant("&& !(valid4 && same(stream4_q, StreamW'(streams[i])));", ";", "a_choice"),
            Mutant("stream4_q <= StreamW'(stream3_q);", "stream4_q <= StreamW'(stream1_q);", "a_of_row"),
            Mutant("!init_q && !valid1_q", "!init_q", "a_apart"),
            Mutant("if (tick_q && !valid1_q)", "if (tick_q)", "a_stays"),
            Mutant("if (!valid1_q) event1_q <=", "event1_q <=", "a_stays"),
            Mutant("requests[i] && !init_q && ", "requests[i] && ", "a_after_init"),
            Mutant("event0 = arrival.what;", "event0 = '0;", "a_arrival"),
            Mutant("stream1_q <= streams[turn[2:0]];", "stream1_q <= streams[ByCommand];", "a_write"),
            Mutant("if (gap_q != '0) gap_q <= gap_q - 1'b1;", "gap_q <= '0;", "a_one_segment", "tx_scheduler"),
        ),
    ),
    Proof(
        "tcp_ring_writer",
        {"DATA_W": 64, "N_STREAMS": 2, "RING_BYTES": 128},
        cycles=16,
        after={"c_acknowledged": "c_chunk", "c_half": "c_chunk", "c_full": "c_half"},
        mutants=(
            Mutant("span_t'(RING_BYTES - 4 * Bytes)", "span_t'(RING_BYTES + 4 * Bytes)", "a_free", after="c_full"),
            Mutant("&& !(opened && done_at == read_at);", ";", "a_continues"),
            Mutant("follows_q <= close_valid_q && close_at == read_at;", "follows_q <= 1'b0;", "a_continues"),
            Mutant("end_q   <= end_q + 32'(count);", "end_q   <= end_q + 32'(Bytes);", "a_continues"),
            Mutant("if (!una_newer_q && !concerns) una_q <= una_kept;", "una_q <= una_kept;", "a_una"),
            Mutant("span_t'(whole - reported_seq_q)", "span_t'(end_q - reported_seq_q)", "a_0_owed", after="c_chunk"),
            Mutant("= {end_q[31:ByteW], {ByteW{1'b0}}};", "= end_q;", "a_there", after="c_chunk"),
            Mutant("close_reported_q   <= reported_seq_q;", "close_reported_q   <= end_q;", "a_0_owed"),
            Mutant("if (close_concerns && (opened || ended)) close_dead_q <= 1'b1;", "", "a_0_alive"),
            Mutant("else if (concerns && (opened || ended)) dead_q <= 1'b1;", "", "a_closed"),
            Mutant("if (ended) live[done_at] <= 1'b0;", "", "a_closed", "tcp_ring_streams"),
            Mutant("fresh[done_at] <= 1'b1;", "", "a_continues", "tcp_ring_streams"),
            Mutant(".wr_data(done.written)", ".wr_data(done.una)", "a_continues", "tcp_ring_streams"),
            Mutant(".wr_en(done_valid)", ".wr_en(opened)", "a_una", "tcp_ring_streams"),
        ),
    ),
    Proof(
        "tcp_ring_writer_axi",
        {"DATA_W": 512, "N_STREAMS": 2, "RING_BYTES": 4096, "ADDR_W": 32, "REPORTS": 4},
        cycles=20,
        free=("ram_sdp", "packet_store_axi_wr"),
        after={"c_half": "c_fifth", "c_most": "c_half", "c_full": "c_most"},
        mutants=(
            # bytes of messages, and their places
            Mutant("32'(RING_BYTES - 4 * Bytes)", "32'(RING_BYTES + 4 * Bytes)", "a_free", after="c_full"),
            Mutant("&& !(opened && done_at == read_at);", ";", "a_continues"),
            Mutant("end_q  <= end_q + 32'(count);", "end_q  <= end_q + 32'(Bytes);", "a_continues"),
            Mutant("= state_q == StLoad && live_q[at] &&", "= 1'b0 &&", "a_continues"),
            Mutant("fresh[done_at] <= 1'b1;", "", "a_continues", "tcp_ring_streams"),
            Mutant("if (!una_newer_q && !concerns) una_q <= una_kept;", "una_q <= una_kept;", "a_una"),
            # runs
            Mutant("(ADDR_W'(beat_q.report.stream) << RingW)", "ADDR_W'(beat_q.report.stream)", "a_address"),
            Mutant("!beat_valid_q || moves;", "1'b1;", "a_address"),
            Mutant("run_open_q ? run_q : beat_at;", "beat_at;", "a_run"),
            Mutant(
                "state_q == StFlush || at_run_end || ends_exactly;", "state_q == StFlush || ends_exactly;", "a_within"
            ),
            # a connection's end
            Mutant("&& (dead_q || room_q) &&", "&& room_q &&", "a_drains"),
            Mutant("(take && fills && !dead_q);", "(take && fills);", "a_closed"),
            Mutant("!dead_q || run_open_q;", "!dead_q;", "a_closed"),
            Mutant("flushes || (take", "(flushes && !dead_q) || (take", "a_closes"),
            Mutant("else if (concerns && (opened || ended)) dead_q <= 1'b1;", "", "a_closed"),
            # what is reported to the sender
            Mutant("confirmed = answer_valid &&", "confirmed = report_valid &&", "a_confirmed"),
            Mutant("&& !write_valid && ", "&& ", "a_stays"),
            Mutant("if (write_ready || !live_q[index_t'(write.stream)])", "if (write_ready)", "a_silent"),
            Mutant("drops     = report.dead ||", "drops     = ", "a_laid"),
            Mutant("(answer_bad || failed_q[report_at])", "answer_bad", "a_confirmed"),
            Mutant("if (opened) failed_q[done_at] <= 1'b0;", "", "a_0_c_blamed"),
            Mutant("13'(upto - reported_seq_q)", "13'(end_q - reported_seq_q)", "a_all"),
            Mutant("StFlush || at_chunk_end || ends_exactly,", "StFlush || ends_exactly,", "a_owed", after="c_fifth"),
            # what is reported to the completions
            Mutant(
                "fault_valid  <= confirmed && answer_bad && !drops;",
                "fault_valid  <= confirmed && answer_bad;",
                "a_fault",
            ),
            Mutant("fault_stream <= report.stream;", "fault_stream <= stream_q;", "a_guilty"),
            Mutant(" && !((opened || ended) && done_at == report_at);", ";", "a_silent"),
            Mutant("if (beat.report.last && beat.ends) reported_q <= 1'b1;", "", "a_once"),
            Mutant(" + LevelW'(beat_valid_q && beat_q.ends);", ";", "a_unconfirmed"),
            Mutant("beat_valid_q && wr_ready && reports_room;", "beat_valid_q && wr_ready;", "a_unconfirmed"),
        ),
    ),
    # Runs that are not reported one by one: 256 beats have fewer bytes than two reports to the sender are apart.
    Proof(
        "tcp_ring_writer_axi",
        {"DATA_W": 64, "N_STREAMS": 2, "RING_BYTES": 16384, "ADDR_W": 32, "REPORTS": 4},
        cycles=20,
        free=("ram_sdp", "packet_store_axi_wr"),
        mutants=(
            Mutant(
                "if (beat.report.is_reported && beat.ends) reported_seq_q", "if (beat.ends) reported_seq_q", "a_all"
            ),
        ),
    ),
    Proof(
        "tcp_ring_reader_axi",
        {"DATA_W": 64, "RING_BYTES": 16384, "ADDR_W": 32},
        cycles=22,
        free=("ram_sdp", "sync_fifo"),
        mutants=(
            Mutant("PlaceW'(requested) + 1'b1;", "PlaceW'(requested);", "a_0_request"),
            Mutant("last_burst ? request_left_q : to_boundary;", "request_left_q;", "a_within"),
            Mutant("request_left_q <= to_boundary;", "request_left_q < to_boundary;", "a_all"),
            Mutant("15'(job.segment.len) - 15'd1;", "15'(job.segment.len);", "a_0_request"),
            Mutant("(ADDR_W'(request_stream_q) << RingW)", "ADDR_W'(request_stream_q)", "a_address"),
            Mutant("(!arvalid_q || m_axi_rsp.arready)", "1'b1", "a_hold"),
            Mutant("(PtrW + 1)'(Words - MaxWords)", "(PtrW + 1)'(Words)", "a_room"),
            Mutant("claimed_q == '0 && ", "", "a_room"),
            Mutant("freed_q    <= frees ? ", "freed_q    <= ends ? ", "a_0_held"),
            Mutant("ends        = moves && left_q <=", "ends        = moves && left_q <", "a_0_left"),
            Mutant("~({Bytes{1'b1}} << left_q[ByteW-1:0])", "'1", "a_length"),
            Mutant("drops       = sum_taken && sum.bad;", "drops       = 1'b0;", "a_bad"),
            Mutant("if (out_taken && !drops) hdr_due_q", "if (out_taken) hdr_due_q", "a_not_sent"),
        ),
    ),
    Proof(
        "tcp_ring_guard",
        {"N_STREAMS": 2, "WRITES_W": 3, "READS_W": 3},
        mutants=(
            Mutant("counted_q && writes_left_q == '0 && reads", "counted_q && reads", "a_apart"),
            Mutant("writes_left_q == '0 && reads_left_q == '0;", "writes_left_q == '0;", "a_apart"),
            Mutant("quiet = counted_q && ", "quiet = ", "a_apart"),
            Mutant(" && !(of_opening && (ended || s_done.reset_due))", "", "a_apart"),
            Mutant("(of_opening && (ended || s_done.reset_due))", "(of_opening && ended)", "a_rst_sent"),
            Mutant(" && !due_q[opens_at] && !rst", " && !rst", "a_rst_sent"),
            Mutant("s_open_ready && !live_q[opens_at];", "s_open_ready;", "a_closed"),
            Mutant("peer_epoch = !epoch_q", "peer_epoch = epoch_q", "a_peer"),
            Mutant("s_open_valid && !live_q[opens_at] && arrives", "s_open_valid && arrives", "a_stale"),
            Mutant("(peer_wr) epoch_q", "(0) epoch_q", "a_stale"),
            Mutant("unread - READS_W'(read);", "unread;", "a_soon"),
            Mutant("if (!counted_q) begin", "if (1'b1) begin", "a_soon"),
            Mutant(
                "s_abort_valid || (s_open_valid && quiet);", "(s_abort_valid || s_open_valid) && quiet;", "a_aborts"
            ),
            Mutant("!= StAbort && !s_abort_valid && s_open", "!= StAbort && s_open", "a_taken"),
            Mutant("m_command_ready && state_q != StAbort && s_abort", "m_command_ready && s_abort", "a_ended"),
            Mutant("if (rd_fault_valid && live_q", "if (0 && live_q", "a_failed"),
            Mutant("if (ended) fault_q[done_at] <= 1'b0;", "", "a_failed"),
            Mutant("fault_q[i]) next = index_t'(i)", "fault_q[i]) next = ~index_t'(i)", "a_guilty"),
            Mutant("over && s_done.actions.ended ==", "s_done.actions.ended ==", "a_named"),
        ),
    ),
    *(
        Proof("tcp_step", {"KIND": kind}, bounded=True, cycles=1, mutants=mutants)
        for kind, mutants in TCP_EVENTS.items()
    ),
]
