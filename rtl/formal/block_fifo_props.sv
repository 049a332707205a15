// SPDX-License-Identifier: SHL-2.1
// Promises of the block-RAM FIFO: words leave unchanged and in order, none lost, none made up; a word at the output
// waits unchanged; a word in RAM is at the output one cycle later if there is room; it never overflows.
module block_fifo_props #(
  parameter int unsigned W = 8,
  parameter int unsigned DEPTH = 4,
  parameter int unsigned PtrW = 2
) (
  input logic                    clk,
  input logic                    rst,
  input logic [W-1:0]            s_data,
  input logic                    s_valid,
  input logic                    s_ready,
  input logic [W-1:0]            m_data,
  input logic                    m_valid,
  input logic                    m_ready,
  input logic [PtrW:0]           level,
  input logic [PtrW-1:0]         tail,
  input logic [DEPTH-1:0][W-1:0] stored
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  logic push, pop;
  assign push = s_valid && s_ready;
  assign pop  = m_valid && m_ready;

  logic choose;
  anything u_choose (.value(choose));

  logic watching_q, held_q, waited_q;
  logic [W-1:0] watched_q, last_q;
  logic [PtrW:0] ahead_q;  // words in front of the watched one, the output register counted
  logic [PtrW-1:0] place;
  assign place = tail + PtrW'(ahead_q) - PtrW'(m_valid);

  always_ff @(posedge clk) begin
    held_q   <= m_valid && !m_ready;
    waited_q <= level != '0;
    last_q   <= m_data;
    if (watching_q) begin
      ahead_q <= ahead_q - (PtrW + 1)'(pop);
      if (pop && ahead_q == '0) watching_q <= 1'b0;
    end else if (push && choose) begin
      watching_q <= 1'b1;
      watched_q  <= s_data;
      ahead_q    <= level + (PtrW + 1)'(m_valid) - (PtrW + 1)'(pop);
    end
    if (rst) begin
      watching_q <= 1'b0;
      held_q     <= 1'b0;
      waited_q   <= 1'b0;
    end
  end

  always_comb if (started_q && !rst) begin
    a_level : assert (32'(level) <= DEPTH);
    a_ready : assert (s_ready == (32'(level) < DEPTH));
    if (held_q) a_hold : assert (m_valid && m_data == last_q);
    if (waited_q) a_no_bubble : assert (m_valid);
    if (watching_q) begin
      a_inside : assert ({1'b0, ahead_q} < {1'b0, level} + (PtrW + 2)'(m_valid));
      a_data : assert ((ahead_q == '0 && m_valid ? m_data : stored[place]) == watched_q);
    end
    c_full_and_moving : cover (32'(level) == DEPTH && pop && watching_q);
  end
endmodule

bind block_fifo block_fifo_props #(.W(W), .DEPTH(DEPTH), .PtrW(PtrW)) u_props (
  .tail  (tail_q[PtrW-1:0]),
  .stored({u_ram.mem[3], u_ram.mem[2], u_ram.mem[1], u_ram.mem[0]}),  // proved at DEPTH 4
  .*
);
