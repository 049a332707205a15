// SPDX-License-Identifier: SHL-2.1
// Counts of each stream, in RAM, read by word: what its events did (tcp_counts_t, in the order of its bits from the
// lowest on), messages completed well and not, bytes acknowledged. All modulo 2^32, bytes modulo 2^64.
// Promise: every event is counted, one word per cycle, within 40 cycles of a burst of events. After
// reset or `clear` all counts are 0 within 32 cycles for each stream; events during that time may not be counted.
// The names are those of regs/tcp.rdl, from stream.segments on.
module tcp_counters
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input  logic clk,
  input  logic rst,
  input  logic clear,

  input  tcp_done_t   done,
  input  logic        done_valid,
  input  tcp_stream_t cpl_stream,
  input  logic        cpl_ok,
  input  logic        cpl_valid,  // a message has completed, every third cycle at most

  // a word, two cycles later
  input  tcp_stream_t rd_stream,
  input  logic [4:0]  rd_word,
  output logic [31:0] rd_count
);
  localparam int unsigned Kinds   = 16;  // of tcp_counts_t, and two of messages
  localparam int unsigned MessageOk = 14, MessageErr = 15;
  localparam logic [4:0] BytesLo = 5'd16, BytesHi = 5'd17;
  localparam int unsigned AddrW = StreamW + 5;

  typedef logic [StreamW-1:0] index_t;
  typedef struct packed {
    index_t           stream;
    logic [Kinds-1:0] kinds;
    logic [30:0]      bytes;
  } item_t;

  // ---- what has happened, one after the other -----------------------------------------------------------------------
  // A completion is one of two kinds, and nothing else.
  typedef struct packed {
    index_t stream;
    logic   ok;
  } completion_t;
  item_t of_done, done_head;
  completion_t cpl_head;
  index_t stream_q;
  logic [30:0] count_q;  // of bytes
  logic done_waits, cpl_waits, done_room, cpl_room, takes_done, takes_cpl, unused;
  assign unused  = &{1'b0, done, cpl_stream, rd_stream};
  assign of_done = '{stream: index_t'(done.stream), kinds: Kinds'(done.actions.counts), bytes: done.actions.acknowledged};
  block_fifo #(.W($bits(item_t)), .DEPTH(32)) u_done (
    .clk, .rst(rst || clear),
    .s_data (of_done),
    .s_valid(done_valid && (done.actions.counts != '0 || done.actions.acknowledged != '0)),
    .s_ready(done_room),
    .m_data (done_head),
    .m_valid(done_waits),
    .m_ready(takes_done),
    .level  ()
  );
  sync_fifo #(.W($bits(completion_t)), .DEPTH(32)) u_cpl (
    .clk, .rst(rst || clear),
    .s_data ({index_t'(cpl_stream), cpl_ok}),
    .s_valid(cpl_valid),
    .s_ready(cpl_room),
    .m_data (cpl_head),
    .m_valid(cpl_waits),
    .m_ready(takes_cpl),
    .level  ()
  );

  // ---- 0: which word next; the low half of the bytes, then the carry into the high one ------------------------------
  logic [Kinds-1:0] kinds_q, cpl_kinds;
  logic bytes_q, carry_q, busy, idle, starts, by_cpl_q;
  logic [4:0] word0;
  logic [31:0] add0;
  logic [AddrW-1:0] addr0, addr1_q;
  logic [31:0] add1_q, old, sum;
  logic valid0, valid1_q, stalls, init_q, overflows;
  logic [AddrW-1:0] init_at_q;

  assign busy       = kinds_q != '0 || bytes_q || carry_q || (valid1_q && addr1_q[4:0] == BytesLo);
  assign idle       = !busy && !init_q;
  assign takes_done = idle && done_waits && (!cpl_waits || by_cpl_q);
  assign takes_cpl  = idle && cpl_waits && !takes_done;
  assign starts     = takes_done || takes_cpl;
  always_comb begin
    cpl_kinds = '0;
    cpl_kinds[MessageOk]  = cpl_head.ok;
    cpl_kinds[MessageErr] = !cpl_head.ok;

    word0 = '0;
    add0  = 32'd1;
    for (int i = Kinds - 1; i >= 0; i--) if (kinds_q[i]) word0 = 5'(i);
    if (kinds_q == '0) begin
      word0 = bytes_q ? BytesLo : BytesHi;
      if (bytes_q) add0 = 32'(count_q);
    end
  end
  assign addr0  = {stream_q, word0};
  assign stalls = valid1_q && (addr1_q == addr0 || (kinds_q == '0 && !bytes_q));  // the sum is not there yet
  assign valid0 = busy && !stalls;

  always_ff @(posedge clk) begin
    if (starts) begin
      stream_q <= takes_done ? done_head.stream : cpl_head.stream;
      count_q  <= done_head.bytes;
      kinds_q  <= takes_done ? done_head.kinds : cpl_kinds;
      bytes_q  <= takes_done && done_head.bytes != '0;
      by_cpl_q <= takes_cpl;
    end
    if (valid0) begin
      if (kinds_q != '0) kinds_q <= kinds_q & (kinds_q - 1'b1);
      else if (bytes_q) bytes_q <= 1'b0;
    end
    if (valid1_q) carry_q <= overflows;
    else if (valid0 && kinds_q == '0 && !bytes_q) carry_q <= 1'b0;
    if (rst || clear) begin
      kinds_q  <= '0;
      bytes_q  <= 1'b0;
      carry_q  <= 1'b0;
      by_cpl_q <= 1'b0;
    end
  end

  // ---- 1: the count, and the one after it ---------------------------------------------------------------------------
  logic carry;
  assign {carry, sum} = 33'(old) + 33'(add1_q);
  assign overflows    = carry && valid1_q && addr1_q[4:0] == BytesLo;
  logic wr_en;
  logic [AddrW-1:0] wr_addr;
  logic [31:0] wr_data;
  assign wr_en   = init_q || valid1_q;
  assign wr_addr = init_q ? init_at_q : addr1_q;
  assign wr_data = init_q ? '0 : sum;
  ram_sdp #(.W(32), .DEPTH(2**AddrW), .BLOCK(1'b1)) u_counts (
    .clk, .wr_en, .wr_addr, .wr_data, .rd_en(valid0), .rd_addr(addr0), .rd_data(old)
  );
  ram_sdp #(.W(32), .DEPTH(2**AddrW), .BLOCK(1'b1)) u_shown (
    .clk, .wr_en, .wr_addr, .wr_data, .rd_en(1'b1), .rd_addr({index_t'(rd_stream), rd_word}), .rd_data(rd_count)
  );

  always_ff @(posedge clk) begin
    valid1_q <= valid0;
    addr1_q  <= addr0;
    add1_q   <= add0;
    if (init_q) init_at_q <= init_at_q + 1'b1;
    if (init_at_q == '1) init_q <= 1'b0;
    if (rst || clear) begin
      valid1_q  <= 1'b0;
      init_q    <= 1'b1;
      init_at_q <= '0;
    end
  end

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst || clear || init_q)
    (done_valid && (done.actions.counts != '0 || done.actions.acknowledged != '0) |-> done_room)
    and (cpl_valid |-> cpl_room))
    else $error("%m: something is not counted");
`else
  wire unused_room = &{1'b0, done_room, cpl_room};
`endif
endmodule
