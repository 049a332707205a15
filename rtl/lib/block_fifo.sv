// SPDX-License-Identifier: SHL-2.1
// FIFO of words in block RAM for any depth, because a front end has more spare block RAM than LUTs.
// Promise: a word is visible two cycles after it was pushed; one push and one pop per cycle. DEPTH, a power of two,
// counts the words in RAM, as `level` does; one more waits at the output.
module block_fifo #(
  parameter  int unsigned W     = 32,
  parameter  int unsigned DEPTH = 4,
  localparam int unsigned PtrW  = $clog2(DEPTH)
) (
  input  logic          clk,
  input  logic          rst,
  input  logic [W-1:0]  s_data,
  input  logic          s_valid,
  output logic          s_ready,
  output logic [W-1:0]  m_data,
  output logic          m_valid,
  input  logic          m_ready,
  output logic [PtrW:0] level
);
  if (DEPTH < 2 || DEPTH != 2 ** PtrW) begin : gen_bad_depth
    $fatal(1, "%m: DEPTH %0d is not a power of two above 1", DEPTH);
  end

  logic [PtrW:0] head_q, tail_q;
  logic valid_q, push, fetch;

  assign level   = head_q - tail_q;
  assign s_ready = !level[PtrW];
  assign push    = s_valid && s_ready;
  assign fetch   = head_q != tail_q && (m_ready || !valid_q);
  assign m_valid = valid_q;

  ram_sdp #(.W(W), .DEPTH(DEPTH), .BLOCK(1'b1)) u_ram (
    .clk,
    .wr_en  (push),
    .wr_addr(head_q[PtrW-1:0]),
    .wr_data(s_data),
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data(m_data)
  );

  always_ff @(posedge clk) begin
    if (push) head_q <= head_q + 1'b1;
    if (fetch) tail_q <= tail_q + 1'b1;
    if (fetch) valid_q <= 1'b1;
    else if (m_ready) valid_q <= 1'b0;
    if (rst) begin
      head_q  <= '0;
      tail_q  <= '0;
      valid_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_level : assert property (@(posedge clk) disable iff (rst) 32'(level) <= DEPTH);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_valid && !m_ready |=> m_valid && $stable(m_data));
`endif
endmodule
