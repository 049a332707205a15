// SPDX-License-Identifier: SHL-2.1
// Shallow first-word-fall-through FIFO in distributed RAM: a word is visible the cycle after it
// was pushed, one push and one pop a cycle. DEPTH is a power of two. `level` counts stored words.
module sync_fifo #(
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

  logic [W-1:0] mem[DEPTH];
  logic [PtrW:0] head_q, tail_q;

  assign level   = head_q - tail_q;
  assign s_ready = !level[PtrW];
  assign m_valid = head_q != tail_q;
  assign m_data  = mem[tail_q[PtrW-1:0]];

  always_ff @(posedge clk) begin
    if (s_valid && s_ready) begin
      mem[head_q[PtrW-1:0]] <= s_data;
      head_q <= head_q + 1'b1;
    end
    if (m_valid && m_ready) tail_q <= tail_q + 1'b1;
    if (rst) begin
      head_q <= '0;
      tail_q <= '0;
    end
  end

`ifndef SYNTHESIS
  a_level : assert property (@(posedge clk) disable iff (rst) 32'(level) <= DEPTH);
  // Not $stable of m_data: a simulator would sample the whole memory in each time step.
  logic [W-1:0] shown_q;
  logic held_q;
  always_ff @(posedge clk) begin
    shown_q <= m_data;
    held_q  <= m_valid && !m_ready && !rst;
    if (held_q && !rst) a_hold : assert (m_valid && m_data == shown_q);
  end
`endif
endmodule
