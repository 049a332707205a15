// SPDX-License-Identifier: SHL-2.1
// Moves a reset from one clock to another that may be stopped, and holds both sides until the other side has seen it.
// Promise: after s_rst, s_hold stays high until the m_clk side has been reset and released, so both sides of an
// async_fifo start together however late m_clk starts. m_rst lasts four cycles of m_clk or more.
//
//   s_rst --> asked_q --> 4 FF of m_clk --> m_rst --> 4 FF of s_clk --> ends asked_q; s_hold until all is released
module reset_bridge (
  input  logic s_clk,
  input  logic s_rst,
  output logic s_hold,
  input  logic m_clk,
  output logic m_rst
);
  logic asked_q, seen;

  reset_sync #(.STAGES(4)) u_there (
    .clk(m_clk),
    .d  (asked_q),
    .q  (m_rst)
  );

  reset_sync #(.STAGES(4)) u_back (
    .clk(s_clk),
    .d  (m_rst),
    .q  (seen)
  );

  always_ff @(posedge s_clk) begin
    if (s_rst) asked_q <= 1'b1;
    else if (seen) asked_q <= 1'b0;
  end

  assign s_hold = s_rst || asked_q || seen;
endmodule
