// SPDX-License-Identifier: SHL-2.1
// Moves a reset from one clock to another that may be stopped, and holds both sides until the other side has seen it.
// Promise: from s_rst on, s_hold stays high until the m_clk side has been reset and released, so both sides of an
// async_fifo start together however late m_clk starts, and no reset of one is without one of the other. m_rst lasts
// four cycles of m_clk or more. An s_rst that comes while the last one is being released waits: the next request would
// otherwise be taken for answered by the last answer.
//
//   s_rst --> request_q --> 4 FF of m_clk --> m_rst --> 4 FF of s_clk --> ends request_q; s_hold until all is released
module reset_bridge (
  input  logic s_clk,
  input  logic s_rst,
  output logic s_hold,
  input  logic m_clk,
  output logic m_rst
);
  logic request_q = 1'b1;  // known from the first cycle on: the way back from m_clk is not yet
  logic again_q, seen;

  reset_sync #(.STAGES(4)) u_there (
    .clk(m_clk),
    .d  (request_q),
    .q  (m_rst)
  );

  reset_sync #(.STAGES(4)) u_back (
    .clk(s_clk),
    .d  (m_rst),
    .q  (seen)
  );

  always_ff @(posedge s_clk) begin
    if (request_q) request_q <= s_rst || !seen;
    else request_q <= (s_rst || again_q) && !seen;
    again_q <= (s_rst || again_q) && !request_q && seen;
  end

  assign s_hold = s_rst || request_q || again_q || seen;
endmodule
