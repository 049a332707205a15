// SPDX-License-Identifier: SHL-2.1
// Promises between software's commands and the sender of TCP, for any stream that is watched: it opens only when all
// accesses to the rings that were under way at its end are done, when it has no RST to send, and when those that were
// under way when its RST was sent are done; an opening is passed on once as many accesses are done as were under way
// when it came, or when its RST was sent, whatever comes after them; a peer is written with its opening, and what comes
// from another one, or while an opening waits, is stale; an abort waits for no opening; no command is lost; a live
// stream whose bytes the memory has failed is aborted and no other one, and its end is named so.
module tcp_ring_guard_props
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 2,
  parameter  int unsigned WRITES_W  = 3,
  parameter  int unsigned READS_W   = 3,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input logic                 clk,
  input logic                 rst,
  input tcp_opening_t         s_open,
  input logic                 s_open_valid,
  input logic                 s_open_ready,
  input tcp_stream_t          s_abort_stream,
  input logic                 s_abort_valid,
  input logic                 s_abort_ready,
  input tcp_command_t         m_command,
  input logic                 m_command_valid,
  input logic                 m_command_ready,
  input logic                 peer_wr,
  input logic                 peer_epoch,
  input tcp_stream_t          arrival_stream,
  input logic                 arrival_epoch,
  input logic                 stale,
  input tcp_done_t            s_done,
  input tcp_done_t            m_done,
  input logic                 done_valid,
  input logic [WRITES_W-1:0]  unconfirmed,
  input logic                 confirmed,
  input logic [READS_W-1:0]   unread,
  input logic                 read,
  input logic                 wr_fault_valid,
  input tcp_stream_t          wr_fault_stream,
  input logic                 rd_fault_valid,
  input tcp_stream_t          rd_fault_stream,
  input logic [N_STREAMS-1:0] live_q,
  input logic [N_STREAMS-1:0] fault_q,
  input logic [N_STREAMS-1:0] due_q,
  input logic [N_STREAMS-1:0] epoch_q,
  input logic [1:0]           state_q,
  input logic [StreamW-1:0]   at_q,
  input logic                 counted_q,
  input logic [WRITES_W-1:0]  writes_left_q,
  input logic [READS_W-1:0]   reads_left_q
);
  typedef logic [StreamW-1:0] index_t;
  typedef logic [WRITES_W-1:0] writes_t;
  typedef logic [READS_W-1:0] reads_t;

  logic started_q = 1'b0;
  index_t any_stream, watched_q;
  anything #(.W(StreamW)) u_stream (.value(any_stream));
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) watched_q <= any_stream;
  end
  always_comb if (!started_q) assume (rst);

  // ---- the accesses: each begins, and is done later -----------------------------------------------------------------
  logic write_begins, read_begins;
  writes_t writes_q;
  reads_t reads_q;
  anything u_write_begins (.value(write_begins));
  anything u_read_begins (.value(read_begins));
  always_comb if (started_q) begin
    assume (unconfirmed == writes_q && unread == reads_q);
    if (writes_q == '0) assume (!confirmed);
    if (reads_q == '0) assume (!read);
    if (writes_q == '1) assume (!write_begins);
    if (reads_q == '1) assume (!read_begins);
  end
  always_ff @(posedge clk) begin
    writes_q <= writes_q + writes_t'(write_begins) - writes_t'(confirmed);
    reads_q  <= reads_q + reads_t'(read_begins) - reads_t'(read);
    if (rst) {writes_q, reads_q} <= '0;
  end

  // ---- the sender: one event of a stream at a time (tcp_sender_props); a stream becomes live by an opening alone ----
  logic concerns, ended, opening_q, live;  // opening_q: of the watched stream, in the sender
  assign concerns = done_valid && index_t'(s_done.stream) == watched_q;
  assign ended    = concerns && s_done.actions.ended != TcpNotEnded;
  assign live     = live_q[watched_q];
  always_comb begin
    assume (32'(s_open.stream) < N_STREAMS && 32'(s_abort_stream) < N_STREAMS && 32'(s_done.stream) < N_STREAMS);
    assume (32'(wr_fault_stream) < N_STREAMS && 32'(rd_fault_stream) < N_STREAMS);
    assume (32'(arrival_stream) < N_STREAMS);
    if (done_valid && m_command_valid && m_command.stream == s_done.stream) assume (!m_command_ready);
    if (concerns) assume ((s_done.kind == TcpOpen) == opening_q);
    if (concerns && !live && !opening_q) assume (s_done.state == TcpClosed);
    if (done_valid && s_done.actions.ended != TcpNotEnded) assume (s_done.state == TcpClosed && s_done.kind != TcpOpen);
    if (concerns && live && !ended) assume (s_done.state != TcpClosed);
    if (opening_q && m_command_valid && index_t'(m_command.stream) == watched_q) assume (!m_command_ready);
    if (done_valid) assume (s_done.actions.ended != TcpBadMemory);
  end

  // ---- software keeps its opening until it is taken, or withdraws it ------------------------------------------------
  tcp_opening_t s_open_q;
  logic waiting_q;
  tcp_command_t opening, aborting;
  always_comb if (waiting_q && s_open_valid) assume (s_open == s_open_q);
  assign opening  = '{stream: s_open.stream, opens: 1'b1, iss: s_open.iss};
  assign aborting = '{stream: s_abort_stream, opens: 1'b0, iss: '0};

  // ---- accesses under way: old ones, at the end of the watched stream and after its RST; those in front of an opening
  logic [N_STREAMS-1:0] dues_q;  // streams that have an RST to send
  logic ended_q, sent, first_q, offered, opens_now;
  assign sent = concerns && dues_q[watched_q] && !s_done.reset_due;
  writes_t old_writes, old_writes_q, ahead_writes, ahead_writes_q;
  reads_t old_reads, old_reads_q, ahead_reads, ahead_reads_q;
  assign old_writes   = ended_q ? unconfirmed : old_writes_q;
  assign old_reads    = ended_q ? unread : old_reads_q;
  assign offered      = s_open_valid;
  assign ahead_writes = first_q ? unconfirmed : ahead_writes_q;
  assign ahead_reads  = first_q ? unread : ahead_reads_q;
  assign opens_now    = m_command_valid && m_command_ready && m_command.opens
                        && index_t'(m_command.stream) == watched_q;

  // ---- failures of the memory, and the guard's abort ----------------------------------------------------------------
  logic failed, failed_q, aborting_q;
  index_t aborts_q;
  assign failed = live && ((wr_fault_valid && index_t'(wr_fault_stream) == watched_q)
                           || (rd_fault_valid && index_t'(rd_fault_stream) == watched_q));

  // ---- the peer of the watched stream's last opening ---------------------------------------------------------------
  logic peer_epoch_q, waits_closed;
  assign waits_closed = offered && !live && index_t'(s_open.stream) == watched_q;

  always_ff @(posedge clk) begin
    s_open_q       <= s_open;
    waiting_q      <= s_open_valid && !s_open_ready;
    ended_q        <= ended || sent;
    if (done_valid) dues_q[index_t'(s_done.stream)] <= s_done.reset_due;
    old_writes_q   <= old_writes - writes_t'(confirmed && old_writes != '0);
    old_reads_q    <= old_reads - reads_t'(read && old_reads != '0);
    ahead_writes_q <= ahead_writes - writes_t'(confirmed && ahead_writes != '0);
    ahead_reads_q  <= ahead_reads - reads_t'(read && ahead_reads != '0);
    // An opening that waits has those in front of it counted once, or again when its stream ends or has sent an RST.
    first_q <= !offered || s_open_ready || dues_q[index_t'(s_open.stream)]
               || (done_valid && s_done.stream == s_open.stream
                   && (s_done.actions.ended != TcpNotEnded || s_done.reset_due));
    if (peer_wr && index_t'(s_open.stream) == watched_q) peer_epoch_q <= peer_epoch;
    if (opens_now) opening_q <= 1'b1;
    else if (concerns) opening_q <= 1'b0;
    if (failed) failed_q <= 1'b1;
    if (concerns && (ended || (aborting_q && s_done.kind == TcpAbort && aborts_q == watched_q))) failed_q <= 1'b0;
    if (state_q == 2'd1 && m_command_ready) {aborting_q, aborts_q} <= {1'b1, at_q};
    else if (done_valid && s_done.kind == TcpAbort && index_t'(s_done.stream) == aborts_q) aborting_q <= 1'b0;
    if (rst) begin
      {waiting_q, ended_q, opening_q, failed_q, aborting_q, dues_q, peer_epoch_q} <= '0;
      {old_writes_q, old_reads_q} <= '0;
      first_q <= 1'b1;
    end
  end

  logic guard_abort;  // the end is that which the guard has requested
  assign guard_abort = aborting_q && done_valid && index_t'(s_done.stream) == aborts_q && s_done.kind == TcpAbort
                     && s_done.actions.ended == TcpAborted;

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_counted : assert (!counted_q || waiting_q);
    a_0_first : assert (counted_q == !first_q);
    a_0_old : assert (old_writes <= unconfirmed && old_reads <= unread);
    a_0_ahead : assert (!counted_q || (writes_left_q == ahead_writes && reads_left_q == ahead_reads));
    if (counted_q && index_t'(s_open_q.stream) == watched_q)
      a_0_left : assert (writes_left_q >= old_writes && reads_left_q >= old_reads);
    a_0_state : assert ((state_q == 2'd2) == aborting_q && state_q != 2'd3 && (!aborting_q || aborts_q == at_q));
    a_0_live : assert (!failed_q || live);
    a_0_due : assert (due_q == dues_q && epoch_q[watched_q] == peer_epoch_q);
    if (state_q == 2'd1 && at_q == watched_q && !live) a_0_no_opening : assert (!opening_q);

    if (opens_now) a_apart : assert (old_writes == '0 && old_reads == '0);
    if (opens_now) a_rst_sent : assert (!dues_q[watched_q]);
    if (opens_now && !live) a_peer : assert (peer_wr && peer_epoch != peer_epoch_q);
    if (peer_wr) a_no_other : assert (opens_now || index_t'(s_open.stream) != watched_q);
    if (peer_wr && index_t'(s_open.stream) == watched_q) a_closed : assert (!live);
    if (index_t'(arrival_stream) == watched_q)
      a_stale : assert (stale == (arrival_epoch != peer_epoch_q || waits_closed));
    if (offered && !first_q && ahead_writes == '0 && ahead_reads == '0 && state_q != 2'd1 && !s_abort_valid)
      a_soon : assert (m_command_valid && m_command == opening && s_open_ready == m_command_ready);
    if (s_abort_valid && state_q != 2'd1)
      a_aborts : assert (m_command_valid && m_command == aborting && s_abort_ready == m_command_ready);
    if (s_open_ready)
      a_taken : assert (s_open_valid && m_command_valid && m_command_ready && m_command == opening);
    if (s_abort_ready)
      a_ended : assert (s_abort_valid && m_command_valid && m_command_ready && m_command == aborting);
    // Its own abort is offered until it is taken, and takes one turn.
    if (state_q == 2'd1)
      a_offered : assert (m_command_valid && !m_command.opens && index_t'(m_command.stream) == at_q && !s_open_ready
                         && !s_abort_ready);
    a_failed : assert (fault_q[watched_q] == failed_q);
    if (state_q == 2'd1 && at_q == watched_q && live) a_guilty : assert (failed_q);
    a_named : assert (done_valid && guard_abort ? m_done.actions.ended == TcpBadMemory : m_done == s_done);

    c_waits : cover (offered && !first_q && index_t'(s_open.stream) == watched_q && old_writes == 3'd2
                     && old_reads == 3'd2);
    c_rst_sent : cover (waits_closed && waiting_q && sent);
    c_moves : cover (opens_now && peer_wr && peer_epoch_q && unread != '0);
    c_again : cover (offered && first_q && waiting_q && ended_q);
    c_opens : cover (opens_now && unconfirmed != '0 && unread != '0);
    c_passes : cover (s_abort_ready && offered && !first_q && ahead_reads != '0);
    c_named : cover (guard_abort && offered && aborts_q == watched_q && failed_q);
  end

  wire unused = &{1'b0, s_done, m_done, epoch_q};
endmodule

bind tcp_ring_guard tcp_ring_guard_props #(.N_STREAMS(N_STREAMS), .WRITES_W(WRITES_W), .READS_W(READS_W)) u_props (
  .state_q(state_q), .*
);
