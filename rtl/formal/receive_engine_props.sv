// SPDX-License-Identifier: SHL-2.1
// Promises of the responder's operations on SENDs and WRITEs, for any requests, grants and settings: payload is placed
// only of a packet with the expected PSN, and then the next PSN is expected; its bytes are in the window as it is set then,
// which permits WRITEs; each request has one placement; what goes to the stream had room; a packet that requests it, or
// ends a message, leaves an ACK of itself; one that is repeated or refused changes nothing; an ACK leaves after a NAK that
// is older and after the answers to READs before it; each operation ends. One queue pair. Assumed: the tables and the
// queue of requests keep what they offer.
module receive_engine_props
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
  input logic          cfg_rd,
  input qp_cfg_t       cfg,
  input read_cfg_t     window,
  input logic [0:0]    lost,
  input logic          room,
  input placement_t    placement,
  input logic          placement_valid,
  input read_reply_t   reply,
  input logic          reply_valid,
  // inside
  input logic [3:0]    state_q,
  input logic          is_request_q, executes_q, repeats_q, sends_q, is_nak_q, is_ack_q, accepts_q, acknowledges_q,
  input logic          begins, row_here, closed, leaves, rule_accepts, rule_refuses,
  input qp_t           qp_q,
  input read_row_t     row_q, written,
  input receive_row_t  receive_q, received, kept_receive,
  input entry_t        oldest,
  input logic [Entries-1:0] continued, rotated_q,
  input roce_pkg::reth_t subject,
  input logic [64:0]   offset_q, slack_q,
  input logic          key_q, inside_q, too_long_q,
  input psn_t          distance_q,
  input logic          full_q, fits_q, is_last_packet_q, is_more_q,
  input logic [63:0]   va_q
);
  localparam logic [3:0] StIdle = 4'd0, StRow = 4'd1, StPick = 4'd2, StLoad = 4'd3,
    StSubject = 4'd4, StMeasure = 4'd5, StInside = 4'd6, StDecide = 4'd7,
    StSearch = 4'd8, StCommit = 4'd9;

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
    assume (!(request.is_read && request.receive.valid));
    assume (request.qp == '0 && arriving_qp == '0 && grant_qp == '0);
    assume (cfg.mtu inside {Mtu256, Mtu512, Mtu1024, Mtu2048, Mtu4096});
    if (started_q && !cfg_rd_q) assume (window == window_s && cfg.mtu == mtu_q);
    if (arrives_q) assume (request_valid);
    if (waits_q) assume (request_valid && request == request_s);
  end

  // ---- what was decided, and on what state ---------------------------------------------------------------
  receive_t     packet;
  read_row_t    before_q;
  receive_row_t before_receive_q;
  roce_pkg::reth_t rest_q;
  logic         had_room_q, is_packet, decided, accepted;
  assign packet    = request.receive;
  assign is_packet = is_request_q && packet.valid;
  assign decided   = state_q == StCommit && is_packet;
  assign accepted  = decided && accepts_q;
  always_ff @(posedge clk)
    if (state_q == StDecide) begin
      before_q         <= row_q;
      before_receive_q <= receive_q;
      rest_q           <= subject;
      had_room_q       <= room;
    end

  logic [64:0] first, base;
  logic [31:0] mtu_bytes;
  assign first     = {1'b0, placement.va};
  assign base      = {1'b0, window.base};
  assign mtu_bytes = 32'd128 << cfg.mtu;

  logic [3:0] age_q;
  always_ff @(posedge clk)
    if (state_q == StIdle || rst) age_q <= '0;
    else if (!(state_q == StRow && !row_here) && state_q != StSearch && !(state_q == StCommit && !leaves))
      age_q <= age_q + 1'b1;

  logic measured;
  assign measured = is_packet && state_q inside {StInside, StDecide};

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_state : assert (state_q <= StCommit && (qp_q == '0 || state_q == StIdle));
    if (state_q > StRow && is_request_q) a_0_request : assert (request_valid);
    if (state_q == StRow && is_request_q) a_0_waits : assert (request_valid);
    if (state_q inside {[StPick:StMeasure]}) a_0_packet : assert (!is_request_q);
    if (state_q == StSearch) a_0_search : assert (is_request_q && !packet.valid);
    if (state_q inside {[StPick:StDecide]})
      a_0_none : assert ({executes_q, repeats_q, accepts_q, acknowledges_q} == '0
                         && (!is_request_q || {sends_q, is_nak_q, is_ack_q} == '0));
    if (state_q == StSearch) a_0_searches : assert ({sends_q, is_nak_q, is_ack_q, accepts_q, executes_q} == '0);
    if (state_q inside {[StSubject:StDecide]}) a_0_answer : assert (!is_nak_q && !is_ack_q);
    if (state_q == StLoad) a_0_rotated : assert (rotated_q == Entries'({continued, continued} >> oldest));
    if (state_q == StCommit && !is_request_q) a_0_kinds : assert (!accepts_q && !executes_q && !acknowledges_q);
    if (decided) a_0_quiet : assert (!executes_q && !repeats_q && !sends_q && !is_nak_q && !is_ack_q);
    a_0_age : assert (age_q <= (state_q == StIdle ? 4'd8 : state_q == StRow ? 4'd0 : state_q == StSearch ? 4'd7
                                : state_q == StCommit ? 4'd7 : state_q - 4'd1));
    if (measured) begin
      a_0_offset : assert (offset_q == {1'b0, subject.va} - base && slack_q == {1'b0, window.length} - 65'(subject.dma_len));
      a_0_key : assert (key_q == (subject.rkey == window.rkey && window.write));
      a_0_compared : assert (full_q == (32'(packet.len) == mtu_bytes) && fits_q == (32'(packet.len) <= mtu_bytes)
                             && is_last_packet_q == (subject.dma_len == 32'(packet.len))
                             && is_more_q == (subject.dma_len < 32'(packet.len)));
      a_0_long : assert (too_long_q == (subject.dma_len > 32'h8000_0000));
      a_0_message : assert (!receive_q.message.begun || receive_q.message == kept_receive.message);
      a_0_distance : assert (distance_q == request.psn - row_q.expected);
      if (state_q == StDecide)
        a_0_inside : assert (inside_q == (!offset_q[64] && !slack_q[64] && offset_q[63:0] <= slack_q[63:0]));
    end
    if (accepted) a_0_before : assert (va_q == rest_q.va && before_q.expected == request.psn && !before_q.failed
      && (packet.is_send || packet.len == '0 || (rest_q.rkey == window.rkey && window.write
          && base <= {1'b0, va_q} && 65'(rest_q.dma_len) <= {1'b0, window.length} && 32'(packet.len) <= rest_q.dma_len
          && {1'b0, va_q} - base <= {1'b0, window.length} - 65'(rest_q.dma_len)))
      && (packet.is_send || packet.starts || before_receive_q.message.rest == rest_q));

    // ---- bytes
    if (placement_valid && placement.places)
      a_window : assert (window.write && rest_q.rkey == window.rkey && base <= first
                         && 65'(placement.len) <= {1'b0, window.length}
                         && first - base <= {1'b0, window.length} - 65'(placement.len));
    if (placement_valid && (placement.places || placement.streams))
      a_len : assert (16'(placement.len) == packet.len && 32'(packet.len) <= mtu_bytes);
    if (placement_valid && !packet.is_send && !packet.starts && placement.places)
      a_continues : assert (before_receive_q.message.begun && !before_receive_q.message.is_send
                            && placement.va == before_receive_q.message.rest.va);
    if (placement_valid && placement.places)
      a_whole : assert (rest_q.dma_len <= 32'h8000_0000
                        && (packet.ends ? 32'(packet.len) == rest_q.dma_len : 32'(packet.len) < rest_q.dma_len));
    if (placement_valid && (placement.streams || placement.notifies)) a_room : assert (had_room_q);
    if (accepted && !packet.ends && !packet.is_send)
      a_next : assert (received.message.begun && received.message.rest.va == placement.va + 64'(packet.len)
                       && received.message.rest.dma_len == 32'(rest_q.dma_len - 32'(packet.len)));
    // ---- order
    if (placement_valid && (placement.places || placement.streams || placement.notifies))
      a_order : assert (accepts_q && before_q.expected == request.psn && !before_q.failed
                        && written.expected == psn_t'(request.psn + 1'b1)
                        && written.msn == 24'(before_q.msn + 24'(packet.ends)));
    if (decided && !accepts_q) a_unchanged : assert (received.message == before_receive_q.message
      && written.expected == before_q.expected && written.msn == before_q.msn);
    a_once : assert (placement_valid == (leaves && is_packet));
    // ---- acknowledgements
    if (accepted && (packet.ends || packet.ack_req))
      a_acknowledged : assert (received.ack.valid && received.ack.psn == request.psn && received.ack.msn == written.msn);
    if (decided && acknowledges_q) a_again : assert (received.ack.valid && !accepts_q);
    if (state_q == StCommit && is_ack_q && !is_request_q)
      a_after : assert (!row_q.nak.valid && receive_q.ack.valid && (row_q.pending & ~receive_q.ack.later) == '0
                        && reply.syndrome == SyndromeAck && reply.psn == receive_q.ack.psn && reply.len == '0);
    if (state_q == StCommit && executes_q && sends_q) a_at_once : assert (!receive_q.ack.valid);
    // ---- progress
    a_ends : assert (age_q < 4'd10);

    c_begins : cover (placement_valid && placement.places && !packet.ends);
    c_middle : cover (placement_valid && placement.places && !packet.starts && !packet.ends && packet.len == 16'd256);
    c_last : cover (placement_valid && placement.notifies && !packet.starts);
    c_sends : cover (placement_valid && placement.streams && packet.starts && packet.ends);
    c_ack : cover (reply_valid && is_ack_q && !is_request_q);
    c_rnr : cover (reply_valid && is_nak_q && reply.syndrome[7:5] == SyndromeRnr && !reply.is_fatal);
    c_again : cover (decided && acknowledges_q && !closed);
    c_refused : cover (reply_valid && is_nak_q && reply.syndrome == SyndromeNakAccess);
    c_invalid : cover (reply_valid && is_nak_q && reply.syndrome == SyndromeNakInvalid && before_receive_q.message.begun);
    c_lost : cover (decided && lost[0] && received.ack.valid && !closed);
  end
  wire unused = &{1'b0, cfg, begins, rule_accepts, rule_refuses};
endmodule

bind read_engine receive_engine_props u_props (
  .state_q         (state_q),
  .full_q          (gen_receive.full_q),
  .fits_q          (gen_receive.fits_q),
  .is_last_packet_q(gen_receive.is_last_packet_q),
  .is_more_q       (gen_receive.is_more_q),
  .va_q            (gen_receive.va_q),
  .*
);
