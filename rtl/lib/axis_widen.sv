// SPDX-License-Identifier: SHL-2.1
// A stream of 16 bits as one of 64, first bytes first. Promise: a beat of the wide side is shown with the last of its
// bytes, so what stands beside it is that of all of them; nothing is added or lost (AXI4-Stream, ARM IHI 0051).
module axis_widen (
  input  logic        clk,
  input  logic        rst,
  input  logic [15:0] s_axis_tdata,
  input  logic [1:0]  s_axis_tkeep,   // the first bytes of a packet's last beat
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast
);
  logic [1:0]  part_q;
  logic [47:0] parts_q;  // those before
  logic        ends;

  assign ends          = part_q == 2'd3 || s_axis_tlast;
  assign m_axis_tvalid = s_axis_tvalid && ends;
  assign m_axis_tlast  = s_axis_tlast;
  assign s_axis_tready = m_axis_tready || !ends;

  always_comb begin
    m_axis_tdata = {16'h0, parts_q};
    m_axis_tdata[{part_q, 4'b0}+:16] = s_axis_tdata;
    m_axis_tkeep = {2'b00, 6'h3F >> (6'd6 - {3'b0, part_q, 1'b0})};
    m_axis_tkeep[{part_q, 1'b0}+:2] = s_axis_tkeep;
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready) begin
      part_q <= ends ? '0 : part_q + 1'b1;
      for (int unsigned i = 0; i < 3; i++) if (part_q == 2'(i)) parts_q[16*i+:16] <= s_axis_tdata;
    end
    if (rst) part_q <= '0;
  end
endmodule
