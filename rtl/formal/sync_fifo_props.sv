// SPDX-License-Identifier: SHL-2.1
// Promises of a FIFO: words leave unchanged, in order, none lost or made up; it never overflows.
// The proof follows one arbitrary word from its entry until it leaves.
module sync_fifo_props #(
  parameter int unsigned W = 32,
  parameter int unsigned DEPTH = 4,
  parameter int unsigned PtrW = 2
) (
  input logic          clk,
  input logic          rst,
  input logic [W-1:0]  s_data,
  input logic          s_valid,
  input logic          s_ready,
  input logic [W-1:0]  m_data,
  input logic          m_valid,
  input logic          m_ready,
  input logic [PtrW:0] level,
  input logic [PtrW-1:0] tail,
  input logic [DEPTH-1:0][W-1:0] stored
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  logic choose;
  anything u_choose (.value(choose));

  logic push, pop;
  assign push = s_valid && s_ready;
  assign pop = m_valid && m_ready;

  logic         watching_q;
  logic [W-1:0] word_q;
  logic [PtrW:0] ahead_q;  // words in front of the watched one

  always_ff @(posedge clk) begin
    if (watching_q) begin
      ahead_q <= ahead_q - (PtrW+1)'(pop);
      if (pop && ahead_q == '0) watching_q <= 1'b0;
    end else if (push && choose) begin
      watching_q <= 1'b1;
      word_q <= s_data;
      ahead_q <= level - (PtrW+1)'(pop);
    end
    if (rst) watching_q <= 1'b0;
  end

  always_comb if (started_q && !rst) begin
    a_level : assert (32'(level) <= DEPTH);
    a_ready : assert (s_ready == (32'(level) < DEPTH));
    a_valid : assert (m_valid == (level != '0));
    if (watching_q) begin
      a_inside : assert (ahead_q < level);
      a_data : assert (stored[tail + PtrW'(ahead_q)] == word_q);
      if (ahead_q == '0) a_out : assert (m_valid && m_data == word_q);
    end
    c_full_and_moving : cover (32'(level) == DEPTH && pop && watching_q);
  end
endmodule

bind sync_fifo sync_fifo_props #(.W(W), .DEPTH(DEPTH), .PtrW(PtrW)) u_props (
  .tail  (tail_q[PtrW-1:0]),
  .stored({mem[3], mem[2], mem[1], mem[0]}),  // proved at DEPTH 4
  .*
);
