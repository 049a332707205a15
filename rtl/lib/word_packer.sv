// SPDX-License-Identifier: SHL-2.1
// Concatenates pieces of 1 to DATA_W / 64 words of 64 bits: every output beat is full except the last of a frame.
// Promise: no word is lost, made up or reordered; one piece per cycle, and one extra cycle after a frame whose last
// piece did not fit into the current beat. The valid words of a piece are the low ones.
module word_packer #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Words  = DATA_W / 64,
  localparam int unsigned CountW = $clog2(Words + 1)
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [DATA_W-1:0] s_data,
  input  logic [CountW-1:0] s_count,  // words, at least 1
  input  logic              s_last,
  input  logic              s_valid,
  output logic              s_ready,
  output logic [DATA_W-1:0] m_data,   // zeros after the last word
  output logic [CountW-1:0] m_count,
  output logic              m_last,
  output logic              m_valid,
  input  logic              m_ready
);
  if (DATA_W < 64 || DATA_W > 1024 || DATA_W != 2 ** $clog2(DATA_W)) begin : gen_bad_width
    $fatal(1, "%m: DATA_W is %0d; it must be a power of two from 64 to 1024", DATA_W);
  end

  logic [DATA_W-1:0] held_q;    // words that wait for more, zeros after them
  logic [CountW-1:0] waiting_q; // of held_q; below Words
  logic rest_q;                 // they are a frame's last
  logic free, take, full;

  logic [DATA_W-1:0] piece;     // zeros after its words
  logic [2*DATA_W-1:0] joined;
  logic [CountW:0] count;

  for (genvar i = 0; i < int'(Words); i++) begin : gen_piece
    assign piece[64*i+:64] = CountW'(i) < s_count ? s_data[64*i+:64] : '0;
  end

  assign free    = m_ready || !m_valid;
  assign s_ready = free && !rest_q;
  assign take    = s_valid && s_ready;
  assign joined  = (2 * DATA_W)'(held_q) | ((2 * DATA_W)'(piece) << {waiting_q, 6'd0});
  assign count   = (CountW + 1)'(waiting_q) + (CountW + 1)'(s_count);
  assign full    = count >= (CountW + 1)'(Words);

  always_ff @(posedge clk) begin
    if (free) begin
      m_valid <= rest_q || (take && (full || s_last));
      m_data  <= rest_q ? held_q : joined[DATA_W-1:0];
      m_count <= rest_q ? waiting_q : full ? CountW'(Words) : count[CountW-1:0];
      m_last  <= rest_q || (s_last && count <= (CountW + 1)'(Words));
      rest_q  <= take && s_last && count > (CountW + 1)'(Words);
      if (rest_q) {held_q, waiting_q} <= '0;
    end
    if (take) begin
      held_q    <= full ? joined[2*DATA_W-1:DATA_W] : joined[DATA_W-1:0];
      waiting_q <= CountW'(full ? count - (CountW + 1)'(Words) : count);
      if (s_last && count <= (CountW + 1)'(Words)) {held_q, waiting_q} <= '0;
    end
    if (rst) begin
      m_valid   <= 1'b0;
      rest_q    <= 1'b0;
      held_q    <= '0;
      waiting_q <= '0;
    end
  end

`ifndef SYNTHESIS
  a_count : assert property (@(posedge clk) disable iff (rst)
    s_valid |-> s_count != '0 && 32'(s_count) <= Words);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_valid && !m_ready |=> m_valid && $stable({m_data, m_count, m_last}));
`endif
endmodule
