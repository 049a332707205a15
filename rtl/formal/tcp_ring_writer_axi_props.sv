// SPDX-License-Identifier: SHL-2.1
// Promises of the writer of TCP rings in an AXI4 memory, for any stream that is watched: each message of a connection
// begins where the one before it ended, the first one where the connection's bytes begin; no beat comes over a byte
// that is not acknowledged; each word goes to its place in the stream's ring, and no run crosses a multiple of its
// size; bytes are reported to the sender once the memory has confirmed their run and all before it, none after a refused
// run, and else all that was written; a closed stream's run is closed, and nothing else of it is written or reported; a
// refused run of a live stream is named; each message is laid once, marked as dropped if its connection has ended.
// Assumed: what tcp_sender and tcp_ring_guard prove. A stream opens when the runs that were under way at its end are
// confirmed; only bytes that were reported to the sender are acknowledged; `base_addr` stays.
module tcp_ring_writer_axi_props
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  int unsigned RING_BYTES = 4096,
  parameter  int unsigned ADDR_W     = 32,
  parameter  int unsigned REPORTS    = 4,
  parameter  int unsigned RUN_BYTES  = 1024,
  parameter  int unsigned CHUNK      = 1024,
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned ByteW      = $clog2(Bytes),
  localparam int unsigned RingW      = $clog2(RING_BYTES),
  localparam int unsigned StreamW    = $clog2(N_STREAMS),
  localparam int unsigned IndexW     = $clog2(REPORTS),
  localparam int unsigned ReportW    = 48 + $bits(tcp_stream_t)
) (
  input logic                           clk,
  input logic                           rst,
  input logic [ADDR_W-1:0]              base_addr,
  input tcp_stream_t                    s_stream,
  input logic [Bytes-1:0]               s_axis_tkeep,
  input logic                           s_axis_tvalid,
  input logic                           s_axis_tready,
  input logic                           s_axis_tlast,
  input tcp_write_t                     write,
  input logic                           write_valid,
  input logic                           write_ready,
  input tcp_done_t                      done,
  input logic                           done_valid,
  input tcp_laid_t                      laid,
  input logic                           laid_valid,
  input logic [IndexW+1:0]              unconfirmed,
  input logic                           confirmed,
  input logic                           fault_valid,
  input tcp_stream_t                    fault_stream,
  input logic                           stat_error,
  // inside: the message, its beats
  input logic [1:0]                     state_q,  // StIdle, StLoad, StTake, StFlush
  input logic [N_STREAMS-1:0]           live_q, fresh_q, failed_q,
  input tcp_stream_t                    stream_q,
  input tcp_seq_t                       end_q, una_q, reported_seq_q,
  input tcp_seq_t                       una_kept, start_kept, end_kept,
  input tcp_seq_t                       una_stored, start_stored, end_stored,  // of the watched stream
  input logic [StreamW-1:0]             una_place, start_place, end_place,
  input logic                           una_newer_q, dead_q, room_q, reported_q, take, fills, beat_free,
  input logic [ByteW:0]                 count,
  input logic                           run_open_q, beat_valid, beat_ends,
  input logic [RingW-ByteW-1:0]         run_q,
  // the beat that waits for packet_store_axi_wr, and what that answers
  input logic                           beat_valid_q, queued_word, queued_ends, moves,
  input logic [RingW-ByteW-1:0]         queued_run,
  input logic [ReportW-1:0]             queued_bits,
  input logic [ADDR_W-1:0]              run_addr,
  input logic                           written, written_bad,
  input logic [7:0]                     unanswered,
  // reports, and the answers to the first of them
  input logic [REPORTS-1:0][ReportW-1:0] report_bits,
  input logic [IndexW:0]                reports_tail, level,
  input logic [REPORTS-1:0]             answer_bits,
  input logic [IndexW:0]                answers_tail, answers
);
  localparam logic [1:0] Idle = 2'd0, Load = 2'd1, Take = 2'd2, Flush = 2'd3;
  localparam int unsigned RunBeats = RUN_BYTES / Bytes;

  typedef logic [StreamW-1:0] index_t;
  typedef logic [ADDR_W-1:0] addr_t;
  typedef logic [IndexW+1:0] runs_t;
  typedef struct packed {
    logic        dead;
    tcp_stream_t stream;
    logic        is_reported;
    logic [12:0] bytes;
    logic        last;
    tcp_seq_t    end_seq;
  } report_t;

  if (4096 % RUN_BYTES != 0 || RunBeats > 256 || 4 * CHUNK > RING_BYTES) begin : gen_bad_run
    $fatal(1, "%m: a run of %0d bytes, chunks of %0d", RUN_BYTES, CHUNK);
  end

  logic started_q = 1'b0;
  index_t any_stream, watched_q;
  addr_t base_q;
  anything #(.W(StreamW)) u_stream (.value(any_stream));
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) {watched_q, base_q} <= {any_stream, base_addr};
  end
  always_comb begin
    if (!started_q) assume (rst);
    if (started_q) assume (base_addr == base_q);
    assume (una_place == watched_q && start_place == watched_q && end_place == watched_q);
    assume (32'(watched_q) < N_STREAMS);
  end

  // ---- messages: whole beats but the last one; what is offered stays -----------------------------------------------
  keeps_offer #(.W(1 + Bytes + $bits(tcp_stream_t))) u_offer (
    .valid(s_axis_tvalid), .ready(s_axis_tready), .offer({s_axis_tlast, s_axis_tkeep, s_stream}), .*
  );
  always_comb begin
    assume (32'(s_stream) < N_STREAMS);
    assume (s_axis_tkeep != '0 && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0);
    if (s_axis_tvalid && !s_axis_tlast) assume (s_axis_tkeep == '1);
  end

  // ---- the sender: whether the watched stream is open, what is acknowledged, what was reported to it -------------
  // old: runs that were under way when it ended, which tcp_ring_guard counts a cycle later
  logic concerns, opened, ended, ended_q, reporting, live_now_q;
  logic [1:0] since_q;  // the last event, cycles
  tcp_seq_t g_una_q, g_reported_q, g_end_q, owed, reported;
  runs_t old, old_q;
  assign concerns  = done_valid && index_t'(done.stream) == watched_q;
  assign opened    = concerns && done.kind == TcpOpen && !done.actions.counts.ignored;
  assign ended     = concerns && done.actions.ended != TcpNotEnded;
  assign reporting = write_valid && index_t'(write.stream) == watched_q;
  assign owed      = reporting && live_now_q ? 32'(write.bytes) : '0;
  assign reported  = g_reported_q + owed;
  assign old       = ended_q ? unconfirmed : old_q;
  always_comb begin
    if (done_valid) assume (32'(done.stream) < N_STREAMS);
    if (concerns) assume (since_q == 2'd3);  // tcp_sender: every fourth cycle at most
    if (opened) assume (!live_now_q && !ended && done.written == done.una + 32'd1 && old == '0);
    if (ended) assume (live_now_q);
    if (concerns && live_now_q && !ended) assume (done.una - g_una_q <= g_reported_q - g_una_q);
  end

  // ---- the message in hand, and its beats --------------------------------------------------------------------------
  logic here, mine, mine_q;  // mine: its connection has not ended
  tcp_seq_t beat_seq, upto, g_issued_q, run_first, run_first_q;
  assign here      = state_q != Idle && index_t'(stream_q) == watched_q;
  assign mine      = state_q inside {Take, Flush} && here && mine_q;
  assign beat_seq  = {g_end_q[31:ByteW], {ByteW{1'b0}}};
  assign upto      = state_q == Flush ? g_end_q : beat_seq + 32'(Bytes);
  assign run_first = run_open_q ? run_first_q : g_issued_q;

  // the beat that waits; late: its connection had ended before; first: the first byte of its run that no run before it
  // has brought
  logic beat_mine_q, beat_late_q;
  tcp_seq_t beat_seq_q, beat_first_q, beat_upto_q;

  // ---- what packet_store_axi_wr sees: the words of a run -----------------------------------------------------------
  logic [$clog2(RunBeats):0] words_q;
  addr_t first_addr_q, word_addr;
  assign word_addr = run_addr + addr_t'(32'(words_q) << ByteW);

  // ---- reports by their age, and answers ---------------------------------------------------------------------------
  report_t queued;
  report_t [REPORTS-1:0] reports;
  logic [REPORTS-1:0] bad, stored, is_watched;  // is_watched: with bytes of the watched stream
  logic [REPORTS-1:0] answers_by_age;
  logic watched_queued;
  assign queued         = queued_bits;
  assign watched_queued = beat_valid_q && queued_ends && index_t'(queued.stream) == watched_q && !queued.dead;
  for (genvar i = 0; i < int'(REPORTS); i++) begin : gen_report
    assign stored[i]     = report_bits[IndexW'(reports_tail + (IndexW + 1)'(i))] == reports[i];
    assign answers_by_age[i] = answer_bits[IndexW'(answers_tail + (IndexW + 1)'(i))];
    assign is_watched[i] = i < level && index_t'(reports[i].stream) == watched_q && !reports[i].dead;
  end
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < REPORTS; i++) begin
      if (confirmed && i + 1 < REPORTS) {reports[i], bad[i]} <= {reports[i+1], bad[i+1]};
      if (moves && queued_ends && i == 32'(level) - 32'(confirmed)) reports[i] <= queued;
      if (written && i == 32'(answers) - 32'(confirmed)) bad[i] <= written_bad;
    end
  end

  // ---- any run of the watched stream, from when it is complete until its report is taken; a refused one stays until
  // its connection ends ----------------------------------------------------------------------------------------------
  logic pick_valid_q, pick_mine_q, pick_last_q;
  logic pick_answered_q, pick_bad_q;
  logic pick_taken_q;                      // its report has been taken
  logic [7:0] pick_ahead_q;                // answers until its own
  logic [IndexW-1:0] pick_at_q;            // reports before its own
  tcp_seq_t pick_first_q, pick_upto_q;     // its bytes
  logic just_taken_q, just_mine_q;
  logic any_pick, picks, takes_pick;
  anything u_pick (.value(any_pick));
  assign picks      = moves && queued_ends && index_t'(queued.stream) == watched_q && any_pick && !pick_valid_q;
  assign takes_pick = pick_valid_q && !pick_taken_q && confirmed && pick_at_q == '0;

  runs_t runs_q;                // on their way
  logic [IndexW+1:0] due_q;     // messages that have been taken and not been laid
  tcp_seq_t taken_seq_q;        // after the bytes of the reports that were taken
  logic refused_q;              // a run of the connection was
  logic waits_q, closed_q, guilty_q, refuses_q;
  tcp_write_t waits_write_q;

  always_ff @(posedge clk) begin
    if (since_q != 2'd3) since_q <= since_q + 1'b1;
    ended_q <= ended;
    old_q   <= old - runs_t'(confirmed && old != '0);
    if (reporting && write_ready && live_now_q) g_reported_q <= g_reported_q + 32'(write.bytes);

    if (state_q == Load) mine_q <= here && live_now_q && !opened && !ended;
    if (take && mine) g_end_q <= g_end_q + 32'(count);
    if (beat_valid) begin
      if (mine) g_issued_q <= upto;
      run_first_q <= run_first;
      beat_mine_q <= mine && !ended;
      beat_late_q <= here && !mine;
      {beat_seq_q, beat_first_q, beat_upto_q} <= {beat_seq, run_first, upto};
    end
    if (moves) words_q <= queued_ends ? '0 : words_q + 1'b1;
    if (moves && words_q == '0) first_addr_q <= run_addr;

    runs_q <= runs_q + runs_t'(beat_valid && beat_ends) - runs_t'(confirmed);
    due_q  <= due_q + (IndexW + 2)'(take && s_axis_tlast) - (IndexW + 2)'(laid_valid);
    if (confirmed && is_watched[0] && reports[0].is_reported) taken_seq_q <= reports[0].end_seq;
    if (written && written_bad && is_watched[IndexW'(answers)] && live_now_q) refused_q <= 1'b1;

    if (pick_valid_q) begin
      if (written && !pick_answered_q) begin
        pick_ahead_q <= pick_ahead_q - 1'b1;
        if (pick_ahead_q == '0) {pick_answered_q, pick_bad_q} <= {1'b1, written_bad};
      end
      if (confirmed && !pick_taken_q) pick_at_q <= pick_at_q - 1'b1;
      if (takes_pick) begin
        pick_taken_q <= 1'b1;
        pick_valid_q <= pick_bad_q && pick_mine_q;
      end
      if (pick_taken_q && !pick_mine_q) pick_valid_q <= 1'b0;
    end else if (picks) begin
      {pick_valid_q, pick_answered_q, pick_bad_q, pick_taken_q} <= 4'b1000;
      pick_mine_q  <= beat_mine_q && !ended;
      pick_last_q  <= queued.last;
      pick_ahead_q <= unanswered - 8'(written);
      pick_at_q    <= IndexW'(level - (IndexW + 1)'(confirmed));
      {pick_first_q, pick_upto_q} <= {beat_first_q, beat_upto_q};
    end
    just_mine_q   <= pick_mine_q;
    just_taken_q  <= takes_pick;
    waits_q       <= reporting && !write_ready;
    waits_write_q <= write;
    closed_q      <= !live_now_q;
    guilty_q      <= confirmed && is_watched[0] && bad[0] && live_now_q;
    refuses_q     <= confirmed && bad[0];

    if (concerns) begin
      since_q <= '0;
      g_una_q <= done.una;
    end
    if (ended) begin
      live_now_q  <= 1'b0;
      mine_q      <= 1'b0;
      beat_mine_q <= 1'b0;
      pick_mine_q <= 1'b0;
    end
    if (opened) begin
      live_now_q                                       <= 1'b1;
      refused_q                                        <= 1'b0;
      {g_reported_q, taken_seq_q, g_end_q, g_issued_q} <= {4{done.written}};
    end
    if (rst) begin
      {live_now_q, mine_q, beat_mine_q, ended_q, old_q, runs_q, due_q, words_q, refused_q} <= '0;
      {pick_valid_q, just_taken_q, waits_q, guilty_q, refuses_q} <= '0;
      since_q  <= '1;
      closed_q <= 1'b1;
    end
  end

  // ---- the account of the watched stream ---------------------------------------------------------------------------
  //   una ... g_reported_q ... reported ... the reports in flight, in order ... reported_seq_q ... end <= una + RING_BYTES
  function automatic tcp_seq_t gap(tcp_seq_t seq);  // up to its end
    return g_end_q - seq;
  endfunction

  tcp_seq_t [REPORTS+1:0] cursor;  // before each report, and that of the beat that waits
  logic [REPORTS:0] follows, is_old;
  always_comb begin
    cursor[0] = taken_seq_q;
    for (int i = 0; i < int'(REPORTS); i++) begin
      follows[i]  = !is_watched[i]
                    || (reports[i].end_seq == cursor[i] + 32'(reports[i].bytes) && 32'(reports[i].bytes) <= CHUNK);
      cursor[i+1] = is_watched[i] && reports[i].is_reported ? reports[i].end_seq : cursor[i];
      is_old[i]   = !is_watched[i] || runs_t'(i) < old;
    end
    follows[REPORTS]  = !watched_queued
                        || (queued.end_seq == cursor[REPORTS] + 32'(queued.bytes) && 32'(queued.bytes) <= CHUNK);
    cursor[REPORTS+1] = watched_queued && queued.is_reported ? queued.end_seq : cursor[REPORTS];
    is_old[REPORTS]   = !watched_queued || runs_t'(level) < old;
  end

  logic [REPORTS-1:0] blamed;
  logic [REPORTS:0] far;
  runs_t lasts;
  always_comb begin
    lasts = runs_t'(beat_valid_q && queued_ends && queued.last) + runs_t'(laid_valid)
            + runs_t'(state_q == Flush && !reported_q);
    far[REPORTS] = beat_valid_q && 32'(queued.stream) >= N_STREAMS;
    for (int i = 0; i < int'(REPORTS); i++) begin
      blamed[i] = !(is_watched[i] && i < answers && bad[i]) || refused_q;
      far[i]    = i < level && 32'(reports[i].stream) >= N_STREAMS;
      lasts     = lasts + runs_t'(i < level && reports[i].last);
    end
  end

  tcp_seq_t kept, over;
  report_t picked;
  logic [RingW-ByteW-1:0] next_place;
  logic failed;
  assign kept       = fresh_q[watched_q] ? start_stored : end_stored;
  assign over       = beat_seq_q + 32'(Bytes) - g_una_q;
  assign picked     = reports[pick_at_q];
  assign next_place = run_q + (RingW - ByteW)'(words_q) + (RingW - ByteW)'(beat_valid_q);
  assign failed     = failed_q[watched_q];

  function automatic addr_t address(tcp_stream_t stream, logic [RingW-ByteW-1:0] place);
    return {base_addr[ADDR_W-1:12], 12'b0} + addr_t'(32'(stream) * RING_BYTES) + (addr_t'(place) << ByteW);
  endfunction

  for (genvar i = 0; i <= int'(REPORTS); i++) begin : gen_follows
    always_comb if (started_q && !rst && live_now_q) a_0_c_follows : assert (follows[i]);
  end

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_a_count : assert (count != '0 && 32'(count) <= Bytes && (s_axis_tkeep != '1 || 32'(count) == Bytes));
    a_0_a_live : assert (live_q[watched_q] == live_now_q && (!ended_q || (since_q == '0 && !live_now_q)));
    a_0_a_stream : assert (state_q == Idle || 32'(stream_q) < N_STREAMS);
    a_0_a_streams : assert (far == '0 && (!write_valid || 32'(write.stream) < N_STREAMS));
    a_0_a_free : assert (!beat_valid || beat_free);
    a_0_alive : assert (!(state_q inside {Take, Flush} && here) || dead_q == !mine_q);
    a_0_mine : assert ((!mine || live_now_q) && (!(beat_valid_q && beat_mine_q) || live_now_q)
                       && (!(pick_valid_q && pick_mine_q) || live_now_q));
    if (live_now_q) a_0_una : assert (una_stored == g_una_q);
    if (state_q == Load && here && live_now_q)
      a_0_load : assert ((una_newer_q ? una_q : una_kept) == g_una_q
                         && (fresh_q[watched_q] ? start_kept : end_kept) == g_end_q);
    if (here && state_q != Load && live_now_q) a_0_fresh : assert (fresh_q[watched_q] == !mine_q);
    if (mine && state_q == Take && room_q) a_0_room : assert (gap(g_una_q) <= 32'(RING_BYTES - 3 * Bytes));
    if (room_q) a_0_room_of : assert (state_q inside {Take, Flush});

    // ---- runs: words_q are in packet_store_axi_wr, one may wait
    if (run_open_q)
      a_0_run : assert (state_q inside {Take, Flush} && !reported_q
                        && (beat_valid_q ? queued_word && !queued_ends && queued_run == run_q
                                           && queued.stream == stream_q : words_q != '0));
    else a_0_run_closed : assert (beat_valid_q ? queued_ends && (queued_word || words_q == '0) : words_q == '0);
    if (run_open_q) a_0_run_fits : assert (32'(run_q) % RunBeats + 32'(words_q) + 32'(beat_valid_q) < RunBeats);
    if (beat_valid_q) a_0_beat_fits : assert (32'(queued_run) % RunBeats + 32'(words_q) < RunBeats);
    if (words_q != '0)
      a_0_run_addr : assert (first_addr_q == (beat_valid_q ? run_addr : address(stream_q, run_q)));
    if (run_open_q && !dead_q) a_0_run_place : assert (next_place == end_q[RingW-1:ByteW]);
    if (beat_valid_q && beat_mine_q)
      a_0_beat_place : assert (queued_run + (RingW - ByteW)'(words_q) == beat_seq_q[RingW-1:ByteW]
                               && index_t'(queued.stream) == watched_q);
    if (beat_valid_q && run_open_q && mine) a_0_beat_mine : assert (beat_mine_q);
    if (beat_valid_q && beat_mine_q) a_0_beat_near : assert (gap(beat_seq_q) < 32'(2 * Bytes));
    a_0_reported : assert (!(reported_q && state_q == Take));

    // ---- bytes on their way
    if (live_now_q) begin
      a_0_b_end : assert ((mine ? end_q : kept) == g_end_q);
      a_0_b_una : assert (gap(g_reported_q) <= gap(g_una_q) && gap(g_una_q) <= 32'(RING_BYTES - 2 * Bytes));
      a_0_b_reported : assert (gap(reported) <= gap(g_reported_q) && gap(taken_seq_q) <= gap(reported));
      a_0_c_cursor : assert (cursor[REPORTS+1] == (mine ? reported_seq_q : g_end_q));
      a_0_c_taken : assert (failed ? !reporting : reported == taken_seq_q);
      a_0_c_blamed : assert (blamed == '1 && (!failed || refused_q));
      a_0_issued : assert (mine ? beat_seq - g_issued_q == '0 || g_issued_q - beat_seq <= g_end_q - beat_seq
                           : g_issued_q == g_end_q);
    end
    if (mine) begin
      a_0_chunk : assert (gap(reported_seq_q) <= g_end_q % CHUNK && (!reported_q || (reported_seq_q == g_end_q && state_q == Flush)));
      a_0_run_bytes : assert (g_issued_q - reported_seq_q <= CHUNK);
      if (run_open_q) a_0_first : assert (run_first_q - reported_seq_q <= CHUNK);
    end
    if (beat_valid_q && queued_ends && beat_mine_q)
      a_0_beat : assert (!queued.dead && queued.end_seq == beat_upto_q && beat_first_q - cursor[REPORTS] <= CHUNK);
    if (live_now_q && watched_queued) a_0_beat_of : assert (beat_mine_q);
    if (!live_now_q) a_0_old : assert (is_old == '1);
    a_0_old_few : assert (ended_q || live_now_q || old <= unconfirmed);

    a_0_a_stored : assert ((~stored & ~(REPORTS'('1) << level)) == '0);
    a_0_a_answers : assert (((bad ^ answers_by_age) & ~(REPORTS'('1) << answers)) == '0);

    // ---- runs that wait for their answer, and for their report to be taken
    a_0_a_levels : assert (32'(level) == 32'(unanswered) + 32'(answers) && 32'(level) <= REPORTS);
    if (pick_valid_q && !pick_taken_q) begin
      a_0_p_at : assert ((IndexW + 1)'(pick_at_q) < level && index_t'(picked.stream) == watched_q
                         && picked.last == pick_last_q && (!pick_mine_q || !picked.dead));
      a_0_p_answer : assert (pick_answered_q ? (IndexW + 1)'(pick_at_q) < answers && bad[pick_at_q] == pick_bad_q
                             : 32'(pick_at_q) == 32'(answers) + 32'(pick_ahead_q));
      a_0_p_mine : assert (!live_now_q || pick_mine_q == is_watched[pick_at_q]);
      if (pick_mine_q)
        a_0_p_bytes : assert (picked.end_seq == pick_upto_q && pick_first_q - cursor[pick_at_q] <= CHUNK);
    end
    if (pick_valid_q && pick_taken_q)
      a_0_p_taken : assert (pick_answered_q && pick_bad_q
                            && (!pick_mine_q || (failed && pick_first_q - reported <= RING_BYTES + CHUNK)));

    // ---- bytes of messages, one after the other
    if (live_now_q) a_continues : assert ((mine ? end_q : kept) == g_end_q);
    if (mine) a_una : assert (una_q == g_una_q);
    // ---- what is written
    if (beat_valid_q && queued_word && beat_mine_q) begin
      a_free : assert (over[31] || over <= 32'(RING_BYTES));
      a_address : assert (word_addr == address(tcp_stream_t'(watched_q), beat_seq_q[RingW-1:ByteW]));
    end
    if (moves && queued_word) a_within : assert (32'(run_addr) % RUN_BYTES + 32'(words_q) * Bytes < RUN_BYTES);
    if (moves && words_q != '0) a_run : assert (queued_word && run_addr == first_addr_q);
    if (beat_valid_q && index_t'(queued.stream) == watched_q && beat_late_q)
      a_closed : assert (queued_ends && queued_word == (words_q != '0));
    if (state_q inside {Idle, Load}) a_closes : assert (beat_valid_q ? queued_ends : words_q == '0);
    if (state_q == Take && here && !mine_q && s_axis_tvalid && beat_free) a_drains : assert (s_axis_tready);
    if (mine) a_owed : assert (gap(reported_seq_q) < 32'(CHUNK));
    // ---- what is reported to the sender
    if (pick_valid_q && pick_mine_q && !(pick_answered_q && !pick_bad_q))
      a_confirmed : assert (!tcp_before(pick_first_q, reported));
    if (live_now_q && !here && level == '0 && !beat_valid_q && !reporting && !refused_q)
      a_all : assert (g_reported_q == g_end_q);
    if (waits_q && !closed_q) a_stays : assert (reporting && write == waits_write_q);
    if (reporting && !live_now_q) a_silent : assert (ended_q && waits_q);
    // ---- what is reported to the completions
    if (just_taken_q) begin
      a_laid : assert (laid_valid == pick_last_q && (!laid_valid || laid.dropped == !just_mine_q)
                       && (!laid_valid || !just_mine_q || laid.end_seq == pick_upto_q));
      a_fault : assert (fault_valid == (just_mine_q && pick_bad_q) && stat_error == pick_bad_q);
    end
    a_guilty : assert ((fault_valid && index_t'(fault_stream) == watched_q) == guilty_q && (!guilty_q || refused_q));
    a_once : assert (due_q == lasts);
    a_unconfirmed : assert (unconfirmed == runs_q);

    c_reported : cover (reporting && write_ready && taken_seq_q != start_stored && level != '0);
    c_waits : cover (reporting && !write_ready && answers != '0 && is_watched[0]);
    c_all : cover (live_now_q && !here && level == '0 && !beat_valid_q && !reporting && g_reported_q != start_stored);
    // A message goes on at the beginning of the ring.
    c_wraps : cover (beat_valid_q && queued_word && beat_mine_q && queued_run == '0 && words_q == '0 && level != '0
                     && !reports[0].last && is_watched[0]);
    c_both : cover (32'(level) == REPORTS && is_watched == REPORTS'('b0101) && answers != '0);
    c_dies : cover (ended && mine && run_open_q && words_q != '0 && level != '0);
    c_late : cover (moves && beat_late_q && queued_word && !live_now_q);
    c_reopened : cover (moves && beat_late_q && queued_word && live_now_q);
    c_dropped : cover (just_taken_q && !just_mine_q && laid_valid && refuses_q);
    c_fault : cover (fault_valid && guilty_q);
    c_after_fault : cover (failed && live_now_q && confirmed && is_watched[0] && !bad[0] && reports[0].is_reported);
  end

  // ---- a ring that fills: whole beats that were taken since the stream's last event --------------------------------
  if (RING_BYTES / Bytes == 64) begin : gen_full
    logic taking;
    logic [6:0] beats_q;
    always_ff @(posedge clk) begin
      if (take && mine && !s_axis_tlast) beats_q <= beats_q + 1'b1;
      if (concerns || rst) beats_q <= '0;
    end
    assign taking = started_q && !rst && state_q == Take && mine && s_axis_tvalid;
    always_comb begin
      c_fifth : cover (taking && beats_q == 7'd12);
      c_half : cover (taking && beats_q == 7'd28);
      c_most : cover (taking && beats_q == 7'd44);
      c_full : cover (taking && beats_q >= 7'd58 && !room_q && gap(g_una_q) > 32'(RING_BYTES - 4 * Bytes));
    end
  end

  wire unused = &{1'b0, done, s_stream, write, fills, refuses_q};
endmodule

bind tcp_ring_writer_axi tcp_ring_writer_axi_props #(
  .DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES), .ADDR_W(ADDR_W), .REPORTS(REPORTS),
  .RUN_BYTES(RunBytes), .CHUNK(Chunk)
) u_props (
  .state_q     (state_q),
  .end_kept    (place_kept.end_seq),
  .una_stored  (u_streams.u_una.word_q),
  .start_stored(u_streams.u_start.word_q),
  .end_stored  (u_places.word_q[DATA_W+:32]),
  .una_place   (u_streams.u_una.place_q),
  .start_place (u_streams.u_start.place_q),
  .end_place   (u_places.place_q),
  .beat_ends   (beat.ends),
  .queued_word (beat_q.word),
  .queued_ends (beat_q.ends),
  .queued_run  (beat_q.run),
  .queued_bits (beat_q.report),
  .unanswered  (u_bursts.ended_q),
  .report_bits ({u_reports.mem[3], u_reports.mem[2], u_reports.mem[1], u_reports.mem[0]}),  // proved at REPORTS 4
  .reports_tail(u_reports.tail_q),
  .answer_bits ({u_answers.mem[3], u_answers.mem[2], u_answers.mem[1], u_answers.mem[0]}),
  .answers_tail(u_answers.tail_q),
  .answers     (unused_level),
  .*
);
