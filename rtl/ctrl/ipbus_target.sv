// SPDX-License-Identifier: SHL-2.1
// IPbus 2.0 over UDP, the slow control of CERN's uHAL and ControlHub, as a master of the register block.
// Promise: a control packet with id 0 is executed; one with another id is executed once, when its id is the
// next, and its reply is kept for resend requests, at least BUFFERS replies. Any other packet changes
// nothing and is counted. Either byte order; IPbus word address A is byte address 4 A (IPbus 2.0, CERN).
module ipbus_target
  import ipbus_pkg::*;
  import services_pkg::udp_peer_t;
#(
  parameter int unsigned BUFFERS      = 8,    // replies kept, and packets a client may have under way
  parameter int unsigned PACKET_WORDS = 368   // of the longest packet: an MTU of 1500 without IP and UDP
) (
  input  logic clk,
  input  logic rst,

  // UDP payloads; tuser is the other side, with every beat. The last beat of a request stays until it is answered.
  input  logic [15:0] s_axis_tdata,
  input  logic [1:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  input  udp_peer_t   s_axis_tuser,
  output logic [15:0] m_axis_tdata,
  output logic [1:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,
  output udp_peer_t   m_axis_tuser,

  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp,

  output ipbus_stat_t stat
);
  if (BUFFERS < 4 || (BUFFERS & (BUFFERS - 1)) != 0) begin : gen_bad_buffers
    $fatal(1, "%m: BUFFERS = %0d, must be a power of two; IPbus clients count on 4", BUFFERS);
  end
  if (PACKET_WORDS < 64 || PACKET_WORDS > 384 || PACKET_WORDS > 3 * 2 ** ($clog2(PACKET_WORDS) - 2)) begin : gen_bad_packet
    $fatal(1, "%m: PACKET_WORDS = %0d, must be 64 .. 96, 128 .. 192 or 256 .. 384", PACKET_WORDS);
  end

  localparam int unsigned PtrW        = $clog2(PACKET_WORDS + 1);
  localparam int unsigned IndexW      = $clog2(PACKET_WORDS);
  localparam int unsigned RingW       = $clog2(BUFFERS);
  localparam int unsigned StatusWords = 16;

  typedef enum logic [3:0] {
    StClear,     // after reset: nothing has been received
    StLoad,
    StSort,      // what it is, for StDispatch
    StDispatch,
    StHeader,    // its header goes into the history, and into the reply
    StExecute,
    StKeep,      // where the reply is found again
    StSearch,    // for the reply that is requested again
    StCompare,
    StFound,
    StStatus,
    StSent,      // the reply's header goes into the history
    StRead,
    StShow,
    StRelease
  } state_e;

  state_e     state_q, state_d;

  // How far a state is: half after half, four cycles for each. A status packet has 32 halves; all packets that are
  // answered begin with the header of their request, as it does.
  logic [PtrW:0] at_q;
  logic [3:0]    word;
  logic          high, word_done;
  assign {word, high} = at_q[6:2];
  assign word_done    = at_q[2:0] == '1;

  // Words lie in the memories of this module as numbers, the low half at the even address; on the wire a packet in
  // big-endian order has the high half first, and the high byte of it.
  function automatic logic [15:0] swap(logic [15:0] half, logic big);
    return big ? {half[7:0], half[15:8]} : half;
  endfunction

  // ---- the request, whole --------------------------------------------------------------------------------
  logic [PtrW:0]   halves_q;         // stored
  logic            broken_q;         // too long, or not whole words
  logic            big, big_q;       // byte order of the packet, from its first byte
  logic            loading, room, start;
  logic [15:0]     loaded;
  packet_hdr_t     hdr_q;
  logic [PtrW:0]   request_addr;
  logic [15:0]     request_half;

  assign big     = halves_q == '0 ? s_axis_tdata[7:4] != 4'hF : big_q;
  assign loading = state_q == StLoad && s_axis_tvalid;
  assign loaded  = swap(s_axis_tdata, big);
  assign room    = 32'(halves_q) != 2 * PACKET_WORDS;
  assign s_axis_tready = (state_q == StLoad && !s_axis_tlast) || state_q == StRelease;

  ram_sdp #(
    .W    (16),
    .DEPTH(2 ** (IndexW + 1)),
    .BLOCK(1'b1)
  ) u_request (
    .clk,
    .wr_en  (loading && room),
    .wr_addr({halves_q[IndexW:1], halves_q[0] ^ big}),
    .wr_data(loaded),
    .rd_en  (1'b1),
    .rd_addr(request_addr[IndexW:0]),
    .rd_data(request_half)
  );

  always_ff @(posedge clk) begin
    if (loading) begin
      big_q <= big;
      if (room) halves_q <= halves_q + 1'b1;
      if (!room || s_axis_tkeep != '1 || (s_axis_tlast && !halves_q[0])) broken_q <= 1'b1;
      if (halves_q[PtrW:1] == '0) begin
        if (halves_q[0] ^ big) hdr_q[31:16] <= loaded;
        else hdr_q[15:0] <= loaded;
      end
    end
    if (rst || state_q == StRelease) {broken_q, halves_q} <= '0;
  end

  // ---- what it is --------------------------------------------------------------------------------------------
  logic readable, reliable, accept;
  logic is_control_q, is_status_q, is_resend_q, reliable_q, is_next_q;
  logic [15:0]     next_id_q;
  logic [PtrW-1:0] words;

  assign words      = halves_q[PtrW:1];
  assign readable   = hdr_q.version == Version && hdr_q.order == 4'hF && hdr_q.reserved == '0 && !broken_q;
  assign reliable   = hdr_q.id != '0;
  assign start      = state_q == StHeader && word_done;

  // The header stays from StSort on, and with it all of this up to StKeep.
  always_ff @(posedge clk) begin
    reliable_q   <= reliable;
    is_control_q <= readable && hdr_q.kind == PacketControl;
    is_status_q  <= readable && hdr_q.kind == PacketStatus && !reliable && words == PtrW'(StatusWords);
    is_resend_q  <= readable && hdr_q.kind == PacketResend && reliable && words == PtrW'(1);
    is_next_q    <= !reliable || hdr_q.id == next_id_q;
  end
  assign accept = is_control_q && is_next_q;

  // ---- storage: the kept replies, and the history ---------------------------------------------------------------
  //
  //    0, slot, which             of a reply: its packet id; its length and byte order
  //    1, 0, number               an event of the traffic, the newest sixteen
  //    1, 1, sent, number, high   a header, of the newest four received and four sent
  localparam int unsigned PlaceW = RingW + 1 > 5 ? RingW + 1 : 5;

  logic [RingW:0]    kept_q, left_q;        // replies kept; of these not compared yet
  logic [RingW-1:0]  next_slot_q, slot_q;
  logic [3:0]        event_at_q;            // where the next comes: that of the oldest
  logic [1:0]        received_at_q, sent_at_q;
  logic              found, not_found, remember, is_event;
  logic [PlaceW:0]   remember_at, recall_at;
  logic [15:0]       remembered, recalled, status_half;
  logic [1:0]        number;
  logic [PtrW-1:0]   reply_words_q;
  logic [7:0]        event_code;
  logic [PtrW-1:0]   trans_words;

  assign found     = state_q == StCompare && recalled == hdr_q.id;
  assign not_found = state_q == StSearch && left_q == '0;
  assign is_event  = (state_q == StDispatch && !is_resend_q) || not_found || state_q == StFound;

  always_comb begin
    event_code = EventOther;
    if (accept) event_code = EventControl;
    else if (is_status_q) event_code = EventStatus;
    else if (is_resend_q) event_code = not_found ? EventResend | EventDropped : EventResend;
  end

  always_comb begin
    remember    = is_event;
    remember_at = {1'b1, PlaceW'({1'b0, event_at_q})};
    remembered  = {8'h0, event_code};
    case (state_q)
      StClear: begin
        remember    = 1'b1;
        remember_at = {1'b1, PlaceW'(at_q[4:0])};
        remembered  = '0;
      end
      StHeader, StSent: begin  // both as headers of control packets
        remember    = 1'b1;
        remember_at = {1'b1, PlaceW'({1'b1, state_q == StSent, state_q == StSent ? sent_at_q : received_at_q, high})};
        remembered  = high ? status_half : {status_half[15:4], PacketControl};
      end
      StKeep: begin
        remember    = reliable_q;
        remember_at = {1'b0, PlaceW'({slot_q, high})};
        remembered  = high ? {big_q, 15'(reply_words_q)} : hdr_q.id;
      end
      default: ;
    endcase
  end

  assign number = word[1:0] + (word[2] ? sent_at_q : received_at_q);

  always_comb begin
    recall_at = {1'b0, PlaceW'({slot_q, state_q == StCompare})};
    if (state_q == StStatus && word[3]) recall_at = {1'b1, PlaceW'({1'b1, word[2], number, high})};
    else if (state_q == StStatus) recall_at = {1'b1, PlaceW'({1'b0, event_at_q + {word[1:0], !high, at_q[0]}})};
  end

  ram_sdp #(
    .W    (16),
    .DEPTH(2 ** (PlaceW + 1)),
    .BLOCK(1'b1)
  ) u_memory (
    .clk,
    .wr_en  (remember),
    .wr_addr(remember_at),
    .wr_data(remembered),
    .rd_en  (1'b1),
    .rd_addr(recall_at),
    .rd_data(recalled)
  );

  logic [7:0]  earlier_q;   // the other event of a half

  always_comb begin
    unique casez (word)
      4'd0: status_half = high ? hdr_q[31:16] : hdr_q[15:0];
      4'd1: status_half = high ? '0 : 16'(4 * PACKET_WORDS);
      4'd2: status_half = high ? '0 : 16'(BUFFERS);
      4'd3: status_half = high ? {Version, 4'h0, next_id_q[15:8]} : {next_id_q[7:0], 4'hF, PacketControl};
      4'b01??: status_half = {earlier_q, recalled[7:0]};
      default: status_half = recalled;
    endcase
  end

  // ---- transactions ------------------------------------------------------------------------------------------------
  logic          executed, trans_write;
  logic [PtrW:0] trans_addr;
  logic [15:0]   trans_half;

  ipbus_transactor #(.PACKET_WORDS(PACKET_WORDS)) u_transactor (
    .clk, .rst,
    .start        (start),
    .request_words(words),
    .request_addr (request_addr),
    .request_half (request_half),
    .reply_write  (trans_write),
    .reply_addr   (trans_addr),
    .reply_half   (trans_half),
    .done         (executed),
    .reply_words  (trans_words),
    .stat_bus_error (stat.bus_errors),
    .stat_bad_header(stat.bad_headers),
    .m_axil_req,
    .m_axil_rsp
  );

  // ---- the packet's way ---------------------------------------------------------------------------------------------
  logic reply_big_q, scratch_q, last, begins, counts;

  always_comb begin
    state_d = state_q;
    case (state_q)
      StClear:  if (at_q[4:0] == '1) state_d = StLoad;
      StLoad:   if (loading && s_axis_tlast) state_d = StSort;
      StSort:   state_d = StDispatch;
      StDispatch:
        if (accept) state_d = StHeader;
        else if (is_status_q) state_d = StStatus;
        else state_d = is_resend_q ? StSearch : StRelease;
      StHeader:  if (word_done) state_d = StExecute;
      StExecute: if (executed) state_d = StKeep;
      StKeep:    if (word_done) state_d = StSent;
      StSearch:  state_d = not_found ? StRelease : StCompare;
      StCompare: state_d = found ? StFound : StSearch;
      StFound:   state_d = StSent;
      StStatus:  if (at_q[6:0] == '1) state_d = StRead;
      StSent:    if (word_done) state_d = StRead;
      StRead:    state_d = StShow;
      StShow:    if (m_axis_tready) state_d = last ? StRelease : StRead;
      default: state_d = StLoad;
    endcase
  end

  // For a reply, at_q counts words sent, else the cycles of a state.
  assign counts = state_q == StShow ? m_axis_tready : state_q != StRead;
  assign begins = state_d != state_q && state_q != StRead && state_q != StShow;

  always_ff @(posedge clk) begin
    state_q   <= state_d;
    earlier_q <= recalled[7:0];
    if (begins) at_q <= '0;
    else if (counts) at_q <= at_q + 1'b1;

    case (state_q)
      StDispatch: begin
        slot_q        <= is_resend_q ? next_slot_q - 1'b1 : next_slot_q;
        scratch_q     <= !reliable_q;
        left_q        <= kept_q;
        reply_big_q   <= big_q;
        reply_words_q <= PtrW'(StatusWords);
      end
      StExecute: reply_words_q <= trans_words;
      StCompare: begin
        left_q <= left_q - 1'b1;
        if (!found) slot_q <= slot_q - 1'b1;
      end
      StFound: {reply_big_q, reply_words_q} <= {recalled[15], recalled[PtrW-1:0]};
      default: ;
    endcase

    if (is_event) event_at_q <= event_at_q + 1'b1;
    if (start) received_at_q <= received_at_q + 1'b1;
    if (state_q == StSent && word_done) sent_at_q <= sent_at_q + 1'b1;
    if (state_q == StKeep && word_done && reliable_q) begin
      if (32'(kept_q) != BUFFERS) kept_q <= kept_q + 1'b1;
      next_slot_q <= next_slot_q + 1'b1;
      next_id_q   <= next_id_q == '1 ? 16'd1 : next_id_q + 16'd1;
    end
    stat.packets      <= executed;
    stat.malformed    <= state_q == StDispatch && !is_control_q && !is_status_q && !is_resend_q;
    stat.out_of_order <= state_q == StDispatch && is_control_q && !accept;
    stat.resent       <= state_q == StFound;
    if (rst) begin
      state_q <= StClear;
      at_q    <= '0;
      {kept_q, next_slot_q, event_at_q, received_at_q, sent_at_q} <= '0;
      next_id_q <= 16'd1;
      {stat.packets, stat.malformed, stat.out_of_order, stat.resent} <= '0;
    end
  end

  // ---- replies: every slot one, with its header --------------------------------------------------------------------
  // A packet fills three quarters of its slot at most. What is left of the first three has room for one more reply,
  // one that is not kept.
  logic            reply_write;
  logic [IndexW:0] reply_at;
  logic [15:0]     reply_half, sent_half;

  function automatic logic [RingW+IndexW:0] place(logic scratch, logic [RingW-1:0] slot, logic [IndexW:0] at);
    return scratch ? {RingW'(at[IndexW-:2]), 2'b11, at[IndexW-2:0]} : {slot, at};
  endfunction

  always_comb begin
    reply_write = trans_write;
    reply_at    = trans_addr[IndexW:0];
    reply_half  = trans_half;
    if (state_q == StHeader || state_q == StStatus) begin
      reply_write = at_q[1:0] == 2'd2;
      reply_at    = (IndexW + 1)'({word, high});
      reply_half  = status_half;
    end
  end

  ram_sdp #(
    .W    (16),
    .DEPTH(BUFFERS * 2 ** (IndexW + 1))
  ) u_replies (
    .clk,
    .wr_en  (reply_write),
    .wr_addr(place(scratch_q, slot_q, reply_at)),
    .wr_data(reply_half),
    .rd_en  (state_q == StRead),
    .rd_addr(place(scratch_q, slot_q, {at_q[IndexW:1], at_q[0] ^ reply_big_q})),
    .rd_data(sent_half)
  );

  assign last          = at_q[0] && at_q[PtrW:1] + 1'b1 == reply_words_q;
  assign m_axis_tdata  = swap(sent_half, reply_big_q);
  assign m_axis_tkeep  = '1;
  assign m_axis_tvalid = state_q == StShow;
  assign m_axis_tlast  = last;
  assign m_axis_tuser  = s_axis_tuser;
endmodule
