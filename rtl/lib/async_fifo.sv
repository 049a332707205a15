// SPDX-License-Identifier: SHL-2.1
// FIFO between two clocks: Gray pointers through two flip-flops each way, words in distributed RAM (Cummings,
// "Simulation and Synthesis Techniques for Asynchronous FIFO Design", SNUG 2002, style 1).
// Promise: words leave in order, none lost or made up, for any two clocks; a word is visible 2 to 3 cycles of the
// reader's clock after it was pushed, free room 2 to 3 cycles of the writer's clock after a pop. First word falls
// through.
//
//   s_clk:  head --> Gray --| FF | FF |--> m_clk: there are words
//   s_clk:  there is room <--| FF | FF |-- Gray <-- tail
//
// Constraints (rtl/boards/event_inputs.xdc): each path into a first synchroniser flip-flop, and from the words to the
// output, takes less than a period of the faster clock, so no two bits of a pointer differ by more than one step.
// Resets: a reset of one side alone would make the other take old words for new ones. Both sides are reset by one
// reset_bridge, whichever side starts it.
module async_fifo #(
  parameter  int unsigned W     = 64,
  parameter  int unsigned DEPTH = 16,  // a power of two, 4 or more
  localparam int unsigned PtrW  = $clog2(DEPTH)
) (
  input  logic         s_clk,
  input  logic         s_rst,
  input  logic [W-1:0] s_data,
  input  logic         s_valid,
  output logic         s_ready,

  input  logic         m_clk,
  input  logic         m_rst,
  output logic [W-1:0] m_data,
  output logic         m_valid,
  input  logic         m_ready
);
  if (DEPTH < 4 || DEPTH != 2 ** PtrW) begin : gen_bad_depth
    $fatal(1, "%m: DEPTH %0d is not a power of two, 4 or more", DEPTH);
  end

  typedef logic [PtrW:0] pointer_t;  // one bit more than an address: full and empty differ

  function automatic pointer_t gray(pointer_t binary);
    return binary ^ (binary >> 1);
  endfunction

(* ram_style = "distributed" *) logic [W-1:0] words[DEPTH];

  // ---- writer -----------------------------------------------------------------------------------------
  pointer_t head_q, head_d, head_gray_q;
(* ASYNC_REG = "TRUE" *) pointer_t tail_sync0_q, tail_sync1_q;  // tail, in Gray code
  pointer_t tail_gray_q;
  logic push;

  // Full: as the tail, but for the two highest bits, which are those of the tail a round before.
  assign s_ready = head_gray_q != {~tail_sync1_q[PtrW:PtrW-1], tail_sync1_q[PtrW-2:0]};
  assign push    = s_valid && s_ready;
  assign head_d  = head_q + pointer_t'(push);

  always_ff @(posedge s_clk) begin
    head_q       <= head_d;
    head_gray_q  <= gray(head_d);
    tail_sync0_q <= tail_gray_q;
    tail_sync1_q <= tail_sync0_q;
    if (push) words[head_q[PtrW-1:0]] <= s_data;
    if (s_rst) begin
      head_q       <= '0;
      head_gray_q  <= '0;
      tail_sync0_q <= '0;
      tail_sync1_q <= '0;
    end
  end

  // ---- reader: one word more waits in a register of the reader's clock -------------------------------
  pointer_t tail_q, tail_d;
(* ASYNC_REG = "TRUE" *) pointer_t head_sync0_q, head_sync1_q;
  logic fetch;

  assign fetch  = tail_gray_q != head_sync1_q && (m_ready || !m_valid);
  assign tail_d = tail_q + pointer_t'(fetch);

  always_ff @(posedge m_clk) begin
    tail_q       <= tail_d;
    tail_gray_q  <= gray(tail_d);
    head_sync0_q <= head_gray_q;
    head_sync1_q <= head_sync0_q;
    if (fetch) begin
      m_data  <= words[tail_q[PtrW-1:0]];
      m_valid <= 1'b1;
    end else if (m_ready) m_valid <= 1'b0;
    if (m_rst) begin
      tail_q       <= '0;
      tail_gray_q  <= '0;
      head_sync0_q <= '0;
      head_sync1_q <= '0;
      m_valid      <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge m_clk) disable iff (m_rst)
    m_valid && !m_ready |=> m_valid && $stable(m_data));
  a_one_bit_s : assert property (@(posedge s_clk) disable iff (s_rst) 1 |=> $countones(head_gray_q ^ $past(head_gray_q)) <= 1);
  // Properties that a reset of one side alone breaks.
  a_within : assert property (@(posedge m_clk) disable iff (m_rst || s_rst) 32'(pointer_t'(head_q - tail_q)) <= DEPTH)
    else $error("%m: more words than fit: one side was reset without the other");
  a_one_bit_m : assert property (@(posedge m_clk) disable iff (m_rst) 1 |=> $countones(tail_gray_q ^ $past(tail_gray_q)) <= 1);
`endif
endmodule
