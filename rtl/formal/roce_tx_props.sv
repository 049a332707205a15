// SPDX-License-Identifier: SHL-2.1
// Joint promises of segmenter, requester and packet store about the send ring (one queue pair, two slots):
//   no slot is written while it holds a packet that has not been released, so nothing unacknowledged is overwritten;
//   the data read for a PSN is the data written for it in this life of the queue pair, even while it is being
//   filled (cut-through); no packet is sent twice unless a NAK came or a timer expired in between. IBTA volume 1, 9.7.
// Promises about connections: nothing of a message enters the ring of a connection that was opened after another one had
// ended while its descriptor waited; such a message completes after all that were posted before it.
//
// The proof follows one arbitrary word of the store and one arbitrary slot's header (free/ram_sdp); `owner_q` is the
// PSN for which the word was written last. The rules of the requester are those that requester_step_props proves
// (free/requester_step). Assumed: the FIFOs at the inputs keep words and order (sync_fifo_props).
// Without RETRANSMIT the same is proved of packets that have not left: a slot is filled again while its packet waits for an
// acknowledgement. nxt then moves with packets sent, and only so (requester_once_props).
module roce_tx_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import requester_rules_pkg::*;
#(
  parameter int unsigned SLOTS = 2,
  parameter bit          RETRANSMIT = 1'b1,
  localparam int unsigned PlaceW = $clog2(SLOTS)
) (
  input logic      clk,
  input logic      rst,
  input qp_t       ack_qp, command_qp,  // in front of the requester
  input qp_state_e command,
  // requester
  input logic      init_q,
  input logic      grant_valid,
  input logic [1:0] grant_gap,
  input qp_t       visit_qp_q, grant_qp, release_qp,
  input logic      valid1_q, valid2_q,
  input op_t       op1_q, op2_q,
  input qp_row_t   row, row2_q, next,
  input logic      row_place,
  input logic      stat_valid,
  input qp_t       stat_qp,
  input ring_status_t stat_status,
  input outcome_t  outcome,
  input logic      expired,
  input ring_view_t view,
  input logic [3:0] reads,
  input logic [1:0] reads_head, reads_tail,
  input psn_t [3:0] reads_psn,
  input qp_t [3:0] reads_qp,
  input tx_meta_t  header_read, header,   // of the slots of one parity
  input logic [PlaceW-1:0] header_place,
  // segmenter
  input logic [3:0] segmenter_state,
  input desc_t     desc_q,
  input qp_t       kept_qp,
  input logic      for_keep, wrong, cut, waits,
  input logic      s_axis_desc_tvalid, s_axis_data_tvalid,
  input desc_t     message,
  input logic [31:0] left_q,
  input logic      final_q,
  input logic [8:0] last_q,
  input psn_t      tail_q, wr_q, nxt_q, oldest_q,  // the last two without RETRANSMIT
  input logic      live_q, reading_q,
  input logic      ready, desc_taken, waits_past_q, past_q, stale,
  input mtu_e      mtu_q,
  input logic      cached_q, committed_q, full_q,
  input logic [8:0] beat_q,
  input logic [PayloadLenW-1:0] len,
  input logic [2:0] commits,
  input qp_t commit_qp,
  input logic      write,
  input logic [9:0] write_addr,
  // store
  input logic      fetch,
  input logic [2:0] jobs,
  input logic [1:0] jobs_head, jobs_tail,
  input logic [3:0][21:0] jobs_held,  // address, last beat, last lane
  input logic [8:0] read_beat,
  input logic [9:0] place, read_addr,
  input logic [63:0] word, data, m_axis_tdata
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  // The segmenter's states, as it numbers them.
  typedef enum logic [3:0] {
    StIdle, StLoad, StWait, StData, StFill, StBadLength, StDrain, StForeign, StRefuse, StKeep
  } state_e;
  logic fills, at_work, loads;
  assign fills   = segmenter_state inside {StData, StFill};
  assign at_work = segmenter_state inside {StData, StFill, StBadLength, StDrain, StKeep};
  assign loads   = segmenter_state inside {StLoad, StWait};

  logic offered_q;  // a descriptor stays until it is taken
  qp_t offered_qp_q;
  always_comb begin
    assume (rst == !started_q);
    assume (ack_qp == '0 && command_qp == '0);
    assume (command inside {QpReset, QpInit, QpRtr, QpRts, QpSqd, QpErr});
    assume (!row_place);
    // Messages have the length of their descriptors; the benches cover all others.
    if (s_axis_desc_tvalid) assume (message.length != '0 && message.length <= 32'h8000_0000);
    if (loads && !for_keep) assume (desc_q.length != '0 && desc_q.length <= 32'h8000_0000);
    if (fills && s_axis_data_tvalid) assume (!wrong);
    assume (segmenter_state != StBadLength);
    if (offered_q) assume (s_axis_desc_tvalid && message.qp == offered_qp_q);
    if (!RETRANSMIT && valid2_q && is_live(row2_q.state) && is_live(next.state) && op2_q.kind != DoInit)
      assume (next.nxt == row2_q.nxt + psn_t'(outcome.send));
  end

  // ---- the ring as it is -----------------------------------------------------------------------------
  logic bound;  // the segmenter has the ring's place
  psn_t last, filled, held;
  logic [2:0] waiting;  // commits that the row does not show yet
  psn_t tail_seen;
  assign bound     = at_work || cached_q;
  assign waiting   = commits + 3'(valid1_q && op1_q.kind == DoCommit) + 3'(valid2_q && op2_q.kind == DoCommit);
  assign last      = row.wr + psn_t'(waiting);  // after the last committed slot
  assign held      = last - row.tail;
  assign filled    = wr_q - row.tail;
  assign tail_seen = view.freed ? view.tail : tail_q;

  localparam psn_t Most = psn_t'(SLOTS);
  psn_t capacity;  // of the ring, in packets
  assign capacity = psn_t'(7'd64 >> row.mtu) > Most ? Most : psn_t'(7'd64 >> row.mtu);

  // The packets whose words and headers are kept: from this one on, `stored` of them.
  logic live, keeps;
  psn_t first, stored;
  assign live   = is_live(row.state);
  assign keeps  = RETRANSMIT || live || jobs != '0;
  assign first  = RETRANSMIT ? row.tail : jobs != '0 ? reads_psn[reads_tail] : row.nxt;
  assign stored = keeps ? last - first : '0;

  // ---- the word that is followed: which PSN's it would be, and whose it is -----------------------------
  logic [3:0] shift;
  logic [9:0] slot_mask, beat;
  psn_t ahead, psn_here, owner_q;
  logic here, owned_q;
  logic [63:0] word_q;
  logic back_q;  // nxt has gone back
  function automatic logic [9:0] address(input psn_t psn, input mtu_e mtu);
    return 10'(psn[4:0]) << (4'd4 + 4'(mtu));
  endfunction
  function automatic logic [8:0] last_beat(input logic [PayloadLenW-1:0] length);
    logic [PayloadLenW-1:0] last_byte;
    last_byte = length - 1'b1;
    return last_byte[11:3];
  endfunction
  always_comb begin
    shift     = 4'd4 + 4'(row.mtu);
    slot_mask = 10'h3FF >> shift;
    beat      = place & ~(10'h3FF << shift);
    ahead     = psn_t'(((place >> shift) - 10'(first)) & slot_mask);
    psn_here  = first + ahead;
    here      = ahead < stored;
  end

  logic opened;
  assign opened = valid2_q && (op2_q.kind == DoInit || (!is_live(row.state) && is_live(next.state)));
  always_ff @(posedge clk) begin
    if (write && write_addr == place) {owned_q, owner_q, word_q} <= {1'b1, wr_q, data};
    if (opened || rst) owned_q <= 1'b0;
    if (valid2_q && next.nxt - row.tail < row.nxt - row.tail) back_q <= 1'b1;
    if (opened || rst) back_q <= 1'b0;
  end

  // ---- the packet that is followed: sent, and since then neither a NAK nor an expired timer --------------
  logic choose, sent_q, sends;
  psn_t sent_psn_q;
  anything u_choose (.value(choose));
  assign sends = valid2_q && outcome.send;
  always_ff @(posedge clk) begin
    if (sends && choose && !sent_q) {sent_q, sent_psn_q} <= {1'b1, row.nxt};
    if (valid2_q && (outcome.packet_seq_err || outcome.rnr_nak || expired || !is_live(next.state))) sent_q <= 1'b0;
    if (valid2_q && outcome.freed && row.tail == sent_psn_q) sent_q <= 1'b0;  // its PSN may come again
    if (rst || opened) sent_q <= 1'b0;
  end

  // ---- the descriptor at the input, and the one at hand: what became of their connections -----------------
  typedef struct packed {
    logic ended;   // none was open at some time since the descriptor came
    logic opened;  // and after that one was opened
  } connection_t;
  connection_t waiting_q, at_hand_q, waiting_d;
  assign waiting_d = '{ended: waiting_q.ended || !ready, opened: waiting_q.opened || (waiting_q.ended && opened)};
  always_ff @(posedge clk) begin
    offered_q    <= s_axis_desc_tvalid && !desc_taken && !rst;
    offered_qp_q <= message.qp;
    waiting_q <= s_axis_desc_tvalid && !desc_taken && !rst ? waiting_d : '0;
    if (rst) at_hand_q <= '0;
    else if (segmenter_state == StIdle) at_hand_q <= waiting_d;
    else at_hand_q <= '{ended: at_hand_q.ended || (loads && !ready),
                        opened: at_hand_q.opened || (at_hand_q.ended && opened)};
  end

  // ---- reads under way -------------------------------------------------------------------------------
  logic [3:0] good_read, good_job, taken;
  psn_t reading;
  assign reading = reads_psn[reads_tail];
  for (genvar i = 0; i < 4; i++) begin : gen_read
    logic [1:0] behind;
    assign behind         = 2'(i) - reads_tail;
    assign taken[i]       = 3'(behind) < jobs;
    assign good_read[i]   = !taken[i] || (reads_qp[i] == '0 && reads_psn[i] - row.tail < row.wr - row.tail);
    assign good_job[i]    = !taken[i] || (jobs_held[i][21:12] == address(reads_psn[i], row.mtu)
      && (reads_psn[i][PlaceW-1:0] != header_place || (jobs_held[i][11:3] == last_beat(header.len) && header.len != '0)));
  end

  logic rests;
  assign rests = segmenter_state == StIdle;

  logic up;  // the row has been written
  assign up = !init_q && !(valid1_q && op1_q.kind == DoInit) && !(valid2_q && op2_q.kind == DoInit);

  psn_t psn_header;  // the PSN in [first, first + SLOTS) whose header is followed
  logic has_header;
  assign psn_header = first + psn_t'(PlaceW'(header_place - first[PlaceW-1:0]));
  assign has_header = psn_header - first < stored;

  // Without RETRANSMIT: the reads are of packets that have been sent, each after the one before it; the segmenter's
  // view is never ahead.
  if (!RETRANSMIT) begin : gen_once
    logic [3:0] good_order;
    for (genvar i = 0; i < 4; i++) begin : gen_order
      logic [1:0] behind;
      assign behind = 2'(i) - reads_tail;
      assign good_order[i] = !taken[i] || (reads_psn[i] - row.tail < (live ? row.nxt : row.wr) - row.tail
        && (behind == '0 || reads_psn[i] - row.tail > reads_psn[(i + 3) % 4] - row.tail));
    end
    logic live_seen, begun;
    psn_t nxt_seen, left;
    assign live_seen = stat_valid ? is_live(stat_status.state) : live_q;
    assign nxt_seen  = stat_valid ? stat_status.nxt : nxt_q;
    assign left      = !live_q ? tail_q : reading_q ? oldest_q : nxt_q;
    assign begun     = fills && beat_q != '0;
    always_comb if (started_q && up) begin
      a_03_stored : assert (stored <= capacity);
      a_04_order : assert (good_order == '1);
      if (bound) begin
        a_02_live : assert (live_seen == live && (!live || nxt_seen == row.nxt));
        if (keeps) a_02_left : assert (left - tail_seen <= first - tail_seen || tail_seen != tail_q || !live_q);
        if (keeps) a_02_stored : assert (wr_q + psn_t'(begun) - first <= capacity);
        if (keeps && !full_q && beat_q == '0) a_02_once_room : assert (wr_q - first < capacity);
      end
      // A slot is filled again whose packet is not acknowledged.
      c_refills : cover (write && write_addr == place && owned_q && owner_q == wr_q - 24'd2 && row.una == row.tail
                         && owner_q == row.tail && live && !waits);
    end
  end

  always_comb if (started_q) begin
    // The pipeline.
    a_00_alone : assert (!(valid1_q && valid2_q) && (!valid1_q || op1_q.qp == '0) && (!valid2_q || op2_q.qp == '0)
                         && visit_qp_q == '0 && grant_qp == '0 && release_qp == '0
                         && (!stat_valid || stat_qp == '0)
                         && (view.qp == '0 || !(|{view.loaded, view.again, view.freed, view.left_rts})));
    a_00_command : assert ((!valid1_q || may_do(op1_q, row) || op1_q.kind != DoCmd)
                           && (!valid2_q || may_do(op2_q, row) || op2_q.kind != DoCmd));
    if (valid2_q) a_00_row : assert (row2_q == (RETRANSMIT ? row : sent_once(row)));
    if (init_q) a_00_first : assert (!valid1_q && !valid2_q);
    if (!up) a_00_down : assert (!bound && waiting == '0 && jobs == '0 && !(|{view.loaded, view.again, view.freed,
                                 view.left_rts}) && segmenter_state != StWait);
  end
  // Properties that do not need `up` hold from reset on: induction begins there, and needs fewer cycles.
  always_comb if (started_q) begin
    if (up) a_00_checks : assert (row_checks(row) == '1 && row.mtu >= Mtu256 && row.mtu <= Mtu4096);
    // The segmenter.
    if (bound || loads) a_01_qp : assert (desc_q.qp == '0);
    a_01_keep : assert (kept_qp == '0);
    a_01_commits : assert ((commits == '0 || commit_qp == '0) && commits <= 3'd4);
    if (loads) a_01_begins : assert (!cached_q && beat_q == '0 && left_q == (for_keep ? '0 : desc_q.length));
    if (segmenter_state == StKeep) a_01_empty : assert (left_q == '0 && beat_q == '0);
    if (committed_q) a_01_fills : assert (fills && beat_q != '0);
    if (at_work) a_01_final : assert (final_q == (left_q <= 32'(mtu_bytes(mtu_q))));
    if (fills) a_01_last : assert (last_q == last_beat(len));
    if (segmenter_state == StFill) a_01_fill : assert (committed_q);
    a_01_loads : assert ((view.loaded || view.again || (valid1_q && op1_q.kind == DoLoad)
                         || (valid2_q && op2_q.kind == DoLoad)) == (segmenter_state == StWait));
    if (segmenter_state == StWait) a_01_waits : assert (waiting == '0);
    if (view.loaded) a_01_view : assert (view.tail == row.tail && view.wr == row.wr && view.mtu == row.mtu);
    if (cached_q && !view.left_rts) a_01_live : assert (is_live(row.state));
    if (view.loaded && view.rts) a_01_loaded : assert (is_live(row.state));
    if (up && is_live(row.state)) a_01_not_pending : assert (!row.open_pending);
    // The segmenter's pointers and the ring's.
    if (bound) begin
      a_02_wr : assert (wr_q + psn_t'(committed_q) == last);
      a_02_tail : assert (tail_seen == row.tail && wr_q - tail_q <= (fills && beat_q != '0 ? Most - 24'd1 : Most));
      a_02_mtu : assert (mtu_q == row.mtu);
      a_02_forward : assert (wr_q - tail_seen <= wr_q - tail_q);
      if (!full_q && beat_q == '0) a_02_room : assert (wr_q - tail_q < Most);
    end
    if (up && (waiting == '0 || bound)) a_02_held : assert (held <= Most);
    if (up) a_03_held : assert (held <= Most && row.wr - row.tail <= Most);
    if (committed_q) a_03_committed : assert (filled < held);
    // The reads.
    a_04_jobs : assert (jobs <= 3'd4 && jobs_head == reads_head && jobs_tail == reads_tail && taken == reads
                        && jobs_head == jobs_tail + 2'(jobs));
    if (valid1_q && op1_q.kind == DoSend) a_04_gap1 : assert (grant_gap == 2'd3 && !grant_valid);
    if (valid2_q && op2_q.kind == DoSend) a_04_gap2 : assert (grant_gap == 2'd2 && !grant_valid);
    if (grant_valid || grant_gap >= 2'd2) a_04_room : assert (jobs <= 3'd3 || grant_gap == 2'd2);
    if (valid2_q && op2_q.kind == DoSend) a_04_job_room : assert (jobs <= 3'd3);
    a_04_read : assert (good_read == '1);
    a_05_job : assert (good_job == '1);
    a_05_beat : assert (read_beat <= (jobs == '0 ? '0 : jobs_held[jobs_tail][11:3]));
    // The headers.
    if (has_header) begin
      if (up) a_05_length : assert (header.len <= mtu_bytes(row.mtu));
      if (committed_q && psn_header == wr_q) a_05_at_hand : assert (header.len == len && len != '0);
      if (valid2_q && op2_q.kind == DoSend && is_live(row.state) && row.nxt == psn_header && row.nxt != row.wr)
        a_05_read : assert (header_read.len == header.len);
    end
    if (fills) a_05_fills : assert (len != '0 && beat_q <= last_beat(len));
    // The words.
    if (keeps && fills && psn_here == wr_q && beat < 10'(beat_q)) a_06_filled : assert (owned_q && owner_q == wr_q);
    if (up && here && psn_here == psn_header && header.len != '0 && beat <= 10'(last_beat(header.len))
        && !(committed_q && psn_here == wr_q))
      a_06_whole : assert (owned_q && owner_q == psn_here);
    if (owned_q) a_06_word : assert (word == word_q);

    // Connections.
    if (s_axis_desc_tvalid && message.qp == '0) a_07_waits : assert (waits_past_q == waiting_q.ended);
    if (loads && !for_keep) a_07_loads : assert (past_q == at_hand_q.ended);
    a_07_opened : assert ((waiting_q.ended || !waiting_q.opened) && (at_hand_q.ended || !at_hand_q.opened));

    // The promises.
    if (at_work && !for_keep && is_live(row.state)) a_of_its_connection : assert (!at_hand_q.opened);
    if (segmenter_state inside {StForeign, StRefuse} && desc_q.qp == '0 && !desc_q.by_event)
      a_behind_all : assert (held == '0 && waiting == '0);
    if (write && write_addr == place) a_not_overwritten : assert (!here || (committed_q && psn_here == wr_q));
    if (fetch && read_addr == place && reading[PlaceW-1:0] == header_place)
      a_read_as_written : assert (owned_q && owner_q == reading && word == word_q);
    if (sends && sent_q) a_not_twice : assert (row.nxt != sent_psn_q);
    if (sent_q) a_06_sent : assert (sent_psn_q - row.tail < row.nxt - row.tail && is_live(row.state));
  end
  always_comb if (started_q && up) begin
    // On the way to those below, each from the one before it (proofs/roce.py).
    c_open : cover (!waits && is_live(row.state) && row.mtu == Mtu4096 && row.tail == '1 && beat == '0
                    && psn_here == row.tail && psn_header == row.tail && segmenter_state == StIdle);
    c_loads : cover (!waits && segmenter_state == StWait && !for_keep && !past_q && is_live(row.state) && held == '0 && cut
                    && desc_q.length > 32'd16 && desc_q.length <= 32'd24);
    c_fills : cover (!waits && fills && is_live(row.state) && cached_q && held == '0 && beat_q == '0);
    // The segmenter is idle in these three; otherwise later runs would start inside any message, however long.
    c_filled : cover (!waits && rests && here && owned_q && owner_q == psn_here && waiting == '0 && is_live(row.state)
                      && !committed_q && row.nxt == row.tail && row.wr != row.tail);
    c_sent : cover (!waits && rests && sends && row.nxt == psn_here && owned_q && owner_q == psn_here);
  end
  if (RETRANSMIT) begin : gen_again
    always_comb if (started_q && up) begin
      c_begun : cover (!waits && committed_q && here && psn_here == wr_q && owned_q && is_live(row.state)
                       && row.wr != row.tail && row.nxt == row.tail);
      // The same two, wherever the segmenter is.
      c_held : cover (!waits && here && owned_q && owner_q == psn_here && waiting == '0 && is_live(row.state)
                      && !committed_q && row.nxt == row.tail && row.wr != row.tail);
      c_leaves : cover (!waits && sends && row.nxt == psn_here && owned_q && owner_q == psn_here);
      c_back : cover (back_q && row.nxt == psn_here && jobs != '0 && is_live(row.state));
      c_freed : cover (!waits && rests && owned_q && owner_q == row.tail - 1'b1 && is_live(row.state));
      c_next : cover (!waits && owned_q && owner_q == row.tail - 1'b1 && is_live(row.state) && cached_q
                       && segmenter_state == StIdle && held == 24'd1);
      // A packet is read that has been acknowledged; one that is still being filled; a slot is filled again, the
      // ring being full with it; a packet is sent again while its first read is under way.
      c_read : cover (fetch && read_addr == place && reading[PlaceW-1:0] == header_place && row.tail != row.una);
      c_cut_through : cover (fetch && read_addr == place && committed_q && reading == wr_q);
      c_wraps : cover (write && write_addr == place && filled == 24'd1 && owned_q && owner_q == wr_q - 24'd2);
      c_stale : cover (stale && at_hand_q.opened && !waits);
      c_again : cover (sends && back_q && row.nxt == psn_here && jobs != '0);
    end
  end
endmodule

bind roce_tx roce_tx_props #(.SLOTS(SLOTS), .RETRANSMIT(RETRANSMIT)) u_props (
  .ack_qp(ack_head.qp), .command_qp(cmd.qp), .command(cmd.state),
  .init_q(u_requester.init_q), .visit_qp_q(u_requester.visit_qp_q),
  .grant_valid(u_requester.grant_valid), .grant_gap(u_requester.u_scheduler.gap_q),
  .grant_qp(u_requester.grant_valid ? u_requester.grant_qp : '0),
  .release_qp(u_requester.release_valid ? u_requester.release_qp : '0),
  .valid1_q(u_requester.valid1_q), .valid2_q(u_requester.valid2_q), .op1_q(u_requester.op1_q), .op2_q(u_requester.op2_q),
  .row(u_requester.u_rows.word_q), .row2_q(u_requester.row2_q), .next(u_requester.next),
  .row_place(u_requester.u_rows.place_q), .outcome(u_requester.outcome), .expired(u_requester.u_step.expired),
  .view(u_requester.view),
  .reads(u_requester.u_in_use.valid_q), .reads_head(u_requester.u_in_use.head_q), .reads_tail(u_requester.u_in_use.tail_q),
  .reads_psn({u_requester.u_in_use.psn_q[3], u_requester.u_in_use.psn_q[2], u_requester.u_in_use.psn_q[1],
              u_requester.u_in_use.psn_q[0]}),
  .reads_qp({u_requester.u_in_use.qp_q[3], u_requester.u_in_use.qp_q[2], u_requester.u_in_use.qp_q[1],
             u_requester.u_in_use.qp_q[0]}),
  .header_read(u_requester.tx_meta), .header(u_requester.u_tx_meta.word_q), .header_place(u_requester.u_tx_meta.place_q),
  .segmenter_state(u_segmenter.state_q),
  .wrong(u_segmenter.wrong), .cut(u_segmenter.cut_q), .waits(cmd_pending || ack_pending), .message(s_axis_desc_tdata),
  .s_axis_desc_tvalid(u_segmenter.s_axis_desc_tvalid), .desc_taken(s_axis_desc_tready), .waits_past_q(u_segmenter.waits_past_q), .past_q(u_segmenter.past_q),
  .for_keep(u_segmenter.keep_q), .left_q(u_segmenter.left_q), .final_q(u_segmenter.final_q), .last_q(u_segmenter.last_q),
  .kept_qp(u_segmenter.keep_pending_q ? u_segmenter.keep_qp_q : '0),
  .nxt_q(u_segmenter.nxt_q), .oldest_q(u_segmenter.oldest_q), .live_q(u_segmenter.live_q),
  .reading_q(u_segmenter.reading_q),
  .desc_q(u_segmenter.desc_q), .tail_q(u_segmenter.tail_q), .wr_q(u_segmenter.wr_q), .mtu_q(u_segmenter.mtu_q),
  .cached_q(u_segmenter.cached_q), .committed_q(u_segmenter.committed_q), .full_q(u_segmenter.full_q),
  .beat_q(u_segmenter.beat_q),
  .len(u_segmenter.len), .commits(u_segmenter.commits), .commit_qp(u_segmenter.commit_qp),
  .write(store_wr_en), .write_addr(gen_on_chip.u_store.u_ram.wr_addr), .data(store_wr_data),
  .fetch(gen_on_chip.u_store.fetch), .jobs(gen_on_chip.u_store.u_jobs.level),
  .jobs_head(gen_on_chip.u_store.u_jobs.head_q[1:0]), .jobs_tail(gen_on_chip.u_store.u_jobs.tail_q[1:0]),
  .jobs_held({gen_on_chip.u_store.u_jobs.mem[3], gen_on_chip.u_store.u_jobs.mem[2], gen_on_chip.u_store.u_jobs.mem[1],
              gen_on_chip.u_store.u_jobs.mem[0]}),
  .read_beat(gen_on_chip.u_store.beat_q), .place(gen_on_chip.u_store.u_ram.place_q),
  .read_addr(gen_on_chip.u_store.u_ram.rd_addr), .word(gen_on_chip.u_store.u_ram.word_q),
  .*
);
