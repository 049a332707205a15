// SPDX-License-Identifier: SHL-2.1
// Makes a message of a board's announcement: entries in, one at a time, then descriptor and payload for the transport
// (docs/fragments.md).
// Promise: the message has the entries in their order and the length of its descriptor, which comes first; nothing is
// taken for the next one before it has left. If its queue pair closes before the descriptor is taken, the message is
// marked as one without a server (by_event): it is flushed, also if the queue pair is open again.
module announcement_builder
  import penstock_pkg::*;
  import pull_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Lanes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,

  output logic              idle,
  input  logic              entry_valid,  // while idle
  input  entry_t            entry,
  input  logic              ends,         // a cycle after the last entry or later
  input  message_t          message,      // with it; stays
  input  logic              is_open,      // its queue pair

  output logic [175:0]      m_axis_desc_tdata,
  output logic              m_axis_desc_tvalid,
  input  logic              m_axis_desc_tready,
  output logic [DATA_W-1:0] m_axis_data_tdata,
  output logic [Lanes-1:0]  m_axis_data_tkeep,
  output logic              m_axis_data_tvalid,
  input  logic              m_axis_data_tready,
  output logic              m_axis_data_tlast
);
  localparam int unsigned HeaderWords = HeaderBytes / 8;
  localparam int unsigned Words = (MostEntries * EntryBytes + 7) / 8;
  localparam int unsigned Depth = 2 ** $clog2(Words);
  localparam int unsigned CountW = $clog2(Words + HeaderWords + 1);
  localparam logic [31:0] Magic = "ATSP";  // PSTA in the order of the wire
  localparam logic [15:0] Version = 16'd2;

  typedef enum logic [1:0] {
    StEntries,
    StRest,    // the bytes that do not fill a word
    StDesc,
    StData
  } state_e;

  state_e state_q, state_d;

  // ---- entries: five bytes each, words of eight -----------------------------------------------------------
  logic [95:0] bytes_q, joined;
  logic [2:0]  filled_q;   // of them
  logic [3:0]  filled;
  logic [7:0]  count_q;    // entries
  logic        push, has_rest, there, unused_room, pop;
  logic [63:0] word;
  assign filled   = 4'(filled_q) + 4'(EntryBytes);
  assign joined   = bytes_q | (96'({entry.length, entry.skipped}) << {filled_q, 3'd0});
  assign has_rest = filled_q != '0;
  assign push     = state_q == StRest ? has_rest : entry_valid && filled[3];
  always_ff @(posedge clk) begin
    if (entry_valid) begin
      bytes_q  <= filled[3] ? joined >> 64 : joined;
      filled_q <= filled[2:0];
      count_q  <= count_q + 1'b1;
    end
    if (rst || (state_q == StData && state_d == StEntries)) begin
      bytes_q  <= '0;
      filled_q <= '0;
      count_q  <= '0;
    end
  end

  logic [$clog2(Depth):0] level;
  sync_fifo #(.W(64), .DEPTH(Depth)) u_words (
    .clk, .rst,
    .s_data (state_q == StRest ? bytes_q[63:0] : joined[63:0]),
    .s_valid(push),
    .s_ready(unused_room),
    .m_data (word),
    .m_valid(there),
    .m_ready(pop),
    .level
  );

  // ---- the message ------------------------------------------------------------------------------------------
  logic [31:0] length;
  logic stale_q;
  always_ff @(posedge clk) stale_q <= state_q != StEntries && (stale_q || !is_open) && !rst;
  assign length = 32'(HeaderBytes) + 32'({count_q, 2'd0}) + 32'(count_q);  // EntryBytes each
  assign m_axis_desc_tdata = desc_t'{
    tag: message.tag, imm: 32'(message.slot), raddr: message.raddr, length: length, reserved: '0, series: 1'b0,
    by_event: stale_q, in_ring: 1'b0, with_imm: 1'b1, verb: OpWrite, qp: message.qp
  };
  assign m_axis_desc_tvalid = state_q == StDesc;
  assign idle               = state_q == StEntries;

  logic [CountW-1:0] at_q;
  logic in_header, sends, send_ready, is_last, packed_last, packed_valid;
  logic [63:0] header;
  assign in_header = at_q < CountW'(HeaderWords);
  assign sends     = state_q == StData && (in_header || there);
  assign is_last   = !in_header && level == 1;
  assign pop       = state_q == StData && !in_header && send_ready;
  always_comb begin
    unique case (at_q[1:0])
      2'd0:    header = {message.carried, count_q, Version, Magic};
      2'd1:    header = message.first.event_number;
      2'd2:    header = message.first.addr;
      default: header = {message.stride, message.rkey};
    endcase
  end
  // ---- words to beats ----------------------------------------------------------------------------------------
  localparam int unsigned PackW = $clog2(DATA_W / 64 + 1);
  logic [PackW-1:0] unused_count;
  word_packer #(.DATA_W(DATA_W)) u_packer (
    .clk, .rst,
    .s_data (DATA_W'(in_header ? header : word)),
    .s_count(PackW'(1)),
    .s_last (is_last),
    .s_valid(sends),
    .s_ready(send_ready),
    .m_data (m_axis_data_tdata),
    .m_count(unused_count),
    .m_last (packed_last),
    .m_valid(packed_valid),
    .m_ready(m_axis_data_tready)
  );
  logic [$clog2(Lanes)-1:0] last_lane;
  assign last_lane          = $bits(last_lane)'(length - 1'b1);
  assign m_axis_data_tvalid = packed_valid;
  assign m_axis_data_tlast  = packed_last;
  assign m_axis_data_tkeep  = packed_last ? {Lanes{1'b1}} >> (~last_lane) : '1;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StEntries: if (ends) state_d = StRest;
      StRest:    state_d = StDesc;
      StDesc:    if (m_axis_desc_tready) state_d = StData;
      default:   if (packed_valid && packed_last && m_axis_data_tready) state_d = StEntries;
    endcase
  end
  always_ff @(posedge clk) begin
    state_q <= rst ? StEntries : state_d;
    if (state_q != StData) at_q <= '0;
    else if (in_header && send_ready) at_q <= at_q + 1'b1;
  end

  wire unused = &{1'b0, unused_count, unused_room};
endmodule
