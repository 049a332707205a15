// SPDX-License-Identifier: SHL-2.1
// Queue of words in block RAM that shows a frame to its reader only after the writer has committed it.
// Promise: words of a dropped or lost frame are never read; a committed frame can be read one word a
// cycle without a gap. `commit` and `drop` concern the words written up to their own cycle, that one
// included. A frame that found the store full is lost: its commit acts as a drop.
module frame_store #(
  parameter  int unsigned W     = 64,
  parameter  int unsigned DEPTH = 1024,
  localparam int unsigned PtrW  = $clog2(DEPTH)
) (
  input  logic         clk,
  input  logic         rst,
  input  logic [W-1:0] wr_data,
  input  logic         wr_valid,
  input  logic         commit,
  input  logic         drop,
  output logic         lost,      // the frame is incomplete
  output logic [PtrW:0] level,    // words of whole frames that wait
  output logic [W-1:0] rd_data,
  output logic         rd_valid,
  input  logic         rd_ready
);
  if (DEPTH < 2 || DEPTH != 2 ** PtrW) begin : gen_bad_depth
    $fatal(1, "%m: DEPTH %0d is not a power of two above 1", DEPTH);
  end

  logic [PtrW:0] head_q, head;  // after the last word written, before and including this cycle's
  logic [PtrW:0] committed_q;   // after the last word that may be read
  logic [PtrW:0] tail_q;        // the next word to read
  logic          lost_q;
  logic          full, write, fetch;

  assign full  = head_q == {~tail_q[PtrW], tail_q[PtrW-1:0]};
  assign lost  = lost_q || (wr_valid && full);
  assign write = wr_valid && !lost;
  assign head  = head_q + (PtrW + 1)'(write);
  assign level = committed_q - tail_q;
  assign fetch = tail_q != committed_q && (rd_ready || !rd_valid);

  ram_sdp #(
    .W    (W),
    .DEPTH(DEPTH),
    .BLOCK(1'b1)
  ) u_ram (
    .clk,
    .wr_en  (write),
    .wr_addr(head_q[PtrW-1:0]),
    .wr_data(wr_data),
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data(rd_data)
  );

  always_ff @(posedge clk) begin
    head_q <= drop || (commit && lost) ? committed_q : head;
    lost_q <= lost && !commit && !drop;
    if (commit && !lost) committed_q <= head;
    if (fetch) tail_q <= tail_q + 1'b1;
    if (fetch) rd_valid <= 1'b1;
    else if (rd_ready) rd_valid <= 1'b0;
    if (rst) begin
      head_q      <= '0;
      committed_q <= '0;
      tail_q      <= '0;
      lost_q      <= 1'b0;
      rd_valid    <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_one : assert property (@(posedge clk) disable iff (rst) !(commit && drop));
  a_hold : assert property (@(posedge clk) disable iff (rst)
    rd_valid && !rd_ready |=> rd_valid && $stable(rd_data));
`endif
endmodule
