// SPDX-License-Identifier: SHL-2.1
// Promises of the rings of two streams, with the contents of tcp_ring_streams: each message of a connection
// begins where the one before it ended, the first one where the connection's bytes begin; no beat comes over a byte
// that is not acknowledged; bytes are in the memory a cycle after they are reported to the sender; nothing is written for a
// stream that is closed, but for the beats that were on their way when it ended, before it opens again.
module tcp_ring_writer_props
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned RING_BYTES = 128,
  localparam int unsigned N          = 2,
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned ByteW      = $clog2(Bytes),
  localparam int unsigned RingW      = $clog2(RING_BYTES)
) (
  input logic                    clk,
  input logic                    rst,
  input tcp_stream_t             s_stream,
  input logic [Bytes-1:0]        s_axis_tkeep,
  input logic                    s_axis_tvalid,
  input logic                    s_axis_tready,
  input logic                    s_axis_tlast,
  input logic                    wr_en,
  input logic [RingW-ByteW:0]    wr_addr,
  input tcp_write_t              write,
  input logic                    write_valid,
  input logic                    write_ready,
  input tcp_done_t               done,
  input logic                    done_valid,
  input logic [1:0]              state_q,  // StIdle, StLoad, StTake, StFlush
  input logic [1:0]              live_q,
  input logic [1:0]              fresh_q,
  input tcp_stream_t             stream_q,
  input tcp_stream_t             close_stream_q,
  input tcp_seq_t                end_q,
  input tcp_seq_t                una_q,
  input tcp_seq_t                reported_seq_q,
  input tcp_seq_t                close_end_q,
  input tcp_seq_t                close_reported_q,
  input tcp_seq_t                una_kept,
  input tcp_seq_t                start_kept,
  input tcp_seq_t                end_kept,
  input logic                    close_valid_q,
  input logic                    close_dead_q,
  input logic                    una_newer_q,
  input logic                    dead_q,
  input logic                    room_q,
  input logic                    follows_q,
  input logic                    take,
  input logic                    closes,
  input logic                    fills,
  input logic                    chunk_due,
  input logic [3:1]              beat_valid,
  input logic [3:1][RingW-ByteW:0] beat_addr,
  input logic [N-1:0][31:0]      una_stored,
  input logic [N-1:0][31:0]      start_stored,
  input logic [N-1:0][31:0]      end_stored
);
  localparam logic [1:0] Load = 2'd1, Take = 2'd2, Flush = 2'd3;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // a to b, in bytes
  function automatic tcp_seq_t from(tcp_seq_t a, tcp_seq_t b);
    return b - a;
  endfunction

  // ---- messages: whole beats but the last one; what is offered stays ----------------------------------------------
  keeps_offer #(.W(1 + Bytes + $bits(tcp_stream_t))) u_offer (
    .valid(s_axis_tvalid), .ready(s_axis_tready), .offer({s_axis_tlast, s_axis_tkeep, s_stream}), .*
  );
  tcp_seq_t count;
  assign count = 32'($countones(s_axis_tkeep));
  always_comb begin
    assume (32'(s_stream) < N);
    assume (s_axis_tkeep != '0 && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0);
    if (s_axis_tvalid && !s_axis_tlast) assume (s_axis_tkeep == '1);
  end

  // ---- the sender: of each stream whether it is open, what is acknowledged, and what was reported to it ------------
  logic done_at, opened, ended, reports, reports_at;
  logic [N-1:0] g_live_q;
  logic [N-1:0][1:0] since_q;  // its last event, cycles
  tcp_seq_t [N-1:0] g_una_q, g_reported_q, before_reported_q;  // the last one a cycle later
  assign done_at    = done.stream[0];
  assign opened     = done_valid && done.kind == TcpOpen && !done.actions.counts.ignored;
  assign ended      = done_valid && done.actions.ended != TcpNotEnded;
  assign reports    = write_valid && write_ready;
  assign reports_at = write.stream[0];
  always_comb begin
    if (done_valid) assume (32'(done.stream) < N && since_q[done_at] == 2'd3);  // tcp_sender: every fourth at most
    if (opened) assume (!g_live_q[done_at] && !ended && done.written == done.una + 32'd1);
    if (ended) assume (g_live_q[done_at]);
    // Only reported bytes are sent, and only those are acknowledged (tcp_step_props).
    if (done_valid && g_live_q[done_at] && !ended)
      assume (from(g_una_q[done_at], done.una) <= from(g_una_q[done_at], g_reported_q[done_at]));
    if (reports && done_valid) assume (done_at != reports_at);
  end

  // ---- the rings: how far each is written, and up to where its beats are on their way ------------------------------
  logic at, close_at, alive, issues;
  tcp_seq_t [N-1:0] g_end_q, g_issued_q;
  tcp_seq_t [N-1:0] offered, offered_before_q, offered_long_before_q;  // with the word that waits for the sender; earlier
  assign at       = stream_q[0];
  assign close_at = close_stream_q[0];
  assign alive    = state_q inside {Take, Flush} && !dead_q;
  assign issues   = !dead_q && (take || (closes && end_q[ByteW-1:0] != '0));

  typedef struct packed {
    logic     alive;  // its connection has not ended
    logic     at;
    tcp_seq_t seq;    // of its first byte
    tcp_seq_t fresh;  // of its first byte that no beat before it has brought
  } beat_t;
  beat_t [3:1] beat_q;
  tcp_seq_t beat_seq;
  assign beat_seq = {end_q[31:ByteW], {ByteW{1'b0}}};

  always_ff @(posedge clk) begin
    before_reported_q     <= g_reported_q;
    offered_before_q      <= offered;
    offered_long_before_q <= offered_before_q;
    for (int i = 0; i < int'(N); i++) if (since_q[i] != 2'd3) since_q[i] <= since_q[i] + 1'b1;
    if (reports && g_live_q[reports_at]) g_reported_q[reports_at] <= g_reported_q[reports_at] + 32'(write.bytes);
    if (take && !dead_q) begin
      g_end_q[at] <= g_end_q[at] + count;
      if (fills) g_issued_q[at] <= beat_seq + 32'(Bytes);
    end
    if (closes && !dead_q) g_issued_q[at] <= end_q;
    if (done_valid) begin
      since_q[done_at] <= '0;
      g_una_q[done_at] <= done.una;
      if (ended) g_live_q[done_at] <= 1'b0;
      if (opened) begin
        g_live_q[done_at] <= 1'b1;
        {g_reported_q[done_at], before_reported_q[done_at]}         <= {2{done.written}};
        {offered_before_q[done_at], offered_long_before_q[done_at]} <= {2{done.written}};
        {g_end_q[done_at], g_issued_q[done_at]}                     <= {2{done.written}};
      end
    end
    beat_q[1] <= '{
      alive: issues && !(ended && done_at == at), at: at, seq: beat_seq, fresh: g_issued_q[at]
    };
    for (int i = 2; i < 4; i++) begin
      beat_q[i]       <= beat_q[i-1];
      beat_q[i].alive <= beat_q[i-1].alive && !(ended && done_at == beat_q[i-1].at);
    end
    if (rst) begin
      g_live_q <= '0;
      since_q  <= '1;
      for (int i = 1; i < 4; i++) beat_q[i].alive <= 1'b0;
    end
  end

  // ---- the account of each stream ----------------------------------------------------------------------------------
  //   una ... g_reported ... offered ... issued ... end, at most RING_BYTES from una
  //                    owed
  logic [N-1:0] in_message, in_close, una_good, end_good, room_good, reported_good, owed_good, offered_good, issued_good;
  logic [N-1:0] message_good, close_reported_good, close_end_good, follows_good, before_good, fresh_good;
  tcp_seq_t [N-1:0] at_end, owed;
  for (genvar i = 0; i < int'(N); i++) begin : gen_stream
    tcp_seq_t kept;
    assign kept          = fresh_q[i] ? start_stored[i] : end_stored[i];
    assign in_message[i] = alive && at == 1'(i);
    assign in_close[i]   = close_valid_q && !close_dead_q && close_at == 1'(i);
    assign at_end[i]     = in_message[i] ? end_q : in_close[i] ? close_end_q : kept;
    assign offered[i]    = in_close[i] ? close_reported_q : in_message[i] ? reported_seq_q : kept;
    assign owed[i]       = write_valid && reports_at == 1'(i) ? 32'(write.bytes) : '0;  // the sender has not taken it

    assign una_good[i]            = una_stored[i] == g_una_q[i];
    assign end_good[i]            = at_end[i] == g_end_q[i];
    assign room_good[i]           = from(g_una_q[i], g_end_q[i]) <= 32'(RING_BYTES - 2 * Bytes);
    assign reported_good[i]       = from(g_una_q[i], g_reported_q[i]) <= 32'(RING_BYTES);
    assign owed_good[i]           = g_reported_q[i] + owed[i] == offered[i] && owed[i] <= 32'(RING_BYTES);
    assign offered_good[i]        = from(offered[i], g_issued_q[i]) <= 32'(RING_BYTES);
    assign issued_good[i]         = in_message[i] ? from(beat_seq, g_issued_q[i]) <= from(beat_seq, g_end_q[i])
                                : g_issued_q[i] == g_end_q[i];
    assign message_good[i]        = !in_message[i] || from(reported_seq_q, g_issued_q[i]) <= 32'(RING_BYTES);
    assign close_reported_good[i] = !in_close[i] || from(close_reported_q, close_end_q) <= 32'(RING_BYTES);
    assign close_end_good[i]      = !in_close[i] || from(close_end_q, g_issued_q[i]) <= 32'(RING_BYTES);
    assign follows_good[i]        = !(in_close[i] && in_message[i]) || reported_seq_q == close_end_q;
    assign before_good[i]         = from(g_reported_q[i], offered_before_q[i]) <= 32'(RING_BYTES)
                                && from(before_reported_q[i], offered_long_before_q[i]) <= 32'(RING_BYTES);
    assign fresh_good[i]          = !(in_message[i] || in_close[i]) || !fresh_q[i];
  end

  // A beat that came in n cycles ago has no bytes that the word to the sender was about n - 1 cycles ago.
  logic [3:1] then_good, place_good, free_good, there_good, near_good, dead_good;
  for (genvar i = 1; i < 4; i++) begin : gen_beat
    tcp_seq_t una, offered_then, over;
    assign una           = g_una_q[beat_q[i].at];
    assign over          = from(una, beat_q[i].seq) + 32'(Bytes);
    assign offered_then  = i == 1 ? offered[beat_q[i].at] : i == 2 ? offered_before_q[beat_q[i].at]
                           : offered_long_before_q[beat_q[i].at];
    assign near_good[i]  = from(beat_q[i].seq, g_end_q[beat_q[i].at]) < 32'(8 * i + 8)
                           && from(beat_q[i].fresh, g_end_q[beat_q[i].at]) < 32'(8 * i + 8);
    assign place_good[i] = beat_addr[i] == {beat_q[i].at, beat_q[i].seq[RingW-1:ByteW]};
    assign free_good[i]  = over[31] || over <= 32'(RING_BYTES - Bytes);
    assign then_good[i]  = !tcp_before(beat_q[i].fresh, offered_then);
    assign there_good[i] = !tcp_before(beat_q[i].fresh, before_reported_q[beat_q[i].at]);
    assign dead_good[i]  = !g_live_q[beat_q[i].at] && 32'(since_q[beat_q[i].at]) < i;
  end

  logic [3:1] dead_beats, live_beats, of_live;
  for (genvar i = 1; i < 4; i++) begin : gen_kinds
    assign live_beats[i] = beat_q[i].alive;
    assign of_live[i]    = g_live_q[beat_q[i].at];
    assign dead_beats[i] = beat_valid[i] && !beat_q[i].alive;
  end
  logic owner_dead, filling;  // owner: the message that the word to the sender is about
  assign filling    = state_q == Take && alive && s_axis_tvalid;
  assign owner_dead = close_valid_q ? close_dead_q : !alive;
  wire logic [N-1:0] live = g_live_q;

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_live : assert (live_q == g_live_q && (live & ~una_good) == '0);
    a_0_alive : assert ((!alive || live[at]) && (!close_valid_q || close_dead_q || live[close_at]));
    a_0_stream : assert ((state_q == 2'd0 || 32'(stream_q) < N) && (!close_valid_q || 32'(close_stream_q) < N));
    if (state_q == Load && live[at])
      a_0_load : assert ((una_newer_q ? una_q : una_kept) == g_una_q[at]
                         && (fresh_q[at] ? start_kept : follows_q ? end_q : end_kept) == g_end_q[at]);
    if (state_q == 2'd0 && close_valid_q && !close_dead_q) a_0_idle : assert (end_q == close_end_q);
    if (state_q inside {Take, Flush} && dead_q && live[at]) a_0_dead : assert (fresh_q[at]);
    if (close_valid_q && close_dead_q && live[close_at]) a_0_close_dead : assert (fresh_q[close_at]);
    if (state_q == Take && room_q && alive) a_0_room : assert (from(g_una_q[at], end_q) <= 32'(RING_BYTES - 3 * Bytes));
    if (room_q) a_0_room_of : assert (state_q inside {Take, Flush});
    a_0_issued : assert ((live & ~issued_good) == '0);
    a_0_fresh : assert ((live & ~fresh_good) == '0);
    a_0_follows : assert ((live & ~follows_good) == '0);
    a_0_message : assert ((live & ~message_good) == '0);
    a_0_close_end : assert ((live & ~close_end_good) == '0);
    a_0_close_reported : assert ((live & ~close_reported_good) == '0);
    a_0_offered : assert ((live & ~offered_good) == '0);
    a_0_owed : assert ((live & ~owed_good) == '0);
    if (write_valid)
      a_0_owner : assert ((close_valid_q ? write.stream == close_stream_q
                           : state_q inside {Take, Flush} && write.stream == stream_q)
                          && (!owner_dead || !live[reports_at]));
    a_0_before : assert ((live & ~before_good) == '0);
    a_0_then : assert ((live_beats & ~then_good) == '0);
    a_0_place : assert ((beat_valid & ~place_good) == '0);
    a_0_beats : assert ((live_beats & ~beat_valid) == '0 && (live_beats & ~near_good) == '0);

    if (alive) a_una : assert (una_q == g_una_q[at]);
    a_continues : assert ((live & ~end_good) == '0);
    a_room : assert ((live & ~room_good) == '0);
    a_free : assert ((live_beats & ~free_good) == '0);
    a_there : assert ((live_beats & ~there_good) == '0);
    a_closed : assert ((live_beats & ~of_live) == '0 && (dead_beats & ~dead_good) == '0);
    if (wr_en) a_place : assert (wr_addr == {beat_q[3].at, beat_q[3].seq[RingW-1:ByteW]});
    a_reported : assert ((live & ~reported_good) == '0);

    c_both : cover (in_close[0] && in_message[0] && g_live_q == '1 && write_valid);
    c_chunk : cover (chunk_due && alive && end_q[2:0] == 3'd5);
    c_half : cover (filling && from(g_una_q[at], end_q) > 32'(RING_BYTES / 2));
    c_full : cover (filling && from(g_una_q[at], end_q) > 32'(RING_BYTES - 4 * Bytes));
    c_acknowledged : cover (filling && g_una_q[at] == g_reported_q[at] && from(start_stored[at], g_una_q[at]) >= 32'd24);
    c_late : cover (dead_beats[3]);
    // A beat is written again, with bytes that were reported to the sender and those after them.
    c_again : cover (live_beats[3] && beat_q[3].seq != beat_q[3].fresh
                     && before_reported_q[beat_q[3].at] == beat_q[3].fresh);
  end

  wire unused = &{1'b0, done, s_stream, write};
endmodule

bind tcp_ring_writer tcp_ring_writer_props #(.DATA_W(DATA_W), .RING_BYTES(RING_BYTES)) u_props (
  .state_q     (state_q),
  .end_kept    (place_kept.end_seq),
  .beat_valid  ({beat_q[3].valid, beat_q[2].valid, beat_q[1].valid}),
  .beat_addr   ({beat_q[3].addr, beat_q[2].addr, beat_q[1].addr}),
  .una_stored  ({u_streams.u_una.mem[1], u_streams.u_una.mem[0]}),  // proved at N_STREAMS 2
  .start_stored({u_streams.u_start.mem[1], u_streams.u_start.mem[0]}),
  .end_stored  ({u_places.mem[1][DATA_W+16+:32], u_places.mem[0][DATA_W+16+:32]}),
  .*
);
