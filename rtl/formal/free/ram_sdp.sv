// SPDX-License-Identifier: SHL-2.1
// Replaces ram_sdp in proofs about one word: only the word at `place_q`, an arbitrary constant address, is
// stored; a read of another address gives any value. A property of this word holds for all words.
module ram_sdp #(
  parameter  int unsigned W     = 64,
  parameter  int unsigned DEPTH = 512,
  parameter  bit          BLOCK = 1'b0,
  localparam int unsigned AddrW = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
  input  logic             clk,
  input  logic             wr_en,
  input  logic [AddrW-1:0] wr_addr,
  input  logic [W-1:0]     wr_data,
  input  logic             rd_en,
  input  logic [AddrW-1:0] rd_addr,
  output logic [W-1:0]     rd_data
);
  logic started_q = 1'b0;
  logic [AddrW-1:0] any_place, place_q;
  logic [W-1:0] other, word_q;
  anything #(.W(AddrW)) u_place (.value(any_place));
  anything #(.W(W)) u_other (.value(other));

  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    if (!started_q) place_q <= any_place;
    if (wr_en && wr_addr == place_q) word_q <= wr_data;
    if (rd_en) rd_data <= rd_addr == place_q ? word_q : other;
  end
endmodule
