// SPDX-License-Identifier: SHL-2.1
// IPbus 2.0 over UDP, the slow control of CERN's uHAL and ControlHub, as a master of the register block.
// Promise: a control packet with id 0 is carried out; one with an id is carried out once, when its id is the
// next, and its reply is kept for resend requests, BUFFERS replies at least. Whatever else comes changes
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

  // UDP payloads; tuser is the other side, with every beat
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  input  udp_peer_t   s_axis_tuser,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,
  output udp_peer_t   m_axis_tuser,

  output logic [17:0] m_axil_awaddr,
  output logic [2:0]  m_axil_awprot,
  output logic        m_axil_awvalid,
  input  logic        m_axil_awready,
  output logic [31:0] m_axil_wdata,
  output logic [3:0]  m_axil_wstrb,
  output logic        m_axil_wvalid,
  input  logic        m_axil_wready,
  input  logic [1:0]  m_axil_bresp,
  input  logic        m_axil_bvalid,
  output logic        m_axil_bready,
  output logic [17:0] m_axil_araddr,
  output logic [2:0]  m_axil_arprot,
  output logic        m_axil_arvalid,
  input  logic        m_axil_arready,
  input  logic [31:0] m_axil_rdata,
  input  logic [1:0]  m_axil_rresp,
  input  logic        m_axil_rvalid,
  output logic        m_axil_rready,

  output ipbus_stat_t stat
);
  if (BUFFERS < 4 || (BUFFERS & (BUFFERS - 1)) != 0) begin : g_bad_buffers
    $fatal(1, "%m: BUFFERS = %0d, must be a power of two; IPbus clients count on 4", BUFFERS);
  end
  if (PACKET_WORDS < 64 || PACKET_WORDS > 512) begin : g_bad_packet
    $fatal(1, "%m: PACKET_WORDS = %0d, must be 64 .. 512", PACKET_WORDS);
  end

  localparam int unsigned PtrW        = $clog2(PACKET_WORDS + 1);
  localparam int unsigned IndexW      = $clog2(PACKET_WORDS);
  localparam int unsigned SlotW       = $clog2(BUFFERS + 1);
  localparam int unsigned StatusWords = 16;
  localparam logic [SlotW-1:0] Scratch = SlotW'(BUFFERS);  // slot of replies that are not kept

  typedef enum logic [2:0] {
    StClear,     // after reset: nothing has been heard
    StLoad,
    StFetch,
    StJudge,
    StExecute,
    StStatus,
    StSend,
    StSendWord
  } state_e;

  state_e state_q;

  function automatic logic [31:0] swap(logic [31:0] word, logic big);
    return big ? {word[7:0], word[15:8], word[23:16], word[31:24]} : word;
  endfunction

  // ---- the request, whole --------------------------------------------------------------------------------
  logic            half_q;           // of the beat
  logic [PtrW-1:0] words_q;          // stored
  logic            broken_q;         // too long, or not whole words
  logic            next_is_load;     // the packet is done with
  logic            word_here, loading, start;
  logic [PtrW-1:0] request_addr;
  logic [31:0]     raw;
  logic            big_q;            // byte order of the packet

  assign loading       = state_q == StLoad && s_axis_tvalid;
  assign word_here     = half_q ? s_axis_tkeep[7] : s_axis_tkeep[3];
  assign s_axis_tready = state_q == StLoad && (half_q || s_axis_tkeep[7:4] == '0);

  ram_sdp #(
    .W    (32),
    .DEPTH(PACKET_WORDS)
  ) u_request (
    .clk,
    .wr_en  (loading && word_here && 32'(words_q) < PACKET_WORDS),
    .wr_addr(words_q[IndexW-1:0]),
    .wr_data(half_q ? s_axis_tdata[63:32] : s_axis_tdata[31:0]),
    .rd_en  (state_q == StFetch || ((start || state_q == StExecute) && 32'(request_addr) < PACKET_WORDS)),
    .rd_addr(state_q == StFetch ? '0 : request_addr[IndexW-1:0]),
    .rd_data(raw)
  );

  always_ff @(posedge clk) begin
    if (loading) begin
      half_q <= !s_axis_tready;
      if (word_here) begin
        if (32'(words_q) < PACKET_WORDS) words_q <= words_q + 1'b1;
        else broken_q <= 1'b1;
      end
      if (s_axis_tready && s_axis_tkeep != 8'h0F && s_axis_tkeep != 8'hFF) broken_q <= 1'b1;
      m_axis_tuser <= s_axis_tuser;
    end
    if (rst || next_is_load) {half_q, broken_q, words_q} <= '0;
  end

  // ---- what it is --------------------------------------------------------------------------------------------
  packet_hdr_t hdr, big_hdr, little_hdr;
  packet_hdr_t hdr_q;   // of the packet that is being answered
  logic        big, readable, is_control, is_status, is_resend, reliable, accept, found;
  logic [15:0] next_id_q;

  assign little_hdr = raw;
  assign big_hdr    = swap(raw, 1'b1);
  assign big        = big_hdr.version == Version && big_hdr.order == 4'hF;
  assign hdr        = big ? big_hdr : little_hdr;
  assign readable   = hdr.version == Version && hdr.order == 4'hF && hdr.reserved == '0 && !broken_q
                   && words_q != '0;
  assign is_control = readable && hdr.kind == PacketControl;
  assign is_status  = readable && hdr.kind == PacketStatus && hdr.id == '0 && words_q == PtrW'(StatusWords);
  assign is_resend  = readable && hdr.kind == PacketResend && hdr.id != '0 && words_q == PtrW'(1);
  assign reliable   = hdr.id != '0;
  assign accept     = is_control && (!reliable || hdr.id == next_id_q);
  assign start      = state_q == StJudge && accept;

  // ---- replies kept: those of the last ids, whose slots follow each other -----------------------------------------
  localparam int unsigned RingW = $clog2(BUFFERS);

  logic [PtrW-1:0]  kept_words[BUFFERS];
  logic [SlotW-1:0] kept_q;                // so many, below next_id_q and next_slot_q
  logic [RingW-1:0] next_slot_q, found_slot;
  logic [SlotW-1:0] slot_q;
  logic [PtrW-1:0]  found_words;
  logic [15:0]      back;                  // ids that the packet's lies behind the next; there is no id 0

  assign back        = next_id_q - hdr.id - 16'(hdr.id > next_id_q);
  assign found       = reliable && back != '0 && back <= 16'(kept_q);
  assign found_slot  = next_slot_q - back[RingW-1:0];
  assign found_words = kept_words[found_slot];

  // ---- history -----------------------------------------------------------------------------------------------------
  logic [127:0] events_q;                   // newest lowest
  logic [31:0]  headers[8];                 // of packets: four heard, four sent
  logic [1:0]   heard_at_q, sent_at_q;      // where the next comes: that of the oldest
  logic         hears, sends;
  logic [31:0]  status_word;
  packet_hdr_t  next_hdr;
  logic [3:0]   index_q;

  assign hears    = start;
  assign sends    = state_q == StSend && hdr_q.kind != PacketStatus;
  assign next_hdr = '{version: Version, reserved: '0, id: next_id_q, order: 4'hF, kind: PacketControl};

  always_comb begin
    unique casez (index_q)
      4'b0000: status_word = hdr_q;
      4'b0001: status_word = 32'(4 * PACKET_WORDS);
      4'b0010: status_word = 32'(BUFFERS);
      4'b0011: status_word = next_hdr;
      4'b01??: status_word = events_q[{~index_q[1:0], 5'd0}+:32];
      default: status_word = headers[{index_q[2], (index_q[2] ? sent_at_q : heard_at_q) + index_q[1:0]}];
    endcase
  end

  always_ff @(posedge clk) begin
    if (state_q == StClear) headers[index_q[2:0]] <= '0;
    else if (sends) headers[{1'b1, sent_at_q}] <= {hdr_q[31:4], PacketControl};
    else if (hears) headers[{1'b0, heard_at_q}] <= hdr;
    if (hears) heard_at_q <= heard_at_q + 1'b1;
    if (sends) sent_at_q <= sent_at_q + 1'b1;
    if (rst) {heard_at_q, sent_at_q} <= '0;
  end

  // ---- transactions ------------------------------------------------------------------------------------------------
  logic            executed, trans_write;
  logic [PtrW-1:0] trans_addr, trans_words;
  logic [31:0]     trans_word;

  ipbus_transactor #(.PACKET_WORDS(PACKET_WORDS)) u_transactor (
    .clk, .rst,
    .start        (start),
    .request_words(words_q),
    .request_addr (request_addr),
    .request_word (swap(raw, big_q)),
    .reply_write  (trans_write),
    .reply_addr   (trans_addr),
    .reply_word   (trans_word),
    .done         (executed),
    .reply_words  (trans_words),
    .stat_bus_error (stat.bus_errors),
    .stat_bad_header(stat.bad_headers),
    .m_axil_awaddr, .m_axil_awvalid, .m_axil_awready,
    .m_axil_wdata, .m_axil_wvalid, .m_axil_wready,
    .m_axil_bresp, .m_axil_bvalid, .m_axil_bready,
    .m_axil_araddr, .m_axil_arvalid, .m_axil_arready,
    .m_axil_rdata, .m_axil_rresp, .m_axil_rvalid, .m_axil_rready
  );

  assign m_axil_awprot = '0;
  assign m_axil_arprot = '0;
  assign m_axil_wstrb  = '1;

  // ---- the packet's way ---------------------------------------------------------------------------------------------
  logic [PtrW-1:0] reply_words_q, send_q;   // of the reply; the word that is read
  logic            sent_all;

  assign sent_all     = state_q == StSendWord && m_axis_tvalid && m_axis_tready && m_axis_tlast;
  assign next_is_load = sent_all || (state_q == StJudge && !accept && !is_status && !(is_resend && found));

  always_ff @(posedge clk) begin
    case (state_q)
      StClear: begin
        index_q <= index_q + 1'b1;
        if (index_q == '1) state_q <= StLoad;
      end
      StLoad: if (loading && s_axis_tready && s_axis_tlast) state_q <= StFetch;
      StFetch: state_q <= StJudge;
      StJudge: begin
        hdr_q   <= hdr;
        big_q   <= big;
        index_q <= '0;
        slot_q  <= accept && reliable ? SlotW'(next_slot_q) : is_resend ? SlotW'(found_slot) : Scratch;
        reply_words_q <= is_status ? PtrW'(StatusWords) : found_words;
        if (accept) state_q <= StExecute;
        else if (is_status) state_q <= StStatus;
        else if (is_resend && found) state_q <= StSend;
        else state_q <= StLoad;
      end
      StExecute:
        if (executed) begin
          reply_words_q <= trans_words;
          state_q       <= StSend;
        end
      StStatus: begin
        index_q <= index_q + 1'b1;
        if (index_q == '1) state_q <= StSend;
      end
      StSend: state_q <= StSendWord;
      default: if (next_is_load) state_q <= StLoad;
    endcase
    if (rst) begin
      state_q <= StClear;
      index_q <= '0;
    end
  end

  always_ff @(posedge clk) begin
    if (state_q == StJudge)
      events_q <= {events_q[119:0], accept ? EventControl : is_status ? EventStatus
                   : is_resend ? (found ? EventResend : EventResend | EventDropped) : EventOther};
    if (executed && hdr_q.id != '0) begin
      kept_words[next_slot_q] <= trans_words;
      if (32'(kept_q) != BUFFERS) kept_q <= kept_q + 1'b1;
      next_slot_q <= next_slot_q + 1'b1;
      next_id_q   <= next_id_q == '1 ? 16'd1 : next_id_q + 16'd1;
    end
    stat.packets      <= executed;
    stat.malformed    <= state_q == StJudge && !is_control && !is_status && !is_resend;
    stat.out_of_order <= state_q == StJudge && is_control && !accept;
    stat.resent       <= state_q == StJudge && is_resend && found;
    if (rst) begin
      {kept_q, next_slot_q, events_q} <= '0;
      next_id_q <= 16'd1;
      {stat.packets, stat.malformed, stat.out_of_order, stat.resent} <= '0;
    end
  end

  // ---- the reply's words, as they lie on the wire ---------------------------------------------------------------------
  logic              reply_write, read;
  logic [SlotW-1:0]  write_slot;
  logic [PtrW-1:0]   write_index;
  logic [31:0]       write_word, sent_word;

  always_comb begin
    reply_write = trans_write;
    write_slot  = slot_q;
    write_index = trans_addr;
    write_word  = swap(trans_word, big_q);
    if (start) begin  // the reply begins with the request's header
      reply_write = 1'b1;
      write_slot  = reliable ? SlotW'(next_slot_q) : Scratch;
      write_index = '0;
      write_word  = raw;
    end else if (state_q == StStatus) begin
      reply_write = 1'b1;
      write_index = PtrW'(index_q);
      write_word  = swap(status_word, big_q);
    end
  end

  ram_sdp #(
    .W    (32),
    .DEPTH((BUFFERS + 1) * 2 ** IndexW)
  ) u_replies (
    .clk,
    .wr_en  (reply_write),
    .wr_addr({write_slot, write_index[IndexW-1:0]}),
    .wr_data(write_word),
    .rd_en  (read),
    .rd_addr({slot_q, send_q[IndexW-1:0]}),
    .rd_data(sent_word)
  );

  // A word is read in one cycle and placed into the beat in the next.
  logic            placed_q;         // the word that was read is in the beat
  logic            high_q, last_q;   // its half; it is the packet's last

  assign read = state_q == StSend || (state_q == StSendWord && placed_q && !m_axis_tvalid && send_q != reply_words_q);

  always_ff @(posedge clk) begin
    if (state_q == StJudge || state_q == StExecute || state_q == StStatus) send_q <= '0;
    else if (read) send_q <= send_q + 1'b1;
    if (read) begin
      placed_q <= 1'b0;
      high_q   <= send_q[0];
      last_q   <= send_q + 1'b1 == reply_words_q;
    end else if (state_q == StSendWord && !placed_q) begin
      placed_q <= 1'b1;
      if (high_q) m_axis_tdata[63:32] <= sent_word;
      else m_axis_tdata <= {32'h0, sent_word};
      m_axis_tkeep  <= high_q ? 8'hFF : 8'h0F;
      m_axis_tvalid <= high_q || last_q;
      m_axis_tlast  <= last_q;
    end
    if (m_axis_tvalid && m_axis_tready) m_axis_tvalid <= 1'b0;
    if (rst) begin
      placed_q      <= 1'b1;
      m_axis_tvalid <= 1'b0;
    end
  end
endmodule
