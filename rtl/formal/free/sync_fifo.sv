// SPDX-License-Identifier: SHL-2.1
// Replaces sync_fifo in proofs that hold for any words in any order: it gives anything at any time.
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
  anything #(.W(W)) u_data (.value(m_data));
  anything u_ready (.value(s_ready));
  anything u_valid (.value(m_valid));
  anything #(.W(PtrW + 1)) u_level (.value(level));
endmodule
