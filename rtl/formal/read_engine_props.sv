// SPDX-License-Identifier: SHL-2.1
// Promises of the READ responder's operations, for any requests, grants and settings: a packet's bytes are in the window;
// they and its PSN are at their place in a READ that was accepted; the oldest answer goes first, and a NAK after the
// answers to READs before it; a queue pair that was closed meanwhile sends nothing; each operation ends, and each grant of
// a queue pair with work sends a packet or a refusal. One queue pair; one entry, any of the sixteen, is watched. Assumed:
// the tables and the queue of requests keep what they offer, and read_search finds what read_search_props promises.
module read_engine_props
  import penstock_pkg::*;
  import roce_read_pkg::*;
(
  input logic          clk,
  input logic          rst,
  input logic          arriving,
  input qp_t           arriving_qp,
  input read_request_t request,
  input logic          request_valid,
  input logic          request_taken,
  input qp_t           grant_qp,
  input logic          grant_ready,
  input logic [0:0]    work,
  input logic          cfg_rd,
  input qp_cfg_t       cfg,
  input read_cfg_t     window,
  input logic [0:0]    ready,
  input logic          drained,
  input read_reply_t   reply,
  input logic [63:0]   reply_addr,
  input logic          reply_valid,
  input logic          reply_ready,
  // inside
  input logic [3:0]    state_q,
  input logic          is_request_q, executes_q, repeats_q, sends_q, is_nak_q, begins, row_here, closed, leaves,
  input logic [0:0]    fresh_q, work_q,
  input qp_t           qp_q,
  input read_row_t     row_q, written, kept, stored,
  input entry_t        entry_q, oldest, place, answers_place, found_entry,
  input logic          rows_place, search_done, found,
  input logic [Entries-1:0] continued, rotated_q,
  input executed_t     executing, executed_word, executed,
  input answer_t       answer_q, answer_after, answer_word, answer,
  input roce_pkg::reth_t subject,
  input logic [64:0]   offset_q, slack_q,
  input logic          key_q, inside_q, is_last_q, permitted,
  input logic [PayloadLenW-1:0] len_q,
  input logic [23:0]   psns_q,
  input logic          too_long_q
);
  localparam logic [3:0] StIdle = 4'd0, StRow = 4'd1, StPick = 4'd2, StLoad = 4'd3, StSubject = 4'd4, StMeasure = 4'd5,
    StInside = 4'd6, StDecide = 4'd7, StSearch = 4'd8, StCommit = 4'd9;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  // ---- tables and queue ----------------------------------------------------------------------------
  logic          cfg_rd_q, waits_q, arrives_q;
  read_request_t request_s;
  read_cfg_t     window_s;
  mtu_e          mtu_q;
  always_ff @(posedge clk) begin
    cfg_rd_q  <= cfg_rd;
    waits_q   <= request_valid && !request_taken && !rst;
    request_s <= request;
    arrives_q <= arriving && !rst;
    window_s  <= window;
    mtu_q     <= cfg.mtu;
  end
  always_comb begin
    assume (rst == !started_q);
    assume (request.qp == '0 && arriving_qp == '0 && grant_qp == '0 && !rows_place && place == answers_place);
    assume (cfg.mtu == Mtu1024);
    if (started_q) assume (cfg.mtu == mtu_q);
    if (started_q && !cfg_rd_q) assume (window == window_s);
    if (arrives_q) assume (request_valid);
    if (waits_q) assume (request_valid && request == request_s);
  end

  // ---- a part of a READ, at its place ----------------------------------------------------------------
  function automatic logic [63:0] place_of(psn_t first, psn_t psn, mtu_e mtu);
    return 64'(psn_t'(psn - first)) << (4'd7 + 4'(mtu));
  endfunction
  function automatic logic is_part(psn_t psn, logic [63:0] va, logic [31:0] left, executed_t whole, mtu_e mtu);
    logic [63:0] ahead;
    ahead = place_of(whole.first, psn, mtu);
    return psn_t'(psn - whole.first) < whole.packets && va == whole.reth.va + ahead
           && ahead + 64'(left) <= 64'(whole.reth.dma_len) && (left != '0 || whole.reth.dma_len == '0);
  endfunction
  function automatic logic is_whole(executed_t whole, mtu_e mtu);
    return whole.reth.dma_len <= 32'h8000_0000 && whole.packets == packets(whole.reth.dma_len, mtu);
  endfunction
  function automatic logic remembers(read_row_t row, entry_t entry);
    return {1'b0, entry_t'(entry - (row.next - entry_t'(row.count)))} < row.count;
  endfunction
  // A row whose watched entry has these words.
  function automatic logic agrees(read_row_t row, entry_t entry, executed_t whole, answer_t rest, mtu_e mtu);
    return row.count <= 5'd16 && (!row.pending[entry] || remembers(row, entry))
           && (!remembers(row, entry) || is_whole(whole, mtu))
           && (!row.pending[entry] || is_part(rest.psn, rest.va, rest.left, whole, mtu));
  endfunction

  always_comb if (state_q == StSearch && search_done && found) begin
    assume (remembers(row_q, found_entry));
    if (found_entry == place)
      assume (is_part(request.psn, request.reth.va, request.reth.dma_len, executed_word, cfg.mtu)
              && request.reth.rkey == executed_word.reth.rkey);
  end

  // ---- the words of the watched entry after this operation ---------------------------------------------
  executed_t whole;
  answer_t   rest;
  logic      here;
  assign here  = entry_q == place;
  assign whole = here && executes_q ? executing : executed_word;
  assign rest  = here && (executes_q || repeats_q || (sends_q && !is_nak_q)) ? (sends_q ? answer_after : answer_q)
                 : answer_word;

  // ---- the row of before is not that of this connection ------------------------------------------------
  logic anew_q, valid_row;
  always_ff @(posedge clk) begin
    if (row_here) anew_q <= begins;
    else if (leaves) anew_q <= 1'b0;
    if (rst) anew_q <= 1'b0;
  end
  assign valid_row = !fresh_q[0] && !anew_q;

  // ---- cycles of an operation, without those in which it waits ------------------------------------------
  logic [3:0] age_q;
  always_ff @(posedge clk)
    if (state_q == StIdle || rst) age_q <= '0;
    else if (!(state_q == StRow && !row_here) && state_q != StSearch && !(state_q == StCommit && !leaves))
      age_q <= age_q + 1'b1;

  logic later, before_decision, of_answer, measured, sends_data;
  assign later           = state_q > StRow;
  assign before_decision = state_q inside {StPick, StLoad, StSubject, StMeasure, StInside, StDecide};
  assign of_answer       = !is_request_q && (state_q inside {StMeasure, StInside, StDecide}
                                            || (state_q == StCommit && sends_q && !is_nak_q));
  assign measured        = state_q inside {StInside, StDecide, StSearch}
                           || (state_q == StCommit && (is_request_q || (sends_q && !is_nak_q)));
  assign sends_data      = state_q == StCommit && sends_q && !is_nak_q;

  logic [64:0] first, base;
  assign first = {1'b0, reply_addr};
  assign base  = {1'b0, window.base};

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_state : assert (state_q <= StCommit && qp_q == '0 || state_q == StIdle);
    if (is_request_q && state_q inside {StSearch, StCommit})
      a_0_copied : assert (answer_q.psn == request.psn && answer_q.va == request.reth.va
                           && answer_q.left == request.reth.dma_len);
    if (state_q == StCommit) a_0_kinds : assert (is_request_q ? !is_nak_q : !executes_q && !repeats_q);
    a_0_anew : assert (!anew_q || later);
    if (state_q == StRow && !fresh_q[0]) a_0_kept : assert (kept == stored);
    a_0_age : assert (age_q <= (state_q == StIdle ? 4'd8 : state_q == StRow ? 4'd0 : state_q == StSearch ? 4'd7
                                : state_q == StCommit ? 4'd7 : state_q - 4'd1));
    if (later && is_request_q) a_0_request : assert (request_valid);
    if (state_q == StRow && is_request_q) a_0_waits : assert (request_valid);
    if (state_q inside {StPick, StLoad, StSubject, StMeasure}) a_0_packet : assert (!is_request_q);
    if (state_q == StSearch) a_0_search : assert (is_request_q);
    if (before_decision) a_0_none : assert ({executes_q, repeats_q, sends_q, is_nak_q} == '0);
    if (state_q == StSearch) a_0_searches : assert ({executes_q, repeats_q, sends_q, is_nak_q} == '0);
    if (valid_row) a_0_stored : assert (agrees(stored, place, executed_word, answer_word, cfg.mtu));
    if (later && state_q != StCommit && !closed)
      a_0_row : assert (agrees(row_q, place, executed_word, answer_word, cfg.mtu));
    if (state_q == StCommit && !closed) a_0_written : assert (agrees(written, place, whole, rest, cfg.mtu));
    if (of_answer) a_0_subject : assert (subject.va == answer_q.va && subject.dma_len == answer_q.left);
    if (of_answer && here && !closed)
      a_0_answer : assert (is_part(answer_q.psn, answer_q.va, answer_q.left, executed_word, cfg.mtu)
                           && is_whole(executed_word, cfg.mtu));
    if (state_q == StSubject && here && !closed) a_0_loaded : assert (answer == answer_word && row_q.pending[place]);
    if (measured) begin
      a_0_offset : assert (offset_q == {1'b0, subject.va} - base && slack_q == {1'b0, window.length} - 65'(subject.dma_len));
      a_0_key : assert (!key_q || (window.resources != '0 && (!is_request_q || request.reth.rkey == window.rkey)));
      a_0_len : assert (32'(len_q) == (subject.dma_len <= (32'd128 << cfg.mtu) ? subject.dma_len : 32'd128 << cfg.mtu)
                        && is_last_q == (subject.dma_len <= (32'd128 << cfg.mtu)));
      a_0_psns : assert (psns_q == packets(subject.dma_len, cfg.mtu) && too_long_q == (subject.dma_len > 32'h8000_0000));
      if (state_q != StInside)
        a_0_inside : assert (inside_q == (!offset_q[64] && !slack_q[64] && offset_q[63:0] <= slack_q[63:0]));
    end
    if (sends_data) a_0_permitted : assert (permitted && (!is_request_q || (executes_q && !too_long_q
      && answer_q.va == request.reth.va && answer_q.left == request.reth.dma_len && answer_q.psn == request.psn)));
    if (sends_data && answer_q.left != '0)
      a_1_fits : assert ({1'b0, subject.va} >= base && 65'(subject.dma_len) <= {1'b0, window.length}
                         && {1'b0, subject.va} - base <= {1'b0, window.length} - 65'(subject.dma_len));
    if (sends_data) a_1_less : assert (32'(len_q) <= answer_q.left && first == {1'b0, subject.va});
    if (state_q == StLoad) a_0_rotated : assert (rotated_q == Entries'({continued, continued} >> oldest));

    // ---- bytes
    if (reply_valid && reply.len != '0)
      a_window : assert (window.resources != '0 && base <= first && 65'(reply.len) <= {1'b0, window.length}
                         && first - base <= {1'b0, window.length} - 65'(reply.len));
    if (reply_valid && reply.len != '0 && is_request_q) a_key : assert (request.reth.rkey == window.rkey);
    // ---- their place
    if (reply_valid && !is_nak_q && here)
      a_place : assert (psn_t'(reply.psn - whole.first) < whole.packets
                        && reply_addr == whole.reth.va + place_of(whole.first, reply.psn, cfg.mtu)
                        && place_of(whole.first, reply.psn, cfg.mtu) + 64'(reply.len) <= 64'(whole.reth.dma_len));
    if (reply_valid) a_mtu : assert (32'(reply.len) <= 32'd128 << cfg.mtu);
    if (reply_valid && reply.opcode inside {OpcodeReadFirst, OpcodeReadMiddle})
      a_full : assert (32'(reply.len) == 32'd128 << cfg.mtu);
    // ---- order
    if (state_q == StSubject && continued[place])
      a_oldest : assert (continued[entry_q] && entry_t'(entry_q - oldest) <= entry_t'(place - oldest));
    if (reply_valid && is_nak_q) a_after : assert (row_q.nak.valid && (row_q.pending & ~row_q.nak.later) == '0);
    if (reply_valid && executes_q) a_at_once : assert (!row_q.nak.valid);
    // ---- connections
    if (reply_valid) a_open : assert (ready[0] && !fresh_q[0]);
    if (row_here && begins) a_apart : assert (drained);
    // ---- progress
    a_ends : assert (age_q < 4'd10);
    if (valid_row) a_work : assert (work_q[0] == (stored.pending != '0 || stored.nak.valid));
    if (leaves && !closed && !is_request_q && (row_q.pending != '0 || row_q.nak.valid))
      a_sends : assert (sends_q || (row_q.failed && row_q.nak.valid));

    c_at_once : cover (reply_valid && executes_q && !is_last_q && answer_after.left <= 32'd1024 && here);
    c_last : cover (reply_valid && reply.opcode == OpcodeReadLast && reply_ready);
    c_repeats : cover (leaves && repeats_q && here);
    c_waits : cover (leaves && executes_q && !sends_q && here && !closed && !is_last_q);
    c_whole : cover (leaves && executes_q && sends_q && is_last_q && !closed && place == 4'd1);
    c_turned : cover (leaves && executes_q && !sends_q && !closed && row_q.count == 5'd1 && oldest == 4'd1);
    c_follows : cover (leaves && !closed && written.nak.valid && (written.pending & ~written.nak.later) != '0);
    c_ahead : cover (leaves && !closed && written.nak.valid && written.nak.syndrome == SyndromeNakSequence);
    c_behind : cover (leaves && executes_q && !closed && written.nak.valid && written.nak.later != '0);
    c_nak : cover (reply_valid && is_nak_q && reply.syndrome == SyndromeNakSequence && row_q.pending != '0);
    c_denied : cover (leaves && !closed && written.nak.valid && written.nak.syndrome == SyndromeNakAccess);
    c_refused : cover (reply_valid && reply.syndrome == SyndromeNakAccess && reply.is_fatal);
    c_closed : cover (leaves && closed && sends_q);
  end
  wire unused = &{1'b0, cfg, work, grant_ready, executed};
endmodule

bind read_engine read_engine_props u_props (
  .state_q      (state_q),
  .stored       (u_rows.word_q),
  .rows_place   (u_rows.place_q[0]),
  .place        (u_executed.place_q),
  .answers_place(u_answers.place_q),
  .executed_word(u_executed.word_q),
  .answer_word  (u_answers.word_q),
  .*
);
