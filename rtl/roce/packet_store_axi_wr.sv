// SPDX-License-Identifier: SHL-2.1
// Write half of packet_store_axi: collects a packet's words into bursts and writes them, up to 16 at once.
// A burst is requested when all its words are available, so the memory never waits; words do not wait until their
// address is taken, as a memory may wait for them first (AMBA AXI4, A3.3.1). `written` comes in order, one for each
// `wr_end`, after the memory has answered every burst of that slot (A3.3).
module packet_store_axi_wr
  import axi_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned ADDR_W = 64,
  parameter  int unsigned BYTES  = 8192,  // of words that wait
  localparam int unsigned Lanes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic              wr_en,
  input  logic              wr_end,      // the slot is complete: with its last word, or without any
  input  logic [ADDR_W-1:0] wr_addr,     // of the slot
  input  logic [DATA_W-1:0] wr_data,
  output logic              wr_ready,    // for a word or an end
  output logic              written,
  output logic              written_bad, // the memory answered with an error
  output axi_wr_req_t       m_axi_req,
  output logic [DATA_W-1:0] m_axi_wdata,
  input  axi_wr_rsp_t       m_axi_rsp
);
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Words = BYTES / Lanes;
  localparam int unsigned PtrW = $clog2(Words);
  // A burst has at most 256 beats and stays within 4 KiB, as slots are aligned to their size.
  localparam int unsigned BurstWords = 4096 / Lanes > 256 ? 256 : 4096 / Lanes;
  localparam int unsigned BurstW = $clog2(BurstWords);
  localparam int unsigned Outstanding = 16;

  if (BYTES < 8192 || Words != 2 ** PtrW) begin : gen_bad_bytes
    $fatal(1, "%m: BYTES %0d is not a power of two of at least two packets of 4096", BYTES);
  end

  typedef struct packed {
    logic              has_data;
    logic              last;   // of its slot
    logic [ADDR_W-1:0] addr;
    logic [7:0]        len;    // beats - 1
  } burst_t;

  typedef struct packed {
    logic has_data;
    logic last;
  } answer_t;

  // ---- words in ------------------------------------------------------------------------------------
  logic [PtrW:0] head_q, tail_q, level;
  logic [12-LaneW:0] beat_q;  // of the slot
  logic chunk_end, push_burst, burst_room;
  burst_t burst_in, burst;
  logic burst_valid, burst_taken;
  logic [4:0] unused_bursts;

  assign level     = head_q - tail_q;
  assign wr_ready  = !level[PtrW] && burst_room;
  assign chunk_end = wr_en && beat_q[BurstW-1:0] == '1;
  assign push_burst = wr_end || chunk_end;

  always_comb begin
    burst_in.has_data = wr_en;
    burst_in.last     = wr_end;
    burst_in.addr     = wr_addr + (ADDR_W'(beat_q >> BurstW) << (BurstW + LaneW));
    burst_in.len      = 8'(beat_q[BurstW-1:0]);
  end

  always_ff @(posedge clk) begin
    if (wr_en) begin
      head_q <= head_q + 1'b1;
      beat_q <= beat_q + 1'b1;
    end
    if (wr_end) beat_q <= '0;
    if (rst) begin
      head_q <= '0;
      beat_q <= '0;
    end
  end

  sync_fifo #(.W($bits(burst_t)), .DEPTH(16)) u_bursts (
    .clk, .rst,
    .s_data (burst_in),
    .s_valid(push_burst),
    .s_ready(burst_room),
    .m_data (burst),
    .m_valid(burst_valid),
    .m_ready(burst_taken),
    .level  (unused_bursts)
  );

  // ---- bursts out ----------------------------------------------------------------------------------
  logic data_room, answer_room, data_valid, data_done, answer_valid, answer_taken;
  logic wlast_q, wvalid_q, held_q;
  logic [4:0] unused_data, unused_answers;
  logic [7:0] data_len, sent_q;
  answer_t answer_in, answer;

  // Both followers of an address have room: it can be taken in any cycle, and stays requested (`held_q`).
  assign m_axi_req.awvalid = burst_valid && burst.has_data && (held_q || (data_room && answer_room));
  assign m_axi_req.aw      = whole_words(64'(burst.addr), burst.len, Lanes);
  assign m_axi_req.wlast   = wlast_q;
  assign m_axi_req.wlanes  = axi_pkg::AllLanes;
  assign m_axi_req.wstrb   = 1'b1;
  assign m_axi_req.wvalid  = wvalid_q;
  assign burst_taken       = burst.has_data ? m_axi_req.awvalid && m_axi_rsp.awready : answer_room;

  assign answer_in.has_data = burst.has_data;
  assign answer_in.last     = burst.last;

  sync_fifo #(.W(8), .DEPTH(Outstanding)) u_data (
    .clk, .rst,
    .s_data (burst.len),
    .s_valid(m_axi_req.awvalid && !held_q),
    .s_ready(data_room),
    .m_data (data_len),
    .m_valid(data_valid),
    .m_ready(data_done),
    .level  (unused_data)
  );
  sync_fifo #(.W($bits(answer_t)), .DEPTH(Outstanding)) u_answers (
    .clk, .rst,
    .s_data (answer_in),
    .s_valid(burst_valid && burst_taken),
    .s_ready(answer_room),
    .m_data (answer),
    .m_valid(answer_valid),
    .m_ready(answer_taken),
    .level  (unused_answers)
  );

  // The RAM's read register is the output register of the W channel.
  logic fetch, at_end;
  assign fetch     = data_valid && (m_axi_rsp.wready || !m_axi_req.wvalid);
  assign at_end    = sent_q == data_len;
  assign data_done = fetch && at_end;

  ram_sdp #(.W(DATA_W), .DEPTH(Words)) u_words (
    .clk,
    .wr_en,
    .wr_addr(head_q[PtrW-1:0]),
    .wr_data,
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data(m_axi_wdata)
  );

  always_ff @(posedge clk) begin
    if (fetch) begin
      tail_q      <= tail_q + 1'b1;
      sent_q      <= at_end ? '0 : sent_q + 1'b1;
      wlast_q <= at_end;
    end
    if (fetch) wvalid_q <= 1'b1;
    else if (m_axi_rsp.wready) wvalid_q <= 1'b0;
    held_q <= m_axi_req.awvalid && !m_axi_rsp.awready && !rst;
    if (rst) begin
      tail_q       <= '0;
      sent_q       <= '0;
      wvalid_q <= 1'b0;
    end
  end

  // ---- answers ---------------------------------------------------------------------------------------
  logic bad, bad_q;  // one of the slot's bursts failed

  assign m_axi_req.bready = answer_valid && answer.has_data;

  assign answer_taken = m_axi_req.bready ? m_axi_rsp.bvalid : answer_valid;
  assign bad          = bad_q || (m_axi_req.bready && m_axi_rsp.bresp[1]);

  always_ff @(posedge clk) begin
    if (answer_taken) bad_q <= bad && !answer.last;
    written     <= answer_taken && answer.last;
    written_bad <= bad;
    if (rst) begin
      bad_q   <= 1'b0;
      written <= 1'b0;
    end
  end

  wire unused = &{1'b0, m_axi_rsp.bid, m_axi_rsp.bresp[0]};

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) wr_en || wr_end |-> wr_ready);
  a_expected : assert property (@(posedge clk) disable iff (rst) m_axi_rsp.bvalid |-> answer_valid);
  a_4k : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.awvalid |-> 13'(m_axi_req.aw.addr[11:0]) + ((13'(m_axi_req.aw.len) + 13'd1) << LaneW) <= 13'd4096);
  a_aw_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.awvalid && !m_axi_rsp.awready |=> m_axi_req.awvalid && $stable(m_axi_req.aw));
  a_w_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.wvalid && !m_axi_rsp.wready |=> m_axi_req.wvalid && $stable(m_axi_wdata) && $stable(m_axi_req.wlast));
`endif
endmodule
