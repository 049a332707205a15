// SPDX-License-Identifier: SHL-2.1
// Passes the datagrams for one service on: the payload as a stream, addresses and ports in parallel.
// Promise: a datagram is passed on whole or not at all; addresses and ports hold while its words are shown (RFC 768).
module udp_deliver
  import services_pkg::*;
#(
  parameter words_t      SIDE  = span(WordSport, 2),  // words of the head that are shown in parallel to the payload
  parameter int unsigned DEPTH = 8192,                // of the store, words
  localparam int unsigned SideWords = $countones(SIDE)
) (
  input  logic        clk,
  input  logic        rst,

  input  parsed_t      parsed,
  input  logic        accept,    // with parsed.done
  output logic        lost,

  output logic [15:0] m_axis_tdata,
  output logic [1:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,
  output logic [16*SideWords-1:0] side  // the first word uppermost
);
  localparam int unsigned CountW = $clog2(SideWords + 1);

  sent_t             word;
  logic [CountW-1:0] shown_q;  // words that are beside
  logic              whole;

  record_store #(
    .KEEP (SIDE | span(WordPayload, 1)),
    .DEPTH(DEPTH)
  ) u_store (
    .clk, .rst, .parsed, .accept, .lost, .word,
    .take(!whole || m_axis_tready)
  );

  assign whole         = shown_q == CountW'(SideWords);
  assign m_axis_tvalid = word.valid && whole;
  assign m_axis_tdata  = swap_bytes(word.data);
  assign m_axis_tkeep  = {!word.odd, 1'b1};
  assign m_axis_tlast  = word.last;

  always_ff @(posedge clk) begin
    if (word.valid && !whole) begin
      side    <= {side[16*SideWords-17:0], word.data};
      shown_q <= shown_q + 1'b1;
    end else if (m_axis_tvalid && m_axis_tready && m_axis_tlast) begin
      shown_q <= '0;
    end
    if (rst) shown_q <= '0;
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst) m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast, side}));
`endif
endmodule
